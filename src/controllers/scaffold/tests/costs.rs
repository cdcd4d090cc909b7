//! What a change costs does not depend on how many others there are: every controller is asked what it concerns, and plans that.

use serde_json::{Value, json};

use crate::config::gates::Gates;
use crate::controllers::always;
use crate::controllers::scaffold::fixtures::{Cluster, change, s, workload};
use crate::controllers::scaffold::runner::{Runner, Scene};
use crate::store::{Kind, Reach};

fn owned(kind: Kind, name: &str, owner: Value) -> Value {
    let mut object = workload(kind, name, json!({}));
    object["metadata"]["ownerReferences"] = json!([owner]);
    object
}

fn pod(name: &str, of: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "team", "uid": name, "resourceVersion": "30", "labels": {"kagenti.io/type": "agent", "app": of},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of, "uid": format!("replicasets-{of}"), "controller": true}]},
        "spec": {"serviceAccountName": of, "containers": [{"name": "a"}]}, "status": {"phase": "Running"}})
}

/// That many enrolled Deployments, each with a ReplicaSet, two Pods, an AgentRuntime and perhaps a card that proves nothing, where trust is enforced or not.
fn crowd(count: usize, level: &str) -> Cluster {
    let mut cluster = Cluster::with("", Gates::default());
    for kind in Kind::ALL {
        cluster.store.set_reach(*kind, Reach::Listed);
    }
    cluster.see(
        Kind::Namespace,
        json!({"metadata": {"name": "team", "uid": "team", "resourceVersion": "2", "labels": {"agent.kagenti.dev/trust": level}}}),
    );
    if level == "enforced" {
        // Without it every Pod is waited for, and that is asked of all.
        let labels = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
        cluster.see(
            Kind::NetworkPolicy,
            json!({"metadata": {"name": "drawbridge-default-deny", "namespace": "team", "uid": "deny", "resourceVersion": "3",
                "labels": labels}, "spec": {"podSelector": {}}}),
        );
    }
    for at in 0..count {
        let name = format!("w-{at}");
        let selector = json!({"spec": {"selector": {"matchLabels": {"app": name}}}});
        cluster.see(Kind::Deployment, workload(Kind::Deployment, &name, selector));
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": format!("deployments-{name}"), "controller": true});
        cluster.see(Kind::ReplicaSet, owned(Kind::ReplicaSet, &name, owner));
        for number in 0..2 {
            cluster.see(Kind::Pod, pod(&format!("{name}-{number}"), &name));
        }
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        cluster.see(
            Kind::AgentRuntime,
            json!({"metadata": {"name": name, "namespace": "team", "uid": format!("r-{name}"), "resourceVersion": "5"},
                "spec": {"type": "agent", "targetRef": target}}),
        );
        // Every second one.
        if at % 2 == 0 {
            cluster.see(
                Kind::AgentCard,
                json!({"metadata": {"name": name, "namespace": "team", "uid": format!("c-{name}"), "resourceVersion": "6", "generation": 1},
                    "spec": {"targetRef": target}}),
            );
        }
    }
    cluster.settle();
    cluster
}

/// References given out while a change is taken in, what it concerns is asked of every controller, and all of that is planned.
fn visits(cluster: &mut Cluster, kind: Kind, object: Value) -> usize {
    let mut rows = always();
    let change = change(kind, object);
    let touched = |cluster: &Cluster, rows: &[Box<dyn Runner>]| {
        let mut items = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            items.extend(row.touched(&cluster.store, kind, &change.key).into_iter().map(|key| (at, key)));
        }
        items
    };
    let before = cluster.store.visits();
    let mut items = touched(cluster, &rows);
    assert!(cluster.store.apply(&change, s(1)), "{kind:?} is as it was");
    items.extend(touched(cluster, &rows));
    items.sort();
    items.dedup();
    for (at, key) in items {
        let (store, memory, facts) = (&cluster.store, &cluster.memory, &cluster.facts);
        rows[at].plan(Scene { store, memory, facts, key: &key, now: s(100) });
    }
    cluster.store.visits() - before
}

#[test]
fn a_change_of_one_of_many_costs_every_controller_the_same_as_one_of_few() {
    let costs = |count: usize, level: &str| {
        let mut cluster = crowd(count, level);
        let newer = |mut object: Value| {
            object["metadata"]["resourceVersion"] = json!("77");
            object["status"]["replicas"] = json!(1);
            object
        };
        let selector = json!({"spec": {"selector": {"matchLabels": {"app": "w-7"}}}});
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "w-7", "uid": "deployments-w-7", "controller": true});
        let mut going = newer(owned(Kind::ReplicaSet, "w-7", owner));
        going["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        let mut ending = pod("w-7-0", "w-7");
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
        let with_card = json!({"spec": {"selector": {"matchLabels": {"app": "w-8"}}}});
        [
            visits(&mut cluster, Kind::Deployment, newer(workload(Kind::Deployment, "w-7", selector))),
            visits(&mut cluster, Kind::Deployment, newer(workload(Kind::Deployment, "w-8", with_card))),
            visits(&mut cluster, Kind::ReplicaSet, going),
            visits(&mut cluster, Kind::Pod, newer(ending)),
            visits(&mut cluster, Kind::Pod, pod("w-7-new", "w-7")),
        ]
    };
    for level in ["off", "audit", "enforced"] {
        let (few, many) = (costs(20, level), costs(400, level));
        assert_eq!(few, many, "{level}");
        assert!(many.iter().all(|visits| *visits <= 200), "{level}: {many:?}");
    }
}
