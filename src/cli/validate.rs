//! `drawbridge validate`: what the webhook would say, before anything is applied.
//!
//! In: files and folders. Out: findings with file and line. The engine's own answers, the configuration files' own checks, and keys that
//! are nearly ours; nothing is judged here by a second set of rules.

mod builds;
mod code;
mod kinds;
mod runtime;
mod schema;
#[cfg(test)]
mod tests;

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use super::given;
use super::io::{self, Io, Tone, shown, shown_lines};
use super::offline::documents::{self, Document, Input, Object, Piece, Source};
use super::offline::runtimes::{self, Workloads};
use super::offline::workload::Subject;
use super::offline::world::{Facts, World};
use super::offline::{governed, misplaced as misplaced_label, review};
use super::reference::keys::{self as known, Carrier};
use super::render::platform::{KEY_GATES, KEY_PLATFORM};
use super::yaml::tree::{Key, Node};
use super::{Exit, Format};
use crate::admission::verdict::{Outcome, Warning};
use crate::api::review::Phase;
use crate::config::enrolment::{self, Asks};
use crate::config::gates::Gates;
use crate::config::misplaced::{Misplaced, of_namespace};
use crate::config::schema::{Fault, Platform, SchemaError};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::{Class, Reason};
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;
pub use code::{Code, OfFiles};

/// Arguments of `validate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to read.
    #[command(flatten)]
    pub input: Input,
    /// Objects of the cluster that the input goes to, read and not judged: what `kubectl get
    /// namespaces,configmaps,serviceaccounts,agentruntimes,csidrivers -A -o yaml` prints. With them every warning of the webhook is given,
    /// also those about what the cluster lacks; can be repeated.
    #[arg(long, value_name = "PATH", value_parser = given::path)]
    pub cluster_objects: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Facts about the cluster.
    #[command(flatten)]
    pub facts: Facts,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It would be refused.
    Error,
    /// It would be accepted, and probably not do what was meant.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// File as given.
    pub file: String,
    /// Line in it.
    pub line: u64,
    /// How bad it is.
    pub severity: Severity,
    /// What it is about.
    pub code: Code,
    /// What, and what to do.
    pub text: String,
}

struct Findings(Vec<Finding>);

/// An object and the document it stands in.
type Placed<'a> = (&'a Document<'a>, Object<'a>);

impl Findings {
    fn add(
        &mut self,
        document: &Document<'_>,
        node_line: u64,
        severity: Severity,
        (code, text): (impl Into<Code>, String),
    ) {
        self.0.push(Finding {
            file: document.file.to_owned(),
            line: document.lines_before + node_line,
            severity,
            code: code.into(),
            text,
        });
    }
}

/// Validates.
///
/// # Errors
/// When the input or a configuration file of the flags cannot be read.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let Args { input: Input { filename, namespace }, cluster_objects, output, facts } = args;
    let of_cluster = documents::read(&cluster_objects, io)?;
    let mut sources = Vec::new();
    for path in &filename {
        let found = documents::read(std::slice::from_ref(path), io)?;
        // A mistyped folder would pass for one in which nothing is wrong.
        if found.is_empty() {
            bail!("{path} has no .yaml, .yml or .json; name the folder that has the manifests, or the file itself");
        }
        sources.extend(found);
    }
    let mut findings = Findings(Vec::new());
    let documents = readable(&sources, &mut findings);
    let objects: Vec<Placed<'_>> = documents
        .iter()
        .flat_map(|document| documents::objects(&document.node).into_iter().map(move |object| (document, object)))
        .collect();
    let mut world = World::new(&facts)?;
    for piece in of_cluster.iter().flat_map(Source::pieces) {
        if let Piece::Document(document) = piece? {
            documents::objects(&document.node).iter().for_each(|object| world.observe(&object.value, &namespace));
        }
    }
    let knows = Knows { cluster: !of_cluster.is_empty() };
    // A faulty configuration in the input is a finding of its own and must not hide the others.
    let configured = check_configuration(&objects, &namespace, &facts, &mut findings);
    let values = || objects.iter().map(|(_, object)| &object.value);
    values().filter(|value| configured || !is_configuration(value)).for_each(|value| world.observe(value, &namespace));
    runtimes::namespaces(values(), &namespace).iter().for_each(|name| world.know_namespace(name));
    values().filter(|value| text(value, "/kind") == "ConfigMap").for_each(|value| {
        let own = Some(text(value, "/metadata/namespace")).filter(|own| !own.is_empty());
        world.know_namespace(own.unwrap_or(&namespace));
    });
    let workloads = Workloads::of(values(), &namespace);
    for placed @ (_, object) in &objects {
        kinds::check(placed, &mut findings);
        metadata(placed, &mut findings);
        check_namespace_configuration(placed, &namespace, &world.snapshot()?, &mut findings);
        let told = check_keys(placed, &mut findings);
        if runtimes::is_agent_runtime(&object.value) {
            runtime::check(placed, &namespace, (&workloads, &world.snapshot()?), &mut findings)?;
        }
        if builds::is_ours(&object.value) {
            builds::check(placed, &namespace, &world.snapshot()?, &mut findings)?;
        }
        builds::check_content(placed, &namespace, &world.snapshot()?, &mut findings);
        check_workload(placed, &namespace, (&told, knows), (&mut world, &mut findings))?;
    }
    let mut findings = findings.0;
    findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    findings.dedup();
    print(output, &findings, documents.len(), io)?;
    Ok(if findings.is_empty() { Exit::Ok } else { Exit::Findings })
}

