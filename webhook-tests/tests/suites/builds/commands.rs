//! `drawbridge build run --wait`, `cancel`, `retry` and `logs`, and `drawbridge status -w`, beside a build's whole life: words and exit codes.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use webhook_tests::patience::patience;
use webhook_tests::{ControlPlane, TestNamespace, programs, wait_for};

use super::life::shared;
use super::stage::{NAME, active_run, begin, build, builds, digest, end, end_task, runs, status, succeed};

/// A command that runs.
pub(crate) struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(cp: &ControlPlane, ns: &TestNamespace, args: &[&str]) -> Result<Self> {
        let mut command = Command::new(programs::workspace("drawbridge")?);
        command.args(args).args(["-n", ns.name(), "--kubeconfig"]).arg(cp.admin().kubeconfig());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let out = BufReader::new(child.stdout.take().context("it has a standard output")?).lines();
        let err = BufReader::new(child.stderr.take().context("it has a standard error")?).lines();
        Ok(Self { child, out, err })
    }

    /// Reads on to a line of standard error.
    async fn says(&mut self, words: &str) -> Result<()> {
        let reading = async {
            while let Some(line) = self.err.next_line().await? {
                if line.contains(words) {
                    return Ok(());
                }
            }
            anyhow::bail!("it ended")
        };
        tokio::time::timeout(patience(), reading).await.with_context(|| format!("it never said {words:?}"))?
    }

    /// Reads the next line of standard output.
    pub(crate) async fn prints(&mut self) -> Result<String> {
        let line = tokio::time::timeout(patience(), self.out.next_line()).await.context("no line came")??;
        line.context("it ended")
    }

    /// Reads on to a row of standard output.
    async fn shows(&mut self, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let reading = async {
            while let Some(line) = self.out.next_line().await? {
                let row: Value = serde_json::from_str(&line)?;
                if holds(&row) {
                    return Ok(row);
                }
            }
            anyhow::bail!("it ended")
        };
        tokio::time::timeout(patience(), reading).await.context("no such row came")?
    }

    /// Waits for its end: exit code, and what is left of its two outputs.
    pub(crate) async fn end(mut self) -> Result<(Option<i32>, String, String)> {
        let (mut out, mut err) = (String::new(), String::new());
        let (mut rest_out, mut rest_err) = (self.out.into_inner(), self.err.into_inner());
        let reading = async { tokio::try_join!(rest_out.read_to_string(&mut out), rest_err.read_to_string(&mut err)) };
        tokio::time::timeout(patience(), reading).await.context("it does not end")??;
        let code = tokio::time::timeout(patience(), self.child.wait()).await.context("it does not end")??.code();
        Ok((code, out, err))
    }
}

/// A command from its start to its end.
pub(crate) async fn run(cp: &ControlPlane, ns: &TestNamespace, args: &[&str]) -> Result<(Option<i32>, String, String)> {
    Running::start(cp, ns, args)?.end().await
}

/// The second task fails, and with it the run.
async fn fail(ns: &TestNamespace, run: &DynamicObject) -> Result<()> {
    let failed = json!({
        "completionTime": "2026-05-01T00:01:00Z", "podName": "p",
        "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed", "message": "\"step-build\" exited with code 2"}],
        "steps": [{"name": "build", "terminated": {"exitCode": 2, "reason": "Error"}}],
    });
    end_task(ns, run, "push", failed).await?;
    let condition = json!({"type": "Succeeded", "status": "False", "reason": "Failed", "message": "failed"});
    end(ns, run, condition, &["push"]).await
}

/// A build that has succeeded once.
async fn built(ns: &TestNamespace) -> Result<()> {
    ns.accepts(&build()).await?;
    let first = active_run(ns).await?;
    begin(ns, &first).await?;
    succeed(ns, &first).await?;
    status(ns, |status| status["message"] == "Build complete, cleanup done").await.map(drop)
}

#[tokio::test]
async fn a_build_that_is_waited_for_is_told_as_it_goes_and_as_it_ends() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("waited").await?;
    built(&ns).await?;
    let mut waiting = Running::start(cp, &ns, &["build", "run", NAME, "--wait"])?;
    let second = active_run(&ns).await?;
    begin(&ns, &second).await?;
    waiting.says("Building: Tasks Completed: 0").await?;
    succeed(&ns, &second).await?;
    let (code, out, err) = waiting.end().await?;
    let lines: Vec<&str> = out.lines().collect();
    ensure!(code == Some(0) && lines.len() == 3, "{code:?}\n{out}{err}");
    assert_eq!(lines[0], format!("AgentBuild {NAME} in namespace {} is started anew", ns.name()));
    ensure!(lines[1].starts_with("Succeeded: "), "{out}");
    assert_eq!(lines[2], format!("image: registry.example.com/weather@{}", digest()));

    // The same wish again, and this time it fails: nothing of the success before may pass for its end.
    let waiting = Running::start(cp, &ns, &["build", "run", NAME, "--wait", "-o", "json"])?;
    let third = active_run(&ns).await?;
    assert_ne!(third.name_any(), second.name_any());
    begin(&ns, &third).await?;
    fail(&ns, &third).await?;
    let (code, out, err) = waiting.end().await?;
    let asked: Value = serde_json::from_str(&out).with_context(|| err.clone())?;
    assert_eq!((code, &asked["phase"], &asked["builtImage"]), (Some(1), &json!("Failed"), &json!("")), "{out}{err}");
    assert_eq!(asked["annotation"], "agent.kagenti.dev/rebuild");
    let message = asked["message"].as_str().unwrap_or_default();
    ensure!(message.contains("task push, step build: exit 2"), "{message}");
    ensure!(err.contains("Failed: "), "{err}");
    Ok(())
}

