//! The candidacy as a value: what comes in is a step, and what it asks for are effects; nothing here waits.
//!
//! In: the Lease as it is seen or read, answers to writes, and the passing of time. Out: writes of the Lease, until when this process may
//! write elsewhere, and its terms. What to do next is decided by [`step`]. Promise: the same inputs at the same times give the same effects.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::ObjectMeta;

use super::plan::{Held, LeaseSeen, Moment, Situation, Step, Times, end_of_writing, led_until, step};
use super::silence::Silence;
use crate::cluster::watch::number;
use crate::domain::keys;

/// Pause after a try that failed.
const RETRY: Duration = Duration::from_millis(500);
/// Longest wait for the answer to the last write of a candidacy.
const LAST: Duration = Duration::from_secs(2);
/// For how many seconds whoever gives the Lease up says that it lasts: so it is told from one whose holder somebody else took out.
const RELEASED: i32 = 1;
/// The longest that is believed: no process takes a longer one (`--lease-duration`), and one of years would let nobody lead again.
const LONGEST: Duration = Duration::from_secs(600);

/// Something happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// The Lease as a watch tells it; nothing when there is none.
    Seen(Option<Box<Lease>>),
    /// Our write was stored like that.
    Stored(Box<Lease>),
    /// Somebody else wrote in between, or there is no such object any more.
    Conflict,
    /// What was read after a conflict; `None` when that failed.
    Read(Option<Option<Box<Lease>>>),
    /// Our write failed otherwise, or nobody answered in time; in words.
    Failed(String),
    /// Time has passed.
    Time,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Write the Lease; its answer is the next input.
    Write(Box<Write>),
    /// Read the Lease; [`Input::Read`] is the next input.
    Read {
        /// How long to wait for the answer.
        patience: Duration,
    },
    /// This process may write until then.
    MayWrite(Moment),
    /// This process may not write any more.
    Closed,
    /// Another term of ours begins, or ours is over.
    Term(Option<u64>),
    /// Say that the Lease was deleted.
    Deleted,
    /// Say that nobody leads; with whom was last seen to.
    NobodyLeads(String),
    /// Say that the Lease could not be written; why.
    Complain(String),
    /// Unless something happens before, [`Input::Time`] then.
    Wake(Moment),
}

/// A write of the Lease.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// Create it; otherwise replace it.
    pub creates: bool,
    /// It is acquired by this, not renewed: `spec.acquireTime` is the time of writing, as `spec.renewTime` is in any case.
    pub acquires: bool,
    /// The Lease, without those times.
    pub lease: Lease,
    /// How long to wait for the answer.
    pub patience: Duration,
}

/// The candidacy of one process.
#[derive(Debug)]
pub struct Candidate {
    me: String,
    times: Times,
    /// The Lease was looked at: before that nothing can be decided.
    looked: bool,
    object: Option<Lease>,
    seen: Option<LeaseSeen>,
    deleted: Option<LeaseSeen>,
    held: Option<Held>,
    elected: u64,
    not_before: Moment,
    silence: Silence,
    /// When the write that is under way was sent, and for how long its answer is waited for.
    sent: Option<(Moment, Duration)>,
}

impl Candidate {
    /// Of the process of that identity, which no other process has or had.
    #[must_use]
    pub fn new(me: &str, times: Times) -> Self {
        Self {
            me: me.to_owned(),
            times,
            looked: false,
            object: None,
            seen: None,
            deleted: None,
            held: None,
            elected: 0,
            not_before: Duration::ZERO,
            silence: Silence::default(),
            sent: None,
        }
    }

