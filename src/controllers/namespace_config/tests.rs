//! Created where missing, refreshed while unmodified, left alone otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::plan::ROW;
use crate::config::content::digest;
use crate::config::inputs::ConfigMapInput;
use crate::config::schema::Platform;
use crate::controllers::scaffold::fixtures::{Cluster, OWN, Rowed as _, s, workload};
use crate::controllers::scaffold::plan::{Item, Op, Plan};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::decode::wire::binary::Binary;
use crate::store::{Key, Kind};

fn config_map(namespace: &str, name: &str, data: &[(&str, &str)], ours: bool, digest: Option<String>) -> Value {
    let labels = if ours { json!({"app.kubernetes.io/managed-by": "drawbridge"}) } else { json!({}) };
    let annotations = digest.map(|digest| json!({keys::ANNOTATION_CONTENT_DIGEST: digest}));
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    json!({"metadata": {"name": name, "namespace": namespace, "uid": format!("cm-{name}"), "resourceVersion": "7",
        "labels": labels, "annotations": annotations}, "data": data})
}

fn of(data: &[(&str, &str)]) -> String {
    digest(&data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

fn enrolled() -> Cluster {
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    cluster
}

/// Everything the controller creates is put into the cluster.
fn settle(cluster: &mut Cluster) -> usize {
    let ops = cluster.plan(ROW);
    for op in &ops {
        let Op::Create { kind: Kind::ConfigMap, body, .. } = op else { panic!("{op:?}") };
        let mut body = body.clone();
        body["metadata"]["resourceVersion"] = json!("7");
        body["metadata"]["uid"] = json!(format!("cm-{}", body["metadata"]["name"].as_str().unwrap()));
        cluster.see(Kind::ConfigMap, body);
    }
    ops.len()
}

#[test]
fn made_in_namespaces_with_an_enrolled_workload_only_and_then_nothing_more() {
    assert_eq!(Cluster::new().plan(ROW), [], "nobody is enrolled");
    let mut cluster = enrolled();
    assert_eq!(settle(&mut cluster), keys::NAMESPACE_CONFIG_MAPS.len());
    assert_eq!(cluster.plan(ROW), [], "steady state writes nothing");
    for name in keys::NAMESPACE_CONFIG_MAPS {
        let (seen, _) = cluster.store.config_map("team", name).unwrap();
        assert!(seen.is_as_written(), "{name}");
    }
    let mut own = Cluster::new();
    own.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({"metadata": {"namespace": OWN}})));
    assert_eq!(own.plan(ROW), [], "our own namespace holds the templates");
    let mut out = Cluster::new();
    let label = json!({"spec": {"template": {"metadata": {"labels": {"kagenti.io/inject": "disabled"}}}}});
    out.see(Kind::Deployment, workload(Kind::Deployment, "a", label));
    assert_eq!(out.plan(ROW), [], "opted out");
}

#[test]
fn templates_of_our_own_namespace_win_and_are_followed_while_nobody_edits() {
    let mut cluster = enrolled();
    let template = |value| config_map(OWN, "authproxy-routes", &[("routes.yaml", value)], false, None);
    cluster.see(Kind::ConfigMap, template("one"));
    settle(&mut cluster);
    assert_eq!(*cluster.store.config_map("team", "authproxy-routes").unwrap().0.digest, *of(&[("routes.yaml", "one")]));

    let mut next = template("two");
    next["metadata"]["resourceVersion"] = json!("8");
    cluster.see(Kind::ConfigMap, next);
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": "cm-authproxy-routes"},
        {"op": "test", "path": "/metadata/labels/app.kubernetes.io~1managed-by", "value": "drawbridge"},
        {"op": "test", "path": "/metadata/annotations/kagenti.io~1content-digest", "value": of(&[("routes.yaml", "one")])},
        {"op": "test", "path": "/data", "value": {"routes.yaml": "one"}},
        {"op": "add", "path": "/metadata/annotations/kagenti.io~1content-digest", "value": of(&[("routes.yaml", "two")])},
        {"op": "add", "path": "/data", "value": {"routes.yaml": "two"}},
    ]);
    let expected = Op::Edit { kind: Kind::ConfigMap, key: Key::new("team", "authproxy-routes"), operations };
    assert_eq!(cluster.plan(ROW), [expected]);
}

