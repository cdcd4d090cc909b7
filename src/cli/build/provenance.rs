//! `build provenance`: what the image of a build was made of.
//!
//! ```text
//! status.provenance (written with the image) ─┐
//! other members of the status ────────────────┼─► each fact with the place it was read at, or why it is not known
//! PipelineRun and TaskRuns, where they are ───┘    and what contradicts it
//! ```
//!
//! Promises: nothing is inferred from the spec, which may have changed since; a run counts only by its uid, or where nothing was recorded by the
//! hash of the inputs that the status speaks of; what is not known is said with the reason.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use super::{Found, Of, status};
use crate::api::agent_kagenti_dev::provenance::{Provenance, StepSource};
use crate::cli::Exit;
use crate::cli::io::{self, Io};
use crate::cli::survey::{annotation, label, text};
use crate::domain::keys;
use crate::pipelines::request::FrontEnd;
use crate::store::Kind;
use crate::store::kinds::tekton::{RESULTS_DIGEST, image_of};

/// Where a fact was read.
const RECORD: &str = "status.provenance";
const STATUS: &str = "status";
const RUN: &str = "PipelineRun";

/// Something that is known with the place it was read at, or why it is not.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Fact {
    value: Value,
    /// Empty for what is not known.
    from: &'static str,
    /// Empty for what is known.
    unknown: String,
}

/// One image that a step ran in.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    /// As the node reported it, else as the step names it.
    image: String,
    /// Whether the name says which image it was, and not only what it was called.
    by_digest: bool,
}

/// One step.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    name: String,
    /// Namespace and name of the ConfigMap; empty where it is not known.
    config_map: String,
    /// SHA-256 of its TaskSpec; empty where it is not known.
    content_hash: String,
    images: Vec<Image>,
    skipped: bool,
}

/// What is printed.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    namespace: String,
    name: String,
    group: String,
    /// The facts, by name.
    facts: BTreeMap<&'static str, Fact>,
    steps: Vec<Step>,
    /// Where the steps were read; empty where they are not known.
    steps_from: &'static str,
    /// How the build stands, where its last attempt is not the one that made the image.
    since: String,
    /// What contradicts the record, or keeps it from being one.
    faults: Vec<String>,
}

/// The facts in the order in which people read them.
const ORDER: [(&str, &str); 16] = [
    ("image", "image"),
    ("imageTag", "pushed as"),
    ("digest", "digest"),
    ("repository", "repository"),
    ("revision", "asked for"),
    ("commit", "commit"),
    ("subfolder", "subfolder"),
    ("dockerfile", "Dockerfile"),
    ("buildArguments", "build arguments"),
    ("pipelineRun", "run"),
    ("knownFrom", "known from"),
    ("attempt", "attempt"),
    ("started", "began"),
    ("ended", "ended"),
    ("buildHash", "inputs"),
    ("recipe", "recipe"),
];

pub(super) async fn provenance(of: Of, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let found = of.find(false).await?;
    let mut notes = Vec::new();
    let (run, tasks) = read(&found, &mut notes).await?;
    let report = report(&found, run.as_ref(), &tasks);
    io::print(of.output, &report, io.out, |out| table(out, &report))?;
    for note in notes {
        writeln!(io.err, "drawbridge: {note}")?;
    }
    let exit = if report.faults.is_empty() { Exit::Ok } else { Exit::Findings };
    Ok(found.cluster.seen_all_or_partial(exit))
}

/// The run that made the image, as far as a name tells, and its TaskRuns.
async fn read(found: &Found, notes: &mut Vec<String>) -> anyhow::Result<(Option<Value>, Vec<Value>)> {
    let recorded = text(&found.object, "/status/provenance/pipelineRun");
    let name = if recorded.is_empty() { found.status("pipelineRunName") } else { recorded };
    if name.is_empty() {
        return Ok((None, Vec::new()));
    }
    let path = format!("{}/{name}", Kind::PipelineRun.path(&found.namespace));
    let Some(run) = found.cluster.read(&path, notes).await?.object() else { return Ok((None, Vec::new())) };
    let selector = keys::LABEL_PIPELINE_RUN.replace('/', "%2F");
    let path = format!("{}?labelSelector={selector}%3D{name}", Kind::TaskRun.path(&found.namespace));
    let tasks = found.cluster.list(&path, notes).await?;
    let uid = text(&run, "/metadata/uid").to_owned();
    let is_of_run = |task: &Value| {
        let owners = task.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
        owners.into_iter().any(|owner| owner["uid"] == *uid)
    };
    Ok((Some(run), tasks.into_iter().filter(is_of_run).collect()))
}

