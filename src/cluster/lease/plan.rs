//! What to do about the Lease next; pure.
//!
//! In: the Lease as last read, when *this process* saw its last change, what it holds itself, and the time. Out: one
//! [`Step`]. All times are monotonic and local: the clock of another replica is never compared with ours, so clock skew
//! cannot make two leaders. Assumes what every lease protocol does: clocks run at the same speed within the margin.
//!
//! ```text
//! holder:    sent ──────────────────────► sent + duration − margin    writes end
//! candidate:      seen ─────────────────────────────────► seen + duration    takes over (seen ≥ sent)
//! ```

use std::time::Duration;

/// Time since an arbitrary fixed moment of this process, monotonic.
pub(super) type Moment = Duration;

/// Durations of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How long a lease lasts after its last renewal.
    pub duration: Duration,
    /// How often it is renewed.
    pub renewal: Duration,
    /// How long before the end the holder stops writing.
    pub margin: Duration,
}

impl Default for Times {
    /// 8 s, renewed every 2 s: a killed leader is followed after 8 to 9 s.
    fn default() -> Self {
        Self::of(Duration::from_secs(8))
    }
}

impl Times {
    /// For a lease of that many whole seconds: four renewals in it, and an eighth as the margin.
    #[must_use]
    pub fn of(duration: Duration) -> Self {
        Self { duration, renewal: duration / 4, margin: duration / 8 }
    }
}

/// The Lease, as last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeaseSeen {
    /// `spec.holderIdentity`; empty when released.
    pub(super) holder: String,
    /// `spec.leaseDurationSeconds`, as its holder promised.
    pub(super) duration: Duration,
    /// When this process saw the present holder or renewal for the first time.
    pub(super) changed: Moment,
}

/// What this process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    /// When the last successful renewal was sent.
    pub(super) sent: Moment,
    /// When the last try to renew was sent.
    pub(super) tried: Moment,
}

/// Everything the decision depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation<'a> {
    /// The Lease; `None` when it does not exist.
    pub(super) lease: Option<&'a LeaseSeen>,
    /// The last one seen, when it has been deleted since.
    pub(super) deleted: Option<&'a LeaseSeen>,
    /// Our identity.
    pub(super) me: &'a str,
    /// What we hold.
    pub(super) held: Option<Held>,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Create the Lease with us as holder.
    Create,
    /// Put us into the Lease.
    Take,
    /// Renew ours.
    Renew,
    /// We no longer hold it: stop writing.
    Lose,
    /// Nothing until then, unless the Lease changes.
    Wait(Moment),
}

/// The next step.
pub(super) fn step(seen: Situation<'_>, times: Times, now: Moment) -> Step {
    match seen.held {
        Some(held) => holding(seen, held, times, now),
        None => following(seen, now),
    }
}

/// When a holder must have stopped writing, given when it sent its last successful renewal.
pub(super) fn end_of_writing(sent: Moment, times: Times) -> Moment {
    sent + times.duration.saturating_sub(times.margin)
}

/// Until when somebody leads, as far as can be seen from here; nothing, while nobody was ever seen to.
pub(super) fn led_until(seen: Situation<'_>, times: Times) -> Option<Moment> {
    let ours = seen.held.map(|held| end_of_writing(held.sent, times));
    let theirs = seen.lease.or(seen.deleted).map(|lease| lease.changed + lease.duration);
    ours.max(theirs)
}

fn holding(seen: Situation<'_>, held: Held, times: Times, now: Moment) -> Step {
    let end = end_of_writing(held.sent, times);
    let next = held.tried + times.renewal;
    match seen.lease {
        Some(lease) if lease.holder != seen.me => Step::Lose,
        _ if now >= end => Step::Lose,
        None => Step::Create,
        Some(_) if now >= next => Step::Renew,
        Some(_) => Step::Wait(next.min(end)),
    }
}

fn following(seen: Situation<'_>, now: Moment) -> Step {
    match (seen.lease, seen.deleted) {
        // Left behind by ourselves: our own term is over, so nobody else can be writing under it.
        (Some(lease), _) if lease.holder.is_empty() || lease.holder == seen.me => Step::Take,
        (Some(lease), _) => after(lease, now, Step::Take),
        // Its holder may go on writing until its time is over: somebody deleting the object does not tell it. Who that was nobody knows, for
        // it may have changed hands unseen since it was looked at.
        (None, Some(gone)) => after(gone, now, Step::Create),
        (None, None) => Step::Create,
    }
}

fn after(lease: &LeaseSeen, now: Moment, then: Step) -> Step {
    let end = lease.changed + lease.duration;
    if now >= end { then } else { Step::Wait(end) }
}
