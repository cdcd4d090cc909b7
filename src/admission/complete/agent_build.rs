//! An AgentBuild is completed from the template of its environment.
//!
//! In: the object, the stored one at UPDATE, the snapshot. Out: allowed, with the operations that complete it. What
//! cannot be completed is left out: the schema and the validating review say what is wrong with it.

use serde_json::Value;

use crate::admission::custom::{Objects, config_pending};
use crate::admission::explanation::{Explanation, FieldLine};
use crate::admission::patch::{Operation, PatchOperation};
use crate::admission::verdict::{Verdict, Warning};
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::agent_build::{Change, complete, unrefreshed};

/// What the audit log keeps: its key, and the annotation it is the value of.
const RECORDED: [(&str, &str); 2] =
    [("origin", keys::ANNOTATION_PIPELINE_ORIGIN), ("template", keys::ANNOTATION_PIPELINE_TEMPLATE)];

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::of(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    if objects.is_deleting() {
        return Verdict::skipped(Reason::BeingDeleted);
    }
    if objects.judges_spec()
        && let Some(refused) = config_pending(&objects.title(request), &objects.object, snapshot)
    {
        return refused;
    }
    let builds = &snapshot.builds;
    let change = Change { namespace: request.namespace(), object: &objects.object, old: objects.old.as_ref() };
    let operations = complete(&change, &builds.view, &builds.settings.pipelines);
    let reason = if operations.is_empty() { Reason::AlreadyComplete } else { Reason::Completed };
    let recorded = RECORDED.map(|(key, annotation)| (key, annotation_after(&objects.object, &operations, annotation)));
    let operations = operations.into_iter().map(Operation::from).collect();
    let mut verdict = Verdict::allowed_with(reason, operations);
    verdict.audit.extend(recorded.into_iter().filter_map(|(key, value)| Some((key, value?))));
    let unrefreshed = unrefreshed(&change, &builds.view, &builds.settings.pipelines);
    verdict.warnings.extend(unrefreshed.map(|note| Warning::new(note.reason, format!("{}: {}", note.path, note.text))));
    verdict
}

/// The value of one of the webhook's annotations once the operations are applied.
fn annotation_after(object: &Value, operations: &[PatchOperation], key: &str) -> Option<String> {
    let mut value = object.pointer("/metadata/annotations").and_then(|all| all.get(key)).and_then(Value::as_str);
    let own = format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
    for operation in operations {
        match operation {
            PatchOperation::Add(add) if add.path.as_str() == "/metadata/annotations" => {
                value = add.value.get(key).and_then(Value::as_str);
            }
            PatchOperation::Add(add) if add.path.as_str() == own => value = add.value.as_str(),
            PatchOperation::Remove(remove) if remove.path.as_str() == own => value = None,
            _ => {}
        }
    }
    value.map(str::to_owned)
}

/// The tree behind the decision: what is filled in, and from where.
pub(in crate::admission) fn explain(request: &Request<'_>, _: &Snapshot, verdict: &Verdict) -> Explanation {
    let name = request.name.as_deref().unwrap_or("");
    let mut tree = Explanation::of(&format!("AgentBuild {}/{name}", request.namespace()), verdict);
    tree.fields = verdict
        .audit
        .iter()
        .filter(|(key, _)| *key != "reason")
        .map(|(key, value)| FieldLine {
            name: (*key).to_owned(),
            value: value.clone(),
            layer: "webhook".to_owned(),
            shadowed: Vec::new(),
        })
        .collect();
    tree.edits = verdict.operations().iter().map(|operation| operation.path().to_string()).collect();
    tree
}