#[tokio::test]
async fn a_build_that_does_not_end_or_is_cancelled_is_a_finding() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("cut").await?;
    built(&ns).await?;
    let (code, _, refused) = run(cp, &ns, &["build", "retry", NAME]).await?;
    ensure!(code == Some(2) && refused.contains("is Succeeded, not Failed"), "{code:?} {refused}");
    let (code, _, refused) = run(cp, &ns, &["build", "cancel", NAME]).await?;
    ensure!(code == Some(2) && refused.contains("there is nothing to cancel"), "{code:?} {refused}");

    let waiting = Running::start(cp, &ns, &["build", "run", NAME, "--wait", "--timeout", "5"])?;
    let run_of_it = active_run(&ns).await?;
    begin(&ns, &run_of_it).await?;
    let (code, out, err) = waiting.end().await?;
    ensure!(code == Some(1) && err.contains("has not ended within 5 s"), "{code:?} {out}{err}");
    ensure!(!out.contains("image:"), "{out}");

    let following = Running::start(cp, &ns, &["build", "logs", NAME, "-f"])?;
    let (code, out, err) = run(cp, &ns, &["build", "cancel", NAME]).await?;
    ensure!(code == Some(0) && out.contains("is being cancelled"), "{code:?} {out}{err}");
    wait_for(&runs(&ns), &run_of_it.name_any(), |run| run.data["spec"]["status"] == "Cancelled").await?;
    let condition = json!({"type": "Succeeded", "status": "False", "reason": "Cancelled", "message": "cancelled"});
    end(&ns, &run_of_it, condition, &[]).await?;
    let (code, _, err) = following.end().await?;
    ensure!(code == Some(1), "{code:?} {err}");
    // No Pod of it ever ran here, and that is said; so is how it ended.
    ensure!(err.contains(&format!("no log lines of run {} exist", run_of_it.name_any())), "{err}");
    ensure!(err.contains("Failed: ") && err.contains("cancelled"), "{err}");

    let waiting = Running::start(cp, &ns, &["build", "retry", NAME, "--wait"])?;
    let last = active_run(&ns).await?;
    begin(&ns, &last).await?;
    succeed(&ns, &last).await?;
    let (code, out, err) = waiting.end().await?;
    ensure!(code == Some(0) && out.contains("image: registry.example.com/weather@"), "{code:?} {out}{err}");
    Ok(())
}

#[tokio::test]
async fn status_that_stays_follows_builds() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("followed").await?;
    ns.accepts(&build()).await?;
    let run = active_run(&ns).await?;
    let mut following = Running::start(cp, &ns, &["status", "-w", "-o", "json"])?;
    let listed = following.shows(|row| row["name"] == NAME).await?;
    assert_eq!((&listed["kind"], &listed["change"]), (&json!("AgentBuild"), &json!("listed")), "{listed:#}");
    begin(&ns, &run).await?;
    let building = following.shows(|row| row["message"] == "Tasks Completed: 0").await?;
    assert_eq!((&building["phase"], &building["change"]), (&json!("Building"), &json!("changed")));
    assert_eq!((&building["run"], &building["image"]), (&json!(run.name_any()), &Value::Null));
    succeed(&ns, &run).await?;
    let ended = following.shows(|row| row["phase"] == "Succeeded").await?;
    assert_eq!(ended["image"], format!("registry.example.com/weather@{}", digest()));
    builds(&ns).delete(NAME, &DeleteParams::default()).await?;
    following.shows(|row| row["change"] == "gone" && row["kind"] == "AgentBuild").await?;
    following.child.kill().await?;
    Ok(())
}

/// The record stands beside the image, in a schema that keeps it, and outlives the run.
#[tokio::test]
async fn what_an_image_was_made_of_is_told_with_its_run_and_without_it() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("provenance").await?;
    ns.accepts(&build()).await?;
    let first = active_run(&ns).await?;
    let args = ["build", "provenance", NAME, "-o", "json"];
    let (code, out, _) = run(cp, &ns, &args).await?;
    ensure!(code == Some(1) && out.contains("no image yet"), "{code:?} {out}");
    begin(&ns, &first).await?;
    succeed(&ns, &first).await?;
    status(&ns, |status| status["message"] == "Build complete, cleanup done").await?;
    let told = async || -> Result<Value> {
        let (code, out, err) = run(cp, &ns, &args).await?;
        ensure!(code == Some(0), "{code:?} {out}{err}");
        Ok(serde_json::from_str(&out)?)
    };
    let with_run = told().await?;
    let fact = |told: &Value, name: &str| told["facts"][name]["value"].clone();
    for (name, value) in [
        ("image", json!(format!("registry.example.com/weather@{}", digest()))),
        ("digest", json!(digest())),
        ("commit", json!("0123456789abcdef")),
        ("repository", json!("github.com/acme/weather")),
        ("revision", json!("v1.0.0")),
        ("pipelineRun", json!(first.name_any())),
        ("ended", json!("2026-05-01T00:02:00Z")),
    ] {
        assert_eq!(fact(&with_run, name), value, "{name}: {with_run:#}");
    }
    assert_eq!(
        (&with_run["steps"][1]["configMap"], &with_run["stepsFrom"]),
        (&json!("kagenti-system/tells"), &json!("status.provenance"))
    );
    runs(&ns).delete(&first.name_any(), &DeleteParams::default()).await?;
    webhook_tests::wait_gone(&runs(&ns), &first.name_any()).await?;
    assert_eq!(told().await?, with_run, "it does not go with the run");
    Ok(())
}
