//! What our own accounts may write, held by the API server: a stolen token of the controllers is worth no more than what the
//! controllers do. Rights name kinds and verbs; these policies name what of an object is ours.
//!
//! | policy | what it binds |
//! | --- | --- |
//! | `drawbridge-own-reach` | every write: kinds and operations of the table of rights, outside of exempt namespaces |
//! | `drawbridge-own-objects` | ConfigMaps, ServiceAccounts, Services, Secrets, claims, runs, Pods, Leases, AgentCards: only under names and marks of ours |
//! | `drawbridge-own-workloads` | workloads: our metadata, the template's, `suspend` of Jobs; all of it only where an Agent controls it |
//! | `drawbridge-own-kinds` | our own kinds: finalizers, never a spec |
//! | `drawbridge-own-beeai-agents` | Agents of BeeAI that are made: only those that a build keeps, by their marks |
//! | `drawbridge-own-webhooks` | webhook configurations: `caBundle` alone |
//! | `drawbridge-own-agents` | what is made for an Agent: as that Agent says |
//! | `drawbridge-own-agents-new`, `drawbridge-own-beeai-agents-new`, `drawbridge-own-beeai-compat-agents-new`, `drawbridge-own-builds-new`, `drawbridge-own-beeai-builds-new`, `drawbridge-own-beeai-compat-builds-new` | nothing is made for an Agent or a build in a namespace that holds none |
//! | `drawbridge-own-beeai-kept-new`, `drawbridge-own-beeai-compat-kept-new` | no Agent of BeeAI is made for a build in a namespace that holds none |
//! | `drawbridge-own-kaos-agents-new`, `drawbridge-own-kaos-modelapis-new`, `drawbridge-own-kaos-mcpservers-new` | the same of the kinds of KAOS |
//!
//! In: the installation. Out: policies, each followed by its binding. Promises: people are never asked; functions of CEL newer than 1.32
//! are not used. What cannot be bound: reads, evictions by the Pod, and these policies themselves, on which our accounts have no right.
//! A policy with parameters answers before its conditions when a parameter or its kind is missing, to everybody who is matched: so those
//! are matched by labels that only we write, and that nothing of the installation carries.

mod agents;
mod kinds;
mod objects;
mod reach;
mod webhooks;
mod workloads;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ParamKind, ParamRef, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation,
    Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;

use super::super::rbac::Role;
use super::super::selectors::condition;
use super::super::{FailureMode, Install, metadata, object};
use super::listed;
use crate::domain::keys;
use crate::store::Kind;
use crate::workloads::kaos::names::Role as KaosRole;

/// Whom a refusal speaks of.
const SUBJECT: &str = "the account of Drawbridge's controllers";

/// One policy.
struct Fence {
    name: &'static str,
    /// What it matches; and which of it, by labels of the object.
    rules: Vec<NamedRuleWithOperations>,
    objects: Option<LabelSelector>,
    /// When it applies, besides that it was our account.
    applies: Vec<MatchCondition>,
    variables: Vec<Variable>,
    validations: Vec<Validation>,
    params: Option<Params>,
}

/// The parameters of a policy: each is compared in turn, and for each the API server converts the object anew, so they have to be few.
struct Params {
    /// Of that kind, in the namespace of the request.
    kind: Kind,
    /// Which of them.
    selected: LabelSelector,
    /// What becomes of a request where there are none.
    missing: &'static str,
}

impl Fence {
    fn new(name: &'static str, rules: Vec<NamedRuleWithOperations>, validations: Vec<Validation>) -> Self {
        Self { name, rules, objects: None, applies: Vec::new(), variables: Vec::new(), validations, params: None }
    }
}

/// The policies, each followed by its binding.
pub(super) fn policies(install: &Install) -> Vec<Value> {
    fences(install).into_iter().map(|fence| served(install, fence)).flat_map(|fence| rendered(install, fence)).collect()
}

