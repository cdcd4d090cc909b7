//! The mark by which the API server's policies know that a namespace holds an Agent, under attack: taken off each time, put on by hand, and away. What is
//! made for the others is made, nothing is written at every turn, and our own account is refused wherever nobody carries it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::Agent;
use drawbridge::domain::keys;
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Service};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use webhook_tests::patience::patience;
use webhook_tests::{ControlPlane, Objects, Requests, TestNamespace, wait_for, wait_gone, wait_until};

use super::stage::{CONTROLLERS, agent, condition, ready, shared};

/// The policy that looks for the mark.
pub(super) const POLICY: &str = keys::POLICY_OWN_AGENTS_NEW;
/// How soon the API server has heard of what was written, asked so often.
const TICK: Duration = Duration::from_millis(50);

fn selected() -> String {
    format!("{}={}", keys::LABEL_POLICY_PARAMETER, keys::POLICY_PARAMETER)
}

/// An Agent with the mark, as somebody writes it.
fn marked(name: &str, more: &Value) -> Value {
    let mut object =
        agent(name, &json!({"metadata": {"labels": {keys::LABEL_POLICY_PARAMETER: keys::POLICY_PARAMETER}}}));
    json_patch::merge(&mut object, more);
    object
}

/// Who carries the mark.
pub(super) async fn carriers(ns: &TestNamespace) -> Result<Vec<String>> {
    let found = ns.api::<Agent>().list(&ListParams::default().labels(&selected())).await?;
    Ok(found.items.iter().map(ResourceExt::name_any).collect())
}

/// Gives or takes the mark.
pub(super) async fn set_mark(agents: &Api<Agent>, name: &str, is: bool) -> kube::Result<Agent> {
    let value = if is { json!(keys::POLICY_PARAMETER) } else { Value::Null };
    let patch = json!({"metadata": {"labels": {keys::LABEL_POLICY_PARAMETER: value}}});
    agents.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await
}

/// Our own account, in that namespace.
pub(super) async fn ours(cp: &ControlPlane, ns: &TestNamespace) -> Result<Objects> {
    let client = cp.service_account(keys::OPERATOR_NAMESPACE, "drawbridge-controllers").await?.client().await?;
    Ok(Objects::new(client, ns.name()))
}

/// The Deployment and the Service that are made for an Agent of `template`'s kind, as if for that one.
pub(super) async fn copied(ns: &TestNamespace, template: &str, agent: &Agent) -> Result<[Value; 2]> {
    let name = agent.name_any();
    let owner = json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": name, "uid": agent.metadata.uid, "controller": true}]);
    let as_if = |object: Value, (api_version, kind): (&str, &str)| -> Result<Value> {
        let mut spec = object["spec"].clone();
        for assigned in ["clusterIP", "clusterIPs"] {
            spec.as_object_mut().map(|spec| spec.remove(assigned));
        }
        let metadata = json!({"name": template, "labels": object["metadata"]["labels"]});
        let text = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}).to_string();
        let mut copy: Value = serde_json::from_str(&text.replace(&format!("\"{template}\""), &format!("\"{name}\"")))?;
        copy["metadata"]["ownerReferences"] = owner.clone();
        Ok(copy)
    };
    let deployment = serde_json::to_value(ns.api::<Deployment>().get(template).await?)?;
    let service = serde_json::to_value(ns.api::<Service>().get(template).await?)?;
    Ok([as_if(deployment, ("apps/v1", "Deployment"))?, as_if(service, ("v1", "Service"))?])
}

/// Waits until a create by our account, which is only tried, is let through or refused by [`POLICY`]; the refusal.
pub(super) async fn until_tried(ours: &Objects, object: &Value, passes: bool) -> Result<String> {
    let trying = async {
        loop {
            match ours.create(object, true).await?.result {
                Ok(_) if passes => return anyhow::Ok(String::new()),
                Ok(_) => {}
                Err(status) if status.message.contains(&format!("'{POLICY}'")) => {
                    if !passes {
                        return Ok(status.message);
                    }
                }
                Err(status) => anyhow::bail!("{}: {}", object["kind"], status.message),
            }
            tokio::time::sleep(TICK).await;
        }
    };
    let what = if passes { "never let through" } else { "never refused" };
    tokio::time::timeout(patience(), trying).await.with_context(|| what.to_owned())?
}

/// Takes the mark off whoever carries it, of `names` or of all, the moment it is seen; until it is dropped.
struct Stripping {
    task: JoinHandle<()>,
    times: Arc<AtomicUsize>,
}

