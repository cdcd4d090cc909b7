//! Namespaces that are being deleted: what is left in them goes with them, so nothing there is a finding.
//!
//! In: the Namespaces that a question is about, and a report. Out: their names, and the report without what is in them.

use serde_json::Value;

use super::Report;
use crate::cli::survey::text;

/// The names of those that are being deleted, in order.
pub(super) fn names(namespaces: &[Value]) -> Vec<String> {
    let going = namespaces.iter().filter(|one| one.pointer("/metadata/deletionTimestamp").is_some());
    let mut names: Vec<_> = going.map(|one| text(one, "/metadata/name").to_owned()).collect();
    names.sort_unstable();
    names
}

/// The report, and nothing in it of what is in those namespaces.
pub(super) fn left_out(mut report: Report, terminating: Vec<String>) -> Report {
    let stays = |namespace: &String| !terminating.contains(namespace);
    report.workloads.retain(|row| stays(&row.namespace));
    report.builds.retain(|row| stays(&row.namespace));
    report.cards.retain(|row| stays(&row.namespace));
    report.kaos.retain(|row| stays(&row.namespace));
    report.trust.retain(|row| stays(&row.namespace));
    Report { terminating, ..report }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::card::row::CardRow;

    #[test]
    fn answers_24_what_is_in_a_namespace_that_is_being_deleted_is_no_finding() {
        let namespaces = [
            json!({"metadata": {"name": "z", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            json!({"metadata": {"name": "b"}}),
            json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        ];
        let going = names(&namespaces);
        assert_eq!(going, ["a", "z"]);
        let card = |namespace: &str| CardRow::of(&json!({"metadata": {"name": "c", "namespace": namespace}}));
        let report = Report { cards: ["a", "b", "z"].map(card).into(), ..Report::default() };
        let report = left_out(report, going);
        assert_eq!(report.cards.iter().map(|row| &*row.namespace).collect::<Vec<_>>(), ["b"]);
        assert_eq!(report.terminating, ["a", "z"]);
    }
}
