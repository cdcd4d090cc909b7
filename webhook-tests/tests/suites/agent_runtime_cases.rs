//! Cases of AgentRuntimes (docs/cases.md) against what proves them: every number has a test that bears it, or a
//! decision that answers it differently, or both.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Cases of the page.
const CASES: u16 = 58;

/// How a decision leaves a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Tests with its number assert the outcome that was decided.
    Ruled,
    /// Nothing is left to assert: it describes bytes or features that this profile does not have.
    Out,
}
use Left::{Out, Ruled};

/// The overridden cases: number, what is left of it, and what was decided.
const OVERRIDDEN: [(u16, Left, &str); 22] = [
    (
        1,
        Ruled,
        "the marker is kagenti.io/managed-by: drawbridge; a user's app.kubernetes.io/managed-by is never written",
    ),
    (2, Out, "the hash is not bit-compatible with upstream's"),
    (6, Ruled, "a tool that nothing is injected into carries the hash of nothing"),
    (7, Ruled, "as 1; the label is the user's as well and stays when the enrolment ends"),
    (16, Ruled, "lite is in the schema and no mode of this profile: ModeNotAvailable in the status"),
    (20, Ruled, "the validator lists nothing: a namespace that the snapshot does not know is no reason to refuse"),
    (23, Ruled, "DaemonSet and CronJob are targets; other kinds are refused by the schema and named by the controller"),
    (29, Ruled, "not bit-compatible; the trust domain is in the hash only where it reaches the Pod"),
    (30, Ruled, "not bit-compatible; trace becomes OTEL_* variables and so one rollout"),
    (31, Ruled, "authBridgeMode selects the plan, so it changes the hash"),
    (36, Ruled, "several namespace defaults are merged in name order: nothing to warn of"),
    (37, Out, "not bit-compatible"),
    (
        38,
        Ruled,
        "the last good configuration serves: the hash and Ready stay, ConfigResolved is False with reason NamespaceConfigUnreadable",
    ),
    (39, Ruled, "the copy says managed-by: drawbridge, and is refreshed while nobody has edited it"),
    (40, Ruled, "said by condition and Event ConfigWarning (one set of reasons)"),
    (41, Ruled, "only a change that reaches the Pods writes a hash, by waves"),
    (43, Ruled, "a Pod that runs unprotected is made again, whatever the hash was"),
    (45, Ruled, "deletion takes everything away, as case 46 says"),
    (53, Out, "mtlsMode is of a later profile"),
    (54, Out, "namespaces are never labelled for a mesh"),
    (55, Out, "tlsBridgeMode is of a later profile"),
    (57, Out, "skills are of a later profile"),
];

/// Cases of a part that comes with a later issue.
const LATER: [(u16, &str); 1] = [(56, "cards are discovered by the AgentCard part, not by AgentRuntime")];

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The numbers that a name of a test or of a case's folder bears: `case_021_…`, `case_029_030_031_…`, `cases_012_to_016_and_023_…`.
fn numbers(name: &str) -> BTreeSet<u16> {
    let mut found = BTreeSet::new();
    let Some(rest) = name.strip_prefix("cases_").or_else(|| name.strip_prefix("case_")) else { return found };
    let (mut last, mut until) = (None, false);
    for word in rest.split('_') {
        match word.parse::<u16>() {
            Ok(number) if word.len() == 3 => {
                let from = last.filter(|_| until).unwrap_or(number);
                found.extend(from..=number);
                (last, until) = (Some(number), false);
            }
            _ if word == "to" => until = true,
            _ if word == "and" || word == "row" => {}
            _ => break,
        }
    }
    found
}

/// The tests of the page, with where they are.
fn tests() -> BTreeMap<u16, Vec<String>> {
    let root = webhook_tests::corpus::root().join("../..");
    let mut files = Vec::new();
    for folder in ["src/controllers/enrolment", "src/admission/validate", "webhook-tests/tests/suites/enrolment"] {
        rust_files(&root.join(folder), &mut files);
    }
    files.push(root.join("webhook-tests/tests/suites/agent_runtime_schema.rs"));
    let mut found: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for name in text.lines().filter_map(|line| line.trim_start().trim_start_matches("async ").strip_prefix("fn ")) {
            let name = name.split('(').next().unwrap();
            for number in numbers(name) {
                found.entry(number).or_default().push(name.to_owned());
            }
        }
    }
    found
}

#[test]
fn names_are_read() {
    let of = |name: &str| numbers(name).into_iter().collect::<Vec<_>>();
    assert_eq!(of("case_021_the_oldest"), [21]);
    assert_eq!(of("case_029_030_031_every_field"), [29, 30, 31]);
    assert_eq!(of("cases_012_to_016_and_023_what"), [12, 13, 14, 15, 16, 23]);
    assert_eq!(of("case_029_and_031_every"), [29, 31]);
    assert!(of("a_case_021").is_empty() && of("case_one").is_empty());
}

#[test]
fn every_case_has_a_test_or_a_decision_and_no_row_is_idle() {
    let tests = tests();
    let rulings: BTreeMap<u16, (Left, &str)> =
        OVERRIDDEN.iter().map(|(case, left, why)| (*case, (*left, *why))).collect();
    assert_eq!(rulings.len(), OVERRIDDEN.len(), "one row per case");
    let later: BTreeSet<u16> = LATER.iter().map(|(case, _)| *case).collect();
    for case in 1..=CASES {
        let tested = tests.contains_key(&case);
        match rulings.get(&case) {
            _ if later.contains(&case) => {
                assert!(!tested && !rulings.contains_key(&case), "case {case} is there already")
            }
            Some((Ruled, why)) => assert!(tested, "case {case} has no test of what is ruled: {why}"),
            Some((Out, why)) => assert!(!tested, "case {case} is said to be out and has a test: {why}"),
            None => assert!(tested, "case {case} has neither test nor decision"),
        }
    }
    assert!(tests.keys().all(|case| *case <= CASES), "{:?}", tests.keys());
}
