//! `drawbridge build` and `status` against the API server, as people call them.

use anyhow::{Context as _, Result};
use drawbridge::api::agent_kagenti_dev::agent_build::AgentBuild;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tokio::process::Command;
use webhook_tests::{ControlPlane, TestNamespace, programs};

use super::stage::{build, shared};

/// Exit code, standard output, standard error.
async fn run(cp: &ControlPlane, ns: &TestNamespace, args: &[&str]) -> Result<(Option<i32>, String, String)> {
    let output = Command::new(programs::workspace("drawbridge")?)
        .args(args)
        .args(["-n", ns.name(), "--kubeconfig"])
        .arg(cp.admin().kubeconfig())
        .output()
        .await?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
}

#[tokio::test]
async fn builds_are_started_cancelled_explained_and_listed() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("build-commands").await?;
    build(&ns, "b", &json!({"phase": "Failed", "message": "task run, step run: exit 1"})).await?;

    let (code, out, err) = run(cp, &ns, &["build", "explain", "b", "-o", "json"]).await?;
    assert_eq!(code, Some(0), "{out}{err}");
    let told: Value = serde_json::from_str(&out).context(err)?;
    assert_eq!(told["pipelineRun"]["kind"], "PipelineRun");
    assert_eq!(told["pipelineRun"]["spec"]["pipelineSpec"]["tasks"][0]["name"], "step");
    let (_, table, _) = run(cp, &ns, &["build", "explain", "b"]).await?;
    assert!(table.contains("mode custom, steps from user") && table.contains("kind: PipelineRun"), "{table}");

    let (code, out, err) = run(cp, &ns, &["build", "retry", "b"]).await?;
    assert_eq!(code, Some(0), "{out}{err}");
    let stored = ns.api::<AgentBuild>().get("b").await?;
    let wish = stored.annotations().get("agent.kagenti.dev/rebuild").cloned().context("no wish")?;
    let (code, out, _) = run(cp, &ns, &["build", "run", "b", "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&out)?;
    let stored = ns.api::<AgentBuild>().get("b").await?;
    assert_eq!((code, json!(stored.annotations()["agent.kagenti.dev/rebuild"])), (Some(0), told["value"].clone()));
    assert_ne!(told["value"], json!(wish), "each wish is another one");

    build(&ns, "b", &json!({"phase": "Building"})).await?;
    assert_eq!(run(cp, &ns, &["build", "cancel", "b"]).await?.0, Some(0));
    let stored = ns.api::<AgentBuild>().get("b").await?;
    assert!(stored.annotations().contains_key("agent.kagenti.dev/cancel"));
    let (code, _, err) = run(cp, &ns, &["build", "retry", "b"]).await?;
    assert!(code == Some(2) && err.contains("is Building, not Failed"), "{err}");
    let (code, _, err) = run(cp, &ns, &["build", "logs", "b"]).await?;
    assert!(code == Some(2) && err.contains("has no run yet"), "{err}");
    let (code, _, err) = run(cp, &ns, &["build", "run", "nobody"]).await?;
    assert!(code == Some(2) && err.contains("AgentBuild nobody does not exist"), "{err}");

    build(&ns, "b", &json!({"phase": "Failed", "message": "task run, step run: exit 1"})).await?;
    let (code, out, _) = run(cp, &ns, &["status", "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&out)?;
    assert_eq!(
        (code, &told["builds"][0]["phase"], &told["builds"][0]["attention"]),
        (Some(1), &json!("Failed"), &json!(true))
    );
    Ok(())
}
