//! `drawbridge card list` and `card get`: which agents there are, what they can do, and whether that is signed.
//!
//! In: the AgentCards of a cluster. Out: a row for each, or all of one. Promise: nothing is asked of any agent; what is shown is what the
//! operator has read and judged.

use std::io::{Result as Written, Write};

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use super::row::{self, CardRow};
use crate::cli::cluster::{self, Answer, ClusterArgs};
use crate::cli::given;
use crate::cli::io::{self, Io, shown};
use crate::cli::survey::text;
use crate::cli::{Exit, Format, Unseen};
use crate::domain::printable::printable;
use crate::store::Kind;

#[cfg(test)]
mod tests;

/// Longest text of an agent that is printed on one line.
const LINE: usize = 400;
/// Longest type of a condition that is printed.
const CONDITION: usize = 60;

/// Arguments of `card list`.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Namespace; default is that of the context.
    #[arg(short, long, conflicts_with = "all_namespaces", value_parser = given::namespace)]
    namespace: Option<String>,
    /// Every namespace.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Agents with that skill only, by its id or a tag; can be repeated.
    #[arg(long, value_name = "SKILL")]
    skill: Vec<String>,
    /// Agents whose card is verified only.
    #[arg(long)]
    verified: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Which cluster.
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Arguments of `card get`.
#[derive(Debug, clap::Args)]
pub(super) struct GetArgs {
    /// Name of the AgentCard.
    #[arg(value_parser = given::name)]
    name: String,
    /// Namespace; default is that of the context.
    #[arg(short, long, value_parser = given::namespace)]
    namespace: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Which cluster.
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What `card list` prints.
#[derive(Debug, Serialize)]
struct Listed {
    cards: Vec<CardRow>,
    notes: Vec<String>,
}

/// What `card get` prints.
#[derive(Debug, Serialize)]
struct Whole {
    #[serde(flatten)]
    row: CardRow,
    /// The card as it is published.
    card: Value,
    /// What else the status says.
    status: Value,
}

/// Lists.
///
/// # Errors
/// When the cluster does not answer.
pub(super) fn list(args: ListArgs, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let ListArgs { namespace, all_namespaces, skill, verified, output, cluster } = args;
    cluster::block_on(async {
        let cluster = cluster.connect().await?;
        let namespace = match (all_namespaces, namespace) {
            (true, _) => String::new(),
            (false, Some(name)) => name,
            (false, None) => cluster.namespace.clone(),
        };
        let mut notes = Vec::new();
        if !namespace.is_empty() {
            cluster.expect_namespace(&namespace, &mut notes).await?;
        }
        let objects = cluster.list(&Kind::AgentCard.path(&namespace), &mut notes).await?;
        let listed = Listed { cards: chosen(&objects, &skill, verified), notes };
        io::print(output, &listed, io.out, |out| printed(out, &listed, objects.len()))?;
        Ok(cluster.seen_all_or_partial(Exit::Ok))
    })
}

/// The rows that were asked for, by namespace and name.
fn chosen(objects: &[Value], skills: &[String], verified: bool) -> Vec<CardRow> {
    let mut rows: Vec<_> = objects.iter().map(CardRow::of).collect();
    rows.retain(|row| skills.iter().all(|skill| row.can(skill)) && (!verified || row.verified == Some(true)));
    rows.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    rows
}

fn printed(out: &mut dyn Write, listed: &Listed, all: usize) -> Written<()> {
    match (listed.cards.is_empty(), all) {
        (false, _) => row::table(out, &listed.cards)?,
        (true, 0) => {
            let seen = if listed.notes.is_empty() { "" } else { " that could be read" };
            writeln!(
                out,
                "no AgentCard{seen} here: workloads that say kagenti.io/type=agent and protocol.kagenti.io/a2a get one"
            )?;
        }
        (true, all) => writeln!(out, "none of {all} AgentCards is what was asked for")?,
    }
    listed.notes.iter().try_for_each(|note| writeln!(out, "note: {}", shown(note)))
}

/// Shows one.
///
/// # Errors
/// When the cluster does not answer, or there is no such card.
pub(super) fn get(args: GetArgs, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let GetArgs { name, namespace, output, cluster } = args;
    cluster::block_on(async {
        let cluster = cluster.connect().await?;
        let namespace = namespace.unwrap_or_else(|| cluster.namespace.clone());
        let object = match cluster.get(&format!("{}/{name}", Kind::AgentCard.path(&namespace))).await? {
            Answer::Object(object) => object,
            Answer::Absent => {
                bail!("AgentCard {namespace}/{name} does not exist; drawbridge card list -A shows all of them")
            }
            Answer::Refused(code, message) => {
                return Err(Unseen(format!("AgentCard {namespace}/{name} cannot be read ({code}: {message})")).into());
            }
        };
        let whole = whole(&object);
        io::print(output, &whole, io.out, |out| told(out, &object, &whole.row))?;
        Ok(Exit::Ok)
    })
}

fn whole(object: &Value) -> Whole {
    let mut status = object.get("status").cloned().unwrap_or_default();
    let card = status.as_object_mut().and_then(|members| members.remove("card")).unwrap_or_default();
    Whole { row: CardRow::of(object), card, status }
}

/// A card for people: what the agent says, then what is known about that.
fn told(out: &mut dyn Write, object: &Value, row: &CardRow) -> Written<()> {
    writeln!(out, "AgentCard {}/{}", row.namespace, row.name)?;
    let mut line = |name: &str, words: &str| match words.is_empty() {
        true => Ok(()),
        false => writeln!(out, "  {:<18} {}", printable(name, CONDITION), printable(words, LINE)),
    };
    let of = |pointer: &str| text(object, pointer);
    line("agent", format!("{} {}", of("/status/card/name"), of("/status/card/version")).trim())?;
    line("description", of("/status/card/description"))?;
    line("workload", row.target.as_deref().unwrap_or_default())?;
    line("protocol", row.protocol.as_deref().unwrap_or_default())?;
    line("url", of("/status/card/url"))?;
    line("url, as served", of("/status/servedUrl"))?;
    for endpoint in object.pointer("/status/endpoints").and_then(Value::as_array).into_iter().flatten() {
        line("endpoint", format!("{} {}", text(endpoint, "/transport"), text(endpoint, "/url")).trim())?;
    }
    for (skill, says) in row.skills.iter().zip(descriptions(object)) {
        let tags = if skill.tags.is_empty() { String::new() } else { format!(" [{}]", skill.tags.join(", ")) };
        line("skill", format!("{} ({}){tags} {says}", skill.id, skill.name).trim())?;
    }
    line("signed by", of("/status/signatureSpiffeId"))?;
    line("has to be signed by", of("/status/expectedSpiffeID"))?;
    line("last change", of("/status/lastSyncTime"))?;
    for one in object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten() {
        let words = format!("{} {}: {}", text(one, "/status"), text(one, "/reason"), text(one, "/message"));
        line(text(one, "/type"), words.trim_end_matches([' ', ':']))?;
    }
    if row.attention {
        writeln!(out, "drawbridge explain agentcard/{} -n {} shows what would change that", row.name, row.namespace)?;
    }
    Ok(())
}

fn descriptions(object: &Value) -> impl Iterator<Item = &str> {
    let skills = object.pointer("/status/card/skills").and_then(Value::as_array);
    skills.into_iter().flatten().map(|skill| text(skill, "/description"))
}
