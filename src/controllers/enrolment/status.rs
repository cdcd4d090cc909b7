//! The status of one AgentRuntime: what was found, in conditions and codes; pure (`spec/agentruntime.md` 2.3 to 2.7, with
//! S1, S2, S18 and S25).
//!
//! In: the AgentRuntime as stored, and everything that was found about its target. Out: the status to be stored, and
//! what people are told about it. Promises: equal findings give an equal status, so steady state writes nothing; an
//! Event only when a judgement or its reason changes; conditions of others stay.

use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::judge::{Judgement, Step, Wait};
use super::pods::Tally;
use super::{short, wave};
use crate::api::observed::{Key, Kind, WorkloadSeen};
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::plan::{Op, Report};
use crate::controllers::scaffold::world::{RuntimeRef, WorkloadRef};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;

/// The condition types that are ours.
const OURS: [&str; 7] =
    ["TargetResolved", "ConfigResolved", "Ready", "RolloutProgressing", "PodsCurrent", "Reconciling", "Stalled"];
/// Those that stay while nothing can be said about them, as long as there is a workload of its own to say it about.
const KEPT: [&str; 1] = ["PodsCurrent"];
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
    /// Its Pods, once it is known what they should carry.
    pub(super) tally: Option<Tally<'a>>,
    /// A write failed so often that it is worth saying.
    pub(super) trouble: Option<String>,
    /// What could not be read of the configuration.
    pub(super) notices: Vec<String>,
    /// `status.effective`.
    pub(super) effective: Value,
    /// A Sandbox was restarted, and its new Pod is no better.
    pub(super) in_vain: bool,
    /// It has been replacing its Pods for long, and keeps others waiting.
    pub(super) is_slow: bool,
}