impl Stripping {
    fn of(agents: Api<Agent>, names: &'static [&'static str]) -> Self {
        let times = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&times);
        let task = tokio::spawn(async move {
            let config = watcher::Config::default().labels(&selected());
            let mut events = std::pin::pin!(watcher(agents.clone(), config).default_backoff().applied_objects());
            while let Some(event) = events.next().await {
                let Ok(agent) = event else { continue };
                let name = agent.name_any();
                let is_meant = names.is_empty() || names.contains(&name.as_str());
                if is_meant && set_mark(&agents, &name, false).await.is_ok() {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { task, times }
    }

    fn times(&self) -> usize {
        self.times.load(Ordering::Relaxed)
    }
}

impl Drop for Stripping {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What our account wrote of a resource of that namespace, subresources aside.
fn of(written: &Requests, ns: &TestNamespace, resource: &str) -> Requests {
    let keep = |request: &webhook_tests::Request| {
        request.namespace == ns.name() && request.resource == resource && request.subresource.is_empty()
    };
    written.clone().by(CONTROLLERS).writes().filter(keep)
}

/// How often something may be tried within that time: once ahead, once at once, and then after pauses that begin with a second and double.
pub(super) fn tries_within(time: Duration) -> usize {
    let moments = (0..u64::BITS).map(|tries| Duration::from_secs((1 << tries) - 1));
    1 + moments.take_while(|moment| *moment <= time).count()
}

/// Somebody's mutating policy that takes the mark off in the very write that puts it on.
fn stripping_policy(name: &str, namespace: &str) -> [Value; 2] {
    let path = format!("/metadata/labels/{}", keys::LABEL_POLICY_PARAMETER.replace('/', "~1"));
    let carries = format!("'{}' in object.metadata.?labels.orValue({{}})", keys::LABEL_POLICY_PARAMETER);
    let group = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": group, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail", "reinvocationPolicy": "Never",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "resourceRules": [{"apiGroups": ["agent.kagenti.dev"], "apiVersions": ["*"], "resources": ["agents"],
                    "operations": ["CREATE", "UPDATE"]}],
            },
            "matchConditions": [{"name": "carries-the-mark", "expression": carries}],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": format!("[JSONPatch{{op: 'remove', path: '{path}'}}]")}}],
        },
    });
    let binding = json!({"apiVersion": group, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": name}, "spec": {"policyName": name}});
    [policy, binding]
}

/// Waits until the mark is lost in the write that puts it on.
async fn until_stripped(ns: &TestNamespace) -> Result<()> {
    let trying = async {
        loop {
            let stored = ns.create(&marked("tried", &json!({})), true).await?.result;
            let stored = stored.map_err(|status| anyhow::anyhow!("{}", status.message))?;
            if !stored.labels().contains_key(keys::LABEL_POLICY_PARAMETER) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(patience(), trying).await.context("the policy is not in force")?
}

/// Where no mark ever stays: nothing is sent that would be refused, what puts it on waits longer each time, people are told, and once it stays
/// everything is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_that_never_stays_costs_few_writes_and_is_said_and_once_it_stays_all_is_made() -> Result<()> {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    let cp = shared().await?;
    let ns = cp.namespace("marks-lost").await?;
    let policy = stripping_policy(&format!("strips-{}", ns.name()), ns.name());
    for object in &policy {
        ns.apply(&object.to_string()).await?;
    }
    until_stripped(&ns).await?;
    let (mark, begun) = (cp.audit().mark()?, Instant::now());
    for name in NAMES {
        ns.accepts(&agent(name, &json!({}))).await?;
    }
    for name in NAMES {
        let said = |agent: &Agent| condition(agent, "Ready") == "False/FieldsContested";
        let agent = wait_for(&ns.api::<Agent>(), name, said).await?;
        let told = serde_json::to_string(&agent.status)?;
        ensure!(told.contains(keys::LABEL_POLICY_PARAMETER) && told.contains("audit log"), "{told}");
    }
    let most = tries_within(begun.elapsed()).max(5);
    let written = cp.audit().settled(mark).await?;
    ensure!(carriers(&ns).await?.is_empty(), "nobody carries the mark");
    for resource in ["deployments", "services", "serviceaccounts"] {
        let made = of(&written, &ns, resource);
        ensure!(made.is_empty(), "nothing is sent that would be refused: {made}");
    }
    // The finalizer with the mark, and three marks in about three seconds; a fourth four seconds later, and more only where all took longer.
    let marks = of(&written, &ns, "agents");
    ensure!((4 * NAMES.len()..=most * NAMES.len()).contains(&marks.len()), "{most}: {marks}");
    let statuses = written.clone().by(CONTROLLERS).in_namespace(ns.name()).filter(|one| one.subresource == "status");
    ensure!(statuses.len() <= 3 * NAMES.len(), "{statuses}");
    let of_this = |event: &Event, name: &str| event.involved_object.name.as_deref() == Some(name);
    let told = |events: &BTreeMap<String, Event>, name: &str| {
        let of_this = events.values().filter(|event| of_this(event, name));
        of_this.filter_map(|event| event.reason.clone()).collect::<Vec<_>>()
    };
    let each = |events: &BTreeMap<String, Event>| NAMES.iter().all(|name| told(events, name) == ["FieldsContested"]);
    wait_until(&ns.api::<Event>(), watcher::Config::default(), each).await.context("each is told once")?;
    for object in policy.iter().rev() {
        cp.objects().await?.delete(object).await?;
    }
    for name in NAMES {
        wait_for(&ns.api::<Agent>(), name, ready).await?;
    }
    ensure!(!carriers(&ns).await?.is_empty());
    Ok(())
}

/// Who writes Agents takes the mark off one of them the moment it is seen, and deletes another one that carries it: what the others want is made all
/// the same, and the one that is attacked costs no write of ours while nothing is to be made for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_the_mark_off_one_agent_keeps_nothing_from_the_others() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("marks-taken").await?;
    let user = cp.member(&ns, &format!("tenant-{}", ns.name()), "edit").await?;
    let tenant: Api<Agent> = Api::namespaced(user.client().await?, ns.name());
    let agents: Api<Agent> = ns.api();
    ns.accepts(&agent("attacked", &json!({}))).await?;
    wait_for(&agents, "attacked", ready).await?;
    ensure!(carriers(&ns).await? == ["attacked"]);
    let mark = cp.audit().mark()?;
    let stripping = Stripping::of(tenant.clone(), &["attacked"]);
    wait_for(&agents, "attacked", |agent: &Agent| !agent.labels().contains_key(keys::LABEL_POLICY_PARAMETER)).await?;
    for name in ["next", "third"] {
        ns.accepts(&agent(name, &json!({}))).await?;
        wait_for(&agents, name, ready).await?;
        ensure!(carriers(&ns).await? == ["next"]);
    }
    tenant.delete("next", &DeleteParams::default()).await?;
    wait_gone(&agents, "next").await?;
    ns.accepts(&agent("fourth", &json!({}))).await?;
    wait_for(&agents, "fourth", ready).await?;
    ensure!(carriers(&ns).await? == ["fourth"]);
    // What is made for the attacked one itself is let through by the mark of another.
    ns.api::<Service>().delete("attacked", &DeleteParams::default()).await?;
    wait_for(&ns.api::<Service>(), "attacked", |service: &Service| service.metadata.deletion_timestamp.is_none())
        .await?;
    let written = cp.audit().settled(mark).await?;
    let attacked = of(&written, &ns, "agents").filter(|request| request.name == "attacked");
    ensure!(attacked.is_empty() && stripping.times() == 1, "{attacked}");
    Ok(())
}

/// The same of every Agent at once: each turn is a race that somebody wins, and however it ends it costs few writes; once it is over all is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_takes_every_mark_off_at_once_cannot_make_us_write_at_every_turn() -> Result<()> {
    const NAMES: [&str; 4] = ["one", "two", "three", "four"];
    let cp = shared().await?;
    let ns = cp.namespace("marks-raced").await?;
    let agents: Api<Agent> = ns.api();
    let (mark, begun) = (cp.audit().mark()?, Instant::now());
    let stripping = Stripping::of(agents.clone(), &[]);
    for name in NAMES {
        ns.accepts(&agent(name, &json!({}))).await?;
    }
    tokio::time::sleep(Duration::from_secs(8)).await;
    // Read first: whatever was taken off by now is in the log then.
    let (taken, took) = (stripping.times(), begun.elapsed());
    let written = cp.audit().settled(mark).await?;
    // With the finalizer, then after 0, 1, 3 and 7 s, and once more for a write that raced another; and each of these allows one try of Service and
    // Deployment, which waits after a refusal.
    let marks = of(&written, &ns, "agents");
    let most = 1 + tries_within(took);
    ensure!(marks.len() <= most * NAMES.len() && taken <= marks.len(), "{taken} taken off, of {most} each: {marks}");
    let seconds = usize::try_from(took.as_secs())?;
    for resource in ["deployments", "services"] {
        let made = of(&written, &ns, resource);
        ensure!(made.len() <= (1 + seconds) * NAMES.len(), "one a second at most: {made}");
    }
    drop(stripping);
    for name in NAMES {
        wait_for(&agents, name, ready).await?;
    }
    Ok(())
}

