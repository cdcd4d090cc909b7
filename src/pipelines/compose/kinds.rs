//! One type for each name of a parameter: Tekton pools the parameters of the run and of all tasks by name, judges the
//! references of every task by the first type that it meets, and its webhook ends without an answer when an object
//! meets a string.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::task::Task;
use crate::api::findings::{Fault, Findings};
use crate::domain::reason::Reason;
use crate::pipelines::params::{Layers, dollars};
use crate::pipelines::step::{Kind, Step};

/// What the pool knows of a name.
struct First<'t> {
    kind: Kind,
    /// Names of an object's members.
    members: BTreeSet<&'t str>,
    /// Who declared it: the run, or a step.
    by: String,
}

pub(super) fn check(layers: &Layers<'_>, tasks: &[Task<'_>], findings: &mut Findings) {
    let run = of_run(layers, tasks);
    let mut pool: BTreeMap<&str, First<'_>> = BTreeMap::new();
    for (name, _) in &run {
        pool.insert(name, First { kind: Kind::Text, members: BTreeSet::new(), by: "the run".to_owned() });
    }
    for task in tasks {
        for (index, declared) in task.step.params.iter().enumerate() {
            let members = members(task.step, index);
            let Some(first) = pool.get(declared.name.as_str()) else {
                let by = format!("step {}", task.name());
                pool.insert(&declared.name, First { kind: declared.kind, members, by });
                continue;
            };
            let clash = match (first.kind, declared.kind) {
                // As a list it may stand hardly anywhere.
                (Kind::List, Kind::Text) => dollars::is_read(&task.step.task_spec["steps"], &declared.name),
                (Kind::Map, Kind::Map) => first.members != members,
                (one, other) => (one == Kind::Map) != (other == Kind::Map),
            };
            if clash {
                let path = format!("ConfigMap {}: params[{index}]", task.step.config_map);
                let sentence = format!(
                    "declares {} with type {}{}, and {} has it with type {}; Tekton takes one type for a name",
                    declared.name,
                    declared.kind.as_str(),
                    if declared.kind == first.kind { " and other members" } else { "" },
                    first.by,
                    first.kind.as_str()
                );
                findings.content(Fault::new(
                    Reason::StepInvalid,
                    path,
                    sentence,
                    "rename the parameter in the TaskSpec",
                ));
            }
        }
    }
}

/// The parameters of the run, without those of the user's that a task takes as an object.
pub(super) fn of_run(layers: &Layers<'_>, tasks: &[Task<'_>]) -> Vec<(String, String)> {
    let mut all = layers.run_parameters();
    all.retain(|(name, _)| {
        let derived = layers.derived().iter().any(|derived| derived.name == *name);
        let object = tasks.iter().any(|task| task.step.param(name).is_some_and(|declared| declared.kind == Kind::Map));
        derived || !object
    });
    for (_, value) in all.iter_mut().filter(|(name, value)| dollars::has_two(value) && is_expanded(tasks, name)) {
        *value = dollars::doubled(value);
    }
    all
}

/// Whether a parameter of the run reaches containers, where the kubelet makes one `$` of two, and nothing else: TaskSpecs read it that do not declare
/// it, all of them there, and no condition does.
fn is_expanded(tasks: &[Task<'_>], name: &str) -> bool {
    let mut readers = tasks.iter().filter(|task| task.step.propagated.contains_key(name)).peekable();
    let whens = tasks.iter().flat_map(|task| &task.entry.when);
    let mut conditions = whens.flat_map(|when| std::iter::once(&when.input).chain(&when.values));
    readers.peek().is_some()
        && readers.all(|task| dollars::is_expanded(&task.step.task_spec, name))
        && !conditions.any(|text| dollars::reads(text, name))
}

fn members(step: &Step, index: usize) -> BTreeSet<&str> {
    let properties = step.task_spec["params"][index]["properties"].as_object();
    properties.into_iter().flat_map(serde_json::Map::<String, Value>::keys).map(String::as_str).collect()
}
