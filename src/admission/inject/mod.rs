//! AuthBridge sidecars into a Pod at CREATE (`spec/authbridge-webhook.md`).

use super::verdict::Verdict;
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;

/// The review of one Pod.
pub(super) fn review_pod(_request: &Request<'_>, _snapshot: &Snapshot) -> Verdict {
    Verdict::skipped(Reason::NothingToInject)
}
