//! The status of one Agent (`spec/agent-and-agentbuild.md` 3.2, 4.8).
//!
//! In: the Agent as stored, and everything that was found. Out: the status to be stored, and what people are told.
//! Promises: equal findings give an equal status, so steady state writes nothing; an Event only when a judgement or its
//! reason changes; conditions of others stay.

use serde_json::{Map, Value, json};

use super::claim::{Claim, Claims};
use super::image::Image;
use super::plan::{Stop, report};
use super::subject::Subject;
use super::wanted::Wanted;
use crate::build::fault::{Findings, printed};
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::plan::{NOW, Op};
use crate::domain::reason::Reason;
use crate::store::{AgentDeploymentSeen, Kind, Rollout};

const IMAGE: &str = "ImageReady";
const AVAILABLE: &str = "DeploymentAvailable";
const SCHEDULED: &str = "PodsScheduled";
const RELAXED: &str = "LockdownRelaxed";
const READY: &str = "Ready";
const RECONCILING: &str = "Reconciling";
const STALLED: &str = "Stalled";
/// The condition types that are ours.
const OURS: [&str; 7] = [READY, IMAGE, AVAILABLE, SCHEDULED, RELAXED, RECONCILING, STALLED];

/// Everything that was found about one Agent.
pub(super) struct Verdict<'a> {
    pub(super) image: &'a Image,
    pub(super) findings: &'a Findings,
    pub(super) claims: &'a Claims<'a>,
    /// Why nothing more is written.
    pub(super) stop: Option<Stop>,
    /// What is wanted, where that is known.
    pub(super) wanted: Option<&'a Wanted>,
}

/// How far an Agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Pending,
    Deploying,
    Ready,
    Failed,
}

/// Whether an Agent is ready, and why.
struct Ready {
    phase: Phase,
    reason: Reason,
    message: String,
}

impl Ready {
    fn new(phase: Phase, reason: Reason, message: impl Into<String>) -> Self {
        Self { phase, reason, message: message.into() }
    }
}

/// The operations that bring the status up to date: none when it is.
pub(super) fn update(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Vec<Op> {
    let before = &*subject.seen.status;
    let list = before.get("conditions").unwrap_or(&Value::Null);
    let ready = ready(subject, verdict);
    let wanted = conditions_of(subject, verdict, &ready);
    let mut status = fields(subject, verdict, &ready);
    status.insert("conditions".to_owned(), conditions::merged(list, &wanted, &OURS, &[], subject.seen.generation));
    let status = Value::Object(status);
    let Some(patch) = conditions::difference(before, &status) else { return Vec::new() };
    let news = wanted.iter().filter(|one| conditions::is_news(list, one));
    let mut ops: Vec<Op> = news.filter_map(|one| told(subject, verdict, one)).collect();
    let metadata = json!({"uid": subject.uid, "resourceVersion": subject.version.to_string()});
    let patch = json!({"metadata": metadata, "status": patch});
    ops.push(Op::Status { kind: Kind::Agent, key: subject.cx.key.clone(), patch });
    ops
}

/// The Event about a judgement that is new.
fn told(subject: &Subject<'_>, verdict: &Verdict<'_>, one: &Condition) -> Option<Op> {
    let (reason, message) = match (one.type_, one.reason) {
        (IMAGE, Reason::ImageAvailable) => {
            (Reason::ImageResolved, verdict.image.build.as_ref().map(|_| one.message.clone())?)
        }
        (IMAGE, why) => (Reason::WaitingForBuild, format!("{}: {}", why.code(), one.message)),
        (
            READY,
            why @ (Reason::NameConflict | Reason::InvalidSpec | Reason::NotPermitted | Reason::SecretNotUsable),
        ) => (why, one.message.clone()),
        (READY, why @ (Reason::ReplicaFailure | Reason::ProgressDeadlineExceeded | Reason::DeploymentFailed)) => {
            (Reason::DeploymentFailed, format!("{}: {}", why.code(), one.message))
        }
        _ => return None,
    };
    Some(report(subject, reason, message))
}

/// The Deployment that is the Agent's own.
fn deployment<'a>(subject: &Subject<'a>, verdict: &Verdict<'_>) -> Option<(Rollout, &'a AgentDeploymentSeen)> {
    let found = subject.deployment.filter(|_| matches!(verdict.claims.deployment, Claim::Ours(_)))?;
    Some((found.seen.rollout, found.seen.agent.as_deref()?))
}