/// A tenant may copy our label and a fitting digest onto as much as an object holds: then the version stands for the text.
#[test]
fn mend_02_texts_of_others_and_large_ones_are_not_kept() {
    let table = [(10, true, true), (20_000, true, false), (70_000, true, false), (10, false, false)];
    for (size, ours, kept) in table {
        let mut cluster = enrolled();
        let text = "x".repeat(size);
        let data: &[(&str, &str)] = &[("routes.yaml", &text)];
        cluster.see(Kind::ConfigMap, config_map("team", "authproxy-routes", data, ours, Some(of(data))));
        let (seen, _) = cluster.store.config_map("team", "authproxy-routes").unwrap();
        assert_eq!((seen.data.is_empty(), &*seen.digest), (!kept, &*of(data)), "{size}");
        let ops = cluster.plan(ROW);
        let refresh = ops.iter().find_map(|op| match op {
            Op::Edit { operations, .. } => Some(operations[3]["path"].as_str().unwrap().to_owned()),
            _ => None,
        });
        let expected = ours.then_some(if kept { "/data" } else { "/metadata/resourceVersion" });
        assert_eq!(refresh.as_deref(), expected, "{size}");
    }
    let mut cluster = enrolled();
    let large = "x".repeat(70_000);
    cluster.see(Kind::ConfigMap, config_map(OWN, "authproxy-routes", &[("routes.yaml", &large)], false, None));
    let made = settle(&mut cluster);
    assert_eq!(made, keys::NAMESPACE_CONFIG_MAPS.len() - 1, "nothing is made from a template that is not kept");
}

/// A template of that content, as the configuration reads it.
fn input(data: BTreeMap<String, String>) -> ConfigMapInput {
    ConfigMapInput { data, ..ConfigMapInput::default() }
}

/// The configuration is published anew over that template.
fn publish(cluster: &mut Cluster, name: &str, template: ConfigMapInput) {
    let template = BTreeMap::from([(name.to_owned(), template)]);
    let before = Arc::clone(&cluster.facts.platform);
    cluster.facts.platform = Arc::new(Platform::clone(&before).with_templates(&template, Some(&*before)));
    cluster.settle();
}

