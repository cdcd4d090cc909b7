//! Label selectors, answered as the API server answers them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Whether a selector (of any Kubernetes object, as JSON) matches those labels. No selector matches everything.
pub(super) fn matches(selector: &Value, labels: &BTreeMap<&str, &str>) -> bool {
    let exact = selector["matchLabels"].as_object().into_iter().flatten();
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    exact.into_iter().all(|(key, value)| labels.get(key.as_str()).copied() == value.as_str())
        && expressions.into_iter().all(|expression| {
            let seen = expression["key"].as_str().and_then(|key| labels.get(key)).copied();
            let listed = || expression["values"].as_array().into_iter().flatten().any(|value| value.as_str() == seen);
            match expression["operator"].as_str() {
                Some("In") => seen.is_some() && listed(),
                Some("NotIn") => seen.is_none() || !listed(),
                Some("Exists") => seen.is_some(),
                Some("DoesNotExist") => seen.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_answered_as_the_api_server_does() {
        let labels = BTreeMap::from([("a", "1"), ("b", "2")]);
        for (selector, expected) in [
            (json!(null), true),
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "3"]}]}), true),
            (json!({"matchExpressions": [{"key": "c", "operator": "In", "values": ["1"]}]}), false),
            (json!({"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["1"]}]}), true),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}), false),
            (json!({"matchExpressions": [{"key": "b", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}), false),
        ] {
            assert_eq!(matches(&selector, &labels), expected, "{selector}");
        }
    }
}
