//! The shape of the JSON, and the tables.

use super::*;

/// Every path of a value, lists as `[]`.
fn paths(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            paths(&below, value, found);
        }),
        Value::Array(items) => items.iter().for_each(|value| paths(&format!("{path}[]"), value, found)),
        _ => {
            found.insert(path.to_owned());
        }
    }
}

#[test]
fn what_is_printed_as_json_is_what_is_documented() {
    let seen = Seen {
        agent_runtimes: vec![agent_runtime("a", "w", "1"), agent_runtime("b", "w", "2")],
        workloads: vec![deployment("w", json!({}))],
        ..Seen::default()
    };
    let report = Report {
        installation: vec!["x".to_owned()],
        workloads: told(&seen),
        builds: vec![BuildRow::of(&json!({}), &Scope::default())],
        cards: vec![CardRow::of(&json!({"status": {"card": {"skills": [{"tags": ["x"]}]}}}))],
        kaos: super::super::kaos::rows(
            &[(
                crate::store::Kind::KaosAgent,
                &json!({"metadata": {"name": "a"}, "spec": {"modelAPI": "m"}, "status": {
                "takeover": {"changes": ["x"]}, "conditions": [{"type": "TakeoverPending", "status": "True"}]}}),
            )],
            &Scope::default(),
        ),
        trust: vec![TrustRow {
            namespace: "team".to_owned(),
            kind: "Namespace",
            level: "enforced",
            cuts_off: true,
            open: 0,
            cut_off: 0,
            quarantined: vec!["x".to_owned()],
            opened_by_others: vec!["x".to_owned()],
            attention: false,
        }],
        terminating: vec!["x".to_owned()],
        notes: vec!["x".to_owned()],
    };
    let mut printed = BTreeSet::new();
    paths("", &serde_json::to_value(&report).unwrap(), &mut printed);
    let documented: BTreeSet<String> = FIELDS.iter().map(|(path, ..)| (*path).to_owned()).collect();
    assert_eq!(printed, documented);
}

#[test]
fn the_table_names_what_a_person_should_do() {
    let seen = Seen {
        workloads: vec![deployment("w", json!({"kagenti.io/type": "agent"}))],
        pods: vec![pod("b", "w", json!({}))],
        ..Seen::default()
    };
    let report = Report { workloads: told(&seen), notes: vec!["half".to_owned()], ..Report::default() };
    let mut out = Vec::new();
    print::table(&mut out, &report, false).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("NAMESPACE  WORKLOAD "), "{text}");
    assert!(
        lines[1].contains("Deployment/w") && lines[1].contains("0/1") && lines[1].contains("1 unprotected"),
        "{text}"
    );
    assert!(lines[2].contains("kubectl -n team1 rollout restart deployment/w"), "{text}");
    assert_eq!(lines[3], "note: half");
}

#[test]
fn builds_have_a_table_of_their_own_and_a_failure_needs_a_person() {
    let build = |name: &str, status: Value| {
        BuildRow::of(
            &json!({"metadata": {"name": name, "namespace": "team1"}, "spec": {"mode": "dev"}, "status": status}),
            &Scope::default(),
        )
    };
    let builds = vec![
        build("bad", json!({"phase": "Failed", "message": "task clone, step clone: exit 128"})),
        build("good", json!({"phase": "Succeeded", "builtImage": "r/w@sha256:0", "pipelineRunName": "good-1"})),
        build("new", json!({})),
    ];
    let needs: Vec<bool> = builds.iter().map(|row| row.attention).collect();
    assert_eq!(needs, [true, false, false]);
    let mut out = Vec::new();
    print::table(&mut out, &Report { builds, ..Report::default() }, false).unwrap();
    let text = String::from_utf8(out).unwrap();
    for part in [
        "team1      good   dev   Succeeded  r/w@sha256:0",
        "new    dev   Pending    -",
        "exit 128",
        "drawbridge build logs bad -n team1",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// A status is written by whoever may write it, and a terminal does what its bytes say.
#[test]
fn words_of_others_write_nothing_else_on_a_terminal() {
    let odd = "a\u{1b}[2J\nDeployment/other in team1: injected\u{202e}";
    let seen = Seen { workloads: vec![deployment("w", json!({"kagenti.io/type": "agent"}))], ..Seen::default() };
    let mut workloads = told(&seen);
    workloads[0].attention = true;
    (workloads[0].message, workloads[0].cause) = (odd.to_owned(), Some(odd.to_owned()));
    workloads[0].reason = odd.to_owned();
    let build = json!({"metadata": {"name": "b", "namespace": "team1"}, "spec": {"mode": odd},
        "status": {"phase": "Failed", "message": odd, "builtImage": odd}});
    let kaos =
        json!({"metadata": {"name": "a", "namespace": "team1"}, "spec": {"modelAPI": odd}, "status": {"phase": odd}});
    let report = Report {
        installation: vec![odd.to_owned()],
        workloads,
        builds: vec![BuildRow::of(&build, &Scope::default())],
        kaos: super::super::kaos::rows(&[(crate::store::Kind::KaosAgent, &kaos)], &Scope::default()),
        trust: vec![TrustRow {
            namespace: "team1".to_owned(),
            kind: "Namespace",
            level: "off",
            cuts_off: false,
            open: 0,
            cut_off: 0,
            quarantined: vec![odd.to_owned()],
            opened_by_others: vec![odd.to_owned()],
            attention: true,
        }],
        notes: vec![odd.to_owned()],
        ..Report::default()
    };
    let mut out = Vec::new();
    print::table(&mut out, &report, false).unwrap();
    let beside = super::super::builds::beside_workloads(&report.builds[0]);
    print::Flow::new(false).rows(&mut out, &[(beside, false, true)]).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("a\\u{1b}[2J"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("Deployment/other")), "{text}");
}
