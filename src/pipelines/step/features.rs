//! Members and references that Tekton's v1 API knows and its admission refuses all the same: what its feature flags
//! forbid as installed, and rules between members.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Faults, REMEDY, items, text};
use crate::api::syntax;
use crate::api::yaml::kind;
use crate::pipelines::reference::{self, Part, Target};

/// Where a step may read the result of an earlier one.
const RESULT_PLACES: [&str; 3] = [".env[", ".command[", ".args["];

/// All checks of this module.
pub(super) fn check(task_spec: &Value, faults: &mut Faults) {
    let workspaces = names(task_spec, "workspaces", faults);
    let members = members(task_spec, faults);
    for (index, param) in items(task_spec, "params", "", faults).iter().enumerate() {
        let at = format!("params[{index}]");
        if param.get("enum").is_some_and(|values| !values.is_null()) {
            faults.add(&format!("{at}.enum"), "needs a feature of Tekton that is off", "check the value in the script");
        }
        let object = text(param, "type") == "object" || param.get("default").is_some_and(Value::is_object);
        properties(param, &at, object, faults);
    }
    for (index, result) in items(task_spec, "results", "", faults).iter().enumerate() {
        let at = format!("results[{index}]");
        properties(result, &at, text(result, "type") == "object", faults);
        value(result, &at, faults);
    }
    if let Some(template) = task_spec.get("stepTemplate") {
        repeated(template, "stepTemplate", faults);
    }
    for list in ["steps", "sidecars"] {
        for (index, container) in items(task_spec, list, "", faults).iter().enumerate() {
            let at = format!("{list}[{index}]");
            for name in names_at(container, "workspaces", &at, faults).difference(&workspaces) {
                let sentence = "names a workspace that the TaskSpec does not declare";
                faults.seeing(&format!("{at}.workspaces"), sentence, "declare the workspace", name);
            }
            if list == "steps" {
                step(container, &at, faults);
                objects(container, &at, &members, faults);
                if task_spec.get("stepTemplate").is_some_and(Value::is_object) {
                    repeated(container, &at, faults);
                }
            }
        }
    }
}

fn names(of: &Value, key: &str, faults: &mut Faults) -> BTreeSet<String> {
    names_at(of, key, "", faults)
}

fn names_at(of: &Value, key: &str, at: &str, faults: &mut Faults) -> BTreeSet<String> {
    items(of, key, at, faults).iter().map(|one| text(one, "name").to_owned()).collect()
}

/// Members of each object parameter, by its name.
fn members<'v>(task_spec: &'v Value, faults: &mut Faults) -> BTreeMap<&'v str, BTreeSet<&'v str>> {
    let params = items(task_spec, "params", "", faults).iter();
    let objects = params.filter_map(|param| Some((text(param, "name"), param.get("properties")?.as_object()?)));
    objects.map(|(name, properties)| (name, properties.keys().map(String::as_str).collect())).collect()
}

/// A reference to a member that the object does not have.
fn objects(step: &Value, at: &str, members: &BTreeMap<&str, BTreeSet<&str>>, faults: &mut Faults) {
    let mut found = Vec::new();
    strings(step, &mut at.to_owned(), &mut found);
    for (path, text) in found {
        for one in reference::in_text(text) {
            if let Target::Param { name, part: Part::Member(member) } = one.target
                && members.get(name).is_some_and(|known| !known.contains(member))
            {
                let remedy = "take a member that properties names";
                faults.seeing(&path, format!("names no member of parameter {name}"), remedy, one.text);
            }
        }
    }
}

/// Tekton cannot merge a step with the template when either names a variable twice.
fn repeated(container: &Value, at: &str, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, variable) in items(container, "env", at, faults).iter().enumerate() {
        let name = text(variable, "name");
        if !seen.insert(name) {
            let sentence = "occurs twice, which Tekton cannot merge with a stepTemplate";
            faults.seeing(&format!("{at}.env[{index}].name"), sentence, "keep one of the entries", name);
        }
    }
}

/// The members of an object are strings, and must be named.
fn properties(of: &Value, at: &str, needed: bool, faults: &mut Faults) {
    let at = format!("{at}.properties");
    match of.get("properties").filter(|properties| !properties.is_null()) {
        None if needed => {
            faults.add(&at, "is required for type object", "name the members, each with type string");
        }
        None => {}
        Some(Value::Object(properties)) => {
            for (name, property) in properties {
                let at = format!("{at}.{name}");
                if !syntax::is_parameter(name) || name.contains('.') {
                    faults.seeing(
                        &at,
                        "has a member with a name that Tekton does not allow",
                        "use letters, digits, _ and -",
                        name,
                    );
                }
                let written = property.get("type").filter(|written| !written.is_null());
                if !property.is_object() || written.is_some_and(|written| written != "string") {
                    faults.add(&format!("{at}.type"), "must be string", REMEDY);
                }
            }
        }
        Some(other) => {
            faults.add(&at, format!("must be a mapping; {} was found", kind(other)), REMEDY);
        }
    }
}

/// A result may take its value from a step's result, and from nothing else.
fn value(result: &Value, at: &str, faults: &mut Faults) {
    let Some(value) = result.get("value").filter(|value| !value.is_null()) else { return };
    let inner = value.as_str().and_then(|text| text.strip_prefix("$(steps.")?.strip_suffix(')'));
    let parts = inner.and_then(|inner| inner.split_once(".results."));
    if !parts.is_some_and(|(step, name)| syntax::is_label(step) && syntax::is_result(name)) {
        let remedy = "write $(steps.STEP.results.NAME), or let a step write the result";
        faults.add(&format!("{at}.value"), "is not the result of a step", remedy);
    }
}

