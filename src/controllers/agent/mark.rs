//! The mark by which the API server's policies know that a namespace holds an object of a kind: on which it is put, and how often.
//!
//! In: an object for which something is to be made. Out: the write that marks it, or how long it waits for that. Promises: nothing is marked
//! where one is that stays, nor where nothing is to be made; what takes the mark off again costs one write after 1 s, then after 2 s, doubling to
//! 5 min, however often it does so, and is said.

use std::time::Duration;

use serde_json::{Value, json};

use super::plan::{Stop, report};
use super::subject::Subject;
use crate::controllers::agent::note::Marked;
use crate::controllers::scaffold::plan::{Op, UNMADE, escaped};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::Kind;

/// The pause after the first mark that was lost.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(300);
/// Marks that were lost in a row before people are told: one is lost to whoever replaces the object by a file, too.
const SAID: u32 = 3;

/// What comes before something is made where policies know of no object of its kind.
pub(super) struct Introduction {
    /// The mark, unless it was put on a moment ago and is lost.
    pub(super) ops: Vec<Op>,
    /// When to look again.
    pub(super) again: Option<Duration>,
    /// What is noted of it.
    pub(super) marked: Marked,
    /// What people are told.
    pub(super) stop: Option<Stop>,
}

/// Whether policies know of an object of its kind in its namespace.
pub(super) fn is_known(subject: &Subject<'_>) -> bool {
    subject.cx.store.has_policy_parameter(subject.face.kind, &subject.cx.key.namespace)
}

/// Whether it makes what a policy refuses where it knows of no object of its kind.
pub(super) fn makes(op: &Op) -> bool {
    let made = |body: &Value| body["metadata"]["resourceVersion"] == UNMADE;
    matches!(op, Op::Own { kind: Kind::Deployment | Kind::Service, body, .. } if made(body))
}

/// Whether the mark was refused a moment ago. The policies of a version from before it refuse it, and let what is made through without it.
pub(super) fn is_refused(subject: &Subject<'_>) -> bool {
    subject.trouble().is_some_and(|trouble| puts_on(&trouble.op))
}

fn puts_on(op: &Op) -> bool {
    let is_in = |labels: &Value| labels.get(keys::LABEL_POLICY_PARAMETER).is_some();
    match op {
        Op::Merge { patch, .. } => patch.pointer("/metadata/labels").is_some_and(is_in),
        Op::Edit { operations, .. } => {
            let mut operations = operations.as_array().into_iter().flatten();
            operations.any(|one| one["path"] == path() || is_in(&one["value"]))
        }
        _ => false,
    }
}

fn path() -> String {
    format!("/metadata/labels/{}", escaped(keys::LABEL_POLICY_PARAMETER))
}

/// That write with the mark in it, where policies know of no object of its kind.
pub(super) fn with_mark(mut first: Op, subject: &Subject<'_>) -> Op {
    let Op::Edit { operations: Value::Array(operations), .. } = &mut first else { return first };
    if is_known(subject) || is_refused(subject) {
        return first;
    }
    if subject.seen.labels.is_empty() {
        // That there are none cannot be tested.
        let version = json!({"op": "test", "path": "/metadata/resourceVersion", "value": subject.version.to_string()});
        if !operations.contains(&version) {
            operations.push(version);
        }
        let labels = json!({keys::LABEL_POLICY_PARAMETER: keys::POLICY_PARAMETER});
        operations.push(json!({"op": "add", "path": "/metadata/labels", "value": labels}));
    } else {
        operations.push(json!({"op": "add", "path": path(), "value": keys::POLICY_PARAMETER}));
    }
    first
}

/// Makes the object known to policies.
pub(super) fn introduced(subject: &Subject<'_>) -> Introduction {
    let now = subject.cx.now;
    let before = subject.note().and_then(|note| note.marked);
    let lost = before.map_or(0, |before| before.times);
    let left = before.and_then(|before| (before.at + pause(lost)).checked_sub(now)).filter(|left| !left.is_zero());
    let stop = (lost >= SAID).then(|| contested(subject));
    let told = stop.as_ref().map(|stop| report(subject, stop.reason, stop.message.clone()));
    match (before, left) {
        (Some(marked), Some(_)) => Introduction { ops: told.into_iter().collect(), again: left, marked, stop },
        _ => {
            let ops = [mark(subject)].into_iter().chain(told).collect();
            Introduction { ops, again: None, marked: Marked { times: lost.saturating_add(1), at: now }, stop }
        }
    }
}

/// The pause after so many marks that were lost.
fn pause(lost: u32) -> Duration {
    FIRST.saturating_mul(1 << lost.saturating_sub(1).min(20)).min(LONGEST)
}

fn contested(subject: &Subject<'_>) -> Stop {
    let message = format!(
        "label {} is taken off this {kind} each time Drawbridge puts it on. Unless one {kind} of the namespace carries it, the API server \
         refuses what is made for any. It is put on again after pauses of at most {} minutes; the API server's audit log names who takes it \
         off",
        keys::LABEL_POLICY_PARAMETER,
        LONGEST.as_secs() / 60,
        kind = subject.face.kind.as_str(),
    );
    Stop { reason: Reason::FieldsContested, message, stalled: false }
}

fn mark(subject: &Subject<'_>) -> Op {
    let labels = json!({keys::LABEL_POLICY_PARAMETER: keys::POLICY_PARAMETER});
    let patch = json!({"metadata": {"uid": subject.uid, "labels": labels}});
    Op::Merge { kind: subject.face.kind, key: subject.cx.key.clone(), patch }
}
