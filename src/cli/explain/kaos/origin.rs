//! Where a variable of a container comes from, in the words of whoever wrote the object.
//!
//! In: the field of today that a variable was made of, the object, the old spellings that it uses. Out: the field as it was written, or that
//! it is built in; and the text of a variable as it may be printed.

use serde_json::Value;

use crate::api::kaos_tools::read::{Alias, OldSpelling};

/// Longest value of a variable that is printed, in characters.
const VALUE: usize = 120;
/// Parts of names of variables whose literal may be a credential.
const CREDENTIALS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION"];

/// The field as it was written: `from` is the field of today, or already a sentence.
pub(super) fn field(from: &str, object: &Value, old: &[OldSpelling]) -> String {
    let Some(path) = from.strip_prefix("spec.") else { return from.to_owned() };
    let pointer = format!("/spec/{}", path.replace('.', "/"));
    if path.contains('[') || object.pointer(&pointer).is_some_and(|value| !value.is_null()) {
        return from.to_owned();
    }
    let used = |alias: Alias| old.iter().find(|one| one.alias == alias).map(|one| one.path.clone());
    let first = |aliases: &[Alias]| aliases.iter().find_map(|alias| used(*alias));
    let written = match path {
        "model" => first(&[Alias::ModelVariable]),
        "config.reasoningLoopMaxSteps" => first(&[Alias::LoopMaxSteps]),
        "params" => first(&[Alias::ToolsText, Alias::ToolsString, Alias::ToolsSecret]),
        // A switch of the loop is a variable today.
        "config.agenticLoop.enableTools" | "config.agenticLoop.enableDelegation" => {
            first(&[Alias::AgentEnv]).or_else(|| Some("spec.container.env".to_owned()))
        }
        _ => None,
    };
    written.unwrap_or_else(|| format!("built in, since {from} is not set"))
}

/// The value of an entry of an environment, for people.
pub(super) fn value(entry: &Value) -> String {
    let name = entry["name"].as_str().unwrap_or_default().to_ascii_uppercase();
    if let Some(from) = entry.get("valueFrom").filter(|from| !from.is_null()) {
        let text = |at: &Value, key: &str| at[key].as_str().unwrap_or_default().to_owned();
        for (source, words) in [("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")] {
            if let Some(at) = from.get(source) {
                return format!("(key {} of {words} {})", text(at, "key"), text(at, "name"));
            }
        }
        return match from.pointer("/fieldRef/fieldPath").and_then(Value::as_str) {
            Some(path) => format!("(field {path} of the Pod)"),
            None => "(read from elsewhere)".to_owned(),
        };
    }
    let text = entry.get("value").and_then(Value::as_str).unwrap_or_default();
    let length = text.chars().count();
    let is_key = CREDENTIALS.iter().any(|part| name.split(['_', '-', '.']).any(|word| word == *part));
    match () {
        () if is_key && !text.is_empty() => format!("(a literal of {length} characters, which is not shown)"),
        () if length > VALUE => {
            let head: String = text.chars().take(VALUE).collect();
            format!("{head:?}... ({length} characters)")
        }
        () if text.chars().any(char::is_control) => format!("{text:?}"),
        () => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_credential_is_never_printed_and_references_are_named() {
        for (entry, shown) in [
            (json!({"name": "PROXY_API_KEY", "value": "sk-1"}), "(a literal of 4 characters, which is not shown)"),
            (json!({"name": "my-token", "value": "t"}), "(a literal of 1 characters, which is not shown)"),
            (json!({"name": "MONKEY", "value": "t"}), "t"),
            (json!({"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}), "(key k of Secret s)"),
            (
                json!({"name": "K", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
                "(field status.podIP of the Pod)",
            ),
            (json!({"name": "T", "value": "a\nb"}), "\"a\\nb\""),
        ] {
            assert_eq!(value(&entry), shown);
        }
        assert!(value(&json!({"name": "T", "value": "x".repeat(1000)})).ends_with("... (1000 characters)"));
    }

    #[test]
    fn a_field_is_named_as_it_was_written() {
        let object = json!({"spec": {"model": "x", "config": {}}});
        let old = |alias, path: &str| OldSpelling { alias, path: path.to_owned() };
        assert_eq!(field("spec.model", &object, &[]), "spec.model");
        assert_eq!(field("kaos.logLevel of the platform file", &object, &[]), "kaos.logLevel of the platform file");
        assert_eq!(field("spec.container.env[2]", &object, &[]), "spec.container.env[2]");
        let none = json!({"spec": {}});
        let written = [old(Alias::ModelVariable, "spec.config.env[0]")];
        assert_eq!(field("spec.model", &none, &written), "spec.config.env[0]");
        let unset = field("spec.config.reasoningLoopMaxSteps", &object, &[]);
        assert_eq!(unset, "built in, since spec.config.reasoningLoopMaxSteps is not set");
        let text = [old(Alias::ToolsString, "spec.config.tools.fromString")];
        assert_eq!(field("spec.params", &none, &text), "spec.config.tools.fromString");
    }
}
