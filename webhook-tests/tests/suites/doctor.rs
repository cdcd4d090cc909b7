//! `drawbridge doctor` on a real control plane: nothing to find where all is well, and each broken thing by name.
//!
//! The rendered Deployments run as kwok Pods beside the processes that do the work, so that the checks of Deployments are
//! asked as well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::reference;
use drawbridge::cli::render::{self, FailureMode, Install, compat, platform};
use drawbridge::domain::keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, Role};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::Instant;
use webhook_tests::endurance::load::{gated, injected};
use webhook_tests::endurance::until_created;
use webhook_tests::installation::apply;
use webhook_tests::patience::patience;
use webhook_tests::pki::Authority;
use webhook_tests::{
    ControlPlane, Hook, Installation, Installing, Options, Port, dial, hook, installation, programs, wait_for,
    wait_until,
};

use crate::builds::stage::define;

/// What the rendered Deployments run; nobody pulls it.
pub(crate) const IMAGE: &str = "drawbridge.invalid/drawbridge:test";

/// What is said of a review that took long.
const SLOW: &str = "but took";

/// One run: exit code, and the checks.
pub(crate) struct Visit {
    code: i32,
    checks: Vec<Value>,
}

impl Visit {
    async fn of(kubeconfig: &Path) -> Result<Visit> {
        Self::with(kubeconfig, &["-n", "default"]).await
    }

    async fn with(kubeconfig: &Path, more: &[&str]) -> Result<Visit> {
        let mut command = Command::new(programs::workspace("drawbridge")?);
        command.args(["doctor", "-o", "json", "--kubeconfig"]).arg(kubeconfig).args(more);
        let output = command.output().await?;
        let code = output.status.code().context("it ends by itself")?;
        let checks = serde_json::from_slice(&output.stdout).unwrap_or_default();
        ensure!(code != 2, "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Visit { code, checks })
    }

    /// Findings as `(name, what was seen)`, but for those of [`Visit::is_slow`].
    fn findings(&self) -> Vec<(&str, &str)> {
        self.found().filter(|(_, seen)| !seen.contains(SLOW)).collect()
    }

    /// Whether a review took longer than a person would like: how fast the machine is decides no test.
    fn is_slow(&self) -> bool {
        self.found().any(|(_, seen)| seen.contains(SLOW))
    }

    fn found(&self) -> impl Iterator<Item = (&str, &str)> {
        let found = self.checks.iter().filter(|check| check["status"] == "finding");
        found.map(|check| (check["name"].as_str().unwrap(), check["seen"].as_str().unwrap()))
    }

    /// What was asked.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.checks.iter().filter_map(|check| check["name"].as_str()).collect()
    }

    fn remedy(&self, name: &str) -> &str {
        let check = self.checks.iter().find(|check| check["name"] == name).unwrap();
        check["remedy"].as_str().unwrap()
    }
}

/// Nothing to find, once the API server goes by what is stored, of which it hears a moment later. How long a review takes is not the installation's doing
/// on a machine full of tests.
async fn healthy(cp: &ControlPlane) -> Result<()> {
    until_created(&cp.objects().await?, |pod| injected(pod) && !gated(pod)).await?;
    healthy_with(cp, &["-n", "default"]).await.map(drop)
}

/// The same with these flags; the visit.
pub(crate) async fn healthy_with(cp: &ControlPlane, more: &[&str]) -> Result<Visit> {
    let visit = Visit::with(cp.admin().kubeconfig(), more).await?;
    ensure!(visit.findings().is_empty(), "{:#?}", visit.findings());
    ensure!(visit.code == i32::from(visit.is_slow()) && visit.checks.len() > 12, "{}: {:#?}", visit.code, visit.checks);
    let unsure: Vec<_> = visit.checks.iter().filter(|check| check["status"] == "unknown").collect();
    ensure!(unsure.is_empty(), "{unsure:#?}");
    Ok(visit)
}

/// A finding of that name with these words, and exit code 1.
async fn finds(cp: &ControlPlane, name: &str, words: &str) -> Result<Visit> {
    finds_with(cp, &["-n", "default"], (name, words)).await
}

/// All of these findings in one visit, once the API server goes by what was changed, of which it hears a moment later.
async fn comes_to_find(cp: &ControlPlane, more: &[&str], wanted: &[(&str, &str)]) -> Result<Visit> {
    let begun = Instant::now();
    loop {
        let visit = Visit::with(cp.admin().kubeconfig(), more).await?;
        let findings = visit.findings();
        let is_found = |(name, words): &&(&str, &str)| {
            findings.iter().any(|(found, seen)| found.starts_with(name) && seen.contains(words))
        };
        let Some((name, words)) = wanted.iter().find(|one| !is_found(one)) else {
            ensure!(visit.code == 1, "code {}", visit.code);
            return Ok(visit);
        };
        ensure!(begun.elapsed() < patience(), "{name} with {words:?} is not among {findings:#?}");
    }
}

