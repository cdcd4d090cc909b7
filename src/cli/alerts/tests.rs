use std::collections::BTreeSet;

use super::rules::ALERTS;
use crate::cli::reference::metrics::metrics;

/// Words of an expression that look like names of metrics.
fn named(expression: &str) -> Vec<&str> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| ["drawbridge_", "leader_", "controller_"].iter().any(|ours| word.starts_with(ours))).collect()
}

#[test]
fn every_metric_of_ours_in_a_rule_is_registered_by_the_process() {
    let registered = metrics();
    let mut found = 0;
    for alert in ALERTS {
        let expression = (alert.expression)();
        for name in named(&expression) {
            let known = registered.contains_key(name) || registered.contains_key(name.trim_end_matches("_total"));
            assert!(known, "{}: nobody counts {name}", alert.name);
            found += 1;
        }
    }
    assert!(found > 4, "only {found} metrics of ours");
}

/// What the other role, or another program, exposes as well would hide what the rule is about.
#[test]
fn rules_about_one_role_go_by_what_only_that_role_exposes() {
    for alert in ALERTS {
        let expression = (alert.expression)();
        for after in expression.split("leader_election_master_status").skip(1) {
            assert!(after.starts_with("{name=\"drawbridge-controllers\"}"), "{}: {expression}", alert.name);
        }
        let of_webhook = ["DrawbridgeNoReplicaAnswers", "DrawbridgeNobodyLeads", "DrawbridgeCertificateNotTrusted"];
        let goes_by_webhook = expression.contains("drawbridge_connections{port=\"webhook\"}");
        assert_eq!(goes_by_webhook, of_webhook.contains(&alert.name), "{}: {expression}", alert.name);
    }
}

/// Who is woken looks there.
#[test]
fn every_alert_has_its_row_on_the_page_of_troubleshooting() {
    let page = include_str!("../../../docs/troubleshooting.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `Drawbridge")).collect();
    for alert in ALERTS {
        let lasting = if alert.lasting == "0s" { "at once" } else { alert.lasting };
        let head = format!("| `{}` | {}, {lasting} | ", alert.name, alert.severity.as_str());
        let found: Vec<_> = rows.iter().filter_map(|row| row.strip_prefix(&head)).collect();
        let [says] = found[..] else { panic!("docs/troubleshooting.md: {} rows begin with {head}", found.len()) };
        let cells: Vec<_> = says.trim_end_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 2 && cells.iter().all(|cell| cell.len() > 20), "{}: {says}", alert.name);
    }
    assert_eq!(rows.len(), ALERTS.len());
}

#[test]
fn alerts_have_names_of_their_own_and_say_what_to_do() {
    let names: BTreeSet<_> = ALERTS.iter().map(|alert| alert.name).collect();
    assert_eq!(names.len(), ALERTS.len());
    for alert in ALERTS {
        assert!(alert.name.starts_with("Drawbridge"), "{}", alert.name);
        assert!(!alert.summary.is_empty() && alert.remedy.ends_with('.'), "{}", alert.name);
        // One file of rules goes to every installation, and the shipped manifests would undo most of them.
        assert!(!alert.remedy.contains("manifests/"), "{}", alert.name);
    }
}
