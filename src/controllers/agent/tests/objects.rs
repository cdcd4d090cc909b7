//! What is written for an Agent, what is left alone and what goes with it: cases of agents (A; docs/cases.md) that plans decide.
//! Those about the shape of what runs stand beside `pipelines::workload`, those of the webhook beside `pipelines::agent`.

use serde_json::json;

use super::bench::{Bench, owns, running};
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::Kind;

#[test]
fn case_a01_account_service_and_deployment_in_this_order_after_the_finalizer() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    let ops = bench.converge();
    assert!(matches!(&ops[0], Op::Edit { kind: Kind::Agent, .. }), "{ops:#?}");
    assert_eq!(owns(&ops), [Kind::ServiceAccount, Kind::Service, Kind::Deployment]);
    for kind in [Kind::ServiceAccount, Kind::Service, Kind::Deployment] {
        let owner = &bench.object(kind, "weather")["metadata"]["ownerReferences"][0];
        assert_eq!((&owner["uid"], &owner["controller"]), (&json!("agents-weather"), &json!(true)), "{kind:?}");
    }
    assert_eq!(bench.container("weather", 0)["image"], "ghcr.io/acme/weather:v1");
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "Ready").as_str()),
        ("Deploying", "False/DeploymentNotReady")
    );
    bench.rolled_out("weather");
    bench.converge();
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "Ready").as_str()),
        ("Ready", "True/DeploymentReady")
    );
    let status = bench.status("weather");
    assert_eq!(status["image"], "ghcr.io/acme/weather:v1");
    assert_eq!((&status["selector"], &status["replicas"]), (&json!("app.kubernetes.io/name=weather"), &json!(1)));
    assert_eq!(status["deploymentStatus"]["deploymentMessage"], "Replicas: 1/1 ready, 1 updated, 1 available");
    assert!(status["deploymentStatus"]["completionTime"].as_str().is_some_and(|time| time.starts_with("time")));
    assert_eq!(bench.condition("weather", "DeploymentAvailable"), "True/MinimumReplicasAvailable");
    assert_eq!(bench.condition("weather", "PodsScheduled"), "True/AllPodsScheduled");
    assert_eq!(bench.reasons(), ["ServiceCreated", "DeploymentCreated"]);
}

#[test]
fn case_a13_no_ports_no_service_and_one_that_is_not_wanted_any_more_goes() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({"spec": {"servicePorts": []}}));
    bench.converge();
    assert!(bench.find(Kind::Service, "weather").is_none());
    bench.rolled_out("weather");
    bench.converge();
    assert_eq!(bench.condition("weather", "Ready"), "True/DeploymentReady");
    let mut bench = running();
    bench.edit(Kind::Agent, "weather", json!({"spec": {"servicePorts": []}}));
    let ops = bench.converge();
    assert!(ops.iter().any(|op| matches!(op, Op::Delete { kind: Kind::Service, .. })), "{ops:#?}");
    assert!(bench.find(Kind::Service, "weather").is_none());
}

#[test]
fn case_a14_ports_of_the_service_follow_and_what_was_allocated_stays() {
    let mut bench = running();
    bench.edit(Kind::Service, "weather", json!({"spec": {"clusterIP": "10.0.0.7"}}));
    let ports = json!([{"name": "http", "port": 9000, "targetPort": 8000, "protocol": "TCP"}]);
    bench.edit(Kind::Agent, "weather", json!({"spec": {"servicePorts": ports}}));
    assert_eq!(owns(&bench.converge()), [Kind::Service]);
    let service = bench.object(Kind::Service, "weather");
    assert_eq!((&service["spec"]["ports"], &service["spec"]["clusterIP"]), (&ports, &json!("10.0.0.7")));
}

#[test]
fn case_a18_openshift_assigns_users_and_groups_itself() {
    let mut bench = Bench::with("distribution: openshift\n");
    bench.agent("weather", json!({}));
    bench.converge();
    let context = bench.object(Kind::Deployment, "weather")["spec"]["template"]["spec"]["securityContext"].clone();
    assert_eq!(context, json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}));
}

