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
use crate::controllers::agent::plan::{in_the_way, is_route};
use crate::controllers::agent::status::{
    Phase, READY, RECONCILING, Ready, STALLED, Verdict, deployment, progress, written,
};
use crate::controllers::agent::subject::Subject;
use crate::controllers::agent::wanted::Standing;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::references::{References, references};
use crate::controllers::scaffold::plan::Op;
use crate::domain::printable::cut;
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
/// It refers to more Secrets and ConfigMaps than are followed.
const UNFOLLOWED: &str = "ReferencesUnfollowed";
/// Bytes of `message`: those of a condition's. Who names an object that lists much would have its list written into each status otherwise.
const MESSAGE: usize = 2048;
/// What is said of an object of which nothing is read; every other judgement stays as it was.
const OVER: [&str; 3] = [READY, RECONCILING, STALLED];
/// The fields that stay as they were then, since they say what is written on it.
const STAY: [&str; 3] = ["endpoint", "linkedResources", STATUS_TAKEOVER];
/// The condition types that are ours, [`DEPENDENCIES`] the last.
const OURS: [&str; 11] =
    [READY, ROUTE, OPEN, RESTRICTED, SPELLING, IGNORED, UNFOLLOWED, TAKEOVER, RECONCILING, STALLED, DEPENDENCIES];

