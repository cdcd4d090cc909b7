//! `drawbridge status` and `explain` on a real API server, beside what the cluster does.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::status::shape::FIELDS;
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::Instant;
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{
    ControlPlane, Installation, Installing, Options, TestNamespace, installation, programs, wait_served, wait_until,
};

async fn control_plane() -> Result<&'static ControlPlane> {
    installation::shared().await
}

fn command(cp: &ControlPlane, args: &[&str]) -> Result<Command> {
    let mut command = Command::new(programs::workspace("drawbridge")?);
    command.args(args).arg("--kubeconfig").arg(cp.admin().kubeconfig()).kill_on_drop(true);
    Ok(command)
}

/// The report of a namespace, and the exit code.
async fn status(cp: &ControlPlane, namespace: &str) -> Result<(Value, Option<i32>)> {
    let output = command(cp, &["status", "-o", "json", "-n", namespace])?.output().await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((serde_json::from_slice(&output.stdout).context(said)?, output.status.code()))
}

fn deployment(name: &str, labels: &Value) -> Value {
    let mut template_labels = labels.clone();
    template_labels["app"] = json!(name);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": template_labels},
                "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1", "ports": [{"containerPort": 8000}]}]},
            },
        },
    })
}

fn agent_runtime(name: &str, target: &str) -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": name},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
    })
}

/// Waits until the only Pod of an app runs, with sidecars or without.
async fn settled(ns: &TestNamespace, app: &str, injected: bool) -> Result<Pod> {
    let pods = watcher::Config::default().labels(&format!("app={app}"));
    let settled = |all: &BTreeMap<String, Pod>| {
        let running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        let wanted = |pod: &Pod| pod.annotations().contains_key(keys::ANNOTATION_STATUS) == injected;
        all.len() == 1 && all.values().all(|pod| running(pod) && wanted(pod))
    };
    wait_until(&ns.api::<Pod>(), pods, settled).await?.pop().context("there is one")
}

/// Every path of a value, lists as `[]`.
fn paths(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            paths(&below, value, found);
        }),
        Value::Array(items) => items.iter().for_each(|value| paths(&format!("{path}[]"), value, found)),
        _ => found.push(path.to_owned()),
    }
}

#[tokio::test]
async fn enrolled_workloads_are_told_as_they_are() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("told").await?;
    ns.accepts(&deployment("plain", &json!({}))).await?;
    ns.accepts(&deployment("labelled", &json!({keys::LABEL_TYPE: "agent"}))).await?;
    ns.accepts(&deployment("pointed", &json!({}))).await?;
    ns.accepts(&agent_runtime("runtime", "pointed")).await?;
    ns.accepts(&agent_runtime("lost", "nowhere")).await?;
    settled(&ns, "labelled", true).await?;
    settled(&ns, "pointed", true).await?;
    let ready = ["wait", "--for=condition=Ready", "agentruntime/runtime", &timeout(), "-n", ns.name()];
    let waited = cp.kubectl(cp.admin(), &ready, "").await?;
    ensure!(waited.success, "{}", waited.stderr);

    // A Deployment says that its rollout is complete after its Pod runs, and an AgentRuntime what it lacks once somebody has looked.
    let begun = Instant::now();
    let (report, code) = loop {
        let (report, code) = status(cp, ns.name()).await?;
        let rows = report["workloads"].as_array().map(Vec::as_slice).unwrap_or_default();
        let complete = rows.iter().filter(|row| row["rollout"]["state"] == "complete").count();
        let is_told = rows.iter().any(|row| row["reason"] == "TargetNotFound");
        if (complete >= 2 && is_told) || begun.elapsed() > patience() {
            break (report, code);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let rows = report["workloads"].as_array().context("rows")?;
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["labelled", "nowhere", "pointed"], "{report:#}");
    for (row, by) in [(&rows[0], "label"), (&rows[2], "AgentRuntime")] {
        assert_eq!(row["enrolledBy"]["by"], by);
        assert_eq!(
            (&row["type"], &row["mode"], &row["drift"]),
            (&json!("agent"), &json!("envoy-sidecar"), &json!("none")),
            "{row:#}"
        );
        assert_eq!(
            row["pods"],
            json!({"total": 1, "running": 1, "injected": 1, "unprotected": 0, "outdated": 0, "gated": 0})
        );
        assert_eq!((&row["rollout"]["state"], &row["attention"]), (&json!("complete"), &json!(false)), "{row:#}");
    }
    assert_eq!((&rows[2]["ready"], &rows[2]["enrolledBy"]["agentRuntime"]), (&json!(true), &json!("runtime")));
    assert_eq!((&rows[1]["ready"], &rows[1]["reason"]), (&json!(false), &json!("TargetNotFound")), "{:#}", rows[1]);
    assert_eq!(code, Some(1), "an AgentRuntime without its target needs a person");
    let mut found = Vec::new();
    paths("", &report, &mut found);
    for path in found {
        assert!(FIELDS.iter().any(|(known, ..)| *known == path), "{path} is not documented");
    }
    Ok(())
}

