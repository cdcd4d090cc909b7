//! The running Deployments and Services of a namespace's BeeAI Agents get other owners, or those of before, and no Pod notices.
//!
//! ```text
//! names ─► scene (what stands) ─► plan (pure) ─┬─► printed
//!            ▲                                 └─► with --yes: the first write that is not done ─┐
//!            └───────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Promises: without `--yes` nothing is written; what is done is read from the objects after each write, so that whatever ends the command,
//! the same command goes on from there, and what became of the Agents before that is printed; one Agent that cannot be handed over keeps no other
//! from it. The Pods' template stays as it is until the new Agent is changed; until then everything can be given back.

mod desk;
mod mark;
mod plan;
mod scene;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::Write;

use serde::Serialize;
use serde_json::Value;

use super::live::list;
use super::{Args, Remark};
use crate::cli::Exit;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::io::{self, Io, shown};
use crate::cli::survey::{annotation, text};
use crate::domain::keys;
use crate::store::Kind;
use desk::Desk;
use plan::{Direction, Plan};
use scene::Scene;

/// How often a write is tried again whose object has changed since it was looked at.
const CONFLICTS: usize = 5;
/// Writes for one Agent: more than there are steps, and than conflicts.
const WRITES: usize = 16;

/// Everything that was planned or done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    namespace: String,
    /// `hand-over` or `undo`.
    direction: &'static str,
    agents: Vec<Handed>,
}

/// One Agent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Handed {
    name: String,
    /// Group of the Agent of BeeAI.
    group: &'static str,
    /// `planned`, `done`, `blocked` or `refused`.
    outcome: &'static str,
    /// What stands in the way, or what the API server said.
    obstacles: Vec<String>,
    steps: Vec<StepReport>,
    /// What means something else under the new Agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<Remark>,
}

#[derive(Debug, Serialize)]
struct StepReport {
    what: String,
    /// `planned` or `done`.
    outcome: &'static str,
}

/// Plans, and with `--yes` carries out.
pub(super) async fn run(cluster: &Cluster, args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let namespace = args.namespace.clone().unwrap_or_else(|| cluster.namespace.clone());
    let direction = if args.undo { Direction::Back } else { Direction::Over };
    let mut notes = Vec::new();
    let mut objects = Vec::new();
    for kind in [Kind::BeeaiAgent, Kind::BeeaiCompatAgent, Kind::Agent] {
        let all = list(cluster, kind, &namespace, &mut notes).await?;
        objects.extend(all.into_iter().map(|object| (kind, object)));
    }
    // Whoever hands over may do so without a right to read the namespace itself.
    if objects.is_empty() && args.namespace.is_some() {
        cluster.expect_namespace(&namespace, &mut notes).await?;
    }
    let mut builds = Vec::new();
    for kind in [Kind::BeeaiBuild, Kind::BeeaiCompatBuild] {
        builds.extend(list(cluster, kind, &namespace, &mut notes).await?);
    }
    let mut report = Report {
        namespace: namespace.clone(),
        direction: if args.undo { "undo" } else { "hand-over" },
        agents: Vec::new(),
    };
    let mut broken = None;
    for (kind, name) in concerned(&objects, direction) {
        if args.name.as_deref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        match one(cluster, (&namespace, kind, &name), (&builds, direction), args.yes).await {
            Ok(handed) => report.agents.push(handed),
            // What became of the others is printed first.
            Err(error) => {
                let words = format!(
                    "Agent {name} and those behind it: what became of them is not known, and this goes on where it stopped"
                );
                broken = Some(error.context(words));
                break;
            }
        }
    }
    io::print(args.output, &report, io.out, |out| table(out, &report))?;
    for note in &notes {
        writeln!(io.err, "drawbridge: {}", shown(note))?;
    }
    if let Some(error) = broken {
        return Err(error);
    }
    let planned = report.agents.iter().filter(|agent| agent.outcome == "planned").count();
    if report.agents.is_empty() {
        writeln!(io.err, "drawbridge: {}", nobody((&namespace, args.name.as_deref()), direction, notes.is_empty()))?;
    } else if planned > 0 {
        writeln!(
            io.err,
            "Nothing was changed; --yes carries this out for {planned} of {} Agents.",
            report.agents.len()
        )?;
    }
    let failed = report.agents.iter().any(|agent| matches!(agent.outcome, "refused" | "blocked"));
    Ok(cluster.seen_all_or_partial(if failed { Exit::Findings } else { Exit::Ok }))
}

