//! When a card has to be signed anew; pure.
//!
//! In: how its signature stands, what the last restart left on the workload, the time. Out: now, later, or never for what is known.

use std::time::Duration;

use jiff::Timestamp;

use crate::controllers::scaffold::signing::Stands;
use crate::domain::resign::Cause;

/// What is known of a card's signature and of the restarts that there were for it. Times are seconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) now: i64,
    pub(super) stands: Stands,
    /// Fingerprint of the authorities in force.
    pub(super) bundle: &'a str,
    /// For how long a signature counts after its certificate has expired.
    pub(super) tolerance: Duration,
    /// So long before the end a restart is due at the earliest, at most; no restart for as long after another.
    pub(super) grace: Duration,
    /// When it was last restarted.
    pub(super) restarted: Option<i64>,
    /// The end for which that was done.
    pub(super) handled: Option<&'a str>,
    /// The authorities for which that was done.
    pub(super) lost_under: Option<&'a str>,
    /// A number of that workload in 0..[`SPREAD`]: what ends at the same moment is not restarted at the same moment.
    pub(super) spread: i64,
}

/// Parts into which the time in which restarts begin is divided.
pub(super) const SPREAD: i64 = 1024;

/// When a restart is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Never, as long as what is known stays as it is.
    Never,
    /// Not before that second.
    At(i64),
    /// Now.
    Now(Cause),
}

/// Until when a signature counts: the end that comes first, of the certificate with the tolerance, or of its authority.
pub(super) fn horizon(leaf: i64, authority: i64, tolerance: Duration) -> (i64, Cause) {
    let leaf = leaf.saturating_add(seconds(tolerance));
    if authority < leaf { (authority, Cause::AuthorityExpires) } else { (leaf, Cause::LeafExpires) }
}

/// The end for which a restart is made, as it is written down; `None` where none is known.
pub(super) fn end(stands: Stands, cause: Cause) -> Option<String> {
    match (stands, cause) {
        (Stands::Until { authority, .. }, Cause::AuthorityExpires) => Some(text(authority)),
        (Stands::Until { leaf, .. }, _) => Some(text(leaf)),
        (Stands::Lost, _) => None,
    }
}

pub(super) fn due(known: &Known<'_>) -> Due {
    let wanted = wanted(known);
    let free = known.restarted.map(|last| last.saturating_add(grace(known)));
    match (wanted, free) {
        (Due::Now(_), Some(free)) if known.now < free => Due::At(free),
        (wanted, _) => wanted,
    }
}

/// What is due, whenever the last restart was.
fn wanted(known: &Known<'_>) -> Due {
    let Stands::Until { leaf, authority, .. } = known.stands else {
        // Restarted once under these authorities, it signs as it did: more of the same helps nobody.
        let is_handled = known.lost_under == Some(known.bundle);
        return if is_handled { Due::Never } else { Due::Now(Cause::AuthorityLost) };
    };
    let (horizon, cause) = horizon(leaf, authority, known.tolerance);
    let grace = grace(known);
    if grace <= 0 || end(known.stands, cause).as_deref() == known.handled {
        return Due::Never;
    }
    // Within the first half of the grace, so that the other half is left for waiting for a turn, and for starting.
    let begins = horizon - grace + grace / 2 * known.spread.clamp(0, SPREAD - 1) / SPREAD;
    if known.now < begins { Due::At(begins) } else { Due::Now(cause) }
}

/// Whether half of the time before the end is over, so that a restart that is still to come may come too late; `awaited`: for so many seconds nobody has
/// vouched for the signature.
pub(super) fn is_late(known: &Known<'_>, awaited: i64) -> bool {
    let half = grace(known) / 2;
    match known.stands {
        Stands::Lost => awaited >= half,
        Stands::Until { leaf, authority, .. } => {
            let (horizon, _) = horizon(leaf, authority, known.tolerance);
            known.now >= horizon.saturating_sub(half)
        }
    }
}

/// The time before the end: what is set, and at most a quarter of the time that the signature counts.
fn grace(known: &Known<'_>) -> i64 {
    let most = seconds(known.grace);
    match known.stands {
        Stands::Lost => most,
        Stands::Until { from, leaf, authority } => {
            let (horizon, _) = horizon(leaf, authority, known.tolerance);
            most.min(horizon.saturating_sub(from) / 4)
        }
    }
}

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

/// A second as annotations have it, RFC 3339; the last one that there is for what is later.
pub(super) fn text(second: i64) -> String {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX).to_string()
}

/// The second that an annotation names.
pub(super) fn second(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_second)
}
