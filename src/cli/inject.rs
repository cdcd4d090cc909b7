//! `drawbridge inject` and `uninject`: any stream of manifests in, the same stream out.
//!
//! Promises: documents of other kinds, and those that do not change, come out byte for byte, in their order; a document that changes
//! keeps the order of its keys and the comments ahead of it. Injecting twice gives the same bytes as once. A workload that an
//! AgentRuntime of the stream points at comes out as the cluster would make it: with what enrolment writes, and injected. Of Agents,
//! ModelAPIs and MCPServers the report says nothing but that two of the stream want one Deployment.
//! The report goes to standard error, so that standard output can be piped into `kubectl apply -f -`.

use std::borrow::Cow;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use super::io::{self, Io, shown, shown_lines};
use super::offline::documents::{self, Document, Input, Piece, Source};
use super::offline::runtimes::{self, Fate, Obstacle, Workloads};
use super::offline::workload::{Subject, UnknownType};
use super::offline::world::{Facts, World};
use super::offline::{agents, governed, misplaced, review};
use super::survey;
use super::yaml::{emit, stream};
use super::{Exit, Format};
use crate::admission::verdict::{Outcome, Verdict};
use crate::config::enrolment::{self, Asks};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::{Class, Reason};

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
    /// `injected`, `skipped`, `denied` or `uninjected`; of an AgentRuntime `enrols`, `waits` or `denied`.
    pub outcome: String,
    /// Reason code.
    pub reason: String,
    /// The reason in words; the whole refusal when there is one; the workload that an AgentRuntime enrols.
    pub text: String,
    /// What deserves attention.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why a label that was meant to enrol it does not; the webhook, which sees the Pod alone, does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
    let mut all = objects(&sources)?;
    let mut world = World::new(&facts)?;
    all.iter().for_each(|object| world.observe(object, &namespace));
    runtimes::namespaces(&all, &namespace).iter().for_each(|name| world.know_namespace(name));
    // An AgentRuntime may point at the Deployment that a controller makes of an Agent of the stream.
    let settings = world.snapshot()?.builds.settings.workloads;
    let of_agents = agents::all(&all.iter().collect::<Vec<_>>(), &namespace, &settings);
    for of_agent in of_agents {
        of_agent.account.iter().for_each(|account| world.observe(account, &namespace));
        all.push(of_agent.deployment);
    }
    let made = made(&mut world, &all, &namespace)?;
    let snapshot = world.snapshot()?;
    let workloads = Workloads::of(&all, &namespace);
    let mut lines = Vec::new();
    rewrite(&sources, io, |document, object| {
        if runtimes::is_agent_runtime(object) {
            let mut fate = runtimes::fate(object, &namespace, &workloads, &snapshot);
            let refused = refusal(&fate, &all, &namespace, &snapshot)?;
            fate.obstacles.extend(refused);
            lines.push(runtime_line(&fate, document));
            return Ok(None);
        }
        let Some(subject) = Subject::of(object, &namespace) else {
            lines.extend(unknown_line(object, &namespace, document));
            lines.extend(namesake_line(object, &namespace, (&snapshot, document))?);
            return Ok(None);
        };
        let (verdict, changed) = judged(object, &subject, &snapshot)?;
        let mut told = line(&subject, &verdict, document);
        told.note = note(object, &subject, (&verdict, &snapshot));
        let accounts = made.iter().filter(|(other, _)| *other == subject);
        lines.push(Line {
            made_by_controller: accounts
                .filter(|_| verdict.allowed())
                .map(|(_, name)| format!("ServiceAccount {}/{name}", subject.namespace))
                .collect(),
            ..told
        });
        Ok(changed)
    })?;
    report(output, &lines, io)?;
    let denied = lines.iter().any(|line| line.outcome == "denied");
    Ok(if denied { Exit::Findings } else { Exit::Ok })
}

