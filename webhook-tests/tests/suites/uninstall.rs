//! `drawbridge uninstall` on real control planes: what was installed and enrolled is gone, what is a person's is as it was.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::{self, FailureMode, Install};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::api::{DynamicObject, ListParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;
use webhook_tests::endurance::load::{gated, injected};
use webhook_tests::endurance::until_created;
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{
    Access, ControlPlane, Installation, Installing, Options, TestNamespace, installation, programs, wait_for,
    wait_until,
};

use crate::builds::stage::define;
use crate::doctor::{IMAGE, deployed};

/// One run of the command line.
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    report: Value,
    pub(super) text: String,
}

pub(super) async fn uninstall(access: &Access, more: &[&str]) -> Result<Ran> {
    let given = more.iter().any(|flag| flag.starts_with("--timeout"));
    let output = tokio::process::Command::new(programs::workspace("drawbridge")?)
        .args(["uninstall", "-o", "json", "--kubeconfig"])
        .arg(access.kubeconfig())
        .args(more)
        .args(Some(timeout()).filter(|_| !given))
        .output()
        .await?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(Ran { code: output.status.code(), report: serde_json::from_slice(&output.stdout).unwrap_or_default(), text })
}

impl Ran {
    /// The objects under a member of the report.
    fn objects(&self, pointer: &str) -> Vec<&str> {
        let list = self.report.pointer(pointer).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|one| one["object"].as_str()).collect()
    }
}

pub(super) fn deployment(name: &str, labels: &Value) -> Value {
    let mut template_labels = labels.clone();
    template_labels["app"] = json!(name);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": labels, "annotations": {"mine": "kept"}},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": template_labels},
                "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1", "ports": [{"containerPort": 8000}]}]},
            },
        },
    })
}

pub(super) fn agent_runtime(name: &str, target: &str) -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": name},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
    })
}

/// What a person wrote, without what servers and controllers count.
fn essence(deployment: &Deployment) -> Value {
    let mut value = serde_json::to_value(deployment).unwrap();
    for counted in ["managedFields", "generation", "resourceVersion"] {
        value["metadata"].as_object_mut().unwrap().remove(counted);
    }
    value.as_object_mut().unwrap().remove("status");
    if let Some(annotations) = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove("deployment.kubernetes.io/revision");
    }
    value
}

fn is_injected(pod: &Pod) -> bool {
    pod.annotations().contains_key(keys::ANNOTATION_STATUS)
}

/// Waits until the only Pod of an app runs, with sidecars or without.
pub(super) async fn settled(ns: &TestNamespace, app: &str, injected: bool) -> Result<()> {
    let pods = watcher::Config::default().labels(&format!("app={app}"));
    let settled = |all: &BTreeMap<String, Pod>| {
        let running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        all.len() == 1 && all.values().all(|pod| running(pod) && is_injected(pod) == injected)
    };
    wait_until(&ns.api::<Pod>(), pods, settled).await.map(drop)
}

/// Objects of ours that are still stored, by kind.
async fn remains(cp: &ControlPlane) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let client = cp.client().await?;
    for (group, version, kind, plural) in [
        ("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
        ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
        ("rbac.authorization.k8s.io", "v1", "Role", "roles"),
        ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
        ("coordination.k8s.io", "v1", "Lease", "leases"),
        ("apps", "v1", "Deployment", "deployments"),
        ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
        ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        ("", "v1", "Service", "services"),
        ("", "v1", "Secret", "secrets"),
        ("", "v1", "ServiceAccount", "serviceaccounts"),
        ("", "v1", "ConfigMap", "configmaps"),
    ] {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let resource = kube::api::ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version,
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in all.list(&ListParams::default()).await? {
            let says = |key: &str| object.labels().get(key).is_some_and(|value| value == "drawbridge");
            let ours = says("app.kubernetes.io/managed-by")
                || says("app.kubernetes.io/name")
                || object.name_any().starts_with("drawbridge");
            if ours {
                found.push(format!("{kind} {}", object.name_any()));
            }
        }
    }
    Ok(found)
}

