//! How many objects the next page of a list is to hold; pure.
//!
//! In: the most that are wanted, and how large pages were. Out: how many to ask for, and how many bytes of the answer to take. Promise: an API
//! server counts objects, whatever they weigh, and whoever may write one can make it some megabytes: no more than [`LARGEST`] is taken of a page,
//! but of one of [`LEAST`] objects, and small objects come in large pages all the same.

/// Objects that are asked for first, and whenever a page was too large.
const LEAST: u32 = 8;
/// Bytes of a page below which the next one holds twice as many objects.
const SMALL: u64 = 4 << 20;
/// Bytes that are taken of a page that holds more than [`LEAST`] objects: what as many as that take which are as large as they may be, some 1.5 MiB.
const LARGEST: u64 = 12 << 20;

/// The pages of one list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    /// Most objects of a page; `None`: all in one.
    most: Option<u32>,
    /// Objects of the next one.
    next: u32,
}

impl Pages {
    /// Of a list from its beginning.
    pub(super) fn new(most: Option<u32>) -> Self {
        Self { most, next: LEAST }
    }

    /// How many objects to ask for.
    pub(super) fn limit(self) -> Option<u32> {
        self.most.map(|most| most.min(self.next))
    }

    /// How many bytes to take of the answer; `None`: all of them.
    pub(super) fn bytes(self) -> Option<u64> {
        self.limit().filter(|limit| *limit > LEAST).map(|_| LARGEST)
    }

    /// A page had that many bytes.
    pub(super) fn had(&mut self, bytes: u64) {
        self.next = if bytes < SMALL {
            self.next.saturating_mul(2).min(self.most.unwrap_or(LEAST).max(LEAST))
        } else {
            (self.next / 2).max(LEAST)
        };
    }

    /// A page had more bytes than are taken: the same again, of few objects.
    pub(super) fn had_too_many(&mut self) {
        self.next = LEAST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is asked for, page by page, of objects that weigh so many bytes each; how many bytes were taken of the largest.
    fn asked(most: u32, weights: &[u64]) -> (Vec<u32>, u64) {
        let (mut pages, mut asked, mut at, mut largest) = (Pages::new(Some(most)), Vec::new(), 0, 0);
        while at < weights.len() {
            let limit = pages.limit().unwrap();
            asked.push(limit);
            let page: Vec<u64> = weights[at..].iter().copied().take(limit.try_into().unwrap()).collect();
            let bytes = page.iter().sum::<u64>();
            largest = largest.max(pages.bytes().map_or(bytes, |most| bytes.min(most)));
            if pages.bytes().is_some_and(|most| bytes > most) {
                pages.had_too_many();
                continue;
            }
            pages.had(bytes);
            at += page.len();
        }
        (asked, largest)
    }

    #[test]
    fn small_objects_come_in_pages_that_double() {
        assert_eq!(asked(100, &[1024; 500]).0, [8, 16, 32, 64, 100, 100, 100, 100]);
        assert_eq!(asked(500, &[1024; 600]).0, [8, 16, 32, 64, 128, 256, 500]);
        assert_eq!(asked(2, &[1024; 5]).0, [2, 2, 2], "fewer than that are asked for where fewer are wanted");
        assert_eq!((Pages::new(None).limit(), Pages::new(None).bytes()), (None, None));
    }

    #[test]
    fn large_objects_come_in_small_pages_wherever_they_lie() {
        let large: u64 = 3 << 19;
        let (limits, largest) = asked(100, &[large; 100]);
        assert!(limits.iter().all(|limit| *limit == LEAST), "{limits:?}");
        assert_eq!(largest, u64::from(LEAST) * large);
        // Behind many small ones, where pages have grown.
        let weights: Vec<_> = [vec![1024; 400], vec![large; 40], vec![1024; 200]].concat();
        let (limits, largest) = asked(100, &weights);
        assert!(largest <= LARGEST, "{largest} bytes of one page: {limits:?}");
        assert_eq!(limits[..6], [8, 16, 32, 64, 100, 100]);
        assert!(limits.contains(&LEAST) && limits.len() < 30, "{limits:?}");
        assert!(*limits.last().unwrap() > 4 * LEAST, "small ones come in large pages again: {limits:?}");
    }
}
