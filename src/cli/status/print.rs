//! Rows as a table for people.
//!
//! Promise: what a status, a spec or an API server says is printed by [`shown`] alone: whoever writes one writes nothing else on this terminal.

use std::io::{Result, Write};

use super::row::{By, Drift, Rollout, Row};
use super::{Report, RolloutState};
use crate::cli::io::{shown, shown_lines};
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;

const HEAD: [&str; 10] =
    ["NAMESPACE", "WORKLOAD", "TYPE", "MODE", "ENROLLED BY", "PROTECTED", "INJECTED", "DRIFT", "ROLLOUT", "REASON"];

/// The whole table, and below it the reason in words of every row that needs a person.
pub(super) fn table(out: &mut dyn Write, report: &Report, colour: bool) -> Result<()> {
    for one in &report.installation {
        writeln!(out, "{}", shown_lines(one, INDENT))?;
    }
    if !report.installation.is_empty() {
        writeln!(out)?;
    }
    if report.workloads.is_empty() {
        let seen = if report.notes.is_empty() { "" } else { " that could be read" };
        writeln!(out, "no workload{seen} is enrolled")?;
    } else {
        let lines: Vec<[String; 10]> = report.workloads.iter().map(|row| printed(&cells(row))).collect();
        let mut widths = HEAD.map(str::len);
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        head(out, &widths)?;
        for (row, line) in report.workloads.iter().zip(&lines) {
            put(out, line, &widths, (row.attention, colour))?;
        }
    }
    for row in report.workloads.iter().filter(|row| row.attention) {
        let line = format!("{}/{} in {}: {}", row.kind, row.name, row.namespace, words(row));
        writeln!(out, "{}", shown_lines(&line, INDENT))?;
    }
    super::builds::table(out, &report.builds)?;
    if !report.cards.is_empty() {
        writeln!(out)?;
        crate::cli::card::row::table(out, &report.cards)?;
    }
    super::kaos::table(out, &report.kaos)?;
    super::trust::table(out, &report.trust)?;
    for namespace in &report.terminating {
        writeln!(out, "namespace {namespace} is being deleted: what is in it is not listed")?;
    }
    report.notes.iter().try_for_each(|note| writeln!(out, "note: {}", shown_lines(note, INDENT)))
}

/// What further lines of one message begin with.
const INDENT: &str = "  ";

/// Cells as they may stand on a line.
pub(super) fn printed<const COLUMNS: usize>(cells: &[String; COLUMNS]) -> [String; COLUMNS] {
    cells.each_ref().map(|cell| shown(cell))
}

/// A table whose rows are printed as they come. Columns stay where they are until a row needs more room; then the head is printed again.
pub(super) struct Flow {
    widths: Option<[usize; 10]>,
    colour: bool,
}

impl Flow {
    /// A table of which nothing is printed yet.
    pub(super) fn new(colour: bool) -> Self {
        Self { widths: None, colour }
    }

    /// Rows that came together: their cells, whether each is gone, and whether it needs a person.
    pub(super) fn rows(&mut self, out: &mut dyn Write, rows: &[([String; 10], bool, bool)]) -> Result<()> {
        let mut wanted = self.widths.unwrap_or(HEAD.map(str::len));
        let rows: Vec<_> = rows.iter().map(|(line, gone, attention)| (printed(line), *gone, *attention)).collect();
        for (line, ..) in &rows {
            // What stands in the last column moves nothing.
            for (width, cell) in wanted.iter_mut().zip(line).take(HEAD.len() - 1) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if self.widths != Some(wanted) && !rows.is_empty() {
            self.widths = Some(wanted);
            head(out, &wanted)?;
        }
        for (mut line, gone, attention) in rows {
            if gone {
                line[9] = "(gone)".to_owned();
            }
            put(out, &line, &wanted, (attention, self.colour))?;
        }
        Ok(())
    }
}

/// The head of the table.
fn head(out: &mut dyn Write, widths: &[usize; 10]) -> Result<()> {
    put(out, &HEAD.map(str::to_owned), widths, (false, false))
}

fn put(
    out: &mut dyn Write,
    line: &[String; 10],
    widths: &[usize; 10],
    (attention, colour): (bool, bool),
) -> Result<()> {
    let text: Vec<String> =
        line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
    let text = text.join("  ");
    let text = text.trim_end();
    if attention && colour { writeln!(out, "\u{1b}[33m{text}\u{1b}[0m") } else { writeln!(out, "{text}") }
}

/// What stands in each column.
pub(super) fn cells(row: &Row) -> [String; 10] {
    let enrolled = match (&row.enrolled_by.by, &row.enrolled_by.agent_runtime) {
        (By::AgentRuntime, Some(name)) => format!("AgentRuntime {name}"),
        (By::WorkloadLabel, _) => "workload label".to_owned(),
        _ => "label".to_owned(),
    };
    let rollout = match row.rollout.state {
        RolloutState::None => "-".to_owned(),
        RolloutState::Complete => "complete".to_owned(),
        state => format!("{} {}/{}", state.as_str(), row.rollout.updated, row.rollout.desired),
    };
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    [
        row.namespace.clone(),
        format!("{}/{}", row.kind, row.name),
        dash(&row.agent_type),
        dash(&row.mode),
        enrolled,
        protected(row).to_owned(),
        format!("{}/{}", row.pods.injected, row.pods.total),
        drift(row),
        rollout,
        row.reason.clone(),
    ]
}

/// Whether it is protected, in one word.
fn protected(row: &Row) -> &'static str {
    match row.protected {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "unknown",
    }
}

