//! What is looked at again when the configuration in force is another.
//!
//! In: the configuration before and now. Out: items in the queue. Promises: what concerns the whole fleet has everything looked at
//! again, what concerns one controller or single namespaces only those; what changes with every object of some kind, and concerns
//! nobody here, nothing.

use std::sync::Arc;

use super::machine::Loop;
use crate::config::snapshot::Published;
use crate::config::view::NamespaceView;
use crate::controllers::scaffold::plan::Item;
use crate::controllers::scaffold::queue::Priority;
use crate::controllers::scaffold::runner::Runner;
use crate::store::{Key, Kind, Store};

type Views = std::collections::HashMap<Arc<str>, Arc<NamespaceView>>;

impl Loop {
    /// New facts concern the namespaces in which needs may have changed; new settings concern all.
    pub(super) fn configure(&mut self, store: &Store, facts: Option<Arc<Published>>) {
        let Some(now) = facts else { return };
        let before = self.facts.replace(now.clone());
        if self.term.is_none() {
            return;
        }
        let Some(same) = before.filter(|before| same_fleet(before, &now)) else {
            self.memory.epoch += 1;
            return self.enqueue_all(store);
        };
        // The settings have reached every replica: those that waited for that may go on, by the settings of before.
        if same.spreading != now.spreading {
            return self.enqueue_all(store);
        }
        self.enqueue_affected(store, &same, &now);
        let views = &same.snapshot.view.namespaces;
        let changed = now.snapshot.view.namespaces.iter().filter(|(name, view)| {
            views.get(*name).is_none_or(|before| !Arc::ptr_eq(before, view) && !same_needs(before, view))
        });
        for (name, _) in changed {
            self.enqueue_namespace(store, name, Priority::Fresh);
        }
        self.governed_anew(store, &same.snapshot.view.namespaces, &now.snapshot.view.namespaces);
    }

    /// Every item of the controllers that say so: what they wait for may be there now.
    fn enqueue_affected(&mut self, store: &Store, before: &Published, now: &Published) {
        let rows = self.rows.iter().filter(|row| row.is_affected(before, now));
        let names: Vec<_> = store.namespaces().cloned().collect();
        let of_row = |row: &dyn Runner| {
            let keys = names.iter().flat_map(|name| row.of_namespace(store, name));
            keys.map(|key| Item { controller: row.controller(), key }).collect::<Vec<_>>()
        };
        let items: Vec<_> = rows.flat_map(|row| of_row(&**row)).collect();
        for item in items {
            self.queue.add(item, Priority::Backlog);
        }
    }

    /// Workloads whose AgentRuntime the snapshot knows in another version than before, or only now: few of many.
    fn governed_anew(&mut self, store: &Store, before: &Views, now: &Views) {
        let mut touched = Vec::new();
        for (name, view) in now {
            let Some(before) = before.get(name).filter(|before| !Arc::ptr_eq(before, view)) else { continue };
            for (kind, workload) in view.governors.differences(&before.governors) {
                let Some(kind) = Kind::of_workload(kind) else { continue };
                touched.extend(self.touched_by(store, kind, &Key::new(name, &workload)));
            }
        }
        for item in touched {
            self.queue.add(item, Priority::Fresh);
        }
    }
}

/// Whether both are the same configuration of the whole fleet, whatever they say of single namespaces.
fn same_fleet(before: &Published, now: &Published) -> bool {
    Arc::ptr_eq(&before.platform, &now.platform)
        && before.snapshot.gates == now.snapshot.gates
        && before.snapshot.labels == now.snapshot.labels
        && before.snapshot.builds.settings == now.snapshot.builds.settings
        && before.snapshot.view.spiffe_driver == now.snapshot.view.spiffe_driver
        && before.settled.view.spiffe_driver == now.settled.view.spiffe_driver
        && before.settled.view.server_version == now.settled.view.server_version
}

/// Whether workloads need the same under both views: ServiceAccounts and Jobs are followed object by object.
fn same_needs(before: &NamespaceView, now: &NamespaceView) -> bool {
    before.enabled_label == now.enabled_label
        && before.pod_security == now.pod_security
        && before.authbridge_config == now.authbridge_config
        && before.mounted == now.mounted
        && before.resolved == now.resolved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::scaffold::fixtures::Cluster;

    /// An AgentRuntime that is edited while the delay of a rollout ends is not taken for a change of the fleet.
    #[test]
    fn the_end_of_a_rollouts_delay_is_no_new_configuration_of_the_fleet() {
        let cluster = Cluster::new();
        let spreading = Published { spreading: true, ..cluster.facts.clone() };
        assert!(same_fleet(&spreading, &cluster.facts));
        let others: [fn(&mut Cluster); 3] = [
            |cluster| cluster.configure("proxy: {uid: 3000}\n"),
            |cluster| cluster.spiffe_driver(false),
            |cluster| Arc::make_mut(&mut cluster.facts.snapshot).gates.inject_tools ^= true,
        ];
        for change in others {
            let mut changed = Cluster { facts: cluster.facts.clone(), ..Cluster::new() };
            change(&mut changed);
            assert!(!same_fleet(&cluster.facts, &changed.facts));
        }
    }
}