/// The same with these flags.
pub(crate) async fn finds_with(cp: &ControlPlane, more: &[&str], (name, words): (&str, &str)) -> Result<Visit> {
    let visit = Visit::with(cp.admin().kubeconfig(), more).await?;
    ensure!(visit.code == 1, "code {}", visit.code);
    let findings = visit.findings();
    ensure!(
        findings.iter().any(|(found, seen)| found.starts_with(name) && seen.contains(words)),
        "{name} with {words:?} is not among {findings:#?}"
    );
    Ok(visit)
}

/// The rendered Deployments; kwok makes their Pods ready.
async fn deploy(cp: &ControlPlane, failure_mode: FailureMode) -> Result<()> {
    deploy_for(cp, failure_mode, &[]).await
}

/// The same, for these namespaces.
async fn deploy_for(cp: &ControlPlane, failure_mode: FailureMode, namespaces: &[&str]) -> Result<()> {
    let mut install = Install::new(failure_mode, keys::OPERATOR_NAMESPACE, IMAGE);
    install.namespaces = namespaces.iter().map(|name| (*name).to_owned()).collect();
    deployed(cp, install).await
}

/// The same of that installation.
pub(crate) async fn deployed(cp: &ControlPlane, install: Install) -> Result<()> {
    let objects = cp.objects().await?;
    let deployments: Api<Deployment> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    for object in render::parts(&install).into_iter().flat_map(|part| part.objects) {
        if object["kind"] == "Deployment" {
            objects.apply(&object.to_string()).await?;
            let ready = |deployment: &Deployment| {
                let status = deployment.status.clone().unwrap_or_default();
                status.observed_generation == deployment.metadata.generation
                    && status.updated_replicas == Some(2)
                    && status.ready_replicas == Some(2)
            };
            wait_for(&deployments, object["metadata"]["name"].as_str().unwrap(), ready).await?;
        }
    }
    Ok(())
}

/// Changes the injecting webhook's configuration behind everybody's back.
async fn patch(configurations: &Api<MutatingWebhookConfiguration>, operations: Value) -> Result<()> {
    change(configurations, keys::WEBHOOK_CONFIGURATION, operations).await
}

/// Changes an object behind everybody's back.
async fn change<K>(api: &Api<K>, name: &str, operations: Value) -> Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let operations = Patch::Json::<()>(serde_json::from_value(operations)?);
    api.patch(name, &PatchParams::default(), &operations).await?;
    Ok(())
}

fn set(path: &str, value: &Value) -> Value {
    json!([{ "op": "add", "path": path, "value": value }])
}

fn taken_out(path: &str) -> Value {
    json!([{ "op": "remove", "path": path }])
}

const BUNDLE: &str = "/webhooks/0/clientConfig/caBundle";
const PORT: &str = "/webhooks/0/clientConfig/service/port";

/// Every metric that a process exposes stands in the reference, once.
async fn metrics_are_known(installation: &Installation) -> Result<()> {
    let known = reference::metrics::metrics();
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        let (_, text) = dial::get(process.ports().metrics.address(), "/metrics").await?;
        let mut exposed = BTreeSet::new();
        for name in text.lines().filter_map(|line| line.strip_prefix("# HELP ")?.split(' ').next()) {
            ensure!(known.contains_key(name), "{name} is not in the reference");
            ensure!(exposed.insert(name), "{name} is exposed twice");
        }
        ensure!(exposed.len() > 10, "{exposed:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_installation_has_no_finding_and_each_broken_thing_has_its_own() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let gate = Installing { failure_mode: FailureMode::Gate, ..Installing::default() };
    let installation = Installation::start(&cp, &gate).await?;
    deploy(&cp, FailureMode::Gate).await?;
    healthy(&cp).await.context("mode gate")?;
    nobody_in_particular(&cp).await?;
    broken_gate(&cp, &installation).await?;
    healthy(&cp).await.context("the gate's parameter is back")?;

    // From gate to fail by applying the other manifests: what only gate has stays, and the remedy takes it away.
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        process.stop(patience()).await?;
    }
    drop(installation);
    let installation = Installation::start(&cp, &Installing::default()).await?;
    deploy(&cp, FailureMode::Fail).await?;
    let visit = finds(&cp, "objects of failure mode gate", "still there").await?;
    ensure!(visit.findings().len() == 1, "{:?}", visit.findings());
    let remedy = visit.remedy("objects of failure mode gate").strip_prefix("kubectl ").context("a command")?;
    let remedy: Vec<&str> = remedy.split(' ').collect();
    let output = cp.kubectl(cp.admin(), &remedy, "").await?;
    ensure!(output.success, "{}", output.stderr);
    // The API server goes by a policy for a moment after it has been deleted, and its parameter is gone.
    let deadline = Instant::now() + patience();
    while finds(&cp, "an enrolled Pod in default", "no params found").await.is_ok() {
        ensure!(Instant::now() < deadline, "the API server goes on by a policy that is deleted");
    }
    healthy(&cp).await.context("mode fail, after the remedy")?;
    metrics_are_known(&installation).await?;
    broken_trust(&cp, &installation).await?;
    healthy(&cp).await.context("trust is back")?;
    answers_13_namespaces_without_an_issuer_are_one_finding(&cp).await?;
    healthy(&cp).await.context("nothing is enrolled any more")?;
    broken_objects(&cp, installation.balancer.address().port()).await?;
    healthy(&cp).await.context("everything is back")?;
    compat_policies(&cp).await
}

