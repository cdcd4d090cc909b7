//! The status of one AgentRuntime: what was found, in conditions and codes; pure.
//!
//! In: the AgentRuntime as stored, and everything that was found about its target. Out: the status to be stored, and
//! what people are told about it. Promises: equal findings give an equal status, so steady state writes nothing; an
//! Event only when a judgement or its reason changes; conditions of others stay.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::judge::{Judgement, Step};
use super::pods::Tally;
use super::protected::PROTECTED;
use super::verdict;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::plan::{Op, Report};
use crate::domain::reason::Reason;
use crate::store::objects::{RuntimeRef, WorkloadRef};
use crate::store::{Key, Kind, WorkloadSeen};

/// The condition types that are ours.
const OURS: [&str; 8] = [
    "TargetResolved",
    "ConfigResolved",
    "Ready",
    PROTECTED,
    "RolloutProgressing",
    "PodsCurrent",
    "Reconciling",
    "Stalled",
];
/// Those that stay while nothing can be said about them, as long as there is a workload of its own to say it about.
const KEPT: [&str; 1] = ["PodsCurrent"];
/// The members that count Pods.
const COUNTS: [&str; 2] = ["configuredPods", "runningPods"];
/// Those whose changes people are told.
const TOLD: [&str; 3] = ["Ready", "PodsCurrent", "ConfigResolved"];

