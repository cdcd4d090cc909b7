//! The model in every order, and the loop against an API server in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::model::{Model, Touched};
use super::*;
use crate::config::inputs::NamespaceInputs;
use crate::config::view::Ownership;
use crate::domain::workload::WorkloadKind;
use crate::store::decode::change_of;
use crate::store::{Key, Kind, Store};

fn change(kind: Kind, object: Value) -> Change {
    change_of(kind, &object.to_string()).unwrap()
}

fn gone(mut change: Change) -> Change {
    change.now = None;
    change
}

fn namespace(name: &str, enabled: &str) -> Change {
    change(Kind::Namespace, json!({"metadata": {"name": name, "labels": {"kagenti-enabled": enabled, "x": "y"}}}))
}

fn config_map(namespace: &str, name: &str, value: &str) -> Change {
    change(Kind::ConfigMap, json!({"metadata": {"name": name, "namespace": namespace}, "data": {"ISSUER": value}}))
}

/// A ConfigMap with a text under `key`; `labels` as JSON.
fn text(namespace: &str, name: &str, (key, text): (&str, &str), labels: Value) -> Change {
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels, "resourceVersion": "1"});
    change(Kind::ConfigMap, json!({"metadata": metadata, "data": {key: text}}))
}

fn defaults(namespace: &str, name: &str, yaml: &str) -> Change {
    text(namespace, name, ("config.yaml", yaml), json!({"kagenti.io/defaults": "true"}))
}

fn service_account(namespace: &str, name: &str, ours: bool) -> Change {
    let labels = if ours { json!({"kagenti.io/managed-by": "webhook"}) } else { json!({}) };
    change(Kind::ServiceAccount, json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}}))
}

fn job(namespace: &str, name: &str, controller: Option<(&str, &str)>) -> Change {
    let owners: Vec<_> = controller
        .into_iter()
        .map(|(api, kind)| json!({"apiVersion": api, "kind": kind, "name": "nightly", "uid": "c", "controller": true}))
        .collect();
    change(
        Kind::Job,
        json!({"metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"),
            "ownerReferences": owners}}),
    )
}

fn inputs(model: &Model) -> BTreeMap<Arc<str>, NamespaceInputs> {
    let names = model.existing();
    names.into_iter().filter_map(|name| Some((name.clone(), model.inputs(&name)?))).collect()
}

