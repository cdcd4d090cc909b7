//! `drawbridge migrate kaos`: any stream of manifests in, the same stream out, in which KAOS's kinds are spelled as today.
//!
//! Promises: documents of other kinds, and those that do not change, come out byte for byte; an object of which something is wrong comes
//! out as it came in. The report goes to standard error, so that standard output can be piped into `kubectl apply -f -`.

use serde::Serialize;
use serde_json::Value;

use crate::api::kaos_tools::migrate::{self, Migrated};
use crate::cli::inject::rewrite;
use crate::cli::io::{self, Io, shown};
use crate::cli::offline::documents::{self, Document, Input};
use crate::cli::survey::text;
use crate::cli::{Exit, Format};

/// Arguments of `migrate kaos`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// Format of the report on standard error.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// What became of one object.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    /// File and line of the document.
    place: String,
    /// Such as `Agent simple`.
    object: String,
    /// `migrated`, `unchanged` or `faulty`.
    outcome: &'static str,
    /// Old place and what it means now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<String>,
    /// What deserves a look.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// What is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    faults: Vec<String>,
}

pub(super) fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let sources = documents::read(&args.input.filename, io)?;
    let mut lines = Vec::new();
    rewrite(&sources, io, |document, object| {
        if !migrate::is_kaos(object) {
            return Ok(None);
        }
        let migrated = migrate::migrate(object);
        lines.push(line(document, object, &migrated));
        Ok((migrated.object != *object).then_some(migrated.object))
    })?;
    report(args.output, &lines, io)?;
    let faulty = lines.iter().any(|line| line.outcome == "faulty");
    Ok(if faulty { Exit::Findings } else { Exit::Ok })
}

fn line(document: &Document<'_>, object: &Value, migrated: &Migrated) -> Line {
    let outcome = match () {
        () if !migrated.faults.is_empty() => "faulty",
        () if migrated.object == *object => "unchanged",
        () => "migrated",
    };
    Line {
        place: format!("{}:{}", document.file, document.line(&document.node)),
        object: format!("{} {}", text(object, "/kind"), text(object, "/metadata/name")),
        outcome,
        changes: migrated.changes.iter().map(|(old, new)| format!("{old} -> {new}")).collect(),
        notes: migrated.notes.iter().map(ToString::to_string).collect(),
        faults: migrated.faults.iter().map(ToString::to_string).collect(),
    }
}

fn report(format: Format, lines: &[Line], io: &mut Io<'_>) -> anyhow::Result<()> {
    io::print(format, &lines, io.err, |err| {
        for line in lines {
            writeln!(err, "{}  {}  {}", shown(&line.place), shown(&line.object), line.outcome)?;
            line.changes.iter().try_for_each(|change| writeln!(err, "  {}", shown(change)))?;
            line.notes.iter().try_for_each(|note| writeln!(err, "  note: {}", shown(note)))?;
            line.faults.iter().try_for_each(|fault| writeln!(err, "  error: {}", shown(fault)))?;
        }
        Ok(())
    })
}