fn report(found: &Found, run: Option<&Value>, tasks: &[Value]) -> Report {
    let (kind, front) = (found.kind, found.front());
    of((&found.object, kind.group(), front), run, tasks)
}

/// What is known of the image that a build's status names.
pub(super) fn of((object, group, front): (&Value, &str, &FrontEnd), run: Option<&Value>, tasks: &[Value]) -> Report {
    let mut report = Report {
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
        group: group.to_owned(),
        ..Report::default()
    };
    let image = status(object, "builtImage");
    let stored = object.pointer("/status/provenance").filter(|record| record.is_object());
    let mut record: Option<Provenance> = stored.and_then(|record| serde_json::from_value(record.clone()).ok());
    if image.is_empty() {
        let phase = match status(object, "phase") {
            "" => "new",
            phase => phase,
        };
        report.faults.push(format!("the build has made no image yet: it is {phase}"));
    } else if let Some(other) = record.as_ref().and_then(|record| record.image.clone()).filter(|other| other != image) {
        report.faults.push(format!(
            "status.provenance speaks of {other}, status.builtImage of {image}: the image was recorded by an earlier version, or somebody \
             wrote the status; what was recorded is left out"
        ));
        record = None;
    }
    let run = run.filter(|run| match &record {
        Some(record) => record.pipeline_run_uid.as_deref() == Some(text(run, "/metadata/uid")),
        None => {
            let hash = status(object, "buildHash");
            !hash.is_empty()
                && annotation(run, front.annotation_hash) == Some(hash)
                && status(object, "phase") == "Succeeded"
        }
    });
    let record = record.unwrap_or_default();
    if record.build_hash.is_some() && record.build_hash.as_deref() != Some(status(object, "buildHash")) {
        report.since = format!(
            "the image is that of an earlier build: the last attempt, {}, is {}",
            or(status(object, "pipelineRunName"), "without a run"),
            or(status(object, "phase"), "new")
        );
    }
    contradictions(&record, run, tasks, &mut report);
    report.facts = facts(object, &record, run);
    (report.steps, report.steps_from) = steps(&record, run, tasks, front);
    report
}

fn or<'t>(text: &'t str, otherwise: &'t str) -> &'t str {
    if text.is_empty() { otherwise } else { text }
}

/// What the run and its tasks tell of the image otherwise than the record.
fn contradictions(record: &Provenance, run: Option<&Value>, tasks: &[Value], report: &mut Report) {
    let (Some(run), Some(digest)) = (run, record.digest.as_deref()) else { return };
    let results = |object: &Value, list: &str| -> Vec<String> {
        let all = object.pointer(list).and_then(Value::as_array).into_iter().flatten();
        let digests = all.filter(|one| RESULTS_DIGEST.iter().any(|name| one["name"] == **name));
        digests.filter_map(|one| Some(one["value"].as_str()?.trim().to_owned())).collect()
    };
    let of_tasks = tasks.iter().flat_map(|task| results(task, "/status/results"));
    let told: Vec<String> = results(run, "/status/results").into_iter().chain(of_tasks).collect();
    if !told.is_empty() && !told.iter().any(|one| one == digest) {
        report.faults.push(format!(
            "the run tells {}, the record {digest}: one of the two was changed since. What to do: look who may write \
             pipelineruns/status or agentbuilds/status there, and build again",
            told.join(", ")
        ));
    }
}

