//! From objects to rows; no request is made here.
//!
//! In: the AgentRuntimes, workloads and Pods of one namespace, and the [`World`] of its facts. Out: a row per workload that is enrolled,
//! pointed at, or runs Pods with our parts. The engine decides what becomes of a Pod that is made now; the Pods say what became of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::row::{By, Drift, EnrolledBy, Pods, Rollout, RolloutState, Row};
use super::{missing, rollout};
use crate::admission::explanation::Explanation;
use crate::admission::verdict::Verdict;
use crate::cli::offline::workload::Subject;
use crate::cli::offline::world::World;
use crate::cli::offline::{governed, misplaced, review};
use crate::cli::scope::Scope;
use crate::cli::survey::{self, annotation, is_gated, is_injected, label, text};
use crate::config::enrolment::{self, Asks};
use crate::config::inputs::{AgentRuntimeInput, Target};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::label::labels_template;

/// The objects of one namespace.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// AgentRuntimes.
    pub(super) agent_runtimes: Vec<Value>,
    /// Everything that makes Pods, Jobs and ReplicaSets included.
    pub(super) workloads: Vec<Value>,
    /// Pods.
    pub(super) pods: Vec<Value>,
    /// Kinds that may not be seen: that none is here says nothing.
    pub(super) unread: BTreeSet<&'static str>,
}

/// The rows of a namespace, in the order of [`Row::key`].
///
/// # Errors
/// When the platform file or the gates file has a fault.
pub(super) fn rows(seen: &Seen, namespace: &str, world: &World, events: &[Value]) -> anyhow::Result<Vec<Row>> {
    let snapshot = world.snapshot()?;
    let of_target = by_target(&seen.agent_runtimes);
    let pods = by_workload(seen);
    let mut rows = Vec::new();
    let mut found = BTreeSet::new();
    for object in seen.workloads.iter().chain(&seen.pods) {
        if survey::belongs_to_another(object) {
            continue;
        }
        let Some(subject) = Subject::of(object, namespace) else { continue };
        let pointing = of_target.get(&subject.workload).map(Vec::as_slice).unwrap_or_default();
        let labelled = subject.template(object).and_then(|template| label(template, keys::LABEL_TYPE)).is_some();
        let asks = governed::asks(object, &subject, &snapshot).filter(|asks| *asks != Asks::Nothing);
        let of_its_own = pods.get(&subject.workload).map(Vec::as_slice).unwrap_or_default();
        // A label that somebody took off ends no Pod: what runs with our parts is told as long as it runs.
        let runs_injected = || of_its_own.iter().any(|pod| is_injected(pod));
        if missing::is_finished(object) && of_its_own.is_empty() {
            continue;
        }
        let told = match missing::is_finished(object) {
            true => None,
            false => misplaced::of(object, &subject).filter(|_| pointing.is_empty() && asks.is_none()),
        };
        if let (Some(told), false) = (told, runs_injected()) {
            let name = (subject.kind(), subject.workload.name.as_str());
            let said = (Some(false), told.reason.code(), told.message);
            let decided = review::evaluate(&subject, &subject.pod(object), &snapshot)?.reason.class();
            rows.push(Row {
                ready: None,
                protected: Some(false),
                decision: decided.as_str().to_owned(),
                enrolled_by: enrolled_by(&[]),
                ..nothing_there(namespace, name, &[], said)
            });
            continue;
        }
        if pointing.is_empty() && !labelled && asks.is_none() && !runs_injected() {
            continue;
        }
        found.insert(subject.workload.clone());
        rows.push(row(object, &subject, (pointing, of_its_own, events), &snapshot)?);
    }
    for (target, pointing) in of_target.iter().filter(|(target, _)| !found.contains(*target)) {
        rows.push(without_target(namespace, target, (pointing.as_slice(), &seen.unread)));
    }
    rows.extend(seen.agent_runtimes.iter().filter_map(|object| without_workload(namespace, object)));
    if seen.unread.contains(WorkloadKind::Pod.as_str()) {
        // None is there to be counted, which is no news of those that run.
        rows.iter_mut()
            .filter(|row| row.decision == Reason::Injected.class().as_str())
            .for_each(|row| row.protected = None);
    }
    rows.sort_by_key(Row::key);
    Ok(rows)
}