/// kubectl puts a file there that is no UTF-8 text. Copied, it would be an empty ConfigMap, with which no sidecar starts.
#[test]
fn a_template_with_nothing_but_binary_data_empties_no_copy() {
    let name = "authproxy-routes";
    let content = json!({"routes.yaml": "//4="});
    let mut binary = config_map(OWN, name, &[], false, None);
    (binary["binaryData"], binary["metadata"]["resourceVersion"]) = (content.clone(), json!("9"));
    let entries = || Binary::of(Some(&content)).entries().collect::<BTreeMap<_, _>>();

    let mut cluster = enrolled();
    settle(&mut cluster);
    cluster.see(Kind::ConfigMap, binary.clone());
    assert_eq!(cluster.plan(ROW), [], "it said nothing before, and what is built in stays");
    publish(&mut cluster, name, input(entries()));
    assert_eq!(cluster.plan(ROW), [], "the same once the configuration knows of it");

    let mut cluster = enrolled();
    let good: &[(&str, &str)] = &[("routes.yaml", "one")];
    cluster.see(Kind::ConfigMap, config_map(OWN, name, good, false, None));
    publish(&mut cluster, name, input(BTreeMap::from([("routes.yaml".to_owned(), "one".to_owned())])));
    settle(&mut cluster);
    cluster.see(Kind::ConfigMap, binary.clone());
    publish(&mut cluster, name, input(entries()));
    assert_eq!(cluster.plan(ROW), [], "what it said before stays");
    cluster.lose(Kind::ConfigMap, config_map("team", name, good, true, None));
    let ops = cluster.plan(ROW);
    let [Op::Create { body, .. }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(body["data"], json!({"routes.yaml": "one"}), "and who comes now gets the same");

    let mut cluster = enrolled();
    cluster.see(Kind::ConfigMap, binary);
    let template = BTreeMap::from([(name.to_owned(), input(entries()))]);
    cluster.facts.platform = Arc::new(Platform::clone(&cluster.facts.platform).with_templates(&template, None));
    cluster.settle();
    assert_eq!(settle(&mut cluster), keys::NAMESPACE_CONFIG_MAPS.len() - 1, "what it said before nobody knows");
}

/// Admission refers the Pods of a namespace that comes now to what the template said before.
#[test]
fn a_template_that_has_become_too_large_is_what_it_was_for_who_comes_now() {
    let name = "authproxy-routes";
    let good: &[(&str, &str)] = &[("routes.yaml", "one")];
    let mut cluster = enrolled();
    cluster.see(Kind::ConfigMap, config_map(OWN, name, good, false, None));
    publish(&mut cluster, name, input(BTreeMap::from([("routes.yaml".to_owned(), "one".to_owned())])));
    settle(&mut cluster);
    let text = "x".repeat(70_000);
    let mut large = config_map(OWN, name, &[("routes.yaml", &text)], false, None);
    large["metadata"]["resourceVersion"] = json!("9");
    cluster.see(Kind::ConfigMap, large);
    publish(&mut cluster, name, ConfigMapInput::too_large());
    assert_eq!(cluster.plan(ROW), [], "what was made stays");
    cluster.lose(Kind::ConfigMap, config_map("team", name, good, true, None));
    let ops = cluster.plan(ROW);
    let [Op::Create { body, .. }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(body["data"], json!({"routes.yaml": "one"}));
}

/// Texts are copied; who put something beside them hears that it is not.
#[test]
fn keys_of_a_template_that_nobody_gets_are_told_at_the_template() {
    let template = |binary: Value| {
        let mut template = config_map(OWN, "envoy-config", &[("envoy.yaml", "mine")], false, None);
        template["binaryData"] = binary;
        template
    };
    let mut cluster = enrolled();
    cluster.see(Kind::ConfigMap, template(json!({"ca.der": "//4=", "filter.wasm": "AGFzbQ=="})));
    let told: Vec<_> = cluster.plan(ROW).into_iter().filter(|op| matches!(op, Op::Report(_))).collect();
    let [Op::Report(report)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((report.kind, &report.about), (Kind::ConfigMap, &Key::new(OWN, "envoy-config")));
    assert_eq!((report.reason, &*report.uid), (Reason::NamespaceConfigUnreadable, "cm-envoy-config"));
    assert!(report.message.contains("(ca.der, filter.wasm)"), "{}", report.message);
    assert!(cluster.touched(ROW, Kind::ConfigMap, &report.about).contains(&Key::new(OWN, "")), "at every change of it");
    for none in [json!({}), Value::Null] {
        let mut cluster = enrolled();
        cluster.see(Kind::ConfigMap, template(none));
        assert!(!cluster.plan(ROW).iter().any(|op| matches!(op, Op::Report(_))));
    }
}

#[test]
fn only_what_is_ours_and_unmodified_is_refreshed() {
    let old: &[(&str, &str)] = &[("routes.yaml", "old"), ("extra", "x")];
    let table: [(&str, bool, Option<String>, bool); 5] = [
        ("ours, as we wrote it", true, Some(of(old)), true),
        ("ours, edited by a person", true, Some(of(&[("routes.yaml", "older")])), false),
        ("ours by label, written by an older tool that left no digest", true, None, false),
        ("foreign", false, None, false),
        ("foreign, with a digest that somebody copied", false, Some(of(old)), false),
    ];
    for (what, ours, digest, refreshed) in table {
        let mut cluster = enrolled();
        settle(&mut cluster);
        let mut object = config_map("team", "authproxy-routes", old, ours, digest);
        object["metadata"]["resourceVersion"] = json!("8");
        cluster.see(Kind::ConfigMap, object);
        let ops = cluster.plan(ROW);
        assert_eq!(ops.len(), usize::from(refreshed), "{what}: {ops:?}");
        if let [Op::Edit { operations, .. }] = &ops[..] {
            let last = operations.as_array().and_then(|all| all.last()).unwrap();
            assert!(last["value"]["routes.yaml"].is_string() && last["value"].get("extra").is_none(), "{last}");
        }
    }
}

/// The API server would refuse it, and what comes behind it would wait.
#[test]
fn one_that_a_person_made_immutable_stays_and_the_others_are_made() {
    let mut cluster = enrolled();
    let old: &[(&str, &str)] = &[("KEYCLOAK_URL", "old")];
    let mut frozen = config_map("team", keys::NAMESPACE_CONFIG_MAPS[0], old, true, Some(of(old)));
    frozen["immutable"] = json!(true);
    cluster.see(Kind::ConfigMap, frozen);
    assert_eq!(settle(&mut cluster), keys::NAMESPACE_CONFIG_MAPS.len() - 1);
    assert_eq!(cluster.plan(ROW), []);
}

#[test]
fn one_that_a_person_deleted_is_made_again() {
    let mut cluster = enrolled();
    settle(&mut cluster);
    cluster.lose(Kind::ConfigMap, config_map("team", "envoy-config", &[], true, None));
    assert_eq!(cluster.plan(ROW).len(), 1);
}

/// Statuses of workloads change all the time; whether their namespace has its ConfigMaps does not.
#[test]
fn changes_of_workloads_have_nothing_planned_once_all_of_them_are_there() {
    let (team, workload_key) = (Key::new("team", ""), Key::new("team", "a"));
    let asked = |cluster: &Cluster, kind| cluster.touched(ROW, kind, &workload_key) == [team.clone()];
    let plan = |cluster: &mut Cluster| ROW.planned(cluster, &Key::new("team", ""), s(1)).ops.len();
    let mut cluster = Cluster::new();
    assert_eq!(plan(&mut cluster), 0);
    assert!(asked(&cluster, Kind::Deployment), "nobody is enrolled: this one may be the first");
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    assert_eq!(plan(&mut cluster), settle(&mut cluster));
    assert!(asked(&cluster, Kind::Deployment), "when it was planned, they were missing");
    assert_eq!(plan(&mut cluster), 0);
    assert!(![Kind::Deployment, Kind::Sandbox, Kind::AgentRuntime].into_iter().any(|kind| asked(&cluster, kind)));
    assert!(asked(&cluster, Kind::ConfigMap));
    assert_eq!(cluster.touched(ROW, Kind::Namespace, &Key::new("", "team")), std::slice::from_ref(&team));

    // While nobody is enrolled a template changes; who is enrolled next has it refreshed.
    cluster.lose(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    cluster.see(Kind::ConfigMap, config_map(OWN, "authproxy-routes", &[("routes.yaml", "one")], false, None));
    assert_eq!(plan(&mut cluster), 0);
    assert!(asked(&cluster, Kind::Deployment));
    let mut again = workload(Kind::Deployment, "a", json!({}));
    again["metadata"]["resourceVersion"] = json!("90");
    cluster.see(Kind::Deployment, again);
    assert_eq!(plan(&mut cluster), 1);
    assert!(asked(&cluster, Kind::Deployment), "it is not written yet");
}

/// An agent's status says why the ConfigMaps of its namespace are missing, until they are there.
#[test]
fn a_failure_is_forgotten_before_changes_of_workloads_are_left_out() {
    let mut cluster = enrolled();
    let team = Key::new("team", "");
    let plan = |cluster: &mut Cluster| ROW.planned(cluster, &team, s(1));
    let failed = plan(&mut cluster).ops.remove(0);
    let item = Item { controller: ROW.controller, key: team.clone() };
    cluster.memory.failure(&item, s(1), (failed, None, "away".to_owned()));
    settle(&mut cluster);
    assert_eq!(plan(&mut cluster), Plan::nothing(), "at rest, so the failure is forgotten");
    assert_eq!(cluster.touched(ROW, Kind::Deployment, &Key::new("team", "a")), std::slice::from_ref(&team));
    cluster.memory.at_rest(&item);
    plan(&mut cluster);
    assert_eq!(cluster.touched(ROW, Kind::Deployment, &Key::new("team", "a")), []);
}

#[test]
fn made_for_what_an_agent_runtime_governs_ahead_of_the_label() {
    let mut cluster = Cluster::new();
    let unlabelled = json!({"spec": {"template": {"metadata": {"labels": {"kagenti.io/type": null}}}}});
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", unlabelled));
    assert_eq!(cluster.plan(ROW), []);
    let runtime = json!({
        "metadata": {"name": "art", "namespace": "team", "uid": "art", "resourceVersion": "30"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
    });
    cluster.see(Kind::AgentRuntime, runtime.clone());
    cluster.settle();
    assert_eq!(cluster.touched(ROW, Kind::AgentRuntime, &Key::new("team", "art")), [Key::new("team", "")]);
    assert_eq!(settle(&mut cluster), keys::NAMESPACE_CONFIG_MAPS.len());
    cluster.lose(Kind::AgentRuntime, runtime);
    cluster.settle();
    assert_eq!(cluster.plan(ROW), [], "nothing is deleted");
}