fn facts(object: &Value, record: &Provenance, run: Option<&Value>) -> BTreeMap<&'static str, Fact> {
    let recorded = serde_json::to_value(record).unwrap_or_default();
    let has_record = record.build_hash.is_some();
    let built = !status(object, "builtImage").is_empty();
    // Other members of the status speak of the last attempt, and of the image only where that made it.
    let is_last = built && !has_record && status(object, "phase") == "Succeeded";
    let parameter = |name: &str| {
        let all = run.and_then(|run| run.pointer("/spec/params")?.as_array()).into_iter().flatten();
        all.into_iter().find(|one| one["name"] == name).map(|one| one["value"].clone()).unwrap_or_default()
    };
    let of_status =
        |member: &str| if is_last { json!(text(object, &format!("/status/{member}"))) } else { Value::Null };
    let began = if text(object, "/status/startTime").is_empty() { "lastBuildTime" } else { "startTime" };
    let sources: [(&str, Value, Value); 13] = [
        ("image", json!(status(object, "builtImage")), Value::Null),
        ("imageTag", of_status("builtImageTag"), Value::Null),
        ("digest", of_status("imageDigest"), Value::Null),
        ("repository", Value::Null, parameter("repo-url")),
        ("revision", Value::Null, parameter("revision")),
        ("commit", of_status("sourceCommit"), Value::Null),
        ("subfolder", Value::Null, parameter("subfolder-path")),
        ("pipelineRun", of_status("pipelineRunName"), Value::Null),
        ("attempt", if is_last { object["status"]["attempts"].clone() } else { Value::Null }, Value::Null),
        ("started", of_status(began), run.map(|run| run["status"]["startTime"].clone()).unwrap_or_default()),
        (
            "ended",
            of_status("completionTime"),
            run.map(|run| run["status"]["completionTime"].clone()).unwrap_or_default(),
        ),
        ("buildHash", of_status("buildHash"), Value::Null),
        ("recipe", Value::Null, run.and_then(|run| annotation(run, keys::ANNOTATION_RECIPE)).into()),
    ];
    let mut facts = BTreeMap::new();
    for (name, of_status, of_run) in sources {
        let places = [(recorded.get(name).cloned().unwrap_or_default(), RECORD), (of_status, STATUS), (of_run, RUN)];
        let known = places.into_iter().find(|(value, _)| !value.is_null() && value.as_str() != Some(""));
        let fact = match known {
            Some((value, from)) => Fact { value, from, unknown: String::new() },
            None => Fact { unknown: why_not(name, (built, has_record)), ..Fact::default() },
        };
        facts.insert(name, fact);
    }
    facts.extend(of_steps(record, (built, has_record)));
    // Nearly every build has a run of its own, and then there is nothing to say.
    if let Some(from) = &record.known_from {
        facts.insert("knownFrom", Fact { value: json!(from), from: RECORD, unknown: String::new() });
    }
    facts
}

/// What steps were told, as one fact each.
fn of_steps(record: &Provenance, known: (bool, bool)) -> [(&'static str, Fact); 2] {
    let ran = || record.steps.iter().filter(|step| step.skipped != Some(true));
    let fact = |name: &'static str, value: Value| {
        let fact = if value.is_null() {
            Fact { unknown: why_not(name, known), ..Fact::default() }
        } else {
            Fact { value, from: RECORD, unknown: String::new() }
        };
        (name, fact)
    };
    let dockerfile = ran().find_map(|step| step.dockerfile.as_deref());
    let arguments: Vec<&str> = ran().flat_map(|step| &step.build_arguments).map(String::as_str).collect();
    let omitted: i32 = ran().filter_map(|step| step.build_arguments_omitted).sum();
    let mut arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    if omitted > 0 {
        arguments.push(format!("and {omitted} more, which were not recorded"));
    }
    let arguments = if record.steps.is_empty() { Value::Null } else { json!(arguments) };
    [fact("dockerfile", dockerfile.into()), fact("buildArguments", arguments)]
}

fn why_not(name: &str, (built, has_record): (bool, bool)) -> String {
    match (name, built, has_record) {
        (_, false, _) => "no image was made".to_owned(),
        (_, true, false) => {
            "it was not recorded: an earlier version or another operator made the image; build again to have it"
                .to_owned()
        }
        ("commit", ..) => "no task of the run reported the commit".to_owned(),
        ("digest", ..) => "no task of the run reported the digest".to_owned(),
        ("dockerfile", ..) => "no step that ran was given one by name, or told which it found".to_owned(),
        ("repository" | "revision" | "subfolder" | "recipe" | "buildArguments", ..) => {
            "the run was composed before an upgrade, or not of what the status says".to_owned()
        }
        _ => "the run did not say".to_owned(),
    }
}