async fn own_control_plane() -> Result<ControlPlane> {
    installation::plane(Options::default()).await
}

/// A running installation, and what only a cluster has of it: Deployments, whose Pods are kwok's, their disruption budgets, and the labels of the Service.
async fn installed(cp: &ControlPlane, installing: &Installing) -> Result<Installation> {
    let installation = Installation::start(cp, installing).await?;
    let install = Install::new(installing.failure_mode, keys::OPERATOR_NAMESPACE, IMAGE);
    deployed(cp, install.clone()).await?;
    let objects = cp.objects().await?;
    for object in render::parts(&install).into_iter().flat_map(|part| part.objects) {
        if object["kind"] == "PodDisruptionBudget" {
            objects.apply(&object.to_string()).await?;
        }
        if object["kind"] == "Service" {
            let labels = json!({"metadata": {"labels": object["metadata"]["labels"]}}).to_string();
            let name = object["metadata"]["name"].as_str().context("a name")?;
            let patch = ["-n", keys::OPERATOR_NAMESPACE, "patch", "service", name, "--type=merge", "-p", &labels];
            let patched = cp.kubectl(cp.admin(), &patch, "").await?;
            ensure!(patched.success, "{}", patched.stderr);
        }
    }
    Ok(installation)
}

/// What the command prints.
async fn printed(words: &[&str]) -> Result<Value> {
    let output = tokio::process::Command::new(programs::workspace("drawbridge")?).args(words).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("it prints JSON")
}

/// Two kinds of the Prometheus operator, with every field and none checked.
fn of_prometheus() -> [Value; 2] {
    [("podmonitors", "PodMonitor"), ("prometheusrules", "PrometheusRule")].map(|(plural, kind)| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let names =
            json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")});
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": names, "versions": [version]},
        })
    })
}

