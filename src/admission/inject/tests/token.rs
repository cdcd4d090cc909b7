//! The API token in our containers: what the ServiceAccount plugin would add after us is there already.

use super::*;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What the plugin makes of a Pod whose account mounts its token: the volume once, and the mount wherever nothing is mounted.
fn plugin(mut pod: Value) -> Value {
    if pod["spec"]["automountServiceAccountToken"] == false {
        return pod;
    }
    let volumes = pod["spec"]["volumes"].as_array().cloned().unwrap_or_default();
    let there = volumes.iter().map(|volume| text(volume, "name")).find(|name| name.starts_with("kube-api-access-"));
    let name = there.unwrap_or("kube-api-access-x2x9k").to_owned();
    let mut needed = false;
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            if items(container, "volumeMounts").iter().all(|mount| mount["mountPath"] != TOKEN_PATH) {
                let mut mounts = items(container, "volumeMounts").to_vec();
                mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
                container["volumeMounts"] = Value::Array(mounts);
                needed = true;
            }
        }
    }
    if needed && there.is_none() {
        let mut volumes = volumes;
        volumes.push(json!({"name": name, "projected": {"sources": []}}));
        pod["spec"]["volumes"] = Value::Array(volumes);
    }
    pod
}

/// Every way in which containers of ours come into a Pod.
fn pods() -> Vec<(&'static str, Value)> {
    let mut with_init = fixtures::pod();
    with_init["spec"]["initContainers"] = json!([{"name": "migrate"}, {"name": "seed", "restartPolicy": "Always"}]);
    let mut named = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar")]);
    named["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    let waypoint = annotated(&[(keys::ANNOTATION_MODE, "waypoint")]);
    let beforehand = injected(&fixtures::pod(), &fixtures::snapshot());
    let mut forged = beforehand.clone();
    for container in forged["spec"]["containers"].as_array_mut().unwrap() {
        container["command"] = json!(["/bin/sleep"]);
    }
    vec![
        ("plain", fixtures::pod()),
        ("init", with_init),
        ("proxy", named),
        ("waypoint", waypoint),
        ("injected beforehand", beforehand),
        ("changed since", forged),
    ]
}

fn snapshots() -> [Snapshot; 3] {
    use crate::config::{layers::Field, resolved::NativeSidecars};
    let native = || with(|resolved| resolved.native_sidecars = Field::built_in(NativeSidecars::Auto));
    let mut combined = native();
    combined.gates.combined_sidecar = true;
    [fixtures::snapshot(), native(), combined]
}

#[test]
fn the_plugin_finds_nothing_to_do_after_us_and_the_pod_is_as_it_was_with_two_reviews() {
    for snapshot in snapshots() {
        for (what, pod) in pods() {
            let arrived = plugin(pod.clone());
            let once = injected(&arrived, &snapshot);
            assert_eq!(plugin(once.clone()), once, "{what}");
            let again = fixtures::review_pod(&once, &snapshot);
            assert_eq!(again.operations(), Vec::new(), "{what}");

            let mut seen = once;
            let mut late = plugin(injected(&pod, &snapshot));
            for pod in [&mut seen, &mut late] {
                pod["spec"]["volumes"].as_array_mut().unwrap().sort_by_key(|volume| text(volume, "name").to_owned());
            }
            if what != "changed since" && what != "injected beforehand" {
                assert_eq!(seen, late, "{what}");
            }
        }
    }
}

#[test]
fn a_pod_without_the_plugins_token_gets_none_from_us() {
    let mounts = |pod: &Value| pod.to_string().matches(TOKEN_PATH).count();
    let volume = json!([{"name": "kube-api-access-mine", "projected": {"sources": []}}]);
    let mount = |name: &str| json!([{"name": name, "mountPath": TOKEN_PATH}]);

    let mut off = plugin(fixtures::pod());
    off["spec"]["automountServiceAccountToken"] = json!(false);
    let mut unmounted = fixtures::pod();
    unmounted["spec"]["volumes"] = volume.clone();
    let mut partly = unmounted.clone();
    partly["spec"]["containers"][0]["volumeMounts"] = mount("kube-api-access-mine");
    partly["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "other"}));
    let mut own = fixtures::pod();
    own["spec"]["volumes"] = json!([{"name": "nothing", "emptyDir": {}}]);
    own["spec"]["containers"][0]["volumeMounts"] = mount("nothing");
    for (what, pod) in [("off", off), ("unmounted", unmounted), ("partly", partly), ("own", own)] {
        for snapshot in snapshots() {
            assert_eq!(mounts(&injected(&pod, &snapshot)), mounts(&pod), "{what}");
        }
    }
}
