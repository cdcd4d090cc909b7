//! `build run`, `retry` and `cancel`: a wish in an annotation, and, if wanted, how it ended.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use kube::runtime::watcher::Event;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Found, Of, is_judged, status};
use crate::cli::Exit;
use crate::cli::cluster::Answer;
use crate::cli::io::{self, Io, shown};

/// Field manager of the command line.
const MANAGER: &str = "drawbridge/cli";

/// Arguments of `build run` and `build retry`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which build.
    #[command(flatten)]
    pub of: Of,
    /// Wait until the build has ended; exit code 1 when it failed.
    #[arg(short, long)]
    pub wait: bool,
    /// How long to wait, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, requires = "wait")]
    pub timeout: u64,
}

/// What was asked for, and what came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    namespace: String,
    name: String,
    /// The annotation that carries the wish.
    annotation: &'static str,
    /// Its value.
    value: String,
    /// The phase: that of before, or with `--wait` that of the end.
    phase: String,
    /// What the status says; empty without `--wait`.
    message: String,
    /// The image that this build made; empty without.
    built_image: String,
}

pub(super) async fn start(args: Args, only_failed: bool, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let found = args.of.find(args.wait).await?;
    let phase = found.status("phase").to_owned();
    if only_failed && phase != "Failed" {
        let phase = if phase.is_empty() { "new" } else { &phase };
        bail!("AgentBuild {} is {phase}, not Failed; drawbridge build run starts it anew all the same", found.name);
    }
    let before = found.status("buildHash").to_owned();
    let (mut asked, stored) = ask(&found, found.front().annotation_rebuild).await?;
    let mut exit = Exit::Ok;
    if args.wait {
        let patience = Duration::from_secs(args.timeout);
        let ended = tokio::time::timeout(patience, ended(&found, &before, io)).await;
        let last = match ended {
            Ok(object) => object?,
            Err(_) => {
                writeln!(io.err, "drawbridge: the build has not ended within {} s", args.timeout)?;
                found.read().await?
            }
        };
        if status(&last, "phase") != "Succeeded" || status(&last, "buildHash") == before {
            exit = Exit::Findings;
        }
        asked.look(&last);
    } else {
        asked.phase = status(&stored, "phase").to_owned();
    }
    print(&args.of, &asked, "is started anew", io)?;
    Ok(exit)
}

pub(super) async fn cancel(of: Of, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let found = of.find(false).await?;
    let phase = found.status("phase");
    if phase == "Succeeded" || (phase == "Failed" && is_judged(&found.object)) {
        bail!("AgentBuild {} is {phase}; there is nothing to cancel", found.name);
    }
    let (mut asked, _) = ask(&found, found.front().annotation_cancel).await?;
    phase.clone_into(&mut asked.phase);
    print(&of, &asked, "is being cancelled", io)?;
    Ok(Exit::Ok)
}

impl Asked {
    fn look(&mut self, object: &Value) {
        status(object, "phase").clone_into(&mut self.phase);
        status(object, "message").clone_into(&mut self.message);
        // Of a build that has not succeeded the status keeps the image of the one before.
        if self.phase == "Succeeded" {
            status(object, "builtImage").clone_into(&mut self.built_image);
        }
    }
}

fn print(of: &Of, asked: &Asked, done: &str, io: &mut Io<'_>) -> anyhow::Result<()> {
    io::print(of.output, asked, io.out, |out| {
        writeln!(out, "AgentBuild {} in namespace {} {done}", asked.name, asked.namespace)?;
        if !asked.message.is_empty() {
            writeln!(out, "{}: {}", asked.phase, shown(&asked.message))?;
        }
        if !asked.built_image.is_empty() {
            writeln!(out, "image: {}", shown(&asked.built_image))?;
        }
        Ok(())
    })
}

/// Gives the annotation a value that it has never had.
async fn ask(found: &Found, annotation: &'static str) -> anyhow::Result<(Asked, Value)> {
    let value = jiff::Timestamp::now().to_string();
    let uid = found.object.pointer("/metadata/uid").cloned().unwrap_or_default();
    let patch = json!({"metadata": {"uid": uid, "annotations": {annotation: value}}});
    let stored = match found.cluster.merge(&found.path(), &patch, MANAGER).await? {
        Answer::Object(object) => object,
        Answer::Absent => bail!("AgentBuild {} is gone", found.name),
        Answer::Refused(code, message) => bail!("the API server refuses ({code}): {message}"),
    };
    let asked = Asked {
        namespace: found.namespace.clone(),
        name: found.name.clone(),
        annotation,
        value,
        phase: String::new(),
        message: String::new(),
        built_image: String::new(),
    };
    Ok((asked, stored))
}

/// Waits until a build of other inputs than `before` has been judged; tells what it says meanwhile.
async fn ended(found: &Found, before: &str, io: &mut Io<'_>) -> anyhow::Result<Value> {
    let mut events = pin!(found.cluster.follow(&found.collection()));
    let mut said = String::new();
    while let Some(event) = events.next().await {
        let (Event::Apply(object) | Event::InitApply(object)) = event else { continue };
        if object.metadata.name.as_deref() != Some(&found.name) {
            continue;
        }
        let object = serde_json::to_value(object).context("an AgentBuild is JSON")?;
        let message = status(&object, "message");
        if message != said {
            message.clone_into(&mut said);
            writeln!(io.err, "{}: {}", status(&object, "phase"), shown(&said))?;
        }
        if is_judged(&object) && status(&object, "buildHash") != before {
            return Ok(object);
        }
    }
    bail!("the watch has ended")
}
