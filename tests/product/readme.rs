//! README and the book in `docs/`: the reference is generated, what is named exists, and every link leads somewhere.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{CommandFactory, Parser};
use drawbridge::cli::explain::environment;
use drawbridge::cli::io::Io;
use drawbridge::cli::reference::markdown;
use drawbridge::cli::validate::{Code, OfFiles};
use drawbridge::cli::{Cli, Exit, conclude};
use drawbridge::domain::reason::Reason;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page of the book and README, by its path from the root.
fn pages() -> Vec<(String, String)> {
    let mut found = vec![("README.md".to_owned(), std::fs::read_to_string(root().join("README.md")).unwrap())];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// `make docs` runs this with DRAWBRIDGE_REFRESH=1, which writes instead of comparing.
#[test]
fn the_reference_is_what_the_code_says() {
    let names: BTreeSet<&str> = markdown::SECTIONS.iter().map(|section| section.page).collect();
    for name in names {
        let path = format!("docs/reference/{name}.md");
        let text = page(&path);
        let refreshed =
            markdown::refreshed(name, &text).unwrap_or_else(|name| panic!("{path}: no markers for section {name}"));
        if std::env::var_os("DRAWBRIDGE_REFRESH").is_some() {
            if refreshed != text {
                std::fs::write(root().join(path), refreshed).unwrap();
            }
            continue;
        }
        assert!(refreshed == text, "{path} is out of date: run `make docs`");
    }
}

/// What is printed by `drawbridge explain environment` is published beside its page.
#[test]
fn the_reference_has_the_environment_of_kaos_as_a_schema() {
    let path = "docs/reference/kaos-environment.json";
    if std::env::var_os("DRAWBRIDGE_REFRESH").is_some() {
        std::fs::write(root().join(path), environment::text()).unwrap();
        return;
    }
    assert!(page(path) == environment::text(), "{path} is out of date: run `make docs`");
}

#[test]
fn answers_19_the_readme_has_at_most_200_lines() {
    let lines = page("README.md").lines().count();
    assert!(lines <= 200, "README.md has {lines} lines; what is more belongs into docs/");
}

/// The links of a page, each with what it names: `[text](target)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let code = |line: &str| line.trim_start().starts_with("```");
    let mut inside = false;
    let prose = text.lines().filter(move |line| {
        inside ^= code(line);
        !inside
    });
    prose.flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next())
}

/// What a heading is called in an address, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn answers_19_every_link_of_readme_and_docs_leads_somewhere() {
    let mut seen = 0;
    for (name, text) in pages() {
        for link in links(&text).filter(|link| !link.contains("://")) {
            let (path, place) = link.split_once('#').map_or((link, None), |(path, place)| (path, Some(place)));
            let own = root().join(&name);
            let target = if path.is_empty() { own.clone() } else { own.parent().unwrap().join(path) };
            assert!(target.exists(), "{name}: nothing is at {link}");
            if let Some(place) = place {
                let text = std::fs::read_to_string(&target).unwrap();
                let headings = text.lines().filter(|line| line.starts_with('#'));
                assert!(headings.map(anchor).any(|one| one == place), "{name}: {path} has no heading {place}");
            }
            seen += 1;
        }
    }
    assert!(seen > 40, "only {seen} links found");
}

#[test]
fn answers_19_every_page_of_the_book_is_in_its_summary() {
    let summary = page("docs/SUMMARY.md");
    for (name, text) in pages() {
        let Some(name) = name.strip_prefix("docs/").filter(|name| *name != "SUMMARY.md") else { continue };
        assert!(summary.contains(&format!("]({name})")), "docs/SUMMARY.md does not list {name}");
        assert!(text.starts_with("# "), "docs/{name} begins with no title");
    }
}

#[test]
fn every_command_that_readme_and_docs_name_parses() {
    let mut seen = 0;
    for (name, text) in pages() {
        for line in text.lines().map(|line| line.trim_start_matches("$ ")) {
            let Some(rest) = line.strip_prefix("drawbridge ") else { continue };
            let command = rest.split(['|', '>', '#']).next().unwrap();
            let words: Vec<_> = std::iter::once("drawbridge").chain(command.split_whitespace()).collect();
            let parsed = Cli::command().try_get_matches_from(&words);
            let error = parsed.err().map(|error| error.to_string());
            assert!(error.is_none(), "{name}: {line}: {}", error.unwrap_or_default());
            seen += 1;
        }
    }
    assert!(seen >= 12, "only {seen} commands found");
}