/// What was found about one AgentRuntime.
pub(super) enum Findings<'a> {
    /// What it points at cannot be enrolled.
    Unresolved {
        /// `TargetNotFound`, `UnsupportedTarget`, `TargetKindAbsent` or `InvalidSpec`.
        reason: Reason,
        /// The facts.
        message: String,
    },
    /// Another one governs the workload.
    Duplicate {
        /// Which.
        winner: &'a str,
        /// What both point at.
        target: (Kind, &'a str),
    },
    /// It is being deleted, and its enrolment cannot be taken away.
    HeldUp {
        /// Why.
        reason: Reason,
        /// The server's words.
        message: &'a str,
        /// What it points at.
        target: (Kind, &'a str),
    },
    /// It governs the workload.
    Governs(Box<Governs<'a>>),
}

/// What was found about the workload that an AgentRuntime governs.
pub(super) struct Governs<'a> {
    /// Its namespace.
    pub(super) namespace: &'a str,
    /// The workload.
    pub(super) workload: WorkloadRef<'a>,
    /// What is to be done about it.
    pub(super) judgement: &'a Judgement,
    /// Why nothing is injected into its Pods, when that is so.
    pub(super) nothing: Option<Reason>,
    /// Its Pods, once it is known what they should carry.
    pub(super) tally: Option<Tally<'a>>,
    /// A write failed so often that it is worth saying.
    pub(super) trouble: Option<String>,
    /// What could not be read of the configuration.
    pub(super) notices: Vec<String>,
    /// Why a layer of the configuration is not read, when that is so: its last good content is in force.
    pub(super) unread: Option<Reason>,
    /// `status.effective`.
    pub(super) effective: Value,
    /// `status.card`.
    pub(super) card: Option<Value>,
    /// A Sandbox was restarted, and its new Pod is no better.
    pub(super) in_vain: bool,
    /// It has been replacing its Pods for long, and keeps others waiting.
    pub(super) is_slow: bool,
}

/// The operations that bring the status up to date: none when it is.
pub(super) fn update(namespace: &str, runtime: &RuntimeRef<'_>, findings: &Findings<'_>) -> Vec<Op> {
    let before = runtime.seen.status.value();
    let wanted = conditions_of(findings);
    let list = before.get("conditions").unwrap_or(&Value::Null);
    let mut status = fields((runtime, &before), findings, &wanted);
    let kept: &[&str] = if matches!(findings, Findings::Governs(_)) { &KEPT } else { &[] };
    let merged = conditions::merged(list, &wanted, &OURS, kept, runtime.seen.generation);
    status.insert("conditions".to_owned(), merged);
    let status = Value::Object(status);
    let Some(patch) = conditions::difference(&before, &status) else { return Vec::new() };
    let key = Key::new(namespace, runtime.name);
    let news = wanted.iter().filter(|one| TOLD.contains(&one.type_) && conditions::is_news(list, one));
    // What holds from the beginning is no news, but readiness and what could not be read.
    let news = news.filter(|one| match one.type_ {
        "Ready" => true,
        "ConfigResolved" => !one.holds || one.reason == Reason::ConfigWarning,
        type_ => !one.holds || conditions::stored(list, type_).is_some(),
    });
    let told = news.map(|one| {
        Op::Report(Report {
            kind: Kind::AgentRuntime,
            about: key.clone(),
            uid: runtime.uid.to_owned(),
            reason: one.reason,
            message: one.message.clone(),
            since: since(list, one.type_),
        })
    });
    let mut ops: Vec<Op> = told.collect();
    let metadata = json!({"uid": runtime.uid, "resourceVersion": runtime.version.to_string()});
    let patch = json!({"metadata": metadata, "status": patch});
    ops.push(Op::Status { kind: Kind::AgentRuntime, key, patch });
    ops
}

/// Whether an AgentRuntime's status says, about what it asks for now and what its workload carries now, that no Pod is being
/// replaced, for that reason.
pub(super) fn says_over(runtime: &RuntimeRef<'_>, workload: &WorkloadSeen, reason: Reason) -> bool {
    let status = runtime.seen.status.value();
    let done = conditions::stored(status.get("conditions").unwrap_or(&Value::Null), "RolloutProgressing");
    let done = done.is_some_and(|one| one["status"] == "False" && one["reason"] == reason.code());
    done && status["observedGeneration"] == runtime.seen.generation
        && status["configHash"].as_str() == Fields::standing(workload).hash()
}

/// Whether a patch changes nothing but how many Pods there are.
pub(super) fn is_counts(patch: &Value) -> bool {
    let status = patch["status"].as_object();
    status.is_some_and(|status| status.keys().all(|key| COUNTS.contains(&key.as_str())))
}

/// Since when the stored judgement of a type holds.
fn since(list: &Value, type_: &str) -> String {
    let stored = conditions::stored(list, type_).and_then(|one| one.get("lastTransitionTime"));
    stored.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a status says besides its conditions; `before` is the stored one.
fn fields(
    (runtime, before): (&RuntimeRef<'_>, &Value),
    findings: &Findings<'_>,
    wanted: &[Condition],
) -> Map<String, Value> {
    let mut status = Map::new();
    status.insert("observedGeneration".to_owned(), runtime.seen.generation.into());
    status.insert("phase".to_owned(), phase(findings, wanted).into());
    let mut applied = before.get("appliedTarget").cloned();
    if let Findings::Governs(found) = findings {
        let configured = found.tally.as_ref().map_or(0, |tally| tally.configured);
        if configured > 0 {
            status.insert("configuredPods".to_owned(), configured.into());
        }
        let running = found.tally.as_ref().map_or(0, |tally| tally.live);
        if running > 0 {
            status.insert("runningPods".to_owned(), running.into());
        }
        if found.judgement.standing.is_enrolment() {
            status.extend(found.judgement.standing.hash().map(|hash| ("configHash".to_owned(), hash.into())));
            applied = Some(applied_target(&found.workload));
        }
        if found.effective.as_object().is_some_and(|effective| !effective.is_empty()) {
            status.insert("effective".to_owned(), found.effective.clone());
        }
        status.extend(found.card.clone().map(|card| ("card".to_owned(), card)));
    }
    status.extend(applied.map(|applied| ("appliedTarget".to_owned(), applied)));
    status
}

fn applied_target(workload: &WorkloadRef<'_>) -> Value {
    json!({
        "apiVersion": workload.kind.api_version(),
        "kind": workload.kind.as_str(),
        "name": &**workload.name,
        "uid": workload.uid,
    })
}

/// One word for older readers.
fn phase(findings: &Findings<'_>, wanted: &[Condition]) -> &'static str {
    let ready = wanted.iter().any(|one| one.type_ == "Ready" && one.holds);
    let waits = matches!(findings, Findings::Governs(found) if matches!(found.judgement.step, Step::Wait(_)));
    let enrolled = matches!(findings, Findings::Governs(found) if found.judgement.standing.is_enrolment());
    match () {
        () if ready => "Active",
        () if waits && enrolled => "Active",
        () if waits => "Pending",
        () => "Error",
    }
}

fn conditions_of(findings: &Findings<'_>) -> Vec<Condition> {
    match findings {
        Findings::Unresolved { reason, message } => {
            let stuck = *reason != Reason::TargetNotFound;
            let all = ["TargetResolved", "Ready", PROTECTED].into_iter().chain(stuck.then_some("Stalled"));
            all.map(|type_| Condition::new(type_, type_ == "Stalled", *reason, message.clone())).collect()
        }
        Findings::Duplicate { winner, target: (kind, name) } => {
            let message = format!(
                "{} {name} is governed by AgentRuntime {winner}, which is older; nothing is written for this one. Delete one of \
                 the two, or change spec.targetRef",
                kind.as_str(),
            );
            let reason = Reason::DuplicateTarget;
            vec![
                found(*kind, name),
                Condition::new("Ready", false, reason, message.clone()),
                Condition::new(PROTECTED, false, reason, message.clone()),
                Condition::new("Stalled", true, reason, message),
            ]
        }
        Findings::HeldUp { reason, message, target: (kind, name) } => {
            let message = format!(
                "its deletion waits until what it wrote on {} {name} is taken off, and the API server refuses that: {message}",
                kind.as_str(),
            );
            vec![
                found(*kind, name),
                Condition::new("Ready", false, *reason, message.clone()),
                Condition::new(PROTECTED, false, *reason, message.clone()),
                Condition::new("Stalled", true, *reason, message),
            ]
        }
        Findings::Governs(found) => verdict::governs(found),
    }
}

pub(super) fn found(kind: Kind, name: &str) -> Condition {
    Condition::new("TargetResolved", true, Reason::TargetFound, format!("{} {name} resolved", kind.as_str()))
}
