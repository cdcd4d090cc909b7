//! The controllers as a process, against a real API server and under the rendered permissions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::patience::{lease, patience};
use webhook_tests::{
    Access, ControlPlane, Drawbridge, Hook, Kept, Lent, Options, Process, Requests, TestNamespace, hook, wait_for,
    wait_until,
};

const OPERATOR: &str = "kagenti-system";
const USER: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";
const PLATFORM: &str = "images:\n  envoyProxy: example.com/envoy:1\n  proxyInit: example.com/init:1\n  \
    spiffeHelper: example.com/helper:1\n  clientRegistration: example.com/registration:1\nspire: required\n";

/// An installed cluster: the operator's namespace, the rendered permissions, and who uses them.
async fn install(cp: &ControlPlane, failure_mode: &str) -> Result<Access> {
    let objects = cp.objects().await?;
    objects.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {OPERATOR}}}")).await?;
    let rendered = std::process::Command::new(webhook_tests::programs::workspace("drawbridge")?)
        .args(["render", "--failure-mode", failure_mode])
        .output()?;
    ensure!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    for document in webhook_tests::objects::documents(&String::from_utf8(rendered.stdout)?)? {
        let kind = document["kind"].as_str().unwrap_or_default();
        if ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].contains(&kind) {
            objects.apply(&document.to_string()).await?;
        }
    }
    cp.service_account(OPERATOR, "drawbridge-controllers").await
}

/// One process with role controllers.
fn launch(access: &Access) -> Result<Drawbridge> {
    launch_with(access, "fail")
}

fn launch_with(access: &Access, failure_mode: &str) -> Result<Drawbridge> {
    let disk = &webhook_tests::household::folders()?.disk;
    let file = disk.join("platform-of-controllers.yaml");
    // Tests that run side by side start processes by the same file: none may find it half written.
    let whole = tempfile::NamedTempFile::new_in(disk)?;
    std::fs::write(whole.path(), PLATFORM)?;
    whole.persist(&file)?;
    Drawbridge::launch(access, &[], |ports| {
        vec![
            "serve".into(),
            "--roles=controllers".into(),
            format!("--failure-mode={failure_mode}"),
            format!("--namespace={OPERATOR}"),
            format!("--config-path={}", file.display()),
            format!("--webhook-bind-address={}", ports.webhook.address()),
            format!("--health-probe-bind-address={}", ports.health.address()),
            "--drain-delay=0s".into(),
            "--absence-proof=1s".into(),
            format!("--lease-duration={}s", lease().as_secs()),
        ]
    })
}

/// A control plane with one leader, which ends first.
struct Led {
    _leader: Drawbridge,
    cp: ControlPlane,
}

/// The one of the tests that leave its leader alone.
async fn shared() -> Result<Lent<Led>> {
    static LED: Kept<Led> = Kept::new();
    LED.lend(led).await
}

async fn led() -> Result<Led> {
    let cp = ControlPlane::start(Options::default()).await?;
    let leader = launch(&install(&cp, "fail").await?)?;
    leader.ready().await?;
    leads(&cp, None).await?;
    Ok(Led { _leader: leader, cp })
}

/// Waits until somebody other than `not` holds the Lease; returns who.
async fn leads(cp: &ControlPlane, not: Option<&str>) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, OPERATOR);
    let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
    let held = wait_for(&leases, "drawbridge-controllers", |lease| {
        !holder(lease).is_empty() && Some(holder(lease).as_str()) != not
    });
    Ok(holder(&held.await.context("nobody leads")?))
}

/// Tells the leader to end and waits for its successor; returns who. The Lease is given up in between, not left to run out.
async fn handed_over(cp: &ControlPlane, leader: &Drawbridge, old: &str) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, OPERATOR);
    let known = leases.get("drawbridge-controllers").await?.metadata.resource_version.context("a version")?;
    let params = WatchParams::default().fields("metadata.name=drawbridge-controllers");
    // From here on every change of the Lease is told, however short it lasts.
    let mut changes = std::pin::pin!(leases.watch(&params, &known).await?);
    leader.terminate();
    let (mut holder, mut given_up) = (old.to_owned(), false);
    while holder == old || holder.is_empty() {
        let change = tokio::time::timeout(patience(), changes.try_next()).await.context("nobody follows")??;
        if let WatchEvent::Modified(lease) = change.context("the watch ended")? {
            holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            given_up |= holder.is_empty();
        }
    }
    ensure!(given_up, "{holder} waited until the Lease had run out");
    Ok(holder)
}

