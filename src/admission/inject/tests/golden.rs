//! Full-Pod equality with Pods as the Go operator makes them; each file names what differs on purpose.

use super::*;
use crate::domain::keys;

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// Compares all but the script and our own three annotations, which are looked at on their own.
fn assert_golden(seen: &Value, golden: &str) {
    let mut seen = seen.clone();
    let annotations = seen["metadata"]["annotations"].as_object_mut().unwrap();
    assert_eq!(annotations.remove(keys::ANNOTATION_CONFIG_HASH).unwrap().as_str().unwrap().len(), 64);
    let status: Value =
        serde_json::from_str(annotations.remove(keys::ANNOTATION_STATUS).unwrap().as_str().unwrap()).unwrap();
    annotations.remove(keys::ANNOTATION_RUNTIME_CONFIG);
    if annotations.is_empty() {
        seen["metadata"].as_object_mut().unwrap().remove("annotations");
    }
    for (list, recorded) in
        [("containers", &status["containers"]), ("initContainers", &status["init"]), ("volumes", &status["volumes"])]
    {
        let ours: Vec<_> = names(&seen["spec"][list]).into_iter().filter(|name| *name != "agent").collect();
        assert_eq!(names(recorded), ours, "the status records every part");
    }
    for container in seen["spec"]["containers"].as_array_mut().unwrap() {
        if container["name"] == keys::CONTAINER_REGISTRATION {
            container["command"][2] = "<SPIRE script, see 5.4>".into();
        }
    }
    let golden = yaml(golden);
    for (key, value) in golden["spec"].as_object().unwrap() {
        assert_eq!(&seen["spec"][key], value, "spec.{key}");
    }
    assert_eq!(seen, golden);
}

fn registering() -> Value {
    labelled(&[(keys::LABEL_CLIENT_REGISTRATION, "true")])
}

#[test]
fn case_034_envoy_sidecar_5_6() {
    let pod = yaml(include_str!("golden_5_6_in.yaml"));
    let seen = injected(&pod, &fixtures::snapshot());
    assert_golden(&seen, include_str!("golden_5_6.yaml"));
    assert_eq!(
        runtime_config(&seen),
        json!({"mode": "envoy-sidecar", "pipeline": {
            "inbound": {"plugins": [{"name": "jwt-validation", "config": {
                "issuer": "https://kc.example/realms/kagenti", "keycloak_realm": "kagenti",
                "keycloak_url": "http://keycloak-service.keycloak.svc:8080"}}]},
            "outbound": {"plugins": [{"name": "token-exchange", "config": {
                "identity": {"type": "client-secret"}, "keycloak_realm": "kagenti",
                "keycloak_url": "http://keycloak-service.keycloak.svc:8080"}}]}}})
    );
}

#[test]
fn case_048_combined_5_8() {
    let mut snapshot = fixtures::snapshot();
    snapshot.gates.combined_sidecar = true;
    let seen = injected(&registering(), &snapshot);
    assert_golden(&seen, include_str!("golden_5_8.yaml"));
    assert_eq!(names(&seen["spec"]["containers"]), ["agent", "authbridge"]);
}

#[test]
fn case_054_proxy_sidecar_5_9() {
    let pod = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar")]);
    let seen = injected(&pod, &fixtures::snapshot());
    assert_golden(&seen, include_str!("golden_5_9.yaml"));
}

#[test]
fn case_095_fed_back_nothing_changes() {
    let mut combined = fixtures::snapshot();
    combined.gates.combined_sidecar = true;
    let proxy = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar")]);
    let golden = yaml(include_str!("golden_5_6_in.yaml"));
    for (pod, snapshot) in [(golden, fixtures::snapshot()), (registering(), combined), (proxy, fixtures::snapshot())] {
        let first = injected(&pod, &snapshot);
        let second = fixtures::review_pod(&first, &snapshot);
        assert_eq!((second.operations(), second.reason), (Vec::new(), Reason::AlreadyInjected));
    }
}