/// The ServiceAccounts that controllers would make, with what they make them for; the world has them from now on.
fn made(world: &mut World, all: &[Value], namespace: &str) -> anyhow::Result<Vec<(Subject, String)>> {
    let governors = world.snapshot()?;
    let mut made = Vec::new();
    for object in all {
        let Some(subject) = Subject::of(object, namespace) else { continue };
        let governed = governed::with_type(object, &subject, &governors);
        if let Some(account) = review::prepare(world, &subject, &governed)? {
            made.push((subject, account));
        }
    }
    Ok(made)
}

/// What the webhook says of a workload's Pods, and what becomes of its document. A workload that enrolment leaves as it is, because its Pods
/// would be refused or get nothing, is judged with its label all the same, as `explain` and `validate` do: without it nobody would hear why.
fn judged(object: &Value, subject: &Subject, snapshot: &Snapshot) -> anyhow::Result<(Verdict, Option<Value>)> {
    let enrolled = governed::enrolled(object, subject, snapshot);
    let (mut verdict, changed) = inject(subject, &enrolled, snapshot)?;
    let labelled = governed::with_type(object, subject, snapshot);
    if matches!(enrolled, Cow::Borrowed(_)) && subject.template(&labelled) != subject.template(object) {
        verdict = review::evaluate(subject, &subject.pod(&labelled), snapshot)?;
    }
    let changed = changed.filter(|_| verdict.allowed());
    Ok((verdict, changed.or_else(|| matches!(enrolled, Cow::Owned(_)).then(|| enrolled.into_owned()))))
}

/// Why an AgentRuntime with nothing else in its way does not enrol its target: the Pods would be refused. In the words of its status.
fn refusal(fate: &Fate, all: &[Value], namespace: &str, snapshot: &Snapshot) -> anyhow::Result<Option<Obstacle>> {
    let Some(target) = fate.target.as_ref().filter(|_| fate.obstacles.is_empty()) else { return Ok(None) };
    let found = all.iter().find_map(|object| {
        let subject = Subject::of(object, namespace).filter(|subject| subject.title() == *target)?;
        Some((object, subject))
    });
    let Some((object, subject)) = found else { return Ok(None) };
    let (verdict, _) = judged(object, &subject, snapshot)?;
    let Outcome::Deny(denial) = &verdict.outcome else { return Ok(None) };
    let text = format!("Pods of {target} would be refused: {}. {}", denial.sentence, denial.remedy);
    Ok(Some(Obstacle { reason: denial.reason, field: "spec.targetRef", text }))
}

/// Why a label that was meant to enrol does not, where an AgentRuntime's line does not say it; in the words of `explain`.
fn note(object: &Value, subject: &Subject, (verdict, snapshot): (&Verdict, &Snapshot)) -> Option<String> {
    if verdict.reason != Reason::NoTypeLabel || governed::governor(subject, snapshot).is_some() {
        return None;
    }
    let misplaced = || misplaced::of(object, subject).map(|told| (told.reason, told.message));
    let (kind, namespace, name) = (subject.kind(), &subject.namespace, &subject.workload.name);
    let (reason, text) = match governed::asks(object, subject, snapshot) {
        Some(Asks::Pending(agent_type)) => {
            (Reason::EnrolmentPending, enrolment::pending(kind, namespace, name, agent_type))
        }
        Some(Asks::Unknown) => misplaced().unwrap_or_else(|| {
            let value = survey::label(object, keys::LABEL_TYPE).unwrap_or_default();
            (Reason::UnknownValue, enrolment::unknown(kind, value))
        }),
        _ => misplaced()?,
    };
    Some(format!("{}: {text}", reason.code()))
}

/// What becomes of an AgentRuntime: its document comes out as it is.
fn runtime_line(fate: &Fate, document: &Document<'_>) -> Line {
    let first = fate.obstacles.first();
    let reason = first.map_or(Reason::TargetFound, |obstacle| obstacle.reason);
    let (outcome, text) = match (first, &fate.target) {
        (Some(obstacle), _) if reason.class() == Class::Denied => ("denied", obstacle.text.clone()),
        (Some(obstacle), _) => ("waits", obstacle.text.clone()),
        (None, target) => ("enrols", target.clone().unwrap_or_default()),
    };
    Line {
        place: place(document),
        object: fate.title.clone(),
        outcome: outcome.to_owned(),
        reason: reason.code().to_owned(),
        text,
        warnings: fate.obstacles.iter().skip(1).map(|obstacle| obstacle.text.clone()).collect(),
        note: None,
        made_by_controller: Vec::new(),
    }
}

