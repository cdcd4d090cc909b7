//! `drawbridge-trust-switch`: what a Namespace says of trust is said by who may change namespaces: how far it is enforced there, who of it is
//! in quarantine, and whether verified agents of other namespaces, and the catalogue, open to it. To the API server a Role with
//! `*` in a namespace is a right to change that Namespace object, too (also through its status and its finalizers), so the right is asked for
//! in the whole cluster. A word that is no level is refused at once, and only when it is new: one of before stands in nobody's way.
//!
//! Promise: every Namespace is held, whichever are served, since the policies of those that are served let in others by their labels.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::super::super::Install;
use super::super::super::selectors::condition;
use super::super::{Refusal, listed, refusal, variable};
use crate::domain::keys;
use crate::domain::trust::TrustLevel;

/// Its name.
const NAME: &str = "drawbridge-trust-switch";

/// Labels and values by which a Namespace opens others to its agents, or its agents to the catalogue's callers. Another value, or none, opens nothing.
const OPENS: [(&str, &str); 2] = [(keys::LABEL_NAMESPACE_ENABLED, "true"), (keys::LABEL_CATALOGUE, keys::SHARED)];

pub(super) fn policy(install: &Install) -> [Value; 2] {
    let label = |of: &str, key: &str| format!("{of}.metadata.?labels[?'{key}']");
    let level = |of: &str| label(of, keys::LABEL_TRUST);
    let words = listed(TrustLevel::ALL.map(TrustLevel::as_str));
    let annotation = |of: &str, key: &str| format!("{of}.metadata.?annotations[?'{key}']");
    let is_other_level = format!("{} != {}", level("object"), level("oldObject"));
    let held = [keys::ANNOTATION_QUARANTINE, keys::ANNOTATION_QUARANTINE_RECORD]
        .map(|key| format!("{} != {}", annotation("object", key), annotation("oldObject", key)))
        .join(" || ");
    let says = |of: &str, key: &str, value: &str| format!("{}.orValue('') == '{value}'", label(of, key));
    let opens = OPENS
        .map(|(key, value)| format!("({} && !({}))", says("object", key, value), says("oldObject", key, value)))
        .join(" || ");
    let changes = format!(
        "request.operation == 'CREATE' ? {}.hasValue() : ({is_other_level} || {held} || {opens})",
        level("object")
    );
    let may = "authorizer.group('').resource('namespaces').check('patch').allowed()";
    let rule = Refusal {
        applies: vec![condition("trust-changes", &changes)],
        variables: vec![variable("levelled", &format!("request.operation == 'CREATE' || {is_other_level}"))],
        holds: format!(
            "(!variables.levelled || {}.orValue('off') in [{words}]) && (request.operation == 'CREATE' || {may})",
            level("object")
        ),
        message: format!(
            "label {} of a Namespace is {}; once a Namespace is there, this label, {} and annotation {} are written by people who may patch namespaces \
             in the whole cluster: they say whom agents reach and who finds them. What to do: write one of these levels, or ask whoever runs the cluster",
            keys::LABEL_TRUST,
            TrustLevel::ALL.map(TrustLevel::as_str).join(", "),
            OPENS.map(|(key, value)| format!("{key}={value}")).join(", "),
            keys::ANNOTATION_QUARANTINE
        ),
        message_expression: None,
    };
    let mut both = refusal(install, NAME, matched(), rule);
    if let Some(constraints) = both[0]["spec"]["matchConstraints"].as_object_mut() {
        constraints.remove("namespaceSelector");
    }
    both
}

fn matched() -> NamedRuleWithOperations {
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    NamedRuleWithOperations {
        api_groups: texts(&[""]),
        api_versions: texts(&["v1"]),
        operations: texts(&["CREATE", "UPDATE"]),
        resources: texts(&["namespaces", "namespaces/status", "namespaces/finalize"]),
        resource_names: None,
        scope: Some("Cluster".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::FailureMode;

    fn spec(namespaces: Vec<String>) -> Value {
        let mut install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "drawbridge:test");
        install.namespaces = namespaces;
        policy(&install)[0]["spec"].clone()
    }

    #[test]
    fn what_opens_other_namespaces_is_asked_of_every_namespace_served_or_not() {
        for namespaces in [Vec::new(), vec!["team1".to_owned()]] {
            let spec = spec(namespaces);
            assert_eq!(spec["matchConstraints"].get("namespaceSelector"), None);
            let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
            let (applies, message) = (text("/matchConditions/0/expression"), text("/validations/0/message"));
            for (label, value) in [("kagenti-enabled", "true"), ("agent.kagenti.dev/catalogue", "shared")] {
                let says = |of: &str| format!("{of}.metadata.?labels[?'{label}'].orValue('') == '{value}'");
                assert!(applies.contains(&format!("({} && !({}))", says("object"), says("oldObject"))), "{applies}");
                assert!(message.contains(&format!("{label}={value}")), "{message}");
            }
        }
    }

    /// A word of before the policy was there would hold up a quarantine, and its release.
    #[test]
    fn a_word_is_judged_only_when_it_is_new() {
        let spec = spec(Vec::new());
        let level = |of: &str| format!("{of}.metadata.?labels[?'agent.kagenti.dev/trust']");
        let variables = serde_json::json!([{"name": "levelled",
            "expression": format!("request.operation == 'CREATE' || {} != {}", level("object"), level("oldObject"))}]);
        assert_eq!(spec["variables"], variables);
        let holds = spec["validations"][0]["expression"].as_str().unwrap();
        assert!(holds.starts_with("(!variables.levelled || "), "{holds}");
        assert!(holds.ends_with("check('patch').allowed())"), "{holds}");
    }
}
