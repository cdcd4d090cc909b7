//! `drawbridge-trust-pods`: an agent's Pod waits at the door until the NetworkPolicy of its namespace cuts it off, by the API server's own hand.
//! Whoever makes Pods tries again by himself (measured: a Job loses no try).

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, ParamKind, ParamRef, ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec,
    Validation,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::super::super::{Install, metadata, object};
use super::super::{judging, pods, variable};
use super::{agents, at_least, is_at_least};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::trust::TrustLevel;

/// Its name, and that of the binding for agents.
const NAME: &str = "drawbridge-trust-pods";
/// Name of the binding for every Pod.
const ALL: &str = "drawbridge-trust-all-pods";

pub(super) fn policy(install: &Install) -> Vec<Value> {
    let variables = vec![
        variable("all", &is_at_least(install, TrustLevel::EnforcedAll)),
        variable("spec", "dyn(params.spec)"),
        variable("selector", "variables.spec.?podSelector.orValue({})"),
    ];
    let message = format!(
        "{}: NetworkPolicy {} of this namespace cuts off the Pods that have to prove first who they are, and is not as Drawbridge writes it, so \
         no such Pod is made yet. What to do: nothing, the controller corrects it, and what makes the Pod tries \
         again. If this lasts, drawbridge doctor shows why",
        Reason::NetworkPolicyPending.code(),
        keys::DEFAULT_DENY
    );
    let validation = Validation {
        expression: cuts_off(&install.namespace),
        message: Some(message),
        message_expression: None,
        reason: None,
    };
    let [mut policy, _] = judging(install, NAME, pods("CREATE"), (Vec::new(), variables, vec![validation]));
    let kind =
        ParamKind { api_version: Some("networking.k8s.io/v1".to_owned()), kind: Some("NetworkPolicy".to_owned()) };
    policy["spec"]["paramKind"] = object(&kind);
    // Which namespaces and Pods, the bindings say.
    vec![
        policy,
        binding(NAME, (at_least(install, TrustLevel::Enforced), Some(agents()))),
        binding(ALL, (at_least(install, TrustLevel::EnforcedAll), None)),
    ]
}

fn binding(name: &str, (namespaces, objects): (LabelSelector, Option<LabelSelector>)) -> Value {
    object(&ValidatingAdmissionPolicyBinding {
        metadata: metadata(name, None),
        spec: Some(ValidatingAdmissionPolicyBindingSpec {
            policy_name: Some(NAME.to_owned()),
            validation_actions: Some(vec!["Deny".to_owned()]),
            // Without a namespace it is looked up in the Pod's own.
            param_ref: Some(ParamRef {
                name: Some(keys::DEFAULT_DENY.to_owned()),
                parameter_not_found_action: Some("Deny".to_owned()),
                ..ParamRef::default()
            }),
            match_resources: Some(MatchResources {
                namespace_selector: Some(namespaces),
                object_selector: objects,
                match_policy: Some("Equivalent".to_owned()),
                ..MatchResources::default()
            }),
        }),
    })
}

/// That the policy selects every agent (or every Pod) both ways, but those in quarantine, whose label no new Pod has, and opens nothing but our own namespace and single addresses.
fn cuts_off(own: &str) -> String {
    let marked = format!(
        "params.metadata.?labels[?'{}'].orValue('') == '{}'",
        keys::LABEL_APP_MANAGED_BY,
        keys::MANAGED_BY_DRAWBRIDGE
    );
    let selects = format!(
        "variables.selector.?matchExpressions.orValue([]).all(e, e.?key.orValue('') == '{}' && e.?operator.orValue('') == 'DoesNotExist') && \
         variables.selector.?matchLabels.orValue({{}}).all(k, \
         !variables.all && k == '{}' && variables.selector.matchLabels[k] == 'agent')",
        keys::LABEL_QUARANTINED,
        keys::LABEL_TYPE
    );
    let both = "['Ingress', 'Egress'].all(t, t in variables.spec.?policyTypes.orValue([]))";
    let ingress = format!(
        "variables.spec.?ingress.orValue([]).all(r, r.?from.orValue([]).size() > 0 && r.from.all(p, \
         p.?namespaceSelector.?matchLabels[?'{}'].orValue('') == '{own}'))",
        keys::LABEL_NAMESPACE_NAME
    );
    let egress = "variables.spec.?egress.orValue([]).all(r, r.?ports.orValue([]).size() > 0 && r.?to.orValue([]).size() > 0 && r.to.all(p, \
                  p.?ipBlock.?cidr.orValue('').endsWith('/32') || p.?ipBlock.?cidr.orValue('').endsWith('/128')))";
    [marked, selects, both.to_owned(), ingress, egress.to_owned()].join(" && ")
}
