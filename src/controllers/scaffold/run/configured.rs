//! What is looked at again when the configuration in force is another.
//!
//! In: the configuration before and now. Out: items in the queue. Promises: what concerns the whole fleet has everything looked at
//! again, what concerns one controller or single namespaces only those; what changes with every object of some kind, and concerns
//! nobody here, nothing; what the store has told before, and is judged by the snapshot, is looked at once more when the snapshot knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::machine::Loop;
use crate::config::snapshot::Published;
use crate::config::view::{NamespaceView, Ownership};
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
        self.handed_over(store, &same.snapshot.view.namespaces, &now.snapshot.view.namespaces);
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

    /// What a ServiceAccount concerns that is or was somebody else's, and is no more what it was: whether Pods are refused for it is decided by
    /// the snapshot, which knows it later than the store.
    fn handed_over(&mut self, store: &Store, before: &Views, now: &Views) {
        let mut touched = Vec::new();
        for (name, view) in now {
            let Some(before) = before.get(name).filter(|before| !Arc::ptr_eq(before, view)) else { continue };
            for account in changed_hands(before, view) {
                touched.extend(self.touched_by(store, Kind::ServiceAccount, &Key::new(name, &account)));
            }
        }
        for item in touched {
            self.queue.add(item, Priority::Fresh);
        }
    }
}

/// The ServiceAccounts that were somebody else's and are not, or are and were not.
fn changed_hands(before: &NamespaceView, now: &NamespaceView) -> BTreeSet<Arc<str>> {
    let (before, now) = (&before.service_accounts, &now.service_accounts);
    let is_foreign = |whose: Option<&Ownership>| whose == Some(&Ownership::Foreign);
    let all = before.keys().chain(now.keys());
    all.filter(|name| is_foreign(before.get(*name)) != is_foreign(now.get(*name))).cloned().collect()
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

/// Whether workloads need the same under both views: ServiceAccounts ([`Loop::handed_over`]) and Jobs are followed object by object.
fn same_needs(before: &NamespaceView, now: &NamespaceView) -> bool {
    before.enabled_label == now.enabled_label
        && before.pod_security == now.pod_security
        && before.authbridge_config == now.authbridge_config
        && before.mounted == now.mounted
        && before.resolved == now.resolved
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::machine::{Given, Input};
    use super::*;
    use crate::controllers::always;
    use crate::controllers::scaffold::fixtures::{Cluster, account, s, workload};
    use crate::controllers::scaffold::metrics::ControllerMetrics;
    use crate::controllers::scaffold::queue::Ending;

    /// The items that wait for a turn, taken out.
    fn waiting(work: &mut Loop) -> BTreeSet<Item> {
        let mut all = BTreeSet::new();
        while let Some(item) = work.queue.pop(32, s(0)) {
            work.queue.done(&item, Ending::Done(None), s(0), 0.5);
            all.insert(item);
        }
        all
    }

    /// A loop that leads and knows the cluster's configuration, and for which nothing is left to be looked at.
    fn at_rest(cluster: &Cluster) -> Loop {
        let given = Given {
            metrics: ControllerMetrics::default(),
            jitter: Box::new(|| 0.5),
            clock: Box::new(|| Duration::ZERO),
        };
        let mut work = Loop::new(always().into_iter().collect(), given);
        work.step(&cluster.store, Input::Term(Some(1)), s(0));
        publish(&mut work, cluster);
        waiting(&mut work);
        work
    }

    fn publish(work: &mut Loop, cluster: &Cluster) {
        work.step(&cluster.store, Input::Published(Some(Arc::new(cluster.facts.clone()))), s(0));
    }

    /// The store's own event comes a moment before the snapshot knows, and was planned by the one of before.
    #[test]
    fn an_account_that_changes_hands_is_looked_at_again_when_the_snapshot_knows_and_nothing_else_is() {
        let mut cluster = Cluster::new();
        for name in ["a", "b"] {
            cluster.see(Kind::Deployment, workload(Kind::Deployment, name, json!({})));
            cluster.see(Kind::ServiceAccount, account(name, true, json!([])));
        }
        cluster.settle();
        let mut work = at_rest(&cluster);
        let mut version = 100;
        let mut then = |cluster: &mut Cluster, ours: Option<bool>| {
            version += 1;
            let mut object = account("a", ours.unwrap_or_default(), json!([]));
            object["metadata"]["resourceVersion"] = Value::from(version.to_string());
            match ours {
                Some(_) => cluster.see(Kind::ServiceAccount, object),
                None => cluster.lose(Kind::ServiceAccount, object),
            }
            cluster.settle();
            publish(&mut work, cluster);
            let items = waiting(&mut work);
            let keys: BTreeSet<String> = items.iter().map(|item| item.key.name.to_string()).collect();
            keys.into_iter().collect::<Vec<_>>().join(" ")
        };
        // (whose it is then, what is looked at)
        for (ours, looked_at) in [
            (Some(false), "a deployments/a"),
            (Some(true), "a deployments/a"),
            (None, ""),
            (Some(false), "a deployments/a"),
            (Some(false), ""),
            (None, "a deployments/a"),
            (Some(true), ""),
        ] {
            assert_eq!(then(&mut cluster, ours), looked_at, "{ours:?}");
        }
    }

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