/// The operations that bring the status up to date: none when it is.
pub(super) fn update(namespace: &str, runtime: &RuntimeRef<'_>, findings: &Findings<'_>) -> Vec<Op> {
    let before = &*runtime.seen.status;
    let wanted = conditions_of(findings);
    let list = before.get("conditions").unwrap_or(&Value::Null);
    let mut status = fields(runtime, findings, &wanted);
    let kept: &[&str] = if matches!(findings, Findings::Governs(_)) { &KEPT } else { &[] };
    let merged = conditions::merged(list, &wanted, &OURS, kept, runtime.seen.generation);
    status.insert("conditions".to_owned(), merged);
    let status = Value::Object(status);
    let Some(patch) = conditions::difference(before, &status) else { return Vec::new() };
    let key = Key::new(namespace, runtime.name);
    let news = wanted.iter().filter(|one| TOLD.contains(&one.type_) && conditions::is_news(list, one));
    // What holds from the beginning is no news, but readiness and what could not be read.
    let news = news.filter(|one| match one.type_ {
        "Ready" => true,
        "ConfigResolved" => one.reason == Reason::ConfigWarning,
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
    let status = &*runtime.seen.status;
    let done = conditions::stored(status.get("conditions").unwrap_or(&Value::Null), "RolloutProgressing");
    let done = done.is_some_and(|one| one["status"] == "False" && one["reason"] == reason.code());
    done && status["observedGeneration"] == runtime.seen.generation
        && status["configHash"].as_str() == Fields::standing(workload).hash()
}

/// Since when the stored judgement of a type holds.
fn since(list: &Value, type_: &str) -> String {
    let stored = conditions::stored(list, type_).and_then(|one| one.get("lastTransitionTime"));
    stored.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn fields(runtime: &RuntimeRef<'_>, findings: &Findings<'_>, wanted: &[Condition]) -> Map<String, Value> {
    let mut status = Map::new();
    status.insert("observedGeneration".to_owned(), runtime.seen.generation.into());
    status.insert("phase".to_owned(), phase(findings, wanted).into());
    let applied = runtime.seen.status.get("appliedTarget");
    let mut applied = applied.cloned();
    if let Findings::Governs(found) = findings {
        let configured = found.tally.as_ref().map_or(0, |tally| tally.configured);
        if configured > 0 {
            status.insert("configuredPods".to_owned(), configured.into());
        }
        if found.judgement.standing.is_enrolment() {
            status.extend(found.judgement.standing.hash().map(|hash| ("configHash".to_owned(), hash.into())));
            applied = Some(applied_target(&found.workload));
        }
        if found.effective.as_object().is_some_and(|effective| !effective.is_empty()) {
            status.insert("effective".to_owned(), found.effective.clone());
        }
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
            let all = ["TargetResolved", "Ready"].into_iter().chain(stuck.then_some("Stalled"));
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
                Condition::new("Stalled", true, *reason, message),
            ]
        }
        Findings::Governs(found) => governs(found),
    }
}

fn found(kind: Kind, name: &str) -> Condition {
    Condition::new("TargetResolved", true, Reason::TargetFound, format!("{} {name} resolved", kind.as_str()))
}

/// What is said about an AgentRuntime that governs its workload.
fn governs(found_here: &Governs<'_>) -> Vec<Condition> {
    let Governs { workload, judgement, notices, .. } = found_here;
    let config = if notices.is_empty() {
        Condition::new("ConfigResolved", true, Reason::ConfigResolved, "every layer of the configuration could be read")
    } else {
        Condition::new("ConfigResolved", true, Reason::ConfigWarning, notices.join("; "))
    };
    let verdict = verdict(found_here);
    let mut all = vec![found(workload.kind, workload.name), config];
    all.push(Condition::new("Ready", verdict.ready, verdict.reason, verdict.message.clone()));
    let (progresses, reason, message) = progress(found_here);
    all.push(Condition::new("RolloutProgressing", progresses, reason, message.clone()));
    if matches!(judgement.step, Step::Settled) {
        all.extend(pods(found_here));
    }
    if verdict.stalled {
        all.push(Condition::new("Stalled", true, verdict.reason, verdict.message));
    } else if !verdict.ready {
        all.push(Condition::new("Reconciling", true, verdict.reason, verdict.message));
    } else if progresses {
        all.push(Condition::new("Reconciling", true, reason, message));
    }
    all
}

struct Verdict {
    ready: bool,
    stalled: bool,
    reason: Reason,
    message: String,
}

impl Verdict {
    fn waits(reason: Reason, message: String) -> Self {
        Self { ready: false, stalled: false, reason, message }
    }

    fn stuck(reason: Reason, message: String) -> Self {
        Self { stalled: true, ..Self::waits(reason, message) }
    }
}

/// Ready or not, and why.
fn verdict(found: &Governs<'_>) -> Verdict {
    let (kind, name, namespace) = (found.workload.kind.as_str(), found.workload.name, found.namespace);
    if let Some(trouble) = &found.trouble {
        let message = format!("{kind} {name} cannot be written and is tried again: {trouble}");
        return Verdict::waits(Reason::ConfigApplyError, message);
    }
    match &found.judgement.step {
        Step::Refused { reason, message } => Verdict::stuck(*reason, message.clone()),
        Step::Wait(wait) => waits(wait, found),
        Step::Apply { .. } | Step::Release => {
            Verdict::waits(Reason::EnrolmentPending, format!("{kind} {name} is about to be written"))
        }
        Step::Settled if wave::has_failed(found.workload.seen) => Verdict::stuck(
            Reason::ProgressDeadlineExceeded,
            format!(
                "{kind} {name} is configured, and its new Pods did not become available in time. Look at them: \
                 {}",
                look(found),
            ),
        ),
        Step::Settled => {
            // What runs, which is not what the template carries where somebody else has rolled the workload.
            let hash = found.judgement.wanted.as_deref().unwrap_or_default();
            let message = match hash {
                keys::HASH_OF_NOTHING => format!(
                    "{kind} {name} is enrolled with hash {}, and nothing is injected into its Pods: drawbridge explain -n \
                     {namespace} {}/{name} tells why",
                    short(hash),
                    kind.to_lowercase(),
                ),
                hash => format!("{kind} {name} is configured with hash {}", short(hash)),
            };
            Verdict { ready: true, stalled: false, reason: Reason::Configured, message }
        }
    }
}

/// The commands that show what becomes of a workload's Pods.
fn look(found: &Governs<'_>) -> String {
    let (kind, name, namespace) = (found.workload.kind.as_str(), found.workload.name, found.namespace);
    let kind = kind.to_lowercase();
    format!("kubectl -n {namespace} get pods -l {}; kubectl -n {namespace} describe {kind} {name}", keys::LABEL_TYPE)
}

fn waits(wait: &Wait, found: &Governs<'_>) -> Verdict {
    let (kind, name, namespace) = (found.workload.kind.as_str(), found.workload.name, found.namespace);
    let begins = format!("{kind} {name} waits");
    match wait {
        Wait::Configuration => {
            Verdict::waits(Reason::EnrolmentPending, format!("{begins} for the configuration to be read"))
        }
        Wait::ServiceAccount(account) => Verdict::waits(
            Reason::ServiceAccountPending,
            format!("{begins} for ServiceAccount {account}, which is made for it"),
        ),
        Wait::ConfigMaps => Verdict::waits(
            Reason::EnrolmentPending,
            format!("{begins} for the ConfigMaps {} of its namespace", keys::NAMESPACE_CONFIG_MAPS.join(", ")),
        ),
        Wait::Unread => Verdict::waits(
            Reason::RolloutPending,
            format!(
                "{begins}: a ConfigMap of its configuration cannot be read (condition ConfigResolved says which and why), and what \
                 it said before is not known. Nothing is rolled until it is repaired or deleted; new Pods are made without it"
            ),
        ),
        Wait::Spread => Verdict::waits(
            Reason::RolloutPending,
            format!(
                "{begins}: the settings have changed, and rolling begins when every replica has had the time to read them \
                 (rollout.delaySeconds of the platform file)"
            ),
        ),
        Wait::Turn { budget, slow, slow_elsewhere } => {
            let turn = format!("{begins} for its turn: {budget} workloads at once may roll to a new configuration");
            let message = format!("{turn}{}", keeping(namespace, slow, *slow_elsewhere));
            Verdict::waits(Reason::RolloutPending, message)
        }
        Wait::Halted(failed) => Verdict::stuck(
            Reason::RolloutHalted,
            format!(
                "{begins}: {failed} workloads that were rolled to the new configuration exceeded their progress deadline. Look \
                 at them (drawbridge status -A); rolling goes on once fewer than two of them fail, or with the next change of \
                 the configuration"
            ),
        ),
        Wait::Manual => Verdict::waits(
            Reason::RolloutManual,
            format!(
                "the configuration of the fleet has changed and rollout.onUpgrade is manual; new Pods of {kind} {name} get it. \
                 To replace the running ones: {}",
                found.workload.seen.kind.restart(namespace, name),
            ),
        ),
    }
}

/// Who keeps the places that are waited for, once that lasts.
fn keeping(namespace: &str, slow: &[String], elsewhere: usize) -> String {
    let here: Vec<String> =
        slow.iter().map(|name| format!("{name} (kubectl -n {namespace} describe {name})")).collect();
    let there = (elsewhere > 0).then(|| format!("{elsewhere} more (drawbridge status -A)"));
    let all: Vec<String> = here.into_iter().chain(there).collect();
    if all.is_empty() {
        return String::new();
    }
    format!(
        ". These have been rolling for more than 10 minutes, and keep their places until they are done: {}",
        all.join(", ")
    )
}

/// Whether Pods are being replaced.
fn progress(found: &Governs<'_>) -> (bool, Reason, String) {
    let (workload, kind) = (&found.workload, found.workload.kind.as_str());
    let (name, seen) = (workload.name, workload.seen);
    match &found.judgement.step {
        Step::Wait(wait) => {
            let verdict = waits(wait, found);
            return (false, verdict.reason, verdict.message);
        }
        Step::Refused { .. } | Step::Apply { .. } | Step::Release => {
            return (false, Reason::EnrolmentPending, format!("{kind} {name} has not been written"));
        }
        Step::Settled => {}
    }
    let stays = |reason, text: &str| (false, reason, format!("{kind} {name} {text}"));
    match () {
        () if seen.kind == WorkloadKind::CronJob => {
            stays(Reason::RolloutComplete, "makes its next Job with the configuration")
        }
        () if seen.rollout.paused => {
            stays(Reason::RolloutPaused, "is paused: its Pods are replaced once it is resumed")
        }
        () if seen.rollout.on_delete => {
            stays(Reason::RolloutOnDelete, "has update strategy OnDelete: its Pods are replaced as they are deleted")
        }
        () if seen.rollout.held_back() > 0 && (done(found) || !wave::rolls(seen)) => stays(
            Reason::RolloutPaused,
            "keeps the Pods below spec.updateStrategy.rollingUpdate.partition as they are: they are replaced once it is lowered",
        ),
        () if !wave::rolls(seen) => stays(Reason::RolloutComplete, "wants no Pods"),
        () if wave::has_failed(seen) => stays(Reason::ProgressDeadlineExceeded, "did not finish its rollout in time"),
        () if done(found) => stays(Reason::RolloutComplete, "has replaced its Pods"),
        () if found.is_slow => {
            let what = "has been replacing its Pods for more than 10 minutes, while others may wait for its place";
            (true, Reason::RolloutProgressing, format!("{kind} {name} {what}. Look at them: {}", look(found)))
        }
        () => (true, Reason::RolloutProgressing, format!("{kind} {name} is replacing its Pods")),
    }
}

/// Whether nothing is being replaced. A Sandbox is done when a Pod with the configuration runs.
fn done(found: &Governs<'_>) -> bool {
    match found.workload.seen.kind {
        WorkloadKind::Sandbox => found.in_vain || found.tally.as_ref().is_some_and(|tally| tally.configured > 0),
        _ => found.workload.seen.rollout.is_complete(),
    }
}

/// Whether the Pods run with what is wanted; nothing while they are being replaced.
fn pods(found: &Governs<'_>) -> Option<Condition> {
    let (seen, tally) = (found.workload.seen, found.tally.as_ref()?);
    let replaced_by_itself = wave::rolls(seen) && !done(found);
    if seen.kind == WorkloadKind::CronJob || replaced_by_itself {
        return None;
    }
    Some(drift(tally).map_or_else(
        || Condition::new("PodsCurrent", true, Reason::PodsCurrent, "every Pod runs with the present configuration"),
        |(reason, message)| Condition::new("PodsCurrent", false, reason, message),
    ))
}

/// What is wrong with the Pods of a workload that replaces none of its own accord.
pub(super) fn drift(tally: &Tally<'_>) -> Option<(Reason, String)> {
    let names = |pods: &[crate::controllers::scaffold::world::PodRef<'_>]| {
        let mut names: Vec<&str> = pods.iter().map(|pod| &**pod.name).collect();
        names.sort_unstable();
        let more = if names.len() > 3 { format!(" and {} more", names.len() - 3) } else { String::new() };
        names.truncate(3);
        format!("{}{more}", names.join(", "))
    };
    let remedy = "Delete them so that they are made again, or set repair: evict in the platform file";
    let kept = "from before the enrolment, which stay until their workload is resumed, its partition is lowered, or (update \
                strategy OnDelete) they are deleted";
    match (tally.unprotected.is_empty(), tally.unlabelled) {
        (false, 0) => Some((
            Reason::UnprotectedPods,
            format!("Pods run without the sidecars: {}. {remedy}", names(&tally.unprotected)),
        )),
        (false, old) => Some((
            Reason::UnprotectedPods,
            format!("Pods run without the sidecars: {}. {remedy}. Besides, {old} {kept}", names(&tally.unprotected)),
        )),
        (true, 1..) => {
            Some((Reason::UnprotectedPods, format!("Pods run without the sidecars: {} {kept}", tally.unlabelled)))
        }
        _ if !tally.outdated.is_empty() => Some((
            Reason::OutdatedPods,
            format!("Pods run with another configuration: {}. {remedy}", names(&tally.outdated)),
        )),
        _ => None,
    }
}
