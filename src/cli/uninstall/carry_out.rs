//! The steps, one after the other. A refusal in the first phases ends it: what follows would be undone by an operator that still runs.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt;
use kube::ResourceExt;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::Done;
use super::found::Found;
use super::plan::{Action, Phase, Plan, Step, resumes};
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::survey::{self, Type, annotation, text};
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};

/// Field manager of merges.
const MANAGER: &str = "drawbridge/uninstall";
/// How long a guard that was deleted may go on refusing.
const GUARDED: Duration = Duration::from_secs(15);

/// How often a Job is looked at that was suspended.
const LOOK: Duration = Duration::from_millis(200);

/// How many workloads are restarted at once; the next wait until their Pods are replaced.
const WAVE: usize = 5;

/// Carries out a plan; a wave of restarts, and a Job whose Pods have to go, is waited for so long at most. What is over is in `done`, also when the rest
/// is cut short.
///
/// # Errors
/// When the cluster does not answer any more.
pub(super) async fn all(
    cluster: &Cluster,
    (found, plan): (&Found, &Plan),
    patience: Duration,
    done: &mut Vec<Done>,
) -> anyhow::Result<()> {
    let mut wave: Vec<Step> = Vec::new();
    for step in &plan.steps {
        if wave.len() == WAVE {
            replaced(cluster, found, &wave, patience).await?;
            wave.clear();
        }
        if step.phase == Phase::Restarts {
            wave.push(step.clone());
        }
        if resumes(&step.action) {
            emptied(cluster, &step.path, patience).await?;
        }
        let answer = unguarded(cluster, step).await?;
        let (outcome, message) = match answer {
            Answer::Object(_) => ("done", None),
            // Gone, or another object of that name by now.
            Answer::Absent | Answer::Refused(409, _) => ("gone", None),
            Answer::Refused(code, message) => ("refused", Some(refused(code, &message))),
        };
        done.push(Done { step: step.clone(), outcome, message });
        let early = outcome == "refused" && step.phase <= Phase::Operator;
        let ends = |next: &Step| next.phase > step.phase;
        if early && plan.steps.iter().any(ends) {
            break;
        }
    }
    Ok(())
}

/// What is said of a step that the API server refuses.
fn refused(code: u16, message: &str) -> String {
    format!(
        "refused ({code}): {}. What to do: have it allowed, or do it as somebody who may; then run uninstall once more",
        message.trim_end_matches('.')
    )
}

/// A guard that was just deleted refuses for a moment more: each API server hears of it by a watch.
async fn unguarded(cluster: &Cluster, step: &Step) -> anyhow::Result<Answer> {
    let begun = tokio::time::Instant::now();
    loop {
        let answer = one(cluster, step).await?;
        let guarded = matches!(&answer, Answer::Refused(_, message) if message.contains("drawbridge-trust-"));
        if !guarded || begun.elapsed() > GUARDED {
            return Ok(answer);
        }
        tokio::time::sleep(GUARDED / 50).await;
    }
}

async fn one(cluster: &Cluster, step: &Step) -> anyhow::Result<Answer> {
    match &step.action {
        Action::Delete { uid } => cluster.delete(&step.path, uid).await,
        Action::Release { identity, manager } => cluster.apply(&step.path, identity, manager).await,
        Action::Merge { patch } => cluster.merge(&step.path, patch, MANAGER).await,
        Action::Restart { uid } => {
            let annotations = json!({"kubectl.kubernetes.io/restartedAt": format!("{:.0}", jiff::Timestamp::now())});
            let template = json!({"template": {"metadata": {"annotations": annotations}}});
            cluster.merge(&step.path, &json!({"metadata": {"uid": uid}, "spec": template}), MANAGER).await
        }
    }
}