/// What a person may not read is told as that: neither as found, nor as being in order.
async fn nobody_in_particular(cp: &ControlPlane) -> Result<()> {
    let access = cp.service_account("default", "default").await?;
    let visit = Visit::with(access.kubeconfig(), &["-n", "default"]).await?;
    ensure!(visit.code == 4 && visit.findings().is_empty(), "{}: {:#?}", visit.code, visit.findings());
    let fine: BTreeSet<&str> = visit
        .checks
        .iter()
        .filter(|check| check["status"] == "ok")
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    // Versions and what is served are told to everybody.
    let known = BTreeSet::from(["API server", "objects of failure mode gate", "Tekton Pipelines"]);
    ensure!(fine.is_subset(&known), "{fine:?}");
    Ok(())
}

/// The gate policy selects the same Pods as ever, and gates none of them.
async fn gates_nobody(cp: &ControlPlane) -> Result<()> {
    let expression = "jsonpath={.spec.mutations[0].jsonPatch.expression}";
    let get = ["get", "mutatingadmissionpolicy", keys::GATE, "-o", expression];
    let good = cp.kubectl(cp.admin(), &get, "").await?.stdout;
    ensure!(good.contains(keys::SCHEDULING_GATE), "{good}");
    let says = async |expression: &str| -> Result<()> {
        let operations = set("/spec/mutations/0/jsonPatch/expression", &json!(expression)).to_string();
        let patch = ["patch", "mutatingadmissionpolicy", keys::GATE, "--type=json", "-p", &operations];
        let output = cp.kubectl(cp.admin(), &patch, "").await?;
        ensure!(output.success, "{}", output.stderr);
        Ok(())
    };
    says(r#"[JSONPatch{op: "test", path: "/kind", value: "Pod"}]"#).await?;
    let words = format!("MutatingAdmissionPolicy {} is not as this version renders it: mutations", keys::GATE);
    finds(cp, &format!("policy {}", keys::GATE), &words).await?;
    says(&good).await
}

/// The parameter of the gate policy is gone, and nobody leads who would write it.
async fn broken_gate(cp: &ControlPlane, installation: &Installation) -> Result<()> {
    gates_nobody(cp).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    installation.controllers[0].pause();
    let none = Patch::Merge(json!({"metadata": {"annotations": {keys::ANNOTATION_GATED_TYPES: null}}}));
    accounts.patch(keys::GATE, &PatchParams::default(), &none).await?;
    finds(cp, "while no replica answers", "every enrolled Pod is refused").await?;
    // The API server reads its parameters a moment later than we do.
    let deadline = Instant::now() + patience();
    while finds(cp, "an enrolled Pod in default", "refused").await.is_err() {
        ensure!(Instant::now() < deadline, "an enrolled Pod is let in though nobody says whether it is gated");
    }
    installation.controllers[0].resume();
    let types = |account: &ServiceAccount| account.annotations().contains_key(keys::ANNOTATION_GATED_TYPES);
    wait_for(&accounts, keys::GATE, types).await?;
    Ok(())
}

/// The API server's trust: emptied, and given to somebody else. The controllers, who would repair it, look away meanwhile.
async fn broken_trust(cp: &ControlPlane, installation: &Installation) -> Result<()> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
    let good = configurations.get(keys::WEBHOOK_CONFIGURATION).await?.webhooks.unwrap_or_default();
    let good = json!(good[0].client_config.ca_bundle);
    installation.controllers[0].pause();
    let theirs = json!(ByteString(Authority::new("somebody else")?.certificate().into_bytes()));
    // Straight to the replica: it says after 5 s of that that it is not ready, and a Service leads nowhere from then on.
    patch(&configurations, set(PORT, &json!(installation.webhooks[0].webhook().port()))).await?;
    for (bundle, of_bundle, of_served) in [
        (json!(""), "is empty", "caBundle holds no authority"),
        (theirs, "lacks 1 root", "inject.kagenti.io would refuse it"),
    ] {
        patch(&configurations, set(BUNDLE, &bundle)).await?;
        let wanted = [
            ("caBundle of inject.kagenti.io", of_bundle),
            ("the certificate that localhost:", of_served),
            ("an enrolled Pod in default", "refused"),
        ];
        comes_to_find(cp, &["-n", "default"], &wanted).await?;
    }
    // The Secret agrees with the bundle, and somebody else serves: only the handshake tells.
    patch(&configurations, set(BUNDLE, &good)).await?;
    installation.webhooks[0].ready().await?;
    installation.balancer.wait_for_endpoints(1).await?;
    let impostor = Hook::start(cp, "default", "impostor", |_| hook::allow()).await?;
    patch(&configurations, set(PORT, &json!(impostor.address().port()))).await?;
    let visit = finds(cp, "the certificate that localhost:", "inject.kagenti.io would refuse it").await?;
    ensure!(visit.findings().iter().all(|(name, _)| !name.starts_with("caBundle")), "{:?}", visit.findings());
    patch(&configurations, set(PORT, &json!(installation.balancer.address().port()))).await?;
    installation.controllers[0].resume();
    Ok(())
}

