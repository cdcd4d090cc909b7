//! `$$` in values: the kubelet makes one `$` of two in command, arguments and environment of a container, after Tekton has put the parameters
//! there (kubernetes/kubernetes#101137); of a script, an image or a folder nobody does. What arrives is to be what was written.
//!
//! In: a value, and the TaskSpec that takes it. Out: the value as it has to be handed over. Promises: one without `$$` stays as it is; one that a
//! TaskSpec takes in both kinds of places, too, since no text is right in both.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::Value;

use crate::pipelines::reference::{self, Target};

/// Members of a container in which the kubelet makes one `$` of two.
const EXPANDED: [&str; 3] = ["command", "args", "env"];
/// A member in which it does not, whatever stands below it: commands of hooks are run as they are.
const HOOKS: &str = "lifecycle";

/// The parameters that a text refers to.
pub(in crate::pipelines) fn read(text: &str) -> impl Iterator<Item = &str> {
    reference::in_text(text).into_iter().filter_map(|one| match one.target {
        Target::Param { name, .. } => Some(name),
        _ => None,
    })
}

/// The parameters that any text of a value refers to.
pub(in crate::pipelines) fn read_in(value: &Value) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    collect(value, false, &mut names);
    names
}

/// Adds the parameters that a value refers to; `spared`: but for those places in which the kubelet makes one `$` of two.
fn collect<'v>(value: &'v Value, spared: bool, names: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) => names.extend(read(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, spared, names)),
        Value::Object(members) => {
            for (key, member) in members {
                if !(spared && EXPANDED.contains(&key.as_str())) {
                    collect(member, spared && key != HOOKS, names);
                }
            }
        }
        _ => {}
    }
}

/// Where a TaskSpec reads its parameters. It is looked through once, and only if somebody asks, however many parameters it has.
pub(in crate::pipelines) struct Places<'t> {
    task_spec: &'t Value,
    /// The parameters that it reads anywhere but where the kubelet makes one `$` of two.
    elsewhere: OnceCell<BTreeSet<&'t str>>,
}

impl<'t> Places<'t> {
    /// Those of that TaskSpec.
    pub(in crate::pipelines) fn of(task_spec: &'t Value) -> Self {
        Self { task_spec, elsewhere: OnceCell::new() }
    }

    /// Whether it hands that parameter to containers there and nowhere else.
    pub(in crate::pipelines) fn is_expanded(&self, name: &str) -> bool {
        let elsewhere = self.elsewhere.get_or_init(|| {
            let mut names = BTreeSet::new();
            collect(self.task_spec, true, &mut names);
            names
        });
        !elsewhere.contains(name)
    }

    /// The value of a parameter of that name as it is passed to a task of that TaskSpec.
    pub(super) fn passed(&self, value: &Value, name: &str) -> Value {
        if in_any(value) && self.is_expanded(name) { of_all(value) } else { value.clone() }
    }
}

/// Whether two `$` stand side by side in a text.
pub(in crate::pipelines) fn has_two(text: &str) -> bool {
    text.match_indices('$').any(|(at, _)| text.as_bytes().get(at + 1) == Some(&b'$'))
}

/// The text as it has to be written for the kubelet to hand on what it says. A `$` that opens a reference is Tekton's, which puts something else in
/// its place.
pub(in crate::pipelines) fn doubled(text: &str) -> String {
    text.split("$(").map(|part| part.replace("$$", "$$$$")).collect::<Vec<_>>().join("$(")
}

fn in_any(value: &Value) -> bool {
    match value {
        Value::String(text) => has_two(text),
        Value::Array(items) => items.iter().any(in_any),
        Value::Object(members) => members.values().any(in_any),
        _ => false,
    }
}

fn of_all(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(doubled(text)),
        Value::Array(items) => items.iter().map(of_all).collect(),
        Value::Object(members) => members.iter().map(|(key, member)| (key.clone(), of_all(member))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Places, doubled, has_two};

    /// What the kubelet makes of a text in which it finds no variable.
    fn expanded(text: &str) -> String {
        text.replace("$$", "$")
    }

    #[test]
    fn what_is_doubled_arrives_as_it_was_written() {
        for text in ["$$5", "a$$$", "$$$$", "$5 $", "plain", ""] {
            assert_eq!(expanded(&doubled(text)), text);
        }
        for (text, has) in [("a$$b", true), ("$$", true), ("$", false), ("a$b$", false), ("", false)] {
            assert_eq!(has_two(text), has, "{text}");
        }
        // Tekton takes the last `$` before a bracket, whatever stands before it.
        for (text, passed) in [("a$$(r)", "a$$(r)"), ("$$$(r)$$", "$$$$$(r)$$$$"), ("$(r)", "$(r)")] {
            assert_eq!(doubled(text), passed);
        }
    }

    #[test]
    fn only_command_arguments_and_environment_of_containers_are_expanded() {
        let read = json!("x$(params.P)y");
        for (task_spec, is) in [
            (json!({"steps": [{"args": [read], "env": [{"name": "A", "value": read}]}]}), true),
            (json!({"stepTemplate": {"env": [{"name": "A", "value": read}]}, "sidecars": [{"command": [read]}]}), true),
            (json!({"steps": [{"args": [read], "script": read}]}), false),
            (json!({"steps": [{"args": [read], "workingDir": read}]}), false),
            (json!({"sidecars": [{"args": [read], "lifecycle": {"preStop": {"exec": {"command": [read]}}}}]}), false),
            (json!({"sidecars": [{"args": [read], "lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}]}), true),
        ] {
            assert_eq!(Places::of(&task_spec).is_expanded("P"), is, "{task_spec}");
        }
    }
}
