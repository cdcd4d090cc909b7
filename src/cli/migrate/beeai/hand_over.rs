//! The running Deployment and Service of a BeeAI Agent get another owner, and no Pod notices.
//!
//! ```text
//! new Agent, paused ─► Deployment, Service: owner swapped (tested on uid and version) ─► old Agent deleted, orphaning ─► pause goes
//! ```
//!
//! Promises: without `--yes` nothing is written; each step names the uid of the object that was looked at; a step that is refused ends that
//! Agent's hand-over and says how it stands. The Pods' template stays as it is until the new Agent is changed.

use serde::Serialize;
use serde_json::{Value, json};

use super::live::list;
use super::{Args, agent, title};
use crate::cli::Exit;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::io::{self, Io};
use crate::cli::survey::text;
use crate::domain::keys;
use crate::store::Kind;

/// Field manager of what is written.
const MANAGER: &str = "drawbridge/migrate";

/// One step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    /// Such as `Agent team1/weather`.
    agent: String,
    /// What is done.
    what: String,
    /// `planned`, `done`, `refused` or `skipped`.
    outcome: &'static str,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip)]
    action: Action,
}

#[derive(Debug, Clone)]
enum Action {
    Create {
        path: String,
        body: Value,
    },
    /// The owner reference of the old Agent becomes one of the new.
    Swap {
        path: String,
        old: String,
    },
    Orphan {
        path: String,
        uid: String,
    },
    Unpause {
        path: String,
    },
    Nothing,
}

/// Plans, and with `--yes` carries out.
pub(super) async fn run(cluster: &Cluster, args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let namespace = args.namespace.clone().unwrap_or_else(|| cluster.namespace.clone());
    let mut notes = Vec::new();
    let mut steps = Vec::new();
    for kind in [Kind::BeeaiAgent, Kind::BeeaiCompatAgent] {
        for object in list(cluster, kind, &namespace, &mut notes).await? {
            let wanted = args.name.as_deref().is_none_or(|name| name == text(&object, "/metadata/name"));
            if wanted && object.pointer("/metadata/deletionTimestamp").is_none() {
                let mut of_agent = plan(cluster, kind, &object).await?;
                if args.yes {
                    carry_out(cluster, &mut of_agent).await?;
                }
                steps.extend(of_agent);
            }
        }
    }
    io::print(args.output, &steps, io.out, |out| {
        for step in &steps {
            let why = step.message.as_ref().map_or(String::new(), |message| format!(": {message}"));
            writeln!(out, "{:8} {}: {}{why}", step.outcome, step.agent, step.what)?;
        }
        Ok(())
    })?;
    for note in notes {
        writeln!(io.err, "{note}")?;
    }
    if steps.is_empty() {
        writeln!(io.err, "drawbridge: no Agent of BeeAI in namespace {namespace}")?;
    } else if !args.yes {
        writeln!(io.err, "Nothing was changed; --yes carries this out.")?;
    }
    let failed = steps.iter().any(|step| matches!(step.outcome, "refused" | "skipped"));
    Ok(if failed { Exit::Findings } else { Exit::Ok })
}

async fn plan(cluster: &Cluster, kind: Kind, object: &Value) -> anyhow::Result<Vec<Step>> {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let uid = text(object, "/metadata/uid");
    let title = title(object);
    let step =
        |what: String, action: Action| Step { agent: title.clone(), what, outcome: "planned", message: None, action };
    let mut swaps = Vec::new();
    for part in [Kind::Deployment, Kind::Service] {
        let path = format!("{}/{name}", part.path(namespace));
        match cluster.get(&path).await? {
            Answer::Object(found) if owner(&found, uid).is_some() => {
                let what = format!("give {} {name} to the new Agent; its Pods and its selector stay", part.as_str());
                swaps.push(step(what, Action::Swap { path, old: uid.to_owned() }));
            }
            Answer::Refused(code, message) => {
                let what = format!("read {} {name}", part.as_str());
                let refused = Some(format!("{code}: {message}"));
                return Ok(vec![Step { outcome: "refused", message: refused, ..step(what, Action::Nothing) }]);
            }
            Answer::Object(_) | Answer::Absent => {
                let what = format!(
                    "{} {name} of this Agent does not exist; apply what drawbridge migrate beeai prints instead",
                    part.as_str()
                );
                return Ok(vec![Step { outcome: "skipped", ..step(what, Action::Nothing) }]);
            }
        }
    }
    let mut body = agent::of(object, &mut Vec::new());
    body["metadata"]["annotations"][keys::ANNOTATION_PAUSED] = "true".into();
    body["metadata"]["annotations"][keys::ANNOTATION_HANDED_OVER] = "1".into();
    let path = Kind::Agent.path(namespace);
    let new = format!("{path}/{name}");
    let mut steps =
        vec![step(format!("make Agent {name} of {}, paused", keys::GROUP_AGENT), Action::Create { path, body })];
    steps.extend(swaps);
    let old = format!("{}/{name}", kind.path(namespace));
    let what = format!("delete Agent {name} of {}, and nothing that it made", kind.group());
    steps.push(step(what, Action::Orphan { path: old, uid: uid.to_owned() }));
    steps.push(step(format!("end the pause of Agent {name} of {}", keys::GROUP_AGENT), Action::Unpause { path: new }));
    Ok(steps)
}

