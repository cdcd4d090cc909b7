//! The status of one Agent.
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
use crate::api::findings::{Findings, printed};
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::plan::{NOW, Op};
use crate::domain::reason::Reason;
use crate::store::{AgentDeploymentSeen, Rollout};

const IMAGE: &str = "ImageReady";
const AVAILABLE: &str = "DeploymentAvailable";
const SCHEDULED: &str = "PodsScheduled";
pub(in crate::controllers::agent) const RELAXED: &str = "LockdownRelaxed";
pub(in crate::controllers::agent) const READY: &str = "Ready";
pub(in crate::controllers::agent) const RECONCILING: &str = "Reconciling";
pub(in crate::controllers::agent) const STALLED: &str = "Stalled";
/// The condition types that are ours.
const OURS: [&str; 7] = [READY, IMAGE, AVAILABLE, SCHEDULED, RELAXED, RECONCILING, STALLED];

/// Everything that was found about one Agent.
pub(in crate::controllers::agent) struct Verdict<'a> {
    pub(in crate::controllers::agent) image: &'a Image,
    pub(in crate::controllers::agent) findings: &'a Findings,
    pub(in crate::controllers::agent) claims: &'a Claims<'a>,
    /// Why nothing more is written.
    pub(in crate::controllers::agent) stop: Option<Stop>,
    /// What is wanted, where that is known.
    pub(in crate::controllers::agent) wanted: Option<&'a Wanted>,
    /// Its Deployment is to be another, and waits until one of those that roll is done.
    pub(in crate::controllers::agent) waits: bool,
}

/// How far an Agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controllers::agent) enum Phase {
    Pending,
    Deploying,
    Ready,
    Failed,
}

/// Whether an Agent is ready, and why.
pub(in crate::controllers::agent) struct Ready {
    pub(in crate::controllers::agent) phase: Phase,
    pub(in crate::controllers::agent) reason: Reason,
    pub(in crate::controllers::agent) message: String,
}

impl Ready {
    fn new(phase: Phase, reason: Reason, message: impl Into<String>) -> Self {
        Self { phase, reason, message: message.into() }
    }
}

/// The operations that bring the status up to date: none when it is.
pub(in crate::controllers::agent) fn update(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Vec<Op> {
    let ready = ready(subject, verdict);
    let wanted = conditions_of(subject, verdict, &ready);
    written(subject, verdict, (fields(subject, verdict, &ready), &wanted, &OURS))
}

/// The operations that store these fields and conditions, of which `ours` are the types that are nobody else's.
pub(in crate::controllers::agent) fn written(
    subject: &Subject<'_>,
    verdict: &Verdict<'_>,
    (mut status, wanted, ours): (Map<String, Value>, &[Condition], &[&str]),
) -> Vec<Op> {
    let before = &*subject.seen.status;
    let list = before.get("conditions").unwrap_or(&Value::Null);
    status.insert("conditions".to_owned(), conditions::merged(list, wanted, ours, &[], subject.seen.generation));
    let status = Value::Object(status);
    let Some(patch) = conditions::difference(before, &status) else { return Vec::new() };
    let news = wanted.iter().filter(|one| conditions::is_news(list, one));
    let mut ops: Vec<Op> = news.filter_map(|one| told(subject, verdict, one)).collect();
    let metadata = json!({"uid": subject.uid, "resourceVersion": subject.version.to_string()});
    let patch = json!({"metadata": metadata, "status": patch});
    ops.push(Op::Status { kind: subject.face.kind, key: subject.cx.key.clone(), patch });
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
            why @ (Reason::NameConflict
            | Reason::InvalidSpec
            | Reason::ModelNotOffered
            | Reason::NotPermitted
            | Reason::SecretNotUsable),
        )
        | (_, why @ Reason::ValueShadowed) => (why, one.message.clone()),
        (READY, why @ (Reason::ReplicaFailure | Reason::ProgressDeadlineExceeded | Reason::DeploymentFailed)) => {
            (Reason::DeploymentFailed, format!("{}: {}", why.code(), one.message))
        }
        _ => return None,
    };
    Some(report(subject, reason, message))
}

/// The Deployment that is the Agent's own.
pub(in crate::controllers::agent) fn deployment<'a>(
    subject: &Subject<'a>,
    verdict: &Verdict<'_>,
) -> Option<(Rollout, &'a AgentDeploymentSeen)> {
    let found = subject.deployment.filter(|_| matches!(verdict.claims.deployment, Claim::Ours(_)))?;
    Some((found.seen.rollout, found.seen.agent.as_deref()?))
}

/// Whether an Agent is ready.
pub(in crate::controllers::agent) fn ready(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Ready {
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
    let counts = counts(rollout, own);
    let current = rollout.observed >= rollout.generation;
    let all = [rollout.updated, own.ready, rollout.existing].iter().all(|count| *count == rollout.wanted);
    match () {
        () if current && rollout.deadline_exceeded => Ready::new(
            Phase::Failed,
            Reason::ProgressDeadlineExceeded,
            format!(
                "{counts}. New Pods did not become available in time; look at them: kubectl -n {} describe pods -l {}",
                subject.cx.key.namespace,
                own.selector.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","),
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

/// Replicas in words.
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
    all.extend(relaxed(verdict));
    all.extend(progress(ready));
    all
}

/// What the lock-down leaves out because the Agent says so.
pub(in crate::controllers::agent) fn relaxed(verdict: &Verdict<'_>) -> Option<Condition> {
    let relaxed = verdict.findings.notes.iter().filter(|note| note.reason == Reason::LockdownRelaxed);
    let relaxed: Vec<_> = relaxed.map(|note| format!("{}: {}", note.path, note.text)).collect();
    (!relaxed.is_empty()).then(|| Condition::new(RELAXED, true, Reason::UserOverride, relaxed.join("; ")))
}

/// Whether an Agent that is not ready becomes so by itself, as tools read it.
pub(in crate::controllers::agent) fn progress(ready: &Ready) -> Option<Condition> {
    let type_ = match ready.phase {
        Phase::Ready => return None,
        Phase::Failed => STALLED,
        Phase::Pending | Phase::Deploying => RECONCILING,
    };
    Some(Condition::new(type_, true, ready.reason, ready.message.clone()))
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

/// The image that was put into the Deployment; what somebody else has written since is taken back.
pub(in crate::controllers::agent) fn image(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Option<Value> {
    let (_, own) = deployment(subject, verdict)?;
    let is_applied = verdict.wanted.is_some_and(|wanted| own.applied.as_deref() == Some(&*wanted.deployment.digest));
    let runs = verdict.image.runs.as_deref().filter(|_| is_applied).map(Value::from);
    let before = || subject.seen.status.get("image").cloned();
    runs.or_else(before).or_else(|| own.image.as_deref().map(Value::from))
}

fn fields(subject: &Subject<'_>, verdict: &Verdict<'_>, ready: &Ready) -> Map<String, Value> {
    let before = &*subject.seen.status;
    let mut status = Map::new();
    status.insert("observedGeneration".to_owned(), subject.seen.generation.into());
    let deployment = deployment(subject, verdict);
    status.extend(image(subject, verdict).map(|image| ("image".to_owned(), image)));
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