fn drift(row: &Row) -> String {
    match row.drift {
        Drift::None => "none".to_owned(),
        Drift::Unprotected => format!("{} unprotected", row.pods.unprotected),
        Drift::Gated => format!("{} gated", row.pods.gated),
        Drift::Outdated => format!("{} outdated", row.pods.outdated),
    }
}

/// How its Pods are replaced.
fn restart(row: &Row) -> String {
    let (kind, name, namespace) = (row.kind.to_lowercase(), &row.name, &row.namespace);
    match row.rollout.state {
        RolloutState::Paused => return format!("kubectl -n {namespace} rollout resume {kind}/{name}"),
        RolloutState::OnDelete => {
            return "its update strategy is OnDelete: delete the Pods, and they are made again".to_owned();
        }
        _ => {}
    }
    let Rollout { held, desired, .. } = row.rollout;
    if held > 0 {
        let lower = format!(
            "its partition keeps {held} of {desired} from being replaced: lower spec.updateStrategy.rollingUpdate.partition of {kind}/{name}"
        );
        let others = format!(", and kubectl -n {namespace} rollout restart {kind}/{name} for the others");
        return if held < desired { lower + &others } else { lower };
    }
    let kinds = WorkloadKind::WITH_TEMPLATE.into_iter().chain([WorkloadKind::Pod]);
    let kind = kinds.into_iter().find(|kind| kind.as_str() == row.kind).unwrap_or(WorkloadKind::Unknown);
    kind.restart(&row.namespace, &row.name)
}

/// Why a row needs a person, and what to do.
fn words(row: &Row) -> String {
    let resource = row.kind.to_lowercase();
    match (row.ready, row.drift) {
        _ if row.reason == Reason::NamespaceNotWatched.code() => row.message.clone(),
        _ if [Reason::LabelIgnored, Reason::UnknownValue].iter().any(|one| one.code() == row.reason) => {
            format!("{}: {}", row.reason, row.message)
        }
        _ if row.cause.is_some() => format!("{}: {}", row.reason, row.message),
        (Some(false), _) => format!("{}: {}", row.reason, row.message),
        _ if [Reason::ConfigOverBound, Reason::NamespaceConfigUnreadable].iter().any(|one| one.code() == row.reason) => {
            format!("{}: {}", row.reason, row.message)
        }
        _ if row.decision == "denied" => row.message.clone(),
        (_, Drift::Gated) => {
            "Pods wait behind the scheduling gate: they were created while no webhook answered; `drawbridge doctor` shows why".to_owned()
        }
        (_, Drift::Unprotected) => {
            format!("Pods run without sidecars; {}", restart(row))
        }
        (_, Drift::Outdated) => format!(
            "Pods run with an earlier configuration; wait for its wave, or {}",
            restart(row)
        ),
        (_, Drift::None) => format!("its rollout makes no progress; kubectl describe {resource}/{} -n {}", row.name, row.namespace),
    }
}
