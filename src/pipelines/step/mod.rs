//! Steps: any ConfigMap with key `task-spec.yaml`, one Tekton v1 TaskSpec.
//!
//! In: the text of the key, and whether the ConfigMap is the platform's own. Out: a [`Step`]: the TaskSpec as the
//! JSON it was, and the few members that composition reads; or every fault. Promises: members nobody knows are kept;
//! what Tekton's admission would refuse of it, or what its Pod could not be, is a fault here already; a default that
//! readers of YAML disagree about is reported, never converted. The only change made to a TaskSpec: a parameter's
//! default that is a number or boolean becomes its JSON text, as Tekton would read it.

mod checks;
mod features;
mod mounts;
mod spelling;
mod types;
mod variables;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::template::scalar;
use crate::api::digest;
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::api::yaml;
use crate::domain::keys::KEY_TASK_SPEC;
use crate::domain::reason::Reason;

/// Type of a Tekton parameter or result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `string`.
    Text,
    /// `array`, of strings.
    List,
    /// `object`, of strings.
    Map,
}

impl Kind {
    /// Tekton's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Text => "string",
            Kind::List => "array",
            Kind::Map => "object",
        }
    }

    fn named(text: &str) -> Option<Self> {
        [Kind::Text, Kind::List, Kind::Map].into_iter().find(|kind| kind.as_str() == text)
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Array(_) => Kind::List,
            Value::Object(_) => Kind::Map,
            _ => Kind::Text,
        }
    }
}

/// A parameter that a TaskSpec declares.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Its default.
    pub default: Option<Value>,
}

/// A workspace that a TaskSpec declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredWorkspace {
    /// Its name.
    pub name: String,
    /// Whether a task may run without it.
    pub optional: bool,
}

/// One step ConfigMap that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// `namespace/name` of the ConfigMap.
    pub config_map: String,
    /// SHA-256 of the text.
    pub hash: String,
    /// The TaskSpec.
    pub task_spec: Value,
    /// Its parameters, in order.
    pub params: Vec<Declared>,
    /// Its results.
    pub results: BTreeMap<String, Kind>,
    /// Its workspaces.
    pub workspaces: Vec<DeclaredWorkspace>,
    /// Parameters that it reads and does not declare, and where: they must be parameters of the run.
    pub propagated: BTreeMap<String, String>,
    /// Size of the text, in bytes.
    pub size: usize,
    /// What deserves attention.
    pub notes: Vec<Note>,
}

impl Step {
    /// The declaration of that parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&Declared> {
        self.params.iter().find(|declared| declared.name == name)
    }

    /// Whether it declares a workspace of that name.
    #[must_use]
    pub fn has_workspace(&self, name: &str) -> bool {
        self.workspaces.iter().any(|workspace| workspace.name == name)
    }

    /// How many bytes it takes beside itself; `weigh` weighs JSON, and `block` an allocation.
    pub(super) fn weight(&self, weigh: &impl Fn(&Value) -> usize, block: &impl Fn(usize) -> usize) -> usize {
        /// An entry of a map, in a node that may be half empty.
        const ENTRY: usize = 2 * size_of::<(String, String)>();
        let texts = block(self.config_map.len()) + block(self.hash.len());
        let default = |one: &Declared| one.default.as_ref().map_or(0, weigh) + block(one.name.len());
        let params =
            block(self.params.capacity() * size_of::<Declared>()) + self.params.iter().map(default).sum::<usize>();
        let workspaces = block(self.workspaces.capacity() * size_of::<DeclaredWorkspace>())
            + self.workspaces.iter().map(|one| block(one.name.len())).sum::<usize>();
        let node = |is_empty: bool| if is_empty { 0 } else { block(11 * ENTRY / 2 + 16) };
        let results =
            node(self.results.is_empty()) + self.results.keys().map(|name| ENTRY + block(name.len())).sum::<usize>();
        let propagated = node(self.propagated.is_empty())
            + self.propagated.iter().map(|(name, at)| ENTRY + block(name.len()) + block(at.len())).sum::<usize>();
        let notes = block(self.notes.capacity() * size_of::<Note>())
            + self.notes.iter().map(|one| block(one.path.len()) + block(one.text.len())).sum::<usize>();
        weigh(&self.task_spec) + texts + params + workspaces + results + propagated + notes
    }

    /// Whether it says that it clones from hosts which no `known_hosts` names: the shipped step does, as it was rendered.
    #[must_use]
    pub fn takes_unknown_hosts(&self) -> bool {
        let steps = self.task_spec.get("steps").and_then(Value::as_array).into_iter().flatten();
        let mut variables = steps.filter_map(|step| step.get("env")?.as_array()).flatten();
        let says = |one: &Value| text(one, "name") == ALLOW_UNKNOWN_HOSTS && text(one, "value") == "true";
        variables.any(says)
    }
}

