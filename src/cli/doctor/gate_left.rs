//! What mode gate left on Pods and Jobs of an installation that is not in that mode, and whether the controllers run in the mode that the webhook is
//! registered for.
//!
//! In: the Deployment of the controllers, enrolled Pods, Jobs. Out: a check each. Controllers in mode gate alone free Pods from behind the scheduling
//! gate, and resume the Jobs that they suspended for that: in mode fail both stay as they are for ever, and no check of webhooks or policies shows it.

use clap::ValueEnum as _;
use serde_json::Value;

use super::enrolment::listed;
use super::{Seen, Visit, mode_of, text};
use crate::cli::render::FailureMode;
use crate::cli::render::rbac::Role;
use crate::cli::scope::flag;
use crate::cli::survey;
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::server::guards::watch::APPLY;
use crate::store::Kind;

const FLAG: &str = "--failure-mode";
const PODS: &str = "Pods behind the gate";
const JOBS: &str = "Jobs suspended for the gate";

/// Whether the controllers run in the mode that the webhook is registered for: manifests of two modes can be applied in part.
pub(super) async fn controllers(visit: &mut Visit) -> anyhow::Result<()> {
    let name = "failure mode of the controllers";
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/{}", visit.operator, Role::Controllers.name());
    let Seen::Is(deployment) = visit.read(name, &path).await? else { return Ok(()) };
    match at_odds(visit.mode, mode_of(visit.kinds, told(&deployment))) {
        None => visit.ok(name, "the one that the webhook is registered for"),
        Some(seen) => {
            let remedy =
                format!("{APPLY}, all of it: with `{FLAG} gate` where mode gate is meant, without where it is not");
            visit.finding(name, seen, remedy);
        }
    }
    Ok(())
}

/// The mode that the process of a Deployment is told.
fn told(deployment: &Value) -> FailureMode {
    flag(deployment, FLAG).and_then(|word| FailureMode::from_str(word, false).ok()).unwrap_or_default()
}

/// What follows where webhook and controllers are in two modes.
fn at_odds(webhook: FailureMode, controllers: FailureMode) -> Option<&'static str> {
    match (webhook, controllers) {
        (FailureMode::Gate, FailureMode::Fail) => Some(
            "fail, and the webhook is registered for mode gate: Pods that are made while no replica answers wait behind the scheduling gate, and nobody \
             frees them",
        ),
        (FailureMode::Fail, FailureMode::Gate) => Some(
            "gate, and the webhook is registered for mode fail: enrolled Pods are refused while no replica answers, and the controllers miss admission \
             policies that do not belong to this mode",
        ),
        (FailureMode::Gate, FailureMode::Gate) | (FailureMode::Fail, FailureMode::Fail) => None,
    }
}

/// Pods that wait behind the gate, and Jobs that were suspended for it, where nobody looks after either.
pub(super) async fn waiting(visit: &mut Visit) -> anyhow::Result<()> {
    if visit.mode == FailureMode::Gate {
        return Ok(());
    }
    let mut notes = Vec::new();
    let pods = visit.list(Kind::Pod, &format!("?labelSelector={}", keys::LABEL_TYPE), &mut notes).await?;
    let jobs = visit.list(Kind::Job, "", &mut notes).await?;
    let is_whole = notes.is_empty();
    if !is_whole {
        visit.unknown(PODS, notes.join("; "), "run doctor as somebody who may list Pods and Jobs");
    }
    for (name, found) in [(PODS, behind_the_gate(&pods)), (JOBS, suspended(&jobs))] {
        match found {
            None if !is_whole => {}
            None => visit.ok(name, "none"),
            Some((seen, remedy)) => visit.finding(name, seen, remedy),
        }
    }
    Ok(())
}

/// How a Pod gets from behind the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Its controller makes another one.
    Replaced,
    /// Its Job makes another one, and counts a deleted Pod as a try.
    OfJob,
    /// Nobody makes another one.
    Alone,
    /// It opted out of injection, so that its template brings the gate.
    OptedOut,
}

impl Way {
    const ALL: [Way; 4] = [Way::Replaced, Way::OfJob, Way::Alone, Way::OptedOut];

