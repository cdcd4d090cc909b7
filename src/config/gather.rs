//! What the objects of a namespace say to admission, one object at a time; pure.
//!
//! In: an object as it is now, whichever way it came: by a watch, by a list, or from a file; or a [`Store`] that has all of them. Out: the
//! namespace's [`NamespaceInputs`], and whether they are others than before. Promise: whose an object is, and what of it counts, is decided here alone, so a replica of the
//! webhook and a command that reads manifests cannot differ in it. ConfigMaps are not taken: their texts are bounded, and read elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::inputs::{AgentCardInput, AgentRuntimeInput, NamespaceInputs};
use super::view::{JobOwner, Ownership};
use crate::domain::keys::DEFAULT_DENY;
use crate::domain::workload::Workload;
use crate::store::{AgentRuntimeSeen, Change, Kind, Observed, ServiceAccountSeen, Store, What};

/// The kinds whose objects [`NamespaceInputs::take`] reads.
pub const KINDS: [Kind; 6] =
    [Kind::Namespace, Kind::ServiceAccount, Kind::Job, Kind::AgentRuntime, Kind::AgentCard, Kind::NetworkPolicy];

impl NamespaceInputs {
    /// What the objects of a namespace say that a store has; the same as [`NamespaceInputs::take`] of each of them.
    #[must_use]
    pub fn of(store: &Store, namespace: &str) -> Self {
        let mut inputs = Self::default();
        for kind in KINDS {
            for (name, observed) in store.of_kind(kind, namespace).filter(|(name, _)| is_read(kind, name)) {
                inputs.see(name, observed);
            }
        }
        inputs
    }

    /// Takes note of one object of the namespace, or of the namespace itself; whether what is known is another than before. Objects of
    /// other kinds say nothing here.
    pub fn take(&mut self, change: &Change) -> bool {
        let name = &change.key.name;
        if !is_read(change.kind, name) {
            return false;
        }
        match change.now.as_deref() {
            Some(observed) => self.see(name, observed),
            None => self.forget(change.kind, name),
        }
    }

    /// An object of that name is there.
    fn see(&mut self, name: &Arc<str>, observed: &Observed) -> bool {
        match &observed.what {
            What::Namespace(seen) => {
                let held = seen.quarantine.as_deref().cloned().map(Arc::new);
                set(&mut self.labels, seen.labels.clone()) | set(&mut self.quarantine, held)
            }
            What::ServiceAccount(seen) => put(&mut self.service_accounts, name, Ownership::of(seen)),
            What::Workload(seen) => {
                let controller = seen.controller.as_ref().map(|owner| (owner.group(), &*owner.kind, &*owner.name));
                let workload = Workload::of_job(name, controller);
                put(&mut self.jobs, name, JobOwner { uid: observed.uid.to_string(), workload })
            }
            What::AgentRuntime(seen) => {
                put(&mut self.agent_runtimes, name, Arc::new(agent_runtime(&observed.uid, seen)))
            }
            // Only a person's card stands in anybody's way: the many that controllers make touch no namespace.
            What::AgentCard(seen) => match AgentCardInput::of_seen(seen) {
                card if card.automatic || card.deleting => self.agent_cards.remove(name).is_some(),
                card => put(&mut self.agent_cards, name, card),
            },
            What::NetworkPolicy(seen) => set(&mut self.cut_off, seen.is_ours() && !seen.deleting),
            _ => false,
        }
    }

    /// The object of that name is gone.
    fn forget(&mut self, kind: Kind, name: &Arc<str>) -> bool {
        match kind {
            Kind::Namespace => set(&mut self.labels, BTreeMap::new()) | set(&mut self.quarantine, None),
            Kind::AgentRuntime => self.agent_runtimes.remove(name).is_some(),
            Kind::AgentCard => self.agent_cards.remove(name).is_some(),
            Kind::NetworkPolicy => set(&mut self.cut_off, false),
            Kind::ServiceAccount => self.service_accounts.remove(name).is_some(),
            Kind::Job => self.jobs.remove(name).is_some(),
            _ => false,
        }
    }
}

/// Whether an object of that kind and name is one of those that say anything here.
fn is_read(kind: Kind, name: &str) -> bool {
    KINDS.contains(&kind) && (kind != Kind::NetworkPolicy || name == DEFAULT_DENY)
}

