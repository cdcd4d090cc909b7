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
