//! Which declarations made the rules of a policy.
//!
//! In: a NetworkPolicy's JSON. Out: words for its rules, of an agent's policy of ours with annotation [`keys::ANNOTATION_DECLARED`]. Promises: nobody else's
//! policy says anything here, since people may write the annotation on their own; what cannot be read says nothing, and the policy is judged all the same.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Direction;
use crate::domain::keys;
use crate::domain::printable::printable;

/// Bytes of the annotation that are read.
const LARGEST: usize = 32 * 1024;
/// Bytes of the words of one rule.
const WORDS: usize = 640;

/// What declares the rules, by direction and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declarations(BTreeMap<(Direction, usize), String>);

impl Declarations {
    /// Those of a policy of that name; `None` of one that is not made from declarations.
    pub(super) fn read(object: &Value, name: &str) -> Option<Self> {
        let labels = object.pointer("/metadata/labels")?;
        let is_marked = |key: &str| labels.get(key).and_then(Value::as_str) == Some(keys::MANAGED_BY_DRAWBRIDGE);
        if !name.ends_with(keys::SUFFIX_SIGNATURE_POLICY)
            || !is_marked(keys::LABEL_POLICY_MANAGED_BY)
            || !is_marked(keys::LABEL_APP_MANAGED_BY)
        {
            return None;
        }
        let text = object.pointer("/metadata/annotations")?.get(keys::ANNOTATION_DECLARED)?.as_str()?;
        let says: Value =
            Some(text).filter(|text| text.len() <= LARGEST).and_then(|text| serde_json::from_str(text).ok())?;
        let mut found = BTreeMap::new();
        for (key, direction) in [("egress", Direction::Egress), ("ingress", Direction::Ingress)] {
            for (place, by) in says.get(key).and_then(Value::as_object).into_iter().flatten() {
                let words: Vec<&str> = by.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                if let Ok(place) = place.parse() {
                    found.insert((direction, place), printable(&words.join("; "), WORDS));
                }
            }
        }
        Some(Self(found))
    }

    /// What declares the rule at that place, in words.
    #[must_use]
    pub fn of(&self, direction: Direction, place: usize) -> Option<&str> {
        self.0.get(&(direction, place)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_agents_policy_of_ours_says_what_declares_its_rules() {
        let says =
            r#"{"egress":{"2":["route b in ConfigMap authproxy-routes","x"],"y":[7]},"ingress":{"1":["z\u0007"]}}"#;
        let policy = |label: &str, says: &str| {
            json!({"metadata": {"labels": {"managed-by": label, "app.kubernetes.io/managed-by": "drawbridge"},
                "annotations": {"agent.kagenti.dev/declared": says}}})
        };
        let found = Declarations::read(&policy("drawbridge", says), "w-signature-policy").unwrap();
        assert_eq!(found.of(Direction::Egress, 2), Some("route b in ConfigMap authproxy-routes; x"));
        assert_eq!(found.of(Direction::Ingress, 2), None);
        assert!(!found.of(Direction::Ingress, 1).unwrap().contains('\u{7}'), "{found:?}");
        for (object, name) in [
            (policy("me", says), "w-signature-policy"),
            (policy("drawbridge", says), "mine"),
            (policy("drawbridge", "{"), "w-signature-policy"),
            (policy("drawbridge", &format!("{{}}{}", " ".repeat(LARGEST))), "w-signature-policy"),
            (json!({"metadata": {}}), "w-signature-policy"),
        ] {
            assert_eq!(Declarations::read(&object, name), None, "{object}");
        }
    }
}
