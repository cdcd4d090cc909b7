//! `$$` in values: the kubelet makes one `$` of two in command, arguments and environment of a container, after Tekton has put the parameters
//! there (kubernetes/kubernetes#101137); of a script, an image or a folder nobody does. What arrives is to be what was written.
//!
//! In: a value, and the TaskSpec that takes it. Out: the value as it has to be handed over. Promises: one without `$$` stays as it is; one that a
//! TaskSpec takes in both kinds of places, too, since no text is right in both.

use serde_json::Value;

use crate::pipelines::reference::{self, Target};

/// Members of a container in which the kubelet makes one `$` of two.
const EXPANDED: [&str; 3] = ["command", "args", "env"];
/// A member in which it does not, whatever stands below it: commands of hooks are run as they are.
const HOOKS: &str = "lifecycle";

/// Whether a text refers to the parameter.
pub(in crate::pipelines) fn reads(text: &str, name: &str) -> bool {
    reference::in_text(text).iter().any(|one| matches!(one.target, Target::Param { name: used, .. } if used == name))
}

/// Whether a TaskSpec hands that parameter to containers there and nowhere else.
pub(in crate::pipelines) fn is_expanded(task_spec: &Value, name: &str) -> bool {
    match task_spec {
        Value::String(text) => !reads(text, name),
        Value::Array(items) => items.iter().all(|item| is_expanded(item, name)),
        Value::Object(members) => members.iter().all(|(key, member)| match key.as_str() {
            HOOKS => !is_read(member, name),
            key => EXPANDED.contains(&key) || is_expanded(member, name),
        }),
        _ => true,
    }
}

/// Whether any text of a value refers to the parameter.
pub(in crate::pipelines) fn is_read(value: &Value, name: &str) -> bool {
    match value {
        Value::String(text) => reads(text, name),
        Value::Array(items) => items.iter().any(|item| is_read(item, name)),
        Value::Object(members) => members.values().any(|member| is_read(member, name)),
        _ => false,
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

/// The value of a parameter of that name as it is passed to a task of that TaskSpec.
pub(super) fn passed(value: &Value, task_spec: &Value, name: &str) -> Value {
    if in_any(value) && is_expanded(task_spec, name) { of_all(value) } else { value.clone() }
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

    use super::{doubled, has_two, is_expanded};

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
            assert_eq!(is_expanded(&task_spec, "P"), is, "{task_spec}");
        }
    }
}