/// A policy whose parameters are of a kind that is not defined refuses whatever it matches, of other kinds as well. Where an installation leaves a
/// kind out there is nothing to compare with, and nothing is made for it.
fn served(install: &Install, fence: Fence) -> Fence {
    let Some(params) = fence.params.as_ref().filter(|params| !install.kinds.serves(params.kind.group())) else {
        return fence;
    };
    let held = match params.missing {
        "Deny" => holds("false".to_owned(), "makes nothing for kinds that are not served"),
        _ => holds("true".to_owned(), "makes nothing for kinds that are not served"),
    };
    Fence { params: None, variables: Vec::new(), validations: vec![held], ..fence }
}

fn fences(install: &Install) -> [Fence; 18] {
    [
        reach::fence(install),
        objects::fence(install),
        workloads::fence(),
        kinds::fence(),
        webhooks::fence(),
        agents::fence(),
        agents::new_agents(),
        agents::new_beeai_agents(keys::POLICY_OWN_BEEAI_AGENTS_NEW, Kind::BeeaiAgent),
        agents::new_beeai_agents(keys::POLICY_OWN_BEEAI_COMPAT_AGENTS_NEW, Kind::BeeaiCompatAgent),
        agents::new_builds(),
        agents::new_of_kaos(keys::POLICY_OWN_KAOS_AGENTS_NEW, (Kind::KaosAgent, KaosRole::Agent)),
        agents::new_of_kaos(keys::POLICY_OWN_KAOS_MODEL_APIS_NEW, (Kind::ModelApi, KaosRole::ModelApi)),
        agents::new_of_kaos(keys::POLICY_OWN_KAOS_MCP_SERVERS_NEW, (Kind::McpServer, KaosRole::McpServer)),
        agents::new_beeai_builds(keys::POLICY_OWN_BEEAI_BUILDS_NEW, Kind::BeeaiBuild),
        agents::new_beeai_builds(keys::POLICY_OWN_BEEAI_COMPAT_BUILDS_NEW, Kind::BeeaiCompatBuild),
        kinds::kept(),
        agents::new_kept(keys::POLICY_OWN_BEEAI_KEPT_NEW, Kind::BeeaiBuild),
        agents::new_kept(keys::POLICY_OWN_BEEAI_COMPAT_KEPT_NEW, Kind::BeeaiCompatBuild),
    ]
}

fn rendered(install: &Install, fence: Fence) -> [Value; 2] {
    let ours = format!("system:serviceaccount:{}:{}", install.namespace, Role::Controllers.name());
    let mut applies = vec![condition("by-our-account", &format!("request.userInfo.username == '{ours}'"))];
    applies.extend(fence.applies);
    let policy = ValidatingAdmissionPolicy {
        metadata: metadata(fence.name, None),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            param_kind: fence.params.as_ref().map(|params| ParamKind {
                api_version: Some(params.kind.api_version()),
                kind: Some(params.kind.as_str().to_owned()),
            }),
            match_constraints: Some(MatchResources {
                object_selector: fence.objects,
                resource_rules: Some(fence.rules),
                match_policy: Some("Equivalent".to_owned()),
                ..MatchResources::default()
            }),
            match_conditions: Some(applies),
            variables: Some(fence.variables).filter(|variables| !variables.is_empty()),
            validations: Some(fence.validations),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    };
    let binding = ValidatingAdmissionPolicyBinding {
        metadata: metadata(fence.name, None),
        spec: Some(ValidatingAdmissionPolicyBindingSpec {
            policy_name: Some(fence.name.to_owned()),
            validation_actions: Some(vec!["Deny".to_owned()]),
            param_ref: fence.params.map(|params| ParamRef {
                selector: Some(params.selected),
                parameter_not_found_action: Some(params.missing.to_owned()),
                ..ParamRef::default()
            }),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        }),
    };
    [object(&policy), object(&binding)]
}

