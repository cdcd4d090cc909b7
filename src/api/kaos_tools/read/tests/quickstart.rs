//! The samples of every spelling: they are in order as they stand, and no field of them is lost.

use serde_json::{Value, json};

use crate::api::kaos_tools::migrate::{is_kaos, migrate};
use crate::api::kaos_tools::read;
use crate::api::yaml;

const SAMPLES: &[(&str, &str)] = &[
    ("m-simple", include_str!("../../../../../manifests/samples/kaos-m-simple.yaml")),
    ("m-team", include_str!("../../../../../manifests/samples/kaos-m-team.yaml")),
    ("m-hosted", include_str!("../../../../../manifests/samples/kaos-m-hosted.yaml")),
    ("s4-simple", include_str!("../../../../../manifests/samples/kaos-s4-simple.yaml")),
    ("s4-team", include_str!("../../../../../manifests/samples/kaos-s4-team.yaml")),
    ("s4-hosted", include_str!("../../../../../manifests/samples/kaos-s4-hosted.yaml")),
    ("s3-simple", include_str!("../../../../../manifests/samples/kaos-s3-simple.yaml")),
    ("s3-team", include_str!("../../../../../manifests/samples/kaos-s3-team.yaml")),
    ("s3-hosted", include_str!("../../../../../manifests/samples/kaos-s3-hosted.yaml")),
];

/// The objects of our kinds in the samples, by the sample's name.
pub(super) fn objects() -> Vec<(&'static str, Value)> {
    let documents = |text: &'static str| text.split("\n---\n").map(|text| yaml::parse(text).unwrap().to_json());
    let all = SAMPLES.iter().flat_map(|(name, text)| documents(text).map(move |object| (*name, object)));
    let found: Vec<_> = all.filter(|(_, object)| is_kaos(object)).collect();
    assert_eq!(found.len(), 28);
    found
}

/// What an object means, as text that differs where the meaning does; and what is wrong with it.
pub(super) fn meaning(object: &Value) -> (Value, usize) {
    let (value, faults) = match object["kind"].as_str().unwrap() {
        "Agent" => told(&read::agent(object)),
        "ModelAPI" => told(&read::model_api(object)),
        _ => told(&read::mcp_server(object)),
    };
    (value, faults)
}

/// `Debug` leaves values out on purpose; what was migrated has all of them.
fn told<T: std::fmt::Debug>(looked: &read::Looked<T>) -> (Value, usize) {
    (json!(format!("{:?}", looked.value)), looked.faults.len() + looked.conflicts.len())
}

#[test]
fn every_sample_is_in_order_as_it_stands() {
    for (name, object) in objects() {
        let (meaning, wrong) = meaning(&object);
        assert_eq!(wrong, 0, "{name}: {meaning}");
    }
}

/// Every leaf below `value`, as pointer.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| leaves(member, &format!("{at}/{key}"), found))
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| leaves(item, &format!("{at}/{index}"), found))
        }
        _ => found.push(at.to_owned()),
    }
}

/// Fields that say nothing: the source of the tools says what runs.
const SAY_NOTHING: &[&str] = &["/spec/type"];

/// Another value in the place of a leaf changes what the object means, or is refused: nothing is read past.
#[test]
fn every_field_of_every_sample_is_found_again() {
    let mut seen = 0;
    for (name, object) in objects() {
        let mut found = Vec::new();
        leaves(&object["spec"], "/spec", &mut found);
        for place in found.iter().filter(|place| !SAY_NOTHING.contains(&place.as_str())) {
            let mut other = object.clone();
            let leaf = other.pointer_mut(place).unwrap();
            *leaf = match &*leaf {
                Value::Bool(value) => json!(!value),
                Value::Number(number) => json!(number.as_i64().unwrap() + 1),
                Value::String(text) => json!(format!("{text}x")),
                odd => panic!("{name} {place}: {odd}"),
            };
            assert_ne!(migrated(&object), migrated(&other), "{name}: {} {place} is lost", object["metadata"]["name"]);
            seen += 1;
        }
    }
    assert!(seen > 140, "{seen}");
}

fn migrated(object: &Value) -> (Value, Vec<String>) {
    let migrated = migrate(object);
    (migrated.object["spec"].clone(), migrated.faults.iter().map(ToString::to_string).collect())
}

#[test]
fn what_was_migrated_means_the_same_and_has_no_old_spelling() {
    const TODAY: &[&str] = &["ToolsPackage"];
    for (name, object) in objects() {
        let new = migrate(&object);
        assert_eq!(new.faults, [], "{name}");
        match object["kind"].as_str().unwrap() {
            "Agent" => same(name, read::agent(&object), read::agent(&new.object)),
            "ModelAPI" => same(name, read::model_api(&object), read::model_api(&new.object)),
            _ => same(name, read::mcp_server(&object), read::mcp_server(&new.object)),
        }
        assert_eq!(migrate(&new.object).object, new.object, "{name}: once is enough");
    }
    fn same<T: PartialEq + std::fmt::Debug>(name: &str, old: read::Looked<T>, new: read::Looked<T>) {
        assert_eq!(old.value, new.value, "{name}");
        let left = new.old.iter().filter(|old| !TODAY.contains(&&*format!("{:?}", old.alias))).collect::<Vec<_>>();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

#[test]
fn the_group_of_before_is_read_and_what_a_cluster_writes_is_left_out() {
    let object = json!({
        "apiVersion": "ethical.institute/v1alpha1", "kind": "Agent",
        "metadata": {
            "name": "a", "uid": "u", "resourceVersion": "7", "labels": {"team": "x"},
            "finalizers": ["ethical.institute/agent-finalizer", "example.test/hold"],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {"modelAPI": "m", "config": {"env": [{"name": "MODEL_NAME", "value": "x"}], "ours": 1}, "later": {"a": 1}},
        "status": {"phase": "Ready"},
    });
    let new = migrate(&object);
    let wanted = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
        "metadata": {"name": "a", "labels": {"team": "x"}, "finalizers": ["example.test/hold"]},
        "spec": {"modelAPI": "m", "model": "x", "config": {"ours": 1}, "later": {"a": 1}},
    });
    assert_eq!(new.object, wanted, "members that nobody knows stay");
    assert_eq!(new.changes[1], ("spec.config.env".to_owned(), "container.env".to_owned()));
    let broken = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "m"}, "spec": {"mode": "Proxy"}});
    let kept = migrate(&broken);
    assert_eq!((kept.object, kept.faults.len()), (broken, 1), "it is handed back with what is wrong");
}