/// Whether Events can tell more about an enrolled workload of the namespace than its own status does.
pub(super) fn asks_events(seen: &Seen, namespace: &str) -> bool {
    let pods = by_workload(seen);
    seen.workloads.iter().filter(|object| !survey::belongs_to_another(object)).any(|object| {
        Subject::of(object, namespace).is_some_and(|subject| {
            let of_its_own = pods.get(&subject.workload).map(Vec::as_slice).unwrap_or_default();
            let template = subject.template(object).and_then(|template| label(template, keys::LABEL_TYPE));
            template.is_some() && missing::asks_events(object, &subject, of_its_own)
        })
    })
}

/// The AgentRuntimes that point at each workload and are not being deleted, the one that governs it first.
fn by_target(agent_runtimes: &[Value]) -> BTreeMap<Workload, Vec<&Value>> {
    let mut found: BTreeMap<Workload, Vec<(&Value, AgentRuntimeInput)>> = BTreeMap::new();
    for object in agent_runtimes {
        let says = AgentRuntimeInput::of_object(object);
        let Some(Target { kind, name }) = says.target.clone().filter(|_| !says.deleting) else { continue };
        found.entry(Workload { kind, name: name.to_string() }).or_default().push((object, says));
    }
    let in_order = found.into_iter().map(|(target, mut all)| {
        all.sort_by(|(_, a), (_, b)| (&a.created, &a.uid).cmp(&(&b.created, &b.uid)));
        (target, all.into_iter().map(|(object, _)| object).collect())
    });
    in_order.collect()
}

/// The Pods that count, by the workload they belong to.
fn by_workload(seen: &Seen) -> HashMap<Workload, Vec<&Value>> {
    let jobs: HashMap<&str, &Value> = seen
        .workloads
        .iter()
        .filter(|object| text(object, "/kind") == "Job")
        .map(|job| (text(job, "/metadata/name"), job))
        .collect();
    let mut found: HashMap<Workload, Vec<&Value>> = HashMap::new();
    for pod in &seen.pods {
        let finished = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        if !finished && text(pod, "/metadata/deletionTimestamp").is_empty() {
            found.entry(survey::owner(pod, &jobs)).or_default().push(pod);
        }
    }
    found
}

