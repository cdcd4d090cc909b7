//! The control plane itself: ready within seconds, real behaviour, an audit log that tells, restarts, nothing left.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test says what is wrong by panicking")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher;
use serde_json::{Value, json};
use webhook_tests::{
    ControlPlane, Hook, Metrics, Options, Process, TestNamespace, hook, wait_for, wait_gone, wait_until,
};

const WORKLOADS: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "example.com/app:1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec: {containers: [{name: app, image: "example.com/app:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  template:
    spec:
      restartPolicy: Never
      initContainers:
      - {name: setup, image: "example.com/setup:1"}
      - {name: proxy, image: "example.com/proxy:1", restartPolicy: Always}
      containers: [{name: app, image: "example.com/app:1"}, {name: second, image: "example.com/app:1"}]
"#;

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

fn pod(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "app", "image": "example.com/app:1" }] } })
}

fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    status.and_then(|status| status.phase.as_deref()) == Some("Running")
        && conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

async fn runs(ns: &TestNamespace, name: &str) -> Result<()> {
    ns.accepts(&pod(name)).await?;
    wait_for(&ns.api::<Pod>(), name, is_ready).await.map(drop)
}

#[tokio::test]
async fn pods_of_deployments_and_daemon_sets_become_ready_and_a_job_with_a_native_sidecar_completes() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("workloads").await?;
    ns.apply(WORKLOADS).await?;
    for (app, count) in [("web", 2), ("everywhere", 1)] {
        let selected = watcher::Config::default().labels(&format!("app={app}"));
        wait_until(&ns.api::<Pod>(), selected, |pods| pods.len() == count && pods.values().all(is_ready)).await?;
    }
    let succeeded = |job: &Job| job.status.as_ref().and_then(|status| status.succeeded) == Some(1);
    wait_for(&ns.api::<Job>(), "work", succeeded).await?;
    Ok(())
}

#[tokio::test]
async fn a_regular_sidecar_keeps_its_job_running_and_a_native_one_does_not() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("sidecars").await?;
    let app = json!({ "name": "app", "image": "example.com/app:1" });
    let sidecar = json!({ "name": "envoy-proxy", "image": "example.com/proxy:1" });
    let native = json!({ "name": "envoy-proxy", "image": "example.com/proxy:1", "restartPolicy": "Always" });
    for (name, init, containers) in
        [("regular", json!([]), json!([app, sidecar])), ("native", json!([native]), json!([app]))]
    {
        let pod = json!({ "metadata": { "labels": { "job": name } }, "spec": {
            "restartPolicy": "Never", "initContainers": init, "containers": containers } });
        let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name }, "spec": { "template": pod } });
        ns.accepts(&job).await?;
        if name == "regular" {
            let its = watcher::Config::default().labels("job=regular");
            wait_until(&ns.api::<Pod>(), its, |pods| pods.len() == 1 && pods.values().all(is_ready)).await?;
        }
    }
    // Begun after the other one's Pod ran, so that the other one has had its time.
    let complete = |job: &Job| job.status.as_ref().and_then(|status| status.completion_time.as_ref()).is_some();
    wait_for(&ns.api::<Job>(), "native", complete).await?;
    assert!(!complete(&ns.api::<Job>().get("regular").await?));
    let pods = ns.api::<Pod>().list(&ListParams::default().labels("job=native")).await?;
    let status = pods.items[0].status.clone().unwrap_or_default();
    assert_eq!(status.phase.as_deref(), Some("Succeeded"));
    let ended = status.init_container_statuses.unwrap_or_default();
    assert!(ended[0].state.as_ref().is_some_and(|state| state.terminated.is_some()), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn a_gated_pod_waits_until_the_gate_is_gone() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("gated").await?;
    let mut gated = pod("gated");
    gated["spec"]["schedulingGates"] = json!([{ "name": "example.com/gate" }]);
    ns.accepts(&gated).await?;
    // Scheduled after the gated one was seen, so that the gated one has had its chance.
    runs(&ns, "other").await?;
    let pods: Api<Pod> = ns.api();
    assert!(pods.get("gated").await?.spec.unwrap().node_name.is_none());
    let ungate = kube::api::Patch::Json::<()>(serde_json::from_value(json!([
        { "op": "remove", "path": "/spec/schedulingGates" }
    ]))?);
    pods.patch("gated", &kube::api::PatchParams::default(), &ungate).await?;
    wait_for(&pods, "gated", is_ready).await?;
    Ok(())
}