/// What would make Pods if the API server knew its type: it comes out as it is, and without a word it would pass for injected. An object without a
/// version is none that anybody applies.
fn unknown_line(object: &Value, namespace: &str, document: &Document<'_>) -> Option<Line> {
    let unknown = UnknownType::of(object).filter(|unknown| !unknown.is_without_version())?;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let own = Some(text("/metadata/namespace")).filter(|own| !own.is_empty()).unwrap_or(namespace);
    Some(Line {
        place: place(document),
        object: format!("{} {own}/{}", text("/kind"), text("/metadata/name")),
        outcome: Class::Denied.as_str().to_owned(),
        reason: Reason::FieldInvalid.code().to_owned(),
        text: format!("{}: {}", unknown.field(), unknown.words()),
        warnings: Vec::new(),
        note: None,
        made_by_controller: Vec::new(),
    })
}

/// What the webhook would warn of about an Agent, ModelAPI or MCPServer whose Deployment another object wants, too: its document comes out
/// as it is.
fn namesake_line(
    object: &Value,
    namespace: &str,
    (snapshot, document): (&Snapshot, &Document<'_>),
) -> anyhow::Result<Option<Line>> {
    let warned = review::namesakes(object, namespace, snapshot)?;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let own = Some(text("/metadata/namespace")).filter(|own| !own.is_empty()).unwrap_or(namespace);
    Ok((!warned.is_empty()).then(|| Line {
        place: place(document),
        object: format!("{} {own}/{}", text("/kind"), text("/metadata/name")),
        outcome: Class::Skipped.as_str().to_owned(),
        reason: Reason::Accepted.code().to_owned(),
        text: Reason::Accepted.sentence().to_owned(),
        warnings: warned.iter().map(ToString::to_string).collect(),
        note: None,
        made_by_controller: Vec::new(),
    }))
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
        json_patch::patch(&mut pod, &operations).with_context(|| format!("{}: cannot be undone", subject.title()))?;
        let stripped = if operations.is_empty() { object.clone() } else { subject.with_pod(object, &pod) };
        let released = governed::released(&stripped, &subject).into_owned();
        let type_label = |object: &Value| -> bool {
            subject
                .template(object)
                .and_then(|template| template.pointer("/metadata/labels")?.get(keys::LABEL_TYPE))
                .is_some()
        };
        // A manifest does not say who wrote a label.
        let doubt = (type_label(object) && !type_label(&released)).then(|| {
            format!(
                "label {} was taken out with the rest of the enrolment; if the manifest had it before, put it back",
                keys::LABEL_TYPE
            )
        });
        let nothing = released == *object;
        let (outcome, reason, text) = if nothing {
            ("skipped", Reason::NothingToRemove, Reason::NothingToRemove.sentence())
        } else {
            let text = "what the status annotation names, and what an AgentRuntime's enrolment wrote, was taken out";
            ("uninjected", Reason::Removed, text)
        };
        lines.push(Line {
            place: place(document),
            object: subject.title(),
            outcome: outcome.to_owned(),
            reason: reason.code().to_owned(),
            text: text.to_owned(),
            warnings: doubt.into_iter().collect(),
            note: None,
            made_by_controller: Vec::new(),
        });
        Ok((!nothing).then_some(released))
    })?;
    report(output, &lines, io)?;
    Ok(Exit::Ok)
}

fn inject(subject: &Subject, object: &Value, snapshot: &Snapshot) -> anyhow::Result<(Verdict, Option<Value>)> {
    let mut pod = subject.pod(object);
    let verdict = review::evaluate(subject, &pod, snapshot)?;
    let operations = verdict.operations();
    if operations.is_empty() {
        return Ok((verdict, None));
    }
    json_patch::patch(&mut pod, &operations)
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
        note: None,
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
            found.extend(documents::objects(&document.node).into_iter().map(|object| object.value));
        }
    }
    Ok(found)
}

