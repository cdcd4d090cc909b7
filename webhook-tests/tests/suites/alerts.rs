//! The alert rules: promtool reads them, and every alert fires when it should and is silent when it should be.

use std::path::{Path, PathBuf};
use std::process::Command;

use drawbridge::cli::alerts::{self, rules::ALERTS};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The pinned promtool, or what to run to have it.
fn promtool() -> PathBuf {
    let script = root().join("webhook-tests/peers/install-promtool");
    let asked = Command::new(&script).arg("--where").output().unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim())
}

fn run(arguments: &[&str]) -> String {
    let ran = Command::new(promtool()).args(arguments).current_dir(root()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "promtool {}:\n{said}", arguments.join(" "));
    said
}

#[test]
fn promtool_accepts_the_rules_and_finds_nothing_to_lint() {
    let said = run(&["check", "rules", "--lint=all", "--lint-fatal", "manifests/monitoring/alerts.yaml"]);
    assert!(said.contains(&format!("{} rules found", ALERTS.len())), "{said}");
}

#[test]
fn every_alert_fires_when_it_should() {
    let said = run(&["test", "rules", "webhook-tests/alerts/tests.yaml"]);
    assert!(said.contains("SUCCESS"), "{said}");
}

/// An alert without a case that makes it fire and one that does not is not tested.
#[test]
fn every_alert_has_its_cases() {
    let tests = std::fs::read_to_string(root().join("webhook-tests/alerts/tests.yaml")).unwrap();
    let cases: Value = serde_saphyr::from_str(&tests).unwrap();
    let silent = cases["tests"][0]["alert_rule_test"].as_array().unwrap();
    for alert in ALERTS {
        assert!(silent.iter().any(|case| case["alertname"] == alert.name), "no case in which {} is silent", alert.name);
        let rest = &tests[tests.find("\n- name: the counter appears").unwrap()..];
        assert!(rest.contains(alert.name), "no case in which {} fires", alert.name);
    }
}

#[test]
fn the_committed_file_and_the_prometheus_rule_are_the_same_rules() {
    let file = std::fs::read_to_string(root().join("manifests/monitoring/alerts.yaml")).unwrap();
    let file: Value = serde_saphyr::from_str(&file).unwrap();
    assert_eq!(file, alerts::rule_file());
    assert_eq!(alerts::prometheus_rule("monitoring")["spec"], file);
}
