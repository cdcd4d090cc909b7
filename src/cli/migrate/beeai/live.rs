//! The objects of a cluster, and the order in which what they become is applied.

use serde_json::Value;

use super::{Migrated, all};
use crate::cli::cluster::Cluster;
use crate::store::Kind;

/// The kinds that are read: builds first.
pub(super) const KINDS: [Kind; 4] =
    [Kind::BeeaiBuild, Kind::BeeaiCompatBuild, Kind::BeeaiAgent, Kind::BeeaiCompatAgent];

/// What the objects of a namespace, or of all, become; and what to do with it.
pub(super) async fn read(cluster: &Cluster, namespace: Option<&str>) -> anyhow::Result<(Migrated, String)> {
    let mut notes = Vec::new();
    if let Some(namespace) = namespace {
        cluster.expect_namespace(namespace, &mut notes).await?;
    }
    let mut objects = Vec::new();
    for kind in KINDS {
        objects.extend(list(cluster, kind, namespace.unwrap_or_default(), &mut notes).await?);
    }
    let migrated = all(&objects, None);
    let mut order = order(&migrated, namespace);
    for note in notes {
        order.push('\n');
        order.push_str(&note);
    }
    Ok((migrated, order))
}

/// In which order to apply what they become, in a namespace or in all.
fn order(migrated: &Migrated, namespace: Option<&str>) -> String {
    let count = |kind: &str| migrated.manifests.iter().filter(|one| one["kind"] == kind).count();
    let place = namespace.map_or_else(|| "-A".to_owned(), |namespace| format!("-n {namespace}"));
    // kubectl waits 30 s where nothing is said, which no build takes.
    format!(
        "Order: (1) make the Secrets that the report names. (2) apply the {} AgentBuilds, and wait until each has succeeded: kubectl wait {place} \
         --for=condition=Ready --timeout=1h agentbuilds.agent.kagenti.dev --all. (3) of the {} Agents, those that a Deployment of their name runs already \
         cannot stand beside it: drawbridge migrate beeai --hand-over gives them that Deployment without a restart; the others are applied. \
         (4) delete the AgentBuilds of BeeAI; nothing that runs goes with them.",
        count("AgentBuild"),
        count("Agent")
    )
}

/// The objects of a kind, with their kind: items of a list may lack it.
pub(super) async fn list(
    cluster: &Cluster,
    kind: Kind,
    namespace: &str,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Value>> {
    let mut items = cluster.list(&kind.path(namespace), notes).await?;
    for item in &mut items {
        item["apiVersion"] = kind.api_version().into();
        item["kind"] = kind.as_str().into();
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_waited_for_where_they_are_and_for_as_long_as_builds_take() {
        for (namespace, wanted) in [(Some("team1"), "kubectl wait -n team1 --for"), (None, "kubectl wait -A --for")] {
            let order = order(&Migrated::default(), namespace);
            assert!(order.contains(wanted) && order.contains("--timeout="), "{order}");
        }
    }
}
