//! The decision as a tree for people: each gate, each resolved field with its layers, each part.
//!
//! Built only when somebody asks (`drawbridge explain`), never while a request waits. Serialises to JSON and YAML;
//! the member names are a contract of the command line.

use serde::Serialize;

use super::verdict::{Outcome, Verdict};

/// Why an object was decided the way it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What was looked at, such as `Pod team1/weather-agent-` or `Deployment team1/weather-agent`.
    pub subject: String,
    /// The workload that names what is derived from it, such as `Deployment/weather-agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// `injected`, `skipped` or `denied`.
    pub outcome: String,
    /// The reason code.
    pub reason: String,
    /// The reason in words.
    pub sentence: String,
    /// The pre-filters in the order in which they are asked, up to the one that decided.
    pub filters: Vec<FilterLine>,
    /// The decision per sidecar.
    pub sidecars: Vec<SidecarLine>,
    /// Every resolved field that matters to this object.
    pub fields: Vec<FieldLine>,
    /// What is added to the Pod.
    pub parts: Vec<PartLine>,
    /// What is changed in the user's own containers.
    pub edits: Vec<String>,
    /// What deserves attention: `Code: text`.
    pub warnings: Vec<String>,
    /// The refusal in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denial: Option<String>,
}

/// One pre-filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilterLine {
    /// What is asked, such as `label kagenti.io/type`.
    pub name: String,
    /// What was found.
    pub seen: String,
    /// False for the one that ended the decision.
    pub passed: bool,
}

/// The decision about one sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SidecarLine {
    /// Container name.
    pub name: String,
    /// Whether it is injected.
    pub injected: bool,
    /// Who decided: `feature-gate`, `workload-label`, `default`, `mode`, `spire` or `credentials`.
    pub layer: String,
}

/// One resolved field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldLine {
    /// Path in the platform file's schema, such as `images.envoyProxy`.
    pub name: String,
    /// The value in force.
    pub value: String,
    /// The layer that set it.
    pub layer: String,
    /// The values it shadows, weakest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shadowed: Vec<ShadowedLine>,
}

/// A value that lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShadowedLine {
    /// The layer that set it.
    pub layer: String,
    /// The value.
    pub value: String,
}

/// One part of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartLine {
    /// `container`, `initContainer`, `volume`, `annotation`, `serviceAccount`, `spiffeId`, `fsGroup`, `env` or `openPath`.
    pub kind: String,
    /// Its name or value.
    pub name: String,
    /// Image of a container, source of a volume.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl Explanation {
    /// The part of the tree that every verdict has.
    #[must_use]
    pub fn of(subject: &str, verdict: &Verdict) -> Self {
        Self {
            subject: subject.to_owned(),
            outcome: verdict.reason.class().as_str().to_owned(),
            reason: verdict.reason.code().to_owned(),
            sentence: verdict.reason.sentence().to_owned(),
            warnings: verdict.warnings.iter().map(ToString::to_string).collect(),
            denial: match &verdict.outcome {
                Outcome::Deny(denial) => Some(denial.to_string()),
                Outcome::Allow | Outcome::Patch(_) => None,
            },
            ..Self::default()
        }
    }
}
