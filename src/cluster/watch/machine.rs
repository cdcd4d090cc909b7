//! Following a collection, as a value: what comes in is a step, and what it asks for are effects; nothing here waits or decodes.
//!
//! In: versions and tokens of pages, versions of events, ends and failures, and the epoch of the process's history. Out: what to ask the
//! server for next, and what of an answer is to be told. Promises: the rule of [`super`] for lists, watches and versions; the same inputs at
//! the same times give the same effects; the position never moves backwards but by a list.

use std::time::Duration;

use super::number;

/// Time since an arbitrary fixed moment of this process, monotonic.
type Moment = Duration;

/// A watch that ends sooner than this has not really begun.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Read a page of a list: the one of that token, or the first. Its answer is [`Follower::page`].
    Page(Option<String>),
    /// Say that the list is complete.
    Listed,
    /// Begin a watch after that version. Its answer is [`Follower::begun`].
    Watch(String),
    /// Wait for what the watch says ([`Follower::said`]), or for its end ([`Follower::ended`]).
    Hear,
}

/// What a page says of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// It is not the first list: what is known under the same version may be something else.
    pub again: bool,
    /// The cluster went back: the epoch of the position, and its version and that of the page.
    pub went_back: Option<(u64, (u64, u64))>,
}

/// What to make of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It is news.
    News,
    /// It is older than the position, and is dropped.
    Late,
    /// A bookmark before the position: a list tells what is true.
    ListAgain,
}

/// What to make of the end of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It had not really begun: that is a failure.
    TooShort,
    /// The ordinary end: another follows.
    Renewed,
    /// It proved nothing: a list tells what is true.
    ListAgain,
}

/// How far the history is known.
#[derive(Debug, Clone)]
struct Position {
    version: String,
    number: u64,
    epoch: u64,
}

#[derive(Debug)]
enum State {
    /// The next page is to be read; with the token and the epoch in which the list was begun.
    Listing { token: Option<String>, epoch: u64 },
    /// All pages are read; the position is the list's.
    Complete,
    /// The next watch is to be begun.
    Between,
    /// It runs.
    Watching { begun: Moment, heard: bool, proved: bool },
}

/// A collection that is followed.
#[derive(Debug)]
pub struct Follower {
    /// After each failure everything is read again.
    careful: bool,
    /// How long the server lets one watch last.
    period: Duration,
    position: Option<Position>,
    state: State,
}

impl Follower {
    /// From the beginning, in that epoch.
    #[must_use]
    pub fn new(careful: bool, period: Duration, epoch: u64) -> Self {
        Self { careful, period, position: None, state: State::Listing { token: None, epoch } }
    }

    /// What is to be done next.
    #[must_use]
    pub fn asks(&mut self) -> Next {
        match &mut self.state {
            State::Listing { token, .. } => Next::Page(token.take()),
            State::Complete => {
                self.state = State::Between;
                Next::Listed
            }
            State::Between => match &self.position {
                Some(position) => Next::Watch(position.version.clone()),
                None => Next::Page(None),
            },
            State::Watching { .. } => Next::Hear,
        }
    }

    /// What comes next is a page of a list.
    #[must_use]
    pub fn lists(&self) -> bool {
        matches!(self.state, State::Listing { .. })
    }

    /// The epoch that its position belongs to; nothing before the first list is complete.
    #[must_use]
    pub fn epoch(&self) -> Option<u64> {
        self.position.as_ref().map(|position| position.epoch)
    }

    /// The epoch that what came last belongs to: an item of a page, or an event.
    #[must_use]
    pub fn history(&self) -> u64 {
        let known = self.epoch().unwrap_or_default();
        match &self.state {
            State::Listing { epoch, .. } => known.max(*epoch),
            _ => known,
        }
    }

