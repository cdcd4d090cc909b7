//! The decision: one pure function for the server, the command line, the configuration hash and the tests.
//!
//! In: a request as received and a snapshot. Out: a verdict. Promises: no I/O, no clock, no panic on any input;
//! equal inputs give equal verdicts; the patch, applied, gives an object on which the next patch is empty.

pub mod inject;
pub mod patch;
pub mod verdict;

use crate::api::review::{Operation, Phase, Request};
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;
use verdict::Verdict;

/// One row of the registration table: what we answer, and who answers it.
struct Handler {
    phase: Phase,
    operation: Operation,
    group: &'static str,
    kind: &'static str,
    run: fn(&Request<'_>, &Snapshot) -> Verdict,
}

/// Everything we act on; what is not here is allowed with [`Reason::NotRegistered`].
const HANDLERS: &[Handler] =
    &[Handler { phase: Phase::Mutate, operation: Operation::Create, group: "", kind: "Pod", run: inject::review_pod }];

/// Decides one admission request from the facts in the snapshot.
#[must_use]
pub fn evaluate(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let is_subresource = request.sub_resource.as_deref().is_some_and(|name| !name.is_empty());
    HANDLERS
        .iter()
        .find(|row| {
            !is_subresource
                && row.phase == request.phase
                && row.operation == request.operation
                && row.group == request.kind.group
                && row.kind == request.kind.kind
        })
        .map_or_else(|| Verdict::skipped(Reason::NotRegistered), |row| (row.run)(request, snapshot))
}
