//! The page of every sentence that the product says to somebody: `docs/reference/sentences.md`, made of the texts in `src/`.
//!
//! In: the string literals of `src/`, but for tests, and the descriptions of fields in `manifests/crds`. Out: the page; `make docs` writes it.
//! Promise: a sentence that is said can be found and read alone; log lines of two words, too. Help of commands and flags is in
//! `docs/reference/commands.md`. While a sentence is being changed the page may lag by a few: it fails when more than one in twenty is not on it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PAGE: &str = "docs/reference/sentences.md";
const HEAD: &str = "# Sentences\n\nEvery sentence of the code that somebody may read: refusals, warnings, conditions, Events, log lines, output of commands, descriptions of \
                    fields. `{…}` stands for what is filled in. By the folder of `src/` that says it. A line that begins with a verb (`is empty`, \
                    `names no key`) is said behind the path of the field, or the name of the object, that it is about; a line that begins with a \
                    verb in the imperative (`remove it`) is said behind `What to do:`. Help of commands and flags is in \
                    [Commands and flags](commands.md). Made by `make docs`.\n";
const DEFINITIONS: &str = "manifests/crds";
/// Words that a text has at least to be a sentence.
const WORDS: usize = 3;

/// What writes a log line.
const LOGS: [&str; 4] = ["error!", "warn!", "info!", "debug!"];

/// Whether what was read ends with those words.
fn follows(read: &[char], words: &str) -> bool {
    let mut read = read.iter().rev().skip_while(|c| c.is_whitespace());
    words.chars().rev().all(|word| read.next() == Some(&word))
}

/// A text of the source, and whether it is in a log line, which people read however short it is.
struct Literal {
    text: String,
    is_logged: bool,
}

/// The string literals of Rust source up to its tests, with continued lines joined; without reasons of lints and invariants, which only who reads
/// the source sees.
fn literals(source: &str) -> Vec<Literal> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let chars: Vec<char> = source.chars().collect();
    let mut found = Vec::new();
    // For each bracket that is open, whether it is that of a log line.
    let mut open: Vec<bool> = Vec::new();
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
                found.push(Literal { text, is_logged: open.last() == Some(&true) });
            }
        } else {
            match chars[at] {
                '(' => open.push(LOGS.iter().any(|log| follows(&chars[..at], log))),
                ')' => drop(open.pop()),
                _ => {}
            }
            at += 1;
        }
    }
    found
}

/// Words of letters.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().filter(|c| c.is_ascii_alphabetic()).count() > 1).count()
}

/// Whether people read it: words in a row, and no code or manifest.
fn is_sentence(text: &str) -> bool {
    let code = [
        "object.",
        "Object.",
        "variables.",
        "apiVersion: ",
        "&&",
        "||",
        "::",
        "=>",
        "<!--",
        "\t",
        "#!/",
        "has(",
        ".orValue(",
        ".exists(",
        "charset=",
        "transformMap",
        "classDef ",
        "subgraph ",
        "-----",
        "HTTP/1.1 400",
    ];
    words(text) >= WORDS && !code.iter().any(|mark| text.contains(mark))
}

/// Names of the modules that a source keeps to tests.
fn kept_to_tests(source: &str) -> impl Iterator<Item = &str> {
    source
        .split("#[cfg(test)]\n")
        .skip(1)
        .filter_map(|rest| rest.lines().next()?.strip_suffix(';')?.split("mod ").nth(1))
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    let source = ["mod.rs", "lib.rs"].iter().find_map(|name| std::fs::read_to_string(folder.join(name)).ok());
    let source = source.unwrap_or_default();
    let left_out: Vec<&str> = kept_to_tests(&source).collect();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if left_out.contains(&name.trim_end_matches(".rs")) {
            continue;
        }
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
        let sentences = literals(&source).into_iter();
        let sentences = sentences.filter(|of| is_sentence(&of.text) || of.is_logged && words(&of.text) > 1);
        let sentences = sentences.map(|of| of.text.split_whitespace().collect::<Vec<_>>().join(" "));
        by_folder.entry(folder).or_default().extend(sentences);
    }
    by_folder.retain(|_, sentences| !sentences.is_empty());
    let of_fields = descriptions(&root.join(DEFINITIONS)).into_iter();
    let of_fields = of_fields.filter(|text| !by_folder.values().any(|sentences| sentences.contains(text))).collect();
    by_folder.insert(DEFINITIONS.to_owned(), of_fields);
    by_folder
}

/// What `kubectl explain` says of our kinds and their fields.
fn descriptions(folder: &Path) -> BTreeSet<String> {
    fn collect(value: &serde_json::Value, found: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Object(members) => {
                let text =
                    members.get("description").and_then(serde_json::Value::as_str).filter(|text| is_sentence(text));
                found.extend(text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")));
                members.values().for_each(|value| collect(value, found));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        collect(&drawbridge::api::yaml::parse(&text).unwrap().to_json(), &mut found);
    }
    found
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
    let texts = |source| literals(source).into_iter().map(|of| (of.text, of.is_logged)).collect::<Vec<_>>();
    assert_eq!(texts(source), [("this is one \"text\" here".to_owned(), false)]);
    let source = "#[expect(lint, reason = \"for those who read the source\")] x.expect(\n  \"it is never empty\"); y.expected(\"a word\")";
    assert_eq!(texts(source), [("a word".to_owned(), false)]);
    let source = "tracing::warn!(to = f(\"not it\"), \"two words\"); g(\"nor this\")";
    let logged = [("not it", false), ("two words", true), ("nor this", false)];
    assert_eq!(texts(source), logged.map(|(text, is_logged)| (text.to_owned(), is_logged)));
    assert_eq!(
        kept_to_tests("mod a;\n#[cfg(test)]\npub(super) mod b;\n#[cfg(test)]\nmod tests {").collect::<Vec<_>>(),
        ["b"]
    );
    assert!(
        is_sentence("the namespace has no room")
            && !is_sentence("a.b.c")
            && !is_sentence("object.metadata has no name at all")
    );
}
