//! Streams of manifests, read without losing a byte.
//!
//! In: files, folders or standard input. Out: per file the segments of its text and, for each document, its tree.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};

use crate::api::yaml::kind;
use crate::cli::given;
use crate::cli::io::Io;
use crate::cli::yaml::stream::{self, Segment};
use crate::cli::yaml::tree::{self, Node};

/// Most that is read of a file or of standard input, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Endings of files that are read from a folder.
const ENDINGS: &[&str] = &["yaml", "yml", "json"];

/// The manifests a command works on.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// Manifests: files, folders (without what is hidden in them), or - for standard input.
    #[arg(short, long, required = true, value_name = "PATH", value_parser = given::path)]
    pub filename: Vec<String>,
    /// Namespace of objects that do not name one.
    #[arg(short, long, default_value = "default", value_parser = given::namespace)]
    pub namespace: String,
}

/// One file, or standard input.
#[derive(Debug)]
pub struct Source {
    /// Path as given, `-` for standard input.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A piece of a source.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Goes out as it came in: markers, comments.
    Verbatim(&'a str),
    /// A document.
    Document(Document<'a>),
}

/// One document of a source.
#[derive(Debug)]
pub struct Document<'a> {
    /// The source's name.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Lines of the source before it.
    pub lines_before: u64,
    /// What it says.
    pub node: Node,
}

impl Document<'_> {
    /// Line of the source on which a node of this document begins.
    #[must_use]
    pub fn line(&self, node: &Node) -> u64 {
        self.lines_before + node.line
    }
}

/// A document that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {text}")]
pub struct Unreadable {
    /// The source's name.
    pub file: String,
    /// Line of the source.
    pub line: u64,
    /// What is wrong.
    pub text: String,
}

/// Reads every path; a folder gives its manifests in name order, subfolders included, what is hidden left out: a mounted ConfigMap keeps
/// further copies of itself there.
///
/// # Errors
/// When a path does not exist or cannot be read, is a folder without manifests, is not text, or is larger than 64 MiB; and when standard input is
/// named twice.
pub fn read(paths: &[String], io: &mut Io<'_>) -> anyhow::Result<Vec<Source>> {
    read_stdin_once(paths)?;
    let mut sources = Vec::new();
    for path in paths {
        if path == "-" {
            let bytes = bytes("standard input", &mut *io.stdin)?;
            sources.push(Source { name: "-".to_owned(), text: text("standard input", bytes)? });
            continue;
        }
        if path.starts_with("https://") || path.starts_with("http://") {
            bail!("{path}: URLs are not fetched; use a pipe: curl -fsSL {path} | drawbridge … -f -");
        }
        let path = Path::new(path);
        let facts = std::fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
        if !facts.is_dir() {
            sources.push(read_file(path)?);
            continue;
        }
        let mut files = Vec::new();
        gather(path, &mut Vec::new(), &mut files)?;
        // A mistyped folder would pass for one in which nothing is wrong.
        if files.is_empty() {
            bail!(
                "{} has no .yaml, .yml or .json; name the folder that has the manifests, or the file itself",
                path.display()
            );
        }
        for file in files {
            sources.push(read_file(&file)?);
        }
    }
    Ok(sources)
}

/// Standard input is there once: where it is named again it is empty, and would pass for a file in which nothing is wrong.
///
/// # Errors
/// When it is named more than once.
pub fn read_stdin_once<'p>(paths: impl IntoIterator<Item = &'p String>) -> anyhow::Result<()> {
    if paths.into_iter().filter(|path| *path == "-").count() > 1 {
        bail!(
            "- is standard input, which can be read once, and it is named twice; put one of the two into a file and name that"
        );
    }
    Ok(())
}

/// The manifests below a folder; `above` are the folders it is in, so that a link back to one of them is not followed for ever.
fn gather(folder: &Path, above: &mut Vec<PathBuf>, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let cannot = || format!("{} cannot be listed", folder.display());
    let real = folder.canonicalize().with_context(cannot)?;
    if above.contains(&real) {
        return Ok(());
    }
    above.push(real);
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut below: Vec<_> = entries.with_context(cannot)?.into_iter().map(|entry| entry.path()).collect();
    below.sort();
    for path in below {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        let is_manifest = ENDINGS.contains(&ending);
        match std::fs::metadata(&path) {
            _ if name.starts_with('.') => {}
            Ok(facts) if facts.is_dir() => gather(&path, above, found)?,
            Ok(facts) if is_manifest && facts.is_file() => found.push(path),
            Err(error) if is_manifest => {
                return Err(error).with_context(|| format!("{} cannot be read", path.display()));
            }
            _ => {}
        }
    }
    above.pop();
    Ok(())
}

