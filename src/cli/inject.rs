//! `drawbridge inject` and `uninject`: any stream of manifests in, the same stream out.
//!
//! Promises: documents of other kinds, and those that do not change, come out byte for byte, in their order; a document that changes
//! keeps the order of its keys and the comments ahead of it. Injecting twice gives the same bytes as once.
//! The report goes to standard error, so that standard output can be piped into `kubectl apply -f -`.

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use super::io::{self, Io};
use super::offline::documents::{self, Document, Input, Piece, Source};
use super::offline::review;
use super::offline::workload::Subject;
use super::offline::world::{Facts, World};
use super::yaml::{emit, stream};
use super::{Exit, Format};
use crate::admission::verdict::{Outcome, Verdict};
use crate::config::snapshot::Snapshot;

/// Arguments of `inject` and `uninject`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// Format of the report on standard error.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Facts about the cluster.
    #[command(flatten)]
    pub facts: Facts,
}

/// Arguments of `uninject`.
#[derive(Debug, clap::Args)]
pub struct UninjectArgs {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// Format of the report on standard error.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// What was decided about one workload.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// File and line of the document.
    pub place: String,
    /// Such as `Deployment team1/weather-agent`.
    pub object: String,
    /// `injected`, `skipped`, `denied` or `uninjected`.
    pub outcome: String,
    /// Reason code.
    pub reason: String,
    /// The reason in words; the whole refusal when there is one.
    pub text: String,
    /// What deserves attention.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What a controller makes on the cluster before the Pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub made_by_controller: Vec<String>,
}

/// Injects.
///
/// # Errors
/// When the input or a configuration file cannot be read.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let Args { input: Input { filename, namespace }, output, facts } = args;
    let sources = documents::read(&filename, io)?;
    let mut world = World::new(&facts)?;
    for object in objects(&sources)? {
        world.observe(&object, &namespace);
    }
    let mut made = Vec::new();
    for object in objects(&sources)? {
        if let Some(subject) = Subject::of(&object, &namespace)
            && let Some(account) = review::prepare(&mut world, &subject, &object)?
        {
            made.push((subject, account));
        }
    }
    let snapshot = world.snapshot()?;
    let mut lines = Vec::new();
    rewrite(&sources, io, |document, object| {
        let Some(subject) = Subject::of(object, &namespace) else { return Ok(None) };
        let (verdict, changed) = inject(&subject, object, &snapshot)?;
        let accounts = made.iter().filter(|(other, _)| *other == subject);
        lines.push(Line {
            made_by_controller: accounts
                .filter(|_| verdict.allowed())
                .map(|(_, name)| format!("ServiceAccount {}/{name}", subject.namespace))
                .collect(),
            ..line(&subject, &verdict, document)
        });
        Ok(changed)
    })?;
    report(output, &lines, io)?;
    let denied = lines.iter().any(|line| line.outcome == "denied");
    Ok(if denied { Exit::Findings } else { Exit::Ok })
}

/// Takes out what an earlier injection put in.
///
/// # Errors
/// When the input cannot be read.
pub fn run_uninject(args: UninjectArgs, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let UninjectArgs { input: Input { filename, namespace }, output } = args;
    let sources = documents::read(&filename, io)?;
    let mut lines = Vec::new();
    rewrite(&sources, io, |document, object| {
        let Some(subject) = Subject::of(object, &namespace) else { return Ok(None) };
        let mut pod = subject.pod(object);
        let operations = crate::admission::inject::uninject(&pod);
        let place = place(document);
        let (outcome, text) = if operations.is_empty() {
            ("skipped", "nothing of ours is in it")
        } else {
            ("uninjected", "the parts that the status annotation names were taken out")
        };
        lines.push(Line {
            place,
            object: subject.title(),
            outcome: outcome.to_owned(),
            reason: if operations.is_empty() { "NothingToRemove" } else { "Removed" }.to_owned(),
            text: text.to_owned(),
            warnings: Vec::new(),
            made_by_controller: Vec::new(),
        });
        if operations.is_empty() {
            return Ok(None);
        }
        json_patch::patch(&mut pod, &operations).with_context(|| format!("{}: cannot be undone", subject.title()))?;
        Ok(Some(subject.with_pod(object, &pod)))
    })?;
    report(output, &lines, io)?;
    Ok(Exit::Ok)
}