/// Marks by hand: on many, on one that is being deleted, on one with the longest name. Ours adds none, takes none away, and does not count on one
/// that goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_that_people_put_on_change_nothing() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("marks-by-hand").await?;
    let agents: Api<Agent> = ns.api();
    let mark = cp.audit().mark()?;
    let longest = "n".repeat(63);
    let names: Vec<String> = (0..12).map(|number| format!("many-{number}")).chain([longest]).collect();
    for name in &names {
        ns.accepts(&marked(name, &json!({}))).await?;
    }
    for name in &names {
        wait_for(&agents, name, ready).await?;
    }
    ensure!(carriers(&ns).await?.len() == names.len(), "none is taken off");
    let written = of(&cp.audit().settled(mark).await?, &ns, "agents");
    ensure!(written.len() == names.len(), "the finalizer of each, and no more: {written}");

    // The only one that carries it is on its way out: the next one carries it as well, and what both leave behind is taken away.
    let other = cp.namespace("marks-going").await?;
    let held = json!({"metadata": {"finalizers": ["tests.example/held"]}});
    other.accepts(&marked("goes", &held)).await?;
    let agents: Api<Agent> = other.api();
    wait_for(&agents, "goes", ready).await?;
    agents.delete("goes", &DeleteParams::default()).await?;
    wait_for(&agents, "goes", |agent: &Agent| agent.finalizers() == ["tests.example/held"]).await?;
    wait_gone(&other.api::<Deployment>(), "goes").await?;
    other.accepts(&agent("stays", &json!({}))).await?;
    wait_for(&agents, "stays", ready).await?;
    ensure!(carriers(&other).await? == ["goes", "stays"]);
    let release = json!({"metadata": {"finalizers": null}});
    agents.patch("goes", &PatchParams::default(), &Patch::Merge(&release)).await?;
    wait_gone(&agents, "goes").await
}

