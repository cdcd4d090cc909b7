//! The CustomResourceDefinition on a real API server: what it takes, what it refuses and in which words, what kubectl shows.
//! Cases of AgentRuntimes (docs/cases.md).

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::time::Instant;
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{ControlPlane, TestNamespace, wait_served};

const CRD: &str = "agentruntimes.agent.kagenti.dev";

/// A namespace of a cluster that knows AgentRuntimes.
async fn prepared(cp: &ControlPlane) -> Result<TestNamespace> {
    let file = webhook_tests::corpus::root().join("../../manifests/crds").join(format!("{CRD}.yaml"));
    let objects = cp.objects().await?;
    objects.apply(&std::fs::read_to_string(file)?).await?;
    wait_served(&objects, CRD).await?;
    cp.namespace("schema").await
}

fn agent_runtime(name: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentRuntime",
        "metadata": {"name": name},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"}}
    });
    json_patch::merge(&mut object, more);
    object
}

fn target(api_version: &str, kind: &str) -> Value {
    json!({"spec": {"targetRef": {"apiVersion": api_version, "kind": kind}}})
}

#[tokio::test]
async fn cases_012_to_016_and_023_what_the_schema_takes_and_refuses() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let ns = prepared(&lent).await?;
    let refused = [
        ("case 12", json!({"spec": {"type": "service"}}), "spec.type"),
        ("case 13", json!({"spec": {"targetRef": {"name": ""}}}), "spec.targetRef.name"),
        ("case 13", json!({"spec": {"targetRef": null}}), "spec.targetRef"),
        ("case 13", json!({"spec": {"targetRef": {"kind": ""}}}), "spec.targetRef.kind"),
        ("case 14", json!({"spec": {"trace": {"sampling": {"rate": 1.5}}}}), "spec.trace.sampling.rate"),
        ("case 14", json!({"spec": {"trace": {"sampling": {}}}}), "spec.trace.sampling.rate"),
        (
            "case 15",
            json!({"spec": {"identity": {"spiffe": {"trustDomain": "-bad-"}}}}),
            "spec.identity.spiffe.trustDomain",
        ),
        ("case 16", json!({"spec": {"authBridgeMode": "sidecar"}}), "spec.authBridgeMode"),
        ("S4", target("extensions/v1beta1", "Deployment"), "must be a Deployment, StatefulSet or DaemonSet of apps/v1"),
        ("S4", target("apps/v1", "CronJob"), "a CronJob of batch/v1"),
        ("S4", target("batch/v1", "Job"), "a CronJob of batch/v1"),
        ("S4", target("v1", "Pod"), "a Sandbox of agents.x-k8s.io/v1alpha1"),
    ];
    for (case, more, says) in refused {
        let status = ns.rejects(&agent_runtime("refused", &more)).await?;
        ensure!(
            status.code == 422 && status.message.contains(says),
            "{case} {more}: {} {}",
            status.code,
            status.message
        );
    }
    let accepted = [
        json!({}),
        json!({"spec": {"trace": {"sampling": {"rate": 0}}}}),
        json!({"spec": {"trace": {"sampling": {"rate": 1}}}}),
        json!({"spec": {"identity": {"spiffe": {"trustDomain": "custom.example.com"}}}}),
        json!({"spec": {"authBridgeMode": "lite"}}),
        target("apps/v1", "StatefulSet"),
        // Case 23 is overridden: DaemonSet and CronJob are targets.
        target("apps/v1", "DaemonSet"),
        target("batch/v1", "CronJob"),
        target("agents.x-k8s.io/v1alpha1", "Sandbox"),
        json!({"spec": {"targetRef": {"name": "n".repeat(253)}}}),
    ];
    for (index, more) in accepted.iter().enumerate() {
        let stored = serde_json::to_value(ns.accepts(&agent_runtime(&format!("accepted-{index}"), more)).await?)?;
        ensure!(stored["spec"] == agent_runtime("", more)["spec"], "stored as sent: {stored}");
    }
    // An explicit null is dropped, not stored and not refused.
    let nulls = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": "nulls"},
        "spec": {"type": "agent", "trace": null, "authBridgeMode": null,
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}}});
    let stored = serde_json::to_value(ns.accepts(&nulls).await?)?;
    ensure!(stored["spec"].get("trace").is_none() && stored["spec"].get("authBridgeMode").is_none(), "{stored}");
    Ok(())
}

#[tokio::test]
async fn case_011_kubectl_shows_the_columns_and_waits_for_ready() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = prepared(cp).await?;
    ns.accepts(&agent_runtime("weather", &json!({}))).await?;
    let time = "2026-05-01T00:00:00Z";
    let status = json!({"status": {
        "phase": "Active", "observedGeneration": 1, "configuredPods": 2,
        "effective": {"mode": "envoy-sidecar", "values": [{"field": "mode", "value": "a", "from": "b"}]},
        "appliedTarget": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent", "uid": "u"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Configured", "message": "", "lastTransitionTime": time, "observedGeneration": 1}]}});
    let patch = status.to_string();
    let of = |args: &[&str]| {
        let args: Vec<String> =
            args.iter().map(|arg| (*arg).to_owned()).chain(["-n".to_owned(), ns.name().to_owned()]).collect();
        async move {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let output = cp.kubectl(cp.admin(), &args, "").await?;
            ensure!(output.success, "kubectl {args:?}: {}", output.stderr);
            Ok::<_, anyhow::Error>(output.stdout)
        }
    };
    of(&["patch", "art", "weather", "--subresource=status", "--type=merge", "-p", &patch]).await?;
    of(&["wait", "--for=condition=Ready", "agentruntime/weather", &timeout()]).await?;
    let table = of(&["get", "agentrt"]).await?;
    let mut lines = table.lines();
    let columns: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    ensure!(columns == ["NAME", "TYPE", "TARGET", "PHASE", "PROTECTED", "REASON", "AGE"], "{table}");
    let row: Vec<_> = lines.next().unwrap_or_default().split_whitespace().collect();
    ensure!(row.get(..4) == Some(&["weather", "agent", "weather-agent", "Active"]), "{table}");
    let wide = of(&["get", "art", "-o", "wide"]).await?;
    ensure!(["READY", "True", "PROTECTED", "envoy-sidecar"].iter().all(|word| wide.contains(word)), "{wide}");
    // What a field means is published later than the kind is served.
    let begun = Instant::now();
    let explained = loop {
        match of(&["explain", "agentruntime.spec.targetRef"]).await {
            Err(_) if begun.elapsed() < patience() => tokio::time::sleep(Duration::from_millis(100)).await,
            explained => break explained?,
        }
    };
    ensure!(explained.contains("CronJob"), "{explained}");
    // Conditions are a map by type: another manager's entry stays beside ours.
    let twice = json!({"status": {"conditions": [
        {"type": "Ready", "status": "True", "reason": "A", "message": "", "lastTransitionTime": time},
        {"type": "Ready", "status": "False", "reason": "B", "message": "", "lastTransitionTime": time}]}});
    let arguments =
        ["patch", "art", "weather", "--subresource=status", "--type=merge", "-p", &twice.to_string(), "-n", ns.name()];
    let output = cp.kubectl(cp.admin(), &arguments, "").await?;
    ensure!(!output.success && output.stderr.contains("Duplicate"), "{}", output.stderr);
    Ok(())
}