#[test]
fn case_a19_a_relaxed_lock_down_is_a_condition_that_names_the_field() {
    let relaxed = json!([{"name": "agent", "securityContext": {"readOnlyRootFilesystem": false}}]);
    let spec = json!({"spec": {"podTemplateSpec": {"spec": {"containers": relaxed}}}});
    let mut bench = Bench::new();
    bench.agent("weather", spec.clone());
    bench.converge();
    assert_eq!(bench.condition("weather", "LockdownRelaxed"), "True/UserOverride");
    assert!(
        bench.message("weather", "LockdownRelaxed").contains("containers[0].securityContext.readOnlyRootFilesystem")
    );
    // A20, should no webhook have stood in the way: nothing is made, and the field is named.
    let mut bench = Bench::with("agents:\n  lockdown: enforce\n");
    bench.agent("weather", spec);
    bench.converge();
    assert!(bench.find(Kind::Deployment, "weather").is_none());
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "Ready").as_str()),
        ("Failed", "False/InvalidSpec")
    );
    assert!(bench.message("weather", "Ready").contains("readOnlyRootFilesystem"));
    assert_eq!(bench.condition("weather", "Stalled"), "True/InvalidSpec");
}

#[test]
fn case_a25_a_label_that_goes_from_the_agent_goes_from_the_deployment() {
    let mut bench = running();
    assert_eq!(bench.object(Kind::Deployment, "weather")["metadata"]["labels"]["team"], "weather");
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"labels": {"team": null}}}));
    bench.converge();
    let deployment = bench.object(Kind::Deployment, "weather");
    for labels in [&deployment["metadata"]["labels"], &deployment["spec"]["template"]["metadata"]["labels"]] {
        assert_eq!((labels.get("team"), &labels["app.kubernetes.io/name"]), (None, &json!("weather")));
    }
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!({"app.kubernetes.io/name": "weather"}));
}

#[test]
fn case_a26_and_a27_a_foreign_deployment_is_left_alone_and_outlives_the_agent() {
    let mut bench = Bench::new();
    bench.edit(
        Kind::Deployment,
        "weather",
        json!({"spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "x"}]}}}}),
    );
    let before = bench.object(Kind::Deployment, "weather");
    bench.agent("weather", json!({}));
    let ops = bench.converge();
    assert_eq!(owns(&ops), [], "not even an account beside it");
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "Ready").as_str()),
        ("Failed", "False/NameConflict")
    );
    assert!(bench.message("weather", "Ready").contains("Deployment weather of this namespace is not this Agent's"));
    assert!(bench.reasons().contains(&"NameConflict"));
    assert_eq!(bench.plan("weather").ops, []);
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    assert!(bench.find(Kind::Agent, "weather").is_none());
    assert_eq!(bench.object(Kind::Deployment, "weather"), before);
}

#[test]
fn g6_a_foreign_account_stops_everything_and_a_foreign_service_only_itself() {
    let mut bench = Bench::new();
    bench.edit(Kind::ServiceAccount, "weather", json!({"metadata": {"labels": {"a": "b"}}}));
    bench.agent("weather", json!({}));
    assert_eq!(owns(&bench.converge()), [], "no Pod runs under what somebody else made");
    assert!(bench.message("weather", "Ready").contains("serviceAccountName"), "the way out is named");
    bench.remove(Kind::ServiceAccount, "weather");
    assert_eq!(owns(&bench.converge()).len(), 3, "what is in the way no more");

    let mut bench = Bench::new();
    bench.edit(Kind::Service, "weather", json!({"spec": {"selector": {"x": "y"}}}));
    bench.agent("weather", json!({}));
    assert_eq!(owns(&bench.converge()), [Kind::ServiceAccount, Kind::Deployment]);
    assert_eq!(bench.condition("weather", "Ready"), "False/NameConflict");
    assert_eq!(bench.object(Kind::Service, "weather")["spec"]["selector"], json!({"x": "y"}));
}

/// A28 and A29: an Agent gets no Role and no RoleBinding; what a Pod that signs its card gets is made for its workload, by another
/// controller, and held by the policy for our own account.
#[test]
fn case_a28_and_a29_nothing_is_granted_to_an_agent() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    let made: Vec<_> = bench.converge().iter().map(|op| op.asks().1).collect();
    assert!(made.contains(&Kind::Deployment), "{made:?}");
    assert!(!made.iter().any(|kind| matches!(kind, Kind::Role | Kind::RoleBinding)), "{made:?}");
    let account = bench.object(Kind::ServiceAccount, "weather");
    assert_eq!(account["automountServiceAccountToken"], false);
}

#[test]
fn case_a30_no_account_is_made_for_pods_that_name_theirs() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({"spec": {"podTemplateSpec": {"spec": {"serviceAccountName": "mine"}}}}));
    assert_eq!(owns(&bench.converge()), [Kind::Service, Kind::Deployment]);
    assert_eq!(bench.object(Kind::Deployment, "weather")["spec"]["template"]["spec"]["serviceAccountName"], "mine");
}

