//! Which test holds which mend: `docs/mends.md` against the tests of this repository.
//!
//! A test belongs to the mend whose number its name begins with: `mend_04_…`. The table names a test by its name, a case of the
//! corpus by its group and name, and a long trial by its command.

use std::collections::BTreeSet;

use super::faults;

/// Mends that there are.
const ROWS: std::ops::RangeInclusive<u32> = 1..=17;

/// What redirection does not see, as the pages say it.
const LEFT_OUT: &[&str] = &[
    "| IPv6, UDP, QUIC | the rules are for IPv4 and TCP |",
    "| port 22, in both directions |",
    "| calls to destination port 8080 |",
    "The proxy takes the agent's port over and the agent moves to the next free one",
];

/// One line of the table.
struct Line {
    row: u32,
    what: String,
    held_by: Vec<String>,
}

fn table() -> Vec<Line> {
    let page = std::fs::read_to_string(faults::root().join("docs/mends.md")).unwrap();
    let lines = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let lines = lines.filter(|line| line.starts_with(|letter: char| letter.is_ascii_digit()));
    lines
        .map(|line| {
            let [row, what, held_by] = line.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("three columns: {line}")
            };
            let held_by = held_by.split(", ").map(|name| name.trim_matches('`').to_owned()).collect();
            Line { row: row.parse().unwrap(), what: what.to_owned(), held_by }
        })
        .collect()
}

/// The number that the name of a test begins with.
fn row(name: &str) -> Option<u32> {
    name.strip_prefix("mend_")?.split('_').next()?.parse().ok()
}

fn is_held(name: &str, tests: &BTreeSet<String>, makefile: &str) -> bool {
    if let Some(target) = name.strip_prefix("make ") {
        return makefile.lines().any(|line| line.starts_with(&format!("{target}:")));
    }
    if name.contains('/') {
        return faults::root().join("webhook-tests/corpus").join(name).join("expect.yaml").is_file();
    }
    tests.contains(name)
}

#[test]
fn every_mend_has_tests_that_exist() {
    let (table, tests) = (table(), faults::tests());
    let makefile = std::fs::read_to_string(faults::root().join("Makefile")).unwrap();
    for line in &table {
        assert!(!line.held_by.is_empty() && !line.what.is_empty(), "row {}: {}", line.row, line.what);
        let missing: Vec<_> = line.held_by.iter().filter(|name| !is_held(name, &tests, &makefile)).collect();
        assert!(missing.is_empty(), "row {}, {}: there is no {missing:?}", line.row, line.what);
        let other = line.held_by.iter().find(|name| row(name).is_some_and(|number| number != line.row));
        assert_eq!(other, None, "row {}: {} is named after another row", line.row, line.what);
    }
    let rows: BTreeSet<u32> = table.iter().map(|line| line.row).collect();
    assert!(rows.iter().copied().eq(ROWS), "{rows:?}");
    let unknown: Vec<_> = tests.iter().filter(|name| row(name).is_some_and(|number| !ROWS.contains(&number))).collect();
    assert!(unknown.is_empty(), "{unknown:?} belong to no row");
    assert!(!is_held("mend_01_no_such_test", &tests, &makefile) && !is_held("make nothing", &tests, &makefile));
}

/// Who reads what a mode protects learns what it does not.
#[test]
fn mend_08_the_documentation_says_what_redirection_leaves_out() {
    let mut pages = vec![faults::root().join("README.md")];
    faults::files(&faults::root().join("docs"), ".md", &mut pages);
    let text: String = pages.iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for left_out in LEFT_OUT {
        assert!(text.contains(left_out), "no page says {left_out:?}");
    }
}