#[test]
fn a_change_touches_its_namespace_only_when_it_changes_what_admission_reads() {
    let mut model = Model::default();
    let touched = |name: &str| Touched::Namespace(name.into());
    assert_eq!(model.apply(&service_account("a", "x", true)), touched("a"));
    assert!(model.existing().is_empty(), "a namespace exists when it was seen itself");
    assert_eq!(model.apply(&namespace("a", "true")), touched("a"));
    assert_eq!(model.apply(&namespace("a", "true")), Touched::Nothing, "duplicates");
    assert_eq!(model.apply(&namespace("a", "false")), touched("a"));
    assert_eq!(model.apply(&service_account("a", "x", true)), Touched::Nothing);
    assert_eq!(model.apply(&service_account("a", "x", false)), touched("a"));
    assert_eq!(model.apply(&job("a", "j", Some(("batch/v1", "CronJob")))), touched("a"));
    assert_eq!(model.apply(&job("a", "k", Some(("example.org/v1", "CronJob")))), touched("a"));
    assert_eq!(
        model.apply(&config_map("a", "authbridge-config", "i")),
        Touched::Nothing,
        "those have a room of their own"
    );
    let seen = inputs(&model).remove("a").unwrap();
    assert_eq!(seen.labels, BTreeMap::from([("kagenti-enabled".to_owned(), "false".to_owned())]));
    assert_eq!(seen.service_accounts["x"], Ownership::Foreign);
    let workload = |name: &str| (seen.jobs[name].workload.kind, seen.jobs[name].workload.name.as_str());
    assert_eq!(workload("j"), (WorkloadKind::CronJob, "nightly"));
    assert_eq!(workload("k"), (WorkloadKind::Job, "k"), "a CronJob of another group is none");
    assert_eq!(seen.jobs["j"].uid, "uid-j");
    let runtime = |status: Value| {
        change(
            Kind::AgentRuntime,
            json!({"metadata": {"name": "r", "namespace": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"type": "tool", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
                "status": status}),
        )
    };
    assert_eq!(model.apply(&runtime(json!({}))), touched("a"));
    assert_eq!(model.apply(&runtime(json!({"phase": "Active"}))), Touched::Nothing, "our own status write");
    let input = inputs(&model).remove("a").unwrap().agent_runtimes.remove("r").unwrap();
    let target = input.target.clone().unwrap();
    assert_eq!((target.kind, &*target.name), (WorkloadKind::Deployment, "w"));
    assert_eq!((&*input.uid, &*input.created, input.deleting), ("u", "2026-01-01T00:00:00Z", false));
    assert_eq!(model.apply(&gone(runtime(json!({})))), touched("a"));
    let driver = change(Kind::CsiDriver, json!({"metadata": {"name": "csi.spiffe.io"}}));
    assert_eq!(model.apply(&driver), Touched::Cluster);
    assert_eq!(model.apply(&driver), Touched::Nothing);
    assert_eq!(model.apply(&gone(driver)), Touched::Cluster);
}

/// Everything that may happen to three objects of two namespaces.
fn histories() -> impl Strategy<Value = Vec<Change>> {
    let spaces = prop::sample::select(vec!["a", "b"]);
    let object = (spaces, 0..5u8, any::<bool>(), any::<bool>()).prop_map(|(space, what, flag, deleted)| {
        let text = if flag { "true" } else { "false" };
        let change = match what {
            0 => namespace(space, text),
            1 => config_map(space, "authbridge-config", text),
            2 => service_account(space, "x", flag),
            3 => change(
                Kind::AgentRuntime,
                json!({"metadata": {"name": "r", "namespace": space}, "spec": {"type": text}}),
            ),
            _ => job(space, "j", flag.then_some(("batch/v1", "CronJob"))),
        };
        if deleted { gone(change) } else { change }
    });
    prop::collection::vec(object, 0..24)
}

proptest! {
    #[test]
    fn the_order_between_sources_does_not_matter(history in histories(), seed in any::<u64>()) {
        let mut straight = Model::default();
        for change in &history {
            straight.apply(change);
        }
        // Another interleaving in which each object keeps its own order, with every event delivered twice.
        let mut queues: BTreeMap<(Kind, Key), Vec<&Change>> = BTreeMap::new();
        for change in &history {
            queues.entry((change.kind, change.key.clone())).or_default().push(change);
        }
        let (mut other, mut seed) = (Model::default(), seed);
        while !queues.is_empty() {
            let at = usize::try_from(seed % queues.len() as u64).unwrap();
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 1;
            let key = queues.keys().nth(at).unwrap().clone();
            let queue = queues.get_mut(&key).unwrap();
            let change = queue.remove(0);
            other.apply(change);
            other.apply(change);
            if queue.is_empty() {
                queues.remove(&key);
            }
        }
        prop_assert_eq!(inputs(&straight), inputs(&other));
        let mut store = Store::new("own");
        for change in &history {
            store.apply(change, Duration::ZERO);
        }
        let exist = store.namespaces().filter(|name| store.namespace(name).is_some());
        let gathered: BTreeMap<_, _> = exist.map(|name| (name.clone(), NamespaceInputs::of(&store, name))).collect();
        prop_assert_eq!(inputs(&straight), gathered, "what the controllers keep says the same");
    }
}

#[test]
fn versions_are_read_as_clouds_write_them() {
    assert_eq!(parse_version("1", "36"), Some((1, 36)));
    assert_eq!(parse_version("1", "34+"), Some((1, 34)));
    assert_eq!(parse_version("1", ""), None);
    assert_eq!(parse_version("", "$Format"), None);
}

mod faults;
mod protocol;
mod readers;
mod snapshot;