fn workload(kind: &str, name: &str) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": name, "kagenti.io/type": "agent"}},
        "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]},
    });
    let selector = json!({"matchLabels": {"app": name}});
    let mut job = json!({"template": template});
    job["template"]["spec"]["restartPolicy"] = json!("Never");
    let (api, spec) = match kind {
        "Job" => ("batch/v1", job),
        "CronJob" => ("batch/v1", json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}})),
        "StatefulSet" => ("apps/v1", json!({"serviceName": name, "selector": selector, "template": template})),
        _ => ("apps/v1", json!({"selector": selector, "template": template})),
    };
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// What was written besides Leases and Events: no webhook stands in this suite, so its Pods run unprotected, and people are
/// told so.
fn writes(requests: Requests) -> Requests {
    requests.by(USER).writes().filter(|request| request.resource != "leases" && request.resource != "events")
}

fn shown(requests: &Requests) -> String {
    requests.iter().map(|request| format!("{request}\n")).collect()
}

#[tokio::test]
async fn every_kind_has_its_service_account_at_the_first_try() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("accounts").await?;
    let accounts: Api<ServiceAccount> = ns.api();
    let mark = cp.audit().mark()?;
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"] {
        let name = kind.to_lowercase();
        let owner = ns.accepts(&workload(kind, &name)).await?;
        let made = wait_for(&accounts, &name, |_| true).await?;
        let labels = made.metadata.labels.unwrap_or_default();
        assert_eq!(labels["kagenti.io/managed-by"], "webhook");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "drawbridge");
        let owners = made.metadata.owner_references.unwrap_or_default();
        assert_eq!(owners.len(), 1, "{kind}");
        assert_eq!((owners[0].kind.as_str(), Some(&owners[0].uid)), (kind, owner.metadata.uid.as_ref()));
        assert!(owners[0].controller.is_none() && owners[0].block_owner_deletion.is_none());
    }
    // One request each, with no pause for another try: what is left of the time is the machine's.
    let tried = cp.audit().settled(mark).await?.by(USER).writes().in_namespace(ns.name()).resource("serviceaccounts");
    let codes: Vec<_> = tried.iter().map(|request| (request.verb.as_str(), request.code)).collect();
    assert_eq!(codes, [("create", Some(201)); 6], "{}", shown(&tried));
    Ok(())
}

#[tokio::test]
async fn a_manifest_that_was_injected_offline_gets_its_account_as_well() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("offline").await?;
    let folder = tempfile::tempdir()?;
    let (manifest, platform) = (folder.path().join("web.yaml"), folder.path().join("platform.yaml"));
    std::fs::write(&manifest, workload("Deployment", "web").to_string())?;
    std::fs::write(&platform, PLATFORM)?;
    let injected = std::process::Command::new(webhook_tests::programs::workspace("drawbridge")?)
        .arg("inject")
        .arg("-f")
        .arg(&manifest)
        .arg("--platform-file")
        .arg(&platform)
        .output()?;
    let text = String::from_utf8(injected.stdout)?;
    ensure!(text.contains("kagenti.io/authbridge-status"), "{}", String::from_utf8_lossy(&injected.stderr));
    ns.apply(&text).await?;
    wait_for(&ns.api::<ServiceAccount>(), "web", |_| true).await?;
    Ok(())
}

#[tokio::test]
async fn g6_a_foreign_service_account_is_an_event_and_stays_as_it_is() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("foreign").await?;
    let foreign = ns.accepts(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}})).await?;
    ns.accepts(&workload("Deployment", "a")).await?;
    let reason = |event: &Event| event.reason.as_deref() == Some("ServiceAccountConflict");
    let told = wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(reason)).await?;
    let event = told.iter().find(|event| reason(event)).unwrap();
    assert_eq!((event.involved_object.kind.as_deref(), event.type_.as_deref()), (Some("Deployment"), Some("Warning")));
    let now = ns.api::<ServiceAccount>().get("a").await?;
    assert_eq!(now.metadata.resource_version, foreign.metadata.resource_version, "untouched");

    // The way out that the Event names.
    let labels = json!({"metadata": {"labels": {"kagenti.io/managed-by": "webhook"}}});
    ns.api::<ServiceAccount>().patch("a", &PatchParams::default(), &Patch::Merge(&labels)).await?;
    let owned = |account: &ServiceAccount| account.metadata.owner_references.as_ref().is_some_and(|all| all.len() == 1);
    wait_for(&ns.api::<ServiceAccount>(), "a", owned).await?;
    Ok(())
}