/// A check of `doctor` by the beginning of its name.
fn check<'c>(checks: &'c [Value], name: &str) -> &'c Value {
    let found = checks.iter().find(|check| check["name"].as_str().is_some_and(|own| own.starts_with(name)));
    found.unwrap_or_else(|| panic!("no check {name}: {checks:#?}"))
}

#[tokio::test]
async fn doctor_knows_definitions_and_agent_runtimes_that_are_not_ready() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("visited").await?;
    ns.accepts(&agent_runtime("lost", "nowhere")).await?;
    let waited = ["wait", "--for=condition=Ready=false", "agentruntime/lost", &timeout(), "-n", ns.name()];
    let waited = cp.kubectl(cp.admin(), &waited, "").await?;
    ensure!(waited.success, "{}", waited.stderr);
    let output = command(cp, &["doctor", "-o", "json", "-n", ns.name()])?.output().await?;
    let checks: Vec<Value> = serde_json::from_slice(&output.stdout).context("checks")?;
    let definition = check(&checks, "CustomResourceDefinition agentruntimes.agent.kagenti.dev");
    assert_eq!(definition["status"], "ok", "{definition:#}");
    let runtimes = check(&checks, "AgentRuntimes that say");
    assert_eq!(runtimes["status"], "finding", "{runtimes:#}");
    assert!(
        runtimes["seen"].as_str().unwrap().contains(&format!("Deployment/nowhere in {}", ns.name())),
        "{runtimes:#}"
    );
    assert_eq!(check(&checks, "Pods without sidecars")["group"], "enrolment");
    for about in [keys::WEBHOOK_INJECT, keys::WEBHOOK_EXPLAIN, keys::WEBHOOK_AGENT_RUNTIME] {
        assert_eq!(check(&checks, &format!("caBundle of {about}"))["status"], "ok");
    }
    assert_eq!(check(&checks, &format!("{} blocks no object of others", keys::WEBHOOK_AGENT_RUNTIME))["status"], "ok");
    Ok(())
}

#[tokio::test]
async fn a_pod_that_lost_its_sidecars_or_its_configuration_is_drift() -> Result<()> {
    let cp = &installation::plane(Options::default()).await?;
    let installation = Installation::start(cp, &Installing::default()).await?;
    let ns = cp.namespace("drift").await?;
    ns.accepts(&deployment("labelled", &json!({keys::LABEL_TYPE: "agent"}))).await?;
    let pod = settled(&ns, "labelled", true).await?.name_any();
    // They would put it right.
    for controllers in &installation.controllers {
        controllers.stop(patience()).await?;
    }
    let (_, code) = status(cp, ns.name()).await?;
    assert_eq!(code, Some(0));
    // Its sidecars need a Keycloak, and first there is none, then nobody behind its Service.
    let keycloak = async || {
        let output = command(cp, &["doctor", "-o", "json", "-n", ns.name()])?.output().await?;
        let checks: Vec<Value> = serde_json::from_slice(&output.stdout).context("checks")?;
        let check = check(&checks, "Keycloak");
        assert_eq!((&check["status"], &check["group"]), (&json!("finding"), &json!("surroundings")), "{check:#}");
        anyhow::Ok(check["seen"].as_str().unwrap_or_default().to_owned())
    };
    let seen = keycloak().await?;
    ensure!(seen.starts_with("Service keycloak-service in keycloak does not exist"), "{seen}");
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keycloak"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "keycloak-service", "namespace": "keycloak"},
            "spec": {"selector": {"app": "keycloak"}, "ports": [{"name": "http", "port": 8080}]}}),
    ] {
        cp.objects().await?.apply(&object.to_string()).await?;
    }
    let seen = keycloak().await?;
    // Before its endpoints are made, the API server's proxy knows nothing there.
    ensure!(seen.contains("answers 503: no endpoints available") || seen.contains("knows no realm"), "{seen}");
    // What was injected is kept from people; the policy does not ask Kubernetes' own controllers.
    let kubernetes = cp.user("system:kube-controller-manager", &["system:masters"])?;
    for (annotation, drift) in [
        (format!("{}=0000", keys::ANNOTATION_CONFIG_HASH), "outdated"),
        (format!("{}-", keys::ANNOTATION_STATUS), "unprotected"),
    ] {
        let annotate = ["annotate", "--overwrite", "pod", &pod, &annotation, "-n", ns.name()];
        let done = cp.kubectl(&kubernetes, &annotate, "").await?;
        ensure!(done.success, "{}", done.stderr);
        let (report, code) = status(cp, ns.name()).await?;
        let row = &report["workloads"][0];
        assert_eq!((&row["drift"], &row["attention"], code), (&json!(drift), &json!(true), Some(1)), "{row:#}");
    }
    Ok(())
}