/// The operations that bring the status up to date: none when it is.
pub(super) fn update(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Vec<Op> {
    let Some(look) = &subject.look else { return Vec::new() };
    let judged = judged(subject, verdict, look);
    let mut wanted =
        vec![Condition::new(READY, judged.ready.phase == Phase::Ready, judged.ready.reason, judged.told())];
    if subject.seen.over.is_some() {
        wanted.extend(judged.progress(None));
        return written(subject, verdict, (fields(subject, verdict, (look, &judged)), &wanted, &OVER));
    }
    wanted.extend(dependencies(look));
    wanted.extend(route(subject, verdict, look));
    wanted.extend(open(look));
    wanted.extend(restricted(subject, verdict, look));
    wanted.extend(spelling(look));
    wanted.extend(ignored(look));
    wanted.extend(unfollowed(subject));
    wanted.extend(verdict.wanted.and_then(|wanted| takeover::condition(subject, wanted)));
    wanted.extend(judged.progress(waits(subject, verdict)));
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

    /// How it goes on; `turn`: that a rollout of it waits.
    fn progress(&self, turn: Option<Condition>) -> Vec<Condition> {
        let of_pods = match &self.trouble {
            Some((reason, text, true)) => Some(Condition::new(STALLED, true, *reason, text.clone())),
            Some((reason, text, false)) => Some(Condition::new(RECONCILING, true, *reason, text.clone())),
            None if self.rolls => {
                let text = "not every Pod is of the present template and ready";
                Some(Condition::new(RECONCILING, true, Reason::DeploymentNotReady, text))
            }
            None => progress(&self.ready),
        };
        match (of_pods, turn) {
            // What is to come may be what mends it.
            (Some(of_pods), Some(turn)) if of_pods.type_ == STALLED => vec![of_pods, turn],
            (of_pods, turn) => turn.or(of_pods).into_iter().collect(),
        }
    }
}

/// That its Deployment waits for its turn. The words are the same for as long as it does, whoever rolls or fails meanwhile, and no Event goes
/// with them: a change for all is one write more for each object that waits.
fn waits(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Option<Condition> {
    if !verdict.waits {
        return None;
    }
    // A moment after a start it is not known who rolls: what was said before stays, and nobody says it who may roll at once.
    let list = subject.seen.status.get("conditions").unwrap_or(&Value::Null);
    let reason = conditions::stored(list, RECONCILING).and_then(|one| one.get("reason")?.as_str());
    if !subject.cx.memory.surveyed && reason != Some(Reason::RolloutPending.code()) {
        return None;
    }
    let text = format!(
        "Deployment {} waits for its turn: a change that concerns many objects rolls five of them at a time, or a tenth, and no more once two did \
         not become ready in time. Look at those: drawbridge status -A. A change of this object itself does not wait",
        subject.made.name
    );
    Some(Condition::new(RECONCILING, true, Reason::RolloutPending, text))
}

/// Of an object of which nothing is read: what runs is as ready as it is, and why nothing follows the object is said beside it.
fn over(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Judged {
    let text = printed(&verdict.findings.faults);
    let Some((rollout, own)) = deployment(subject, verdict) else {
        return Judged::plain("Failed", Phase::Failed, Reason::InvalidSpec, text);
    };
    let mut judged = Judged { trouble: Some((Reason::InvalidSpec, text, true)), ..rolled(rollout, own) };
    judged.message = judged.told();
    judged
}

fn judged(subject: &Subject<'_>, verdict: &Verdict<'_>, look: &Look) -> Judged {
    if subject.seen.over.is_some() {
        return over(subject, verdict);
    }
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
        (None, _) if verdict.claims.deployment == Claim::Leaving => {
            let text = format!(
                "Deployment {} of before is being deleted, and another one is made once it is gone. If it stays: kubectl -n {} get deployment {} -o yaml \
                 shows its finalizers",
                subject.made.name, subject.made.namespace, subject.made.name
            );
            Judged::plain("Pending", Phase::Pending, Reason::DeploymentNotReady, text)
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
    let trouble = subject.trouble().filter(|trouble| is_route(&trouble.op) && !stands(subject, verdict, at));
    match (verdict.claims.others.get(at), trouble) {
        (Some(Claim::Foreign), _) => {
            let text = format!("HTTPRoute {name} is not this object's and is left alone: delete or rename it");
            return Some(Condition::new(ROUTE, false, Reason::NameConflict, text));
        }
        (_, Some(trouble)) => {
            if let Some(stop) = in_the_way(subject, trouble) {
                return Some(Condition::new(ROUTE, false, stop.reason, stop.message));
            }
            let text = format!("HTTPRoute {name} cannot be written and is tried again: {}", trouble.message);
            return Some(Condition::new(ROUTE, false, Reason::RouteRefused, text));
        }
        (Some(Claim::Ours(_)), None) => {}
        (_, None) => return unknown(Reason::RoutePending, &format!("HTTPRoute {name} is about to be made")),
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

/// Whether one of the other objects is there as it is wanted.
fn stands(subject: &Subject<'_>, verdict: &Verdict<'_>, at: usize) -> bool {
    let other = &subject.others[at];
    let Some((seen, _)) = other.found else { return false };
    let own = verdict.wanted.and_then(|wanted| wanted.others.iter().find(|own| own.kind == other.kind));
    own.is_none_or(|own| own.standing((seen.applied.as_deref(), seen.fields.as_deref())) == Standing::Stands)
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
    if look.leaves == Some(Kind::NetworkPolicy) {
        let text = format!(
            "NetworkPolicy {} stays as it is, so Agents that name this ModelAPI since are not let in: of an Agent of this namespace nothing is read, \
             and it may be one of those that are. Its status says why",
            subject.made.name
        );
        return Some(Condition::new(RESTRICTED, true, Reason::FieldInvalid, text));
    }
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

fn unfollowed(subject: &Subject<'_>) -> Option<Condition> {
    if !subject.cx.facts.platform.kaos().roll_on_secret_change {
        return None;
    }
    let References { asked, left, .. } = references(&subject.seen.spec, &subject.cx.key.namespace);
    let first = left.first()?;
    let text = format!(
        "{} {} and {} more of what its environment refers to are not followed: it is {} objects at most, by kind and name. Refer to fewer, or make its \
         Pods anew yourself once one of these has changed",
        first.kind.as_str(),
        cut(first.name.to_string(), 253),
        left.len() - 1,
        asked.len(),
    );
    Some(Condition::new(UNFOLLOWED, true, Reason::FieldInvalid, text))
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
    put("message", cut(judged.message.clone(), MESSAGE).into());
    // What cannot be made anew leaves what was made, and where it is reached.
    let unmade = look.failed.is_some() || !look.findings.faults.is_empty();
    let stands = unmade && matches!(verdict.claims.service, Claim::Ours(_));
    let stood = || before.get("endpoint").cloned().filter(|_| stands);
    if let Some(endpoint) = look.endpoint.clone().map(Value::from).or_else(stood) {
        put("endpoint", endpoint);
    }
    if let Some((name, url)) = &look.model_api {
        put("linkedResources", json!({"modelapi": name, "modelapiEndpoint": url}));
    }
    for key in STAY.into_iter().filter(|_| subject.seen.over.is_some()) {
        if let Some(said) = before.get(key) {
            put(key, said.clone());
        }
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
