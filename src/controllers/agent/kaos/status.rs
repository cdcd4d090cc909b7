//! The status of one object of KAOS.
//!
//! In: the object as stored, and everything that was found. Out: the status to be stored, and what people are told. Promises: those of the
//! frame's status; the words that old readers expect (`phase`, `ready`, `message`, `endpoint`, `linkedResources`, `deployment`) and
//! conditions beside them; what no longer holds is taken away, `ready` among it.

use serde_json::{Map, Value, json};

use super::look::{Look, RouteWish};
use super::takeover;
use crate::api::findings::printed;
use crate::controllers::agent::claim::Claim;
use crate::controllers::agent::plan::is_route;
use crate::controllers::agent::status::{
    Phase, READY, RECONCILING, Ready, STALLED, Verdict, deployment, progress, written,
};
use crate::controllers::agent::subject::Subject;
use crate::controllers::conditions::Condition;
use crate::controllers::scaffold::plan::Op;
use crate::domain::reason::Reason;
use crate::store::{AgentDeploymentSeen, Kind, Rollout};
use crate::workloads::kaos::names::{Role, STATUS_DISCOVERY, STATUS_TAKEOVER, STATUS_TOOLS};

/// Whether what an Agent names is there and ready.
pub(super) const DEPENDENCIES: &str = "DependenciesReady";
/// What an earlier operator made runs on as it is.
pub(super) const TAKEOVER: &str = "TakeoverPending";
const ROUTE: &str = "RouteAccepted";
const OPEN: &str = "ProxyOpen";
const RESTRICTED: &str = "Restricted";
const SPELLING: &str = "SpellingConflict";
const IGNORED: &str = "VariablesIgnored";
/// The condition types that are ours, [`DEPENDENCIES`] the last.
const OURS: [&str; 10] =
    [READY, ROUTE, OPEN, RESTRICTED, SPELLING, IGNORED, TAKEOVER, RECONCILING, STALLED, DEPENDENCIES];

