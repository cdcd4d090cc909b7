//! AuthBridge sidecars into a Pod at CREATE (`spec/authbridge-webhook.md`).
//!
//! ```text
//! raw Pod ─► pod (view) ─► decide (filters, sidecars) ─► effective (layers) ─► modes (plan) ─► render (operations)
//!                │                                                                  │
//!                └── status annotation ─► reinvoke (the Pod as it was before us) ───┘
//! ```
//!
//! Promise: the patch applies, a second call gives an empty patch, and what we do not know survives byte for byte.

#![allow(dead_code, reason = "the plan builders that use the tables land next")]

mod decide;
#[cfg(test)]
pub(in crate::admission) mod fixtures;
mod pod;
mod workload_name;

use serde_json::Value;
use serde_json::value::RawValue;

use super::explanation::{Explanation, FilterLine};
use super::patch::PatchOperation;
use super::verdict::{Denial, Verdict};
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;
use crate::domain::workload::Workload;
use decide::Subject;
use pod::PodView;

/// What a workload's Pods will ask for, so that controllers make it ahead of them (design, law 2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Its Pods will be injected: the namespace needs its ConfigMaps.
    pub enrolled: bool,
    /// The dedicated ServiceAccount that must exist; `None` when the Pods keep theirs.
    pub service_account: Option<String>,
}

/// What Pods of that template will need in that namespace; `template` is `{metadata, spec}`.
#[must_use]
pub fn needs(namespace: &str, _workload: &Workload, template: &Value, snapshot: &Snapshot) -> Needs {
    let Ok(pod) = PodView::new(template) else { return Needs::default() };
    let subject = Subject { pod, namespace, snapshot };
    Needs { enrolled: decide::stopped(&subject).is_none(), service_account: None }
}

/// The operations that take out everything the status annotation says we added; empty when it says nothing.
#[must_use]
pub fn uninject(_pod: &Value) -> Vec<PatchOperation> {
    Vec::new()
}

/// The object of a request as JSON.
fn object(raw: Option<&RawValue>) -> Result<Value, Box<Denial>> {
    let raw = raw.ok_or_else(|| undecodable("the review carries no object"))?;
    serde_json::from_str(raw.get()).map_err(|error| undecodable(&format!("the object is not readable JSON: {error}")))
}

fn undecodable(sentence: &str) -> Box<Denial> {
    Box::new(Denial::new(Reason::Undecodable, 400, sentence, "send the object as `kubectl apply` would"))
}

/// The review of one Pod.
pub(super) fn review_pod(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let value = match object(request.object) {
        Ok(value) => value,
        Err(denial) => return Verdict::denied(*denial),
    };
    let Ok(pod) = PodView::new(&value) else { return Verdict::denied(*undecodable("the object is not a Pod")) };
    let subject = Subject { pod, namespace: request.namespace(), snapshot };
    Verdict::skipped(decide::stopped(&subject).map_or(Reason::NothingToInject, |filter| filter.reason))
}

/// The warn-only review of a workload: never refuses, never changes.
pub(super) fn review_workload(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let mut verdict = review_pod(request, snapshot);
    verdict.outcome = super::verdict::Outcome::Allow;
    verdict
}

/// The tree behind a review.
pub(super) fn explain(request: &Request<'_>, snapshot: &Snapshot, verdict: &Verdict) -> Explanation {
    let mut tree = Explanation::of(&format!("{} {}", request.kind.kind, request.namespace()), verdict);
    let Ok(value) = object(request.object) else { return tree };
    let Ok(pod) = PodView::new(&value) else { return tree };
    let subject = Subject { pod, namespace: request.namespace(), snapshot };
    for filter in decide::PRE_FILTERS {
        let passed = !(filter.stops)(&subject);
        tree.filters.push(FilterLine { name: filter.name.to_owned(), seen: (filter.seen)(&subject), passed });
        if !passed {
            break;
        }
    }
    tree
}
