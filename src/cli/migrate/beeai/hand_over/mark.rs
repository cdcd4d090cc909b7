//! What is remembered of the Agent that had a Deployment before, on the Agent that has it now: so that nothing but the cluster is needed to give
//! it back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::digest;
use crate::cli::survey::{annotation, text};
use crate::domain::keys;
use crate::store::Kind;

/// Largest text: the API server takes 256 KiB of annotations in all, and the Agent has others.
const LARGEST: usize = 160 * 1024;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mark {
    /// Of the Agent that had it: group and version.
    api_version: String,
    /// Its uid.
    pub(super) uid: String,
    /// Its labels, annotations and owners.
    metadata: Map<String, Value>,
    /// Its spec.
    pub(super) spec: Value,
    /// Which of Deployment and Service carried the label of its group.
    labelled: Vec<String>,
    /// Digest of what the Deployment's Pods are made from.
    pods: String,
}

impl Mark {
    /// What there is to remember of an Agent and of the two objects that run it.
    pub(super) fn of(old: &Value, parts: &[(Kind, &Value)]) -> Self {
        let mut metadata = Map::new();
        for member in ["labels", "annotations", "ownerReferences"] {
            let mut value = old["metadata"][member].clone();
            if let Some(members) = value.as_object_mut() {
                members.retain(|key, _| ![keys::ANNOTATION_PAUSED, keys::ANNOTATION_HAND_OVER].contains(&key.as_str()));
            }
            if !value.is_null() {
                metadata.insert(member.to_owned(), value);
            }
        }
        let labelled = |(_, part): &&(Kind, &Value)| !part["metadata"]["labels"][keys::LABEL_BEEAI_GROUP].is_null();
        let deployment = parts.iter().find(|(kind, _)| *kind == Kind::Deployment);
        Self {
            api_version: text(old, "/apiVersion").to_owned(),
            uid: text(old, "/metadata/uid").to_owned(),
            metadata,
            spec: old["spec"].clone(),
            labelled: parts.iter().filter(labelled).map(|(kind, _)| kind.as_str().to_owned()).collect(),
            pods: deployment.map(|(_, deployment)| pods(deployment)).unwrap_or_default(),
        }
    }

    /// The mark of an Agent, if it has one that can be read.
    pub(super) fn on(new: &Value) -> Option<Self> {
        serde_json::from_str(annotation(new, keys::ANNOTATION_HANDED_OVER_FROM)?).ok()
    }

    /// Its text; `None` when it is too large for an annotation.
    pub(super) fn text(&self) -> Option<String> {
        Some(json!(self).to_string()).filter(|text| text.len() <= LARGEST)
    }

    /// The kind of the Agent that had it.
    pub(super) fn kind(&self) -> Kind {
        if self.api_version == Kind::BeeaiCompatAgent.api_version() { Kind::BeeaiCompatAgent } else { Kind::BeeaiAgent }
    }

    /// That Agent once more, held still, made by the Agent of that uid.
    pub(super) fn agent(&self, (namespace, name): (&str, &str), by: &str) -> Value {
        let mut metadata = self.metadata.clone();
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), namespace.into());
        let mut object =
            json!({"apiVersion": self.api_version, "kind": "Agent", "metadata": metadata, "spec": self.spec});
        object["metadata"]["annotations"][keys::ANNOTATION_PAUSED] = "true".into();
        object["metadata"]["annotations"][keys::ANNOTATION_HAND_OVER] = by.into();
        object
    }

    /// The label of its group that a part had, or null.
    pub(super) fn label(&self, part: Kind) -> Value {
        let had = self.labelled.iter().any(|kind| kind == part.as_str());
        if had { self.kind().group().into() } else { Value::Null }
    }

    /// Whether the Pods of a Deployment are still made as they were.
    pub(super) fn is_as_it_was(&self, deployment: &Value) -> bool {
        self.pods == pods(deployment)
    }
}

/// Labels and annotations of a template are others' to write: enrolment and waves.
fn pods(deployment: &Value) -> String {
    digest::of_json(deployment.pointer("/spec/template/spec").unwrap_or(&Value::Null))
}
