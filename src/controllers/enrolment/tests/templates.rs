//! What is kept of a template decides as the whole template does: controllers say of it what the webhook says of its Pods.

use serde_json::{Value, json};

use super::bench::{Bench, TEAM, WEB, pod};
use crate::admission::inject::{Needs, needs};
use crate::controllers::scaffold::fixtures::{Cluster, workload};
use crate::controllers::scaffold::plan::Op;
use crate::controllers::service_account;
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::Kind;

/// An AgentRuntime governs Deployment `web`, into whose template this is merged.
fn enrolled_with(platform: &str, template: Value) -> (Bench, Vec<Op>) {
    let mut bench = Bench::with(platform);
    bench.change(WEB.0, WEB.1, json!({"spec": {"template": template}}));
    bench.runtime("art", WEB, json!({}));
    let ops = bench.converge();
    (bench, ops)
}

/// What the webhook says of Pods of that whole template.
fn of_whole(bench: &Bench, template: &Value) -> Needs {
    let web = Workload { kind: WorkloadKind::Deployment, name: WEB.1.to_owned() };
    needs(TEAM, &web, template, &bench.cluster.facts.snapshot)
}

/// A variable that every container sets itself is not ours to set, so where ours would lead is no part of what the Pods get.
#[test]
fn pods_of_a_template_that_says_itself_where_its_traces_go_are_as_they_should_be() {
    let traces = "trace: {endpoint: 'http://otel:4317'}\n";
    let variables =
        json!([{"name": "MINE", "value": "x"}, {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://mine:4317"}]);
    let says = json!({"spec": {"containers": [{"name": "app", "image": "i", "env": variables}]}});
    let (mut bench, _) = enrolled_with(traces, says);
    let mut template = bench.object(WEB.0, WEB.1)["spec"]["template"].clone();
    let stamp = of_whole(&bench, &template).config_hash.unwrap();
    assert_eq!(bench.hash(WEB.0, WEB.1), Some(&*stamp));
    template["spec"]["containers"][0]["env"] = json!([]);
    assert_ne!(of_whole(&bench, &template).config_hash.as_deref(), Some(&*stamp), "the address would be told here");
    bench.put(Kind::Pod, pod("web-a", WEB, Some(&stamp)));
    bench.change(WEB.0, WEB.1, json!({"status": {"observedGeneration": 9}}));
    bench.converge();
    assert_eq!(bench.condition("art", "Protected"), "True/Protected");
}

/// A container of the signer's name is the user's own: ours does not join it, whatever the annotation asks for.
#[test]
fn pods_of_a_template_that_brings_its_own_signer_are_as_they_should_be() {
    let own = json!({"metadata": {"annotations": {keys::ANNOTATION_SIGN: "true"}},
        "spec": {"initContainers": [{"name": keys::CONTAINER_SIGNER, "image": "s"}]}});
    let (bench, _) = enrolled_with("", own);
    let template = &bench.object(WEB.0, WEB.1)["spec"]["template"];
    let stamp = of_whole(&bench, template).config_hash.unwrap();
    assert_eq!(bench.hash(WEB.0, WEB.1), Some(&*stamp));
}

/// A rollout to Pods that are refused stops half-way, and a StatefulSet has lost one by then.
#[test]
fn what_would_be_refused_for_an_init_container_is_not_rolled() {
    let many: Vec<_> = (0..keys::CONTAINERS_MOST).map(|at| json!({"name": format!("step-{at}")})).collect();
    for (inits, reason) in [
        (json!([{"name": keys::CONTAINER_PROXY_INIT}]), "False/ContainerNameCollision"),
        (json!(many), "False/TooManyContainers"),
    ] {
        let (bench, ops) = enrolled_with("", json!({"spec": {"initContainers": inits}}));
        assert!(!ops.iter().any(|op| matches!(op, Op::Apply { .. })), "{reason}");
        assert_eq!(bench.condition("art", "Ready"), reason);
    }
}

/// Whoever may write an annotation would else have an account made, and the right to sign given to it.
#[test]
fn a_record_of_our_parts_on_a_template_without_any_changes_nobodys_account() {
    let record = json!({"version": 1, "serviceAccount": {"now": "mine", "was": "default"}}).to_string();
    let annotations = json!({keys::ANNOTATION_SIGN: "true", keys::ANNOTATION_STATUS: record});
    let template = json!({"metadata": {"annotations": annotations}, "spec": {"serviceAccountName": "mine"}});
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({"spec": {"template": template}})));
    assert_eq!(cluster.plan(service_account::plan::ROW), []);
    let seen = cluster.store.workload(Kind::Deployment, TEAM, "a").unwrap();
    let snapshot = &cluster.facts.snapshot;
    let needs = needs(TEAM, &seen.identity(), &seen.governed_template(&snapshot.labels).unwrap(), snapshot);
    assert_eq!((needs.service_account, needs.signs_as.as_deref()), (None, Some("mine")));
}

/// A container of our name beside it makes of the record a claim that may be true: of an account it says as much as the webhook lets it say in the
/// Pods.
#[test]
fn a_record_of_our_parts_beside_a_container_of_our_name_gives_no_account_that_the_pods_do_not_get() {
    // What a template that was copied from a Pod names is the workload's own account, which is made for its copy as well.
    for (account, made) in [("mine", None), ("a", Some("a"))] {
        let record = json!({"version": 1, "containers": [{"name": keys::CONTAINER_ENVOY}],
            "serviceAccount": {"now": account, "was": "default"}});
        let annotations = json!({keys::ANNOTATION_SIGN: "true", keys::ANNOTATION_STATUS: record.to_string()});
        let containers = json!([{"name": "app", "image": "i"}, {"name": keys::CONTAINER_ENVOY, "image": "e"}]);
        let template = json!({"metadata": {"annotations": annotations},
            "spec": {"serviceAccountName": account, "containers": containers}});
        let mut cluster = Cluster::new();
        cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({"spec": {"template": template}})));
        let ops = cluster.plan(service_account::plan::ROW);
        assert_eq!(ops.len(), usize::from(made.is_some()), "{account}: {ops:?}");
        let seen = cluster.store.workload(Kind::Deployment, TEAM, "a").unwrap();
        let snapshot = &cluster.facts.snapshot;
        let needs = needs(TEAM, &seen.identity(), &seen.governed_template(&snapshot.labels).unwrap(), snapshot);
        assert_eq!((needs.service_account.as_deref(), needs.signs_as.as_deref()), (made, Some(account)));
    }
}
