//! References inside a TaskSpec: what Tekton would find to name nothing, or to stand where its type cannot.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Declared, DeclaredWorkspace, Faults, Kind};
use crate::pipelines::reference::{self, Part, Target};

struct Look<'a> {
    params: &'a [Declared],
    results: &'a BTreeMap<String, Kind>,
    workspaces: &'a [DeclaredWorkspace],
    propagated: BTreeMap<String, String>,
}

/// Checks every reference; gives the parameters that are read without being declared, with the place of the first.
pub(super) fn check(
    task_spec: &Value,
    params: &[Declared],
    results: &BTreeMap<String, Kind>,
    workspaces: &[DeclaredWorkspace],
    faults: &mut Faults,
) -> BTreeMap<String, String> {
    let mut look = Look { params, results, workspaces, propagated: BTreeMap::new() };
    for part in ["stepTemplate", "steps", "sidecars", "volumes"] {
        if let Some(value) = task_spec.get(part) {
            look.walk(value, &mut part.to_owned(), faults);
        }
    }
    look.propagated
}

impl Look<'_> {
    fn walk(&mut self, value: &Value, path: &mut String, faults: &mut Faults) {
        let length = path.len();
        match value {
            Value::String(text) if reference::mentions(text) => self.text(text, path, faults),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    self.walk(item, path, faults);
                    path.truncate(length);
                }
            }
            Value::Object(members) => {
                for (key, item) in members {
                    path.push('.');
                    path.push_str(key);
                    self.walk(item, path, faults);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, path: &str, faults: &mut Faults) {
        for one in reference::in_text(text) {
            match one.target {
                Target::Param { name, part } => self.param((name, part), (text, one.text), path, faults),
                Target::Result { .. } => {
                    let sentence = "reads the result of another task, which only parameters may";
                    faults.seeing(path, sentence, "declare a parameter, and fill it in the build's steps", one.text);
                }
                // `$(…)` in a script is the shell's; only what begins with a word of Tekton's is a reference.
                _ => self.named(one.text, path, faults),
            }
        }
    }

    fn param(&mut self, (name, part): (&str, Part<'_>), (text, seen): (&str, &str), path: &str, faults: &mut Faults) {
        let Some(declared) = self.params.iter().find(|declared| declared.name == name) else {
            self.propagated.entry(name.to_owned()).or_insert_with(|| path.to_owned());
            return;
        };
        let in_list =
            path.rfind(".args[").or_else(|| path.rfind(".command[")).is_some_and(|at| !path[at + 1..].contains('.'));
        let fits = match (declared.kind, part) {
            (Kind::Text, Part::Whole) | (Kind::List, Part::Element) | (Kind::Map, Part::Member(_)) => true,
            (Kind::List, Part::All) => in_list && text == seen,
            _ => false,
        };
        if !fits {
            let sentence =
                format!("takes parameter {name} of type {} in a way its type does not allow", declared.kind.as_str());
            let remedy = match declared.kind {
                Kind::Text => "write $(params.NAME)",
                Kind::List => "let it be a whole element of args or command, as $(params.NAME[*]), or take one element",
                Kind::Map => "take one member, as $(params.NAME.KEY)",
            };
            faults.seeing(path, sentence, remedy, seen);
        }
    }

    fn named(&self, seen: &str, path: &str, faults: &mut Faults) {
        let inner = seen.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
        if inner.strip_prefix("params").is_some_and(|rest| rest.starts_with(['.', '['])) {
            faults.seeing(path, "names no parameter", "write $(params.NAME), or $(params['NAME']) with dots", seen);
        }
        if inner.strip_prefix("results.").is_some_and(|rest| rest.split('.').count() > 2) {
            let sentence = "names a result with a dot as if it had parts, which Tekton refuses";
            faults.seeing(path, sentence, "write $(results['NAME'].path)", seen);
        }
        if inner.starts_with("tasks.") {
            let sentence = "reads another task, which only parameters may";
            faults.seeing(path, sentence, "declare a parameter, and fill it in the build's steps", seen);
        }
        let name = |rest: &'_ str, ends: &[&str]| -> Option<String> {
            let (name, end) = match rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
                Some(quoted) => {
                    quoted.split_once(['\'', '"']).map(|(name, tail)| (name, tail.trim_start_matches("].")))?
                }
                None => rest.strip_prefix('.')?.rsplit_once('.')?,
            };
            ends.contains(&end).then(|| name.to_owned())
        };
        if let Some(rest) = inner.strip_prefix("results")
            && let Some(result) = name(rest, &["path"])
            && !self.results.contains_key(&result)
        {
            faults.seeing(path, format!("names result {result}, which is not declared"), "declare the result", seen);
        }
        if let Some(rest) = inner.strip_prefix("workspaces")
            && let Some(workspace) = name(rest, &["path", "bound", "claim", "volume"])
            && !self.workspaces.iter().any(|declared| declared.name == workspace)
        {
            let sentence = format!("names workspace {workspace}, which is not declared");
            faults.seeing(path, sentence, "declare the workspace", seen);
        }
    }
}
