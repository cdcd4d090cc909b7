//! `drawbridge validate` on AgentCards: what a cluster would say, with lines, without a cluster.

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::{Cli, Exit, conclude};
use serde_json::Value;

/// Exit code, and line, code and text of each finding.
fn validated(input: &str) -> (Exit, Vec<(u64, String, String)>) {
    let cli = Cli::try_parse_from(["drawbridge", "validate", "-o", "json", "-f", "-"]).unwrap();
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let exit = conclude(cli.command.run(&mut io), &mut io);
    let found: Vec<Value> =
        serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&err)));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    (exit, found.iter().map(|one| (one["line"].as_u64().unwrap(), text(one, "code"), text(one, "text"))).collect())
}

fn card(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: agent.kagenti.dev/v1alpha1\nkind: AgentCard\nmetadata: {{name: {name}, namespace: team}}\nspec:\n{spec}"
    )
}

const TARGET: &str = "  targetRef: {apiVersion: apps/v1, kind: Deployment, name: w}\n";

#[test]
fn a_card_in_order_has_no_finding_and_each_fault_its_line() {
    assert_eq!(validated(&card("c", TARGET)), (Exit::Ok, Vec::new()));
    let text = card(
        "c",
        &format!("{TARGET}  syncPeriod: 1ns\n  identityBinding: {{trustDomain: Example.org}}\n  selector: {{}}\n"),
    );
    let (exit, found) = validated(&text);
    assert_eq!(exit, Exit::Findings);
    for (line, code, words) in [
        (6, "FieldInvalid", "spec.syncPeriod is not a time between 5s and 24h"),
        (7, "FieldInvalid", "spec.identityBinding.trustDomain is not a trust domain"),
        (8, "UnknownField", "spec.selector"),
    ] {
        let is = |(at, of, text): &(u64, String, String)| *at == line && of == code && text.contains(words);
        assert!(found.iter().any(is), "{line} {code} {words}: {found:#?}");
    }
    let (_, found) = validated(&card("c", "  syncPeriod: 1m\n"));
    assert!(
        matches!(&found[..], [(_, code, text)] if code == "FieldRequired" && text.contains("spec.targetRef is required")),
        "{found:?}"
    );
    let (_, found) = validated(&card("c", "  targetRef: {kind: Deployment, name: w}\n"));
    assert!(
        found.iter().any(|(line, _, text)| *line == 5 && text.contains("spec.targetRef.apiVersion: is required")),
        "{found:?}"
    );
}

#[test]
fn two_cards_of_one_workload_are_told_on_both_unless_a_controller_made_one() {
    let (one, two) = (card("one", TARGET), card("two", TARGET));
    let (exit, found) = validated(&format!("{one}---\n{two}"));
    assert_eq!(exit, Exit::Findings);
    let named = |name: &str| {
        let is = |(_, code, text): &&(u64, String, String)| {
            code == "DuplicateCard" && text.ends_with(&format!("delete agentcard {name}."))
        };
        found.iter().filter(is).count()
    };
    assert_eq!((named("one"), named("two"), found.len()), (1, 1, 2), "{found:#?}");
    let made =
        one.replace("namespace: team", "namespace: team, labels: {app.kubernetes.io/managed-by: kagenti-operator}");
    let (_, found) = validated(&format!("{made}---\n{two}"));
    assert!(
        found.iter().all(|(_, _, text)| !text.contains("AgentCard two:") && !text.starts_with("AgentCard two")),
        "{found:#?}"
    );
    let elsewhere = two.replace("namespace: team", "namespace: other");
    assert_eq!(validated(&format!("{one}---\n{elsewhere}")), (Exit::Ok, Vec::new()));
}
