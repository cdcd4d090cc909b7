//! When Pods are made again because of a Secret.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::plan::{ROW, seen, turn};
use super::question::{ABSENT, VersionOf};
use crate::config::gates::Gates;
use crate::controllers::references::references;
use crate::controllers::scaffold::fixtures::{Cluster, s, workload};
use crate::controllers::scaffold::lane::{Fact, Facts};
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::{Key, Kind};

mod turns;

const ON: &str = "kaos: {rollOnSecretChange: true}\n";

fn cluster(platform: &str, references: &str) -> Cluster {
    let mut cluster = Cluster::with(platform, Gates::default());
    let env = json!([{"name": "K", "valueFrom": {"secretKeyRef": {"name": "provider", "key": "k"}}}]);
    let mut agent = json!({"metadata": {"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "9"},
        "spec": {"modelAPI": "m", "container": {"env": env}}, "status": {}});
    if !references.is_empty() {
        agent["status"]["references"] = json!(references);
    }
    cluster.see(Kind::KaosAgent, agent);
    let owner =
        json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "a", "uid": "u", "controller": true}]);
    cluster
        .see(Kind::Deployment, workload(Kind::Deployment, "agent-a", json!({"metadata": {"ownerReferences": owner}})));
    cluster
}

fn planned(cluster: &Cluster, version: Option<&str>) -> (Vec<Op>, usize) {
    let mut facts = Facts::default();
    if let Some(version) = version {
        let value = Ok(version.into());
        facts = facts.with(secret(), Fact { value, asked: s(90), at: s(90), failures: 0 });
    }
    let key = Key::new("team", "agent-a");
    let (plan, asks) = cluster.asked_at(ROW, &key, &facts, s(100));
    (plan.ops, asks.len())
}

fn secret() -> VersionOf {
    VersionOf { kind: Kind::Secret, namespace: "team".into(), name: "provider".into() }
}

fn of(version: &str) -> String {
    seen(&BTreeSet::from([secret()]), &[version.into()])
}

#[test]
fn ruling_17_a_secret_that_changes_makes_pods_again_and_one_that_is_seen_first_does_not() {
    assert_eq!(planned(&cluster("", ""), Some("u/1")), (Vec::new(), 0), "it is off by default");
    assert_eq!(planned(&cluster(ON, ""), None), (Vec::new(), 1), "it is asked for");
    let (ops, _) = planned(&cluster(ON, ""), Some("u/1"));
    assert!(matches!(&ops[..], [Op::Status { patch, .. }] if patch["status"]["references"] == of("u/1")), "{ops:?}");
    assert_eq!(planned(&cluster(ON, &of("u/1")), Some("u/1")).0, [], "at rest nothing is written");
    let (ops, _) = planned(&cluster(ON, &of("u/1")), Some("u/2"));
    // The status follows once the Pods are there.
    let [Op::Merge { kind: Kind::Deployment, patch, .. }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(patch["spec"]["template"]["metadata"]["annotations"][keys::ANNOTATION_KAOS_REFERENCES], of("u/2"));
    let (ops, _) = planned(&cluster(ON, "other.thing"), Some("u/2"));
    assert!(matches!(&ops[..], [Op::Status { .. }]), "another reference rolls by itself: {ops:?}");
}

/// New Pods would not start without it, and what runs does.
#[test]
fn ruling_17_a_secret_that_is_gone_rolls_nothing_until_it_is_there_again() {
    let before = cluster(ON, &of("u/1"));
    assert_eq!(planned(&before, Some(ABSENT)), (Vec::new(), 1), "neither the Deployment nor the status is written");
    assert_eq!(planned(&cluster(ON, ""), Some(ABSENT)), (Vec::new(), 1), "nor where it was never there");
    let (ops, _) = planned(&before, Some("u/2"));
    assert!(matches!(&ops[..], [Op::Merge { .. }]), "once, when it is there again: {ops:?}");
    // Pods start without what is optional, so that it goes is a change like any other.
    let mut optional = cluster(ON, "");
    let key = json!({"name": "provider", "key": "k", "optional": true});
    let env = json!([{"name": "K", "valueFrom": {"secretKeyRef": key}}]);
    optional.see(
        Kind::KaosAgent,
        json!({"metadata": {"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "10"},
            "spec": {"modelAPI": "m", "container": {"env": env}}, "status": {"references": of("u/1")}}),
    );
    let (ops, _) = planned(&optional, Some(ABSENT));
    assert!(matches!(&ops[..], [Op::Merge { .. }]), "{ops:?}");
}

#[test]
fn ruling_17_of_one_object_no_more_than_64_references_are_asked_for() {
    let named = |number: usize| json!({"configMapRef": {"name": format!("c{number:03}")}});
    let sources: Vec<Value> = (0..100).map(named).collect();
    let mut cluster = cluster(ON, "");
    let spec = json!({"modelAPI": "m", "podSpec": {"containers": [{"name": "agent", "envFrom": sources}]}});
    let metadata = json!({"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "10"});
    cluster.see(Kind::KaosAgent, json!({"metadata": metadata, "spec": spec.clone(), "status": {}}));
    assert_eq!(planned(&cluster, None), (Vec::new(), 64));
    let found = references(&spec, "team");
    assert_eq!((found.asked.len(), found.left.len()), (64, 36));
    assert_eq!(found.left.first().map(|first| &*first.name), Some("c064"), "the first by name are asked for");
}

#[test]
fn every_reference_of_every_spelling_is_asked_for_once() {
    let spec: Value = json!({
        "config": {"env": [{"valueFrom": {"configMapKeyRef": {"name": "c"}}}], "tools": {"fromSecretKeyRef": {"name": "t", "key": "k"}}},
        "proxyConfig": {"apiKey": {"valueFrom": {"secretKeyRef": {"name": "p", "key": "k"}}}},
        "podSpec": {"containers": [{"envFrom": [{"secretRef": {"name": "p"}}, {"configMapRef": {"name": "e"}}]}]},
    });
    let named: Vec<_> =
        references(&spec, "team").asked.into_iter().map(|one| format!("{}/{}", one.kind.as_str(), one.name)).collect();
    let mut sorted = named.clone();
    sorted.sort();
    assert_eq!(sorted, ["ConfigMap/c", "ConfigMap/e", "Secret/p", "Secret/t"]);
}

#[test]
fn each_object_has_its_own_second_of_the_minute() {
    let mut seconds = BTreeSet::new();
    for number in 0..200 {
        let uid = format!("uid-{number}");
        let (began, left) = turn(s(1000), &uid);
        assert!(began <= s(1000) && left <= s(60) && !left.is_zero());
        let (again, _) = turn(s(1000) + left, &uid);
        assert_eq!(again, s(1000) + left, "the next turn begins where this one ends");
        seconds.insert(left);
    }
    assert!(seconds.len() > 40, "{}", seconds.len());
}
