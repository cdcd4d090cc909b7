//! The README's reference is generated, and what it prints exists.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{CommandFactory, Parser};
use drawbridge::cli::io::Io;
use drawbridge::cli::reference::markdown;
use drawbridge::cli::validate::{Code, OfFiles};
use drawbridge::cli::{Cli, Exit, conclude};
use drawbridge::domain::reason::Reason;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).unwrap()
}

/// `make docs` runs this with DRAWBRIDGE_REFRESH=1, which writes instead of comparing.
#[test]
fn the_reference_is_what_the_code_says() {
    let text = readme();
    let refreshed = markdown::refreshed(&text).unwrap_or_else(|name| panic!("no markers for section {name}"));
    if std::env::var_os("DRAWBRIDGE_REFRESH").is_some() {
        std::fs::write(root().join("README.md"), refreshed).unwrap();
        return;
    }
    assert!(refreshed == text, "the README's reference is out of date: run `make docs`");
}

#[test]
fn every_command_the_readme_names_parses() {
    let text = readme();
    let mut seen = 0;
    for line in text.lines().map(|line| line.trim_start_matches("$ ")) {
        let Some(rest) = line.strip_prefix("drawbridge ") else { continue };
        let command = rest.split(['|', '>', '#']).next().unwrap();
        let words: Vec<_> = std::iter::once("drawbridge").chain(command.split_whitespace()).collect();
        let parsed = Cli::command().try_get_matches_from(&words);
        assert!(parsed.is_ok(), "{line}: {}", parsed.err().map(|error| error.to_string()).unwrap_or_default());
        seen += 1;
    }
    assert!(seen >= 4, "only {seen} commands found");
}

#[test]
fn every_file_and_target_the_readme_names_exists() {
    let text = readme();
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let words = text.split(|c: char| c.is_whitespace() || "`()|;,".contains(c));
    let mut files = 0;
    for word in words.filter(|word| word.starts_with("manifests/") || word.starts_with("certs/")) {
        assert!(root().join(word.trim_end_matches('.')).exists(), "{word}");
        files += 1;
    }
    assert!(files >= 3, "only {files} files found");
    for target in text.split("make ").skip(1) {
        let name: String = target.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        if name.is_empty() {
            continue;
        }
        if text.contains(&format!("`make {name}`")) || text.contains(&format!("\nmake {name}")) {
            assert!(makefile.contains(&format!("\n{name}:")), "make {name}");
        }
    }
}

/// Whatever stands at the head of a finding can be looked up.
#[test]
fn every_code_that_validate_prints_has_a_row() {
    let text = readme();
    let codes = Reason::ALL.iter().map(|reason| Code::from(*reason));
    let codes: Vec<_> = codes.chain(OfFiles::ALL.iter().map(|word| Code::from(*word))).collect();
    for code in &codes {
        let rows = text.lines().filter(|line| line.starts_with(&format!("| `{code}` |"))).count();
        assert_eq!(rows, 1, "{code}");
    }
    // A file in which everything is wrong that only files can have wrong.
    let input = "kind: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kagenti-platform-config, namespace: kagenti-system}\n\
                 data: {config.yaml: 'nobody: 1'}\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  labels: {kagenti-enable: 'true'}\n---\n\
                 apiVersion: agent.kagenti.dev/v1alpha1\nkind: Agentruntime\nmetadata: {name: b}\n";
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut input.as_bytes(), out: &mut out, err: &mut err, colour: false };
    let ran = Cli::parse_from(["drawbridge", "validate", "-f", "-", "-o", "json"]).command.run(&mut io);
    assert_eq!(conclude(ran, &mut io), Exit::Findings);
    let told: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let told: BTreeSet<&str> = told.as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    assert_eq!(told, OfFiles::ALL.iter().map(|word| word.as_str()).collect());
    assert!(told.iter().all(|word| codes.iter().any(|code| code.as_str() == *word)));
}