/// However many namespaces lack the issuer of tokens, it is said once, with the two lines that give it to all of them.
async fn answers_13_namespaces_without_an_issuer_are_one_finding(cp: &ControlPlane) -> Result<()> {
    let namespaces = [cp.namespace("calls-one").await?, cp.namespace("calls-two").await?];
    let agent = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web", keys::LABEL_TYPE: "agent"}},
            "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1", "ports": [{"containerPort": 8000}]}]}}}});
    for ns in &namespaces {
        ns.accepts(&agent).await?;
        wait_until(&ns.api::<Pod>(), watcher::Config::default(), |all| !all.is_empty()).await.context("a Pod comes")?;
    }
    let name = "issuer of tokens";
    let visit = finds(cp, name, "and 1 more has no ISSUER").await?;
    let told = visit.findings().iter().filter(|(_, seen)| seen.contains("ISSUER")).count();
    let remedy = visit.remedy(name);
    ensure!(told == 1 && remedy.contains("keycloak:") && remedy.contains("publicUrl: "), "{told}: {remedy}");
    for ns in &namespaces {
        ns.api::<Deployment>().delete("web", &DeleteParams::default()).await?;
        wait_until(&ns.api::<Pod>(), watcher::Config::default(), |all| all.is_empty()).await.context("its Pods go")?;
    }
    Ok(())
}

/// One policy says something else, and another one binds nobody.
async fn broken_policies(cp: &ControlPlane) -> Result<()> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cp.client().await?);
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cp.client().await?);
    let anybody = Patch::Json::<()>(serde_json::from_value(set("/spec/validations/0/expression", &json!("true")))?);
    policies.patch("drawbridge-agent-pods", &PatchParams::default(), &anybody).await?;
    finds(cp, "policy drawbridge-agent-pods", "is not as this version renders it").await?;
    bindings.delete("drawbridge-custom-steps", &DeleteParams::default()).await?;
    let words = "there is no ValidatingAdmissionPolicyBinding";
    let visit = finds(cp, "policy drawbridge-custom-steps", words).await?;
    ensure!(
        visit.findings().iter().all(|(name, _)| *name != "policy drawbridge-runtime-config"),
        "{:?}",
        visit.findings()
    );
    bindings.delete("drawbridge-trust-all-pods", &DeleteParams::default()).await?;
    narrowed_policies(&policies, &bindings, cp).await
}

/// Policies that say all they are rendered with, and hold nobody: an apply would leave them so, since nobody's manifest says what narrows them.
async fn narrowed_policies(
    policies: &Api<ValidatingAdmissionPolicy>,
    bindings: &Api<ValidatingAdmissionPolicyBinding>,
    cp: &ControlPlane,
) -> Result<()> {
    let never = json!([{"name": "never", "expression": "false"}]);
    let nobody = json!({"matchLabels": {"team": "nobody"}});
    for name in ["drawbridge-trust-label", "drawbridge-pod-bindings"] {
        change(policies, name, set("/spec/matchConditions", &never)).await?;
    }
    let selector = "/spec/matchConstraints/namespaceSelector";
    change(policies, "drawbridge-build-secrets", set(selector, &nobody)).await?;
    let matched = json!({"namespaceSelector": nobody});
    for name in ["drawbridge-agent-secrets", "drawbridge-own-workloads"] {
        change(bindings, name, set("/spec/matchResources", &matched)).await?;
    }
    let visit = finds(cp, "policy drawbridge-trust-label", "renders it: matchConditions").await?;
    for (name, words) in [
        ("drawbridge-pod-bindings", "renders it: matchConditions"),
        (
            "drawbridge-build-secrets",
            "ValidatingAdmissionPolicy drawbridge-build-secrets is not as this version renders it: matchConstraints",
        ),
        ("drawbridge-agent-secrets", "renders it: matchResources"),
        ("drawbridge-own-workloads", "renders it: matchResources"),
        ("drawbridge-trust-pods", "there is no ValidatingAdmissionPolicyBinding drawbridge-trust-all-pods"),
    ] {
        let name = format!("policy {name}");
        let told = visit.findings().iter().any(|(found, seen)| *found == name && seen.contains(words));
        ensure!(told, "{name} with {words:?} is not among {:#?}", visit.findings());
    }
    let remedy = visit.remedy("policy drawbridge-agent-secrets");
    ensure!(remedy.contains("kubectl edit validatingadmissionpolicybinding drawbridge-agent-secrets"), "{remedy}");
    for name in ["drawbridge-trust-label", "drawbridge-pod-bindings"] {
        change(policies, name, taken_out("/spec/matchConditions")).await?;
    }
    change(policies, "drawbridge-build-secrets", set(selector, &json!({}))).await?;
    for name in ["drawbridge-agent-secrets", "drawbridge-own-workloads"] {
        change(bindings, name, taken_out("/spec/matchResources")).await?;
    }
    Ok(())
}