/// The operator runs and would put everything back; the failure mode with the most objects is installed.
#[tokio::test]
async fn an_installation_that_runs_leaves_nothing_behind_and_workloads_as_they_were() -> Result<()> {
    let cp = own_control_plane().await?;
    let installing = Installing { failure_mode: FailureMode::Gate, ..Installing::default() };
    let installation = installed(&cp, &installing).await?;
    // What `render --with-catalogue` adds.
    let catalogue = render::rbac::catalogue(&Install::new(FailureMode::Gate, keys::OPERATOR_NAMESPACE, ""));
    let objects = cp.objects().await?;
    for object in &catalogue {
        objects.apply(&object.to_string()).await?;
    }
    for definition in of_prometheus() {
        define(&objects, &definition).await?;
    }
    let ns = cp.namespace("enrolled").await?;
    ns.accepts(&deployment("weather", &json!({}))).await?;
    settled(&ns, "weather", false).await?;
    let original = essence(&ns.api::<Deployment>().get("weather").await?);
    ns.accepts(&agent_runtime("weather-runtime", "weather")).await?;
    settled(&ns, "weather", true).await?;
    ns.api::<ServiceAccount>().get("weather").await.context("made ahead of the Pod")?;
    let monitored = printed(&["render", "--pod-monitor", "-o", "json"]).await?;
    let mut monitors = monitored["items"].as_array().into_iter().flatten();
    let monitor = monitors.find(|object| object["kind"] == "PodMonitor").context("a PodMonitor")?;
    objects.apply(&monitor.to_string()).await?;
    let rules = printed(&["alerts", "--prometheus-rule", "-n", ns.name(), "-o", "json"]).await?;
    objects.apply(&rules.to_string()).await?;

    let person = cp.user("leaving", &["system:masters"])?;
    let mark = cp.audit().mark()?;
    let planned = uninstall(&person, &[]).await?;
    ensure!(planned.code == Some(0), "{}", planned.text);
    let elsewhere = uninstall(&person, &["--yes", "--operator-namespace=elsewhere"]).await?;
    let flag = format!("--operator-namespace {}", keys::OPERATOR_NAMESPACE);
    ensure!(elsewhere.code == Some(2) && elsewhere.text.contains(&flag), "{:?} {}", elsewhere.code, elsewhere.text);
    let wrote = cp.audit().settled(mark).await?.by("leaving").writes();
    ensure!(wrote.is_empty(), "neither a plan writes anything, nor who names another namespace");
    ensure!(!is_released(&ns, "weather").await?, "nothing happened yet");
    let workload = format!("Deployment {}/weather", ns.name());
    ensure!(planned.objects("/plan/steps").contains(&workload.as_str()), "{}", planned.text);
    for object in &catalogue {
        let place = object["metadata"]["namespace"].as_str().map(|name| format!("{name}/")).unwrap_or_default();
        let role = format!("{} {place}drawbridge-catalogue", object["kind"].as_str().unwrap_or_default());
        ensure!(planned.objects("/plan/steps").contains(&role.as_str()), "{role}: {}", planned.text);
    }
    for (kind, namespace) in [("PodMonitor", keys::OPERATOR_NAMESPACE), ("PrometheusRule", ns.name())] {
        let object = format!("{kind} {namespace}/drawbridge");
        ensure!(planned.objects("/plan/steps").contains(&object.as_str()), "{object}: {}", planned.text);
    }

    let ran = uninstall(&person, &["--yes"]).await?;
    ensure!(ran.code == Some(0), "{}", ran.text);
    ensure!(ran.objects("/left").is_empty(), "{}", ran.text);
    settled(&ns, "weather", false).await?;
    assert_eq!(essence(&ns.api::<Deployment>().get("weather").await?), original);
    assert_eq!(remains(&cp).await?, Vec::<String>::new());
    let processes: Api<Pod> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let ours = watcher::Config::default().labels("app.kubernetes.io/name=drawbridge");
    wait_until(&processes, ours, BTreeMap::is_empty).await.context("a process runs on")?;
    let runtime = ns.get("agent.kagenti.dev/v1alpha1", "AgentRuntime", "weather-runtime").await?;
    assert_eq!(runtime.finalizers(), [] as [String; 0]);
    let stays = ran.objects("/plan/stays");
    assert!(stays.contains(&"CustomResourceDefinition agentruntimes.agent.kagenti.dev"), "{}", ran.text);

    let again = uninstall(&person, &["--yes"]).await?;
    ensure!(again.code == Some(0) && again.objects("/done").is_empty(), "{}", again.text);
    let everything = uninstall(&person, &["--yes", "--crds"]).await?;
    ensure!(everything.code == Some(0), "{}", everything.text);
    let gone = ns.get("agent.kagenti.dev/v1alpha1", "AgentRuntime", "weather-runtime").await;
    assert!(gone.is_err(), "AgentRuntimes go with their definition");
    drop(installation);
    Ok(())
}

/// No field of a workload is ours any more.
async fn is_released(ns: &TestNamespace, name: &str) -> Result<bool> {
    let stored = ns.api::<Deployment>().get(name).await?;
    let managers = stored.managed_fields().iter().filter_map(|entry| entry.manager.clone());
    Ok(!managers.into_iter().any(|manager| manager == "drawbridge/enrolment"))
}

/// The Roles that `render --watch-namespaces` prints for an operator in `operator`, with `--beeai-compat` and without.
async fn roles_of(cp: &ControlPlane, operator: &str, watched: &TestNamespace) -> Result<()> {
    let mut install = Install::new(FailureMode::Fail, operator, "");
    install.namespaces = vec![watched.name().to_owned()];
    let objects = cp.objects().await?;
    let parts = render::parts(&install).into_iter().flat_map(|part| part.objects);
    for object in parts.chain(render::compat::objects(&install)) {
        if object["metadata"]["namespace"] == watched.name() {
            objects.apply(&object.to_string()).await?;
        }
    }
    Ok(())
}