/// Waits until the Pods of a Job that is suspended are gone. It is resumed after `patience` all the same: the proof names it where its Pod is still
/// behind the gate.
async fn emptied(cluster: &Cluster, path: &str, patience: Duration) -> anyhow::Result<()> {
    let begun = tokio::time::Instant::now();
    while let Answer::Object(job) = cluster.get(path).await? {
        if !is_emptying(&job) || begun.elapsed() > patience {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// A Job that is suspended, and whose controller has not taken its Pods away yet.
fn is_emptying(job: &Value) -> bool {
    let holds = |types: &[&str]| {
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|one| one["status"] == "True" && types.contains(&text(one, "/type")))
    };
    let active = job.pointer("/status/active").and_then(Value::as_u64).unwrap_or_default();
    job.pointer("/spec/suspend") == Some(&Value::Bool(true))
        && !holds(&["Complete", "Failed"])
        && (active > 0 || !holds(&["Suspended"]))
}

/// Waits until no Pod with sidecars of the workloads that these steps roll is left, for `patience` at most.
///
/// # Errors
/// When the cluster does not answer any more.
pub(super) async fn replaced(
    cluster: &Cluster,
    found: &Found,
    steps: &[Step],
    patience: Duration,
) -> anyhow::Result<()> {
    let rolling: Vec<(String, Workload)> = steps
        .iter()
        .filter(|step| matches!(step.action, Action::Release { .. } | Action::Restart { .. }))
        .filter_map(|step| found.workloads.iter().find(|part| part.path == step.path))
        .filter(|part| super::plan::replaces(&part.object))
        .filter_map(|part| {
            let kind = WorkloadKind::from_group_kind("apps", text(&part.object, "/kind"))?;
            let name = text(&part.object, "/metadata/name").to_owned();
            Some((text(&part.object, "/metadata/namespace").to_owned(), Workload { kind, name }))
        })
        .collect();
    let Some(pods) = Type::of_kind(WorkloadKind::Pod).filter(|_| !rolling.is_empty()) else { return Ok(()) };
    let mut events = cluster.follow(&pods.collection("")).boxed();
    let mut waited: HashMap<(String, String), bool> = HashMap::new();
    let until = async {
        let mut complete = false;
        while let Some(event) = events.next().await {
            match event {
                Event::Init => {
                    complete = false;
                    waited.clear();
                }
                Event::InitDone => complete = true,
                Event::Delete(pod) => {
                    waited.remove(&(pod.namespace().unwrap_or_default(), pod.name_any()));
                }
                Event::InitApply(pod) | Event::Apply(pod) => {
                    let key = (pod.namespace().unwrap_or_default(), pod.name_any());
                    let value = serde_json::to_value(&pod).unwrap_or_default();
                    waited.insert(key, is_waited_for(&value, &rolling));
                }
            }
            if complete && !waited.values().any(|waits| *waits) {
                return;
            }
        }
    };
    // Whoever is still there after that is named in the proof.
    let _ = tokio::time::timeout(patience, until).await;
    Ok(())
}

fn is_waited_for(pod: &Value, rolling: &[(String, Workload)]) -> bool {
    let owner = survey::owner(pod, &HashMap::new());
    let finished = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    let namespace = text(pod, "/metadata/namespace");
    !finished
        && annotation(pod, keys::ANNOTATION_STATUS).is_some()
        && rolling.iter().any(|(place, workload)| place == namespace && *workload == owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do_next() {
        let said = refused(403, "deployments.apps is forbidden.");
        let wanted = "refused (403): deployments.apps is forbidden. What to do: ";
        assert!(said.starts_with(wanted) && said.ends_with("run uninstall once more"), "{said}");
    }

    #[test]
    fn a_suspended_job_is_waited_for_until_its_controller_has_taken_its_pods_away() {
        let job = |suspend: bool, active: u64, conditions: &[&str]| {
            let conditions: Vec<Value> = conditions.iter().map(|one| json!({"type": one, "status": "True"})).collect();
            json!({"spec": {"suspend": suspend}, "status": {"active": active, "conditions": conditions}})
        };
        assert!(is_emptying(&job(true, 1, &[])), "it has not heard of it");
        assert!(is_emptying(&job(true, 1, &["Suspended"])));
        assert!(is_emptying(&json!({"spec": {"suspend": true}})));
        assert!(!is_emptying(&job(true, 0, &["Suspended"])));
        assert!(!is_emptying(&job(false, 1, &[])), "somebody else resumed it");
        assert!(!is_emptying(&job(true, 0, &["Failed"])), "nobody suspends it any more");
    }
}
