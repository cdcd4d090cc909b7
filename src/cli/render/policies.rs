//! What the API server holds by itself, also while no replica is there.
//!
//! | policy | what it does | when |
//! | --- | --- | --- |
//! | `drawbridge-gate` (mutating) | puts scheduling gate `drawbridge/injection` on enrolled Pods | mode `gate` |
//! | `drawbridge-gate-removal` | refuses an update that takes the gate off | mode `gate` |
//! | `drawbridge-runtime-config` | refuses changes of what was injected into a Pod that runs: our notes, its type, images of sidecars | always |
//! | `drawbridge-pod-bindings` | refuses our labels and annotations on Bindings, which would reach the Pod past the policy above | always |
//! | `drawbridge-weakened-proxy` | warns of ephemeral containers that pass for the proxy, and of resizes that starve it; refuses nothing | always |
//! | `drawbridge-custom-steps` | refuses steps of a person's own from whoever may not create PipelineRuns | always |
//! | `drawbridge-build-records` | refuses that anybody but us writes what an AgentBuild's status says of how its image was made, or changes which image that is | always |
//! | `drawbridge-agent-pods` | refuses Agents whose Pod asks for powers from whoever may create neither Pods nor Deployments | always |
//! | `drawbridge-agent-secrets`, `drawbridge-build-secrets`, `drawbridge-beeai-agent-secrets`, `drawbridge-beeai-build-secrets` | refuse Agents and AgentBuilds that refer to a Secret from whoever may not have it | always |
//! | `drawbridge-beeai-compat-agent-secrets`, `drawbridge-beeai-compat-build-secrets` | the same for the kinds of `beeai.beeai.dev` | with the manifest of that group |
//! | `drawbridge-trust-…` | hold what follows from what cards prove ([`trust`]) | always |
//! | `drawbridge-kaos-…-powers` | refuse code and powers in the kinds of KAOS from whoever may create neither Pods nor Deployments | always |
//! | `drawbridge-kaos-…-secrets` | refuse objects of KAOS that refer to a Secret from whoever may not have it | always |
//! | `drawbridge-own-…` | bind what our own accounts may write ([`own_accounts`]) | always |
//!
//! The gate's expression was tried on a real 1.36 API server. Two things there are not as documented: a list of typed
//! objects (`[Object.spec.schedulingGates{…}]`) as a patch value ends in a panic of the API server, so plain maps are
//! used; and `ApplyConfiguration` refuses Pods that set an environment variable twice, so JSON patches are used.

mod agent_pods;
mod bindings;
mod build_records;
mod kaos;
mod own_accounts;
mod running_pods;
mod secrets;
mod trust;
mod weakened;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MatchResources, NamedRuleWithOperations, ParamKind, ParamRef, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec, Validation,
    Variable,
};
use serde_json::Value;

use super::selectors::{self, Reach, condition};
use super::{FailureMode, Install, metadata, object};
use crate::api::foreign::mutating_policy::{
    API_VERSION, BindingSpec, JsonPatchExpression, KIND_BINDING, KIND_POLICY, MatchConstraints,
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, Mutation, PolicySpec,
};
use crate::domain::keys;
use crate::server::guards::Kind as Guard;

/// Name of the policy that refuses to take the gate off.
pub const POLICY_GATE_REMOVAL: &str = "drawbridge-gate-removal";
/// Name of the policy that keeps what was injected into a Pod as it was admitted.
pub const POLICY_RUNTIME_CONFIG: &str = "drawbridge-runtime-config";
/// Name of the policy that keeps Bindings from changing what was admitted.
pub const POLICY_POD_BINDINGS: &str = "drawbridge-pod-bindings";
/// Name of the policy that warns of changes that weaken the proxy of a running Pod.
pub const POLICY_WEAKENED_PROXY: &str = "drawbridge-weakened-proxy";
/// Name of the policy that asks for the right to run what a custom step runs.
pub const POLICY_CUSTOM_STEPS: &str = "drawbridge-custom-steps";
/// Name of the policy that asks for the right to run what an Agent's Pod asks for.
pub const POLICY_AGENT_PODS: &str = "drawbridge-agent-pods";

