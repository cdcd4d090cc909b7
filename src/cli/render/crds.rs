//! The CustomResourceDefinitions, one file each, ahead of everything that speaks of their kinds.

use serde_json::Value;

use super::{Manifest, metadata, object};
use crate::api::agent_kagenti_dev;

/// Where each definition is written.
const FILES: [(&str, &str); 3] = [
    ("agentruntimes.agent.kagenti.dev", "crds/agentruntimes.agent.kagenti.dev.yaml"),
    ("agentbuilds.agent.kagenti.dev", "crds/agentbuilds.agent.kagenti.dev.yaml"),
    ("agents.agent.kagenti.dev", "crds/agents.agent.kagenti.dev.yaml"),
];

/// The definitions, in the order in which they are installed.
#[must_use]
pub fn parts() -> Vec<Manifest> {
    let definitions: Vec<Value> = agent_kagenti_dev::crds()
        .into_iter()
        .map(|mut definition| {
            definition.metadata.labels = metadata("", None).labels;
            object(&definition)
        })
        .collect();
    FILES
        .into_iter()
        .map(|(name, path)| {
            let objects = definitions.iter().filter(|object| object["metadata"]["name"] == name).cloned().collect();
            Manifest { path, objects }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_has_its_file() {
        let parts = parts();
        assert_eq!(parts.len(), agent_kagenti_dev::crds().len());
        assert!(parts.iter().all(|part| part.objects.len() == 1), "{parts:?}");
    }
}