#[test]
fn case_a35_what_the_agent_controls_goes_with_it() {
    let mut bench = running();
    bench.edit(Kind::Agent, "weather", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    let ops = bench.converge();
    let kinds: Vec<_> = ops.iter().map(|op| op.asks().1).collect();
    assert_eq!(kinds, [Kind::Deployment, Kind::Service, Kind::Agent], "the finalizer is the last");
    assert!(matches!(&ops[2], Op::Edit { operations, .. } if !operations.to_string().contains("spec")), "{ops:#?}");
    for kind in [Kind::Deployment, Kind::Service, Kind::Agent] {
        assert!(bench.find(kind, "weather").is_none(), "{kind:?}");
    }
}

#[test]
fn an_agent_deleted_with_cascade_orphan_leaves_what_it_made() {
    let mut bench = running();
    let metadata =
        json!({"deletionTimestamp": "2026-05-02T00:00:00Z", "finalizers": ["orphan", keys::FINALIZER_AGENT]});
    let object = bench.object(Kind::Agent, "weather");
    let mut object = object;
    json_patch::merge(&mut object, &json!({"metadata": metadata}));
    bench.cluster.see(Kind::Agent, object);
    let ops = bench.plan("weather").ops;
    assert!(matches!(&ops[..], [Op::Edit { kind: Kind::Agent, .. }]), "{ops:#?}");
}

#[test]
fn case_a37_what_somebody_edits_by_hand_is_taken_back() {
    for (kind, patch, path) in [
        (
            Kind::Deployment,
            json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "evil"}]}}}}),
            "/spec/template/spec/containers/0/image",
        ),
        (Kind::Deployment, json!({"spec": {"replicas": 7}}), "/spec/replicas"),
        (Kind::Deployment, json!({"metadata": {"labels": {"team": null}}}), "/metadata/labels/team"),
        (Kind::Service, json!({"spec": {"selector": {"x": "y"}}}), "/spec/selector"),
        (Kind::ServiceAccount, json!({"automountServiceAccountToken": true}), "/automountServiceAccountToken"),
    ] {
        let mut bench = running();
        let before = bench.object(kind, "weather").pointer(path).cloned();
        bench.edit(kind, "weather", patch);
        assert_ne!(bench.object(kind, "weather").pointer(path).cloned(), before);
        assert_eq!(owns(&bench.converge()), [kind], "{path}");
        assert_eq!(bench.object(kind, "weather").pointer(path).cloned(), before);
        // The same again: a second edit is as good as the first.
        bench.edit(kind, "weather", json!({"metadata": {"annotations": {"theirs": "stays"}}}));
        assert_eq!(owns(&bench.converge()), [], "an addition is nobody's loss");
    }
}

/// An Agent that is older than the rule, or came while nobody judged it: neither Service nor account nor Deployment.
#[test]
fn mend_12_of_an_agent_with_fields_that_the_api_server_does_not_know_nothing_is_made() {
    let mut bench = Bench::new();
    bench.agent(
        "weather",
        json!({"spec": {"podTemplateSpec": {"spec": {"futureField": {"deep": [1]}, "contaners": []}}}}),
    );
    bench.converge();
    assert_eq!(owns(&bench.converge()), []);
    for kind in [Kind::Deployment, Kind::Service, Kind::ServiceAccount] {
        assert!(bench.find(kind, "weather").is_none(), "{kind:?}");
    }
    assert_eq!(bench.condition("weather", "Ready"), "False/InvalidSpec");
    let message = bench.message("weather", "Ready");
    for path in ["spec.podTemplateSpec.spec.futureField ", "spec.podTemplateSpec.spec.contaners "] {
        assert!(message.contains(path), "{message}");
    }
}

/// Fields that are younger than our bindings, on an API server that has them.
#[test]
fn case_a38_fields_of_later_kubernetes_reach_the_deployment() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({"spec": {"podTemplateSpec": {"spec": {"schedulingGroup": {"podGroupName": "g"}}}}}));
    bench.converge();
    let spec = bench.object(Kind::Deployment, "weather")["spec"]["template"]["spec"].clone();
    assert_eq!(spec["schedulingGroup"], json!({"podGroupName": "g"}));
    bench.rolled_out("weather");
    bench.converge();
    assert_eq!(bench.converge(), []);
}
