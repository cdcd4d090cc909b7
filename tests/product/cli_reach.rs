//! `explain reach`: whether one reaches the other, by manifests.

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::{Cli, Exit, conclude};
use serde_json::Value;

fn run(arguments: &[&str], input: &str) -> (Exit, String, String) {
    let words = ["drawbridge", "explain", "reach", "-f", "-"].into_iter().chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let result = cli.command.run(&mut io);
    let exit = conclude(result, &mut io);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

const WORLD: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: weather, namespace: team1}
spec:
  template:
    metadata: {labels: {app: weather}}
    spec: {containers: [{name: c, image: i, ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: caller, namespace: team2, labels: {app: caller}}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: node, namespace: team2}
spec: {hostNetwork: true, containers: [{name: c, image: i}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny, namespace: team1}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: http, namespace: team1}
spec:
  podSelector: {matchLabels: {app: weather}}
  ingress:
  - from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team2}}, podSelector: {matchLabels: {app: caller}}}]
    ports: [{port: http}]
  - from: [{podSelector: {}}]
";

#[test]
fn the_exit_code_says_whether_it_is_reached() {
    for (from, to, exit) in [
        ("team2/caller", "team1/weather", Exit::Ok),
        ("team2/caller", "team1/weather:8080", Exit::Ok),
        ("team2/caller", "team1/weather:http", Exit::Ok),
        ("team2/caller", "team1/weather:8081", Exit::Findings),
        ("team2/caller", "team1/weather:8080/UDP", Exit::Findings),
        ("192.0.2.1", "team1/weather:8080", Exit::Findings),
        ("team1/weather", "192.0.2.1:443", Exit::Ok),
        ("team2/node", "team1/weather", Exit::Partial),
        ("team2/nobody", "team1/weather", Exit::Usage),
        ("192.0.2.1", "192.0.2.2", Exit::Usage),
    ] {
        let (seen, out, err) = run(&[from, to], WORLD);
        assert_eq!(seen, exit, "{from} {to}: {out}{err}");
    }
}

#[test]
fn the_rules_that_decide_are_named_for_people_and_programs() {
    let (_, out, err) = run(&["team2/caller", "team1/weather:8081"], WORLD);
    for words in [
        "team2/pod/caller to team1/deployment/weather:8081/TCP: cut (from objects, not from traffic)",
        "team1/deployment/weather has no Pods: what its template would make is judged",
        "Egress of team2/caller: every port, no policy isolates it",
        "Ingress of team1/weather: 8080/TCP, isolated by team1/deny, team1/http",
        "team1/http rule 0 lets through 8080/TCP: Pods app=caller of namespaces kubernetes.io/metadata.name=team2",
        "team1/http rule 1 is for others: every Pod of namespace team1",
    ] {
        assert!(out.contains(words), "{words}\n{out}{err}");
    }
    let (_, out, _) = run(&["team2/caller", "team1/weather:8081", "-o", "json"], WORLD);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&answer["basis"], &answer["reachable"]), (&"from objects, not from traffic".into(), &false.into()));
    let pair = &answer["pairs"][0];
    assert_eq!(
        (&pair["ports"][0], &pair["paths"][0]["ingress"]["rules"][0]["policy"]),
        (&"8080/TCP".into(), &"team1/http".into())
    );
}

#[test]
fn a_policy_that_cannot_be_read_is_said_and_nothing_is_certain() {
    let bad = "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: bad, namespace: team1}\nspec: {policyTypes: [Both]}\n";
    let (exit, out, _) = run(&["team2/caller", "team1/weather:8080"], &format!("{WORLD}{bad}"));
    assert_eq!(exit, Exit::Partial);
    assert!(out.contains("not seen: NetworkPolicy team1/bad: spec.policyTypes[0]"), "{out}");
}
