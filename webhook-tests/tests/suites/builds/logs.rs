//! `drawbridge build logs`: the lines of steps, from a kubelet that writes what the test says, when it says.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::{TestNamespace, wait_for};

use super::commands::{Running, run};
use super::life::shared;
use super::stage::{NAME, active_run, begin, build, end, end_task, runs, status, succeed, succeeded};

/// The Pod of a task, on its node, with containers in these states.
struct TaskPod<'a> {
    ns: &'a TestNamespace,
    name: String,
    containers: Vec<(&'static str, &'static str)>,
}

impl<'a> TaskPod<'a> {
    async fn start(
        ns: &'a TestNamespace,
        run: &DynamicObject,
        task: &str,
        containers: &[(&'static str, &'static str)],
    ) -> Result<Self> {
        let name = format!("{}-{task}-pod", run.name_any());
        let mut labels = run.labels().clone();
        labels.insert("tekton.dev/pipelineRun".to_owned(), run.name_any());
        labels.insert("tekton.dev/pipelineTask".to_owned(), task.to_owned());
        let image = "example.com/step:1";
        let specs: Vec<Value> = containers.iter().map(|(name, _)| json!({"name": name, "image": image})).collect();
        let object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"containers": specs, "schedulingGates": [{"name": "test/hold"}]},
        });
        ns.accepts(&object).await?;
        let pod = Self { ns, name, containers: containers.to_vec() };
        // It has an address before it has a node, so kwok takes it for one whose containers need nothing. They begin on the
        // node: of a Pod that has none the API server answers for its lines that there are none.
        let address = json!({"status": {"podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}]}});
        ns.api::<Pod>().patch_status(&pod.name, &PatchParams::default(), &Patch::Merge(address)).await?;
        let ungated = Patch::Merge(json!({"spec": {"schedulingGates": []}}));
        ns.api::<Pod>().patch(&pod.name, &PatchParams::default(), &ungated).await?;
        let bound = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        wait_for(&ns.api::<Pod>(), &pod.name, bound).await?;
        pod.show().await?;
        Ok(pod)
    }

    async fn show(&self) -> Result<()> {
        let state = |state: &str| match state {
            "waiting" => json!({"waiting": {"reason": "PodInitializing"}}),
            "running" => json!({"running": {"startedAt": "2026-05-01T00:00:00Z"}}),
            _ => json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
        };
        let of = |(name, now): &(&str, &str)| json!({"name": name, "state": state(now), "image": "i", "imageID": "", "ready": false, "restartCount": 0});
        let containers: Vec<Value> = self.containers.iter().map(of).collect();
        let status = json!({"status": {"phase": "Running", "containerStatuses": containers}});
        self.ns.api::<Pod>().patch_status(&self.name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// A container changes its state.
    async fn becomes(&mut self, container: &str, state: &'static str) -> Result<()> {
        for (_, now) in self.containers.iter_mut().filter(|(name, _)| *name == container) {
            *now = state;
        }
        self.show().await
    }

    /// As the kubelet knows a container.
    fn of(&self, container: &str) -> String {
        format!("{}/{}/{container}", self.ns.name(), self.name)
    }

    async fn go(&self) -> Result<()> {
        self.ns.api::<Pod>().delete(&self.name, &DeleteParams::default().grace_period(0)).await?;
        webhook_tests::wait_gone(&self.ns.api::<Pod>(), &self.name).await
    }
}

/// A build whose run has begun; its status names the tasks.
async fn begun(ns: &TestNamespace) -> Result<DynamicObject> {
    ns.accepts(&build()).await?;
    let run = active_run(ns).await?;
    begin(ns, &run).await?;
    status(ns, |status| status["tasks"][1]["name"] == "push").await?;
    Ok(run)
}

#[tokio::test]
async fn what_steps_have_written_is_printed_in_their_order() -> Result<()> {
    let led = shared().await?;
    let (cp, kubelet) = (&led.cp, led.kubelet().await?);
    let ns = cp.namespace("written").await?;
    let run_of_it = begun(&ns).await?;
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME]).await?;
    ensure!(code == Some(1) && out.is_empty() && err.contains("no container has begun yet"), "{code:?} {out}{err}");

    let clone = TaskPod::start(&ns, &run_of_it, "clone", &[("step-fetch", "ended"), ("step-tidy", "ended")]).await?;
    end_task(&ns, &run_of_it, "clone", succeeded(json!([]))).await?;
    kubelet.writes(&clone.of("step-fetch"), "Cloning\n\n50%\r100%\r\n");
    kubelet.writes(&clone.of("step-tidy"), b"caf\xe9");
    // What was created within the same second is told apart by its name.
    let states = [("step-build", "running"), ("step-send", "waiting"), ("proxy", "running")];
    let push = TaskPod::start(&ns, &run_of_it, "push", &states).await?;
    kubelet.writes(&push.of("step-build"), "STEP 1\n");
    kubelet.writes(&push.of("proxy"), "ready\n");
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME]).await?;
    let lines = [
        "[clone/fetch] Cloning",
        "[clone/fetch] ",
        "[clone/fetch] 50%\r100%",
        "[clone/tidy] caf\u{fffd}",
        "[push/build] STEP 1",
        "[push/proxy] ready",
    ];
    assert_eq!((code, out.split_terminator('\n').collect::<Vec<_>>(), err.as_str()), (Some(0), lines.to_vec(), ""));

    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME, "--task", "push", "-o", "json"]).await?;
    let documents: Vec<Value> = out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let wanted = json!([{"task": "push", "step": "build", "text": "STEP 1"}, {"task": "push", "step": "proxy", "text": "ready"}]);
    assert_eq!((code, Value::from(documents)), (Some(0), wanted), "{err}");
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME, "--task", "pull"]).await?;
    ensure!(code == Some(1) && out.is_empty() && err.contains("has no task pull; its tasks are clone, push"), "{err}");
    Ok(())
}

