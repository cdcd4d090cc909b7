//! The status of one AgentRuntime: what was found, in conditions and codes; pure.
//!
//! In: the AgentRuntime as stored, and everything that was found about its target. Out: the status to be stored, and
//! what people are told about it. Promises: equal findings give an equal status, so steady state writes nothing; an
//! Event only when a judgement or its reason changes; conditions of others stay; what is written is no more than is kept when it is read back.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::judge::{Judgement, Step};
use super::pods::Tally;
use super::protected::PROTECTED;
use super::verdict;
use crate::api::agent_kagenti_dev::agent_card::is_within;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::plan::{Op, Report};
use crate::domain::printable::cut;
use crate::domain::reason::Reason;
use crate::store::kinds::agent_runtime::LARGEST_STATUS;
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
/// Bytes of a status that is written as it is: times come to it when it is written.
const LARGEST: usize = LARGEST_STATUS - 1024;
/// Bytes of a message of one that would be larger.
const SHORT: usize = 256;
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
    let status = bounded(Value::Object(status));
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

/// The status as it is kept when it is read back: of a larger one nothing would be known, and all of it would be written again at each look. Ours
/// is larger only where its texts are written out at several times their length.
fn bounded(mut status: Value) -> Value {
    if is_within(&status, LARGEST) {
        return status;
    }
    if let Some(effective) = status.get_mut("effective").and_then(Value::as_object_mut) {
        effective.remove("values");
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let is_ours = |one: &Value| one["type"].as_str().is_some_and(|type_| OURS.contains(&type_));
    for condition in conditions.into_iter().flatten().filter(|one| is_ours(one)) {
        if let Some(Value::String(message)) = condition.get_mut("message") {
            *message = cut(std::mem::take(message), SHORT);
        }
    }
    status
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of texts that are written out at six times their length, too; and of an ordinary one nothing is taken.
    #[test]
    fn the_largest_status_that_we_write_is_kept_when_it_is_read_back() {
        let largest = |letter: &str, theirs: usize| {
            let condition = |type_: &&str| {
                json!({"type": type_, "status": "False", "reason": "r".repeat(60), "message": letter.repeat(2048),
                    "lastTransitionTime": Value::Null, "observedGeneration": i64::MAX})
            };
            let mut conditions: Vec<_> = OURS.iter().map(condition).collect();
            conditions.push(json!({"type": "Theirs", "message": "t".repeat(theirs)}));
            let name = "n".repeat(253);
            json!({
                "observedGeneration": i64::MAX, "phase": "Pending", "configuredPods": i64::MAX, "runningPods": i64::MAX,
                "conditions": conditions, "configHash": "h".repeat(64),
                "effective": {"mode": "proxy-sidecar", "spiffeID": "s".repeat(800), "values": ["v".repeat(6 * 1024)]},
                "appliedTarget": {"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "StatefulSet", "name": name, "uid": "u".repeat(36)},
                "card": {"name": name, "verified": false, "reason": "r".repeat(60)},
            })
        };
        let plain = largest("m", 1000);
        assert_eq!(bounded(plain.clone()), plain, "as it is");
        let escaped = bounded(largest("\u{1}", 1000));
        assert!(is_within(&escaped, LARGEST), "{}", escaped.to_string().len());
        assert_eq!(bounded(escaped.clone()), escaped);
        assert_eq!(escaped["conditions"][OURS.len()]["message"], "t".repeat(1000), "what is somebody else's stays");
    }
}
