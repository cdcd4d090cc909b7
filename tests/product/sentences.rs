//! The page of every sentence that the product says to somebody: `docs/reference/sentences.md`, made of the texts in `src/`.
//!
//! In: the string literals of `src/`, but for tests. Out: the page; `make docs` writes it. Promise: a sentence that is said can be found and
//! read alone. While one is being changed the page may lag by a few: it fails when more than one in twenty is not on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = "docs/reference/sentences.md";
const HEAD: &str = "# Sentences\n\nEvery sentence of the code that somebody may read: refusals, warnings, conditions, Events, log lines, output and help of commands. `{…}` stands \
                    for what is filled in. By the folder of `src/` that says it. Made by `make docs`.\n";
/// Words that a text has at least to be a sentence.
const WORDS: usize = 4;

/// Whether what was read ends with those words.
fn follows(read: &[char], words: &str) -> bool {
    let mut read = read.iter().rev().skip_while(|c| c.is_whitespace());
    words.chars().rev().all(|word| read.next() == Some(&word))
}

/// The string literals of Rust source up to its tests, with continued lines joined; without reasons of lints and invariants, which only who reads
/// the source sees.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let chars: Vec<char> = source.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let rest = |text: &str| text.chars().enumerate().all(|(place, c)| chars.get(at + place) == Some(&c));
        if rest("//") {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if rest("r#\"") {
            at += 3;
            while at + 1 < chars.len() && !(chars[at] == '"' && chars[at + 1] == '#') {
                at += 1;
            }
            at += 2;
        } else if chars[at] == '\'' {
            // A character, or a lifetime.
            at += match (chars.get(at + 1), chars.get(at + 2)) {
                (Some('\\'), _) => 4,
                (_, Some('\'')) => 3,
                _ => 1,
            };
        } else if chars[at] == '"' {
            let is_for_programmers = follows(&chars[..at], "reason =") || follows(&chars[..at], "expect(");
            at += 1;
            let mut text = String::new();
            while at < chars.len() && chars[at] != '"' {
                if chars[at] == '\\' {
                    match chars.get(at + 1) {
                        Some('\n') => {
                            at += 2;
                            while at < chars.len() && chars[at].is_whitespace() {
                                at += 1;
                            }
                            continue;
                        }
                        Some('n') => text.push(' '),
                        Some(other) => text.push(*other),
                        None => {}
                    }
                    at += 2;
                } else {
                    text.push(chars[at]);
                    at += 1;
                }
            }
            at += 1;
            if !is_for_programmers {
                found.push(text);
            }
        } else {
            at += 1;
        }
    }
    found
}

/// Whether people read it: words in a row, and no code or manifest.
fn is_sentence(text: &str) -> bool {
    let words = text.split_whitespace().filter(|word| word.chars().filter(|c| c.is_ascii_alphabetic()).count() > 1);
    let code = ["object.", "variables.", "apiVersion:", "&&", "||", "::", "=>", "<!--", "\t", "#!/", "$(", "has("];
    words.count() >= WORDS && !code.iter().any(|mark| text.contains(mark))
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" && name != "target" {
                files(&path, found);
            }
        } else if name.ends_with(".rs") && !["tests.rs", "fixtures.rs", "testing.rs"].contains(&name.as_str()) {
            found.push(path);
        }
    }
}

/// The sentences by the folder that says them.
fn said() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    files(&root.join("src"), &mut paths);
    let mut by_folder: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in paths {
        let source = std::fs::read_to_string(&path).unwrap();
        let folder = path.parent().unwrap().strip_prefix(root).unwrap();
        let folder =
            folder.components().take(3).map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        let sentences = literals(&source).into_iter().filter(|text| is_sentence(text));
        let sentences = sentences.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        by_folder.entry(folder).or_default().extend(sentences);
    }
    by_folder.retain(|_, sentences| !sentences.is_empty());
    by_folder
}

fn cell(text: &str) -> String {
    let text = text.replace('|', "\\|").replace('<', "&lt;").replace('[', "\\[");
    // What is filled in, by its name.
    text.replace("{}", "{…}")
}

#[test]
fn answers_18_every_sentence_stands_on_its_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let said = said();
    let mut page = HEAD.to_owned();
    for (folder, sentences) in &said {
        page.push_str(&format!("\n## `{folder}`\n\n| sentence |\n| --- |\n"));
        sentences.iter().for_each(|sentence| page.push_str(&format!("| {} |\n", cell(sentence))));
    }
    if std::env::var_os("DRAWBRIDGE_REFRESH").is_some() {
        std::fs::write(path, page).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap();
    let on_page: BTreeSet<&str> = written.lines().filter(|line| line.starts_with("| ")).collect();
    let wanted: BTreeSet<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    let missing: Vec<_> = wanted.difference(&on_page).collect();
    let gone = on_page.difference(&wanted).count();
    assert!(wanted.len() > 500, "only {} sentences found", wanted.len());
    let lag = wanted.len() / 20;
    assert!(missing.len() <= lag && gone <= lag, "{PAGE} is out of date: run `make docs`; it lacks {missing:#?}");
}

#[test]
fn texts_are_found_as_people_read_them() {
    let source = "// \"not this one at all\"\nlet c = '\"'; f(\"this is \\\n      one \\\"text\\\" here\"); fn g<'a>() {}\n#[cfg(test)]\nmod tests {\n\"a b c d\"";
    assert_eq!(literals(source), ["this is one \"text\" here"]);
    let source = "#[expect(lint, reason = \"for those who read the source\")] x.expect(\n  \"it is never empty\"); y.expected(\"a word\")";
    assert_eq!(literals(source), ["a word"]);
    assert!(
        is_sentence("the namespace has no room")
            && !is_sentence("a.b.c")
            && !is_sentence("object.metadata has no name at all")
    );
}