impl Ownership {
    /// Whose a ServiceAccount is.
    #[must_use]
    pub fn of(seen: &ServiceAccountSeen) -> Self {
        if seen.is_dedicated() { Ownership::Ours } else { Ownership::Foreign }
    }
}

fn set<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}

fn put<T: PartialEq>(map: &mut BTreeMap<Arc<str>, T>, name: &Arc<str>, value: T) -> bool {
    let changed = map.get(name) != Some(&value);
    if changed {
        map.insert(name.clone(), value);
    }
    changed
}

fn agent_runtime(uid: &Arc<str>, seen: &AgentRuntimeSeen) -> AgentRuntimeInput {
    AgentRuntimeInput {
        uid: uid.clone(),
        created: Arc::from(&*seen.created),
        deleting: seen.deleting,
        ..AgentRuntimeInput::of_seen(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::change_of;

    fn taken(inputs: &mut NamespaceInputs, kind: Kind, text: &str) -> bool {
        inputs.take(&change_of(kind, text).unwrap())
    }

    /// (who is among the owners, label, whose it is)
    #[test]
    fn whose_a_service_account_is() {
        let owner = |version: &str, kind: &str, controls: bool| {
            format!(
                r#""ownerReferences": [{{"apiVersion": "{version}", "kind": "{kind}", "name": "a", "uid": "1", "controller": {controls}}}]"#
            )
        };
        let ours = r#""labels": {"kagenti.io/managed-by": "webhook"}"#.to_owned();
        let other = r#""labels": {"kagenti.io/managed-by": "me"}"#.to_owned();
        let table = [
            (String::new(), Ownership::Foreign),
            (ours, Ownership::Ours),
            (other, Ownership::Foreign),
            (owner("agent.kagenti.dev/v1alpha1", "Agent", true), Ownership::Ours),
            (owner("agent.kagenti.dev/v1alpha1", "Agent", false), Ownership::Foreign),
            (owner("apps/v1", "Deployment", true), Ownership::Foreign),
            (owner("example.com/v1", "Agent", true), Ownership::Foreign),
        ];
        for (metadata, whose) in table {
            let mut inputs = NamespaceInputs::default();
            let joint = if metadata.is_empty() { "" } else { ", " };
            let text = format!(r#"{{"metadata": {{"name": "a"{joint}{metadata}}}}}"#);
            assert!(taken(&mut inputs, Kind::ServiceAccount, &text));
            assert!(!taken(&mut inputs, Kind::ServiceAccount, &text), "the same again is no news");
            assert_eq!(inputs.service_accounts["a"], whose, "{metadata}");
        }
    }

    #[test]
    fn what_is_gone_says_nothing_any_more() {
        let mut inputs = NamespaceInputs::default();
        for (kind, text) in [
            (Kind::Namespace, r#"{"metadata": {"name": "n", "labels": {"kagenti-enabled": "true"}}}"#),
            (Kind::ServiceAccount, r#"{"metadata": {"name": "n"}}"#),
            (Kind::Job, r#"{"metadata": {"name": "n", "uid": "7"}}"#),
            (Kind::AgentRuntime, r#"{"metadata": {"name": "n"}, "spec": {}}"#),
            (Kind::AgentCard, r#"{"metadata": {"name": "n"}, "spec": {}}"#),
            (
                Kind::NetworkPolicy,
                r#"{"metadata": {"name": "drawbridge-default-deny", "labels": {"managed-by": "drawbridge",
                    "app.kubernetes.io/managed-by": "drawbridge"}}}"#,
            ),
        ] {
            let change = change_of(kind, text).unwrap();
            assert!(inputs.take(&change), "{kind:?}");
            assert_ne!(inputs, NamespaceInputs::default(), "{kind:?}");
            assert!(inputs.take(&Change { now: None, ..change.clone() }), "{kind:?}");
            assert_eq!(inputs, NamespaceInputs::default(), "{kind:?}");
            assert!(!inputs.take(&Change { now: None, ..change }), "{kind:?}: gone already");
        }
        assert!(!taken(&mut inputs, Kind::Deployment, r#"{"metadata": {"name": "n"}}"#));
        assert!(!taken(&mut inputs, Kind::NetworkPolicy, r#"{"metadata": {"name": "mine"}}"#));
    }
}