fn inject(subject: &Subject, object: &Value, snapshot: &Snapshot) -> anyhow::Result<(Verdict, Option<Value>)> {
    let mut pod = subject.pod(object);
    let verdict = review::evaluate(subject, &pod, snapshot)?;
    let Outcome::Patch(operations) = &verdict.outcome else { return Ok((verdict, None)) };
    json_patch::patch(&mut pod, operations)
        .with_context(|| format!("{}: the patch does not apply, which is a defect in Drawbridge", subject.title()))?;
    let changed = subject.with_pod(object, &pod);
    Ok((verdict, Some(changed)))
}

fn line(subject: &Subject, verdict: &Verdict, document: &Document<'_>) -> Line {
    let text = match &verdict.outcome {
        Outcome::Deny(denial) => denial.to_string(),
        _ => verdict.reason.sentence().to_owned(),
    };
    Line {
        place: place(document),
        object: subject.title(),
        outcome: verdict.reason.class().as_str().to_owned(),
        reason: verdict.reason.code().to_owned(),
        text,
        warnings: verdict.warnings.iter().map(ToString::to_string).collect(),
        made_by_controller: Vec::new(),
    }
}

fn place(document: &Document<'_>) -> String {
    format!("{}:{}", document.file, document.line(&document.node))
}

/// Every object of the sources, Lists opened.
fn objects(sources: &[Source]) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for piece in sources.iter().flat_map(Source::pieces) {
        if let Piece::Document(document) = piece? {
            found.extend(documents::objects(&document.node).into_iter().map(super::yaml::tree::Node::to_json));
        }
    }
    Ok(found)
}

/// Copies the sources to standard output; `change` says what becomes of an object, `None` leaves it as it is.
fn rewrite(
    sources: &[Source],
    io: &mut Io<'_>,
    mut change: impl FnMut(&Document<'_>, &Value) -> anyhow::Result<Option<Value>>,
) -> anyhow::Result<()> {
    let mut out = String::new();
    for source in sources {
        let mut text = String::new();
        for piece in source.pieces() {
            match piece? {
                Piece::Verbatim(verbatim) => text.push_str(verbatim),
                Piece::Document(document) => match rewritten(&document, &mut change)? {
                    Some(value) => push_document(&mut text, &document, &value),
                    None => text.push_str(document.text),
                },
            }
        }
        // Several files become one stream.
        if !out.is_empty() && !text.trim_start().starts_with("---") {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str("---\n");
        }
        out.push_str(&text);
    }
    io.out.write_all(out.as_bytes())?;
    Ok(())
}

fn rewritten(
    document: &Document<'_>,
    change: &mut impl FnMut(&Document<'_>, &Value) -> anyhow::Result<Option<Value>>,
) -> anyhow::Result<Option<Value>> {
    let mut value = document.node.to_json();
    let changed = rewrite_value(&mut value, document, change, 0)?;
    Ok(changed.then_some(value))
}

/// Lists of lists deeper than this are nobody's manifests.
const MAX_LISTS: usize = 8;

fn rewrite_value(
    value: &mut Value,
    document: &Document<'_>,
    change: &mut impl FnMut(&Document<'_>, &Value) -> anyhow::Result<Option<Value>>,
    depth: usize,
) -> anyhow::Result<bool> {
    if depth > MAX_LISTS {
        bail!("{}: Lists within Lists, deeper than {MAX_LISTS}", place(document));
    }
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    if is_list && let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
        let mut any = false;
        for item in items {
            any |= rewrite_value(item, document, change, depth + 1)?;
        }
        return Ok(any);
    }
    let Some(changed) = change(document, value)? else { return Ok(false) };
    let differs = changed != *value;
    *value = changed;
    Ok(differs)
}

fn push_document(out: &mut String, document: &Document<'_>, value: &Value) {
    if document.text.trim_start().starts_with('{') {
        out.push_str(&document.text[..document.text.len() - document.text.trim_start().len()]);
        out.push_str(&format!("{value:#}"));
        if document.text.ends_with('\n') {
            out.push('\n');
        }
        return;
    }
    // Content that began on the line of its marker moves to the next one.
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(stream::leading_comments(document.text));
    out.push_str(&emit::document(value, Some(&document.node)));
}

fn report(format: Format, lines: &[Line], io: &mut Io<'_>) -> anyhow::Result<()> {
    io::print(format, &lines, io.err, |err| {
        for line in lines {
            writeln!(err, "{}  {}  {} ({})", line.place, line.object, line.outcome, line.reason)?;
            if line.outcome == "denied" {
                writeln!(err, "  {}", line.text)?;
            }
            for made in &line.made_by_controller {
                writeln!(err, "  on the cluster a controller makes {made} before the Pods")?;
            }
            for warning in &line.warnings {
                writeln!(err, "  warning: {warning}")?;
            }
        }
        Ok(())
    })
}
