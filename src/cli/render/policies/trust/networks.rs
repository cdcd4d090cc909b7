//! `drawbridge-trust-networks`: NetworkPolicies of ours are made, changed and deleted by us alone, also one by one in a `deletecollection`;
//! with its namespace each goes (measured: a rule that named them by the request held namespaces up for ever).

use serde_json::Value;

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;

use super::super::super::Install;
use super::super::super::selectors::condition;
use super::super::{Refusal, listed, refusal, variable, written_in};
use super::{by_us, is_at_least};
use crate::domain::keys;
use crate::domain::trust::TrustLevel;

/// Its name.
const NAME: &str = "drawbridge-trust-networks";
/// Who deletes what is in a namespace that goes; the second, where the controllers of Kubernetes share one account.
const NAMESPACE_CONTROLLERS: [&str; 2] =
    ["system:serviceaccount:kube-system:namespace-controller", "system:kube-controller-manager"];
/// Who deletes what somebody owned who is gone.
const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

pub(super) fn policy(install: &Install) -> [Value; 2] {
    let one = "(oldObject != null ? oldObject : object)";
    let name = format!("{one}.metadata.?name.orValue('')");
    let marked = |of: &str| {
        format!(
            "({of} != null && {of}.metadata.?labels[?'{}'].orValue('') == '{}')",
            keys::LABEL_POLICY_MANAGED_BY,
            keys::MANAGED_BY_DRAWBRIDGE
        )
    };
    let is_ours = format!(
        "{name} in ['{}', '{}'] || {} || {} || (request.operation == 'CREATE' && {name}.endsWith('{}'))",
        keys::DEFAULT_DENY,
        keys::QUARANTINE_POLICY,
        marked("oldObject"),
        marked("object"),
        keys::SUFFIX_SIGNATURE_POLICY
    );
    let rule = Refusal {
        applies: vec![condition("ours", &is_ours), condition("not-by-us", &format!("!({})", by_us(install)))],
        variables: vec![
            variable("deny", &format!("{name} in ['{}', '{}']", keys::DEFAULT_DENY, keys::QUARANTINE_POLICY)),
            variable("marked", &format!("{} || {}", marked("oldObject"), marked("object"))),
        ],
        holds: format!(
            "(request.operation == 'DELETE' && (request.userInfo.username in [{}] || (!variables.deny && request.userInfo.username == \
             '{COLLECTOR}'))) || (!variables.deny && !variables.marked && !({}))",
            listed(NAMESPACE_CONTROLLERS),
            is_at_least(install, TrustLevel::Enforced)
        ),
        message: format!(
            "NetworkPolicies {}, {} and <workload>{} are Drawbridge's alone: they cut off agents that have not proved who they are. What to do: open \
             what your Pods need with a NetworkPolicy under another name; who may decide how far trust is enforced sets label {} on the Namespace",
            keys::DEFAULT_DENY,
            keys::QUARANTINE_POLICY,
            keys::SUFFIX_SIGNATURE_POLICY,
            keys::LABEL_TRUST
        ),
        message_expression: None,
    };
    refusal(install, NAME, matched(), rule)
}

fn matched() -> NamedRuleWithOperations {
    let operations = ["CREATE", "UPDATE", "DELETE"].map(str::to_owned);
    NamedRuleWithOperations {
        operations: Some(operations.into()),
        ..written_in(("networking.k8s.io", "v1"), "networkpolicies")
    }
}
