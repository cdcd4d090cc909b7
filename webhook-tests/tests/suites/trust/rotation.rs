//! Authorities change while proactive restart is on: who signs when its Pods start is restarted once for the end of an authority, in turn with the
//! others, whichever process leads; that an authority comes or goes restarts nobody.
//!
//! The signed cards stand in ConfigMaps, and the test signs in place of the containers of new Pods.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail, ensure};
use drawbridge::api::agent_kagenti_dev::agent_card::AgentCard;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use webhook_tests::patience::{delay, lease};
use webhook_tests::svid::{Authority, signed};
use webhook_tests::{
    AuditLevel, Installation, Installing, Mark, Options, TestNamespace, installation, trial, wait_for,
};

use super::fleet::{AT_ONCE, CONTROLLERS, names};
use super::history::{History, Version, recording};
use super::*;

/// Twice as many as may roll at once, and one more.
const AGENTS: usize = 11;
/// Workloads that may roll at once in so small a fleet.
const BUDGET: usize = 5;
const DOMAIN: &str = "cluster.local";
/// What is left of an authority when it signs, in delays: three times what three rollouts and a change of leaders take, since whoever does not get to
/// signing again by then is lost.
const LEFT: u32 = 160;
/// Seconds that a rollout lasts at least.
const ROLLS: u64 = 12;
const TRIGGER: &str = "agentcard.kagenti.dev/resign-trigger";
const HANDLED: &str = "agentcard.kagenti.dev/resign-leaf-expiry";

/// Who signs, and the version that the card says it is.
struct Signs {
    by: Arc<Authority>,
    version: String,
}

#[allow(clippy::disallowed_methods, reason = "the test's own clock")]
fn now() -> Result<Duration> {
    Ok(Duration::from_secs(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs()))
}

/// A Deployment whose rollouts last longer than it takes until another process leads, and whose Pods sign, with a Service that leads to no port of theirs, so that nobody asks them, and
/// a person's card, so that its period is short.
async fn signing(ns: &TestNamespace, name: &str) -> Result<()> {
    let mut workload = agent(name);
    workload["spec"]["minReadySeconds"] = ROLLS.max(2 * lease().as_secs()).into();
    workload["spec"]["template"]["metadata"]["annotations"] = json!({"agentcard.kagenti.dev/resign": "true"});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 8000, "targetPort": "nowhere"}]}});
    let card = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard", "metadata": {"name": name},
        "spec": {"syncPeriod": "5s", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}});
    for object in [service, card, workload] {
        ns.accepts(&object).await?;
    }
    running(ns, name).await.map(drop)
}

async fn put(ns: &TestNamespace, name: &str, key: &str, text: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: text}});
    ns.apply_one(&object, false).await?.result.map(drop).map_err(|status| anyhow::anyhow!(status.message))
}

/// The trust bundle holds these authorities from now on, and no other.
async fn publish(bundles: &TestNamespace, all: &[&Authority]) -> Result<()> {
    let pem: String = all.iter().map(|authority| authority.pem()).collect();
    put(bundles, "bundle", "bundle", &pem).await
}

async fn sign(ns: &TestNamespace, name: &str, signs: &Signs) -> Result<()> {
    let card = json!({"name": name, "version": signs.version, "url": format!("http://{name}:8000"), "skills": [{"id": "echo"}]});
    let signer = signs.by.signer(&format!("/ns/{}/sa/default", ns.name()))?;
    put(ns, &format!("{name}-card-signed"), "agent-card.json", &signed(&card, &signer)?).await
}

/// Every agent's card is of that version, and counts.
async fn believed(ns: &TestNamespace, version: &str) -> Result<()> {
    for name in names(AGENTS) {
        let holds = |card: &AgentCard| {
            let card = serde_json::to_value(card).unwrap_or_default();
            card["status"]["card"]["version"] == version && is_believed(&card)
        };
        wait_for(&ns.api::<AgentCard>(), &name, holds).await?;
    }
    Ok(())
}

fn is_believed(card: &Value) -> bool {
    let all = card.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    all.into_iter().any(|one| one["type"] == "Verified" && one["status"] == "True")
}

/// Every agent signs so, as one does whose signer runs beside it.
async fn all_sign(ns: &TestNamespace, signs: &Signs) -> Result<()> {
    let every = stream::iter(names(AGENTS)).map(|name| async move { sign(ns, &name, signs).await });
    every.buffer_unordered(AT_ONCE).try_collect().await
}

