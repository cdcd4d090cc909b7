//! `build run`, `retry` and `cancel`: a wish in an annotation, and, if wanted, how it ended.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, bail};
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{Found, Of, is_judged, status};
use crate::cli::Exit;
use crate::cli::cluster::Answer;
use crate::cli::io::{self, Io, shown};
use crate::cli::survey;

/// Field manager of the command line.
const MANAGER: &str = "drawbridge/cli";

/// How long a build may stand still before nobody waits for it any more: what it waits for may just be on its way, and so may a leader.
const STANDS: Duration = Duration::from_secs(60);

/// Arguments of `build run` and `build retry`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which build.
    #[command(flatten)]
    pub of: Of,
    /// Wait until the build has ended. Exit code 0: it succeeded; 1: it failed, has not been able to start for a minute, or has not ended within
    /// --timeout; 2: nothing was started, or the AgentBuild was deleted or made anew meanwhile; 3: the cluster did not answer; 4: the AgentBuild may not
    /// be read.
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
    let (mut exit, mut done) = (Exit::Ok, "is started anew");
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
        if stands_still(&last) {
            done = "was asked for anew and cannot start; it does by itself once what is said below is put right";
        }
        asked.look(&last);
    } else {
        asked.phase = status(&stored, "phase").to_owned();
    }
    print(&args.of, &asked, done, io)?;
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
        Answer::Absent => return Err(gone(found)),
        Answer::Refused(code, message) => bail!(
            "AgentBuild {} in namespace {} cannot be given annotation {annotation} ({code}: {message}), so nothing was started or cancelled. What to \
             do: settle that, or let somebody do it who may patch {}.{} there",
            found.name,
            found.namespace,
            found.kind.plural(),
            found.kind.group()
        ),
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

/// That it was there, and is not any more.
fn gone(found: &Found) -> anyhow::Error {
    anyhow::anyhow!(
        "AgentBuild {} in namespace {} was deleted meanwhile, and its builds with it; kubectl get agentbuilds -A shows those that exist",
        found.name,
        found.namespace
    )
}

/// Waits until a build of other inputs than `before` has been judged, or one has not been able to start for long; tells what it says meanwhile.
async fn ended(found: &Found, before: &str, io: &mut Io<'_>) -> anyhow::Result<Value> {
    let mut events = pin!(found.cluster.follow(&found.collection()));
    let (mut said, mut presence, mut still) = (String::new(), Presence::default(), Still::default());
    loop {
        let next = match still.until() {
            None => events.next().await,
            Some(until) => match timeout_at(until, events.next()).await {
                Ok(next) => next,
                Err(_) => return Ok(still.object),
            },
        };
        let Some(event) = next else { bail!("the watch has ended") };
        if presence.is_gone(&event, (found.name.as_str(), survey::text(&found.object, "/metadata/uid"))) {
            return Err(gone(found));
        }
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
        still.look(object, Instant::now());
    }
}

/// Whether a build waits for something to be put right: it is called failed, and nothing of it is judged.
fn stands_still(object: &Value) -> bool {
    status(object, "phase") == "Failed" && !is_judged(object)
}

/// For how long a build that is followed has not been able to start.
#[derive(Debug, Default)]
struct Still {
    since: Option<Instant>,
    /// What was last seen of it.
    object: Value,
}

impl Still {
    /// Takes what is seen of it at that moment.
    fn look(&mut self, object: Value, now: Instant) {
        self.since = if stands_still(&object) { self.since.or(Some(now)) } else { None };
        self.object = object;
    }

    /// When nobody waits for it any more, if nothing happens to it.
    fn until(&self) -> Option<Instant> {
        self.since.map(|since| since + STANDS)
    }
}

/// Whether an object that is followed is still there.
#[derive(Debug, Default)]
struct Presence {
    /// The list that is being read had it.
    is_listed: bool,
}

impl Presence {
    /// Takes an event; whether it says that the object of that name and uid is there no more, or another one in its place.
    fn is_gone(&mut self, event: &Event<DynamicObject>, (name, uid): (&str, &str)) -> bool {
        let is_it = |object: &DynamicObject| object.metadata.name.as_deref() == Some(name);
        match event {
            Event::Init => self.is_listed = false,
            Event::InitApply(object) | Event::Apply(object) if is_it(object) => {
                self.is_listed = true;
                return object.metadata.uid.as_deref() != Some(uid);
            }
            Event::InitDone => return !self.is_listed,
            Event::Delete(object) => return is_it(object),
            Event::InitApply(_) | Event::Apply(_) => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A wish whose run nobody can make has no hash of its own, and was waited for until the timeout, an hour unless said otherwise.
    #[test]
    fn a_build_that_cannot_start_is_not_waited_for_until_the_timeout() {
        let build = |phase: &str, succeeded: &str| {
            json!({"status": {"phase": phase, "buildHash": "before",
                "conditions": [{"type": "BuildSucceeded", "status": succeeded}]}})
        };
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut still = Still::default();
        for (seconds, object, until) in [
            (0, build("Failed", "False"), None),
            (1, build("Pending", "Unknown"), None),
            (2, build("Failed", "Unknown"), Some(62)),
            (30, build("Failed", "Unknown"), Some(62)),
            (40, build("Building", "Unknown"), None),
            (50, build("Failed", "Unknown"), Some(110)),
            (51, json!({"status": {"buildStatus": "Failed"}}), Some(110)),
            (52, json!({}), None),
        ] {
            still.look(object.clone(), at(seconds));
            assert_eq!((still.until(), &still.object), (until.map(at), &object), "{seconds}");
        }
    }

    #[test]
    fn a_build_that_is_deleted_while_it_is_waited_for_is_gone() {
        let build = |name: &str, uid: &str| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {"name": name, "uid": uid}})).unwrap()
        };
        let last = |events: Vec<Event<DynamicObject>>| {
            let mut presence = Presence::default();
            let said: Vec<bool> = events.iter().map(|event| presence.is_gone(event, ("weather", "u"))).collect();
            let (last, before) = said.split_last().unwrap();
            assert!(!before.contains(&true), "{said:?}");
            *last
        };
        let listed =
            || vec![Event::Init, Event::InitApply(build("weather", "u")), Event::InitApply(build("other", "o"))];
        let and = |more: Vec<Event<DynamicObject>>| last(listed().into_iter().chain(more).collect());
        for (more, gone) in [
            (vec![Event::InitDone], false),
            (vec![Event::InitDone, Event::Apply(build("weather", "u"))], false),
            (vec![Event::InitDone, Event::Apply(build("other", "p"))], false),
            (vec![Event::InitDone, Event::Delete(build("other", "o"))], false),
            (vec![Event::InitDone, Event::Delete(build("weather", "u"))], true),
            (vec![Event::InitDone, Event::Apply(build("weather", "another"))], true),
            (vec![Event::InitDone, Event::Init, Event::InitApply(build("weather", "another"))], true),
            (vec![Event::InitDone, Event::Init, Event::InitApply(build("other", "o")), Event::InitDone], true),
        ] {
            let words = format!("{more:?}");
            assert_eq!(and(more), gone, "{words}");
        }
    }
}
