//! What the watches (or a stream of manifests) know, before it is resolved.
//!
//! Filled by [`super::gather`] for a replica as for the command line (ConfigMaps apart); read by [`super::view`].

use std::collections::BTreeMap;
use std::sync::Arc;

pub use super::agent_card::AgentCardInput;
pub use super::agent_runtime::{AgentRuntimeInput, AgentType, Fault, ModeInput, Target, TraceInput};
use super::bounds::TEXT;
use super::namesakes::Named;
use super::view::{JobOwner, Ownership};
use crate::domain::quarantine::Quarantine;

/// One ConfigMap of an agent namespace that configuration may depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigMapInput {
    /// Carries `kagenti.io/defaults=true`.
    pub is_defaults: bool,
    /// Ours and as we wrote it: a controller brings it up to date, so what it will hold counts instead of what it holds.
    pub kept: bool,
    /// `metadata.creationTimestamp`, RFC 3339: the oldest count where there are too many.
    pub created: Box<str>,
    /// `data`, as stored, joined by what counts of `binaryData` ([`Binary::entries`](crate::store::decode::wire::binary::Binary::entries)).
    pub data: BTreeMap<String, String>,
    /// It is larger than [`TEXT`], and nobody has its text: that `data` is empty says nothing of what it holds.
    pub is_without_text: bool,
}

impl ConfigMapInput {
    /// One that is larger than [`TEXT`], and of which nobody knows what it said before.
    #[must_use]
    pub fn too_large() -> Self {
        Self { is_without_text: true, ..Self::default() }
    }

    /// Its keys and values, in bytes, as far as somebody has them.
    #[must_use]
    pub fn size(&self) -> usize {
        self.data.iter().map(|(key, value)| key.len() + value.len()).sum()
    }

    /// It is larger than [`TEXT`]: nothing of it is read.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        self.is_without_text || self.size() > TEXT
    }
}

/// One namespace, as observed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamespaceInputs {
    /// The labels that are read: `kagenti-enabled`, `pod-security.kubernetes.io/enforce`, `istio.io/use-waypoint`,
    /// `agent.kagenti.dev/trust` and `agent.kagenti.dev/catalogue`.
    pub labels: BTreeMap<String, String>,
    /// Who of it is in quarantine; `None` where nobody is.
    pub quarantine: Option<Arc<Quarantine>>,
    /// ConfigMaps of a watched name, and those labelled `kagenti.io/defaults=true`, by name.
    pub config_maps: BTreeMap<String, ConfigMapInput>,
    /// ServiceAccounts by name.
    pub service_accounts: BTreeMap<Arc<str>, Ownership>,
    /// Jobs by name.
    pub jobs: BTreeMap<Arc<str>, Arc<JobOwner>>,
    /// AgentRuntimes by name, those being deleted included.
    pub agent_runtimes: BTreeMap<Arc<str>, Arc<AgentRuntimeInput>>,
    /// NetworkPolicy `drawbridge-default-deny` is there, and ours.
    pub cut_off: bool,
    /// AgentCards by name.
    pub agent_cards: BTreeMap<Arc<str>, AgentCardInput>,
    /// Agents of every group, ModelAPIs and MCPServers, by name.
    pub named: Named,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::bounds::Bound;
    use crate::config::content::digest;
    use crate::config::reading;

    #[test]
    fn one_whose_text_nobody_has_is_over_the_bound_and_is_no_other_one() {
        let unknown = ConfigMapInput::too_large();
        assert!(unknown.is_too_large() && unknown.data.is_empty(), "nothing stands there that it does not hold");
        assert_eq!(unknown, ConfigMapInput::too_large());
        assert_ne!(unknown, ConfigMapInput::default(), "it is not an empty one");
        for name in ["authbridge-config", "authbridge-runtime-config"] {
            let known = reading::known(&BTreeMap::from([(name.to_owned(), unknown.clone())]));
            let known = &known[name];
            assert_eq!((known.over, known.read.is_some()), (Some(Bound::Size), false), "{name}");
            assert_ne!(&*known.digest, digest(&BTreeMap::new()), "{name}: what it holds is not known to be nothing");
        }
    }
}
