//! Labels and annotations of a manifest that are nearly ours, or stand where nobody reads them.
//!
//! In: an object and where it stands. Out: findings with the line of the key. The table of keys (`reference::keys`) says what there is.

use serde_json::Value;

use super::{Code, Findings, OfFiles, Placed, Severity, text};
use crate::cli::offline::documents::{Document, Object};
use crate::cli::offline::misplaced as misplaced_label;
use crate::cli::offline::workload::Subject;
use crate::cli::reference::keys::{self as known, Carrier};
use crate::cli::yaml::tree::{Key, Node};
use crate::config::misplaced::{Misplaced, of_namespace};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;

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
pub(super) fn check_keys(
    (document, Object { node, value: object }): &Placed<'_>,
    findings: &mut Findings,
) -> Vec<Reason> {
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
            check(node.at(&["metadata", "annotations"]), Carrier::NamespaceAnnotation, None, findings);
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