fn print(output: Format, findings: &[Finding], read: usize, io: &mut Io<'_>) -> anyhow::Result<()> {
    let error = io.paint(Tone::Bad, "error");
    let warning = io.paint(Tone::Warn, "warning");
    io::print(output, &findings, io.out, |out| {
        for finding in findings {
            let severity = if finding.severity == Severity::Error { &error } else { &warning };
            let (file, text) = (shown(&finding.file), shown_lines(&finding.text, "  "));
            writeln!(out, "{file}:{}: {severity}: {}: {text}", finding.line, finding.code)?;
        }
        let read = count(read, "document");
        match findings.len() {
            0 => writeln!(out, "{read} read; nothing is wrong with what the webhook would judge"),
            found => writeln!(
                out,
                "{read} read, {} above: each names file, line, what is wrong, and what to do",
                count(found, "finding")
            ),
        }
    })
}

/// A number of things, in words.
fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

fn readable<'a>(sources: &'a [Source], findings: &mut Findings) -> Vec<Document<'a>> {
    let mut documents = Vec::new();
    for piece in sources.iter().flat_map(Source::pieces) {
        match piece {
            Ok(Piece::Document(document)) => documents.push(document),
            Ok(Piece::Verbatim(_)) => {}
            Err(error) => findings.0.push(Finding {
                file: error.file,
                line: error.line,
                severity: Severity::Error,
                code: OfFiles::Syntax.into(),
                text: error.text,
            }),
        }
    }
    documents
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn is_configuration(object: &Value) -> bool {
    text(object, "/kind") == "ConfigMap"
        && [keys::CONFIG_MAP_PLATFORM, keys::CONFIG_MAP_GATES].contains(&text(object, "/metadata/name"))
}

/// The platform file and the gates, where the input has them; false when one has a fault.
fn check_configuration(objects: &[Placed<'_>], namespace: &str, facts: &Facts, findings: &mut Findings) -> bool {
    let mut sound = true;
    for (document, Object { node, value: object }) in objects {
        let place = Some(text(object, "/metadata/namespace")).filter(|place| !place.is_empty());
        if !is_configuration(object) || place.unwrap_or(namespace) != facts.operator_namespace {
            continue;
        }
        for (key, check) in [(KEY_PLATFORM, platform_faults as fn(&str) -> Faults), (KEY_GATES, gates_faults)] {
            let Some(data) = node.at(&["data", key]) else { continue };
            let Value::String(content) = data.to_json() else { continue };
            for (line, severity, text) in check(&content) {
                sound &= severity != Severity::Error;
                // The text begins on the line of its node.
                let line = data.line + line.saturating_sub(1);
                findings.add(document, line, severity, (OfFiles::Config, format!("{key}: {text}")));
            }
        }
    }
    sound
}

type Faults = Vec<(u64, Severity, String)>;

fn schema_faults(error: &SchemaError) -> Faults {
    let told = |fault: &Fault| match fault.field.as_str() {
        "" => fault.message.clone(),
        field => format!("{field}: {}", fault.message),
    };
    error.faults.iter().map(|fault| (fault.line as u64, Severity::Error, told(fault))).collect()
}

fn platform_faults(content: &str) -> Faults {
    match Platform::parse(content, KEY_PLATFORM) {
        Err(error) => schema_faults(&error),
        Ok(platform) => platform.warnings().iter().map(|notice| (0, Severity::Warning, notice.text.clone())).collect(),
    }
}

fn gates_faults(content: &str) -> Faults {
    match Gates::parse(content, KEY_GATES) {
        Err(error) => schema_faults(&error),
        Ok((_, notices)) => notices.iter().map(|notice| (0, Severity::Warning, notice.text.clone())).collect(),
    }
}

/// What a ConfigMap of a namespace's configuration says that cannot be used, whether or not a workload is beside it.
fn check_namespace_configuration(
    (document, Object { node, value: object }): &Placed<'_>,
    namespace: &str,
    snapshot: &Snapshot,
    findings: &mut Findings,
) {
    let place = Some(text(object, "/metadata/namespace")).filter(|place| !place.is_empty()).unwrap_or(namespace);
    let view = snapshot.namespace(place).filter(|_| text(object, "/kind") == "ConfigMap");
    let named = format!("ConfigMap {place}/{}", text(object, "/metadata/name"));
    let is_named = |text: &str| {
        text.strip_prefix(&*named)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "-.".contains(c)))
    };
    let line = node.at(&["data", keys::KEY_CONFIG]).map_or(node.line, |content| content.line);
    for notice in view.iter().flat_map(|view| &view.resolved.notices).filter(|notice| is_named(&notice.text)) {
        findings.add(document, line, Severity::Warning, (notice.reason, notice.text.clone()));
    }
}