/// The operations that bring the status up to date: none when it is.
pub(super) fn update(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Vec<Op> {
    let Some(look) = &subject.look else { return Vec::new() };
    let judged = judged(subject, verdict, look);
    let mut wanted =
        vec![Condition::new(READY, judged.ready.phase == Phase::Ready, judged.ready.reason, judged.told())];
    wanted.extend(dependencies(look));
    wanted.extend(route(subject, verdict, look));
    wanted.extend(open(look));
    wanted.extend(restricted(subject, verdict, look));
    wanted.extend(spelling(look));
    wanted.extend(ignored(look));
    wanted.extend(verdict.wanted.and_then(|wanted| takeover::condition(subject, wanted)));
    wanted.extend(judged.progress());
    // What is said of dependencies stays while it may be otherwise in a moment.
    let ours = if look.hold.is_some() { &OURS[..OURS.len() - 1] } else { &OURS[..] };
    written(subject, verdict, (fields(subject, verdict, (look, &judged)), &wanted, ours))
}

/// Whether an object is ready, in the original's words.
struct Judged {
    ready: Ready,
    /// `phase`.
    phase: &'static str,
    /// `message`.
    message: String,
    /// Why its Pods do not come, where that is known; and whether that stays so.
    trouble: Option<(Reason, String, bool)>,
    /// Its rollout is under way.
    rolls: bool,
}

impl Judged {
    fn plain(phase: &'static str, kind: Phase, reason: Reason, message: String) -> Self {
        let ready = Ready { phase: kind, reason, message: message.clone() };
        Self { ready, phase, message, trouble: None, rolls: false }
    }

    fn told(&self) -> String {
        match &self.trouble {
            Some((_, text, _)) => format!("{}. {text}", self.ready.message),
            None => self.ready.message.clone(),
        }
    }

    fn progress(&self) -> Option<Condition> {
        match &self.trouble {
            Some((reason, text, true)) => Some(Condition::new(STALLED, true, *reason, text.clone())),
            Some((reason, text, false)) => Some(Condition::new(RECONCILING, true, *reason, text.clone())),
            None if self.rolls => {
                let text = "not every Pod is of the present template and ready";
                Some(Condition::new(RECONCILING, true, Reason::DeploymentNotReady, text))
            }
            None => progress(&self.ready),
        }
    }
}

fn judged(subject: &Subject<'_>, verdict: &Verdict<'_>, look: &Look) -> Judged {
    if !look.findings.faults.is_empty() {
        return Judged::plain("Failed", Phase::Failed, Reason::InvalidSpec, printed(&look.findings.faults));
    }
    if let Some((reason, message)) = &look.failed {
        return Judged::plain("Failed", Phase::Failed, *reason, message.clone());
    }
    let own = deployment(subject, verdict);
    if let Some(stop) = &verdict.stop {
        let (phase, kind) = if stop.stalled { ("Failed", Phase::Failed) } else { ("Pending", Phase::Deploying) };
        let message = match stop.reason {
            Reason::NameConflict | Reason::DeploymentNotReady | Reason::FieldsContested => stop.message.clone(),
            _ => format!("Failed to create Deployment: {}", stop.message),
        };
        return Judged::plain(phase, kind, stop.reason, message);
    }
    match (own, &look.waits) {
        (Some((rollout, own)), _) => rolled(rollout, own),
        (None, Some((reason, message))) if verdict.claims.deployment == Claim::Absent => {
            Judged::plain("Waiting", Phase::Pending, *reason, message.clone())
        }
        _ => Judged::plain(
            "Pending",
            Phase::Pending,
            Reason::DeploymentNotReady,
            "the Deployment is about to be made".to_owned(),
        ),
    }
}

/// The message stays as the original has it; what stands in the way is said beside it.
fn rolled(rollout: Rollout, own: &AgentDeploymentSeen) -> Judged {
    let message = format!("Deployment ready replicas: {}/{}", own.ready, rollout.wanted);
    let serves = own.ready > 0;
    let (phase, kind, reason) = match (serves, rollout.wanted) {
        (true, _) => ("Ready", Phase::Ready, Reason::DeploymentReady),
        (false, 0) => ("Pending", Phase::Deploying, Reason::ScaledToZero),
        (false, _) => ("Pending", Phase::Deploying, Reason::DeploymentNotReady),
    };
    let current = rollout.observed >= rollout.generation;
    let trouble = match () {
        () if current && rollout.deadline_exceeded => {
            let text = "new Pods did not become available in time; look at them with kubectl describe pods";
            Some((Reason::ProgressDeadlineExceeded, text.to_owned(), true))
        }
        () if current && own.failure.is_some() => {
            let why = own.failure.as_deref().unwrap_or_default();
            Some((Reason::ReplicaFailure, format!("Pods are refused: {why}"), true))
        }
        () => None,
    };
    let all = [rollout.updated, own.ready, rollout.existing].iter().all(|count| *count == rollout.wanted);
    let ready = Ready { phase: kind, reason, message: message.clone() };
    Judged { ready, phase, message, trouble, rolls: !(current && all) }
}

fn dependencies(look: &Look) -> Option<Condition> {
    let lacks = look.lacks.as_ref().filter(|_| look.hold.is_none())?;
    Some(match lacks.first() {
        None => Condition::new(DEPENDENCIES, true, Reason::DependenciesReady, "everything that it names is ready"),
        Some((reason, _)) => {
            let all = lacks.iter().map(|(_, text)| &**text).collect::<Vec<_>>().join("; ");
            Condition::new(DEPENDENCIES, false, *reason, all)
        }
    })
}

fn route(subject: &Subject<'_>, verdict: &Verdict<'_>, look: &Look) -> Option<Condition> {
    let unknown = |reason, message: &str| Some(Condition::unknown(ROUTE, reason, message));
    match look.route {
        RouteWish::No => return None,
        RouteWish::Absent => {
            let text =
                "the API server does not serve HTTPRoutes: install Gateway API, or set kaos.gateway.enabled to false";
            return unknown(Reason::GatewayApiAbsent, text);
        }
        RouteWish::Unknown => {
            return unknown(Reason::GatewayApiAbsent, "whether HTTPRoutes are served is not known yet");
        }
        RouteWish::Wanted => {}
    }
    let at = subject.others.iter().position(|other| other.kind == Kind::HttpRoute)?;
    let name = &subject.others[at].key.name;
    match verdict.claims.others.get(at) {
        Some(Claim::Foreign) => {
            let text = format!("HTTPRoute {name} is not this object's and is left alone: delete or rename it");
            return Some(Condition::new(ROUTE, false, Reason::NameConflict, text));
        }
        Some(Claim::Ours(_)) => {}
        _ => {
            let refused = subject.trouble().filter(|trouble| is_route(&trouble.op));
            return Some(match refused {
                Some(trouble) => {
                    let text = format!("HTTPRoute {name} cannot be written: {}", trouble.message);
                    Condition::new(ROUTE, false, Reason::RouteRefused, text)
                }
                None => {
                    Condition::unknown(ROUTE, Reason::RoutePending, format!("HTTPRoute {name} is about to be made"))
                }
            });
        }
    }
    let seen = subject.cx.store.route(&subject.cx.key.namespace, name)?.seen;
    match &seen.accepted {
        None => unknown(Reason::RoutePending, "no Gateway has said anything of the route yet"),
        Some(said) => {
            let reason = if said.holds { Reason::RouteAccepted } else { Reason::RouteRefused };
            Some(Condition::new(ROUTE, said.holds, reason, format!("{}: {}", said.reason, said.message)))
        }
    }
}

fn open(look: &Look) -> Option<Condition> {
    Some(match look.open? {
        Some(true) => {
            let text = "the proxy has no master key: every Pod that reaches it can spend the provider's key";
            Condition::new(OPEN, true, Reason::ProxyOpen, text)
        }
        Some(false) => Condition::new(OPEN, false, Reason::ProxyClosed, "the proxy requires its master key"),
        None => {
            let text = "the configuration is in a Secret, so nobody here can tell whether it has a master key";
            Condition::unknown(OPEN, Reason::ProxyOpen, text)
        }
    })
}

/// That others than its Agents may reach it, though the platform has it otherwise.
fn restricted(subject: &Subject<'_>, verdict: &Verdict<'_>, look: &Look) -> Option<Condition> {
    look.others.iter().find(|(kind, _)| *kind == Kind::NetworkPolicy)?;
    let at = subject.others.iter().position(|other| other.kind == Kind::NetworkPolicy)?;
    let foreign = matches!(verdict.claims.others.get(at), Some(Claim::Foreign));
    foreign.then(|| {
        let name = &subject.others[at].key.name;
        let text = format!(
            "NetworkPolicy {name} is not this object's and is left alone, so whoever it lets in may reach this ModelAPI: delete or rename it"
        );
        Condition::new(RESTRICTED, false, Reason::NameConflict, text)
    })
}

fn spelling(look: &Look) -> Option<Condition> {
    let conflicts = &look.conflicts;
    (!conflicts.is_empty()).then(|| Condition::new(SPELLING, true, Reason::FieldInvalid, printed(conflicts)))
}

fn ignored(look: &Look) -> Option<Condition> {
    let one = |ignored: &crate::workloads::kaos::variables::Ignored| {
        format!("variable {} is {}'s", ignored.name, ignored.instead)
    };
    let all: Vec<_> = look.ignored.iter().map(one).collect();
    let text = || format!("what it says of these is not used, because they wire it: {}", all.join("; "));
    (!all.is_empty()).then(|| Condition::new(IGNORED, true, Reason::ValueShadowed, text()))
}

fn fields(subject: &Subject<'_>, verdict: &Verdict<'_>, (look, judged): (&Look, &Judged)) -> Map<String, Value> {
    let before = &*subject.seen.status;
    let mut status = Map::new();
    let mut put = |key: &str, value: Value| {
        status.insert(key.to_owned(), value);
    };
    put("observedGeneration", subject.seen.generation.into());
    put("phase", judged.phase.into());
    put("ready", (judged.ready.phase == Phase::Ready).into());
    put("message", judged.message.clone().into());
    if let Some(endpoint) = &look.endpoint {
        put("endpoint", endpoint.clone().into());
    }
    if let Some((name, url)) = &look.model_api {
        put("linkedResources", json!({"modelapi": name, "modelapiEndpoint": url}));
    }
    // Other controllers' words. What nobody keeps up to date any more is taken away.
    let discovers = look.role == Role::McpServer && subject.cx.facts.platform.kaos().tool_discovery;
    let tools = [STATUS_TOOLS, STATUS_DISCOVERY].into_iter().filter(|_| discovers);
    for key in std::iter::once("references").chain(tools) {
        if let Some(said) = before.get(key) {
            put(key, said.clone());
        }
    }
    if let Some(field) = verdict.wanted.and_then(|wanted| takeover::field(subject, wanted)) {
        put(STATUS_TAKEOVER, field);
    }
    if let Some((rollout, own)) = deployment(subject, verdict) {
        let mut copy = Map::new();
        for (key, count) in [
            ("replicas", rollout.existing),
            ("readyReplicas", own.ready),
            ("availableReplicas", rollout.available),
            ("updatedReplicas", rollout.updated),
        ] {
            if count > 0 {
                copy.insert(key.to_owned(), count.into());
            }
        }
        if let Some(conditions) =
            own.conditions.as_ref().filter(|all| all.as_array().is_some_and(|all| !all.is_empty()))
        {
            copy.insert("conditions".to_owned(), Value::clone(conditions));
        }
        put("deployment", Value::Object(copy));
        if look.role == Role::Agent {
            put("observedReplicas", rollout.existing.into());
        }
    }
    if look.role == Role::Agent {
        let labels = look.role.labels(&subject.cx.key.name);
        let selector = labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
        put("selector", selector.into());
    }
    status
}