/// The position of the owner of that uid among the owners of an object.
fn owner(object: &Value, uid: &str) -> Option<usize> {
    object.pointer("/metadata/ownerReferences")?.as_array()?.iter().position(|one| one["uid"] == uid)
}

async fn carry_out(cluster: &Cluster, steps: &mut [Step]) -> anyhow::Result<()> {
    let mut new = String::new();
    let mut ended = false;
    for step in steps {
        if ended || matches!(step.action, Action::Nothing) {
            continue;
        }
        let answer = match &step.action {
            Action::Create { path, body } => {
                let answer = cluster.post(path, body).await?;
                let name = text(body, "/metadata/name").to_owned();
                // What an earlier hand-over made and did not end is taken up again.
                let answer = match answer {
                    Answer::Refused(409, message) => match cluster.get(&format!("{path}/{name}")).await? {
                        Answer::Object(found) if is_handed_over(&found) => Answer::Object(found),
                        _ => Answer::Refused(409, message),
                    },
                    answer => answer,
                };
                if let Answer::Object(agent) = &answer {
                    text(agent, "/metadata/uid").clone_into(&mut new);
                }
                answer
            }
            Action::Swap { path, old } => swap(cluster, path, (old, &new)).await?,
            Action::Orphan { path, uid } => cluster.orphan(path, uid).await?,
            Action::Unpause { path } => {
                let patch = json!({"metadata": {"uid": new, "annotations": {keys::ANNOTATION_PAUSED: Value::Null}}});
                cluster.merge(path, &patch, MANAGER).await?
            }
            Action::Nothing => continue,
        };
        match answer {
            Answer::Object(_) => step.outcome = "done",
            Answer::Absent => step.outcome = "done",
            Answer::Refused(code, message) => {
                step.outcome = "refused";
                step.message = Some(format!("{code}: {message}"));
                ended = true;
            }
        }
    }
    Ok(())
}

fn is_handed_over(agent: &Value) -> bool {
    let annotations = agent.pointer("/metadata/annotations");
    annotations.is_some_and(|all| {
        all.get(keys::ANNOTATION_HANDED_OVER).is_some() && all.get(keys::ANNOTATION_PAUSED).is_some()
    })
}

/// Swaps the owner, as the object is at this moment.
async fn swap(cluster: &Cluster, path: &str, (old, new): (&str, &str)) -> anyhow::Result<Answer> {
    let found = match cluster.get(path).await? {
        Answer::Object(found) => found,
        answer => return Ok(answer),
    };
    let mut owners = found.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(at) = owner(&found, old) {
        owners[at] = json!({
            "apiVersion": Kind::Agent.api_version(), "kind": Kind::Agent.as_str(), "name": text(&found, "/metadata/name"), "uid": new,
            "controller": true, "blockOwnerDeletion": true,
        });
    } else if owner(&found, new).is_none() {
        return Ok(Answer::Refused(409, "it has another owner by now".to_owned()));
    }
    let metadata = json!({
        "uid": found["metadata"]["uid"], "resourceVersion": found["metadata"]["resourceVersion"], "ownerReferences": owners,
        "labels": {keys::LABEL_BEEAI_GROUP: Value::Null},
    });
    cluster.merge(path, &json!({"metadata": metadata}), MANAGER).await
}
