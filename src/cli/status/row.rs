//! What `drawbridge status` tells about one workload. The member names and words are a contract: [`super::shape`] documents them.

use serde::Serialize;

/// One workload that is enrolled, or that an AgentRuntime points at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "every member is documented in `shape::FIELDS`, from which the reference is made")]
pub struct Row {
    pub namespace: String,
    pub kind: String,
    pub name: String,
    #[serde(rename = "type")]
    pub agent_type: Option<String>,
    pub mode: Option<String>,
    pub mode_set_by: Option<String>,
    pub enrolled_by: EnrolledBy,
    pub pods: Pods,
    pub protected: Option<bool>,
    pub drift: Drift,
    pub rollout: Rollout,
    pub decision: String,
    pub ready: Option<bool>,
    pub reason: String,
    pub message: String,
    pub cause: Option<String>,
    pub attention: bool,
    pub watched: bool,
}

/// What enrols a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "as above")]
pub struct EnrolledBy {
    pub by: By,
    pub agent_runtime: Option<String>,
    pub duplicates: Vec<String>,
}

/// The ways to enrol a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum By {
    /// An AgentRuntime points at it.
    AgentRuntime,
    /// Its Pod template carries the label.
    #[serde(rename = "label")]
    Label,
    /// It carries the label itself.
    #[serde(rename = "workloadLabel")]
    WorkloadLabel,
}

/// Pods of a workload that are neither finished nor being deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "as above")]
pub struct Pods {
    pub total: usize,
    pub running: usize,
    pub injected: usize,
    pub unprotected: usize,
    pub outdated: usize,
    pub gated: usize,
}

/// How the Pods differ from what the workload's Pods would be now; the worst that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Drift {
    /// Not at all.
    None,
    /// Some run without sidecars although they would get them.
    Unprotected,
    /// Some wait behind the scheduling gate.
    Gated,
    /// Some run with another configuration.
    Outdated,
}

impl Drift {
    /// Of these Pods.
    #[must_use]
    pub fn of(pods: Pods) -> Self {
        match pods {
            Pods { unprotected: 1.., .. } => Drift::Unprotected,
            Pods { gated: 1.., .. } => Drift::Gated,
            Pods { outdated: 1.., .. } => Drift::Outdated,
            _ => Drift::None,
        }
    }
}

/// How far a workload's own controller is with the present template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "as above")]
pub struct Rollout {
    pub state: RolloutState,
    pub updated: i64,
    pub desired: i64,
    pub held: i64,
}

impl Rollout {
    /// Of what has none.
    pub const NONE: Self = Self { state: RolloutState::None, updated: 0, desired: 0, held: 0 };
}

/// State of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RolloutState {
    /// Every Pod is of the present template.
    Complete,
    /// Under way.
    Progressing,
    /// `spec.paused`.
    Paused,
    /// Update strategy OnDelete: Pods are replaced when somebody deletes them.
    OnDelete,
    /// `ProgressDeadlineExceeded`.
    Stalled,
    /// This kind has no rollouts.
    None,
}

impl RolloutState {
    /// The word, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RolloutState::Complete => "complete",
            RolloutState::Progressing => "progressing",
            RolloutState::Paused => "paused",
            RolloutState::OnDelete => "onDelete",
            RolloutState::Stalled => "stalled",
            RolloutState::None => "none",
        }
    }
}

impl Row {
    /// Sorts, and tells rows apart.
    #[must_use]
    pub fn key(&self) -> (String, String, String) {
        (self.namespace.clone(), self.kind.clone(), self.name.clone())
    }
}