fn step(step: &Value, at: &str, faults: &mut Faults) {
    for key in ["stdoutConfig", "stderrConfig"] {
        if step.get(key).is_some_and(|config| !config.is_null()) {
            let remedy = "let the script write the file";
            faults.add(&format!("{at}.{key}"), "needs a feature of Tekton that is off", remedy);
        }
    }
    let on_error = text(step, "onError");
    if !["", "continue", "stopAndFail"].contains(&on_error) && !on_error.starts_with("$(params.") {
        let remedy = "write continue or stopAndFail";
        faults.seeing(&format!("{at}.onError"), "is neither continue nor stopAndFail", remedy, on_error);
    }
    let script = text(step, "script");
    if script.trim_start().starts_with("#!win") {
        faults.add(&format!("{at}.script"), "is for Windows, a feature of Tekton that is off", "use a shell");
    }
    let is_referring = step.get("ref").is_some_and(|action| !action.is_null());
    if !is_referring && !items(step, "params", at, faults).is_empty() {
        faults.add(&format!("{at}.params"), "are for step actions only", "use the TaskSpec's params");
    }
    let is_present = |key: &&str| {
        step.get(key).is_some_and(|value| {
            !value.is_null() && value.as_str() != Some("") && value.as_array().is_none_or(|list| !list.is_empty())
        })
    };
    let own = ["image", "command", "args", "script", "workingDir", "env", "volumeMounts", "results"];
    if let Some(key) = own.iter().find(|key| is_referring && is_present(key)) {
        faults.add(&format!("{at}.{key}"), "stands together with ref", "keep one of the two");
    }
    let results = names_at(step, "results", at, faults);
    for (index, result) in items(step, "results", at, faults).iter().enumerate() {
        let at = format!("{at}.results[{index}]");
        if !syntax::is_result(text(result, "name")) {
            faults.seeing(&format!("{at}.name"), "is not a result's name", REMEDY, text(result, "name"));
        }
        if !["", "string", "array", "object"].contains(&text(result, "type")) {
            faults.add(&format!("{at}.type"), "is none of string, array and object", REMEDY);
        }
        properties(result, &at, text(result, "type") == "object", faults);
    }
    whens(step, at, faults);
    references(step, at, &results, faults);
}

fn whens(step: &Value, at: &str, faults: &mut Faults) {
    for (index, when) in items(step, "when", at, faults).iter().enumerate() {
        let at = format!("{at}.when[{index}]");
        if when.get("cel").is_some_and(|cel| !cel.is_null()) {
            faults.add(&format!("{at}.cel"), "needs a feature of Tekton that is off", "use input, operator and values");
            continue;
        }
        if !["in", "notin"].contains(&text(when, "operator")) {
            let seen = text(when, "operator");
            faults.seeing(&format!("{at}.operator"), "is neither in nor notin", "write in or notin", seen);
        }
        if items(when, "values", &at, faults).is_empty() {
            faults.add(&format!("{at}.values"), "is empty; Tekton wants at least one value", "add a value");
        }
    }
}

/// References of a step to steps, artifacts and contexts, which only some of its members may have.
fn references(step: &Value, at: &str, results: &BTreeSet<String>, faults: &mut Faults) {
    let mut found = Vec::new();
    strings(step, &mut at.to_owned(), &mut found);
    for (path, text) in found {
        for one in reference::in_text(text) {
            let inner = one.text.trim_start_matches("$(").trim_end_matches(')');
            if let Some((sentence, remedy)) = wrong(inner, &path, results) {
                faults.seeing(&path, sentence, remedy, one.text);
            }
        }
    }
}

fn wrong(inner: &str, path: &str, results: &BTreeSet<String>) -> Option<(&'static str, &'static str)> {
    const TASK_RUN: [&str; 3] = ["name", "namespace", "uid"];
    const TASK: [&str; 2] = ["name", "retry-count"];
    let of_step = inner.strip_prefix("steps.");
    let artifacts = of_step.is_some_and(|rest| rest.contains(".outputs") || rest.contains(".inputs"));
    if artifacts || inner == "step.artifacts.path" || inner == "artifacts.path" {
        return Some(("uses artifacts, a feature of Tekton that is off", "use results and workspaces"));
    }
    if of_step.is_some_and(|rest| rest.contains(".results")) && !RESULT_PLACES.iter().any(|place| path.contains(place))
    {
        return Some(("reads a step's result where Tekton allows none", "read it in env, command or args"));
    }
    if let Some(rest) = inner.strip_prefix("step.results.")
        && path.ends_with(".script")
        && !results.is_empty()
        && !results.contains(rest.strip_suffix(".path").unwrap_or(rest))
    {
        return Some(("names a step result that is not declared", "declare it under the step's results"));
    }
    let unknown = |prefix: &str, known: &[&str]| inner.strip_prefix(prefix).is_some_and(|rest| !known.contains(&rest));
    (unknown("context.taskRun.", &TASK_RUN) || unknown("context.task.", &TASK)).then_some((
        "names something that Tekton's context does not have",
        "use context.taskRun.name, .namespace, .uid, context.task.name or .retry-count",
    ))
}

fn strings<'v>(value: &'v Value, path: &mut String, out: &mut Vec<(String, &'v str)>) {
    let length = path.len();
    match value {
        Value::String(text) if reference::mentions(text) => out.push((path.clone(), text)),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                strings(item, path, out);
                path.truncate(length);
            }
        }
        Value::Object(members) => {
            for (key, item) in members {
                path.push('.');
                path.push_str(key);
                strings(item, path, out);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