/// The policies of the mode, each followed by its binding.
#[must_use]
pub fn objects(install: &Install) -> Vec<Value> {
    let mut objects = Vec::new();
    if install.mode() == FailureMode::Gate {
        objects.push(object(&gate(install)));
        objects.push(object(&gate_binding(install)));
        objects.extend(refusal(install, POLICY_GATE_REMOVAL, pods_updated(), gate_removal()));
    }
    let mut running = refusal(install, POLICY_RUNTIME_CONFIG, running_pods::matched(), running_pods::rule());
    running[0]["spec"]["matchConstraints"]["objectSelector"] = object(&running_pods::selected());
    objects.extend(running);
    objects.extend(refusal(install, POLICY_POD_BINDINGS, bindings::matched(), bindings::rule()));
    objects.extend(warning(install, POLICY_WEAKENED_PROXY, weakened::resources(), weakened::rule()));
    objects.extend(refusal(install, POLICY_CUSTOM_STEPS, written("agentbuilds"), custom_steps(install)));
    objects.extend(build_records::policy(install));
    objects.extend(refusal(install, POLICY_AGENT_PODS, written("agents"), agent_pods::rule()));
    objects.extend(secrets::objects(install));
    objects.extend(secrets::beeai(install));
    objects.extend(trust::policies(install));
    objects.extend(kaos::objects(install));
    objects.extend(secrets::kaos(install));
    objects.extend(own_accounts::policies(install));
    objects
}

/// The policies for the kinds of the compatible group, each followed by its binding.
#[must_use]
pub fn compat(install: &Install) -> Vec<Value> {
    secrets::beeai_compat(install).into()
}

/// Kind and name of everything that [`objects`] are in a failure mode, for whoever looks whether it is there.
#[must_use]
pub fn installed(failure_mode: FailureMode) -> Vec<(Guard, String)> {
    named(&objects(&Install::new(failure_mode, keys::OPERATOR_NAMESPACE, "")))
}

/// The same of [`compat`], which has to be there while the kinds of that group are served.
#[must_use]
pub fn installed_compat() -> Vec<(Guard, String)> {
    named(&compat(&Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "")))
}

/// Kind and name of these policies and bindings.
#[must_use]
pub fn named(objects: &[Value]) -> Vec<(Guard, String)> {
    let of = |object: &Value| {
        let (kind, name) = (object["kind"].as_str()?, object["metadata"]["name"].as_str()?);
        Some((Guard::ALL.into_iter().find(|guard| guard.as_str() == kind)?, name.to_owned()))
    };
    objects.iter().filter_map(of).collect()
}

/// Every policy that binds our own accounts, with what it says of them.
#[must_use]
pub fn own_bounds() -> Vec<(&'static str, Vec<String>)> {
    own_accounts::bounds()
}

fn gate(install: &Install) -> MutatingAdmissionPolicy {
    let Reach { namespaces, objects, conditions } =
        selectors::enrolled_pods(&install.namespace).within(&install.namespaces);
    let gate = keys::SCHEDULING_GATE;
    let expression = format!(
        "!variables.enrolled ? []\n\
         : !has(object.spec.schedulingGates) ? [JSONPatch{{op: 'add', path: '/spec/schedulingGates', value: [{{'name': '{gate}'}}]}}]\n\
         : object.spec.schedulingGates.exists(gate, gate.name == '{gate}') ? []\n\
         : [JSONPatch{{op: 'add', path: '/spec/schedulingGates/-', value: {{'name': '{gate}'}}}}]"
    );
    MutatingAdmissionPolicy {
        api_version: API_VERSION.to_owned(),
        kind: KIND_POLICY.to_owned(),
        metadata: metadata(keys::GATE, None),
        spec: PolicySpec {
            // Also when the parameters lack the types: a Pod of which we do not know whether it is ours waits at the door.
            failure_policy: "Fail".to_owned(),
            // Policies run before webhooks: a second run would put back the gate that the webhook has just taken off.
            reinvocation_policy: "Never".to_owned(),
            param_kind: Some(ParamKind { api_version: Some("v1".to_owned()), kind: Some("ServiceAccount".to_owned()) }),
            match_constraints: MatchConstraints {
                namespace_selector: namespaces,
                object_selector: objects,
                resource_rules: vec![pods("CREATE")],
                match_policy: "Equivalent".to_owned(),
            },
            match_conditions: conditions,
            variables: vec![Variable {
                name: "enrolled".to_owned(),
                expression: format!(
                    "object.metadata.labels['{}'] in params.metadata.annotations['{}'].split(',')",
                    keys::LABEL_TYPE,
                    keys::ANNOTATION_GATED_TYPES
                ),
            }],
            mutations: vec![Mutation {
                patch_type: "JSONPatch".to_owned(),
                json_patch: JsonPatchExpression { expression },
            }],
        },
    }
}

