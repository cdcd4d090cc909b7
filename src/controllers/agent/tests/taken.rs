//! Objects that an earlier operator made for this very Agent, or that were made for its Deployment: taken over in place.

use serde_json::json;

use super::bench::{Bench, TEAM};
use crate::controllers::agent::plan::ROW;
use crate::controllers::scaffold::plan::{Item, Op};
use crate::store::{Key, Kind};

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

/// Everything that the Go operator, or the controller of the Agent that had it before, left of Agent `weather`.
fn left_by(bench: &mut Bench, by: (&str, &'static str)) {
    let owner = json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "weather", "uid": "agents-weather",
        "controller": true}]);
    let labels = json!({"app.kubernetes.io/name": "weather", "dropped": "long ago"});
    let metadata = json!({"labels": labels, "ownerReferences": owner});
    let env = json!([{"name": "OLD", "value": "1"}]);
    let template = json!({
        "metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "image": "old", "env": env}]},
    });
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app.kubernetes.io/name": "weather"}}, "template": template});
    bench.edit_as(by, Kind::Deployment, "weather", json!({"metadata": metadata, "spec": spec}));
    bench.edit_as(by, Kind::ServiceAccount, "weather", json!({"metadata": metadata}));
    let port = json!([{"name": "http", "port": 9999, "targetPort": 8000, "protocol": "TCP"}]);
    let spec = json!({"selector": {"app.kubernetes.io/name": "weather"}, "ports": port});
    bench.edit_as(by, Kind::Service, "weather", json!({"metadata": metadata, "spec": spec}));
    // What the API server allocates is nobody's.
    bench.edit(Kind::Service, "weather", json!({"spec": {"clusterIP": "10.0.0.7"}}));
}

/// Server-side apply keeps what another entry of managed fields owns as well, and of a Service with two ports of one name the API server takes none.
#[test]
fn what_was_written_before_us_and_is_wanted_no_more_goes_with_our_first_apply() {
    let kinds = [Kind::Deployment, Kind::Service, Kind::ServiceAccount];
    for (by, known) in [
        (("manager", "Update"), true),
        (("drawbridge/beeai-agent", "Apply"), true),
        (("drawbridge/beeai-compat-agent", "Apply"), true),
        (("manager", "Apply"), false),
        (("kubectl-create", "Update"), false),
    ] {
        let mut bench = Bench::new();
        left_by(&mut bench, by);
        bench.agent("weather", json!({}));
        let ops = bench.converge();
        let edited =
            |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Edit { kind, .. } if kinds.contains(kind))).count();
        assert_eq!(edited(&ops), if known { 3 } else { 0 }, "{by:?}: {ops:#?}");
        let env = bench.container("weather", 0)["env"].to_string();
        assert_eq!(env.contains("OLD"), !known, "{by:?}: {env}");
        for kind in kinds {
            let object = bench.object(kind, "weather");
            assert_eq!(object["metadata"]["labels"].get("dropped").is_some(), !known, "{by:?}: {object:#}");
            let entries = object["metadata"]["managedFields"].as_array().unwrap();
            assert_eq!(entries.iter().any(|entry| entry["manager"] == by.0), !known, "{by:?}: {entries:#?}");
        }
        let service = bench.object(Kind::Service, "weather")["spec"].clone();
        let ports = service["ports"].as_array().map(Vec::len);
        assert_eq!((ports, &service["clusterIP"]), (Some(if known { 1 } else { 2 }), &json!("10.0.0.7")), "{by:?}");
        // Once: whoever writes under that name later writes beside us, and what is ours is as it should be.
        assert_eq!(bench.converge(), [], "{by:?}");
        bench.edit_as(by, Kind::Deployment, "weather", json!({"spec": {"paused": true}}));
        assert_eq!(edited(&bench.converge()), 0, "{by:?}");
        bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 2}}));
        assert_eq!(edited(&bench.converge()), 0, "{by:?}");
        assert_eq!(bench.object(Kind::Deployment, "weather")["spec"]["paused"], true, "{by:?}");
    }
}

/// A policy may refuse it: then nothing is applied beside the entry, which would stay for good, and the Agent says so.
#[test]
fn an_edit_that_is_refused_over_and_over_is_said_and_nothing_is_applied_without_it() {
    let mut bench = Bench::new();
    left_by(&mut bench, ("manager", "Update"));
    bench.agent("weather", json!({}));
    bench.round(&ROW);
    let item = Item { controller: ROW.controller, key: Key::new(TEAM, "weather") };
    let of_account = |op: &Op| matches!(op, Op::Edit { kind: Kind::ServiceAccount, .. });
    for times in 0..5 {
        let ops = bench.plan("weather").ops;
        let edit = ops.into_iter().find(of_account).unwrap_or_else(|| panic!("{times}"));
        bench.cluster.memory.failure(&item, bench.now, (edit, None, "a policy refuses it".to_owned()));
    }
    let ops = bench.plan("weather").ops;
    let says = |op: &Op| matches!(op, Op::Status { patch, .. } if patch.to_string().contains("a policy refuses it"));
    assert!(ops.iter().any(says), "{ops:#?}");
    let apply = |op: &Op| matches!(op, Op::Own { kind: Kind::ServiceAccount, .. });
    let (edit, apply) = (ops.iter().position(of_account), ops.iter().position(apply));
    assert!(edit.is_some() && edit < apply, "{ops:#?}");
}