/// That no Agent is concerned: none of that name, where one is given, and none that was seen, where not everything could be.
fn nobody((namespace, name): (&str, Option<&str>), direction: Direction, seen_all: bool) -> String {
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    let seen = if seen_all { "" } else { " that could be read" };
    let what = match direction {
        Direction::Over => "is of BeeAI",
        Direction::Back => "was handed over",
    };
    format!("no Agent{name}{seen} in namespace {namespace} {what}")
}

/// The names that a direction concerns, with the kind of the Agent of BeeAI.
fn concerned(objects: &[(Kind, Value)], direction: Direction) -> BTreeSet<(Kind, String)> {
    let mut names = BTreeSet::new();
    for (kind, object) in objects {
        let name = text(object, "/metadata/name").to_owned();
        let mark = mark::Mark::on(object);
        match (kind, direction) {
            (Kind::Agent, Direction::Over) => {
                names.extend(mark.map(|mark| (mark.kind(), name)));
            }
            // A mark that nobody can read is said, too.
            (Kind::Agent, Direction::Back) => {
                let marked = annotation(object, keys::ANNOTATION_HANDED_OVER_FROM).is_some();
                let of = mark.map_or(Kind::BeeaiAgent, |mark| mark.kind());
                names.extend(marked.then_some((of, name)));
            }
            (kind, Direction::Over) => {
                names.insert((*kind, name));
            }
            (kind, Direction::Back) => {
                let held = annotation(object, keys::ANNOTATION_HAND_OVER).is_some();
                names.extend(held.then_some((*kind, name)));
            }
        }
    }
    names
}

/// Plans for one name, and carries out.
async fn one(
    desk: &impl Desk,
    (namespace, kind, name): (&str, Kind, &str),
    (builds, direction): (&[Value], Direction),
    yes: bool,
) -> anyhow::Result<Handed> {
    let read = || Scene::read(desk, (namespace, kind, name), builds);
    let mut scene = read().await?;
    scene.judged(desk, direction).await?;
    let first = direction.plan(&scene);
    let mut handed = Handed {
        name: name.to_owned(),
        group: kind.group(),
        outcome: "planned",
        obstacles: first.obstacles.clone(),
        steps: Vec::new(),
        remarks: first.remarks.clone(),
    };
    let mut plan = first;
    if plan.is_done() && plan.obstacles.is_empty() {
        handed.outcome = "done";
    } else if !plan.obstacles.is_empty() {
        handed.outcome = "blocked";
    } else if yes {
        let (mut writes, mut conflicts) = (0, 0);
        handed.outcome = loop {
            let Some(action) = plan.next().filter(|_| plan.obstacles.is_empty()) else {
                handed.obstacles.clone_from(&plan.obstacles);
                break if plan.is_done() { "done" } else { "blocked" };
            };
            writes += 1;
            if writes > WRITES {
                handed.obstacles = vec![format!(
                    "what was written does not stand: somebody takes it back each time. What to do: look who writes the Agents, the Deployment and \
                     the Service of that name (kubectl -n {namespace} get deployment {name} -o yaml --show-managed-fields), have that stopped, and \
                     run this again"
                )];
                break "refused";
            }
            match desk.act(action).await? {
                // It has changed since it was looked at, or somebody was faster.
                Answer::Refused(409, _) if conflicts < CONFLICTS => conflicts += 1,
                Answer::Refused(code, message) => {
                    handed.obstacles = vec![format!(
                        "the API server refuses ({code}: {message}). What to do: settle that, and run this again: it goes on where it stopped"
                    )];
                    break "refused";
                }
                Answer::Object(_) | Answer::Absent => {}
            }
            plan = direction.plan(&read().await?);
        };
    }
    handed.steps = steps(&plan);
    Ok(handed)
}

fn steps(plan: &Plan) -> Vec<StepReport> {
    let step = |step: &plan::Step| StepReport {
        what: step.what.clone(),
        outcome: if step.state.is_ok() { "done" } else { "planned" },
    };
    plan.steps.iter().map(step).collect()
}

fn table(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    for agent in &report.agents {
        writeln!(out, "{:8} Agent {}/{} of {}", agent.outcome, report.namespace, agent.name, agent.group)?;
        for obstacle in &agent.obstacles {
            writeln!(out, "         in the way: {}", shown(obstacle))?;
        }
        let begun = agent.steps.iter().any(|step| step.outcome == "done");
        if agent.outcome != "done" && (begun || agent.obstacles.is_empty()) {
            for step in &agent.steps {
                writeln!(out, "         {:8} {}", step.outcome, shown(&step.what))?;
            }
        }
        for remark in &agent.remarks {
            writeln!(out, "         note: {}: {}", shown(&remark.path), shown(&remark.text))?;
        }
    }
    Ok(())
}
