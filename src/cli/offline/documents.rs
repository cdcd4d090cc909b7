//! Streams of manifests, read without losing a byte.
//!
//! In: files, folders or standard input. Out: per file the segments of its text and, for each document, its tree.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::cli::io::Io;
use crate::cli::yaml::stream::{self, Segment};
use crate::cli::yaml::tree::{self, Node};

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Endings of files that are read from a folder.
const ENDINGS: &[&str] = &["yaml", "yml", "json"];

/// The manifests a command works on.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// Manifests: files, folders, or - for standard input.
    #[arg(short, long, required = true, value_name = "PATH")]
    pub filename: Vec<String>,
    /// Namespace of objects that do not name one.
    #[arg(short, long, default_value = "default")]
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

/// Reads every path; a folder gives its manifests in name order, subfolders included.
///
/// # Errors
/// When a path does not exist or cannot be read, is not text, or is larger than 64 MiB.
pub fn read(paths: &[String], io: &mut Io<'_>) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path == "-" {
            let mut bytes = Vec::new();
            io.stdin.read_to_end(&mut bytes).context("standard input cannot be read")?;
            let text = String::from_utf8(bytes).context("standard input is not UTF-8 text")?;
            sources.push(Source { name: "-".to_owned(), text });
            continue;
        }
        let mut files = Vec::new();
        gather(Path::new(path), true, &mut files)?;
        for file in files {
            sources.push(read_file(&file)?);
        }
    }
    Ok(sources)
}

fn gather(path: &Path, named: bool, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let facts = std::fs::metadata(path).with_context(|| format!("{} cannot be read", path.display()))?;
    if !facts.is_dir() {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        if named || ENDINGS.contains(&ending) {
            found.push(path.to_owned());
        }
        return Ok(());
    }
    let mut below: Vec<_> = std::fs::read_dir(path)
        .and_then(Iterator::collect::<std::io::Result<Vec<_>>>)
        .with_context(|| format!("{} cannot be listed", path.display()))?
        .into_iter()
        .map(|entry| entry.path())
        .collect();
    below.sort();
    below.iter().try_for_each(|path| gather(path, false, found))
}

fn read_file(path: &Path) -> anyhow::Result<Source> {
    let name = path.display().to_string();
    let size = std::fs::metadata(path).with_context(|| format!("{name} cannot be read"))?.len();
    if size > MAX_BYTES {
        bail!("{name} has {size} bytes, more than the {MAX_BYTES} that are read");
    }
    let bytes = std::fs::read(path).with_context(|| format!("{name} cannot be read"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8 text"))?;
    Ok(Source { name, text })
}

impl Source {
    /// Cuts and reads the documents, in order; a document that cannot be read is an error in its place.
    pub fn pieces(&self) -> impl Iterator<Item = Result<Piece<'_>, Unreadable>> {
        stream::split(&self.text).into_iter().map(|segment| match segment {
            Segment::Marker(text) => Ok(Piece::Verbatim(text)),
            Segment::Document { text, lines_before } => match tree::parse(text) {
                Ok(Some(node)) => Ok(Piece::Document(Document { file: &self.name, text, lines_before, node })),
                Ok(None) => Ok(Piece::Verbatim(text)),
                Err(error) => Err(Unreadable {
                    file: self.name.clone(),
                    line: lines_before + error.line.max(1),
                    text: error.text,
                }),
            },
        })
    }
}

/// The objects of a document with the node each stands at: the document itself, or the items of a List.
#[must_use]
pub fn objects(node: &Node) -> Vec<&Node> {
    let kind = node.get("kind").map(Node::to_json);
    let is_list = kind.as_ref().and_then(|kind| kind.as_str()).is_some_and(|kind| kind.ends_with("List"));
    match node.get("items") {
        Some(items) if is_list => items.items().iter().flat_map(objects).collect(),
        _ => vec![node],
    }
}