/// Watched namespaces hold Roles and bindings: those of today's list, those of an earlier one, and another operator's, which stay.
#[tokio::test]
async fn rights_in_watched_namespaces_go_and_those_of_another_operator_stay() -> Result<()> {
    let cp = own_control_plane().await?;
    let names = ["watched", "watched", "earlier", "theirs"];
    let [one, two, earlier, theirs] = [
        cp.namespace(names[0]).await?,
        cp.namespace(names[1]).await?,
        cp.namespace(names[2]).await?,
        cp.namespace(names[3]).await?,
    ];
    let namespaces = format!("{},{}", one.name(), two.name());
    let installation = installed(&cp, &Installing { namespaces, ..Installing::default() }).await?;
    roles_of(&cp, keys::OPERATOR_NAMESPACE, &earlier).await?;
    roles_of(&cp, "another-operator", &theirs).await?;
    two.accepts(&deployment("weather", &json!({}))).await?;
    two.accepts(&agent_runtime("weather-runtime", "weather")).await?;
    settled(&two, "weather", true).await?;

    let planned = uninstall(cp.admin(), &[]).await?;
    ensure!(planned.code == Some(0), "{}", planned.text);
    let steps = planned.objects("/plan/steps");
    for kind in ["RoleBinding", "Role"] {
        for role in ["drawbridge-webhook", "drawbridge-controllers"] {
            for ns in [&one, &two, &earlier] {
                let object = format!("{kind} {}/{role}", ns.name());
                ensure!(steps.contains(&object.as_str()), "{object} is not in {steps:#?}");
            }
            let object = format!("{kind} {}/{role}-beeai-compat", earlier.name());
            ensure!(steps.contains(&object.as_str()), "{object} is not in {steps:#?}");
        }
    }
    let place = |object: &str| steps.iter().position(|step| step.starts_with(object)).context("it is planned");
    ensure!(
        place(&format!("RoleBinding {}/", one.name()))? < place("Deployment ")?,
        "rights go ahead of processes: {steps:#?}"
    );
    let ran = uninstall(cp.admin(), &["--yes"]).await?;
    ensure!(ran.code == Some(0) && ran.objects("/left").is_empty(), "{}", ran.text);
    settled(&two, "weather", false).await?;
    let names = ["controllers", "controllers-beeai-compat", "webhook", "webhook-beeai-compat"];
    let stay = ["Role", "RoleBinding"].map(|kind| names.map(|name| format!("{kind} drawbridge-{name}")));
    assert_eq!(remains(&cp).await?, stay.concat(), "another operator's");
    drop(installation);
    Ok(())
}

