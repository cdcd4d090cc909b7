//! The webhook configurations.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::kinds::Kinds;
use super::selectors::{self, Reach};
use super::{FailureMode, Install, metadata, object};
use crate::api::{agent_kagenti_dev, beeai_dev, kaos_tools};
use crate::config::trust::Trust;
use crate::domain::keys;
use crate::server::guards::Kind as Guard;

/// Seconds the API server waits for an answer.
const TIMEOUT_SECONDS: i32 = 10;
/// Without it AKS changes the namespace selectors of every webhook, again and again: namespaces that carry label `control-plane` are left out, a GitOps
/// tool puts back what is changed once more, and server-side apply meets a conflict. That is to protect the namespaces of the cluster itself; the entries
/// for Pods and workloads leave those out as they are, and the others are about our own kinds.
const LEFT_ALONE: (&str, &str) = ("admissions.enforcer/disabled", "true");

/// The two configurations. No `caBundle`: the running webhook publishes it.
#[must_use]
pub fn objects(install: &Install) -> Vec<Value> {
    vec![object(&mutating(install)), object(&validating(install))]
}

/// Kind and name of both, for whoever looks whether they are there.
#[must_use]
pub fn installed() -> [(Guard, String); 2] {
    Guard::WEBHOOKS.map(|kind| (kind, keys::WEBHOOK_CONFIGURATION.to_owned()))
}

/// The command that puts them back. The shipped file also holds every policy, rendered for the shipped namespace, for all namespaces and kinds,
/// and for a platform file that enforces no trust: over another installation it would undo that one.
///
/// `trust`: what the platform file in force says of it, `None` where nobody knows; that of `install` counts for nothing here, and an empty
/// namespace is one that nobody knows.
#[must_use]
pub fn repair(install: &Install, trust: Option<&Trust>) -> String {
    let mut flags = Vec::new();
    match install.namespace.as_str() {
        keys::OPERATOR_NAMESPACE => {}
        "" => flags.push("--namespace NAME".to_owned()),
        namespace => flags.push(format!("--namespace {namespace}")),
    }
    if !install.namespaces.is_empty() {
        flags.push("--watch-namespaces NAMES".to_owned());
    }
    flags.extend(install.kinds.argument());
    if trust.is_none_or(|trust| trust.default.enforces() || trust.floor.enforces()) {
        flags.push("--platform-file FILE".to_owned());
    }
    match (flags.is_empty(), install.failure_mode) {
        (true, FailureMode::Fail) => return shipped("manifests/webhooks/fail.yaml"),
        (true, FailureMode::Gate) => return shipped("manifests/webhooks/gate.yaml"),
        (false, FailureMode::Fail) => {}
        (false, FailureMode::Gate) => flags.insert(0, "--failure-mode gate".to_owned()),
    }
    format!(
        "`kubectl apply` of what `drawbridge render {} …` printed for this installation (docs/tasks/upgrade.md says how to take its flags and \
         settings along)",
        flags.join(" ")
    )
}

fn shipped(file: &str) -> String {
    format!("`kubectl apply -f {file}` (of the installed version)")
}

/// Metadata of both configurations.
fn named() -> ObjectMeta {
    let (key, value) = LEFT_ALONE;
    let mut metadata = metadata(keys::WEBHOOK_CONFIGURATION, None);
    metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    metadata
}

fn mutating(install: &Install) -> MutatingWebhookConfiguration {
    MutatingWebhookConfiguration {
        metadata: named(),
        webhooks: Some(if install.kinds.injects() {
            vec![injection(install), trust_label(install), completion(install)]
        } else {
            Vec::new()
        }),
    }
}

