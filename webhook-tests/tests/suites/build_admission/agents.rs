//! Agents at the door, and what both CustomResourceDefinitions take: A10 to A13, A19, A20, F8; G1 and G3 of docs/cases.md.

use anyhow::{Context as _, Result, bail, ensure};
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::{Installation, Installing, Options, installation};

use super::{accepted, control_plane, minimal, refused, resource, team, with};

fn agent(name: &str, members: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "Agent",
        "metadata": {"name": name},
        "spec": {
            "imageSource": {"image": "ghcr.io/acme/weather:v1"},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent", "image": "set by operator"}]}},
        },
    });
    json_patch::merge(&mut object, &json!({"spec": members}));
    object
}

fn relaxed() -> Value {
    json!({"podTemplateSpec": {"spec": {"containers": [
        {"name": "agent", "securityContext": {"readOnlyRootFilesystem": false}}]}}})
}

#[tokio::test]
async fn cases_a10_and_a11_sources_and_names() -> Result<()> {
    let ns = team().await?;
    let source = |source: Value| agent("weather", &json!({"imageSource": source}));
    refused(&ns, "A10", &source(json!({"image": null})), &["spec.imageSource"]).await?;
    refused(&ns, "A10", &source(json!({"buildRef": {"name": "b"}})), &["spec.imageSource"]).await?;
    refused(&ns, "A10", &source(json!({"image": null, "buildRef": {"name": ""}})), &["spec.imageSource"]).await?;
    refused(&ns, "A10", &agent("weather", &json!({"image": "a/b:1"})), &["spec.imageSource"]).await?;
    refused(&ns, "A10", &agent("weather", &json!({"imageSource": null})), &["spec.imageSource"]).await?;
    accepted(&ns, "O8", &agent("weather", &json!({"imageSource": null, "image": "a/b:1"}))).await?;
    for name in ["1a", "a.b", &"a".repeat(64)] {
        refused(&ns, "A11", &agent(name, &json!({})), &["metadata.name"]).await?;
    }
    accepted(&ns, "A11", &agent(&"a".repeat(63), &json!({}))).await?;
    Ok(())
}

#[tokio::test]
async fn cases_a12_and_a13_defaults_and_no_service() -> Result<()> {
    let ns = team().await?;
    let (stored, warnings) = accepted(&ns, "A12", &agent("weather", &json!({}))).await?;
    assert_eq!(stored.data["spec"]["replicas"], 1);
    assert_eq!(
        stored.data["spec"]["servicePorts"],
        json!([{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}])
    );
    assert_eq!(warnings, [""; 0]);
    let (stored, _) = accepted(&ns, "A13", &agent("weather", &json!({"servicePorts": []}))).await?;
    assert_eq!(stored.data["spec"]["servicePorts"], json!([]));
    refused(&ns, "3.1", &agent("weather", &json!({"replicas": -1})), &["spec.replicas"]).await?;
    Ok(())
}

#[tokio::test]
async fn case_a19_a_relaxed_lockdown_is_allowed_with_a_warning_and_everything_else_of_6_7_is_told() -> Result<()> {
    let ns = team().await?;
    let (_, warnings) = accepted(&ns, "A19", &agent("weather", &relaxed())).await?;
    let path = "containers[0].securityContext.readOnlyRootFilesystem";
    ensure!(warnings.iter().any(|text| text.starts_with("LockdownRelaxed: ") && text.contains(path)), "{warnings:?}");
    let build = json!({"imageSource": {"image": null, "buildRef": {"name": "not-there"}}});
    let (_, warnings) = accepted(&ns, "6.7", &agent("weather", &build)).await?;
    ensure!(warnings.iter().any(|text| text.starts_with("BuildUnknown: ")), "{warnings:?}");
    let ports = json!({"servicePorts": [{"name": "http", "port": 80, "targetPort": "grpc"}]});
    let (_, warnings) = accepted(&ns, "6.7", &agent("weather", &ports)).await?;
    ensure!(warnings.iter().any(|text| text.starts_with("PortUnmatched: ")), "{warnings:?}");
    let (_, warnings) = accepted(&ns, "6.7", &agent("weather", &json!({"imageSource": {"image": "a/b"}}))).await?;
    ensure!(warnings.iter().any(|text| text.starts_with("MovingReference: ")), "{warnings:?}");
    let twice = json!({"podTemplateSpec": {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}},
        "labels": {"agent.kagenti.dev/x": "y"}});
    refused(&ns, "6.7", &agent("weather", &twice), &["containers[1].name ", "spec.labels[agent.kagenti.dev/x] "])
        .await?;
    Ok(())
}

