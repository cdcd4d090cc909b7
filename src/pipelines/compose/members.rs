//! Members of objects: each that a TaskSpec names has to have a value. Tekton admits a run in which one has none, and fails the task.
//!
//! In: the tasks. Out: a fault for each object that lacks members, where its value was written. Promises: a member that the TaskSpec's default has
//! counts as given, as for Tekton; what a reference to a whole object brings is not known here, and not judged.

use serde_json::Value;

use super::kinds::members;
use super::task::Task;
use crate::api::findings::{Fault, Findings};
use crate::domain::reason::Reason;
use crate::pipelines::step::Kind;

pub(super) fn check(tasks: &[Task<'_>], findings: &mut Findings) {
    for task in tasks {
        let declared = task.step.params.iter().enumerate();
        for (index, declared) in declared.filter(|(_, declared)| declared.kind == Kind::Map) {
            let traced = task.parameters.traced.iter().find(|traced| traced.parameter == declared.name);
            let Some(origin) = traced.map(|traced| &traced.origin) else { continue };
            let Some(given) = origin.value.as_object() else { continue };
            let default = declared.default.as_ref().and_then(Value::as_object);
            let has = |name: &str| given.contains_key(name) || default.is_some_and(|known| known.contains_key(name));
            let lacking: Vec<&str> = members(task.step, index).into_iter().filter(|name| !has(name)).collect();
            if !lacking.is_empty() {
                let sentence = format!(
                    "gives parameter {} of step {} no value for {}, and Tekton wants one for each member that the TaskSpec names",
                    declared.name,
                    task.name(),
                    lacking.join(", ")
                );
                let remedy = "add what is lacking to the JSON object";
                findings.content(Fault::new(Reason::FieldInvalid, origin.path.as_str(), sentence, remedy));
            }
        }
    }
}
