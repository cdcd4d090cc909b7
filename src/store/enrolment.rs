//! Which labels on workloads themselves enrol them (platform key `enrolment.byWorkloadLabel`).
//!
//! In: the key, and when this installation was made. Out: what a label asks for. Promise: a label that was there before the
//! installation, when nobody acted on it, rolls nothing until its owner writes the workload again or a person sets the key;
//! how old it is stands in the workload itself, so nothing is remembered and nothing is written to tell.
//!
//! ```text
//! key true  ─► every label        key false ─► none (discovery alone)
//! key unset ─► those that are no older than ConfigMap drawbridge-enrolment, which the manifests bring
//! ```

use std::sync::Arc;

use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::domain::keys;
use crate::store::TypeLabel;

/// Which labels on workloads count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadLabels {
    /// None: they are for discovery.
    Ignored,
    /// Those that were written at that time (RFC 3339) or later; `None` when nobody knows when the installation was made.
    Since(Option<Arc<str>>),
    /// All; with the time as above.
    All(Option<Arc<str>>),
}

/// What the label on a workload asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// Enrolment as that type.
    Enrolment(AgentType),
    /// The same, but from before anybody acted on it.
    Pending(AgentType),
    /// Nothing that anybody knows: its value is neither agent nor tool.
    Unknown,
    /// Nothing, because such labels do not count.
    Nothing,
}

impl WorkloadLabels {
    /// What the key says: `None` for one that is not set.
    #[must_use]
    pub fn of_key(by_workload_label: Option<bool>) -> Self {
        match by_workload_label {
            None => Self::Since(None),
            Some(true) => Self::All(None),
            Some(false) => Self::Ignored,
        }
    }

    /// The same for an installation that was made then.
    #[must_use]
    pub fn installed(self, since: Option<Arc<str>>) -> Self {
        match self {
            Self::Since(_) => Self::Since(since),
            Self::All(_) => Self::All(since),
            Self::Ignored => Self::Ignored,
        }
    }

    /// What a label asks for.
    #[must_use]
    pub fn asks(&self, label: &TypeLabel) -> Asks {
        let known = AgentType::ALL.into_iter().find(|known| known.as_str() == &*label.value);
        match (self, known) {
            (Self::Ignored, _) => Asks::Nothing,
            (_, None) => Asks::Unknown,
            (Self::All(_), Some(known)) => Asks::Enrolment(known),
            (Self::Since(_), Some(known)) if self.is_new(label) => Asks::Enrolment(known),
            (Self::Since(_), Some(known)) => Asks::Pending(known),
        }
    }

    /// Whether a label was written since the installation was made: a person's own wish, rather than one that the settings fulfil.
    #[must_use]
    pub fn is_new(&self, label: &TypeLabel) -> bool {
        let (Self::Since(installed) | Self::All(installed)) = self else { return false };
        match (&label.since, installed) {
            // What is not stored yet is written now.
            (None, _) => true,
            (Some(since), Some(installed)) => **since >= **installed,
            (Some(_), None) => false,
        }
    }
}

/// Why a label that is older than the installation has no effect, and what to do, without a full stop.
#[must_use]
pub fn pending(kind: &str, namespace: &str, name: &str, agent_type: AgentType) -> String {
    let (kind, label, word) = (kind.to_lowercase(), keys::LABEL_TYPE, agent_type.as_str());
    format!(
        "label {label} on the {kind} itself is older than this installation, or ConfigMap {} is missing, so nothing is rolled for \
         it. To enrol it, write the label anew: kubectl -n {namespace} label {kind} {name} {label}- && kubectl -n {namespace} label \
         {kind} {name} {label}={word}. For all of them set enrolment.byWorkloadLabel in the platform file: true enrols them in \
         waves, false leaves such labels to discovery",
        keys::CONFIG_MAP_ENROLMENT
    )
}

/// What a value that is neither agent nor tool means, without a full stop.
#[must_use]
pub fn unknown(kind: &str, value: &str) -> String {
    let kind = kind.to_lowercase();
    format!(
        "label {} on the {kind} itself is {value:?}, which enrols nothing; write agent or tool, in small letters",
        keys::LABEL_TYPE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mend_17_labels_count_by_their_age_unless_the_key_says_all_or_none() {
        let label = |value: &str, since: Option<&str>| TypeLabel {
            value: value.into(),
            since: since.map(Into::into),
            on_template: false,
        };
        let (old, new) = (Some("2026-05-01T00:00:00Z"), Some("2026-05-02T00:00:00Z"));
        let installed = || WorkloadLabels::of_key(None).installed(new.map(Into::into));
        let (agent, tool) = (AgentType::Agent, AgentType::Tool);
        for (labels, since, expected) in [
            (installed(), old, Asks::Pending(agent)),
            (installed(), new, Asks::Enrolment(agent)),
            (installed(), None, Asks::Enrolment(agent)),
            (WorkloadLabels::of_key(None), new, Asks::Pending(agent)),
            (WorkloadLabels::of_key(None), None, Asks::Enrolment(agent)),
            (WorkloadLabels::of_key(Some(true)).installed(new.map(Into::into)), old, Asks::Enrolment(agent)),
            (WorkloadLabels::of_key(Some(false)).installed(new.map(Into::into)), new, Asks::Nothing),
        ] {
            assert_eq!(labels.asks(&label("agent", since)), expected, "{labels:?} {since:?}");
        }
        assert_eq!(installed().asks(&label("tool", new)), Asks::Enrolment(tool));
        assert_eq!(installed().asks(&label("Agent", new)), Asks::Unknown);
        assert_eq!(WorkloadLabels::Ignored.asks(&label("Agent", new)), Asks::Nothing);
    }
}