/// `status --watch` of a namespace, as rows.
struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    fn start(cp: &ControlPlane, namespace: &str) -> Result<Self> {
        let mut child = command(cp, &["status", "-w", "-o", "json", "-n", namespace])?
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("it has a standard output")?).lines();
        Ok(Self { child, lines })
    }

    /// Reads on to a row.
    async fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let reading = async {
            while let Some(line) = self.lines.next_line().await? {
                let row: Value = serde_json::from_str(&line)?;
                if holds(&row) {
                    return Ok(row);
                }
            }
            anyhow::bail!("it ended")
        };
        tokio::time::timeout(patience(), reading).await.context("no such row came")?
    }
}

#[tokio::test]
async fn following_prints_a_row_when_it_changes_and_when_it_goes() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("followed").await?;
    ns.accepts(&deployment("pointed", &json!({}))).await?;
    settled(&ns, "pointed", false).await?;
    let mut following = Following::start(cp, ns.name())?;
    ns.accepts(&agent_runtime("runtime", "pointed")).await?;
    let enrolled = |row: &Value| row["pods"]["injected"] == 1 && row["ready"] == true && row["drift"] == "none";
    let row = following.until(enrolled).await?;
    assert_eq!(row["name"], "pointed");
    let deleted = cp.kubectl(cp.admin(), &["delete", "agentruntime", "runtime", "-n", ns.name()], "").await?;
    ensure!(deleted.success, "{}", deleted.stderr);
    following.until(|row| row["change"] == "gone" && row["name"] == "pointed").await?;
    following.child.kill().await?;
    Ok(())
}

#[tokio::test]
async fn following_sees_kinds_whose_definition_comes_later() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("later").await?;
    ns.accepts(&deployment("labelled", &json!({keys::LABEL_TYPE: "agent"}))).await?;
    let mut following = Following::start(cp, ns.name())?;
    following.until(|row| row["name"] == "labelled").await?;
    ns.apply(&webhook_tests::sandbox::definition().to_string()).await?;
    wait_served(&ns, "sandboxes.agents.x-k8s.io").await?;
    let mut boxed = deployment("box", &json!({keys::LABEL_TYPE: "agent"}));
    let template = boxed["spec"]["template"].take();
    boxed["apiVersion"] = json!("agents.x-k8s.io/v1alpha1");
    boxed["kind"] = json!("Sandbox");
    boxed["spec"] = json!({"replicas": 1, "podTemplate": template});
    ns.accepts(&boxed).await?;
    let row = following.until(|row| row["name"] == "box").await?;
    assert_eq!(row["kind"], "Sandbox");
    following.child.kill().await?;
    Ok(())
}

#[tokio::test]
async fn explain_answers_for_an_agent_runtime_and_for_its_workload() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("explained").await?;
    ns.accepts(&deployment("pointed", &json!({}))).await?;
    let mut runtime = agent_runtime("runtime", "pointed");
    runtime["spec"]["authBridgeMode"] = json!("proxy-sidecar");
    ns.accepts(&runtime).await?;
    settled(&ns, "pointed", true).await?;
    for object in ["agentruntime/runtime", "art/runtime", "deployment/pointed"] {
        let output = command(cp, &["explain", object, "-o", "json", "-n", ns.name()])?.output().await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told: Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!(told[0]["subject"], format!("Deployment {}/pointed", ns.name()));
        let fields = told[0]["fields"].as_array().context("fields")?;
        let mode = fields.iter().find(|field| field["name"] == "mode").context("mode")?;
        assert_eq!(mode["value"], "proxy-sidecar", "{mode:#}");
        assert!(mode["layer"].as_str().unwrap().contains("AgentRuntime"), "{mode:#}");
    }
    let missing = command(cp, &["explain", "agentruntime/nobody", "-n", ns.name()])?.output().await?;
    assert_eq!(missing.status.code(), Some(2));
    Ok(())
}