    /// The version up to which what came last is known; 0 before the first list is complete.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.position.as_ref().map_or(0, |position| position.number)
    }

    /// A page came, of that version; `more` is the token of the next one. `now` is the epoch of the process.
    pub fn page(&mut self, version: &str, more: Option<String>, now: u64) -> Page {
        let began = match self.state {
            State::Listing { epoch, .. } => epoch,
            _ => now,
        };
        let next = Position { number: number(Some(version)), version: version.to_owned(), epoch: began };
        let again = self.position.is_some();
        let behind = |known: &&Position| next.number != 0 && next.number < known.number;
        let went_back = self.position.as_ref().filter(behind).map(|known| (known.epoch, (known.number, next.number)));
        if let Some((epoch, _)) = went_back {
            // What this list says is of the new history, which begins with it unless somebody else has noticed before.
            self.position = Some(Position { epoch: now.max(epoch + 1), ..next.clone() });
        }
        let epoch = self.position.as_ref().map_or(began, |position| position.epoch.max(began));
        self.state = match more.filter(|token| !token.is_empty()) {
            Some(token) => State::Listing { token: Some(token), epoch },
            None => {
                self.position = Some(Position { epoch, ..next });
                State::Complete
            }
        };
        Page { again, went_back }
    }

    /// A watch has begun; the request for it was sent at `sent`.
    pub fn begun(&mut self, sent: Moment) {
        self.state = State::Watching { begun: sent, heard: false, proved: false };
    }

    /// The watch said something of that version (empty: of none); whether it is a bookmark. `now` is the epoch of the process.
    pub fn said(&mut self, version: &str, bookmark: bool, now: u64) -> Heard {
        let (State::Watching { heard, proved, .. }, Some(position)) = (&mut self.state, &mut self.position) else {
            return Heard::Late;
        };
        *heard = true;
        let reached = number(Some(version));
        if reached != 0 && reached < position.number {
            if bookmark {
                self.list_again(now);
                return Heard::ListAgain;
            }
            return Heard::Late;
        }
        *proved = true;
        if !version.is_empty() {
            (position.version, position.number) = (version.to_owned(), reached);
        }
        Heard::News
    }

    /// The watch ended at `at` without a failure. `now` is the epoch of the process.
    pub fn ended(&mut self, at: Moment, now: u64) -> Ended {
        let State::Watching { begun, heard, mut proved } = self.state else { return Ended::ListAgain };
        let lasted = at.saturating_sub(begun);
        if !heard && lasted < TOO_SHORT {
            return Ended::TooShort;
        }
        // Before its time: the server goes, and another may come.
        proved &= !self.careful || lasted + TOO_SHORT >= self.period;
        if proved {
            self.state = State::Between;
            return Ended::Renewed;
        }
        self.list_again(now);
        Ended::ListAgain
    }

    /// A request or the watch failed; whether the server said that the version to go on from is gone. `now` is the epoch of the process.
    pub fn failed(&mut self, gone: bool, now: u64) {
        // Half a list is no list.
        if self.lists() || gone || self.careful || self.position.is_none() {
            self.list_again(now);
        } else {
            self.state = State::Between;
        }
    }

    /// Everything is read again in the next step; `now` is the epoch of the process.
    pub fn list_again(&mut self, now: u64) {
        self.state = State::Listing { token: None, epoch: now };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(25);

    const fn s(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    /// One whose first list was of version 10, and whose watch began at 100 s.
    fn watching(careful: bool) -> Follower {
        let mut it = Follower::new(careful, PERIOD, 0);
        assert_eq!(it.asks(), Next::Page(None));
        assert_eq!(it.page("10", Some("more".to_owned()), 0), Page { again: false, went_back: None });
        assert_eq!(it.asks(), Next::Page(Some("more".to_owned())), "half a list is no list");
        assert_eq!(it.page("10", None, 0), Page { again: false, went_back: None });
        assert_eq!((it.asks(), it.asks()), (Next::Listed, Next::Watch("10".to_owned())));
        it.begun(s(100));
        assert_eq!(it.asks(), Next::Hear);
        it
    }

    #[test]
    fn a_watch_goes_on_from_what_it_said_last() {
        let mut it = watching(false);
        assert_eq!(it.said("12", false, 0), Heard::News);
        assert_eq!(it.said("11", false, 0), Heard::Late, "never backwards");
        assert_eq!(it.said("15", true, 0), Heard::News);
        assert_eq!(it.ended(s(125), 0), Ended::Renewed);
        assert_eq!(it.asks(), Next::Watch("15".to_owned()));
        it.begun(s(126));
        it.failed(false, 0);
        assert_eq!(it.asks(), Next::Watch("15".to_owned()), "a failure changes nothing of what is known");
        it.failed(true, 0);
        assert_eq!(it.asks(), Next::Page(None), "unless the server does not keep that version any more");
    }

    #[test]
    fn a_watch_that_proves_nothing_is_followed_by_a_list() {
        let mut it = watching(false);
        assert_eq!(it.ended(s(125), 0), Ended::ListAgain, "silence is no proof");
        assert_eq!(it.asks(), Next::Page(None));
        let mut it = watching(false);
        assert_eq!(it.said("9", true, 0), Heard::ListAgain, "a bookmark before the position");
        let mut it = watching(false);
        assert_eq!(it.ended(s(100), 0), Ended::TooShort);
        let mut it = watching(false);
        assert_eq!(it.said("", true, 0), Heard::News);
        assert_eq!((it.ended(s(125), 0), it.asks()), (Ended::Renewed, Next::Watch("10".to_owned())), "of no version");
    }

    #[test]
    fn what_is_small_is_read_again_after_each_failure_and_early_end() {
        let mut it = watching(true);
        assert_eq!((it.said("11", false, 0), it.ended(s(110), 0)), (Heard::News, Ended::ListAgain));
        let mut it = watching(true);
        assert_eq!((it.said("11", false, 0), it.ended(s(124), 0)), (Heard::News, Ended::Renewed), "at its time");
        it.failed(false, 0);
        assert_eq!(it.asks(), Next::Page(None));
    }

    #[test]
    fn a_list_below_the_position_is_of_another_history_and_one_above_it_is_not() {
        let mut it = watching(false);
        it.list_again(0);
        assert_eq!((it.asks(), it.page("11", None, 0)), (Next::Page(None), Page { again: true, went_back: None }));
        it.list_again(0);
        assert_eq!(it.page("4", None, 0), Page { again: true, went_back: Some((0, (11, 4))) });
        assert_eq!(it.epoch(), Some(1));
        // Another watch noticed first: this one belongs to the same new epoch, not to a third.
        let mut it = watching(false);
        it.list_again(1);
        assert_eq!(it.page("4", None, 1).went_back, Some((0, (10, 4))));
        assert_eq!(it.epoch(), Some(1));
        assert_eq!((it.asks(), it.asks()), (Next::Listed, Next::Watch("4".to_owned())));
    }
}