    fn of(pod: &Value) -> Self {
        let is_job = |owner: &Value| {
            text(owner, "/kind") == WorkloadKind::Job.as_str() && text(owner, "/apiVersion").starts_with("batch/")
        };
        match survey::controller(pod) {
            _ if survey::label(pod, keys::LABEL_INJECT) == Some(keys::INJECT_DISABLED) => Way::OptedOut,
            None => Way::Alone,
            Some(owner) if is_job(owner) => Way::OfJob,
            Some(_) => Way::Replaced,
        }
    }

    /// What to do with such Pods, with the command for one of them.
    fn remedy(self, pod: &Value) -> String {
        let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
        match self {
            Way::Replaced => {
                format!("delete each that a controller makes again (kubectl -n {namespace} delete pod {name})")
            }
            Way::OfJob => {
                let job = survey::controller(pod).map_or("", |owner| text(owner, "/name"));
                format!(
                    "suspend the Job of each that has one, which takes the Pod away and costs no try, and resume it then (kubectl -n {namespace} patch \
                     job {job} -p '{{\"spec\":{{\"suspend\":true}}}}', and the same with false)"
                )
            }
            Way::Alone => format!(
                "make each that nobody controls again, without the gate in spec.schedulingGates (kubectl -n {namespace} get pod {name} -o yaml > \
                 pod.yaml, and once it is taken out there: kubectl replace --force -f pod.yaml)"
            ),
            Way::OptedOut => format!(
                "take the gate out of spec.schedulingGates of the template of each that carries label {}={}, and then delete it (kubectl -n {namespace} \
                 delete pod {name})",
                keys::LABEL_INJECT,
                keys::INJECT_DISABLED
            ),
        }
    }
}

/// The Pods that wait behind the gate, and what to do with them; `None` for none.
fn behind_the_gate(pods: &[Value]) -> Option<(String, String)> {
    let is_waiting = |pod: &&Value| survey::is_gated(pod) && text(pod, "/metadata/deletionTimestamp").is_empty();
    let waiting: Vec<&Value> = pods.iter().filter(is_waiting).collect();
    let names = listed(waiting.iter().map(|pod| place(pod)))?;
    let first = |way: &Way| waiting.iter().find(|pod| Way::of(pod) == *way).map(|pod| way.remedy(pod));
    let ways: Vec<String> = Way::ALL.iter().filter_map(first).collect();
    let seen = format!(
        "{names}: nobody takes scheduling gate {} off them, since this installation is not in failure mode gate",
        keys::SCHEDULING_GATE
    );
    Some((seen, format!("once no object of failure mode gate is left (the check above): {}", ways.join("; "))))
}

/// The Jobs that were suspended so that their Pods go from behind the gate, and what to do with them; `None` for none. One that somebody has resumed
/// since only bears the mark.
fn suspended(jobs: &[Value]) -> Option<(String, String)> {
    let is_suspended = |job: &&Value| {
        survey::annotation(job, keys::ANNOTATION_SUSPENDED).is_some()
            && job.pointer("/spec/suspend") == Some(&Value::Bool(true))
    };
    let all: Vec<&Value> = jobs.iter().filter(is_suspended).collect();
    let names = listed(all.iter().map(|job| place(job)))?;
    let job = all.first()?;
    let seen = format!(
        "{names}: suspended so that their Pods go from behind the gate, and nobody resumes them, since this installation is not in failure mode gate"
    );
    let remedy = format!(
        "resume each (kubectl -n {} patch job {} --type=merge -p '{{\"metadata\":{{\"annotations\":{{\"{}\":null}}}},\"spec\":{{\"suspend\":false}}}}')",
        text(job, "/metadata/namespace"),
        text(job, "/metadata/name"),
        keys::ANNOTATION_SUSPENDED
    );
    Some((seen, remedy))
}