#[tokio::test]
async fn a_build_that_is_followed_is_printed_as_it_writes_and_ends_with_it() -> Result<()> {
    let led = shared().await?;
    let (cp, kubelet) = (&led.cp, led.kubelet().await?);
    let ns = cp.namespace("live").await?;
    let run_of_it = begun(&ns).await?;
    let mut following = Running::start(cp, &ns, &["build", "logs", NAME, "-f"])?;
    let states = [("step-fetch", "running"), ("step-tidy", "waiting"), ("proxy", "running")];
    let mut clone = TaskPod::start(&ns, &run_of_it, "clone", &states).await?;
    kubelet.writes(&clone.of("proxy"), "ready\n");
    // A line is printed while its container runs, and what beside the steps never ends holds nothing up.
    kubelet.writes(&clone.of("step-fetch"), "one\n");
    assert_eq!(following.prints().await?, "[clone/fetch] one");
    kubelet.writes(&clone.of("step-fetch"), "two\n");
    assert_eq!(following.prints().await?, "[clone/fetch] two");
    // A kubelet that is started anew: what was printed is not printed again, and nothing is left out.
    kubelet.cuts(&clone.of("step-fetch"));
    kubelet.writes(&clone.of("step-fetch"), "two\nfour\n");
    assert_eq!(following.prints().await?, "[clone/fetch] two");
    assert_eq!(following.prints().await?, "[clone/fetch] four");
    kubelet.ends(&clone.of("step-fetch"));
    clone.becomes("step-fetch", "ended").await?;
    kubelet.writes(&clone.of("step-tidy"), "five\n");
    clone.becomes("step-tidy", "running").await?;
    assert_eq!(following.prints().await?, "[clone/tidy] five");
    kubelet.ends(&clone.of("step-tidy"));
    clone.becomes("step-tidy", "ended").await?;

    let push = TaskPod::start(&ns, &run_of_it, "push", &[("step-build", "running")]).await?;
    kubelet.writes(&push.of("step-build"), "six\n");
    assert_eq!(following.prints().await?, "[push/build] six");
    kubelet.writes(&push.of("step-build"), "seven\n");
    assert_eq!(following.prints().await?, "[push/build] seven");
    kubelet.ends(&push.of("step-build"));
    succeed(&ns, &run_of_it).await?;
    let (code, out, err) = following.end().await?;
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "[clone/proxy] ready\n", ""));
    Ok(())
}