fn gate_binding(install: &Install) -> MutatingAdmissionPolicyBinding {
    MutatingAdmissionPolicyBinding {
        api_version: API_VERSION.to_owned(),
        kind: KIND_BINDING.to_owned(),
        metadata: metadata(keys::GATE, None),
        spec: BindingSpec {
            policy_name: keys::GATE.to_owned(),
            param_ref: Some(ParamRef {
                name: Some(keys::GATE.to_owned()),
                namespace: Some(install.namespace.clone()),
                parameter_not_found_action: Some("Deny".to_owned()),
                selector: None,
            }),
        },
    }
}

/// A rule: when it applies, what must hold, and what a person is told otherwise.
struct Refusal {
    applies: Vec<MatchCondition>,
    /// Parts of what must hold, each of which may use those before it.
    variables: Vec<Variable>,
    holds: String,
    message: String,
    /// The same with what was found, as an expression; `message` where it cannot be evaluated.
    message_expression: Option<String>,
}

fn gate_removal() -> Refusal {
    let gated = |object: &str| {
        format!("{object}.spec.?schedulingGates.orValue([]).exists(gate, gate.name == '{}')", keys::SCHEDULING_GATE)
    };
    Refusal {
        applies: vec![condition("was-gated", &gated("oldObject"))],
        variables: Vec::new(),
        holds: gated("object"),
        message: format!(
            "scheduling gate {} is taken off only by the Drawbridge webhook while it admits the Pod: this Pod was created while no webhook \
             answered, and would run without its sidecars; delete it, and its controller makes another one",
            keys::SCHEDULING_GATE
        ),
        message_expression: None,
    }
}

/// A step that is not the platform's runs whatever its author likes, with the build's ServiceAccount: whoever brings one must have the right
/// to create such runs himself. Asked of the API server, because only it knows the rights of the person. It applies to steps of a person's own and
/// to steps of a namespace that is not the operator's, whose ConfigMaps a tenant may write; when an AgentBuild is made and when its pipeline changes,
/// so that neither the garbage collector nor a change of labels is asked. Whoever accepts steps whose content has
/// changed since the review, by a refresh, brings them.
fn custom_steps(install: &Install) -> Refusal {
    let Reach { mut conditions, .. } = selectors::living_objects();
    let origin = keys::ANNOTATION_PIPELINE_ORIGIN;
    let hashes = |of: &str| format!("{of}.metadata.?annotations[?'{}'].orValue('')", keys::ANNOTATION_STEP_HASHES);
    conditions.push(condition(
        "has-steps-of-its-own",
        &format!(
            "object.spec.?pipeline.?steps.orValue([]).size() > 0 && \
             (!object.metadata.?annotations[?'{origin}'].orValue('{}').startsWith('{}') || object.spec.?pipeline.?namespace.orValue('') != '{}')",
            keys::ORIGIN_USER,
            keys::ORIGIN_TEMPLATE_PREFIX,
            install.namespace
        ),
    ));
    conditions.push(condition(
        "pipeline-is-new",
        &format!(
            "request.operation == 'CREATE' || object.spec.?pipeline != oldObject.spec.?pipeline || object.spec.?mode != oldObject.spec.?mode || \
             {} != {}",
            hashes("object"),
            hashes("oldObject")
        ),
    ));
    Refusal {
        applies: conditions,
        variables: Vec::new(),
        holds: "authorizer.group('tekton.dev').resource('pipelineruns').namespace(request.namespace).check('create').allowed()"
            .to_owned(),
        message: "spec.pipeline.steps: steps of one's own, and steps of another namespace than the operator's, run as any Pod of this \
                  namespace could, so they are taken only from people who may create pipelineruns.tekton.dev here. What to do: leave \
                  spec.pipeline out to build with the template of the mode, or ask for that right"
            .to_owned(),
        message_expression: None,
    }
}