/// What each policy says of the account of the controllers, for the reference.
pub(super) fn bounds() -> Vec<(&'static str, Vec<String>)> {
    let said = |fence: Fence| {
        let mut all: Vec<String> = Vec::new();
        for message in fence.validations.into_iter().filter_map(|validation| validation.message) {
            let what = message.strip_prefix(SUBJECT).and_then(|rest| rest.split_once(". What to do"));
            let what = what.map(|(what, _)| what.trim().to_owned()).unwrap_or_default();
            if !all.contains(&what) {
                all.push(what);
            }
        }
        (fence.name, all)
    };
    fences(&Install::new(FailureMode::Gate, keys::OPERATOR_NAMESPACE, "")).into_iter().map(said).collect()
}

/// What must hold, and what it is called.
fn holds(expression: String, what: &str) -> Validation {
    let message = format!(
        "{SUBJECT} {what}. What to do: for anything else use another account; if it was the operator itself, drawbridge doctor shows \
            whether the policies are those of its version"
    );
    Validation { expression, message: Some(message), reason: Some("Forbidden".to_owned()), message_expression: None }
}

fn variable(name: &str, expression: impl Into<String>) -> Variable {
    Variable { name: name.to_owned(), expression: expression.into() }
}

/// `new` and `old`, untyped: maps of a typed object cannot be taken apart where the API server checks types.
fn both() -> [Variable; 2] {
    [variable("new", "dyn(object)"), variable("old", "dyn(oldObject)")]
}

fn rule(group: &str, resources: &[&str], operations: &[&str]) -> NamedRuleWithOperations {
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    NamedRuleWithOperations {
        api_groups: texts(&[group]),
        api_versions: texts(&["*"]),
        operations: texts(operations),
        resources: texts(resources),
        resource_names: None,
        scope: None,
    }
}

/// The owner references of `of` by which an object of ours controls it, as a list.
fn controllers(of: &str, kind: &str) -> String {
    // What is made for the kinds of KAOS has other names than theirs: [`made_for_kaos`].
    let of_others = |one: &&Kind| one.group() != keys::GROUP_KAOS;
    let groups =
        Kind::ALL.iter().filter(|one| one.descriptor().crd.is_some() && one.as_str() == kind).filter(of_others);
    let groups: Vec<_> = groups.map(|one| format!("o.apiVersion.startsWith('{}/')", one.group())).collect();
    format!(
        "{of}.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false) && o.kind == '{kind}' && \
         ({}))",
        groups.join(" || ")
    )
}

/// That an object of KAOS controls `of`.
fn of_kaos(of: &str) -> String {
    format!(
        "{of}.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.apiVersion.startsWith('{}/'))",
        keys::GROUP_KAOS
    )
}

/// The same, and that `of` has the name that what is made for that one has: by kind, what stands before the owner's name.
fn made_for_kaos(of: &str, names: &[(KaosRole, &str)]) -> String {
    let one = |(role, prefix): &(KaosRole, &str)| {
        format!("(o.kind == '{}' && {of}.metadata.name == '{prefix}' + o.name)", role.kind())
    };
    format!(
        "{of}.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && o.apiVersion.startsWith('{}/') && ({}))",
        keys::GROUP_KAOS,
        names.iter().map(one).collect::<Vec<_>>().join(" || ")
    )
}

/// What stands before the names of Deployments and Services of KAOS.
const KAOS_WORKLOADS: [(KaosRole, &str); 3] = [
    (KaosRole::Agent, KaosRole::Agent.prefix()),
    (KaosRole::ModelApi, KaosRole::ModelApi.prefix()),
    (KaosRole::McpServer, KaosRole::McpServer.prefix()),
];

/// That a member of the metadata, or of the object, is as before.
fn same(member: &str) -> String {
    format!("variables.new.{member} == variables.old.{member}")
}

/// That the labels or annotations are as before, but for keys of which `ours` holds (of `k`, the key).
fn same_but(member: &str, ours: &str) -> String {
    let others = |of: &str| format!("variables.{of}.metadata.?{member}.orValue({{}}).transformMap(k, v, !({ours}), v)");
    format!("{} == {}", others("new"), others("old"))
}

/// The beginning of a key that is ours.
fn our_prefix() -> String {
    format!("k.startsWith('{}')", keys::PREFIX)
}

#[cfg(test)]
mod tests;
