//! Labels that were meant to enrol and do not, of an object that is or makes Pods: the question of [`crate::config::misplaced`] for a [`Subject`].

use serde_json::Value;

use crate::cli::offline::workload::Subject;
use crate::config::misplaced::{self, Misplaced, Named};

/// The first thing that is wrong with its labels.
#[must_use]
pub fn of(object: &Value, subject: &Subject) -> Option<Misplaced> {
    let named = Named {
        kind: subject.workload.kind,
        spelled: subject.kind(),
        namespace: &subject.namespace,
        name: &subject.workload.name,
    };
    misplaced::of(named, object, subject.template(object))
}