/// Copies the sources to standard output; `change` says what becomes of an object, `None` leaves it as it is.
pub(super) fn rewrite(
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
        join(&mut out, &text);
    }
    io.out.write_all(out.as_bytes())?;
    Ok(())
}

/// Adds a file to the stream that several files become.
fn join(out: &mut String, text: &str) {
    // A byte order mark says something at the head of a stream only.
    let text = text.strip_prefix('\u{feff}').filter(|_| !out.is_empty()).unwrap_or(text);
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    let starts_with = |marker| text[stream::leading_comments(text).len()..].starts_with(marker);
    if !out.is_empty() && starts_with("%") {
        // A directive belongs ahead of a document, and another one ends with this.
        out.push_str("...\n");
    } else if !out.is_empty() && !text.is_empty() && !starts_with("---") {
        out.push_str("---\n");
    }
    out.push_str(text);
}

fn rewritten(
    document: &Document<'_>,
    change: &mut impl FnMut(&Document<'_>, &Value) -> anyhow::Result<Option<Value>>,
) -> anyhow::Result<Option<Value>> {
    let mut value = document.node.to_json();
    let changed = rewrite_value(&mut value, None, (document, change), 0)?;
    Ok(changed.then_some(value))
}

/// Lists of lists deeper than this are nobody's manifests.
const MAX_LISTS: usize = 8;

fn rewrite_value(
    value: &mut Value,
    of: Option<&(String, String)>,
    (document, change): (&Document<'_>, &mut impl FnMut(&Document<'_>, &Value) -> anyhow::Result<Option<Value>>),
    depth: usize,
) -> anyhow::Result<bool> {
    if depth > MAX_LISTS {
        bail!("{}: Lists within Lists, deeper than {MAX_LISTS}", place(document));
    }
    let list = documents::items_of(value["apiVersion"].as_str(), value["kind"].as_str());
    if let (Some(of), Some(items)) = (list, value.get_mut("items").and_then(Value::as_array_mut)) {
        let mut any = false;
        for item in items {
            any |= rewrite_value(item, of.as_ref(), (document, &mut *change), depth + 1)?;
        }
        return Ok(any);
    }
    let typed = documents::typed(value, of);
    let Some(mut changed) = change(document, &typed)? else { return Ok(false) };
    if let (Cow::Owned(said), Some(members)) = (&typed, changed.as_object_mut()) {
        const TYPE: [&str; 2] = ["apiVersion", "kind"];
        // The list says these, and goes on saying them; an item that has become of another type says that itself.
        if TYPE.iter().all(|member| members.get(*member) == said.get(*member)) {
            TYPE.iter().for_each(|member| drop(members.remove(*member)));
        }
    }
    let differs = changed != *value;
    *value = changed;
    Ok(differs)
}

fn push_document(out: &mut String, document: &Document<'_>, value: &Value) {
    let (text, node) = (document.text, Some(&document.node));
    if text.trim_start().starts_with('{') {
        out.push_str(&text[..text.len() - text.trim_start().len()]);
        out.push_str(&emit::json_document(value, node, text));
        out.push_str(&text[text.trim_end().len()..]);
        return;
    }
    // Content that began on the line of its marker moves to the next one.
    if !out.is_empty() && !out.ends_with(['\n', '\u{feff}']) {
        out.push('\n');
    }
    out.push_str(stream::leading_comments(text));
    let written = emit::document(value, node);
    out.push_str(&if text.contains("\r\n") { written.replace('\n', "\r\n") } else { written });
}