/// What the signers of new Pods do: each signs once, by the authority of the moment.
async fn signers(ns: &TestNamespace, moment: &Mutex<Arc<Signs>>) -> Result<()> {
    let mut done = BTreeSet::new();
    let mut pods = pin!(watcher(ns.api::<Pod>(), watcher::Config::default()).default_backoff().applied_objects());
    while let Some(pod) = pods.try_next().await? {
        let is_up = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        let Some(name) = pod.labels().get("app").filter(|_| is_up && pod.annotations().contains_key(TRIGGER)) else {
            continue;
        };
        if done.insert(pod.uid()) {
            let signs = moment.lock().clone();
            sign(ns, name, &signs).await?;
        }
    }
    bail!("the watch of Pods ended")
}

/// What became of Deployments and cards, by resourceVersion.
type Versions = BTreeMap<u64, Version>;

fn of<'v>(versions: &'v Versions, kind: &'v str) -> impl Iterator<Item = (&'v str, &'v Value)> {
    versions
        .values()
        .filter_map(move |(of, name, content)| Some((name.as_str(), content.as_ref()?)).filter(|_| *of == kind))
}

fn of_template<'v>(deployment: &'v Value, annotation: &str) -> Option<&'v str> {
    deployment["spec"]["template"]["metadata"]["annotations"][annotation].as_str()
}

/// It was restarted, and not every Pod is a new one that is available.
fn rolls(deployment: &Value) -> bool {
    let (metadata, status) = (&deployment["metadata"], &deployment["status"]);
    let count = |value: &Value| value.as_i64().unwrap_or_default();
    let updated = count(&status["updatedReplicas"]);
    let is_over = count(&status["observedGeneration"]) >= count(&metadata["generation"])
        && updated == 1
        && count(&status["replicas"]) <= updated
        && count(&status["availableReplicas"]) >= updated;
    of_template(deployment, TRIGGER).is_some() && !is_over
}

/// How many rolled at once at most, in the order in which the API server stored every version.
fn most_at_once(versions: &Versions) -> usize {
    let mut rolling = BTreeSet::new();
    let mut most = 0;
    for (name, deployment) in of(versions, "Deployment") {
        if rolls(deployment) {
            rolling.insert(name);
        } else {
            rolling.remove(name);
        }
        most = most.max(rolling.len());
    }
    most
}

/// How often each agent was restarted.
fn restarts(versions: &Versions) -> BTreeMap<String, usize> {
    let mut moments: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, deployment) in of(versions, "Deployment") {
        if let Some(moment) = of_template(deployment, TRIGGER) {
            moments.entry(name).or_default().insert(moment);
        }
    }
    moments.into_iter().map(|(name, moments)| (name.to_owned(), moments.len())).collect()
}

/// Agents that were restarted for that end of a signature.
fn restarted_for(versions: &Versions, end: &str) -> BTreeSet<String> {
    let handled = of(versions, "Deployment").filter(|(_, deployment)| of_template(deployment, HANDLED) == Some(end));
    handled.map(|(name, _)| name.to_owned()).collect()
}

/// States of cards that are not Verified, once they were.
fn losses(versions: &Versions) -> Vec<String> {
    let (mut believed, mut lost) = (BTreeSet::new(), Vec::new());
    for (name, card) in of(versions, "AgentCard") {
        if is_believed(card) {
            believed.insert(name);
        } else if believed.contains(name) {
            lost.push(format!("{name}: {}", card["status"]["conditions"]));
        }
    }
    lost
}

/// How often each Pod template was written by the controllers, from the audit log.
async fn template_writes(cp: &ControlPlane, ns: &TestNamespace, mark: Mark) -> Result<BTreeMap<String, usize>> {
    let requests = cp.audit().settled(mark).await?.by(CONTROLLERS).writes().accepted().in_namespace(ns.name());
    let mut writes = BTreeMap::new();
    for request in requests.resource("deployments").iter() {
        let body = request.request_object.as_ref();
        if body.is_some_and(|body| body.is_array() || body.pointer("/spec/template").is_some()) {
            *writes.entry(request.name.clone()).or_default() += 1;
        }
    }
    Ok(writes)
}