    /// Its identity.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.me
    }

    /// The number of its last term.
    #[must_use]
    pub fn term(&self) -> u64 {
        self.elected
    }

    /// One step at `now`. While a write or a read is under way, its answer is the only input.
    pub fn step(&mut self, input: Input, now: Moment) -> Vec<Effect> {
        let mut effects = Vec::new();
        let sent = self.sent.take();
        match (input, sent) {
            (Input::Seen(lease), _) => self.observe(lease.map(|lease| *lease), now, &mut effects),
            (Input::Stored(lease), Some((sent, _))) => {
                self.observe(Some(*lease), now, &mut effects);
                self.won(sent, &mut effects);
            }
            (Input::Conflict, Some((sent, patience))) => {
                let patience = patience.saturating_sub(now.saturating_sub(sent));
                self.not_before = now + RETRY / 10;
                self.sent = Some((sent, patience));
                return vec![Effect::Read { patience }];
            }
            (Input::Read(Some(lease)), _) => self.observe(lease.map(|lease| *lease), now, &mut effects),
            (Input::Failed(error), _) => {
                self.not_before = now + RETRY;
                if self.silence.may_complain(now) {
                    effects.push(Effect::Complain(error));
                }
            }
            (Input::Stored(_) | Input::Conflict, None) | (Input::Read(None) | Input::Time, _) => {}
        }
        self.go_on(now, &mut effects);
        effects
    }

    /// What follows from what is known.
    fn go_on(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let until = loop {
            if !self.looked {
                break None;
            }
            match step(self.situation(), self.times, now) {
                Step::Lose => self.lose(effects),
                Step::Wait(until) => break Some(until),
                Step::Create | Step::Take | Step::Renew if now < self.not_before => break Some(self.not_before),
                next @ (Step::Create | Step::Take | Step::Renew) => return self.write(next, now, effects),
            }
        };
        let mut due = self.silence.due(self.led(), self.times, now);
        if due <= now {
            let last = self.seen.as_ref().map(|seen| seen.holder.clone()).unwrap_or_default();
            self.silence.told(now);
            effects.push(Effect::NobodyLeads(last));
            due = self.silence.due(self.led(), self.times, now);
        }
        effects.push(Effect::Wake(until.map_or(due, |until| until.min(due))));
    }

    fn situation(&self) -> Situation<'_> {
        Situation { lease: self.seen.as_ref(), deleted: self.deleted.as_ref(), me: &self.me, held: self.held }
    }

    /// Until when, as far as can be known here, somebody leads: this process, or another.
    fn led(&self) -> Option<Moment> {
        led_until(self.situation(), self.times).filter(|_| self.looked)
    }

    /// Takes note of the Lease as it is now: what is watched or read is the truth.
    fn observe(&mut self, lease: Option<Lease>, now: Moment, effects: &mut Vec<Effect>) {
        let first = !std::mem::replace(&mut self.looked, true);
        let Some(lease) = lease else {
            if let Some(gone) = self.seen.take() {
                effects.push(Effect::Deleted);
                // Whoever heard nothing for a while does not know how late it was renewed: until now, at the latest.
                self.deleted = Some(LeaseSeen { changed: now, ..gone });
            } else if first {
                // It may have been deleted before this process began, while its holder goes on writing until its time is over.
                self.not_before = now + self.times.duration;
            }
            self.object = None;
            return;
        };
        if self.object.as_ref().is_some_and(|known| version(&lease) < version(known)) && self.held.is_none() {
            // The cluster went back, and who has not heard of it yet may write until their time is over: also when that is
            // what this process was before.
            self.not_before = now + self.times.duration;
        }
        if self.object.as_ref().and_then(|known| known.spec.as_ref()) != lease.spec.as_ref() || self.seen.is_none() {
            let spec = lease.spec.clone().unwrap_or_default();
            let holder = spec.holder_identity.unwrap_or_default();
            let duration = self.believed(spec.lease_duration_seconds);
            let is_over = self.held.is_none_or(|held| now >= end_of_writing(held.sent, self.times));
            if holder.is_empty() && spec.lease_duration_seconds != Some(RELEASED) && is_over {
                // Somebody else took its holder out, who may write until their time is over.
                let before = self.seen.as_ref().map_or(duration, |seen| seen.duration);
                self.not_before = self.not_before.max(now + before.max(duration));
            }
            self.seen = Some(LeaseSeen { holder, duration, changed: now });
        }
        self.object = Some(lease);
        self.deleted = None;
    }

    /// How long a Lease lasts that says so. Its holder goes by its own flag, whatever somebody has written there; that is the same for every replica.
    fn believed(&self, seconds: Option<i32>) -> Duration {
        let own = self.times.duration;
        let said = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(own, Duration::from_secs);
        said.min(LONGEST).max(own)
    }

    /// Creates, takes or renews.
    fn write(&mut self, step: Step, now: Moment, effects: &mut Vec<Effect>) {
        let patience = match &mut self.held {
            Some(held) => {
                held.tried = now;
                end_of_writing(held.sent, self.times).saturating_sub(now)
            }
            None => self.times.duration,
        };
        self.sent = Some((now, patience));
        let creates = step == Step::Create;
        let (lease, acquires) = self.desired(step);
        effects.push(Effect::Write(Box::new(Write { creates, acquires, lease, patience })));
    }

    /// The Lease with us as holder, and whether that is new.
    fn desired(&self, step: Step) -> (Lease, bool) {
        let old = self.object.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = old.holder_identity.as_deref() == Some(&self.me);
        let renewal = step == Step::Renew && ours;
        let spec = LeaseSpec {
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: i32::try_from(self.times.duration.as_secs()).ok(),
            lease_transitions: Some(old.lease_transitions.unwrap_or(-1).saturating_add(i32::from(!ours))),
            ..old
        };
        let mut metadata = match &self.object {
            Some(lease) if step != Step::Create => lease.metadata.clone(),
            _ => ObjectMeta { name: Some(keys::LEASE.to_owned()), ..ObjectMeta::default() },
        };
        metadata.managed_fields = None;
        (Lease { metadata, spec: Some(spec) }, !renewal)
    }

    /// A write of ours that was sent at `sent` has succeeded.
    fn won(&mut self, sent: Moment, effects: &mut Vec<Effect>) {
        let first = self.held.is_none();
        self.held = Some(Held { sent, tried: sent });
        effects.push(Effect::MayWrite(end_of_writing(sent, self.times)));
        if first {
            self.elected += 1;
            effects.push(Effect::Term(Some(self.elected)));
        }
    }

    fn lose(&mut self, effects: &mut Vec<Effect>) {
        self.held = None;
        effects.extend([Effect::Closed, Effect::Term(None)]);
    }

    /// The candidacy ends: whether it held the Lease.
    pub fn resign(&mut self) -> Option<Resignation> {
        let held = self.held.take()?;
        let (mut lease, _) = self.desired(Step::Renew);
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(RELEASED);
        }
        Some(Resignation { lease, end: end_of_writing(held.sent, self.times) })
    }
}

/// What is left to do for one that held the Lease, once none of its writes is under way any more.
#[derive(Debug, Clone, PartialEq)]
pub struct Resignation {
    /// The Lease without a holder.
    pub lease: Lease,
    /// Until when it may be written.
    end: Moment,
}

impl Resignation {
    /// How long to wait for the answer, at `now`.
    #[must_use]
    pub fn patience(&self, now: Moment) -> Duration {
        self.end.saturating_sub(now).min(LAST)
    }
}

fn version(lease: &Lease) -> u64 {
    number(lease.metadata.resource_version.as_deref())
}
