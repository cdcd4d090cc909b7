//! One type for each name of a parameter: Tekton pools the parameters of the run and of all tasks by name, judges the
//! references of every task by the first type that it meets, and its webhook ends without an answer when an object
//! meets a string.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::task::Task;
use crate::api::findings::{Fault, Findings};
use crate::domain::reason::Reason;
use crate::pipelines::params::Layers;
use crate::pipelines::params::dollars::{self, Places};
use crate::pipelines::reference::{self, Target};
use crate::pipelines::request::BuildRequest;
use crate::pipelines::step::{Kind, Step};

/// What the pool knows of a name.
struct First<'t> {
    kind: Kind,
    /// Names of an object's members.
    members: BTreeSet<&'t str>,
    /// The step that declared it; `None` for the run.
    by: Option<&'t str>,
}

/// `run`: the parameters of the run.
pub(super) fn check(request: &BuildRequest, run: &[(String, String)], tasks: &[Task<'_>], findings: &mut Findings) {
    let mut pool: BTreeMap<&str, First<'_>> = BTreeMap::new();
    for (name, _) in run {
        pool.insert(name, First { kind: Kind::Text, members: BTreeSet::new(), by: None });
    }
    for task in tasks {
        let read = OnceCell::new();
        for (index, declared) in task.step.params.iter().enumerate() {
            let members = if declared.kind == Kind::Map { members(task.step, index) } else { BTreeSet::new() };
            let Some(first) = pool.get(declared.name.as_str()) else {
                pool.insert(&declared.name, First { kind: declared.kind, members, by: Some(task.name()) });
                continue;
            };
            let clash = match (first.kind, declared.kind) {
                // As a list it may stand hardly anywhere.
                (Kind::List, Kind::Text) => read
                    .get_or_init(|| dollars::read_in(&task.step.task_spec["steps"]))
                    .contains(declared.name.as_str()),
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
                    first.by.map_or("the run".to_owned(), |step| format!("step {step}")),
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
    objects(request, tasks, &pool, findings);
}

/// What the user gives for an object is no parameter of the run ([`of_run`]), so nothing can read it there.
fn objects(request: &BuildRequest, tasks: &[Task<'_>], pool: &BTreeMap<&str, First<'_>>, findings: &mut Findings) {
    let names = request.parameters.iter().map(|one| one.name.as_str());
    let of_step = names.filter_map(|name| {
        let first = pool.get(name).filter(|first| first.kind == Kind::Map)?;
        Some((name, first.by?))
    });
    let of_step: BTreeMap<&str, &str> = of_step.collect();
    if of_step.is_empty() {
        return;
    }
    for (path, name) in tasks.iter().flat_map(|task| texts(request, task)) {
        if let Some(step) = of_step.get(name) {
            let sentence = format!(
                "reads parameter {name} of the run as text, and step {step} declares it with type object; Tekton takes one type for a name"
            );
            let remedy = "rename one of the two parameters";
            findings.content(Fault::new(Reason::ReferenceInvalid, path, sentence, remedy));
        }
    }
}

/// The parameters of the run that a task reads as text: those that its TaskSpec does not declare, and those of its conditions; with the place of each.
fn texts<'t>(request: &BuildRequest, task: &Task<'t>) -> Vec<(String, &'t str)> {
    let place = |at: &str| format!("ConfigMap {}: {at}", task.step.config_map);
    let mut all: Vec<(String, &'t str)> =
        task.step.propagated.iter().map(|(name, at)| (place(at), name.as_str())).collect();
    for (index, when) in task.entry.when.iter().enumerate() {
        let named = std::iter::once(&when.input).chain(&when.values).flat_map(|text| reference::in_text(text));
        let path = || format!("{}[{}].whenExpressions[{index}]", request.front.paths.steps, task.index);
        all.extend(named.filter_map(|one| match one.target {
            Target::Param { name, .. } => Some((path(), name)),
            _ => None,
        }));
    }
    all
}

/// The parameters of the run, without those of the user's that a task takes as an object.
pub(super) fn of_run(layers: &Layers<'_>, tasks: &[Task<'_>]) -> Vec<(String, String)> {
    let mut all = layers.run_parameters();
    let declared = tasks.iter().flat_map(|task| &task.step.params).filter(|declared| declared.kind == Kind::Map);
    let objects: BTreeSet<&str> = declared.map(|declared| declared.name.as_str()).collect();
    all.retain(|(name, _)| {
        let derived = layers.derived().iter().any(|derived| derived.name == *name);
        derived || !objects.contains(name.as_str())
    });
    let readers = Readers::of(tasks);
    for (_, value) in all.iter_mut().filter(|(name, value)| dollars::has_two(value) && readers.are_expanded(name)) {
        *value = dollars::doubled(value);
    }
    all
}

/// Who reads the parameters of the run.
struct Readers<'t> {
    /// The tasks, with what their TaskSpecs read where.
    tasks: Vec<(&'t Task<'t>, Places<'t>)>,
    /// The parameters that conditions read; looked for only if somebody asks.
    by_conditions: OnceCell<BTreeSet<&'t str>>,
}

impl<'t> Readers<'t> {
    fn of(tasks: &'t [Task<'t>]) -> Self {
        let tasks = tasks.iter().filter(|task| !task.step.propagated.is_empty() || !task.entry.when.is_empty());
        let tasks = tasks.map(|task| (task, Places::of(&task.step.task_spec))).collect();
        Self { tasks, by_conditions: OnceCell::new() }
    }

    /// Whether a parameter of the run reaches containers, where the kubelet makes one `$` of two, and nothing else: TaskSpecs read it that do not
    /// declare it, all of them there, and no condition does.
    fn are_expanded(&self, name: &str) -> bool {
        let mut readers = self.tasks.iter().filter(|(task, _)| task.step.propagated.contains_key(name)).peekable();
        readers.peek().is_some()
            && readers.all(|(_, places)| places.is_expanded(name))
            && !self.by_conditions.get_or_init(|| self.conditions()).contains(name)
    }

    fn conditions(&self) -> BTreeSet<&'t str> {
        let whens = self.tasks.iter().flat_map(|(task, _)| &task.entry.when);
        let texts = whens.flat_map(|when| std::iter::once(&when.input).chain(&when.values));
        texts.flat_map(|text| dollars::read(text)).collect()
    }
}

/// The members that the TaskSpec names of its parameter at `index`.
pub(super) fn members(step: &Step, index: usize) -> BTreeSet<&str> {
    let properties = step.task_spec["params"][index]["properties"].as_object();
    properties.into_iter().flat_map(serde_json::Map::<String, Value>::keys).map(String::as_str).collect()
}