/// The group of the original BeeAI operator comes with policies of its own, which are asked for while it is served.
async fn compat_policies(cp: &ControlPlane) -> Result<()> {
    let objects = cp.objects().await?;
    for object in compat::objects(&Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "")) {
        objects.apply(&object.to_string()).await?;
    }
    let version = format!("{}/v1", keys::GROUP_BEEAI_COMPAT);
    let deadline = Instant::now() + patience();
    loop {
        let served = objects.client().list_api_group_resources(&version).await;
        let resources = served.map(|list| list.resources).unwrap_or_default();
        if ["agents", "agentbuilds"].iter().all(|plural| resources.iter().any(|one| one.name == *plural)) {
            break;
        }
        ensure!(Instant::now() < deadline, "{version} is never served: {resources:?}");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let visit = healthy_with(cp, &["-n", "default"]).await?;
    let of_group = visit.names().iter().filter(|name| name.starts_with("policy drawbridge-beeai-compat-")).count();
    ensure!(of_group == 2, "{:?}", visit.names());
    let name = "drawbridge-beeai-compat-agent-secrets";
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(cp.client().await?);
    bindings.delete(name, &DeleteParams::default()).await?;
    let check = format!("policy {name}");
    let visit = finds(cp, &check, "there is no ValidatingAdmissionPolicyBinding").await?;
    ensure!(visit.remedy(&check).contains("drawbridge render --beeai-compat"), "{}", visit.remedy(&check));
    let mut status = Command::new(programs::workspace("drawbridge")?);
    let status = status.args(["status", "-A", "--kubeconfig"]).arg(cp.admin().kubeconfig()).output().await?;
    let text = String::from_utf8_lossy(&status.stdout);
    ensure!(text.contains(&format!("ValidatingAdmissionPolicyBinding {name}")), "{text}");
    Ok(())
}

async fn broken_objects(cp: &ControlPlane, port: u16) -> Result<()> {
    let objects = cp.objects().await?;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(cp.client().await?);
    let roles: Api<ClusterRole> = Api::all(cp.client().await?);

    mutating.delete(keys::WEBHOOK_CONFIGURATION, &DeleteParams::default()).await?;
    finds(cp, "MutatingWebhookConfiguration drawbridge", "does not exist").await?;
    comes_to_find(cp, &["-n", "default"], &[("an enrolled Pod in default", "without sidecars")]).await?;
    validating.delete(keys::WEBHOOK_CONFIGURATION, &DeleteParams::default()).await?;
    finds(cp, "ValidatingWebhookConfiguration drawbridge", "does not exist").await?;
    broken_policies(cp).await?;
    apply(&objects, FailureMode::Fail, port).await?;
    wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, |object| {
        object.webhooks.iter().flatten().all(|hook| hook.client_config.ca_bundle.is_some())
    })
    .await?;
    wait_for(&validating, keys::WEBHOOK_CONFIGURATION, |object: &ValidatingWebhookConfiguration| {
        object.webhooks.iter().flatten().all(|hook| hook.client_config.ca_bundle.is_some())
    })
    .await?;

    let role = roles.get("drawbridge-controllers").await?;
    let rules = role.rules.unwrap_or_default();
    let events = rules.iter().position(|rule| rule.resources.as_deref() == Some(&["events".to_owned()])).unwrap();
    let remove = json!([{ "op": "remove", "path": format!("/rules/{events}") }]);
    let remove = Patch::Json::<()>(serde_json::from_value(remove)?);
    roles.patch("drawbridge-controllers", &PatchParams::default(), &remove).await?;
    comes_to_find(cp, &["-n", "default"], &[("ServiceAccount drawbridge-controllers", "create events")]).await?;
    apply(&objects, FailureMode::Fail, port).await?;

    // What cannot be read of the platform file hides nothing else.
    let maps: Api<ConfigMap> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let platform = |text: &Value| Patch::Merge(json!({"data": {"config.yaml": text}}));
    let good = maps.get(keys::CONFIG_MAP_PLATFORM).await?.data.unwrap_or_default();
    maps.patch(keys::CONFIG_MAP_PLATFORM, &PatchParams::default(), &platform(&json!("images: [\n"))).await?;
    let visit = finds(cp, "ConfigMap kagenti-platform-config", "unclosed bracket").await?;
    ensure!(visit.findings().len() == 1, "{:?}", visit.findings());
    maps.patch(keys::CONFIG_MAP_PLATFORM, &PatchParams::default(), &platform(&json!(good["config.yaml"]))).await?;

    // By hand: two entries that leave something out.
    patch(&mutating, set("/webhooks/0/objectSelector/matchLabels", &json!({"team": "x"}))).await?;
    let never = json!([{"name": "never", "expression": "false"}]);
    patch(&mutating, set("/webhooks/1/matchConditions", &never)).await?;
    let visit = finds(cp, "entry inject.kagenti.io", "objectSelector").await?;
    let narrowed = |(name, seen): &(&str, &str)| *name == "entry trust.kagenti.io" && seen.contains("matchConditions");
    ensure!(visit.findings().iter().any(narrowed), "{:#?}", visit.findings());
    patch(&mutating, taken_out("/webhooks/1")).await?;
    finds(cp, "MutatingWebhookConfiguration drawbridge", "has no entry").await?;
    apply(&objects, FailureMode::Fail, port).await?;
    wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, |object| {
        object.webhooks.iter().flatten().all(|hook| hook.client_config.ca_bundle.is_some())
    })
    .await?;

    patch(&mutating, set("/webhooks/0/namespaceSelector", &json!({}))).await?;
    finds(cp, "selectors of inject.kagenti.io", "kagenti-system").await?;
    apply(&objects, FailureMode::Fail, port).await
}

