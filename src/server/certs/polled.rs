//! Files that are read again and again: when a changed content is to be taken seriously.
//!
//! In: readings. Out: each new content once, when two readings in a row agree, so that a writer who is not atomic is not
//! caught half-way. Polled, because the kubelet replaces a symlink above the files, which a watch on them does not see.

use std::time::Duration;

/// How often files are read.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// One content, followed.
pub(super) struct Polled<T> {
    in_use: Option<T>,
    /// The last reading that differed, and whether it has been handed out.
    candidate: Option<(Result<T, String>, bool)>,
}

impl<T: Clone + PartialEq> Polled<T> {
    /// Follows from `in_use` on.
    pub(super) fn new(in_use: T) -> Polled<T> {
        Polled { in_use: Some(in_use), candidate: None }
    }

    /// Follows while nothing is in use: the first content, too, is one to be judged.
    pub(super) fn unused() -> Polled<T> {
        Polled { in_use: None, candidate: None }
    }

    /// Takes in a reading; gives a new content, or a new reason why there is none, to be judged now.
    pub(super) fn settled(&mut self, reading: Result<T, String>) -> Option<Result<T, String>> {
        if reading.as_ref().is_ok_and(|reading| self.in_use.as_ref() == Some(reading)) {
            self.candidate = None;
            return None;
        }
        match &mut self.candidate {
            Some((candidate, judged)) if *candidate == reading => (!std::mem::replace(judged, true)).then_some(reading),
            candidate => {
                *candidate = Some((reading, false));
                None
            }
        }
    }

    /// The content was taken into use.
    pub(super) fn accept(&mut self, content: T) {
        self.in_use = Some(content);
        self.candidate = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_counts_when_it_is_read_twice_and_is_judged_once() {
        let mut polled = Polled::new(1);
        let gone = || Err("gone".to_owned());
        type Reading = Result<i32, String>;
        let rows: [(Reading, Option<Reading>); 9] = [
            (Ok(1), None),
            (Ok(2), None),
            (Ok(3), None),
            (Ok(3), Some(Ok(3))),
            (Ok(3), None),
            (gone(), None),
            (gone(), Some(gone())),
            (gone(), None),
            (Ok(1), None),
        ];
        for (reading, expected) in rows {
            assert_eq!(polled.settled(reading.clone()), expected, "{reading:?}");
        }
        assert_eq!(polled.settled(Ok(3)), None, "it came back, and is a change again");
        assert_eq!(polled.settled(Ok(3)), Some(Ok(3)));
        polled.accept(3);
        assert_eq!(polled.settled(Ok(3)), None);
    }
}
