//! Builds in `drawbridge status`: a row per AgentBuild.

use std::io::{Result, Write};

use serde::Serialize;
use serde_json::Value;

use super::print::printed;
use crate::cli::io::shown;
use crate::cli::scope::Scope;
use crate::cli::survey::{self, text};
use crate::store::Kind;

/// One AgentBuild.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "every member is documented in `shape::FIELDS`, from which the reference is made")]
pub struct BuildRow {
    pub namespace: String,
    pub kind: &'static str,
    pub name: String,
    pub mode: String,
    pub phase: String,
    pub image: Option<String>,
    pub run: Option<String>,
    pub message: String,
    pub attention: bool,
    pub watched: bool,
}

const HEAD: [&str; 5] = ["NAMESPACE", "BUILD", "MODE", "PHASE", "IMAGE"];

impl BuildRow {
    /// The row of an AgentBuild; where nobody watches and nobody has acted, it says so.
    #[must_use]
    pub(super) fn of(object: &Value, scope: &Scope) -> Self {
        let at = |pointer: &str| text(object, pointer).to_owned();
        let some = |pointer: &str| Some(at(pointer)).filter(|text| !text.is_empty());
        let namespace = at("/metadata/namespace");
        let told = Some(survey::phase(object).to_owned()).filter(|phase| !phase.is_empty());
        let watched = scope.watches(&namespace);
        let waits_in_vain = !watched && told.is_none();
        let phase = told.unwrap_or_else(|| "Pending".to_owned());
        let message = if waits_in_vain { super::rows::not_watched(scope) } else { at("/status/message") };
        Self {
            kind: kind_of(object).label(),
            name: at("/metadata/name"),
            mode: at("/spec/mode"),
            image: some("/status/builtImage"),
            run: some("/status/pipelineRunName"),
            message,
            attention: phase == "Failed" || waits_in_vain,
            watched,
            namespace,
            phase,
        }
    }
}

/// Which kind of AgentBuild an object is; one that does not say is of the first.
fn kind_of(object: &Value) -> Kind {
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    Kind::of(group, Kind::AgentBuild.as_str()).unwrap_or(Kind::AgentBuild)
}

/// The row in the columns of the workloads: its phase under ROLLOUT, its image, or else what its status says, under REASON.
pub(super) fn beside_workloads(row: &BuildRow) -> [String; 10] {
    let dash = || "-".to_owned();
    let words = Some(&row.message).filter(|message| !message.is_empty());
    let says = row.image.as_ref().filter(|_| row.phase == "Succeeded").or(words);
    [
        row.namespace.clone(),
        format!("{}/{}", row.kind, row.name),
        dash(),
        row.mode.clone(),
        dash(),
        dash(),
        dash(),
        dash(),
        row.phase.clone(),
        says.cloned().unwrap_or_else(dash),
    ]
}

/// The builds, and below them what those that failed say; nothing when there are none.
pub(super) fn table(out: &mut dyn Write, rows: &[BuildRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let line = |row: &BuildRow| {
        let image = row.image.clone().unwrap_or_else(|| "-".to_owned());
        printed(&[row.namespace.clone(), row.name.clone(), row.mode.clone(), row.phase.clone(), image])
    };
    let lines: Vec<[String; 5]> = std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(line)).collect();
    let mut widths = [0; 5];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    writeln!(out)?;
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    for row in rows.iter().filter(|row| row.attention) {
        let (name, namespace, message) = (&row.name, &row.namespace, shown(&row.message));
        let logs = match row.phase.as_str() {
            "Failed" => format!("; drawbridge build logs {name} -n {namespace} shows what its Pods wrote"),
            _ => String::new(),
        };
        writeln!(out, "{}/{name} in {namespace}: {message}{logs}", row.kind)?;
    }
    Ok(())
}