#[tokio::test]
async fn config_maps_appear_are_refreshed_and_left_alone_once_edited() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("configs").await?;
    let maps: Api<ConfigMap> = ns.api();
    ns.accepts(&workload("Deployment", "a")).await?;
    configured(&ns).await?;
    let edit = |value: &str| Patch::Merge(json!({"data": {"routes.yaml": value}}));
    maps.patch("authproxy-routes", &PatchParams::default(), &edit("mine")).await?;

    // A template in our own namespace reaches what nobody edited.
    let templates: Api<ConfigMap> = Api::namespaced(cp.client().await?, OPERATOR);
    for (name, data) in [
        ("authproxy-routes", json!({"routes.yaml": "theirs"})),
        ("spiffe-helper-config", json!({"helper.conf": "new"})),
    ] {
        let template: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name}, "data": data}))?;
        templates.create(&kube::api::PostParams::default(), &template).await?;
    }
    let value = |map: &ConfigMap, key: &str| map.data.as_ref().and_then(|data| data.get(key).cloned());
    wait_for(&maps, "spiffe-helper-config", |map| value(map, "helper.conf").as_deref() == Some("new")).await?;
    assert_eq!(value(&maps.get("authproxy-routes").await?, "routes.yaml").as_deref(), Some("mine"));

    // Deleted by a person: made again, from the template.
    maps.delete("authproxy-routes", &DeleteParams::default()).await?;
    wait_for(&maps, "authproxy-routes", |map| value(map, "routes.yaml").as_deref() == Some("theirs")).await?;
    for name in ["authproxy-routes", "spiffe-helper-config"] {
        templates.delete(name, &DeleteParams::default()).await?;
    }
    wait_for(&maps, "authproxy-routes", |map| value(map, "routes.yaml").as_deref() == Some("[]\n")).await?;
    Ok(())
}

/// Waits until every ConfigMap that the controllers give a namespace is there.
async fn configured(ns: &TestNamespace) -> Result<()> {
    for name in ["authbridge-config", "spiffe-helper-config", "envoy-config", "authproxy-routes"] {
        wait_for(&ns.api::<ConfigMap>(), name, |_| true).await?;
    }
    Ok(())
}

async fn enrol(ns: &TestNamespace, from: usize, to: usize) -> Result<()> {
    for number in from..to {
        ns.accepts(&workload("Deployment", &format!("agent-{number}"))).await?;
    }
    let ours = ListParams::default().labels("kagenti.io/managed-by=webhook");
    let selected = watcher::Config::default().labels("kagenti.io/managed-by=webhook");
    wait_until(&ns.api::<ServiceAccount>(), selected, |all| all.len() >= to).await?;
    ensure!(ns.api::<ServiceAccount>().list(&ours).await?.items.len() == to);
    Ok(())
}

/// One story on one control plane: every step leaves the state that the next one needs.
#[tokio::test]
async fn restarts_write_nothing_and_leaders_follow_each_other_without_overlap() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let access = install(&cp, "fail").await?;
    let ns = cp.namespace("story").await?;
    let first = launch(&access)?;
    first.ready().await?;
    let one = leads(&cp, None).await?;
    enrol(&ns, 0, 10).await?;
    // Accounts come first; what the namespace still waits for would be counted as written by a restart.
    configured(&ns).await?;

    // Planned hand-over, and a restart in which nothing has changed.
    let mark = cp.audit().mark()?;
    let second = launch(&access)?;
    second.ready().await?;
    let two = handed_over(&cp, &first, &one).await?;
    first.wait().await?;
    enrol(&ns, 10, 11).await?;
    let made = writes(cp.audit().settled(mark).await?).accepted();
    assert!(made.len() == 1 && made[0].verb == "create", "more than the one new account:\n{}", shown(&made));

    // Killed: the next one follows once the Lease has run out.
    first.start_again()?;
    first.ready().await?;
    second.kill().await;
    let three = leads(&cp, Some(&two)).await?;
    enrol(&ns, 11, 12).await?;

    // Stopped in the middle of its work, overtaken, resumed: not one write after its lease ran out.
    second.start_again()?;
    second.ready().await?;
    let burst: Vec<_> = (12..32).map(|number| workload("Deployment", &format!("agent-{number}"))).collect();
    let burst = futures::future::try_join_all(burst.iter().map(|one| ns.accepts(one)));
    let accounts: Api<ServiceAccount> = ns.api();
    let (applied, one_made) = tokio::join!(burst, async {
        let selected = watcher::Config::default().labels("kagenti.io/managed-by=webhook");
        let made = wait_until(&accounts, selected, |all| all.len() > 12).await;
        first.pause();
        made
    });
    ensure!(applied?.len() == 20 && !one_made?.is_empty());
    leads(&cp, Some(&three)).await?;
    let selected = watcher::Config::default().labels("kagenti.io/managed-by=webhook");
    wait_until(&accounts, selected, |all| all.len() == 32).await?;
    let mark = cp.audit().mark()?;
    first.resume();
    // Through its watches it learns of these as well, and must leave them to the leader.
    enrol(&ns, 32, 37).await?;
    let after = writes(cp.audit().settled(mark).await?).accepted();
    assert_eq!(after.len(), 5, "one writer only:\n{}", shown(&after));

    // The API server goes away and comes back: everything goes on, nothing is written again.
    let mark = cp.audit().mark()?;
    cp.restart(Process::ApiServer).await?;
    enrol(&ns, 37, 38).await?;
    let made = writes(cp.audit().settled(mark).await?).accepted();
    assert_eq!(made.len(), 1, "after an outage:\n{}", shown(&made));
    Ok(())
}