/// `status` says of the workload in the namespace that nobody watches why it has no sidecars, and nothing else; `explain` says it, too.
async fn status_tells_the_place(cp: &ControlPlane, unwatched: &str) -> Result<()> {
    let run = async |args: &[&str]| -> Result<(Option<i32>, Value, String)> {
        let mut command = Command::new(programs::workspace("drawbridge")?);
        let output = command.args(args).arg("--kubeconfig").arg(cp.admin().kubeconfig()).output().await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok((output.status.code(), serde_json::from_str(&text).unwrap_or_default(), text))
    };
    for place in [&["-n", unwatched][..], &["-A"]] {
        let (code, report, text) = run(&[&["status", "-o", "json"], place].concat()).await?;
        let rows = report["workloads"].as_array().context("rows")?;
        ensure!(code == Some(1) && rows.len() == 1, "{text}");
        let row = &rows[0];
        assert_eq!((&row["watched"], &row["reason"]), (&json!(false), &json!("NamespaceNotWatched")), "{row:#}");
        assert_eq!((&row["drift"], &row["pods"]["unprotected"]), (&json!("none"), &json!(0)), "{row:#}");
        assert_eq!((&row["pods"]["total"], &row["decision"]), (&json!(1), &json!("skipped")), "{row:#}");
    }
    let (_, _, text) = run(&["status", "-n", unwatched]).await?;
    ensure!(text.contains("--watch-namespaces") && !text.contains("rollout restart"), "{text}");
    let (_, _, text) = run(&["explain", "deployment/plain", "-n", unwatched, "-o", "json"]).await?;
    ensure!(text.contains("NamespaceNotWatched: "), "{text}");
    Ok(())
}

/// Section 15.2: what is asked, and what is found, is about the namespaces that are watched.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_for_some_namespaces_is_judged_by_them() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let (one, two, unwatched) =
        (cp.namespace("team").await?, cp.namespace("team").await?, cp.namespace("other").await?);
    let namespaces = format!("{},{}", one.name(), two.name());
    let installation = Installation::start(&cp, &Installing { namespaces, ..Installing::default() }).await?;
    let watched = [one.name(), two.name()];
    deploy_for(&cp, FailureMode::Fail, &watched).await?;
    // Enrolled by label where nobody looks: it runs without sidecars, which says nothing about the installation.
    let labels = json!({"app": "plain", keys::LABEL_TYPE: "agent"});
    unwatched
        .accepts(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "plain"},
            "spec": {"selector": {"matchLabels": {"app": "plain"}}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1"}]}}},
        }))
        .await?;
    let running = |all: &BTreeMap<String, Pod>| {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        all.values().any(|pod| phase(pod).as_deref() == Some("Running"))
    };
    wait_until(&unwatched.api::<Pod>(), watcher::Config::default(), running).await?;

    let visit = healthy_with(&cp, &[]).await?;
    let named = |name: &str| visit.checks.iter().find(|check| check["name"] == name).with_context(|| name.to_owned());
    let told = named("watched namespaces")?["seen"].as_str().unwrap_or_default();
    ensure!(watched.iter().all(|name| told.contains(name)), "{told}");
    named(&format!("an enrolled Pod in {}", one.name()))?;
    let other = ["-n", unwatched.name()];
    finds_with(&cp, &other, (&format!("an enrolled Pod in {}", unwatched.name()), "not watched")).await?;

    status_tells_the_place(&cp, unwatched.name()).await?;

    let roles: Api<Role> = two.api();
    roles.delete("drawbridge-controllers", &DeleteParams::default()).await?;
    let words = format!("list agents in {}", two.name());
    comes_to_find(&cp, &[], &[("ServiceAccount drawbridge-controllers", &words)]).await?;
    // The processes are told of one namespace more than the webhooks.
    deploy_for(&cp, FailureMode::Fail, &[one.name(), two.name(), unwatched.name()]).await?;
    finds_with(&cp, &[], ("watched namespaces", "differ")).await?;
    drop(installation);
    Ok(())
}