fn refusal(install: &Install, name: &str, resources: NamedRuleWithOperations, rule: Refusal) -> [Value; 2] {
    let validation = Validation {
        expression: rule.holds,
        message: Some(rule.message),
        message_expression: rule.message_expression,
        reason: Some("Forbidden".to_owned()),
    };
    judging(install, name, resources, (rule.applies, rule.variables, vec![validation]))
}

/// A policy that only says something: neither what it finds nor its own failure stops anybody.
fn warning(
    install: &Install,
    name: &str,
    resources: NamedRuleWithOperations,
    rule: (Vec<MatchCondition>, Vec<Variable>, Vec<Validation>),
) -> [Value; 2] {
    let [mut policy, mut binding] = judging(install, name, resources, rule);
    policy["spec"]["failurePolicy"] = "Ignore".into();
    binding["spec"]["validationActions"] = serde_json::json!(["Warn"]);
    [policy, binding]
}

/// A policy with its binding: when it applies, parts of what must hold, and what must hold.
fn judging(
    install: &Install,
    name: &str,
    resources: NamedRuleWithOperations,
    (applies, variables, validations): (Vec<MatchCondition>, Vec<Variable>, Vec<Validation>),
) -> [Value; 2] {
    let Reach { namespaces, .. } = selectors::living_objects().within(&install.namespaces);
    let policy = ValidatingAdmissionPolicy {
        metadata: metadata(name, None),
        spec: Some(ValidatingAdmissionPolicySpec {
            failure_policy: Some("Fail".to_owned()),
            match_constraints: Some(MatchResources {
                namespace_selector: (!install.namespaces.is_empty()).then_some(namespaces),
                resource_rules: Some(vec![resources]),
                match_policy: Some("Equivalent".to_owned()),
                ..MatchResources::default()
            }),
            match_conditions: Some(applies).filter(|conditions| !conditions.is_empty()),
            variables: Some(variables).filter(|variables| !variables.is_empty()),
            validations: Some(validations),
            ..ValidatingAdmissionPolicySpec::default()
        }),
        status: None,
    };
    let binding = ValidatingAdmissionPolicyBinding {
        metadata: metadata(name, None),
        spec: Some(ValidatingAdmissionPolicyBindingSpec {
            policy_name: Some(name.to_owned()),
            validation_actions: Some(vec!["Deny".to_owned()]),
            ..ValidatingAdmissionPolicyBindingSpec::default()
        }),
    };
    [object(&policy), object(&binding)]
}

fn listed<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    texts.into_iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(", ")
}

fn variable(name: &str, expression: &str) -> Variable {
    Variable { name: name.to_owned(), expression: expression.to_owned() }
}

fn pods_updated() -> NamedRuleWithOperations {
    pods("UPDATE")
}

/// Our own kind, made or changed.
fn written(resource: &str) -> NamedRuleWithOperations {
    written_in((keys::GROUP_AGENT, "v1alpha1"), resource)
}

/// A resource of that group and version, made or changed.
fn written_in((group, version): (&str, &str), resource: &str) -> NamedRuleWithOperations {
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    NamedRuleWithOperations {
        api_groups: texts(&[group]),
        api_versions: texts(&[version]),
        operations: texts(&["CREATE", "UPDATE"]),
        resources: texts(&[resource]),
        resource_names: None,
        scope: Some("Namespaced".to_owned()),
    }
}

fn pods(operation: &str) -> NamedRuleWithOperations {
    let one = |text: &str| Some(vec![text.to_owned()]);
    NamedRuleWithOperations {
        api_groups: one(""),
        api_versions: one("v1"),
        operations: one(operation),
        resources: one("pods"),
        resource_names: None,
        scope: Some("Namespaced".to_owned()),
    }
}