/// The gate is put on by a webhook of the test, which can be told to stop: what the policy does while no replica answers.
#[tokio::test]
async fn pods_behind_the_gate_are_replaced_once_a_probe_comes_back_and_jobs_lose_no_try() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let controllers = launch_with(&install(&cp, "gate").await?, "gate")?;
    controllers.ready().await?;
    leads(&cp, None).await?;
    let ns = cp.namespace("gated").await?;
    let away = Arc::new(AtomicBool::new(true));
    let gate = away.clone();
    let hook = Hook::start(&cp, ns.name(), "gate", move |_| {
        let add = json!([{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "drawbridge/injection"}]}]);
        if gate.load(Ordering::SeqCst) { hook::patch(&add) } else { hook::allow() }
    });
    let hook = hook.await?;
    hook.register_for_pods(&ns, "gate", hook::Kind::Mutating).await?;

    let gates: Api<ServiceAccount> = Api::namespaced(cp.client().await?, OPERATOR);
    let types = |account: &ServiceAccount| account.annotations().get("kagenti.io/gated-types").cloned();
    wait_for(&gates, "drawbridge-gate", |account| types(account).as_deref() == Some("agent")).await?;

    let mark = cp.audit().mark()?;
    let mut job = workload("Job", "once");
    job["spec"]["backoffLimit"] = json!(0);
    ns.accepts(&workload("Deployment", "web")).await?;
    ns.accepts(&job).await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "bare", "labels": {"app": "bare", "kagenti.io/type": "agent"}},
        "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}))
        .await?;
    let gated = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.scheduling_gates.is_some());
    let pods: Api<Pod> = ns.api();
    wait_until(&pods, watcher::Config::default(), |all| all.len() == 3 && all.values().all(gated)).await?;
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| {
        all.values().any(|event| event.reason.as_deref() == Some("GatedWithoutController"))
    })
    .await?;

    // Probes come back gated: nobody is touched.
    let probes = |requests: &Requests| requests.iter().filter(|request| request.uri.contains("dryRun=All")).count();
    let deadline = Instant::now() + patience();
    while probes(&cp.audit().since(mark)?.by(USER)) < 2 {
        ensure!(Instant::now() < deadline, "nobody probes");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(cp.audit().since(mark)?.by(USER).verb("delete").is_empty());

    away.store(false, Ordering::SeqCst);
    let web = watcher::Config::default().labels("app=web");
    wait_until(&pods, web, |all| all.len() == 1 && !all.values().any(gated)).await?;
    let succeeded = |job: &Job| job.status.as_ref().and_then(|status| status.succeeded) == Some(1);
    let done = wait_for(&ns.api::<Job>(), "once", succeeded).await?;
    assert_eq!(done.status.and_then(|status| status.failed).unwrap_or_default(), 0);
    assert!(done.metadata.annotations.is_none_or(|all| !all.contains_key("kagenti.io/suspended-for-gate")));
    assert!(gated(&pods.get("bare").await?), "only reported");
    Ok(())
}

#[tokio::test]
async fn a_workload_that_still_waits_is_told_once() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("waiting").await?;
    let hook = Hook::start(cp, ns.name(), "refuses", |_| hook::deny("ServiceAccountPending: try again")).await?;
    hook.register_for_pods(&ns, "refuses", hook::Kind::Validating).await?;
    let mark = cp.audit().mark()?;
    ns.accepts(&workload("StatefulSet", "db")).await?;
    let account = wait_for(&ns.api::<ServiceAccount>(), "db", |_| true).await?;
    let digest = drawbridge::domain::digest::of_bytes(account.metadata.uid.unwrap_or_default().as_bytes());
    let told = |set: &StatefulSet| {
        let annotations = set.metadata.annotations.as_ref();
        annotations
            .and_then(|all| all.get("kagenti.io/retry-for"))
            .is_some_and(|told| digest.starts_with(told.as_str()))
    };
    wait_for(&ns.api::<StatefulSet>(), "db", told).await?;
    let patches =
        cp.audit().settled(mark).await?.by(USER).verb("patch").resource("statefulsets").in_namespace(ns.name());
    assert_eq!(patches.len(), 1);
    Ok(())
}