/// What a network plugin is known by.
fn network_plugin() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "felixconfigurations", "singular": "felixconfiguration", "kind": "FelixConfiguration",
        "listKind": "FelixConfigurationList"});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "felixconfigurations.crd.projectcalico.org"},
        "spec": {"group": "crd.projectcalico.org", "scope": "Cluster", "names": names, "versions": [version]}})
}

/// Trust that the platform file enforces stands in policies of the API server as well, which are judged by the file that the cluster has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_whose_platform_file_enforces_trust_is_judged_by_that_file() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let enforced = "cards: {trust: enforced}\n";
    let installing = Installing { platform: enforced.to_owned(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, IMAGE);
    let file = format!("{}{enforced}", platform::platform_file());
    let install = Install { platform_file: Some(file), ..install };
    deployed(&cp, install.clone()).await?;
    let objects = cp.objects().await?;
    define(&objects, &network_plugin()).await?;
    let rendered: Vec<Value> = render::parts(&install).into_iter().flat_map(|part| part.objects).collect();
    let settings = rendered.iter().find(|object| object["metadata"]["name"] == keys::CONFIG_MAP_PLATFORM);
    objects.apply(&settings.context("the platform file")?.to_string()).await?;

    // Until the policies are applied as well, they are those of the shipped file.
    let visit = finds(&cp, "policy drawbridge-trust-types", "renders it: matchConstraints").await?;
    for name in ["policy drawbridge-trust-pods", "policy drawbridge-trust-networks"] {
        ensure!(visit.findings().iter().any(|(found, _)| *found == name), "{name}: {:#?}", visit.findings());
    }
    let remedy = visit.remedy("policy drawbridge-trust-types");
    ensure!(remedy.contains("drawbridge render") && !remedy.contains("manifests/"), "{remedy}");
    let is_policy = |object: &&Value| object["kind"].as_str().is_some_and(|kind| kind.contains("AdmissionPolicy"));
    for object in rendered.iter().filter(is_policy) {
        objects.apply(&object.to_string()).await?;
    }

    // The leader says where agents are cut off, and the API server hears of it a moment later.
    let namespace = Api::<Namespace>::all(cp.client().await?).get("default").await?;
    let uid = namespace.uid().context("a uid")?;
    let accounts: Api<ServiceAccount> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let named = |account: &ServiceAccount| {
        account.annotations().get(keys::ANNOTATION_ARMED).is_some_and(|all| all.contains(&uid))
    };
    wait_for(&accounts, keys::ARMED, named).await?;
    let deadline = Instant::now() + patience();
    while finds(&cp, "an enrolled Pod in default", "refused").await.is_ok() {
        ensure!(Instant::now() < deadline, "an enrolled Pod is refused although its namespace cuts agents off");
    }
    healthy(&cp).await.context("as its platform file says")?;
    drop(installation);
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_exit_code_3() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    // Nobody listens on a port that is only held.
    let held = Port::reserve()?;
    let port = held.number();
    let document = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": format!("https://127.0.0.1:{port}")}}],
        "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    });
    std::fs::write(&kubeconfig, document.to_string())?;
    let visit = Visit::of(&kubeconfig).await?;
    assert_eq!((visit.code, visit.checks.len()), (3, 0));
    Ok(())
}

/// What a check of that name says, in a visit that names no namespace.
async fn told(cp: &ControlPlane, name: &str) -> Result<(String, String)> {
    let visit = Visit::with(cp.admin().kubeconfig(), &[]).await?;
    let check = visit.checks.iter().find(|check| check["name"] == name).with_context(|| name.to_owned())?;
    let text = |member: &str| check[member].as_str().unwrap_or_default().to_owned();
    Ok((text("status"), text("seen")))
}

