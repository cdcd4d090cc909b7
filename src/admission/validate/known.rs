//! Fields of an AgentRuntime's spec that nobody knows.
//!
//! The API server takes them out (and warns) before it asks webhooks, so this is for what is judged without one:
//! `drawbridge validate` and `inject`.

use serde_json::Value;

use crate::admission::custom::member_of;
use crate::admission::verdict::Warning;
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;

/// Every mapping of the schema with its members; compared with the CustomResourceDefinition in a test.
pub(super) const MAPPINGS: [(&str, &[&str]); 6] = [
    ("", &["type", "targetRef", "identity", "trace", "authBridgeMode"]),
    ("targetRef", &["apiVersion", "kind", "name"]),
    ("identity", &["spiffe"]),
    ("identity.spiffe", &["trustDomain"]),
    ("trace", &["endpoint", "protocol", "sampling"]),
    ("trace.sampling", &["rate"]),
];

/// At most this many are named.
const NAMED: usize = 10;

/// A warning per unknown field.
pub(super) fn unknown_fields(spec: &Value) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (path, members) in MAPPINGS {
        let place = path.split('.').filter(|key| !key.is_empty()).try_fold(spec, |value, key| value.get(key));
        let unknown = place.and_then(Value::as_object).into_iter().flat_map(|map| map.keys());
        for key in unknown.filter(|key| !members.contains(&key.as_str())) {
            if warnings.len() == NAMED {
                return warnings;
            }
            let above = if path.is_empty() { "spec".to_owned() } else { format!("spec.{path}") };
            let shown: String = key.chars().take(64).collect();
            let hint = match nearest(key, members.iter().copied()) {
                Some(name) => format!("did you mean {name}?"),
                None => format!("there are {}", members.join(", ")),
            };
            let field = member_of(&above, &shown);
            let text = format!("{field} is not a field of AgentRuntime and is left out; {hint}");
            warnings.push(Warning::new(Reason::UnknownField, text));
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::unknown_fields;

    /// `identity.spiffe` is a field, and a key of that spelling is none.
    #[test]
    fn a_key_with_a_dot_is_not_called_by_the_name_of_a_field() {
        let spec = json!({"identity.spiffe": {}, "trace": {"endpont": "x"}});
        let told: Vec<String> = unknown_fields(&spec).into_iter().map(|warning| warning.text).collect();
        assert!(told[0].starts_with("spec[identity.spiffe] is not a field of AgentRuntime"), "{told:?}");
        assert!(told[1].starts_with("spec.trace.endpont is not a field of AgentRuntime"), "{told:?}");
        assert_eq!(told.len(), 2);
    }
}