/// Where no Agent carries the mark, our account makes nothing, whatever else carries it; from the moment on at which one does, it does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_agent_carries_the_mark_our_own_account_makes_nothing() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("marks-away").await?;
    let agents: Api<Agent> = ns.api();
    ns.accepts(&agent("first", &json!({}))).await?;
    wait_for(&agents, "first", ready).await?;
    // Nothing is made for one that is held still: the test plays its controller.
    let paused = json!({"metadata": {"annotations": {keys::ANNOTATION_PAUSED: "true"}}});
    ns.accepts(&agent("second", &paused)).await?;
    let made = copied(&ns, "first", &agents.get("second").await?).await?;
    let ours = ours(cp, &ns).await?;
    for object in &made {
        until_tried(&ours, object, true).await?;
    }
    set_mark(&agents, "first", false).await?;
    for object in &made {
        let refused = until_tried(&ours, object, false).await?;
        ensure!(refused.contains("no params found"), "{refused}");
    }
    // Another value, and the mark on what is no Agent of this kind, are none.
    let other = json!({"metadata": {"labels": {keys::LABEL_POLICY_PARAMETER: "yes"}}});
    agents.patch("first", &PatchParams::default(), &Patch::Merge(&other)).await?;
    let label = json!({keys::LABEL_POLICY_PARAMETER: keys::POLICY_PARAMETER});
    for object in [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marked", "labels": label}}),
        json!({"apiVersion": "beeai.dev/v1", "kind": "Agent", "metadata": {"name": "bee", "labels": label},
            "spec": {"image": "example.com/a:1"}}),
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": "tools", "labels": label},
            "spec": {"runtime": "python-string", "params": "def f(): pass"}}),
    ] {
        ns.accepts(&object).await?;
    }
    wait_for(&ns.api::<Deployment>(), "bee", |_: &Deployment| true).await?;
    wait_for(&ns.api::<Deployment>(), "mcpserver-tools", |_: &Deployment| true).await?;
    for object in &made {
        until_tried(&ours, object, false).await?;
    }
    // Somebody marks the one that is held still: that will do.
    set_mark(&agents, "second", true).await?;
    for object in &made {
        until_tried(&ours, object, true).await?;
    }
    // For nobody, or under another name, nothing is made with it either.
    let [mut deployment, _] = made;
    deployment["metadata"]["ownerReferences"] = json!([]);
    let nobodys = ours.create(&deployment, true).await?.result.err().context("made for nobody")?;
    ensure!(nobodys.message.contains("drawbridge-own-"), "{}", nobodys.message);
    Ok(())
}