/// Labels and annotations of any object are text; the API server reads nothing that is not. Those of Pods and templates are read as parts
/// of the Pod.
fn metadata((document, Object { node, value: object }): &Placed<'_>, findings: &mut Findings) {
    if text(object, "/kind") == WorkloadKind::Pod.as_str() {
        return;
    }
    for map in ["labels", "annotations"] {
        for (Key { line, text: key, .. }, value) in node.at(&["metadata", map]).map_or(&[][..], Node::entries) {
            let value = value.to_json();
            if !value.is_string() && !value.is_null() {
                let text = format!("metadata.{map}[{key}] must be a string; put {value} in quotes");
                findings.add(document, *line, Severity::Error, (Reason::Undecodable, text));
            }
        }
    }
}

/// A map of labels or annotations, and as what it is read.
type Carried = (&'static [&'static str], Carrier);

/// What BeeAI's Agents and the objects of KAOS carry for their Pods.
const OF_OBJECT: &[Carried] =
    &[(&["metadata", "labels"], Carrier::PodLabel), (&["metadata", "annotations"], Carrier::PodAnnotation)];
/// What an Agent of `agent.kagenti.dev` carries for its Pods.
const OF_AGENT: &[Carried] = &[
    (&["metadata", "labels"], Carrier::PodLabel),
    (&["metadata", "annotations"], Carrier::PodAnnotation),
    (&["spec", "labels"], Carrier::PodLabel),
    (&["spec", "annotations"], Carrier::PodAnnotation),
    (&["spec", "podTemplateSpec", "metadata", "labels"], Carrier::PodLabel),
    (&["spec", "podTemplateSpec", "metadata", "annotations"], Carrier::PodAnnotation),
];
/// What is read of such an object itself, besides.
const OF_ITSELF: &[Carrier] = &[Carrier::AgentAnnotation, Carrier::ConsentingAnnotation, Carrier::ServiceAnnotation];

/// Where an object that a Deployment is made for says what its Pods carry; nowhere for other kinds.
fn of_agents(object: &Value) -> &'static [Carried] {
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    match Kind::of(group, text(object, "/kind")) {
        Some(Kind::Agent) => OF_AGENT,
        Some(Kind::BeeaiAgent | Kind::BeeaiCompatAgent | Kind::KaosAgent | Kind::ModelApi | Kind::McpServer) => {
            OF_OBJECT
        }
        _ => &[],
    }
}