const REMEDY: &str = "correct the TaskSpec in the ConfigMap";
/// Variable by which the shipped step that clones is told about hosts.
const ALLOW_UNKNOWN_HOSTS: &str = "ALLOW_UNKNOWN_HOSTS";

/// Faults of one TaskSpec while it is read. Several looks at one member find the same fault: each is kept once; of very many the first are, and
/// how many more there are.
pub(super) struct Faults {
    config_map: String,
    found: Findings,
}

impl Faults {
    fn of(config_map: &str) -> Self {
        Self { config_map: format!("ConfigMap {config_map}"), found: Findings::default() }
    }

    fn fault(&self, at: &str, sentence: impl Into<String>, remedy: &str) -> Fault {
        Fault::new(Reason::StepInvalid, format!("{}: {at}", self.config_map), sentence, remedy)
    }

    pub(super) fn add(&mut self, at: &str, sentence: impl Into<String>, remedy: &str) {
        let fault = self.fault(at, sentence, remedy);
        self.found.fault(fault);
    }

    pub(super) fn seeing(&mut self, at: &str, sentence: impl Into<String>, remedy: &str, seen: &str) {
        let fault = self.fault(at, sentence, remedy).seeing(seen);
        self.found.fault(fault);
    }

    fn all(self) -> Vec<Fault> {
        let mut all = self.found.faults;
        if let Some(others) = all.last_mut().filter(|last| last.others > 0) {
            others.path = self.config_map;
        }
        all
    }
}

/// The step in `text`, the value of key `task-spec.yaml` of ConfigMap `config_map` (`namespace/name`). In a `trusted`
/// ConfigMap, one that only the platform writes, node paths, privilege and foreign step actions are allowed.
///
/// # Errors
/// Every fault, by path.
pub fn parse(config_map: &str, text: &str, trusted: bool) -> Result<Step, Vec<Fault>> {
    let mut faults = Faults::of(config_map);
    let node = match yaml::parse(text) {
        Ok(node) => node,
        Err(error) => {
            faults.add(KEY_TASK_SPEC, format!("line {}: {}", error.line, error.message), REMEDY);
            return Err(faults.all());
        }
    };
    let mut task_spec = node.to_json();
    if !task_spec.is_object() {
        let sentence = format!("is not a TaskSpec but {}", yaml::kind(&task_spec));
        faults.add(KEY_TASK_SPEC, sentence, "write the TaskSpec's members, beginning with steps");
        return Err(faults.all());
    }
    let notes = spelling::check(text, config_map, &mut faults);
    checks::check(&task_spec, trusted, &mut faults);
    types::check(&task_spec, &mut faults);
    features::check(&task_spec, &mut faults);
    let params = params(&mut task_spec, &mut faults);
    let results = results(&task_spec, &mut faults);
    let workspaces = workspaces(&task_spec, &mut faults);
    mounts::check(&task_spec, &workspaces, trusted, &mut faults);
    let propagated = variables::check(&task_spec, &params, &results, &workspaces, &mut faults);
    let faults = faults.all();
    if !faults.is_empty() {
        return Err(faults);
    }
    let hash = digest::of_bytes(text.as_bytes());
    let size = text.len();
    let config_map = config_map.to_owned();
    Ok(Step { config_map, hash, task_spec, params, results, workspaces, propagated, size, notes })
}

/// A member that is a list, or nothing; anything else is a fault.
fn items<'v>(of: &'v Value, key: &str, at: &str, faults: &mut Faults) -> &'v [Value] {
    match of.get(key) {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items,
        Some(other) => {
            let place = if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
            faults.add(&place, format!("is not a list; {} was found", yaml::kind(other)), REMEDY);
            &[]
        }
    }
}

fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or("")
}

