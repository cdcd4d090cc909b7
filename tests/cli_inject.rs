//! `inject` and `uninject` as people use them: bytes in, bytes out.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::yaml::tree;
use drawbridge::cli::{Cli, Exit, conclude};
use serde_json::Value;

struct Ran {
    exit: Exit,
    out: String,
    err: String,
}

fn run(arguments: &[&str], input: &str) -> Ran {
    let words = std::iter::once("drawbridge").chain(arguments.iter().copied());
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let result = cli.command.run(&mut io);
    let exit = conclude(result, &mut io);
    Ran { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

fn documents(text: &str) -> Vec<Value> {
    text.split("---\n").filter_map(|text| tree::parse(text).unwrap()).map(|node| node.to_json()).collect()
}

const FOREIGN: &str = "# who made this\n---\napiVersion:   v1   # odd spacing\nkind: Service\nmetadata: {name: x}\n";

fn workload(kind: &str, template: &str) -> String {
    let (api, indent) = match kind {
        "Job" => ("batch/v1", 4),
        "CronJob" => ("batch/v1", 8),
        _ => ("apps/v1", 4),
    };
    let pad = " ".repeat(indent);
    let body: String = template.lines().map(|line| format!("{pad}{line}\n")).collect();
    let above = if kind == "CronJob" {
        "spec:\n  schedule: \"* * * * *\"\n  jobTemplate:\n    spec:\n      template:\n"
    } else {
        "spec:\n  template:\n"
    };
    format!(
        "---\n# ours\napiVersion: {api}\nkind: {kind}\nmetadata:\n  name: weather\n  namespace: team1\n{above}{body}"
    )
}

const AGENT: &str = "metadata:\n  labels:\n    kagenti.io/type: agent\nspec:\n  containers:\n  - name: agent\n    image: agent:1\n    ports:\n    - containerPort: 8000\n";

const KINDS: &[&str] = &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"];

#[test]
fn every_kind_is_injected_in_its_template_and_neighbours_stay_as_they_are() {
    for kind in KINDS {
        let input = format!("{FOREIGN}{}", workload(kind, AGENT));
        let ran = run(&["inject", "-f", "-"], &input);
        assert_eq!(ran.exit, Exit::Ok, "{kind}: {}", ran.err);
        assert!(ran.out.starts_with(FOREIGN), "{kind}: the Service changed:\n{}", ran.out);
        assert!(ran.out.contains("---\n# ours\napiVersion:"), "{kind}: the comment ahead of the document is gone");
        assert!(ran.out.contains("name: envoy-proxy"), "{kind}: {}\n{}", ran.err, ran.out);
        assert!(ran.err.contains(&format!("{kind} team1/weather  injected (Injected)")), "{}", ran.err);
    }
}

#[test]
fn injecting_twice_gives_the_same_bytes() {
    for kind in KINDS {
        for flags in [&["inject", "-f", "-"][..], &["inject", "-f", "-", "--spire-driver", "--server-version", "1.36"]]
        {
            let once = run(flags, &workload(kind, AGENT));
            let twice = run(flags, &once.out);
            assert_eq!(once.out, twice.out, "{kind}");
            assert!(twice.err.contains("AlreadyInjected"), "{kind}: {}", twice.err);
        }
    }
}

#[test]
fn uninject_takes_out_exactly_what_inject_put_in() {
    let odd = "metadata:\n  labels: {kagenti.io/type: agent}\n  annotations: {team: a}\nspec:\n  initContainers:\n  - {name: setup, image: i}\n  \
               serviceAccountName: own\n  securityContext: {fsGroup: 7}\n  volumes: [{name: tmp, emptyDir: {}}]\n  containers:\n  - {name: agent, image: a, env: [{name: A, value: \"1\"}]}\n";
    for kind in KINDS {
        for template in [AGENT, odd] {
            for more in [&[][..], &["--spire-driver"]] {
                let input = workload(kind, template);
                let injected = run(&[&["inject", "-f", "-"], more].concat(), &input);
                assert_ne!(injected.out, input, "{kind}: {}", injected.err);
                let back = run(&["uninject", "-f", "-"], &injected.out);
                assert_eq!(back.exit, Exit::Ok);
                assert_eq!(documents(&back.out), documents(&input), "{kind} {more:?}");
            }
        }
    }
}

#[test]
fn a_service_account_that_a_controller_makes_is_told_and_not_written() {
    let ran = run(&["inject", "-f", "-", "--spire-driver"], &workload("Deployment", AGENT));
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    assert!(ran.err.contains("a controller makes ServiceAccount team1/weather"), "{}", ran.err);
    assert!(ran.out.contains("serviceAccountName: weather"), "{}", ran.out);
    assert!(!ran.out.contains("kind: ServiceAccount"));
}

#[test]
fn objects_of_the_stream_shape_the_decision() {
    let foreign = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: weather, namespace: team1}\n";
    let ran = run(&["inject", "-f", "-", "--spire-driver"], &format!("{foreign}{}", workload("Deployment", AGENT)));
    assert_eq!(ran.exit, Exit::Findings, "{}", ran.err);
    assert!(ran.err.contains("denied (ServiceAccountConflict)"), "{}", ran.err);

    let out = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team1, labels: {kagenti-enabled: \"false\"}}\n";
    let input = format!("{out}{}", workload("Deployment", AGENT));
    let ran = run(&["inject", "-f", "-"], &input);
    assert_eq!(ran.out, input, "nothing changes");
    assert!(ran.err.contains("skipped (NamespaceOptedOut)"), "{}", ran.err);

    let gates = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kagenti-feature-gates, namespace: kagenti-system}\ndata:\n  feature-gates.yaml: \"globalEnabled: false\"\n";
    let ran = run(&["inject", "-f", "-"], &format!("{gates}{}", workload("Deployment", AGENT)));
    assert!(ran.err.contains("skipped (GlobalDisabled)"), "{}", ran.err);
}

#[test]
fn json_stays_json_and_lists_are_opened() {
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
        documents(&workload("Deployment", AGENT))[0],
    ]});
    let ran = run(&["inject", "-f", "-"], &list.to_string());
    assert_eq!(ran.exit, Exit::Ok, "{}", ran.err);
    let out: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(out["items"][0], list["items"][0]);
    assert_ne!(out["items"][1], list["items"][1]);
}

#[test]
fn what_is_not_a_manifest_is_an_error_with_its_line_and_nothing_comes_out() {
    for (input, says) in [("a: 1\n---\nb: [\n", "-:"), ("a: 1\na: 2\n", "-:2"), ("kind: \"\u{1}\n", "-:")] {
        let ran = run(&["inject", "-f", "-"], input);
        assert_eq!(ran.exit, Exit::Usage, "{input:?}");
        assert!(ran.err.contains(says), "{}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert_eq!(run(&["inject", "-f", "/does/not/exist"], "").exit, Exit::Usage);
}

#[test]
fn streams_without_workloads_come_out_byte_for_byte() {
    for input in
        ["", "\n", "# only\n", FOREIGN, "---\n---\n", "a: 1", "{\"a\":1}\n{\"b\":2}\n", "%YAML 1.2\n---\na: 1\n...\n"]
    {
        assert_eq!(run(&["inject", "-f", "-"], input).out, input);
        assert_eq!(run(&["uninject", "-f", "-"], input).out, input);
    }
}