/// The row of one workload; `pointing` are its AgentRuntimes, `pods` its Pods, `events` those about refused Pods.
fn row(
    object: &Value,
    subject: &Subject,
    (pointing, pods, events): (&[&Value], &[&Value], &[Value]),
    snapshot: &Snapshot,
) -> anyhow::Result<Row> {
    let governed = governed::with_type(object, subject, snapshot);
    let asks = governed::asks(object, subject, snapshot);
    let pod = subject.pod(&governed);
    let (verdict, explanation) = review::explain_as_sent(subject, (&pod, &pod), snapshot)?;
    let counted = count(pods, &verdict);
    let rollout = rollout::of(subject.workload.kind, object);
    let drift = Drift::of(counted);
    let ready = pointing.first().and_then(|object| condition(object, "Ready"));
    let waits = asks.and_then(|asks| of_its_label(asks, object, subject, &explanation));
    let (mut reason, mut message) = waits.clone().unwrap_or_else(|| told(&explanation, ready));
    let is_ready = ready.and_then(|ready| match text(ready, "/status") {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    });
    let mode = explanation.fields.iter().find(|field| field.name == "mode");
    let mode = mode.filter(|_| explanation.outcome != "skipped" || explanation.reason == Reason::ModeWaypoint.code());
    let waiting = rollout.state == RolloutState::Progressing;
    let attention = is_ready == Some(false)
        || waits.is_some()
        || explanation.denial.is_some()
        || rollout.state == RolloutState::Stalled
        || match drift {
            Drift::None => false,
            Drift::Gated => true,
            Drift::Unprotected | Drift::Outdated => !waiting && !runs_to_its_end(subject.workload.kind),
        };
    let over = unread(&subject.namespace, snapshot).filter(|_| !attention && explanation.outcome != "skipped");
    if let Some((why, text)) = &over {
        (reason, message) = (why.code().to_owned(), text.clone());
    }
    // What the API server says to its Pods is nearer to the cause than what follows from it.
    let speaks = is_ready != Some(false)
        || ready.is_some_and(|ready| text(ready, "/reason") == Reason::ProgressDeadlineExceeded.code());
    let cause = missing::cause(object, subject, pods, events).filter(|_| speaks && explanation.denial.is_none());
    if let Some(cause) = &cause {
        (reason, message) = (cause.reason.code().to_owned(), cause.message.clone());
    }
    let attention = attention || cause.is_some();
    let template = subject.template(&governed);
    Ok(Row {
        namespace: subject.namespace.clone(),
        kind: subject.workload.kind.as_str().to_owned(),
        name: subject.workload.name.clone(),
        agent_type: template.and_then(|template| label(template, keys::LABEL_TYPE)).map(str::to_owned),
        mode: mode.map(|mode| mode.value.clone()),
        mode_set_by: mode.map(|mode| mode.layer.clone()),
        enrolled_by: match asks.is_some() || labels_template(object) {
            true if pointing.is_empty() => EnrolledBy { by: By::WorkloadLabel, ..enrolled_by(pointing) },
            _ => enrolled_by(pointing),
        },
        pods: counted,
        protected: protected(counted, (rollout, cause.is_some()), &explanation),
        drift,
        rollout,
        decision: explanation.outcome.clone(),
        ready: is_ready,
        reason,
        message,
        cause: cause.map(|cause| cause.message),
        attention: attention || over.is_some(),
        watched: true,
    })
}

/// Whether every Pod that runs has the sidecars that it would get now; `None` while they are being replaced, or where that cannot be told.
fn protected(pods: Pods, (rollout, caused): (Rollout, bool), told: &Explanation) -> Option<bool> {
    let replaces = rollout.state == RolloutState::Progressing && !caused;
    match () {
        () if told.reason == Reason::ModeWaypoint.code() => None,
        () if told.outcome == "skipped" || pods.unprotected + pods.gated > 0 => Some(false),
        () if replaces => None,
        () if pods.outdated > 0 || told.denial.is_some() || caused => Some(false),
        // Whoever wants no Pods has none that is unprotected.
        () => Some(pods.running > 0 || rollout.desired == 0),
    }
}

/// What is said of a workload whose own label has not enrolled it, or not yet.
fn of_its_label(asks: Asks, object: &Value, subject: &Subject, told: &Explanation) -> Option<(String, String)> {
    let (kind, namespace, name) = (subject.kind(), &subject.namespace, &subject.workload.name);
    let (reason, message) = match asks {
        Asks::Pending(agent_type) => (Reason::EnrolmentPending, enrolment::pending(kind, namespace, name, agent_type)),
        Asks::Unknown => {
            let value = label(object, keys::LABEL_TYPE).unwrap_or_default();
            (Reason::UnknownValue, enrolment::unknown(kind, value))
        }
        Asks::Enrolment(_) if told.outcome == Reason::Injected.class().as_str() => {
            (Reason::EnrolmentPending, Reason::EnrolmentPending.sentence().to_owned())
        }
        Asks::Enrolment(_) | Asks::Nothing => return None,
    };
    Some((reason.code().to_owned(), message))
}