/// With rights in some namespaces only, what lies outside of them takes a right of its own, or another place: the trust bundle, and Events about the
/// webhook configurations, which belong into `default`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_for_some_namespaces_has_what_it_needs_outside_of_them() -> Result<()> {
    const RIGHT: &str = "right to read the trust bundle";
    const AGE: &str = "kagenti_x5c_trust_bundle_age_seconds";
    let cp = installation::plane(Options::default()).await?;
    let (team, spire) = (cp.namespace("team").await?, cp.namespace("spire").await?);
    let domain = crate::card_bundles::DOMAIN;
    let authority = webhook_tests::svid::Authority::new(domain)?.pem();
    crate::card_bundles::put(&spire, "bundle", "bundle", &authority).await?;
    let platform = format!(
        "cards: {{trustBundle: {{trustDomain: {domain}, configMap: {{name: bundle, namespace: {}, key: bundle}}}}}}\n",
        spire.name()
    );
    let file = format!("{}{platform}", platform::platform_file());
    let installing = Installing { namespaces: team.name().to_owned(), platform, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let install = Install {
        namespaces: vec![team.name().to_owned()],
        platform_file: Some(file),
        ..Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, IMAGE)
    };
    deployed(&cp, install.clone()).await?;
    let objects = cp.objects().await?;
    let rendered: Vec<Value> = render::parts(&install).into_iter().flat_map(|part| part.objects).collect();
    let apply = async |name: &str, least: usize| -> Result<()> {
        let named: Vec<_> = rendered.iter().filter(|object| object["metadata"]["name"] == name).collect();
        ensure!(named.len() == least, "{name}: {named:#?}");
        for object in named {
            objects.apply(&object.to_string()).await?;
        }
        Ok(())
    };

    // The installation was rendered without the platform file.
    apply(keys::CONFIG_MAP_PLATFORM, 1).await?;
    let called = format!("ConfigMap {}/bundle", spire.name());
    let visit = finds_with(&cp, &[], (RIGHT, &format!("may not get, list, watch {called}"))).await?;
    ensure!(visit.remedy(RIGHT).contains("drawbridge-trust-bundle"), "{}", visit.remedy(RIGHT));
    let is_read =
        async || -> Result<bool> { Ok(installation.controllers[0].metrics().await?.select(AGE, &[]).next().is_some()) };
    ensure!(!is_read().await?, "the bundle is read without a right");
    apply(render::rbac::TRUST_BUNDLE, 2).await?;
    let deadline = Instant::now() + patience();
    while !is_read().await? {
        ensure!(Instant::now() < deadline, "{}", installation.controllers[0].log());
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let (status, seen) = told(&cp, RIGHT).await?;
    ensure!(status == "ok" && seen.ends_with(&format!("may read {called}")), "{status}: {seen}");
    let (status, seen) = told(&cp, "trust bundle").await?;
    ensure!(status == "ok" && seen.contains("1 valid"), "{status}: {seen}");

    // Somebody takes the authority out of a bundle, and a policy goes: the second is told at once, and the first where it may be.
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
    let theirs = json!(ByteString(Authority::new("somebody else")?.certificate().into_bytes()));
    patch(&configurations, set(BUNDLE, &theirs)).await?;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(cp.client().await?);
    policies.delete("drawbridge-runtime-config", &DeleteParams::default()).await?;
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    for reason in ["PolicyMissing", "BundleOverwritten"] {
        let of_reason = watcher::Config::default().fields(&format!("reason={reason},involvedObject.kind=Deployment"));
        let all = wait_until(&events, of_reason, |all| !all.is_empty()).await.context(reason)?;
        let about = all.into_iter().next().and_then(|event| event.involved_object.name);
        assert_eq!(about.as_deref(), Some(keys::DEPLOYMENT_CONTROLLERS), "{reason}");
    }
    Ok(())
}

/// Who looks and changes nothing sees everything that doctor asks, but the Secret with the authority's key and what takes the right to create Pods: neither
/// makes the answer partial.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_the_role_for_diagnosis_is_told_that_all_is_well() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    deploy(&cp, FailureMode::Fail).await?;
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "looker"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "drawbridge-diagnosis"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "looker"}],
    });
    cp.objects().await?.apply(&binding.to_string()).await?;
    let access = cp.user("looker", &[])?;
    let unseen =
        BTreeSet::from([format!("Secret {}", keys::SECRET_AUTHORITY), "an enrolled Pod in default".to_owned()]);
    // The API server hears of the binding a moment later.
    let deadline = Instant::now() + patience();
    loop {
        let visit = Visit::of(access.kubeconfig()).await?;
        let unknown = visit.checks.iter().filter(|check| check["status"] == "unknown");
        let unknown: BTreeSet<String> =
            unknown.map(|check| check["name"].as_str().unwrap_or_default().to_owned()).collect();
        if visit.code == i32::from(visit.is_slow()) && unknown == unseen && visit.findings().is_empty() {
            break;
        }
        ensure!(Instant::now() < deadline, "code {}: {:#?}", visit.code, visit.checks);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    drop(installation);
    Ok(())
}