fn read_file(path: &Path) -> anyhow::Result<Source> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path).with_context(|| format!("{name} cannot be read"))?;
    let text = text(&name, bytes(&name, file)?)?;
    Ok(Source { name, text })
}

/// Everything that can be read, up to the limit: a pipe does not say beforehand how much it has.
fn bytes(name: &str, from: impl Read) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{name} has more than the {MAX_BYTES} bytes that are read; give it in several pieces");
    }
    Ok(bytes)
}

/// The bytes as text.
fn text(name: &str, bytes: Vec<u8>) -> anyhow::Result<String> {
    // A byte order mark, or every other byte of the first character is zero.
    if matches!(bytes.as_slice(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=127, ..] | [1..=127, 0, ..]) {
        bail!("{name} is UTF-16, and UTF-8 is read; convert it with: iconv -f UTF-16 -t UTF-8");
    }
    String::from_utf8(bytes).map_err(|error| {
        let sound = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = sound.iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow!(
            "{name} is not UTF-8 text: line {line} has a byte that is none of it; save it as UTF-8, or convert it with: iconv -f ENCODING -t UTF-8"
        )
    })
}

impl Source {
    /// Cuts and reads the documents, in order; a document that cannot be read is an error in its place.
    pub fn pieces(&self) -> impl Iterator<Item = Result<Piece<'_>, Unreadable>> {
        stream::split(&self.text).into_iter().map(|segment| match segment {
            Segment::Marker(text) => Ok(Piece::Verbatim(text)),
            Segment::Document { text, lines_before } => match tree::parse(text) {
                Ok(Some(node)) => Ok(Piece::Document(Document { file: &self.name, text, lines_before, node })),
                Ok(None) => Ok(Piece::Verbatim(text)),
                Err(error) => {
                    let hint = if text.contains("{{") {
                        "; a Helm template is read once it is rendered: helm template … | drawbridge … -f -"
                    } else {
                        ""
                    };
                    Err(Unreadable {
                        file: self.name.clone(),
                        line: lines_before + error.line.max(1),
                        text: format!("{}{hint}", error.text),
                    })
                }
            },
        })
    }
}

/// Why a document is no object, and kubectl reads nothing of it: a list of objects is one only as the items of a List.
#[must_use]
pub fn no_object(node: &Node) -> Option<String> {
    let way = match &node.kind {
        tree::Kind::Map(_) => return None,
        tree::Kind::List(_) => {
            "write each of its objects as a document of its own, with a line --- between them, or as items of an object of kind List"
        }
        tree::Kind::Scalar { .. } => "write apiVersion, kind and what else an object has as a mapping",
    };
    Some(format!("an object is expected and {} was found; {way}", kind(&node.to_json())))
}

/// What the items of a list are: `None` when it is no list, the type of the items where they leave it to the list, as in a `PodList`.
#[must_use]
pub fn items_of(api_version: Option<&str>, kind: Option<&str>) -> Option<Option<(String, String)>> {
    let item = kind?.strip_suffix("List")?;
    Some(api_version.filter(|_| !item.is_empty()).map(|version| (version.to_owned(), item.to_owned())))
}

/// An object of a document.
#[derive(Debug, Clone)]
pub struct Object<'n> {
    /// Where it stands.
    pub node: &'n Node,
    /// What it says, with the type that a typed list gives it.
    pub value: Value,
}

/// The objects of a document: the document itself, or the items of a List.
#[must_use]
pub fn objects(node: &Node) -> Vec<Object<'_>> {
    let mut found = Vec::new();
    gather_objects(node, None, &mut found);
    found
}

fn gather_objects<'n>(node: &'n Node, of: Option<&(String, String)>, found: &mut Vec<Object<'n>>) {
    let text = |key: &str| node.get(key).map(Node::to_json).and_then(|value| value.as_str().map(str::to_owned));
    let list = items_of(text("apiVersion").as_deref(), text("kind").as_deref());
    match (list, node.get("items")) {
        (Some(of), Some(items)) => items.items().iter().for_each(|item| gather_objects(item, of.as_ref(), found)),
        _ => found.push(Object { node, value: typed(&node.to_json(), of).into_owned() }),
    }
}

/// An item with its type, which a typed list says for all of its items.
#[must_use]
pub fn typed<'v>(item: &'v Value, of: Option<&(String, String)>) -> Cow<'v, Value> {
    let Some((api_version, kind)) = of.filter(|_| item.is_object() && item.get("kind").is_none()) else {
        return Cow::Borrowed(item);
    };
    let mut typed = item.clone();
    typed["apiVersion"] = json!(api_version);
    typed["kind"] = json!(kind);
    Cow::Owned(typed)
}
