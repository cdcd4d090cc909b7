//! `drawbridge explain agent.kaos.tools/NAME`, `modelapi/NAME`, `mcpserver/NAME`: what is made of an object of KAOS, and why it waits.
//!
//! In: the object, what it names, what was made for it and the platform file, as the cluster has them now. Out: one line for each thing that has
//! to be so, every variable of its container with the field that it came from, its address and its route. Promises: it is composed here by the
//! functions of the controllers, so the answer is there while no operator runs; a literal that may be a credential is never printed.

mod facts;
mod origin;
mod told;

use std::io::{Result as Written, Write};

use serde::Serialize;
use serde_json::Value;

use super::card::{Check, State};
use crate::api::kaos_tools::migrate::is_kaos;
use crate::cli::cluster::{self, ClusterArgs};
use crate::cli::io::{self, Io, Tone, shown};
use crate::cli::offline::review;
use crate::cli::survey::text;
use crate::cli::{Exit, Format};
use crate::config::snapshot::Snapshot;
use crate::domain::printable::printable;
use crate::store::Kind;
use crate::workloads::kaos::settings::Settings;

/// Longest text of others on one line.
const LINE: usize = 600;

/// A variable of the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Variable {
    name: String,
    /// Its text, or where it is read from.
    value: String,
    /// The field that it came from.
    from: String,
}

/// An old spelling that the object uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Spelling {
    path: String,
    /// The field or fields that mean it today.
    means: String,
}

/// What is printed.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Told {
    subject: String,
    /// `status.phase` and `status.message`.
    says: String,
    checks: Vec<Check>,
    /// Where it is reached inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// What is made for it.
    objects: Vec<String>,
    environment: Vec<Variable>,
    old_spellings: Vec<Spelling>,
    notes: Vec<String>,
}

/// The kind of KAOS that a person means by that word.
pub(super) fn kind_of_word(word: &str) -> Option<Kind> {
    let kinds = [Kind::KaosAgent, Kind::ModelApi, Kind::McpServer];
    kinds.into_iter().find(|kind| kind.descriptor().words.contains(&word))
}

/// Explains.
///
/// # Errors
/// When the cluster does not answer, or there is no such object.
pub(super) fn explain(
    (kind, name): (Kind, &str),
    (namespace, operator): (Option<&str>, &str),
    cluster: &ClusterArgs,
    output: Format,
    io: &mut Io<'_>,
) -> anyhow::Result<Exit> {
    cluster::block_on(async {
        let cluster = cluster.connect().await?;
        let namespace = namespace.unwrap_or(&cluster.namespace).to_owned();
        let facts = facts::read(&cluster, (kind, &namespace, name), operator).await?;
        let told = told::told(&facts);
        let failed = told.checks.iter().any(|check| check.state == State::Failed);
        let marks = marks(io);
        io::print(output, &told, io.out, |out| tree(out, &told, &marks))?;
        Ok(cluster.seen_all_or_partial(if failed { Exit::Findings } else { Exit::Ok }))
    })
}

/// What is said of every object of KAOS among manifests.
///
/// # Errors
/// When one of them cannot be written as JSON.
pub(super) fn of_manifests(
    objects: &[Value],
    namespace: &str,
    (settings, operator): (&Settings, &str),
    snapshot: &Snapshot,
) -> anyhow::Result<Vec<Told>> {
    let placed = |object: &Value| {
        let mut object = object.clone();
        if text(&object, "/metadata/namespace").is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    };
    let objects: Vec<Value> = objects.iter().filter(|object| object["metadata"].is_object()).map(placed).collect();
    let kind = |object: &Value| match text(object, "/kind") {
        "Agent" => Kind::KaosAgent,
        "ModelAPI" => Kind::ModelApi,
        _ => Kind::McpServer,
    };
    let ours = objects.iter().filter(|object| is_kaos(object));
    let told = |object: &Value| {
        let mut told = told::told(&facts::of_manifests((kind(object), object), &objects, (settings, operator)));
        // Of a cluster it says whose the Deployment is.
        let named = review::namesakes(object, namespace, snapshot)?;
        told.notes.extend(named.iter().map(ToString::to_string));
        anyhow::Ok(told)
    };
    ours.map(told).collect()
}

impl Told {
    /// Something of it cannot be made as it is.
    pub(super) fn has_findings(&self) -> bool {
        self.checks.iter().any(|check| check.state == State::Failed)
    }
}

/// The words that stand before each check.
pub(super) fn marks(io: &Io<'_>) -> [String; 3] {
    [("ok", Tone::Good), ("fails", Tone::Bad), ("-", Tone::Faint)]
        .map(|(word, tone)| io.paint(tone, &format!("{word:<5}")))
}

/// Prints one as a tree.
pub(super) fn tree(out: &mut dyn Write, told: &Told, [good, bad, unknown]: &[String; 3]) -> Written<()> {
    printed(out, told, [good, bad, unknown])
}

fn printed(out: &mut dyn Write, told: &Told, [good, bad, unknown]: [&str; 3]) -> Written<()> {
    let line = |text: &str| printable(text, LINE).to_string();
    writeln!(out, "{}", line(&told.subject))?;
    writeln!(out, "  {}", line(&told.says))?;
    for Check { name, state, text, remedy } in &told.checks {
        let mark = match state {
            State::Ok => good,
            State::Failed => bad,
            State::Unknown => unknown,
        };
        writeln!(out, "  {mark} {name:<12} {}", line(text))?;
        if let Some(remedy) = remedy {
            writeln!(out, "        what would change it: {}", line(remedy))?;
        }
    }
    if let Some(endpoint) = &told.endpoint {
        writeln!(out, "  address: {}", line(endpoint))?;
    }
    if !told.objects.is_empty() {
        writeln!(out, "  made of it: {}", shown(&told.objects.join(", ")))?;
    }
    if !told.environment.is_empty() {
        writeln!(out, "  environment, in its order, each with the field that it came from:")?;
        let width = told.environment.iter().map(|one| one.name.chars().count()).max().unwrap_or(0).min(44);
        for Variable { name, value, from } in &told.environment {
            writeln!(out, "    {:<width$}  {}  <- {}", shown(name), line(value), line(from))?;
        }
    }
    for Spelling { path, means } in &told.old_spellings {
        writeln!(out, "  old spelling: {} means {means}", line(path))?;
    }
    told.notes.iter().try_for_each(|note| writeln!(out, "note: {}", line(note)))
}

#[cfg(test)]
mod tests;