/// Whoever waits behind the gate while an installation goes runs on without it: a Job that fails with its first failed Pod has none.
#[tokio::test]
async fn a_job_behind_the_gate_runs_on_and_loses_no_try() -> Result<()> {
    let cp = own_control_plane().await?;
    let installing = Installing { failure_mode: FailureMode::Gate, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("gated").await?;
    until_created(&ns, |pod| injected(pod) && !gated(pod)).await?;
    for webhook in &installation.webhooks {
        webhook.kill().await;
    }
    installation.balancer.wait_for_endpoints(0).await?;
    until_created(&ns, gated).await?;
    let template = json!({
        "metadata": {"labels": {"app": "once", keys::LABEL_TYPE: "agent"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "agent", "image": "example.com/agent:1"}]},
    });
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
        "spec": {"backoffLimit": 0, "template": template}});
    ns.accepts(&job).await?;
    let of_job = watcher::Config::default().labels("app=once");
    wait_until(&ns.api::<Pod>(), of_job, |all| all.len() == 1 && all.values().all(gated)).await?;

    let planned = uninstall(cp.admin(), &[]).await?;
    let steps = planned.objects("/plan/steps");
    let of_job = format!("Job {}/once", ns.name());
    ensure!(steps.iter().filter(|step| **step == of_job).count() == 2, "suspended and resumed: {steps:#?}");
    let ran = uninstall(cp.admin(), &["--yes"]).await?;
    ensure!(ran.code == Some(0) && ran.objects("/left").is_empty(), "{}", ran.text);
    let over = |job: &Job| {
        let status = job.status.clone().unwrap_or_default();
        status.succeeded == Some(1) || status.failed.unwrap_or_default() > 0
    };
    let job = wait_for(&ns.api::<Job>(), "once", over).await?;
    assert_eq!(job.status.as_ref().and_then(|status| status.failed).unwrap_or_default(), 0, "{:?}", job.status);
    assert!(!job.annotations().contains_key(keys::ANNOTATION_SUSPENDED), "{:?}", job.metadata);
    let of_job = watcher::Config::default().labels("app=once");
    wait_until(&ns.api::<Pod>(), of_job, |all| all.values().all(|pod| !gated(pod) && !is_injected(pod))).await?;
    drop(installation);
    Ok(())
}

/// Steps for OpenShift with a mirror's image, which another version of the manifests wrote, too: only what a person edited stays.
#[tokio::test]
async fn settings_that_nobody_edited_go_whatever_they_were_rendered_with() -> Result<()> {
    let cp = own_control_plane().await?;
    let rendered = tokio::process::Command::new(programs::workspace("drawbridge")?)
        .args(["render", "--failure-mode=gate", "--openshift", "--allow-unknown-git-hosts", "-o", "json"])
        .arg("--build-image=git=mirror.example/git:1")
        .output()
        .await?;
    let mut manifests: Value = serde_json::from_slice(&rendered.stdout).context("render prints a List")?;
    let items = manifests["items"].as_array_mut().context("a List has items")?;
    items.retain(|object| object["kind"] == "ConfigMap" || object["kind"] == "Namespace");
    let mut earlier = items.iter().find(|object| object["metadata"]["name"] == "sign-step").context("a step")?.clone();
    earlier["metadata"]["name"] = json!("earlier-step");
    items.push(earlier);
    let applied = cp.kubectl(cp.admin(), &["apply", "-f", "-"], &manifests.to_string()).await?;
    ensure!(applied.success, "{}", applied.stderr);
    let edited = ["github-clone-step", keys::CONFIG_MAP_GATES];
    for name in edited {
        let merge = json!({"data": {"more": "a person's"}}).to_string();
        let patch = ["-n", keys::OPERATOR_NAMESPACE, "patch", "configmap", name, "--type=merge", "-p", &merge];
        let patched = cp.kubectl(cp.admin(), &patch, "").await?;
        ensure!(patched.success, "{}", patched.stderr);
    }

    let ran = uninstall(cp.admin(), &["--yes"]).await?;
    ensure!(ran.code == Some(0) && ran.objects("/left").is_empty(), "{}", ran.text);
    let stays: Vec<String> = edited.map(|name| format!("ConfigMap {}/{name}", keys::OPERATOR_NAMESPACE)).into();
    let mut told: Vec<&str> = ran.objects("/plan/stays");
    told.retain(|object| object.starts_with("ConfigMap "));
    told.sort_unstable_by_key(|object| stays.iter().position(|name| name == object));
    assert_eq!(told, stays, "{}", ran.text);
    let mut left = remains(&cp).await?;
    left.sort_unstable_by_key(|object| edited.iter().position(|name| object.ends_with(name)));
    assert_eq!(left, edited.map(|name| format!("ConfigMap {name}")));
    Ok(())
}