/// Labels and annotations that are nearly ours, or stand where nobody reads them; the reasons by which the Pods' own were at fault.
fn check_keys((document, Object { node, value: object }): &Placed<'_>, findings: &mut Findings) -> Vec<Reason> {
    let mut told: Vec<Reason> = Vec::new();
    let is_agent = !of_agents(object).is_empty();
    let mut check = |map: Option<&Node>, carrier: Carrier, skipped: Option<&Misplaced>, findings: &mut Findings| {
        for (Key { line, text: key, .. }, value) in map.map_or(&[][..], Node::entries) {
            let value = value.to_json();
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // The review of the Agent says of that one what is wrong.
            if is_agent && key == keys::ANNOTATION_SECURITY_PROFILE {
                continue;
            }
            // What is read of the Agent itself is no setting of its Pods that went astray.
            let is_of_agent = |one: &&Carrier| known::ROWS.iter().any(|row| row.key == key && row.carrier == **one);
            let of_itself = OF_ITSELF.iter().filter(|_| is_agent).find(is_of_agent);
            let fault = known::fault(key, &shown, of_itself.copied().unwrap_or(carrier));
            if let Some(fault) = fault.filter(|_| skipped.is_none_or(|one| one.key != *key)) {
                told.extend(fault.reason);
                let code = fault.reason.map_or(Code::OfFiles(OfFiles::Key), Code::Reason);
                findings.add(document, *line, Severity::Warning, (code, fault.text));
            }
        }
    };
    let own = node.at(&["metadata", "labels"]);
    match (text(object, "/kind"), Subject::of(object, "")) {
        (_, Some(subject)) => {
            let template = node.at(subject.workload.kind.template_path());
            let of_pods = |map| template.and_then(|template| template.at(&["metadata", map]));
            check(of_pods("labels"), Carrier::PodLabel, None, findings);
            check(of_pods("annotations"), Carrier::PodAnnotation, None, findings);
            if subject.workload.kind != WorkloadKind::Pod {
                misplaced((document, node), &subject, of_pods, findings);
                // The label itself has a word of its own where the workload is judged.
                let misspelt = misplaced_label::of(object, &subject);
                let misspelt = misspelt.filter(|one| !one.of_pods && one.key != keys::LABEL_TYPE);
                misplaced_type(document, (own, node.line), misspelt.as_ref(), findings);
            }
        }
        ("Namespace", None) => {
            let enrols_nothing = of_namespace(object);
            misplaced_type(document, (own, node.line), enrols_nothing.as_ref(), findings);
            check(own, Carrier::NamespaceLabel, enrols_nothing.as_ref(), findings);
        }
        ("ConfigMap", None) => check(own, Carrier::ConfigMapLabel, None, findings),
        _ => {
            for (path, carrier) in of_agents(object) {
                check(node.at(path), *carrier, None, findings);
            }
        }
    }
    told
}

/// A type label that enrols nothing where it stands, at its line.
fn misplaced_type(
    document: &Document<'_>,
    (labels, line): (Option<&Node>, u64),
    told: Option<&Misplaced>,
    findings: &mut Findings,
) {
    let Some(told) = told else { return };
    let entries = labels.map_or(&[][..], Node::entries);
    let line = entries.iter().find(|(key, _)| key.text == told.key).map_or(line, |(key, _)| key.line);
    findings.add(document, line, Severity::Warning, (told.reason, told.message.clone()));
}

