//! Whoever reads a comment can open what it points to: a page that is cited is in this repository.
//!
//! In: the text of every source, build file and case of the corpus. Out: the citations of pages (`name.md`) that are nowhere, and marks of
//! pages that are elsewhere by custom (`§`, `[B]`, "ruling 7 of").

use std::collections::BTreeSet;

use super::faults::{files, root};

/// What is searched, and endings.
const FOLDERS: &[&str] = &["src", "tests", "webhook-tests", "benches", "fuzz", "docs", "manifests", "changes"];
const ENDINGS: &[&str] = &[".rs", ".toml", ".go", ".sh", ".py", ".yaml", ".yml", ".md"];
/// Files of the root that are searched, too.
const ROOT: &[&str] = &[
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "Makefile",
    "Cargo.toml",
    "clippy.toml",
    "deny.toml",
];
/// Marks that point into a page which is not named, or not here.
const ELSEWHERE: &[&str] = &["\u{a7}", "[\u{42}]", "-rul\u{69}ngs"];
/// Names in texts that are no pages of ours: what tests write, and what users' repositories hold.
const NO_PAGES: &[&str] = &["NAME.md", "SKILL.md"];

/// Every word that ends in `.md`, with the folders before it.
fn cited(text: &str) -> impl Iterator<Item = &str> {
    let of_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    text.split(move |c| !of_path(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.ends_with(".md") && word.len() > 3)
}

fn sources() -> Vec<(String, String)> {
    let mut paths: Vec<_> = ROOT.iter().map(|name| root().join(name)).filter(|path| path.exists()).collect();
    for (folder, ending) in FOLDERS.iter().flat_map(|folder| ENDINGS.iter().map(move |ending| (folder, ending))) {
        files(&root().join(folder), ending, &mut paths);
    }
    let read = |path: &std::path::PathBuf| {
        let name = path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned();
        Some((name, std::fs::read_to_string(path).ok()?))
    };
    paths.iter().filter_map(read).collect()
}

#[test]
fn answers_19_every_page_that_is_cited_is_in_this_repository() {
    let sources = sources();
    let pages: BTreeSet<&str> =
        sources.iter().map(|(name, _)| name.as_str()).filter(|name| name.ends_with(".md")).collect();
    let is_here = |from: &str, word: &str| {
        let word = word.trim_start_matches("./").trim_start_matches("../").trim_start_matches("../");
        let word = word.trim_start_matches('/');
        let beside = from.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        NO_PAGES.contains(&word.rsplit('/').next().unwrap_or(word))
            || pages.contains(word)
            || pages.contains(&*format!("{beside}{word}"))
            || pages.contains(&*format!("docs/{word}"))
            || pages.iter().any(|page| page.ends_with(&format!("/{word}")))
    };
    let mut seen = 0;
    let mut absent = Vec::new();
    for (name, text) in sources.iter().filter(|(name, _)| !name.ends_with("citations.rs")) {
        for word in cited(text) {
            seen += 1;
            if !word.contains("://") && !is_here(name, word) {
                absent.push(format!("{name}: {word}"));
            }
        }
        if name.ends_with(".rs") || name.starts_with("webhook-tests/corpus") {
            for (line, text) in text.lines().enumerate() {
                let mark = ELSEWHERE.iter().find(|mark| text.contains(**mark));
                absent.extend(mark.map(|mark| format!("{name}:{}: {mark}", line + 1)));
            }
        }
    }
    assert!(seen > 100, "only {seen} citations found");
    assert!(
        absent.is_empty(),
        "no reader of this repository can open these; say the fact, or cite a page of docs/:\n{}",
        absent.join("\n")
    );
}
