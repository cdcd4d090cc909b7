//! `drawbridge-trust-pods`: an agent's Pod waits at the door until the NetworkPolicy of its namespace cuts it off, by the API server's own hand.
//! Where that is so the leader writes on a ServiceAccount, by the uids of the namespaces: the NetworkPolicy itself must not be the parameter, since the
//! API server stops hearing of NetworkPolicies for good once no policy takes them as parameters, be it for a second ([`keys::GATE`]).
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
    let list = |annotation: &str| format!("params.metadata.?annotations[?'{annotation}'].orValue('')");
    let variables = vec![
        variable("all", &is_at_least(install, TrustLevel::EnforcedAll)),
        variable(
            "armed",
            &format!("variables.all ? {} : {}", list(keys::ANNOTATION_ARMED_ALL), list(keys::ANNOTATION_ARMED)),
        ),
    ];
    let message = format!(
        "{}: NetworkPolicy {} of this namespace cuts off the Pods that have to prove first who they are, and is not there yet, or not as Drawbridge \
         writes it, so no such Pod is made. What to do: nothing, the controller makes it, and what makes the Pod tries again. If this lasts, \
         drawbridge doctor shows why",
        Reason::NetworkPolicyPending.code(),
        keys::DEFAULT_DENY
    );
    let validation = Validation {
        // The type that the API server has for a namespace spells it as no namespace does.
        expression: "dyn(namespaceObject).metadata.uid in variables.armed.split(',')".to_owned(),
        message: Some(message),
        message_expression: None,
        reason: None,
    };
    let [mut policy, _] = judging(install, NAME, pods("CREATE"), (Vec::new(), variables, vec![validation]));
    let kind = ParamKind { api_version: Some("v1".to_owned()), kind: Some("ServiceAccount".to_owned()) };
    policy["spec"]["paramKind"] = object(&kind);
    // Which namespaces and Pods, the bindings say.
    vec![
        policy,
        binding(install, NAME, (at_least(install, TrustLevel::Enforced), Some(agents()))),
        binding(install, ALL, (at_least(install, TrustLevel::EnforcedAll), None)),
    ]
}

fn binding(install: &Install, name: &str, (namespaces, objects): (LabelSelector, Option<LabelSelector>)) -> Value {
    object(&ValidatingAdmissionPolicyBinding {
        metadata: metadata(name, None),
        spec: Some(ValidatingAdmissionPolicyBindingSpec {
            policy_name: Some(NAME.to_owned()),
            validation_actions: Some(vec!["Deny".to_owned()]),
            param_ref: Some(ParamRef {
                name: Some(keys::ARMED.to_owned()),
                namespace: Some(install.namespace.clone()),
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
