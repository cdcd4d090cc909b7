//! Chance that can be repeated: the same seed throws the same numbers on every machine.

/// A stream of numbers (splitmix64).
pub(crate) struct Dice(u64);

impl Dice {
    /// The stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// True `percent` times of a hundred.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// One of them, kept.
    pub(crate) fn take<T, const N: usize>(&mut self, of: [T; N]) -> T {
        let index = self.below(N);
        of.into_iter().nth(index).unwrap()
    }

    /// One of the usual texts, and `odd` times of a hundred one of the others.
    pub(crate) fn text(&mut self, usual: &[&str], others: &[&str], odd: usize) -> String {
        if self.chance(odd) { self.pick(others).to_owned() } else { self.pick(usual).to_owned() }
    }

    /// Up to `most` of what `make` makes.
    pub(crate) fn some<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|_| make(self)).collect()
    }
}
