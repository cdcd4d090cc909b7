//! What the webhook would say about the Pods of a manifest: of a Pod, of what makes Pods, and of an Agent, of which a controller makes a
//! Deployment.
//!
//! In: an object and where it stands, and everything else that the input says about the cluster. Out: findings; an error at the line of the field
//! that the webhook names. Promise: the engine's own answers, none of a second set of rules.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Findings, Placed, Severity};
use crate::admission::verdict::{Outcome, Warning};
use crate::api::review::Phase;
use crate::cli::offline::documents::{Document, Object};
use crate::cli::offline::workload::Subject;
use crate::cli::offline::world::World;
use crate::cli::offline::{agents, governed, review};
use crate::cli::yaml::tree::Node;
use crate::config::enrolment::{self, Asks};
use crate::domain::keys;
use crate::domain::reason::{Class, Reason};
use crate::domain::workload::WorkloadKind;

/// Warnings about what a cluster has; manifests cannot be wrong about that.
const ABOUT_THE_CLUSTER: &[Reason] = &[Reason::SpireUnavailable, Reason::SpireDriverMissing, Reason::IssuerMissing];

/// What the webhook would say about the workload's Pods.
pub(super) fn check_workload(
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
    let pods = Pods { subject: &subject, object: &governed, template: node.at(path).unwrap_or(node) };
    let warned = check_pods((document, node), &pods, (keys_told, knows), (world, findings))?;
    let told = |warning: &Warning| warned.contains(warning) || keys_told.contains(&warning.reason);
    for warning in applied.into_iter().filter(|warning| !told(warning)) {
        findings.add(document, node.line, Severity::Warning, (warning.reason, warning.text));
    }
    Ok(())
}

/// What the webhook would say about the Pods of the Deployment that a controller makes of an Agent, where the input does not have that
/// Deployment itself.
pub(super) fn check_agent(
    (document, Object { node, value: object }): &Placed<'_>,
    (namespace, deployments): (&str, &BTreeSet<(String, String)>),
    (keys_told, knows): (&[Reason], Knows),
    (world, findings): (&mut World, &mut Findings),
) -> anyhow::Result<()> {
    let (place, name) = agents::place(object, namespace);
    let settings = world.snapshot()?.builds.settings.workloads;
    let made = agents::made(object, namespace, &settings);
    let Some(made) = made.filter(|_| !deployments.contains(&(place.to_owned(), name.to_owned()))) else {
        return Ok(());
    };
    let Some(subject) = Subject::of(&made.deployment, place) else { return Ok(()) };
    let governed = governed::with_type(&made.deployment, &subject, &world.snapshot()?).into_owned();
    let written = node.at(&["spec", "podTemplateSpec"]).unwrap_or(node);
    let pods = Pods { subject: &subject, object: &governed, template: written };
    check_pods((document, node), &pods, (keys_told, knows), (world, findings)).map(drop)
}

/// Pods that are put before the webhook.
struct Pods<'a> {
    subject: &'a Subject,
    /// What makes them.
    object: &'a Value,
    /// Where their template is written.
    template: &'a Node,
}

/// What the webhook would say about Pods; its warnings are given back.
fn check_pods(
    (document, node): (&Document<'_>, &Node),
    Pods { subject, object, template }: &Pods<'_>,
    (keys_told, knows): (&[Reason], Knows),
    (world, findings): (&mut World, &mut Findings),
) -> anyhow::Result<Vec<Warning>> {
    review::prepare(world, subject, object)?;
    let verdict = review::evaluate(subject, &subject.pod(object), &world.snapshot()?)?;
    if let Outcome::Deny(denial) = &verdict.outcome {
        let line = denial.field.as_deref().and_then(|field| field_line(template, field)).unwrap_or(node.line);
        let text = format!("{}: {}", subject.title(), denial.words());
        findings.add(document, line, Severity::Error, (denial.reason, text));
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
    Ok(verdict.warnings)
}

/// What is known beside the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Knows {
    /// The objects of the cluster.
    pub(super) cluster: bool,
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
pub(super) fn field_line(template: &Node, field: &str) -> Option<u64> {
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