/// A ConfigMap of the namespace that is not read, and what becomes of that.
fn unread(namespace: &str, snapshot: &Snapshot) -> Option<(Reason, String)> {
    let notices = &snapshot.namespace(namespace)?.resolved.notices;
    let unread = |reason| matches!(reason, Reason::ConfigOverBound | Reason::NamespaceConfigUnreadable);
    notices.iter().find(|notice| unread(notice.reason)).map(|notice| (notice.reason, notice.text.clone()))
}

/// Pods of these are never replaced: the next run is made from the new template.
fn runs_to_its_end(kind: WorkloadKind) -> bool {
    matches!(kind, WorkloadKind::Job | WorkloadKind::CronJob)
}

/// What condition Ready says when it is False, else the engine.
fn told(explanation: &Explanation, ready: Option<&Value>) -> (String, String) {
    match ready.filter(|ready| text(ready, "/status") == "False") {
        Some(ready) => (text(ready, "/reason").to_owned(), text(ready, "/message").to_owned()),
        None => {
            let words = explanation.denial.as_ref().unwrap_or(&explanation.sentence);
            (explanation.reason.clone(), words.clone())
        }
    }
}

fn enrolled_by(pointing: &[&Value]) -> EnrolledBy {
    let mut names = pointing.iter().map(|object| text(object, "/metadata/name").to_owned());
    let agent_runtime = names.next();
    let by = if agent_runtime.is_some() { By::AgentRuntime } else { By::Label };
    EnrolledBy { by, agent_runtime, duplicates: names.collect() }
}

/// A condition of an AgentRuntime.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    conditions.iter().find(|condition| condition["type"] == kind)
}

/// The Pods, beside what the engine would make of them now.
fn count(pods: &[&Value], verdict: &Verdict) -> Pods {
    let wanted = verdict.audit.iter().find(|(name, _)| *name == "config-hash").map(|(_, hash)| hash.as_str());
    let mut counted = Pods { total: pods.len(), ..Pods::default() };
    for pod in pods {
        let injected = is_injected(pod);
        counted.running += usize::from(text(pod, "/status/phase") == "Running");
        counted.injected += usize::from(injected);
        counted.gated += usize::from(is_gated(pod));
        // Whoever is refused now would have been refused then, or is there from before: sidecars are wanted all the same.
        let wants = wanted.is_some() || !verdict.allowed();
        counted.unprotected += usize::from(wants && !injected && !is_gated(pod));
        let stamp = annotation(pod, keys::ANNOTATION_CONFIG_HASH);
        counted.outdated += usize::from(injected && wanted.is_some_and(|wanted| stamp != Some(wanted)));
    }
    counted
}