#[tokio::test]
async fn a_rotation_of_authorities_restarts_each_agent_once_for_each_end_and_in_turn() -> Result<()> {
    let rounds = trial::size(1, 2);
    let cp = installation::plane(Options { audit: AuditLevel::RequestResponse, ..Options::default() }).await?;
    let bundles = cp.namespace("bundles").await?;
    let left = Duration::from_secs((delay() * LEFT).as_secs());
    // Twice what is left, so that all whom an authority vouches for are due at once.
    let grace = 2 * left;
    let platform = format!(
        "cards: {{audit: false, proactiveRestart: true, restartGraceSeconds: {}, trustBundle: {{trustDomain: {DOMAIN}, configMap: {{name: bundle, namespace: {}, key: bundle}}}}}}\n",
        grace.as_secs(),
        bundles.name(),
    );
    let installation = Installation::start(&cp, &Installing { platform, ..Installing::default() }).await?;
    let ns = cp.namespace_with("rotation", &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    let first = Signs { by: Arc::new(Authority::new(DOMAIN)?), version: "first".to_owned() };
    publish(&bundles, &[&first.by]).await?;
    let made = stream::iter(names(AGENTS)).map(|name| {
        let ns = &ns;
        async move { signing(ns, &name).await }
    });
    made.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    all_sign(&ns, &first).await?;
    believed(&ns, &first.version).await?;
    let moment = Mutex::new(Arc::new(first));
    let (history, mut tasks) = (Arc::new(History::default()), JoinSet::new());
    recording(&mut tasks, ns.api::<Deployment>(), "Deployment", &history);
    recording(&mut tasks, ns.api::<AgentCard>(), "AgentCard", &history);
    let mark = cp.audit().mark()?;
    let trial = Trial {
        cp: &cp,
        installation: &installation,
        bundles: &bundles,
        ns: &ns,
        moment: &moment,
        history: &history,
        mark,
        left,
        grace,
    };
    let story = async {
        for round in 1..=rounds {
            trial.rotation(round).await?;
        }
        Ok(())
    };
    tokio::select! {
        result = signers(&ns, &moment) => result,
        result = story => result,
    }
}

struct Trial<'t> {
    cp: &'t ControlPlane,
    installation: &'t Installation,
    bundles: &'t TestNamespace,
    ns: &'t TestNamespace,
    moment: &'t Mutex<Arc<Signs>>,
    history: &'t Arc<History>,
    mark: Mark,
    /// What is left of an authority when it signs.
    left: Duration,
    /// `cards.restartGraceSeconds`.
    grace: Duration,
}

impl Trial<'_> {
    async fn rotation(&self, round: usize) -> Result<()> {
        let before = self.moment.lock().clone();
        let version = |what: &str| format!("{what} {round}");
        // No workload is restarted twice within the grace.
        let end = now()? + self.left + if round > 1 { self.grace } else { Duration::ZERO };
        let ending = Signs { by: Arc::new(Authority::until(DOMAIN, end)?), version: version("ending") };
        let next = Arc::new(Signs { by: Arc::new(Authority::new(DOMAIN)?), version: version("next") });

        // Authorities come, and certificates change; the authority of the new ones ends soon. Who leads when the first restarts begin is killed.
        publish(self.bundles, &[&before.by, &ending.by, &next.by]).await?;
        *self.moment.lock() = next.clone();
        all_sign(self.ns, &ending).await?;
        let end = jiff::Timestamp::from_second(i64::try_from(end.as_secs())?)?.to_string();
        self.history.until(|versions| restarted_for(versions, &end).len() >= 3).await?;
        self.installation.restart_controllers().await?;
        believed(self.ns, &next.version).await?;

        // The old authorities go. Who leads then judges every card by those that are left, also one that is signed later.
        publish(self.bundles, &[&next.by]).await?;
        self.installation.restart_controllers().await?;
        let after = Arc::new(Signs { by: next.by.clone(), version: version("after") });
        *self.moment.lock() = after.clone();
        all_sign(self.ns, &after).await?;
        believed(self.ns, &after.version).await?;
        self.verdict(round, &end).await
    }

    async fn verdict(&self, round: usize, end: &str) -> Result<()> {
        let every: BTreeMap<_, _> = names(AGENTS).map(|name| (name, round)).collect();
        let writes = template_writes(self.cp, self.ns, self.mark).await?;
        let at_most = writes.iter().all(|(name, count)| every.get(name).is_some_and(|most| count <= most));
        ensure!(at_most, "each Pod template is written once at most for each end: {writes:?}");
        let versions = self.history.all();
        // A process that is killed hears no answer to its last write, and the audit log has none either: what was stored tells.
        let restarts = restarts(&versions);
        ensure!(restarts == every, "each agent is restarted once for each end: {restarts:?}");
        let restarted = restarted_for(&versions, end);
        ensure!(restarted.len() == AGENTS, "for the end of the authority, {end}: {restarted:?}");
        let most = most_at_once(&versions);
        ensure!(most == BUDGET, "{most} rolled at once, of {BUDGET} that may");
        let lost = losses(&versions);
        ensure!(lost.is_empty(), "trust was lost: {lost:#?}");
        for name in names(AGENTS) {
            labelled(self.ns, &name, true).await?;
        }
        Ok(())
    }
}