/// Settings of Pods that stand on what makes them, where they do nothing. The type label has a word of its own, because an
/// AgentRuntime may read it there.
fn misplaced<'n>(
    (document, node): (&Document<'_>, &Node),
    subject: &Subject,
    of_pods: impl Fn(&'static str) -> Option<&'n Node>,
    findings: &mut Findings,
) {
    // Of the template of a CronJob's Jobs nobody reads any of them.
    const OF_JOBS: &[&str] = &["spec", "jobTemplate"];
    for (map, carrier) in [("labels", Carrier::PodLabel), ("annotations", Carrier::PodAnnotation)] {
        for (above, whose) in [(&[][..], "the "), (OF_JOBS, "the Job template of the ")] {
            let place = node.at(&[above, &["metadata", map]].concat());
            for (Key { line, text: key, .. }, _) in place.map_or(&[][..], Node::entries) {
                let is_ours = known::ROWS.iter().any(|row| row.key == key && row.carrier == carrier);
                let is_there = of_pods(map).is_some_and(|pods| pods.get(key).is_some());
                if is_ours && !is_there && (key != keys::LABEL_TYPE || !above.is_empty()) {
                    let text = format!(
                        "{key} is on {whose}{} and not on its Pod template, where alone it has an effect; move it to {}.metadata.{map}",
                        subject.kind(),
                        subject.workload.kind.template_path().join(".")
                    );
                    findings.add(document, *line, Severity::Warning, (OfFiles::Key, text));
                }
            }
        }
    }
}

/// Warnings about what a cluster has; manifests cannot be wrong about that.
const ABOUT_THE_CLUSTER: &[Reason] = &[Reason::SpireUnavailable, Reason::SpireDriverMissing, Reason::IssuerMissing];

/// What the webhook would say about the workload's Pods.
fn check_workload(
    (document, Object { node, value: object }): &Placed<'_>,
    namespace: &str,
    (keys_told, knows): (&[Reason], Knows),
    (world, findings): (&mut World, &mut Findings),
) -> anyhow::Result<()> {
    let Some(subject) = Subject::of(object, namespace) else { return Ok(()) };
    let applied = of_applied(object, &subject, knows, world)?;
    let governed = governed::with_type(object, &subject, &world.snapshot()?).into_owned();
    let path = subject.workload.kind.template_path();
    if subject.workload.kind != WorkloadKind::Pod && governed == *object {
        let own = node.at(&["metadata", "labels", keys::LABEL_TYPE]);
        let pods = node.at(path).and_then(|template| template.at(&["metadata", "labels", keys::LABEL_TYPE]));
        if let (Some(label), None) = (own, pods) {
            let (reason, text) = match governed::asks(object, &subject, &world.snapshot()?) {
                Some(Asks::Unknown) => {
                    let value = label.to_json();
                    (Reason::UnknownValue, enrolment::unknown(subject.kind(), value.as_str().unwrap_or_default()))
                }
                _ => {
                    let text = format!(
                        "label {} is on the {} and not on its Pod template: its Pods are not enrolled; add it under {}.metadata.labels",
                        keys::LABEL_TYPE,
                        subject.kind(),
                        path.join(".")
                    );
                    (Reason::NoTypeLabel, text)
                }
            };
            findings.add(document, label.line, Severity::Warning, (reason, text));
        }
    }
    review::prepare(world, &subject, &governed)?;
    let snapshot: Snapshot = world.snapshot()?;
    let verdict = review::evaluate(&subject, &subject.pod(&governed), &snapshot)?;
    if let Outcome::Deny(denial) = &verdict.outcome {
        let template = node.at(path).unwrap_or(node);
        let line = denial.field.as_deref().and_then(|field| field_line(template, field)).unwrap_or(node.line);
        findings.add(
            document,
            line,
            Severity::Error,
            (denial.reason, format!("{}: {}", subject.title(), denial.words())),
        );
    }
    for warning in &verdict.warnings {
        let is_unknown = !knows.cluster && ABOUT_THE_CLUSTER.contains(&warning.reason);
        // The table of keys has said it, with its line and what was meant.
        if is_unknown || keys_told.contains(&warning.reason) {
            continue;
        }
        let text = format!("{}: {}", subject.title(), warning.text);
        findings.add(document, node.line, Severity::Warning, (warning.reason, text));
    }
    let told = |warning: &Warning| verdict.warnings.contains(warning) || keys_told.contains(&warning.reason);
    for warning in applied.into_iter().filter(|warning| !told(warning)) {
        findings.add(document, node.line, Severity::Warning, (warning.reason, warning.text));
    }
    Ok(())
}

/// What is known beside the input.
#[derive(Debug, Clone, Copy)]
struct Knows {
    /// The objects of the cluster.
    cluster: bool,
}

/// What the webhook says to whoever applies a workload, where the cluster is known that it is applied to; what becomes of Pods that are refused
/// is said of the Pods.
fn of_applied(object: &Value, subject: &Subject, knows: Knows, world: &World) -> anyhow::Result<Vec<Warning>> {
    if !knows.cluster || subject.workload.kind == WorkloadKind::Pod {
        return Ok(Vec::new());
    }
    let verdict = review::own_kind(object, &subject.namespace, Phase::Validate, &world.snapshot()?)?;
    let of_pods = |warning: &Warning| warning.reason.class() == Class::Denied;
    Ok(verdict.warnings.into_iter().filter(|warning| !of_pods(warning)).collect())
}

/// Line of a field path such as `spec.containers[1].ports[0].containerPort`; the nearest node that exists.
fn field_line(template: &Node, field: &str) -> Option<u64> {
    let mut node = template;
    let mut line = None;
    for step in field.split('.') {
        let (name, indexes) = step.split_once('[').unwrap_or((step, ""));
        let Some((key, value)) = node.entries().iter().find(|(key, _)| key.text == name) else { break };
        (node, line) = (value, Some(key.line));
        for index in indexes.split(['[', ']']).filter(|text| !text.is_empty()) {
            let Some(item) = index.parse().ok().and_then(|index: usize| node.items().get(index)) else { return line };
            (node, line) = (item, Some(item.line));
        }
    }
    line
}