fn params(task_spec: &mut Value, faults: &mut Faults) -> Vec<Declared> {
    items(task_spec, "params", "", faults);
    let Some(list) = task_spec.get_mut("params").and_then(Value::as_array_mut) else { return Vec::new() };
    let mut params: Vec<Declared> = Vec::with_capacity(list.len());
    let mut names = BTreeSet::new();
    for (index, param) in list.iter_mut().enumerate() {
        let at = format!("params[{index}]");
        if let Some(default) = param.get_mut("default") {
            texts(default, &format!("{at}.default"), faults);
        }
        let name = text(param, "name").to_owned();
        if !syntax::is_parameter(&name) {
            faults.seeing(&format!("{at}.name"), format!("is not {}", syntax::PARAMETER), REMEDY, &name);
        }
        if !names.insert(name.clone()) {
            faults.seeing(&format!("{at}.name"), "occurs twice", REMEDY, &name);
        }
        let default = param.get("default").filter(|default| !default.is_null()).cloned();
        let written = text(param, "type");
        let inferred =
            if param.get("properties").is_some() { Kind::Map } else { default.as_ref().map_or(Kind::Text, Kind::of) };
        let kind = match Kind::named(written) {
            Some(kind) => kind,
            None if written.is_empty() => inferred,
            None => {
                faults.seeing(&format!("{at}.type"), "is none of string, array and object", REMEDY, written);
                continue;
            }
        };
        if default.as_ref().is_some_and(|default| Kind::of(default) != kind) {
            faults.add(&format!("{at}.default"), format!("is not of type {}", kind.as_str()), REMEDY);
        }
        if kind == Kind::Map && name.contains('.') {
            faults.seeing(&format!("{at}.name"), "has a dot, which an object's name may not have", REMEDY, &name);
        }
        params.push(Declared { name, kind, default });
    }
    params
}

/// Numbers and booleans become their JSON text; what no parameter can hold is a fault.
fn texts(default: &mut Value, at: &str, faults: &mut Faults) {
    let mut one = |value: &mut Value, at: String| match scalar(value) {
        Some(text) => *value = Value::String(text),
        None if value.is_null() => {}
        None => {
            faults.add(&at, format!("is {}, where Tekton takes strings only", yaml::kind(value)), REMEDY);
        }
    };
    match default {
        Value::Array(list) => list.iter_mut().enumerate().for_each(|(index, item)| one(item, format!("{at}[{index}]"))),
        Value::Object(map) => map.iter_mut().for_each(|(key, item)| one(item, format!("{at}.{key}"))),
        other => one(other, at.to_owned()),
    }
}

fn results(task_spec: &Value, faults: &mut Faults) -> BTreeMap<String, Kind> {
    let mut results = BTreeMap::new();
    for (index, result) in items(task_spec, "results", "", faults).iter().enumerate() {
        let (name, at) = (text(result, "name"), format!("results[{index}]"));
        if !syntax::is_result(name) {
            let sentence = "is not a result's name: letters, digits, -, _ and ., beginning and ending with one of the \
                            first two";
            faults.seeing(&format!("{at}.name"), sentence, REMEDY, name);
        }
        let written = text(result, "type");
        let kind = if written.is_empty() { Some(Kind::Text) } else { Kind::named(written) };
        if kind.is_none() {
            faults.seeing(&format!("{at}.type"), "is none of string, array and object", REMEDY, written);
        }
        if results.insert(name.to_owned(), kind.unwrap_or(Kind::Text)).is_some() {
            faults.seeing(&format!("{at}.name"), "occurs twice", REMEDY, name);
        }
    }
    results
}

fn workspaces(task_spec: &Value, faults: &mut Faults) -> Vec<DeclaredWorkspace> {
    let (mut workspaces, mut names) = (Vec::new(), BTreeSet::new());
    for (index, workspace) in items(task_spec, "workspaces", "", faults).iter().enumerate() {
        let (name, at) = (text(workspace, "name"), format!("workspaces[{index}].name"));
        if name.is_empty() {
            faults.add(&at, "is required", REMEDY);
        }
        if !names.insert(name) {
            faults.seeing(&at, "occurs twice", REMEDY, name);
        }
        let optional = workspace.get("optional").and_then(Value::as_bool).unwrap_or(false);
        workspaces.push(DeclaredWorkspace { name: name.to_owned(), optional });
    }
    workspaces
}

#[cfg(test)]
mod tests;