/// Nobody runs, the definitions are gone; a workload that only its label enrols is named with --keep-pods, and rolled without.
#[tokio::test]
async fn answers_11_without_an_operator_and_definitions_what_only_its_label_enrols_is_named_or_rolled() -> Result<()> {
    let cp = own_control_plane().await?;
    let installation = installed(&cp, &Installing::default()).await?;
    let ns = cp.namespace("labelled").await?;
    ns.accepts(&deployment("weather", &json!({keys::LABEL_TYPE: "agent"}))).await?;
    settled(&ns, "weather", true).await?;
    let edited: Api<ConfigMap> = ns.api();
    let mut routes = wait_for(&edited, keys::CONFIG_MAP_ROUTES, |_| true).await?;
    // Nobody is left who would replace Pods for the edit.
    drop(installation);
    routes.data.get_or_insert_default().insert("routes.yaml".to_owned(), "# mine\n".to_owned());
    edited.replace(keys::CONFIG_MAP_ROUTES, &Default::default(), &routes).await?;
    let original = essence(&ns.api::<Deployment>().get("weather").await?);
    let definitions = ["delete", "crd", "agentruntimes.agent.kagenti.dev"];
    let deleted = cp.kubectl(cp.admin(), &definitions, "").await?;
    ensure!(deleted.success, "{}", deleted.stderr);

    let first = uninstall(cp.admin(), &["--yes", "--timeout=1s", "--keep-pods"]).await?;
    ensure!(first.code == Some(0), "the plan was carried out, and names what has to wait: {}", first.text);
    for object in
        [format!("ConfigMap {}/{}", ns.name(), keys::CONFIG_MAP_ENVOY), format!("Deployment {}/weather", ns.name())]
    {
        assert!(first.objects("/left").contains(&object.as_str()), "{object}: {}", first.text);
    }
    settled(&ns, "weather", true).await?;

    let second = uninstall(cp.admin(), &["--yes"]).await?;
    ensure!(second.code == Some(0), "{}", second.text);
    settled(&ns, "weather", false).await?;
    let kept = format!("ConfigMap {}/{}", ns.name(), keys::CONFIG_MAP_ROUTES);
    assert!(second.objects("/plan/stays").contains(&kept.as_str()), "{}", second.text);
    assert_eq!(remains(&cp).await?, [format!("ConfigMap {}", keys::CONFIG_MAP_ROUTES)]);
    let mut after = essence(&ns.api::<Deployment>().get("weather").await?);
    let template = after.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut).unwrap();
    template.remove("annotations");
    assert_eq!(after, original, "the label is the person's and stays");
    Ok(())
}

/// Somebody who may not delete the webhooks is told so, and nothing that comes later is touched.
#[tokio::test]
async fn a_refusal_at_the_beginning_ends_it() -> Result<()> {
    let cp = own_control_plane().await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("kept").await?;
    ns.accepts(&deployment("weather", &json!({}))).await?;
    ns.accepts(&agent_runtime("weather-runtime", "weather")).await?;
    settled(&ns, "weather", true).await?;
    let objects = cp.objects().await?;
    objects
        .apply(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: reader}\n\
             roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view-all}\n\
             subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: looker}]\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: view-all}\n\
             rules: [{apiGroups: ['*'], resources: ['*'], verbs: [get, list, watch, patch]}]\n",
        )
        .await?;
    let looker = cp.user("looker", &[])?;
    // The API server goes by a role a moment after it was stored.
    let seen: Api<Deployment> = Api::all(looker.client().await?);
    let begun = Instant::now();
    while let Err(error) = seen.list(&ListParams::default()).await {
        ensure!(begun.elapsed() < patience(), "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ran = uninstall(&looker, &["--yes", "--timeout=1s"]).await?;
    ensure!(ran.code == Some(1), "{}", ran.text);
    ensure!(!ran.objects("/left").is_empty(), "{}", ran.text);
    ensure!(!is_released(&ns, "weather").await?, "the workload keeps its enrolment: {}", ran.text);
    settled(&ns, "weather", true).await?;
    drop(installation);
    Ok(())
}
