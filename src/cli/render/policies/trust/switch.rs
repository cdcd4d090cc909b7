//! `drawbridge-trust-switch`: how far trust is enforced in a namespace is decided by who may change namespaces, and
//! so is who of it is in quarantine. To the API server a Role with
//! `*` in a namespace is a right to change that Namespace object, too (also through its status and its finalizers), so the right is asked for
//! in the whole cluster. A word that is no level is refused at once.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::super::super::Install;
use super::super::super::selectors::condition;
use super::super::{Refusal, listed, refusal};
use crate::domain::keys;
use crate::domain::trust::TrustLevel;

/// Its name.
const NAME: &str = "drawbridge-trust-switch";

pub(super) fn policy(install: &Install) -> [Value; 2] {
    let label = |of: &str| format!("{of}.metadata.?labels[?'{}']", keys::LABEL_TRUST);
    let words = listed(TrustLevel::ALL.map(TrustLevel::as_str));
    let annotation = |of: &str, key: &str| format!("{of}.metadata.?annotations[?'{key}']");
    let held = [keys::ANNOTATION_QUARANTINE, keys::ANNOTATION_QUARANTINE_RECORD]
        .map(|key| format!("{} != {}", annotation("object", key), annotation("oldObject", key)))
        .join(" || ");
    let changes = format!(
        "request.operation == 'CREATE' ? {}.hasValue() : {} != {} || {held}",
        label("object"),
        label("object"),
        label("oldObject")
    );
    let may = "authorizer.group('').resource('namespaces').check('patch').allowed()";
    let rule = Refusal {
        applies: vec![condition("trust-changes", &changes)],
        variables: Vec::new(),
        holds: format!("{}.orValue('off') in [{words}] && (request.operation == 'CREATE' || {may})", label("object")),
        message: format!(
            "label {} of a Namespace is {}, and it and annotation {} are changed by people who may patch namespaces in the whole cluster: they say \
             what agents may reach. What to do: write one of these words, or ask whoever runs the cluster",
            keys::LABEL_TRUST,
            TrustLevel::ALL.map(TrustLevel::as_str).join(", "),
            keys::ANNOTATION_QUARANTINE
        ),
        message_expression: None,
    };
    refusal(install, NAME, matched(), rule)
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