fn ready(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Ready {
    if !verdict.findings.faults.is_empty() {
        return Ready::new(Phase::Failed, Reason::InvalidSpec, printed(&verdict.findings.faults));
    }
    let deployment = deployment(subject, verdict);
    if let Some(stop) = &verdict.stop {
        let phase = match (stop.stalled, deployment) {
            (true, _) => Phase::Failed,
            (false, Some(_)) => Phase::Deploying,
            (false, None) => Phase::Pending,
        };
        return Ready::new(phase, stop.reason, stop.message.clone());
    }
    match deployment {
        Some((rollout, own)) => rolled(subject, rollout, own),
        None if verdict.image.runs.is_some() => {
            Ready::new(Phase::Deploying, Reason::DeploymentNotReady, "the Deployment is about to be made")
        }
        None => Ready::new(Phase::Pending, Reason::ImageNotReady, verdict.image.message.clone()),
    }
}

/// Whether the rollout of the Deployment is over, and how.
fn rolled(subject: &Subject<'_>, rollout: Rollout, own: &AgentDeploymentSeen) -> Ready {
    let name = &subject.cx.key.name;
    let counts = counts(rollout, own);
    let current = rollout.observed >= rollout.generation;
    let all = [rollout.updated, own.ready, rollout.existing].iter().all(|count| *count == rollout.wanted);
    match () {
        () if current && rollout.deadline_exceeded => Ready::new(
            Phase::Failed,
            Reason::ProgressDeadlineExceeded,
            format!(
                "{counts}. New Pods did not become available in time; look at them: kubectl -n {} describe pods -l {}={name}",
                subject.cx.key.namespace,
                crate::domain::keys::LABEL_APP_NAME
            ),
        ),
        () if current && own.failure.is_some() => {
            let why = own.failure.as_deref().unwrap_or_default();
            Ready::new(Phase::Failed, Reason::ReplicaFailure, format!("{counts}. Pods are refused: {why}"))
        }
        () if current && rollout.wanted == 0 => Ready::new(Phase::Ready, Reason::ScaledToZero, "no Pods are wanted"),
        () if current && all => Ready::new(Phase::Ready, Reason::DeploymentReady, counts),
        () => Ready::new(Phase::Deploying, Reason::DeploymentNotReady, counts),
    }
}

/// Replicas in words (`spec/agent-and-agentbuild.md` 3.2).
fn counts(rollout: Rollout, own: &AgentDeploymentSeen) -> String {
    format!(
        "Replicas: {}/{} ready, {} updated, {} available",
        own.ready, rollout.wanted, rollout.updated, rollout.available
    )
}

fn conditions_of(subject: &Subject<'_>, verdict: &Verdict<'_>, ready: &Ready) -> Vec<Condition> {
    let is_ready = ready.phase == Phase::Ready;
    let mut all = vec![
        Condition::new(READY, is_ready, ready.reason, ready.message.clone()),
        Condition::new(
            IMAGE,
            verdict.image.reason == Reason::ImageAvailable,
            verdict.image.reason,
            verdict.image.message.clone(),
        ),
    ];
    if let Some((rollout, own)) = deployment(subject, verdict) {
        all.extend(of_deployment(rollout, own));
    }
    let relaxed = verdict.findings.notes.iter().filter(|note| note.reason == Reason::LockdownRelaxed);
    let relaxed: Vec<_> = relaxed.map(|note| format!("{}: {}", note.path, note.text)).collect();
    if !relaxed.is_empty() {
        all.push(Condition::new(RELAXED, true, Reason::UserOverride, relaxed.join("; ")));
    }
    match ready.phase {
        Phase::Ready => {}
        Phase::Failed => all.push(Condition::new(STALLED, true, ready.reason, ready.message.clone())),
        Phase::Pending | Phase::Deploying => {
            all.push(Condition::new(RECONCILING, true, ready.reason, ready.message.clone()));
        }
    }
    all
}

fn of_deployment(rollout: Rollout, own: &AgentDeploymentSeen) -> Vec<Condition> {
    let (holds, reason) = match own.is_available {
        Some(true) => (true, Reason::MinimumReplicasAvailable),
        Some(false) => (false, Reason::MinimumReplicasUnavailable),
        None => (true, Reason::DeploymentExists),
    };
    let mut all = vec![Condition::new(AVAILABLE, holds, reason, counts(rollout, own))];
    if own.unavailable > 0 {
        let message = format!("{} of {} Pods are unavailable", own.unavailable, rollout.wanted);
        all.push(Condition::new(SCHEDULED, false, Reason::PodsUnscheduled, message));
    } else if rollout.existing > 0 {
        all.push(Condition::new(SCHEDULED, true, Reason::AllPodsScheduled, "every Pod is available"));
    }
    all
}

fn fields(subject: &Subject<'_>, verdict: &Verdict<'_>, ready: &Ready) -> Map<String, Value> {
    let before = &*subject.seen.status;
    let mut status = Map::new();
    status.insert("observedGeneration".to_owned(), subject.seen.generation.into());
    let deployment = deployment(subject, verdict);
    // The image that was put there; what somebody else has written since is taken back.
    let image = deployment.and_then(|(_, own)| {
        let is_applied =
            verdict.wanted.is_some_and(|wanted| own.applied.as_deref() == Some(&*wanted.deployment.digest));
        let runs = verdict.image.runs.as_deref().filter(|_| is_applied).map(Value::from);
        runs.or_else(|| before.get("image").cloned()).or_else(|| own.image.as_deref().map(Value::from))
    });
    status.extend(image.map(|image| ("image".to_owned(), image)));
    let mut told = Map::new();
    told.insert("phase".to_owned(), phase(ready.phase).into());
    if let Some((rollout, own)) = deployment {
        status.insert("replicas".to_owned(), rollout.existing.into());
        told.insert("deploymentMessage".to_owned(), counts(rollout, own).into());
    }
    let selector = verdict.wanted.map(|wanted| {
        let labels = wanted.selector().into_iter().map(|(key, value)| format!("{key}={value}"));
        Value::from(labels.collect::<Vec<_>>().join(","))
    });
    status.extend(selector.or_else(|| before.get("selector").cloned()).map(|text| ("selector".to_owned(), text)));
    let known = before.get("deploymentStatus");
    let at = |key: &str| known.and_then(|known| known.get(key)).and_then(Value::as_str);
    let completed = match at("completionTime") {
        Some(time) if ready.phase != Phase::Ready || at("phase") == Some(phase(Phase::Ready)) => Some(time),
        _ if ready.phase == Phase::Ready => Some(NOW),
        _ => None,
    };
    told.extend(completed.map(|time| ("completionTime".to_owned(), time.into())));
    status.insert("deploymentStatus".to_owned(), Value::Object(told));
    status
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Deploying => "Deploying",
        Phase::Ready => "Ready",
        Phase::Failed => "Failed",
    }
}