fn report(format: Format, lines: &[Line], io: &mut Io<'_>) -> anyhow::Result<()> {
    io::print(format, &lines, io.err, |err| {
        for line in lines {
            let (place, object) = (shown(&line.place), shown(&line.object));
            writeln!(err, "{place}  {object}  {} ({})", line.outcome, line.reason)?;
            if ["denied", "waits", "enrols"].contains(&line.outcome.as_str()) {
                writeln!(err, "  {}", shown_lines(&line.text, "  "))?;
            }
            for made in &line.made_by_controller {
                writeln!(err, "  on the cluster a controller makes {} before the Pods", shown(made))?;
            }
            for warning in &line.warnings {
                writeln!(err, "  warning: {}", shown_lines(warning, "  "))?;
            }
            if let Some(note) = &line.note {
                writeln!(err, "  note: {}", shown_lines(note, "  "))?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Exit, Io};
    use crate::cli::{Cli, conclude};

    fn run(input: &str) -> (Exit, String, String) {
        let cli = Cli::try_parse_from(["drawbridge", "inject", "-f", "-"]).unwrap();
        let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let result = cli.command.run(&mut io);
        let exit = conclude(result, &mut io);
        (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    /// A Deployment with these labels of its own and of its template.
    fn deployment(own: &str, of_template: &str, host_network: bool) -> String {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: weather, namespace: team1, labels: {{{own}}}}}\nspec:\n  template:\n    \
             metadata: {{labels: {{{of_template}}}}}\n    spec: {{hostNetwork: {host_network}, containers: [{{name: agent, image: agent}}]}}\n"
        )
    }

    const RUNTIME: &str = "---\napiVersion: agent.kagenti.dev/v1alpha1\nkind: AgentRuntime\nmetadata: {name: r, namespace: team1}\nspec:\n  \
                           type: agent\n  targetRef: {apiVersion: apps/v1, kind: Deployment, name: weather}\n";

    #[test]
    fn a_workload_whose_enrolment_would_be_refused_is_denied_and_stays_as_it_is() {
        const AGENT: &str = "kagenti.io/type: agent";
        for (input, governed) in [
            (format!("{}{RUNTIME}", deployment("", "app: weather", true)), true),
            (format!("{}{RUNTIME}", deployment("", AGENT, true)), true),
            (format!("{}{RUNTIME}", deployment(AGENT, "app: weather", true)), true),
            (deployment(AGENT, "app: weather", true), false),
        ] {
            let (exit, out, err) = run(&input);
            assert_eq!(exit, Exit::Findings, "{input}{err}");
            assert_eq!(out, input, "nothing is invented: {err}");
            assert!(
                err.contains("Deployment team1/weather  denied (HostNetwork)\n  HostNetwork: the Pod uses"),
                "{err}"
            );
            let says =
                "AgentRuntime team1/r  denied (HostNetwork)\n  Pods of Deployment team1/weather would be refused: ";
            assert_eq!(err.contains(says), governed, "{err}");
            assert!(!err.contains("enrols"), "{err}");
        }
        let (exit, _, err) = run(&format!("{}{RUNTIME}", deployment("", "app: weather", false)));
        assert!(exit == Exit::Ok && err.contains("enrols (TargetFound)") && err.contains("injected"), "{err}");
    }

    /// The first one was said to enrol what nobody enrols: of two of a name the cluster has the one that is applied last.
    #[test]
    fn of_two_agent_runtimes_of_a_name_the_last_one_counts() {
        let workload = deployment("", "app: weather", false);
        let other = workload.replace("name: weather", "name: other");
        let moved = RUNTIME.replace("name: weather", "name: other");
        let (exit, _, err) = run(&format!("{workload}---\n{other}{RUNTIME}{moved}"));
        assert_eq!(exit, Exit::Findings, "{err}");
        for says in [
            "Deployment team1/weather  skipped (NoTypeLabel)",
            "Deployment team1/other  injected",
            "AgentRuntime team1/r  denied (FieldInvalid)\n  metadata.name: the input has another AgentRuntime team1/r",
            "AgentRuntime team1/r  enrols (TargetFound)\n  Deployment team1/other",
        ] {
            assert!(err.contains(says), "{says}: {err}");
        }
        let (exit, _, err) = run(&format!("{workload}{RUNTIME}{RUNTIME}"));
        assert_eq!((exit, err.matches("enrols (TargetFound)").count()), (Exit::Ok, 2), "a copy says the same: {err}");
    }

    #[test]
    fn an_agent_runtime_of_a_version_that_there_is_not_enrols_nothing() {
        for version in ["agent.kagenti.dev/v9", "agent.kagenti.dev"] {
            let runtime = RUNTIME.replace("agent.kagenti.dev/v1alpha1", version);
            let input = format!("{}{runtime}", deployment("", "app: weather", false));
            let (exit, out, err) = run(&input);
            assert_eq!((exit, out), (Exit::Findings, input), "{err}");
            assert!(err.contains("AgentRuntime team1/r  denied (FieldInvalid)") && !err.contains("enrols"), "{err}");
        }
        let of_others = RUNTIME.replace("agent.kagenti.dev/", "agent.kagenti.dev.example.com/");
        let (exit, _, err) = run(&format!("{}{of_others}", deployment("", "app: weather", false)));
        assert!(exit == Exit::Ok && !err.contains("AgentRuntime"), "{err}");
    }

    /// Such a Deployment makes no Pods on any cluster, and came out as one that was looked at.
    #[test]
    fn a_workload_of_a_type_that_no_api_server_knows_is_denied_and_stays_as_it_is() {
        for (version, kind, says) in [
            ("v1", "Deployment", "the API server knows no Deployment of v1; write apiVersion: apps/v1"),
            ("extensions/v1beta1", "deployment", "; write apiVersion: apps/v1, and kind: Deployment"),
            ("apps/v1", "deployment", "kind: the API server knows no deployment of apps/v1; write kind: Deployment"),
        ] {
            let input = deployment("", "kagenti.io/type: agent", false);
            let input = input.replace("apps/v1\nkind: Deployment", &format!("{version}\nkind: {kind}"));
            let (exit, out, err) = run(&input);
            assert_eq!((exit, out), (Exit::Findings, input), "{err}");
            let head = format!("{kind} team1/weather  denied (FieldInvalid)\n");
            assert!(err.contains(&head) && err.contains(says), "{says}: {err}");
        }
        // A type of others, and what is no manifest, are nobody's here.
        for version in ["apiVersion: example.com/v1\n", ""] {
            let input = deployment("", "kagenti.io/type: agent", false).replace("apiVersion: apps/v1\n", version);
            let (exit, out, err) = run(&input);
            assert_eq!((exit, out, &*err), (Exit::Ok, input, ""), "{version}");
        }
    }

    #[test]
    fn an_agent_runtime_may_point_at_the_deployment_that_is_made_of_an_agent() {
        for (host_network, exit, says) in [
            (false, Exit::Ok, "AgentRuntime team1/r  enrols (TargetFound)"),
            (true, Exit::Findings, "AgentRuntime team1/r  denied (HostNetwork)"),
        ] {
            let input = format!(
                "apiVersion: agent.kagenti.dev/v1alpha1\nkind: Agent\nmetadata: {{name: weather, namespace: team1}}\nspec:\n  imageSource: \
                 {{image: agent:1}}\n  podTemplateSpec: {{spec: {{hostNetwork: {host_network}, containers: [{{name: agent}}]}}}}\n{RUNTIME}"
            );
            let (ended, out, err) = run(&input);
            assert_eq!((ended, out), (exit, input), "{err}");
            assert!(err.contains(says), "{err}");
        }
    }

    #[test]
    fn a_label_that_enrols_nothing_is_told_beside_the_skip() {
        const SKIPPED: &str = "Deployment team1/weather  skipped (NoTypeLabel)";
        for (own, of_template, says) in [
            (
                "",
                "kagenti.io/type: Agent",
                Some("  note: UnknownValue: label kagenti.io/type of its Pods is \"Agent\""),
            ),
            (
                "kagenti.io/type: agnet",
                "app: weather",
                Some("  note: UnknownValue: label kagenti.io/type on the deployment"),
            ),
            ("", "kagenti/type: agent", Some("  note: LabelIgnored: label kagenti/type=agent of its Pods")),
            ("", "app: weather", None),
        ] {
            let input = deployment(own, of_template, false);
            let (exit, out, err) = run(&input);
            assert_eq!((exit, out), (Exit::Ok, input), "{err}");
            assert!(err.contains(SKIPPED), "{err}");
            match says {
                Some(says) => assert_eq!(err.matches(says).count(), 1, "{says}: {err}"),
                None => assert!(!err.contains("note:"), "{err}"),
            }
        }
    }
}