fn injection(install: &Install) -> MutatingWebhook {
    let Reach { namespaces, objects, conditions } =
        selectors::enrolled_pods(&install.namespace).within(&install.namespaces);
    let failure_policy = match install.failure_mode {
        FailureMode::Fail => "Fail",
        // The policy's scheduling gate holds what the webhook did not see.
        FailureMode::Gate => "Ignore",
    };
    MutatingWebhook {
        name: keys::WEBHOOK_INJECT.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client(install, keys::PATH_INJECT),
        failure_policy: Some(failure_policy.to_owned()),
        match_conditions: Some(conditions),
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(namespaces),
        object_selector: Some(objects),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        rules: Some(vec![rule("", "v1", &["pods"], &["CREATE"])]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
    }
}

/// Takes the trust label off Pods whose template brings it, whether injection is about them or not. A Pod that still has it is refused by the
/// API server's own policy, so nobody depends on the answer who leaves it out.
fn trust_label(install: &Install) -> MutatingWebhook {
    let Reach { namespaces, objects, conditions } =
        selectors::trust_labelled_pods(&install.namespace).within(&install.namespaces);
    MutatingWebhook {
        name: keys::WEBHOOK_TRUST.to_owned(),
        failure_policy: Some("Fail".to_owned()),
        match_conditions: Some(conditions).filter(|conditions| !conditions.is_empty()),
        namespace_selector: Some(namespaces),
        object_selector: Some(objects),
        ..injection(install)
    }
}

/// Completes AgentBuilds. An AgentBuild that nobody completed would be refused anyway, with less to go by.
fn completion(install: &Install) -> MutatingWebhook {
    let Reach { namespaces, objects, conditions } = selectors::living_objects().within(&install.namespaces);
    MutatingWebhook {
        name: keys::WEBHOOK_COMPLETE_BUILD.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client(install, keys::PATH_COMPLETE_BUILD),
        failure_policy: Some("Fail".to_owned()),
        match_conditions: Some(conditions),
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(namespaces),
        object_selector: Some(objects),
        reinvocation_policy: Some("IfNeeded".to_owned()),
        rules: Some(vec![own_kind("agentbuilds")]),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(TIMEOUT_SECONDS),
    }
}

fn validating(install: &Install) -> ValidatingWebhookConfiguration {
    let beeai_agents = || beeai(install, (keys::WEBHOOK_BEEAI_AGENT, keys::PATH_BEEAI_AGENT), "agents");
    let beeai_builds = || beeai(install, (keys::WEBHOOK_BEEAI_BUILD, keys::PATH_BEEAI_BUILD), "agentbuilds");
    let all = || {
        vec![
            advice(install),
            agent_runtimes(install),
            strict(install, (keys::WEBHOOK_AGENT_BUILD, keys::PATH_AGENT_BUILD), "agentbuilds"),
            strict(install, (keys::WEBHOOK_AGENT, keys::PATH_AGENT), "agents"),
            beeai_agents(),
            beeai_builds(),
            kaos(install),
            strict(install, (keys::WEBHOOK_AGENT_CARD, keys::PATH_AGENT_CARD), "agentcards"),
        ]
    };
    let webhooks = match install.kinds {
        Kinds::All => all(),
        Kinds::Kaos => vec![kaos(install)],
        Kinds::Beeai => vec![beeai_agents(), beeai_builds()],
    };
    ValidatingWebhookConfiguration { metadata: named(), webhooks: Some(webhooks) }
}

/// Tells people what will happen to the Pods of what they apply, and that a label on a Namespace enrols, or switches, nothing.
fn advice(install: &Install) -> ValidatingWebhook {
    let rules = vec![
        rule("apps", "v1", &["deployments", "statefulsets", "daemonsets", "replicasets"], &["CREATE", "UPDATE"]),
        rule("batch", "v1", &["jobs", "cronjobs"], &["CREATE", "UPDATE"]),
        RuleWithOperations {
            scope: Some("Cluster".to_owned()),
            ..rule("", "v1", &["namespaces"], &["CREATE", "UPDATE"])
        },
    ];
    validator(
        install,
        (keys::WEBHOOK_EXPLAIN, keys::PATH_EXPLAIN),
        selectors::labelled_workloads(&install.namespace),
        rules,
    )
}

/// Judges AgentRuntimes; not their status, and not while they are being deleted.
fn agent_runtimes(install: &Install) -> ValidatingWebhook {
    let rules = vec![own_kind("agentruntimes")];
    validator(install, (keys::WEBHOOK_AGENT_RUNTIME, keys::PATH_AGENT_RUNTIME), selectors::living_objects(), rules)
}

/// Judges a kind of ours whose wrong objects must not be stored; not its status, and not while it is being deleted.
fn strict(install: &Install, names: (&str, &str), resource: &str) -> ValidatingWebhook {
    strictly(install, names, vec![own_kind(resource)])
}

/// Judges a kind of both groups of BeeAI. The authority of the webhook is published in this configuration alone, so the rule for the
/// group of the original operator stands here, too; while that is not served it matches nothing.
fn beeai(install: &Install, names: (&str, &str), resource: &str) -> ValidatingWebhook {
    let of = |group| rule(group, beeai_dev::VERSION, &[resource], &["CREATE", "UPDATE"]);
    let rules = [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT].map(of);
    strictly(install, names, rules.into())
}

/// Judges the kinds of KAOS.
fn kaos(install: &Install) -> ValidatingWebhook {
    let rules = vec![rule(
        keys::GROUP_KAOS,
        kaos_tools::VERSION,
        &["agents", "modelapis", "mcpservers"],
        &["CREATE", "UPDATE"],
    )];
    strictly(install, (keys::WEBHOOK_KAOS, keys::PATH_KAOS), rules)
}

fn strictly(install: &Install, names: (&str, &str), rules: Vec<RuleWithOperations>) -> ValidatingWebhook {
    let judges = validator(install, names, selectors::living_objects(), rules);
    ValidatingWebhook { failure_policy: Some("Fail".to_owned()), timeout_seconds: Some(TIMEOUT_SECONDS), ..judges }
}

fn own_kind(resource: &str) -> RuleWithOperations {
    rule(agent_kagenti_dev::GROUP, "v1alpha1", &[resource], &["CREATE", "UPDATE"])
}

fn validator(
    install: &Install,
    (name, path): (&str, &str),
    reach: Reach,
    rules: Vec<RuleWithOperations>,
) -> ValidatingWebhook {
    let Reach { namespaces, objects, conditions } = reach.within(&install.namespaces);
    ValidatingWebhook {
        name: name.to_owned(),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client(install, path),
        // Losing the advice must never cost the object: what matters is settled by controllers.
        failure_policy: Some("Ignore".to_owned()),
        match_conditions: Some(conditions),
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(namespaces),
        object_selector: Some(objects),
        rules: Some(rules),
        side_effects: "None".to_owned(),
        // Advice that is late is worth less than a quick `kubectl apply`.
        timeout_seconds: Some(TIMEOUT_SECONDS / 2),
    }
}

fn client(install: &Install, path: &str) -> WebhookClientConfig {
    WebhookClientConfig {
        service: Some(ServiceReference {
            name: keys::SERVICE_WEBHOOK.to_owned(),
            namespace: install.namespace.clone(),
            path: Some(path.to_owned()),
            port: Some(443),
        }),
        ..WebhookClientConfig::default()
    }
}

fn rule(group: &str, version: &str, resources: &[&str], operations: &[&str]) -> RuleWithOperations {
    let owned = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    RuleWithOperations {
        api_groups: owned(&[group]),
        api_versions: owned(&[version]),
        operations: owned(operations),
        resources: owned(resources),
        scope: Some("Namespaced".to_owned()),
    }
}
