//! Is what is enrolled protected? Duplicates, AgentRuntimes that are not ready, Pods without sidecars, and namespaces whose Pod Security
//! level refuses them. The rows are those of `drawbridge status`.

use std::collections::BTreeMap;

use super::Visit;
use crate::cli::status::{self, By, Report, Row};
use crate::domain::reason::Reason;

/// More than this many names are not read.
const NAMED: usize = 10;

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let mut report = Report::default();
    for namespace in visit.places() {
        let more = status::everything(&visit.cluster, &namespace, &visit.operator).await?;
        report.workloads.extend(more.workloads);
        report.cards.extend(more.cards);
        report.notes.extend(more.notes.into_iter().filter(|note| !report.notes.contains(note)).collect::<Vec<_>>());
    }
    if !report.notes.is_empty() {
        let remedy = "correct what is named, or run doctor as somebody who may list workloads, Pods and AgentRuntimes";
        visit.unknown("enrolled workloads", report.notes.join("; "), remedy);
    }
    judge(visit, &report);
    Ok(())
}

fn judge(visit: &mut Visit, report: &Report) {
    let rows = &report.workloads;
    // What could not be read may hold anything: only what is found is said.
    let is_whole = report.notes.is_empty();
    let names = |holds: &dyn Fn(&&Row) -> bool| named(rows.iter().filter(holds));
    let duplicates = names(&|row| !row.enrolled_by.duplicates.is_empty());
    match duplicates {
        None if !is_whole => {}
        None => visit.ok("AgentRuntimes on one target", "no workload has more than one"),
        Some(seen) => visit.finding(
            "AgentRuntimes on one target",
            format!("more than one AgentRuntime points at {seen}; the oldest governs it"),
            "delete the younger ones: drawbridge status -A -o yaml names them under duplicates",
        ),
    }
    let refused: BTreeMap<&str, &Row> = rows
        .iter()
        .filter(|row| row.reason == Reason::PodSecurityForbids.code())
        .map(|row| (row.namespace.as_str(), row))
        .collect();
    for (namespace, row) in refused {
        visit.finding(
            &format!("Pod Security of {namespace} and {}/{}", row.kind, row.name),
            row.message.clone(),
            REMEDY,
        );
    }
    let old = |row: &&Row| row.enrolled_by.by == By::WorkloadLabel && row.reason == Reason::EnrolmentPending.code();
    match names(&old) {
        None if !is_whole => {}
        None => visit.ok("labels on workloads themselves", "every label that asks for enrolment has taken effect"),
        Some(seen) => visit.finding("labels on workloads themselves", format!("not enrolled: {seen}"), OLD_LABELS),
    }
    let not_ready = names(&|row| row.ready == Some(false));
    match not_ready {
        None if !is_whole => {}
        None => visit.ok("AgentRuntimes that say they are not ready", "none"),
        Some(seen) => {
            visit.finding("AgentRuntimes that say they are not ready", seen, "drawbridge status -A shows why for each");
        }
    }
    let cards = report.cards.iter().filter(|card| card.attention);
    match listed(cards.map(|card| format!("{} in {}", card.name, card.namespace))) {
        None if !is_whole => {}
        None => visit.ok("AgentCards", "none needs a person"),
        Some(seen) => {
            visit.finding(
                "AgentCards",
                format!("not read, not verified or not bound: {seen}"),
                "drawbridge explain agentcard/NAME shows why",
            );
        }
    }
    match names(&|row| row.pods.unprotected > 0) {
        None if !is_whole => {}
        None => visit.ok("Pods without sidecars", "every Pod of an enrolled workload has them"),
        Some(seen) => visit.finding(
            "Pods without sidecars",
            format!("enrolled workloads run unprotected Pods: {seen}"),
            "kubectl rollout restart those workloads; those that are rolling now need nothing",
        ),
    }
}

const OLD_LABELS: &str = "drawbridge status -A shows why for each: labels from before this installation roll nobody until they are \
                          written anew, or enrolment.byWorkloadLabel is set in the platform file (true enrols them all in waves, false \
                          leaves such labels to discovery)";
const REMEDY: &str = "set pod-security.kubernetes.io/enforce=privileged on the namespace, or choose mode proxy-sidecar, which passes restricted";

/// The names of some rows; `None` for none.
fn named<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<String> {
    listed(rows.map(|row| format!("{}/{} in {}", row.kind, row.name, row.namespace)))
}

/// Names in a row, no more than are read; `None` for none.
pub(super) fn listed(names: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = names.collect();
    match all.len() {
        0 => None,
        count if count > NAMED => Some(format!("{} and {} more", all[..NAMED].join(", "), count - NAMED)),
        _ => Some(all.join(", ")),
    }
}