#[tokio::test]
async fn a_build_that_is_cancelled_ends_those_who_follow_it_whatever_its_containers_do() -> Result<()> {
    let led = shared().await?;
    let (cp, kubelet) = (&led.cp, led.kubelet().await?);
    let ns = cp.namespace("stopped").await?;
    let run_of_it = begun(&ns).await?;
    let pod = TaskPod::start(&ns, &run_of_it, "clone", &[("step-fetch", "running")]).await?;
    kubelet.writes(&pod.of("step-fetch"), "Cloning\n");
    let mut following = Running::start(cp, &ns, &["build", "logs", NAME, "--follow"])?;
    assert_eq!(following.prints().await?, "[clone/fetch] Cloning");
    let (code, out, err) = run(cp, &ns, &["build", "cancel", NAME]).await?;
    ensure!(code == Some(0), "{out}{err}");
    wait_for(&runs(&ns), &run_of_it.name_any(), |run| run.data["spec"]["status"] == "Cancelled").await?;
    kubelet.writes(&pod.of("step-fetch"), "Terminated\n");
    let condition = json!({"type": "Succeeded", "status": "False", "reason": "Cancelled", "message": "cancelled"});
    end(&ns, &run_of_it, condition, &[]).await?;
    // The container never ends.
    let (code, out, err) = following.end().await?;
    assert_eq!((code, out.as_str()), (Some(1), "[clone/fetch] Terminated\n"), "{err}");
    ensure!(err.contains("Failed: ") && err.contains("cancelled"), "{err}");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_printed_is_named() -> Result<()> {
    let led = shared().await?;
    let (cp, kubelet) = (&led.cp, led.kubelet().await?);
    let ns = cp.namespace("missing").await?;
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME]).await?;
    ensure!(code == Some(2) && out.is_empty(), "{code:?} {out}");
    ensure!(err.contains(&format!("AgentBuild {NAME} does not exist in namespace {}", ns.name())), "{err}");

    let run_of_it = begun(&ns).await?;
    let clone = TaskPod::start(&ns, &run_of_it, "clone", &[("step-fetch", "ended")]).await?;
    let push = TaskPod::start(&ns, &run_of_it, "push", &[("step-build", "ended"), ("step-send", "ended")]).await?;
    kubelet.writes(&clone.of("step-fetch"), "Cloning\n");
    kubelet.writes(&push.of("step-build"), "Building\n");
    kubelet.writes(&push.of("step-send"), "Sent\n");
    succeed(&ns, &run_of_it).await?;
    status(&ns, |status| status["phase"] == "Succeeded" && status["tasks"][1]["state"] == "Succeeded").await?;
    kubelet.breaks(&push.of("step-build"));
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME]).await?;
    assert_eq!((code, out.as_str()), (Some(1), "[clone/fetch] Cloning\n[push/send] Sent\n"), "{err}");
    ensure!(err.contains("the lines of task push, step build, could not be read: 500: "), "{err}");
    ensure!(err.contains("failed to open the log of"), "{err}");

    push.go().await?;
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME]).await?;
    assert_eq!((code, out.as_str()), (Some(0), "[clone/fetch] Cloning\n"), "{err}");
    ensure!(err.contains("task push has no log lines; its Pod is gone") && err.lines().count() == 1, "{err}");
    // A Pod that has not begun is there.
    let waiting = TaskPod::start(&ns, &run_of_it, "push", &[("step-build", "waiting")]).await?;
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME]).await?;
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "[clone/fetch] Cloning\n", ""));
    waiting.go().await?;
    clone.go().await?;
    let (code, out, err) = run(cp, &ns, &["build", "logs", NAME]).await?;
    ensure!(code == Some(1) && out.is_empty() && err.contains("its Pods go with cleanupAfterBuild"), "{err}");

    // One that waits for what it needs has no run, and is not waited for.
    let waits = cp.namespace("waits").await?;
    let mut object = build();
    object["spec"]["source"]["sourceCredentials"] = json!({"name": "git"});
    waits.accepts(&object).await?;
    status(&waits, |status| status["phase"] == "Failed").await?;
    let (code, out, err) = run(cp, &waits, &["build", "logs", NAME, "-f"]).await?;
    ensure!(code == Some(2) && out.is_empty() && err.contains("has no run yet: Validation failed"), "{code:?} {err}");
    Ok(())
}