#[tokio::test]
async fn the_audit_log_tells_who_asked_what_between_two_marks() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("audit").await?;
    ns.accepts(&config_map("before")).await?;
    let from = cp.audit().mark()?;
    let alice = cp.user("alice", &["system:masters", "developers"])?;
    let theirs: Api<ConfigMap> = Api::namespaced(alice.client().await?, ns.name());
    theirs.list(&ListParams::default()).await?;
    ns.accepts(&config_map("inside")).await?;
    ns.rejects(&config_map("inside")).await?;
    let to = cp.audit().mark()?;
    ns.accepts(&config_map("after")).await?;

    let all = cp.audit().between(from, to)?.in_namespace(ns.name());
    let by_alice = all.clone().by("alice");
    assert_eq!(by_alice.iter().map(|r| (r.verb.as_str(), r.code)).collect::<Vec<_>>(), [("list", Some(200))], "{all}");
    assert!(by_alice[0].groups.contains(&"developers".to_owned()), "{:?}", by_alice[0].groups);
    let settled = cp.audit().settled(from).await?.in_namespace(ns.name());
    let written: Vec<_> = settled.clone().by("admin").verb("create").resource("configmaps").into_iter().collect();
    let written: Vec<_> = written.iter().map(|r| (r.name.as_str(), r.code)).collect();
    assert_eq!(written, [("inside", Some(201)), ("inside", Some(409)), ("after", Some(201))], "{settled}");
    Ok(())
}

#[tokio::test]
async fn identities_are_what_they_say_and_may_do_no_more() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("identities").await?;
    let account = cp.service_account(ns.name(), "default").await?;
    let from = cp.audit().mark()?;
    let secrets: Api<ConfigMap> = Api::namespaced(account.client().await?, ns.name());
    let refused = secrets.list(&ListParams::default()).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 403), "{refused:?}");
    let asked = cp.audit().settled(from).await?.by(&format!("system:serviceaccount:{}:default", ns.name()));
    assert_eq!(asked.len(), 1, "{asked}");

    let manifest = pod("from-kubectl").to_string();
    let in_ns = ["-n", ns.name(), "apply", "-f", "-"];
    let as_account = cp.kubectl(&account, &in_ns, &manifest).await?;
    assert!(!as_account.success && as_account.stderr.contains("forbidden"), "{as_account:?}");
    let as_admin = cp.kubectl(cp.admin(), &in_ns, &manifest).await?;
    assert_eq!(as_admin.stdout, "pod/from-kubectl created\n", "{as_admin:?}");
    let version = cp.kubectl(cp.admin(), &["version", "-o", "json"], "").await?;
    let version: Value = serde_json::from_str(&version.stdout)?;
    assert_eq!(version["serverVersion"]["gitVersion"], "v1.36.3");
    assert_eq!(version["clientVersion"]["gitVersion"], "v1.36.3");
    Ok(())
}

#[tokio::test]
async fn warnings_of_the_api_server_arrive() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace_with("warned", &[("pod-security.kubernetes.io/warn", "restricted")]).await?;
    let answer = ns.create(&pod("warned"), true).await?;
    assert!(answer.result.is_ok());
    assert!(answer.warnings.iter().any(|w| w.contains("would violate PodSecurity")), "{:?}", answer.warnings);
    // A dry run stored nothing.
    assert!(ns.get("v1", "Pod", "warned").await.is_err());
    let counted = Metrics::of_api_server(&cp.client().await?).await?;
    assert!(counted.sum("apiserver_request_total", &[("dry_run", "All"), ("resource", "pods")]) >= 1.0);
    Ok(())
}

#[tokio::test]
async fn webhooks_are_called_by_service_in_the_order_of_their_names() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("hooks").await?;
    let add = |value: &'static str| {
        move |request: &Value| {
            let seen = request["object"]["metadata"]["annotations"]["seen"].as_str().unwrap_or_default();
            let seen = format!("{seen}{value}");
            hook::patch(&json!([
                { "op": "add", "path": "/metadata/annotations", "value": { "seen": seen } },
            ]))
        }
    };
    let late = Hook::start(cp, ns.name(), "late", add("b")).await?;
    let early = Hook::start(cp, ns.name(), "early", add("a")).await?;
    let judge = Hook::start(cp, ns.name(), "judge", |request| {
        if request["name"] == "bad" { hook::deny("not this one") } else { hook::allow() }
    });
    let judge = judge.await?;
    late.register_for_pods(&ns, &format!("{}-2", ns.name()), hook::Kind::Mutating).await?;
    early.register_for_pods(&ns, &format!("{}-1", ns.name()), hook::Kind::MutatingAgain).await?;
    judge.register_for_pods(&ns, ns.name(), hook::Kind::Validating).await?;

    let before = (late.calls(), early.calls(), judge.calls());
    let stored = ns.accepts(&pod("good")).await?;
    assert_eq!(stored.metadata.annotations.unwrap_or_default()["seen"], "aba");
    assert_eq!((late.calls(), early.calls(), judge.calls()), (before.0 + 1, before.1 + 2, before.2 + 1));
    let refusal = ns.rejects(&pod("bad")).await?;
    assert!(refusal.message.ends_with("not this one"), "{refusal:?}");
    Ok(())
}