/// The names of AgentBuilds come from a watch: the warning ends when the build is there.
#[tokio::test]
async fn a_build_that_comes_later_is_known() -> Result<()> {
    let ns = team().await?;
    let object = agent("weather", &json!({"imageSource": {"image": null, "buildRef": {"name": "weather"}}}));
    ns.accepts(&minimal("weather")).await?;
    let begun = std::time::Instant::now();
    loop {
        let (_, warnings) = accepted(&ns, "6.7", &object).await?;
        if warnings.is_empty() {
            return Ok(());
        }
        ensure!(begun.elapsed() < webhook_tests::patience::patience(), "{warnings:?}");
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
}

/// A20 needs another setting of the platform, so it has an installation of its own.
#[tokio::test]
async fn case_a20_enforced_the_same_is_refused_with_its_path() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { platform: "agents: {lockdown: enforce}\n".to_owned(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("team").await?;
    let paths = [
        (relaxed(), "containers[0].securityContext.readOnlyRootFilesystem "),
        (json!({"podTemplateSpec": {"spec": {"hostNetwork": true}}}), "spec.podTemplateSpec.spec.hostNetwork "),
        (
            json!({"podTemplateSpec": {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}}),
            "spec.podTemplateSpec.spec.volumes[0].hostPath ",
        ),
        (
            json!({"podTemplateSpec": {"spec": {"containers": [{"name": "agent", "securityContext": {"runAsUser": 0}}]}}}),
            "containers[0].securityContext.runAsUser ",
        ),
    ];
    for (members, path) in paths {
        refused(&ns, "A20", &agent("weather", &members), &[path, "LockdownViolated"]).await?;
    }
    accepted(&ns, "A20", &agent("weather", &json!({}))).await?;
    drop(installation);
    Ok(())
}

/// G1: a reference never leaves the namespace, however it is spelt.
#[tokio::test]
async fn g1_references_to_other_namespaces_are_refused() -> Result<()> {
    let ns = team().await?;
    for name in ["other/weather", "../other/weather", "weather.other/x", "other:weather"] {
        let object = agent("weather", &json!({"imageSource": {"image": null, "buildRef": {"name": name}}}));
        refused(&ns, "G1", &object, &["spec.imageSource.buildRef.name"]).await?;
        let credentials = json!({"source": {"sourceCredentials": {"name": name}}});
        refused(&ns, "G1", &with("a", credentials), &["spec.source.sourceCredentials.name "]).await?;
        let registry = json!({"buildOutput": {"imageRepoCredentials": {"name": name}}});
        refused(&ns, "G1", &with("a", registry), &["spec.buildOutput.imageRepoCredentials.name "]).await?;
        let steps = json!({"pipeline": {"steps": [{"name": "a", "configMap": name}]}});
        refused(&ns, "G1", &with("a", steps), &["spec.pipeline.steps[0].configMap "]).await?;
    }
    let members = json!({"pipeline": {"namespace": "kube-system"}});
    refused(&ns, "G1", &with("a", members), &["spec.pipeline.namespace "]).await?;
    Ok(())
}

/// Wrong types are refused by the schema; what a template's metadata has is kept.
#[tokio::test]
async fn the_schema_of_the_pod_template_catches_types() -> Result<()> {
    let ns = team().await?;
    let container = |more: Value| {
        let mut container = json!({"name": "agent"});
        json_patch::merge(&mut container, &more);
        json!({"podTemplateSpec": {"spec": {"containers": [container]}}})
    };
    let wrong = agent("weather", &container(json!({"ports": [{"containerPort": "http"}]})));
    refused(&ns, "3.1", &wrong, &["containerPort", "must be of type integer"]).await?;
    let mut right = agent("weather", &container(json!({})));
    right["spec"]["podTemplateSpec"]["metadata"] =
        json!({"labels": {"a": "b"}, "annotations": {"c": "d"}, "creationTimestamp": null, "name": "left-out"});
    let (stored, _) = accepted(&ns, "3.1", &right).await?;
    let kept = &stored.data["spec"]["podTemplateSpec"]["metadata"];
    assert_eq!(kept, &json!({"labels": {"a": "b"}, "annotations": {"c": "d"}}));
    Ok(())
}

#[tokio::test]
async fn case_f8_definitions_can_be_applied_by_kubectl_as_people_do_it() -> Result<()> {
    let cp = control_plane().await?;
    for name in ["agents", "agentbuilds", "agentruntimes"] {
        let file = webhook_tests::corpus::root().join(format!("../../manifests/crds/{name}.agent.kagenti.dev.yaml"));
        let output = cp.kubectl(cp.admin(), &["apply", "-f", &file.display().to_string()], "").await?;
        ensure!(output.success, "F8: {name}: {output:?}");
    }
    let explained = cp.kubectl(cp.admin(), &["explain", "agents.spec.servicePorts"], "").await?;
    ensure!(explained.success && explained.stdout.contains("empty list means no Service"), "{explained:?}");
    Ok(())
}

#[tokio::test]
async fn scale_and_columns_work() -> Result<()> {
    let ns = team().await?;
    let cp = control_plane().await?;
    ns.accepts(&agent("weather", &json!({}))).await?;
    let scaled = cp.kubectl(cp.admin(), &["-n", ns.name(), "scale", "agents/weather", "--replicas=3"], "").await?;
    ensure!(scaled.success, "{scaled:?}");
    let agents: Api<DynamicObject> = Api::namespaced_with(ns.client(), ns.name(), &resource("Agent"));
    assert_eq!(agents.get("weather").await?.data["spec"]["replicas"], 3);
    let table = cp.kubectl(cp.admin(), &["-n", ns.name(), "get", "agents", "-o", "wide"], "").await?;
    for column in ["REPLICAS", "PHASE", "READY", "IMAGE", "AGE"] {
        ensure!(table.stdout.contains(column), "{column}: {}", table.stdout);
    }
    ns.accepts(&minimal("weather")).await?;
    let table = cp.kubectl(cp.admin(), &["-n", ns.name(), "get", "agb", "-o", "wide"], "").await?;
    for column in ["MODE", "PHASE", "IMAGE", "RUN", "AGE"] {
        ensure!(table.stdout.contains(column), "{column}: {}", table.stdout);
    }
    Ok(())
}

/// Webhooks are for the spec: status is written by controllers while a spec of an older version may be wrong.
#[tokio::test]
async fn status_is_never_reviewed() -> Result<()> {
    let ns = team().await?;
    ns.accepts(&minimal("weather")).await?;
    let status = json!({"status": {"phase": "Building", "conditions": [{"type": "Ready", "status": "False", "reason": "X",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let patched = super::builds(&ns).patch_status("weather", &PatchParams::default(), &Patch::Merge(status)).await;
    let patched = patched.context("status")?;
    ensure!(patched.data["status"]["conditions"][0]["type"] == "Ready", "{:?}", patched.data);
    let Ok(columns) =
        control_plane().await?.kubectl(control_plane().await?.admin(), &["-n", ns.name(), "get", "agb"], "").await
    else {
        bail!("kubectl get")
    };
    ensure!(columns.stdout.contains("dev"), "{}", columns.stdout);
    Ok(())
}
