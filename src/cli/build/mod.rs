//! `drawbridge build`: start, stop, read and understand the builds of AgentBuilds.
//!
//! In: a cluster. Out: what was done, the lines of a build's Pods, what would be built and why, or what an image was made of. Writes annotations of
//! the AgentBuild, nothing else; the controller does the rest.

mod asking;
mod explain;
mod logs;
mod news;
mod provenance;

use std::io::Write;

use anyhow::{Context, bail};
use serde_json::Value;

use super::cluster::watch::Collection;
use super::cluster::{self, Answer, Cluster, ClusterArgs};
use super::given;
use super::io::Io;
use super::{Exit, Format, Unseen, survey};
use crate::pipelines::beeai_build::front;
use crate::pipelines::request::{FrontEnd, KAGENTI};
use crate::store::Kind;

/// Arguments of `build`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done about a build.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Start a build anew, whether or not anything has changed; one that runs is cancelled first.
    Run(asking::Args),
    /// Start a build anew that failed or was cancelled.
    Retry(asking::Args),
    /// Cancel a build that runs or waits.
    Cancel(Of),
    /// Print what the Pods of the last build wrote, task by task.
    Logs(logs::Args),
    /// Show each parameter with the place it came from, and the PipelineRun that is composed of them.
    Explain(explain::Args),
    /// Show what the image of a build was made of: commit, Dockerfile, arguments, steps and images by digest, and which run made it.
    Provenance(Of),
}

/// Which AgentBuild, and how to print.
#[derive(Debug, clap::Args)]
pub struct Of {
    /// Name of the AgentBuild.
    #[arg(value_parser = given::name)]
    pub name: String,
    /// Namespace; default is that of the context.
    #[arg(short, long, value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// Group of the AgentBuild, where several groups have one of the name.
    #[arg(long, value_name = "GROUP", value_parser = KINDS.map(Kind::group))]
    pub group: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Does it.
///
/// # Errors
/// When the cluster does not answer, or there is no such AgentBuild.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    cluster::block_on(async {
        match args.verb {
            Verb::Run(args) => asking::start(args, false, io).await,
            Verb::Retry(args) => asking::start(args, true, io).await,
            Verb::Cancel(of) => asking::cancel(of, io).await,
            Verb::Logs(args) => logs::print(args, io).await,
            Verb::Explain(args) => explain::explain(args, io).await,
            Verb::Provenance(of) => provenance::provenance(of, io).await,
        }
    })
}

/// The kinds of AgentBuild.
const KINDS: [Kind; 3] = [Kind::AgentBuild, Kind::BeeaiBuild, Kind::BeeaiCompatBuild];

/// An AgentBuild of a cluster.
struct Found {
    cluster: Cluster,
    kind: Kind,
    namespace: String,
    name: String,
    object: Value,
}

impl Of {
    async fn find(&self, follow: bool) -> anyhow::Result<Found> {
        let cluster = if follow { self.cluster.connect_to_follow().await? } else { self.cluster.connect().await? };
        let namespace = self.namespace.clone().unwrap_or_else(|| cluster.namespace.clone());
        let wanted = |kind: &Kind| self.group.as_deref().is_none_or(|group| group == kind.group());
        let mut there = Vec::new();
        let mut refused = None;
        for kind in KINDS.into_iter().filter(wanted) {
            match cluster.get(&format!("{}/{}", kind.path(&namespace), self.name)).await? {
                Answer::Object(object) => there.push((kind, object)),
                Answer::Absent => {}
                Answer::Refused(code, message) => {
                    refused.get_or_insert(format!(
                        "{} of {} cannot be read ({code}: {message})",
                        kind.plural(),
                        kind.group()
                    ));
                }
            }
        }
        if there.len() > 1 {
            let groups: Vec<_> = there.iter().map(|(kind, _)| kind.group()).collect();
            bail!("AgentBuild {} exists in {}; choose one with --group", self.name, groups.join(" and in "));
        }
        match (there.pop(), refused) {
            (Some((kind, object)), _) => Ok(Found { cluster, kind, namespace, name: self.name.clone(), object }),
            (None, Some(refused)) => Err(Unseen(refused).into()),
            (None, None) => {
                cluster.expect_namespace(&namespace, &mut Vec::new()).await?;
                bail!(
                    "AgentBuild {} does not exist in namespace {namespace}; kubectl get agentbuilds -A shows those that do",
                    self.name
                )
            }
        }
    }
}

impl Found {
    fn path(&self) -> String {
        format!("{}/{}", self.kind.path(&self.namespace), self.name)
    }

    fn collection(&self) -> Collection {
        let kind = self.kind;
        Collection {
            group: kind.group(),
            version: kind.version(),
            kind: kind.as_str(),
            plural: kind.plural(),
            namespace: self.namespace.clone(),
        }
    }

    /// The object as it is now.
    async fn read(&self) -> anyhow::Result<Value> {
        match self.cluster.get(&self.path()).await? {
            Answer::Object(object) => Ok(object),
            Answer::Absent => bail!("AgentBuild {} in namespace {} is gone", self.name, self.namespace),
            Answer::Refused(code, message) => {
                Err(Unseen(format!("{} cannot be read ({code}: {message})", self.path())).into())
            }
        }
    }

    fn status(&self, key: &str) -> &str {
        status(&self.object, key)
    }

    /// The words of its group.
    fn front(&self) -> &'static FrontEnd {
        match self.kind {
            Kind::BeeaiBuild | Kind::BeeaiCompatBuild => front(self.kind.group()),
            _ => &KAGENTI,
        }
    }
}

/// A text of an AgentBuild's status; its phase is said in the words of `agent.kagenti.dev`, whatever its group.
fn status<'v>(object: &'v Value, key: &str) -> &'v str {
    if key == "phase" {
        return survey::phase(object);
    }
    object.get("status").and_then(|status| status.get(key)).and_then(Value::as_str).unwrap_or("")
}

/// Whether the build that the status speaks of has been judged.
fn is_judged(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let mut succeeded = conditions.filter(|one| one["type"] == "BuildSucceeded");
    succeeded.any(|one| one["status"] == "True" || one["status"] == "False")
}

/// Whether a build is still to be judged by itself: one that waits for something to be put right is not.
fn is_under_way(object: &Value) -> bool {
    matches!(status(object, "phase"), "" | "Pending" | "Building")
}

fn line(to: &mut dyn Write, text: &str) -> anyhow::Result<()> {
    writeln!(to, "{text}").context("standard output")
}

#[cfg(test)]
mod tests;