/// An AgentRuntime without its workload, which may be there where its kind is `unread`.
fn without_target(namespace: &str, target: &Workload, (pointing, unread): (&[&Value], &BTreeSet<&'static str>)) -> Row {
    // A kind that is not served, or may not be read, is another matter than an object that is not there.
    let said = pointing.first().and_then(|object| condition(object, "Ready"));
    let said = said.filter(|ready| text(ready, "/status") == "False" && text(ready, "/reason").starts_with("Target"));
    let called = (target.kind.as_str(), target.name.as_str());
    if said.is_none() && unread.contains(called.0) {
        let code = Reason::TargetUnreadable.code();
        let told = pointing.first().and_then(|object| condition(object, "Ready"));
        let (ready, reason, message) = match told.filter(|told| text(told, "/status") == "False") {
            Some(told) => (Some(false), text(told, "/reason"), text(told, "/message").to_owned()),
            None => (None, code, format!("{} {} may not be seen with your rights", called.0, called.1)),
        };
        return nothing_there(namespace, called, pointing, (ready, reason, message));
    }
    let absent = (Reason::TargetNotFound.code(), Reason::TargetNotFound.sentence());
    let (reason, message) = said.map_or(absent, |ready| (text(ready, "/reason"), text(ready, "/message")));
    nothing_there(namespace, called, pointing, (Some(false), reason, message.to_owned()))
}

/// An AgentRuntime that has no workload's row to be told in: it points at nothing that can be enrolled, or it is being deleted and what
/// it wrote has to be taken off first.
fn without_workload(namespace: &str, object: &Value) -> Option<Row> {
    let says = AgentRuntimeInput::of_object(object);
    let name = text(object, "/metadata/name");
    let ready = condition(object, "Ready").filter(|ready| text(ready, "/status") == "False");
    let said = |ready: &Value| (Some(false), text(ready, "/reason").to_owned(), text(ready, "/message").to_owned());
    let (ready, reason, message) = if says.deleting {
        let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
        finalizers.filter(|all| all.iter().any(|finalizer| finalizer == keys::FINALIZER))?;
        // A deletion counts as a generation: what was said before is about something else.
        let observed = object
            .pointer("/status/observedGeneration")
            .filter(|seen| Some(*seen) == object.pointer("/metadata/generation"));
        ready.filter(|_| observed.is_some()).map_or_else(
            || {
                let message = "its deletion waits until the controllers have taken off what they wrote for it; drawbridge doctor shows \
                               whether they can";
                (None, Reason::BeingDeleted.code().to_owned(), message.to_owned())
            },
            said,
        )
    } else if says.target.is_none() {
        let fault = says
            .faults
            .iter()
            .find(|fault| fault.reason == Reason::UnsupportedTarget || fault.field.contains("targetRef"));
        let read = || {
            let (reason, message) = fault.map_or((Reason::InvalidSpec, String::new()), |fault| {
                (fault.reason, format!("{}: {:?}: {}", fault.field, fault.seen, fault.message))
            });
            (Some(false), reason.code().to_owned(), message)
        };
        ready.map_or_else(read, said)
    } else {
        return None;
    };
    Some(nothing_there(namespace, (survey::AGENT_RUNTIME, name), &[object], (ready, &reason, message)))
}

/// A row without a workload. Somebody should act on it once it is known that it does not become ready by itself.
fn nothing_there(
    namespace: &str,
    (kind, name): (&str, &str),
    pointing: &[&Value],
    (ready, reason, message): (Option<bool>, &str, String),
) -> Row {
    Row {
        namespace: namespace.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        agent_type: pointing.first().map(|object| text(object, "/spec/type").to_owned()),
        mode: None,
        mode_set_by: None,
        enrolled_by: enrolled_by(pointing),
        pods: Pods::default(),
        protected: ready,
        drift: Drift::None,
        rollout: Rollout::NONE,
        decision: "unknown".to_owned(),
        ready,
        reason: reason.to_owned(),
        message,
        cause: None,
        attention: ready == Some(false),
        watched: true,
    }
}

/// The row where it lies. What nobody watches is not injected, whatever the engine would say; its facts stay as they are.
pub(super) fn placed(row: Row, scope: &Scope) -> Row {
    if scope.watches(&row.namespace) {
        return row;
    }
    if !matches!(row.decision.as_str(), "injected" | "denied") {
        return Row { watched: false, ..row };
    }
    let pods = Pods { unprotected: 0, outdated: 0, ..row.pods };
    Row {
        mode: None,
        mode_set_by: None,
        pods,
        protected: Some(pods.total > 0 && pods.injected == pods.total),
        drift: Drift::of(pods),
        decision: Reason::NamespaceNotWatched.class().as_str().to_owned(),
        reason: Reason::NamespaceNotWatched.code().to_owned(),
        message: not_watched(scope),
        // Where every Pod has its sidecars, another operator watches.
        attention: pods.injected < pods.total,
        watched: false,
        ..row
    }
}

/// That nobody acts, and what to do about it.
pub(super) fn not_watched(scope: &Scope) -> String {
    let sentence = Reason::NamespaceNotWatched.sentence();
    format!(
        "{sentence} (watched: {}); add the namespace with drawbridge render --watch-namespaces and kubectl apply, or move it to one of those",
        scope.words()
    )
}
