//! `drawbridge validate`: what the webhook would say, before anything is applied.
//!
//! In: files and folders. Out: findings with file and line. The engine's own answers, the configuration files' own checks, and keys that
//! are nearly ours; nothing is judged here by a second set of rules.

mod builds;
mod code;
mod keys;
mod kinds;
mod pods;
mod runtime;
mod schema;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;

use super::given;
use super::io::{self, Io, Tone, shown, shown_lines};
use super::offline::agents;
use super::offline::documents::{self, Document, Input, Object, Piece, Source};
use super::offline::runtimes::{self, Workloads};
use super::offline::world::{Facts, World};
use super::render::platform::{KEY_GATES, KEY_PLATFORM};
use super::yaml::tree::{Key, Node};
use super::{Exit, Format};
use crate::api::yaml::kind;
use crate::config::gates::Gates;
use crate::config::schema::{Fault, Platform, SchemaError};
use crate::config::snapshot::Snapshot;
use crate::domain::keys as names;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
pub(super) use builds::refused_by_schema;
pub use code::{Code, OfFiles};
use keys::check_keys;
use pods::{Knows, check_agent, check_workload, field_line};

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
    documents::read_stdin_once(cluster_objects.iter().chain(&filename))?;
    let of_cluster = documents::read(&cluster_objects, io)?;
    let sources = documents::read(&filename, io)?;
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
    let deployments = agents::deployments(values(), &namespace);
    let settings = world.snapshot()?.builds.settings.workloads;
    let made = agents::all(&values().collect::<Vec<_>>(), &namespace, &settings);
    made.iter().filter_map(|made| made.account.as_ref()).for_each(|account| world.observe(account, &namespace));
    let workloads = Workloads::of(values().chain(made.iter().map(|made| &made.deployment)), &namespace);
    for placed @ (_, object) in &objects {
        let before = findings.0.len();
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
        // Of an Agent that is refused nothing is made.
        if findings.0[before..].iter().all(|finding| finding.severity != Severity::Error) {
            check_agent(placed, (&namespace, &deployments), (&told, knows), (&mut world, &mut findings))?;
        }
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
            Ok(Piece::Document(document)) => match documents::no_object(&document.node) {
                None => {
                    for Object { node, .. } in documents::objects(&document.node) {
                        if let Some(text) = documents::no_object(node).filter(|_| !node.to_json().is_null()) {
                            findings.add(&document, node.line, Severity::Error, (OfFiles::Syntax, text));
                        }
                    }
                    documents.push(document);
                }
                Some(text) => findings.add(&document, document.node.line, Severity::Error, (OfFiles::Syntax, text)),
            },
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
        && [names::CONFIG_MAP_PLATFORM, names::CONFIG_MAP_GATES].contains(&text(object, "/metadata/name"))
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
    let name = text(object, "/metadata/name");
    let named = |title: &str| {
        let is_named = |text: &str| {
            text.strip_prefix(title)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || "-.".contains(c)))
        };
        let notices = view.iter().flat_map(|view| &view.resolved.notices);
        notices.filter(|notice| is_named(&notice.text)).collect::<Vec<_>>()
    };
    let mut told = named(&format!("ConfigMap {place}/{name}"));
    let is_template = view.is_some() && place == &*snapshot.view.operator_namespace;
    if is_template && told.is_empty() {
        told = named(&format!("ConfigMap {name} of the operator's namespace"));
    }
    let line = node.at(&["data", names::KEY_CONFIG]).map_or(node.line, |content| content.line);
    for notice in told {
        findings.add(document, line, Severity::Warning, (notice.reason, notice.text.clone()));
    }
    if is_template {
        binary_data((document, node), (place, name), findings);
    }
}

/// Keys of a template of agent namespaces that none of them gets; one that has no others is told with the configuration.
fn binary_data((document, node): (&Document<'_>, &Node), (place, name): (&str, &str), findings: &mut Findings) {
    const SHOWN: usize = 5;
    let Some(binary) = node.get("binaryData").filter(|_| names::NAMESPACE_CONFIG_MAPS.contains(&name)) else { return };
    let keys: Vec<&str> = binary.entries().iter().map(|(key, _)| key.text.as_str()).collect();
    if keys.is_empty() || node.get("data").is_none_or(|data| data.entries().is_empty()) {
        return;
    }
    let more = if keys.len() > SHOWN { format!(" and {} more", keys.len() - SHOWN) } else { String::new() };
    let text = format!(
        "ConfigMap {place}/{name} is the template of those that agent namespaces get, and what it has in binaryData ({}{more}) reaches none of them; \
         save the file as UTF-8 and put it under data, or mount what has to be binary from a ConfigMap of another name",
        keys[..keys.len().min(SHOWN)].join(", ")
    );
    findings.add(document, binary.line, Severity::Warning, (Reason::NamespaceConfigUnreadable, text));
}

/// Names, labels and annotations of any object are text; the API server reads nothing that is not. Labels and annotations of Pods and templates are
/// read as parts of the Pod.
fn metadata((document, Object { node, value: object }): &Placed<'_>, findings: &mut Findings) {
    for member in ["name", "generateName", "namespace"] {
        if let Some(written) = node.at(&["metadata", member]) {
            expect_text((*document, written.line), &format!("metadata.{member}"), written, findings);
        }
    }
    if text(object, "/kind") == WorkloadKind::Pod.as_str() {
        return;
    }
    for map in ["labels", "annotations"] {
        for (Key { line, text: key, .. }, value) in node.at(&["metadata", map]).map_or(&[][..], Node::entries) {
            expect_text((*document, *line), &format!("metadata.{map}[{key}]"), value, findings);
        }
    }
}

/// What stands where a text belongs and is none: a number, or a word that readers of YAML take for a boolean.
fn expect_text((document, line): (&Document<'_>, u64), field: &str, node: &Node, findings: &mut Findings) {
    let value = node.to_json();
    let seen = match &value {
        Value::Null | Value::String(_) => return,
        Value::Array(_) | Value::Object(_) => format!("{} was found", kind(&value)),
        // As it was written: `on` is true to whoever reads it.
        Value::Bool(_) | Value::Number(_) => {
            format!("put {} in quotes", node.spelled(&value).map_or_else(|| value.to_string(), str::to_owned))
        }
    };
    findings.add(document, line, Severity::Error, (Reason::Undecodable, format!("{field} must be a string; {seen}")));
}