/// Who asks for objects tries again what waits for a reading; here nothing is read that it could wait for.
#[tokio::test]
async fn a_refusal_that_outlives_what_it_waits_for_comes_back() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("pending").await?;
    let hook = Hook::start(cp, ns.name(), "late", |_| hook::deny("ConfigPending: for ever")).await?;
    hook.register_for_pods(&ns, "late", hook::Kind::Validating).await?;
    let before = hook.calls();
    let refusal = ns.rejects(&pod("waits")).await?;
    assert!(refusal.message.contains("ConfigPending: for ever"), "{refusal:?}");
    assert!(hook.calls() >= before + 2, "it was not tried again");
    Ok(())
}

#[tokio::test]
async fn a_namespace_can_be_deleted_with_its_pods() -> Result<()> {
    let lent = ControlPlane::lent().await?;
    let cp = &*lent;
    let ns = cp.namespace("deleted").await?;
    runs(&ns, "one").await?;
    ns.delete().await?;
    wait_gone(&Api::<k8s_openapi::api::core::v1::Namespace>::all(cp.client().await?), ns.name()).await
}

#[tokio::test]
async fn each_process_can_be_killed_frozen_and_restarted_with_other_arguments() -> Result<()> {
    let began = Instant::now();
    let cp = ControlPlane::start(Options { nodes: 2, ..Options::default() }).await?;
    println!("own control plane ready after {:?}", began.elapsed());
    let ns = cp.namespace("restarts").await?;
    for process in Process::ALL {
        let before = cp.pid(process).context("it runs")?;
        cp.kill(process).await;
        assert_eq!(cp.pid(process), None);
        cp.start_again(process).await?;
        assert_ne!(cp.pid(process), Some(before));
        runs(&ns, &format!("after-{}", process.program())).await.with_context(|| process.program())?;
    }
    let mut never = pod("never");
    never["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
    assert_eq!(ns.accepts(&never).await?.data["spec"]["containers"][0]["imagePullPolicy"], "Never");
    cp.restart_with(Process::ApiServer, &["--enable-admission-plugins=AlwaysPullImages"]).await?;
    never["metadata"]["name"] = json!("always");
    assert_eq!(ns.accepts(&never).await?.data["spec"]["containers"][0]["imagePullPolicy"], "Always");

    cp.pause(Process::ApiServer);
    let answer = tokio::time::timeout(Duration::from_millis(300), ns.accepts(&config_map("late"))).await;
    assert!(answer.is_err(), "a frozen API server answered");
    cp.resume(Process::ApiServer);
    ns.accepts(&config_map("awake")).await?;
    Ok(())
}

#[tokio::test]
async fn nothing_is_left_after_a_drop() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let folder = cp.admin().kubeconfig().parent().context("a folder")?.to_owned();
    let left = Left::of(&folder)?;
    drop(cp);
    left.gone(Duration::ZERO)
}

#[tokio::test]
async fn nothing_is_left_after_the_owner_was_killed() -> Result<()> {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_controlplane")).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(owner.stdout.take().context("piped")?).read_line(&mut line)?;
    let kubeconfig = PathBuf::from(line.trim().strip_prefix("export KUBECONFIG=").context("no KUBECONFIG line")?);
    let left = Left::of(kubeconfig.parent().context("a folder")?)?;
    owner.kill()?;
    owner.wait()?;
    left.gone(webhook_tests::patience::patience())
}

/// What one control plane has on this machine.
struct Left {
    processes: Vec<u32>,
    folders: Vec<PathBuf>,
}

impl Left {
    /// The processes that work in `folder`, and the folders they were told to write to.
    fn of(folder: &Path) -> Result<Self> {
        let processes = working_in(folder)?;
        ensure!(processes.len() == Process::ALL.len(), "{} processes in {}", processes.len(), folder.display());
        let mut folders = vec![folder.to_owned()];
        for process in &processes {
            let arguments = std::fs::read(format!("/proc/{process}/cmdline"))?;
            let arguments = arguments.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            folders.extend(arguments.filter_map(|arg| arg.strip_prefix("--data-dir=").map(PathBuf::from)));
        }
        ensure!(folders.len() == 2 && folders.iter().all(|folder| folder.is_dir()), "{folders:?}");
        Ok(Self { processes, folders })
    }

    /// Waits up to `patience` until no process and no folder is left.
    fn gone(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let processes = working_in(&self.folders[0])?;
            let processes: Vec<_> = self.processes.iter().filter(|p| processes.contains(p)).collect();
            let folders: Vec<_> = self.folders.iter().filter(|folder| folder.exists()).collect();
            if processes.is_empty() && folders.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "left: processes {processes:?}, folders {folders:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Living processes whose working folder is `folder` (also when it has been removed meanwhile).
fn working_in(folder: &Path) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Ok(process) = entry.file_name().to_string_lossy().parse() else { continue };
        // A process that ended meanwhile, or is a zombie, has no working folder.
        let Ok(working) = std::fs::read_link(entry.path().join("cwd")) else { continue };
        if working == folder || working.to_string_lossy() == format!("{} (deleted)", folder.display()) {
            found.push(process);
        }
    }
    Ok(found)
}