/// The steps, from the record, else from a run that is there.
fn steps(record: &Provenance, run: Option<&Value>, tasks: &[Value], front: &FrontEnd) -> (Vec<Step>, &'static str) {
    if !record.steps.is_empty() {
        return (record.steps.iter().map(recorded_step).collect(), RECORD);
    }
    let embedded = run.and_then(|run| run.pointer("/spec/pipelineSpec/tasks")?.as_array());
    let (Some(run), Some(embedded)) = (run, embedded) else { return (Vec::new(), "") };
    let step = |task: &Value| {
        let name = text(task, "/name");
        let child = tasks.iter().find(|child| label(child, keys::LABEL_PIPELINE_TASK) == Some(name));
        let ran = names(child, "/status/steps", "imageID");
        let written = names(Some(task), "/taskSpec/steps", "image");
        Step {
            name: name.to_owned(),
            config_map: String::new(),
            content_hash: annotation(run, &format!("{}{name}", front.prefix_step_hash)).unwrap_or_default().to_owned(),
            images: images(if ran.is_empty() { &written } else { &ran }),
            skipped: child.is_none() && !tasks.is_empty(),
        }
    };
    (embedded.iter().map(step).collect(), RUN)
}

fn names(object: Option<&Value>, list: &str, member: &str) -> Vec<String> {
    let all = object.and_then(|object| object.pointer(list)?.as_array()).into_iter().flatten();
    all.filter_map(|one| one[member].as_str()).map(str::to_owned).collect()
}

fn recorded_step(step: &StepSource) -> Step {
    Step {
        name: step.name.clone(),
        config_map: step.config_map.clone().unwrap_or_default(),
        content_hash: step.content_hash.clone().unwrap_or_default(),
        images: images(if step.ran_images.is_empty() { &step.images } else { &step.ran_images }),
        skipped: step.skipped.unwrap_or(false),
    }
}

fn images(names: &[String]) -> Vec<Image> {
    let image = |name: &String| {
        let image = image_of(name).to_owned();
        Image { by_digest: image.contains("sha256:"), image }
    };
    names.iter().map(image).collect()
}

fn table(out: &mut dyn Write, report: &Report) -> std::io::Result<()> {
    writeln!(out, "AgentBuild {} of {} in namespace {}", report.name, report.group, report.namespace)?;
    for fault in &report.faults {
        writeln!(out, "fault: {}", io::shown(fault))?;
    }
    if !report.since.is_empty() {
        writeln!(out, "note: {}", io::shown(&report.since))?;
    }
    for (key, word) in ORDER {
        let Some(fact) = report.facts.get(key) else { continue };
        let shown = match &fact.value {
            Value::Null => format!("not known: {}", fact.unknown),
            Value::String(text) => io::shown(text),
            Value::Array(items) if items.is_empty() => "none".to_owned(),
            Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
            other => io::shown(&other.to_string()),
        };
        let from =
            if fact.from.is_empty() || fact.from == RECORD { String::new() } else { format!("  (from {})", fact.from) };
        writeln!(out, "{word:16} {shown}{from}")?;
    }
    if report.steps.is_empty() {
        return writeln!(out, "{:16} not known: the run is gone and nothing was recorded of them", "steps");
    }
    writeln!(out, "steps, from {}:", report.steps_from)?;
    for step in &report.steps {
        let skipped = if step.skipped { ", skipped" } else { "" };
        let hash = io::shown(or(step.content_hash.get(..12).unwrap_or(&step.content_hash), "not known"));
        let (name, config_map) = (io::shown(&step.name), io::shown(or(&step.config_map, "not known")));
        writeln!(out, "  {name}{skipped}: ConfigMap {config_map}, content {hash}")?;
        for image in step.images.iter().filter(|_| !step.skipped) {
            let by = if image.by_digest { "" } else { "  (by name only: which image that was is not known)" };
            writeln!(out, "      in {}{by}", io::shown(&image.image))?;
        }
    }
    Ok(())
}

/// A value on its line, whatever is in it.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| io::shown(&value.to_string()), io::shown)
}

#[cfg(test)]
mod tests;
