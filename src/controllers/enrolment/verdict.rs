//! What is said about an AgentRuntime that governs its workload: its conditions; pure.
//!
//! In: the judgement on the workload, and its Pods. Out: whether it is ready, whether Pods are being replaced, whether they run with what is
//! wanted, each with a reason and what to do.

use super::judge::{Step, Wait};
use super::pods::Tally;
use super::status::{Governs, found};
use super::{protected, short, wave};
use crate::controllers::conditions::Condition;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;

/// What is said about an AgentRuntime that governs its workload.
pub(super) fn governs(found_here: &Governs<'_>) -> Vec<Condition> {
    let Governs { workload, judgement, notices, .. } = found_here;
    let config = if let Some(reason) = found_here.unread {
        Condition::new("ConfigResolved", false, reason, notices.join("; "))
    } else if notices.is_empty() {
        Condition::new("ConfigResolved", true, Reason::ConfigResolved, "every layer of the configuration could be read")
    } else {
        Condition::new("ConfigResolved", true, Reason::ConfigWarning, notices.join("; "))
    };
    let verdict = verdict(found_here);
    let mut all = vec![found(workload.kind, workload.name), config];
    all.push(Condition::new("Ready", verdict.ready, verdict.reason, verdict.message.clone()));
    all.push(protected::condition(found_here));
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
                     {namespace} {}/{name} shows why",
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
pub(super) fn progress(found: &Governs<'_>) -> (bool, Reason, String) {
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
pub(super) fn done(found: &Governs<'_>) -> bool {
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
    let names = |pods: &[crate::store::objects::PodRef<'_>]| {
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