/// Who upgrades by the page renders anew, and what is not said again is lost: each flag that changes what is printed stands there.
#[test]
fn the_page_of_upgrades_names_every_flag_that_an_installation_may_have() {
    // Where and how it is printed, and another manifest.
    const OTHERS: [&str; 4] = ["out-dir", "output", "beeai-compat", "help"];
    let text = page("docs/tasks/upgrade.md");
    let command = Cli::command();
    let render = command.find_subcommand("render").unwrap();
    let flags = render.get_arguments().filter_map(|flag| flag.get_long()).filter(|flag| !OTHERS.contains(flag));
    let flags: Vec<&str> = flags.collect();
    assert!(flags.len() >= 14, "{flags:?}");
    let missing: Vec<_> = flags.iter().filter(|flag| !text.contains(&format!("--{flag}"))).collect();
    assert!(missing.is_empty(), "docs/tasks/upgrade.md does not say {missing:?}");
    for words in ["other flags of your installation", "gets rights in all of them", "no registry has"] {
        assert!(text.contains(words), "docs/tasks/upgrade.md does not say {words}");
    }
}

#[test]
fn every_file_and_target_that_readme_and_docs_name_exists() {
    let makefile = page("Makefile");
    let mut files = 0;
    for (name, text) in pages() {
        let words = text.split(|c: char| c.is_whitespace() || "`()|;,".contains(c));
        let named = |word: &&str| word.starts_with("manifests/") || word.starts_with("certs/");
        // What a sentence fills in is no file.
        for word in words.filter(named).filter(|word| !word.contains('{')) {
            assert!(root().join(word.trim_end_matches('.')).exists(), "{name}: {word}");
            files += 1;
        }
        for target in text.split("make ").skip(1) {
            let target: String = target.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            if !target.is_empty()
                && (text.contains(&format!("`make {target}")) || text.contains(&format!("\nmake {target}")))
            {
                assert!(makefile.contains(&format!("\n{target}:")), "{name}: make {target}");
            }
        }
    }
    assert!(files >= 10, "only {files} files found");
}

/// The checklist leads to the code as it is.
#[test]
fn what_the_checklist_for_a_kind_names_is_there() {
    let text = page("docs/adding-a-kind.md");
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let mut seen = 0;
    for line in rows {
        let marked: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        let [file, says] = marked[..] else { panic!("{line}") };
        assert!(page(file).contains(says), "docs/adding-a-kind.md: {file} does not say {says}");
        seen += 1;
    }
    assert!(seen > 12, "only {seen} rows");
}

/// The entries of docs/troubleshooting.md: code, and the text below it.
fn entries(page: &str) -> Vec<(&str, &str)> {
    let entries = page.split("\n## `").skip(1);
    entries.filter_map(|entry| entry.split_once("`\n")).collect()
}

#[test]
fn answers_21_every_reason_has_an_entry_that_says_cause_place_and_remedy() {
    let text = page("docs/troubleshooting.md");
    let entries = entries(&text);
    for reason in Reason::ALL {
        let code = reason.code();
        let found = entries.iter().filter(|(of, _)| *of == code).count();
        assert_eq!(
            found, 1,
            "docs/troubleshooting.md has {found} entries for {code}. Add there, in the order of the alphabet:\n\n## `{code}`\n\n- **Cause.** What \
             brings it about.\n- **See it.** The command that shows it.\n- **Remedy.** What a person does, with the command.\n"
        );
    }
    for (code, says) in &entries {
        assert!(
            Reason::ALL.iter().any(|reason| reason.code() == *code),
            "docs/troubleshooting.md: {code} is no reason"
        );
        for part in ["- **Cause.** ", "- **See it.** ", "- **Remedy.** "] {
            let line = says.lines().find_map(|line| line.strip_prefix(part)).unwrap_or_default();
            assert!(line.len() >= 5, "docs/troubleshooting.md: {code} lacks {part:?}");
        }
    }
    assert!(entries.is_sorted_by_key(|(code, _)| *code), "docs/troubleshooting.md is not in the order of the alphabet");
}

/// Whatever stands at the head of a finding can be looked up.
#[test]
fn every_code_that_validate_prints_has_a_row() {
    let text = page("docs/reference/reasons.md") + &page("docs/reference/findings.md");
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
