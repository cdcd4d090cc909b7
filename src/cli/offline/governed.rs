//! A workload as its AgentRuntime makes it: what the enrolment controller applies, without a cluster.
//!
//! In: a workload, and a snapshot that knows the AgentRuntimes. Out: the workload with the type of the AgentRuntime that governs it as a label
//! of itself and of its Pod template. What nothing governs comes out as it is.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::workload::{Subject, template_path};
use crate::config::agent_runtime::Governor;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;

/// The AgentRuntime that governs a workload.
#[must_use]
pub fn governor<'s>(subject: &Subject, snapshot: &'s Snapshot) -> Option<&'s Governor> {
    snapshot.namespace(&subject.namespace)?.governors.winner(subject.workload.kind, &subject.workload.name)
}

/// The workload with the label of the AgentRuntime that governs it.
#[must_use]
pub fn with_type<'v>(object: &'v Value, subject: &Subject, snapshot: &Snapshot) -> Cow<'v, Value> {
    let Some(agent_type) = governor(subject, snapshot).and_then(|governor| governor.says.agent_type) else {
        return Cow::Borrowed(object);
    };
    let mut changed = object.clone();
    for path in [&[][..], template_path(subject.workload.kind)] {
        let mut place = &mut changed;
        for step in path.iter().chain(&["metadata", "labels"]) {
            if place.get(*step).is_none_or(Value::is_null) {
                place[*step] = Value::Object(Map::new());
            }
            place = &mut place[*step];
        }
        place[keys::LABEL_TYPE] = json!(agent_type.as_str());
    }
    Cow::Owned(changed)
}
