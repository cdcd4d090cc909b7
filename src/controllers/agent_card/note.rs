//! What a plan found out about its card, for later plans; data.

use std::time::Duration;

use crate::controllers::scaffold::signing::Signing;

/// What a plan found out about its item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// A person's wish to have it looked at again, and when it was noticed.
    pub refresh: Option<(Box<str>, Duration)>,
    /// The first good answer after trust was lost.
    pub settling: Option<Settling>,
    /// Since when the authority that signed for it has been unknown.
    pub awaiting: Option<Duration>,
    /// Since when it has been to be seen whether the signed card in its ConfigMap counts.
    pub open: Option<Duration>,
    /// Since when nobody has answered for it.
    pub failing: Option<Duration>,
    /// The attempts that failed since one of its Pods answered last.
    pub unanswered: Option<Unanswered>,
    /// Since when nobody could be asked, for want of something of ours.
    pub unasked: Option<Duration>,
    /// When it is asked for the first time in this term.
    pub first: Option<Duration>,
    /// The first second of the youngest certificate by which its card was accepted, in seconds since 1970.
    pub leaf: Option<i64>,
    /// Until when the signature of its card counts, as it was judged last.
    pub signing: Option<Signing>,
}

/// When the first good answer was asked for, after trust was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling(pub Duration);

/// Attempts that brought no answer, at whichever Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// When the first of them was noticed.
    pub since: Duration,
    /// How many there were.
    pub attempts: u32,
    /// When the last of them was made.
    pub last: Duration,
}
