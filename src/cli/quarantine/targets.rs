//! Whom a person means: names of workloads by namespace.
//!
//! In: `agent/x`, `namespace/n`, or a skill, and the cluster. Out: for each namespace a change. Promise: an agent that is not there is an error, not a
//! quarantine of nobody; what is released is looked up in what is recorded, since a card may say something else by now.

use std::collections::BTreeMap;

use anyhow::bail;

use super::record::{Change, Record};
use crate::cli::card::row::CardRow;
use crate::cli::cluster::Cluster;
use crate::cli::given;
use crate::cli::survey::text;
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;

/// One that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    /// An agent.
    Agent(String),
    /// A namespace.
    Namespace(String),
}

/// Who is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// Those.
    Named(Vec<Named>),
    /// All that have the skill.
    Skill(String),
}

/// Changes by namespace.
type Changes = BTreeMap<String, Change>;

/// Kinds that agents run as, and those that name such a workload.
const WORKLOADS: [WorkloadKind; 6] = [
    WorkloadKind::Deployment,
    WorkloadKind::StatefulSet,
    WorkloadKind::DaemonSet,
    WorkloadKind::Sandbox,
    WorkloadKind::Job,
    WorkloadKind::CronJob,
];
const NAMING: [Kind; 2] = [Kind::AgentRuntime, Kind::AgentCard];

/// Reads `agent/x` or `namespace/n`.
pub(super) fn named(word: &str) -> Result<Named, String> {
    match word.split_once('/') {
        Some(("agent" | "agents", name)) => given::name(name).map(Named::Agent),
        Some(("namespace" | "namespaces" | "ns", name)) => given::namespace(name).map(Named::Namespace),
        _ => Err("write agent/NAME or namespace/NAME".to_owned()),
    }
}

/// Whom to put into quarantine; `place` is the namespace of agents, empty for all.
///
/// # Errors
/// When the cluster does not answer, or one of them is not there.
pub(super) async fn resolve(
    cluster: &Cluster,
    target: &Target,
    place: &str,
    notes: &mut Vec<String>,
) -> anyhow::Result<Changes> {
    let mut changes = Changes::new();
    match target {
        Target::Named(all) => {
            for one in all {
                match one {
                    Named::Namespace(name) => changes.entry(name.clone()).or_default().everybody = true,
                    Named::Agent(name) => {
                        let workload = workload(cluster, place, name).await?;
                        changes.entry(place.to_owned()).or_default().names.insert(workload);
                    }
                }
            }
        }
        Target::Skill(skill) => {
            for card in cluster.list(&Kind::AgentCard.path(place), notes).await? {
                let target = text(&card, "/spec/targetRef/name");
                if !target.is_empty() && CardRow::of(&card).can(skill) {
                    let namespace = text(&card, "/metadata/namespace").to_owned();
                    changes.entry(namespace).or_default().names.insert(target.to_owned());
                }
            }
        }
    }
    Ok(changes)
}

/// The workload of an agent of that name.
async fn workload(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<String> {
    for kind in WORKLOADS.into_iter().filter_map(Kind::of_workload) {
        if cluster.get(&format!("{}/{name}", kind.path(namespace))).await?.object().is_some() {
            return Ok(name.to_owned());
        }
    }
    for kind in NAMING {
        let Some(object) = cluster.get(&format!("{}/{name}", kind.path(namespace))).await?.object() else { continue };
        let target = text(&object, "/spec/targetRef/name");
        if !target.is_empty() {
            return Ok(target.to_owned());
        }
    }
    bail!(
        "namespace {namespace} has no workload, AgentRuntime or AgentCard {name} that you may see; drawbridge status -n {namespace} shows the agents there"
    )
}

/// Whom to release.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn recorded(
    cluster: &Cluster,
    target: &Target,
    place: &str,
    notes: &mut Vec<String>,
) -> anyhow::Result<Changes> {
    let mut changes = Changes::new();
    match target {
        Target::Named(all) => {
            for one in all {
                match one {
                    Named::Namespace(name) => changes.entry(name.clone()).or_default().everybody = true,
                    Named::Agent(name) => {
                        let namespace = cluster.get(&format!("{}/{place}", Kind::Namespace.path(""))).await?.object();
                        let is_held = namespace.is_some_and(|namespace| Record::of(&namespace).names(name));
                        let name = if is_held { name.clone() } else { workload(cluster, place, name).await? };
                        changes.entry(place.to_owned()).or_default().names.insert(name);
                    }
                }
            }
        }
        Target::Skill(skill) => {
            let all = cluster.list(&Kind::Namespace.path(""), notes).await?;
            for namespace in all.iter().filter(|one| place.is_empty() || text(one, "/metadata/name") == place) {
                let names = Record::of(namespace).of_skill(skill);
                if !names.is_empty() {
                    let name = text(namespace, "/metadata/name").to_owned();
                    changes.insert(name, Change { everybody: false, names });
                }
            }
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_agent_or_a_namespace() {
        for (word, wanted) in [
            ("agent/weather", Some(Named::Agent("weather".to_owned()))),
            ("ns/team1", Some(Named::Namespace("team1".to_owned()))),
            ("namespace/team1", Some(Named::Namespace("team1".to_owned()))),
            ("weather", None),
            ("deployment/weather", None),
            ("agent/", None),
            ("agent/A", None),
            ("namespace/a.b", None),
            ("agent/*", None),
        ] {
            assert_eq!(named(word).ok(), wanted, "{word}");
        }
    }
}
