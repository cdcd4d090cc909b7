//! What only the whole template shows: Pods that would be refused for it are not rolled, by nobody's change.

use serde_json::{Value, json};

use super::bench::{Bench, WEB, deployment, enrolled, pod};
use super::rolling::{applied, roll_out};
use crate::controllers::scaffold::fixtures::s;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::Kind;

const CHANGED: &str = "proxy: {uid: 2000}\n";

/// The user's Deployment, with one container that has these members, too.
fn with_container(more: Value) -> Value {
    let mut container = json!({"name": "app", "image": "i"});
    json_patch::merge(&mut container, &more);
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

/// New Pods would be refused one by one: a StatefulSet has lost one by then, and a Deployment is stuck until somebody finds out why.
#[test]
fn what_would_be_refused_for_what_is_not_kept_of_a_template_is_not_rolled_either() {
    let port = |port: u16| json!([{"containerPort": port}]);
    let of_spec = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    for (mode, change, reason) in [
        ("envoy-sidecar", with_container(json!({"ports": port(keys::AUTHBRIDGE_PORTS[0])})), "PortCollision"),
        (
            "envoy-sidecar",
            of_spec(json!({"volumes": [{"name": keys::VOLUME_ENVOY, "hostPath": {"path": "/"}}]})),
            "VolumeCollision",
        ),
        ("envoy-sidecar", with_container(json!({"securityContext": {"runAsUser": 1337}})), "ProxyUidInUse"),
        (
            "envoy-sidecar",
            json!({"spec": {"template": {"metadata": {"annotations": {"theirs": "x".repeat(256 * 1024)}}}}}),
            "AnnotationsTooLarge",
        ),
        (
            "proxy-sidecar",
            with_container(json!({"ports": port(8000), "command": ["agent", "--port", "8000"]})),
            "PortFixed",
        ),
    ] {
        let mut bench = Bench::new();
        bench.change(WEB.0, WEB.1, change);
        bench.runtime("art", WEB, json!({"spec": {"authBridgeMode": mode}}));
        assert_eq!(applied(&bench.converge()), Vec::<String>::new(), "{reason}");
        assert_eq!(bench.hash(WEB.0, WEB.1), None, "{reason}");
        for type_ in ["Ready", "Protected"] {
            assert_eq!(bench.condition("art", type_), format!("False/{reason}"));
        }
        let message = bench.message("art", "Ready");
        assert!(message.starts_with("Pods of web would be refused: ") && message.contains("every minute"), "{message}");
        assert_eq!((bench.told.len(), bench.refused), (1, 1), "{reason}: {:?}", bench.told);
        // Not before a minute, unless something changes; and then nothing is said again.
        for (after, refused) in [(30, 1), (61, 2)] {
            bench.now = s(100 + after);
            assert_eq!(bench.converge(), [], "{reason}");
            assert_eq!(bench.refused, refused, "{reason} after {after} s");
        }
        bench.put(WEB.0, deployment(WEB.1));
        bench.now = s(170);
        assert_eq!(applied(&bench.converge()), ["web"], "{reason}");
        assert_eq!(bench.condition("art", "Ready"), "True/Configured", "{reason}");
    }
}

/// What is enrolled goes on as it is, keeps nobody else's place, and goes when its AgentRuntime does.
#[test]
fn a_change_of_the_fleet_passes_over_what_would_be_refused_and_an_ending_does_not_wait_for_it() {
    let mut bench = enrolled();
    roll_out(&mut bench, "web");
    bench.converge();
    let before = bench.hash(WEB.0, WEB.1).map(str::to_owned);
    bench.change(WEB.0, WEB.1, with_container(json!({"securityContext": {"runAsUser": 2000}})));
    assert_eq!(bench.converge(), [], "nothing is to be written");
    bench.cluster.configure(CHANGED);
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    assert_eq!((bench.hash(WEB.0, WEB.1).map(str::to_owned), bench.refused), (before, 1));
    assert_eq!(bench.condition("art", "Ready"), "False/ProxyUidInUse");
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-04T00:00:00Z"}}));
    assert_eq!(applied(&bench.converge()), ["web"]);
    assert_eq!((bench.hash(WEB.0, WEB.1), bench.refused), (None, 1));
    assert!(!bench.objects.contains_key(&(Kind::AgentRuntime, "art".to_owned())));
}

/// Whoever takes the label off the template has Pods made that nobody injects: those that are refused are better.
#[test]
fn a_label_that_was_taken_off_is_put_back_whatever_the_template_is_like() {
    let mut bench = enrolled();
    bench.change(WEB.0, WEB.1, json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}}));
    bench.change(WEB.0, WEB.1, with_container(json!({"securityContext": {"runAsUser": 1337}})));
    assert_eq!(applied(&bench.converge()), ["web"]);
    let label = &bench.object(WEB.0, WEB.1)["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE];
    assert_eq!((label, bench.refused), (&json!("agent"), 0));
}

/// Nobody has an AgentRuntime that would say it.
#[test]
fn what_is_enrolled_by_a_label_alone_and_not_rolled_is_told_once() {
    let stamp = enrolled().hash(WEB.0, WEB.1).unwrap().to_owned();
    let mut bench = Bench::new();
    let label = json!({keys::LABEL_TYPE: "agent"});
    bench.change(WEB.0, WEB.1, json!({"spec": {"template": {"metadata": {"labels": label}}}}));
    bench.change(WEB.0, WEB.1, with_container(json!({"securityContext": {"runAsUser": 2000}})));
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployments-web", "controller": true}]);
    bench.put(
        Kind::ReplicaSet,
        json!({"metadata": {"name": "web-1", "ownerReferences": owner},
            "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_POD_TEMPLATE_HASH: "1"}}}}}),
    );
    bench.put(Kind::Pod, pod("web-1-a", (Kind::ReplicaSet, "web-1"), Some(&stamp)));
    assert_eq!(bench.converge(), []);
    bench.cluster.configure(CHANGED);
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    let told: Vec<_> = bench.told.iter().map(|report| (report.reason, &*report.about.name)).collect();
    assert_eq!(told, [(Reason::ProxyUidInUse, "web")]);
    let message = &bench.told[0].message;
    assert!(message.starts_with("Deployment web stays as it is, and is not rolled"), "{message}");
    assert_eq!((bench.hash(WEB.0, WEB.1), bench.refused), (None, 1));
}
