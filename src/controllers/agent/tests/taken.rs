//! Objects that an earlier operator made for this very Agent, or that were made for its Deployment: taken over in place.

use serde_json::json;

use super::bench::Bench;
use crate::controllers::scaffold::plan::Op;
use crate::store::Kind;

/// What the Go operator left: controlled by the Agent, with a selector of all labels.
#[test]
fn an_installation_of_the_go_operator_is_taken_over() {
    let mut bench = Bench::new();
    let owner = |controller: bool| {
        json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "weather", "uid": "agents-weather",
            "controller": controller}])
    };
    let labels = json!({"app.kubernetes.io/name": "weather", "team": "weather"});
    bench.edit(
        Kind::Deployment,
        "weather",
        json!({
            "metadata": {"labels": labels, "ownerReferences": owner(true)},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "image": "old"}]}}},
        }),
    );
    bench.edit(
        Kind::ServiceAccount,
        "weather",
        json!({"metadata": {"labels": {"team": "weather"}, "ownerReferences": owner(false)}}),
    );
    bench.agent("weather", json!({}));
    let ops = bench.converge();
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Own { .. })).count(), 3, "{ops:#?}");
    let deployment = bench.object(Kind::Deployment, "weather");
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], labels, "a selector cannot be changed");
    assert_eq!(bench.container("weather", 0)["image"], "ghcr.io/acme/weather:v1");
    assert_eq!(bench.status("weather")["selector"], "app.kubernetes.io/name=weather,team=weather");
    // A label that the selector needs stays on the Pods, whatever becomes of the Agent's.
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"labels": {"team": null}}}));
    bench.converge();
    let template = &bench.object(Kind::Deployment, "weather")["spec"]["template"]["metadata"]["labels"];
    assert_eq!(template["team"], "weather");
    let account = bench.object(Kind::ServiceAccount, "weather");
    assert_eq!(account["metadata"]["ownerReferences"][0]["controller"], true);
}

/// The dedicated account of a Deployment whose Pods named none becomes the Agent's once they do.
#[test]
fn the_dedicated_account_of_its_own_deployment_is_taken_over_and_any_other_is_not() {
    for (owners, taken) in [
        (
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather", "uid": "deployments-weather"}]),
            true,
        ),
        (
            json!([
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather", "uid": "deployments-weather"},
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "weather", "uid": "statefulsets-weather"},
            ]),
            false,
        ),
    ] {
        let mut bench = Bench::new();
        bench.agent("weather", json!({"spec": {"podTemplateSpec": {"spec": {"serviceAccountName": "default"}}}}));
        bench.converge();
        let metadata = json!({"labels": {"kagenti.io/managed-by": "webhook"}, "ownerReferences": owners});
        bench.edit(Kind::ServiceAccount, "weather", json!({"metadata": metadata}));
        let template = json!({"podTemplateSpec": {"spec": {"serviceAccountName": null}}});
        bench.edit(Kind::Agent, "weather", json!({"spec": template}));
        bench.converge();
        let ready = bench.condition("weather", "Ready");
        assert_eq!(ready == "False/NameConflict", !taken, "{ready}");
    }
}

#[test]
fn an_object_of_another_agent_of_that_name_is_foreign() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    bench.converge();
    let mut agent = bench.object(Kind::Agent, "weather");
    agent["metadata"]["uid"] = json!("made-again");
    agent["metadata"]["resourceVersion"] = json!("999999");
    bench.cluster.see(Kind::Agent, agent);
    let ops = bench.plan("weather").ops;
    assert!(
        !ops.iter().any(|op| matches!(op, Op::Own { .. })),
        "the garbage collector takes the old one's first: {ops:#?}"
    );
}

/// The Go operator's entry of managed fields would keep a port that is wanted no more, beside the one of its name in its place: the API server refuses
/// that.
#[test]
fn a_service_of_the_go_operator_loses_the_ports_that_are_wanted_no_more() {
    let mut bench = Bench::new();
    let owner = json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "weather", "uid": "agents-weather",
        "controller": true}]);
    let port = |number: u16| json!([{"name": "http", "port": number, "targetPort": 8000, "protocol": "TCP"}]);
    let spec = json!({"selector": {"app.kubernetes.io/name": "weather"}, "ports": port(8080), "clusterIP": "10.0.0.7"});
    bench.edit(Kind::Service, "weather", json!({"metadata": {"ownerReferences": owner}, "spec": spec}));
    bench.agent("weather", json!({}));
    bench.converge();
    assert_eq!(bench.object(Kind::Service, "weather")["spec"]["ports"], port(8080));
    bench.edit(Kind::Agent, "weather", json!({"spec": {"servicePorts": port(9090)}}));
    let ops = bench.converge();
    assert!(!ops.iter().any(|op| matches!(op, Op::Edit { .. })), "once: {ops:#?}");
    let spec = bench.object(Kind::Service, "weather")["spec"].clone();
    assert_eq!((&spec["ports"], &spec["clusterIP"]), (&port(9090), &json!("10.0.0.7")), "and what was allocated stays");
    assert_eq!(bench.converge(), []);
}