fn place(object: &Value) -> String {
    format!("{}/{}", text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::render::{self, Install};

    /// A Pod behind the gate, with these owner and labels.
    fn gated(name: &str, owner: Value, labels: Value) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "team1", "labels": labels, "ownerReferences": owner},
            "spec": {"schedulingGates": [{"name": keys::SCHEDULING_GATE}]},
        })
    }

    fn owned(api_version: &str, kind: &str) -> Value {
        json!([{"apiVersion": api_version, "kind": kind, "name": "owner", "controller": true}])
    }

    #[test]
    fn a_pod_that_is_left_behind_the_gate_is_told_with_the_way_from_there() {
        let out = json!({keys::LABEL_INJECT: keys::INJECT_DISABLED});
        for (owner, labels, says) in [
            (owned("apps/v1", "ReplicaSet"), json!({}), "again (kubectl -n team1 delete pod a)"),
            (owned("batch/v1", "Job"), json!({}), "patch job owner -p '{\"spec\":{\"suspend\":true}}'"),
            (owned("example.com/v1", "Job"), json!({}), "again (kubectl -n team1 delete pod a)"),
            (json!([]), json!({}), "kubectl -n team1 get pod a -o yaml > pod.yaml"),
            (
                owned("apps/v1", "ReplicaSet"),
                out,
                "of the template of each that carries label kagenti.io/inject=disabled",
            ),
        ] {
            let (seen, remedy) = behind_the_gate(&[gated("a", owner, labels)]).unwrap();
            assert!(seen.starts_with("team1/a: nobody takes scheduling gate drawbridge/injection off them"), "{seen}");
            assert!(remedy.contains(says) && !remedy.contains("; "), "{says}: {remedy}");
        }
        let two = [gated("a", json!([]), json!({})), gated("b", owned("apps/v1", "ReplicaSet"), json!({}))];
        let (seen, remedy) = behind_the_gate(&two).unwrap();
        assert!(seen.starts_with("team1/a, team1/b: "), "{seen}");
        assert!(remedy.contains("delete pod b") && remedy.contains("get pod a"), "{remedy}");
    }

    #[test]
    fn pods_that_wait_for_something_else_or_are_going_are_none() {
        let mut others = gated("a", json!([]), json!({}));
        others["spec"]["schedulingGates"] = json!([{"name": "queue.example.com/wait"}]);
        let mut going = gated("b", json!([]), json!({}));
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(behind_the_gate(&[others, going, json!({"metadata": {"name": "c"}})]), None);
    }

    /// Nobody but the controllers of mode gate resumes it.
    #[test]
    fn a_job_that_stays_suspended_is_told_with_the_command_that_resumes_it() {
        let job = |suspend: bool, marked: bool| {
            let annotations = if marked { json!({keys::ANNOTATION_SUSPENDED: "pod-uid"}) } else { json!({}) };
            json!({"metadata": {"name": "nightly", "namespace": "team1", "annotations": annotations}, "spec": {"suspend": suspend}})
        };
        for (suspend, marked) in [(false, true), (true, false), (false, false)] {
            assert_eq!(suspended(&[job(suspend, marked)]), None, "{suspend} {marked}");
        }
        let (seen, remedy) = suspended(&[job(true, true)]).unwrap();
        assert!(seen.starts_with("team1/nightly: suspended"), "{seen}");
        let command = "kubectl -n team1 patch job nightly --type=merge -p \
                       '{\"metadata\":{\"annotations\":{\"kagenti.io/suspended-for-gate\":null}},\"spec\":{\"suspend\":false}}'";
        assert!(remedy.contains(command), "{remedy}");
    }

    #[test]
    fn the_mode_of_the_controllers_is_what_their_deployment_says() {
        for mode in [FailureMode::Fail, FailureMode::Gate] {
            let install = Install::new(mode, "own", "a/b:1");
            let objects = render::parts(&install).into_iter().flat_map(|part| part.objects);
            let all: Vec<Value> = objects
                .filter(|object| {
                    text(object, "/kind") == "Deployment" && text(object, "/metadata/name") == Role::Controllers.name()
                })
                .collect();
            assert_eq!(all.iter().map(told).collect::<Vec<_>>(), [mode]);
            assert_eq!(at_odds(mode, mode), None);
        }
        assert!(at_odds(FailureMode::Gate, FailureMode::Fail).is_some_and(|seen| seen.contains("nobody frees them")));
        assert!(at_odds(FailureMode::Fail, FailureMode::Gate).is_some_and(|seen| seen.contains("are refused")));
    }
}
