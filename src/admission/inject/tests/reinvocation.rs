//! Called again after others were here, and taking everything out again.

use super::*;
use crate::domain::keys;

fn native() -> Snapshot {
    fixtures::snapshot_with(
        |resolved| {
            resolved.native_sidecars =
                crate::config::layers::Field::built_in(crate::config::resolved::NativeSidecars::Auto)
        },
        |_| {},
    )
}

fn proxy_mode() -> Value {
    let mut pod = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar")]);
    pod["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"port": "http", "path": "/"}});
    pod["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"tcpSocket": {"port": 8000}}});
    pod["spec"]["containers"][0]["ports"][0]["hostPort"] = json!(80);
    pod
}

/// What the API server's defaulting adds between two calls.
fn defaulted(mut pod: Value) -> Value {
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            container["terminationMessagePath"] = json!("/dev/termination-log");
            for variable in container["env"].as_array_mut().into_iter().flatten() {
                if variable["value"] == "" {
                    variable.as_object_mut().unwrap().remove("value");
                }
                if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
                    field["apiVersion"] = json!("v1");
                }
            }
            let mounts = container["volumeMounts"].as_array_mut();
            if let Some(mounts) = mounts {
                mounts.push(
                    json!({"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}),
                );
            }
        }
    }
    for volume in pod["spec"]["volumes"].as_array_mut().into_iter().flatten() {
        for source in ["configMap", "downwardAPI", "projected"] {
            if volume.get(source).is_some() {
                volume[source]["defaultMode"] = json!(420);
            }
        }
        if let Some(field) = volume.pointer_mut("/downwardAPI/items/0/fieldRef") {
            field["apiVersion"] = json!("v1");
        }
    }
    pod["spec"]["serviceAccount"] = pod["spec"]["serviceAccountName"].clone();
    pod["spec"]["volumes"].as_array_mut().unwrap().insert(0, json!({"name": "kube-api-access-x"}));
    pod
}

fn unchanged(pod: &Value, snapshot: &Snapshot) {
    let verdict = fixtures::review_pod(pod, snapshot);
    assert_eq!((verdict.operations(), verdict.reason), (Vec::new(), Reason::AlreadyInjected));
}

#[test]
fn defaulting_between_two_calls_changes_nothing() {
    let mut literals = native();
    literals.gates.per_workload_config_resolution = true;
    let mut nameless = fixtures::pod();
    nameless["spec"].as_object_mut().unwrap().remove("serviceAccountName");
    let credentials = annotated(&[(keys::ANNOTATION_CREDENTIALS, "s")]);
    for (pod, snapshot) in [
        (fixtures::pod(), native()),
        (fixtures::pod(), fixtures::snapshot()),
        (proxy_mode(), native()),
        (fixtures::pod(), literals),
        (credentials, native()),
        (nameless, native()),
    ] {
        unchanged(&defaulted(injected(&pod, &snapshot)), &snapshot);
    }
}

#[test]
fn what_others_may_change_stays_and_what_protects_comes_back() {
    let snapshot = native();
    let mut pod = injected(&fixtures::pod(), &snapshot);
    let envoy = named_mut(&mut pod["spec"]["initContainers"], "envoy-proxy");
    envoy["image"] = json!("mirror.local/REG/authbridge-envoy:latest");
    envoy["imagePullPolicy"] = json!("Always");
    envoy["resources"]["limits"]["cpu"] = json!("1");
    envoy["env"].as_array_mut().unwrap().push(json!({"name": "ADDED", "value": "1"}));
    envoy["volumeMounts"].as_array_mut().unwrap().push(json!({"name": "ca", "mountPath": "/ca"}));
    unchanged(&pod, &snapshot);
    let kept = pod.clone();

    let envoy = named_mut(&mut pod["spec"]["initContainers"], "envoy-proxy");
    envoy["command"] = json!(["/bin/sleep"]);
    envoy["args"] = json!([]);
    envoy["restartPolicy"] = Value::Null;
    envoy["env"].as_array_mut().unwrap().retain(|variable| variable["name"] != "ISSUER");
    envoy["env"].as_array_mut().unwrap().push(json!({"name": "CLIENT_ID_FILE", "value": "/evil"}));
    envoy["volumeMounts"][0]["name"] = json!("evil");
    envoy["ports"] = json!([]);
    envoy["securityContext"]["runAsUser"] = json!(0);
    envoy["securityContext"]["capabilities"] = json!({"add": ["SYS_ADMIN"]});
    let repaired = injected(&pod, &snapshot);
    let (mut seen, mut wanted) = (repaired.clone(), kept);
    for pod in [&mut seen, &mut wanted] {
        let env = named_mut(&mut pod["spec"]["initContainers"], "envoy-proxy")["env"].as_array_mut().unwrap();
        env.sort_by_key(|variable| text(variable, "name").to_owned());
    }
    assert_eq!(seen, wanted);
    unchanged(&repaired, &snapshot);
}

#[test]
fn slots_are_repaired_by_moving_what_is_there() {
    let snapshot = native();
    let mut pod = fixtures::pod();
    pod["spec"]["initContainers"] = json!([{"name": "migrate"}]);
    let mut pod = injected(&pod, &snapshot);
    assert_eq!(names(&pod["spec"]["initContainers"]), ["proxy-init", "envoy-proxy", "spiffe-helper", "migrate"]);
    let list = pod["spec"]["initContainers"].as_array_mut().unwrap();
    list[1]["fromTheFuture"] = json!(1);
    list.reverse();
    list.insert(0, json!({"name": "mesh-init"}));
    let repaired = injected(&pod, &snapshot);
    assert_eq!(
        names(&repaired["spec"]["initContainers"]),
        ["proxy-init", "envoy-proxy", "spiffe-helper", "mesh-init", "migrate"]
    );
    assert_eq!(repaired["spec"]["initContainers"][1]["fromTheFuture"], 1);
    unchanged(&repaired, &snapshot);

    let mut pod = injected(&fixtures::pod(), &fixtures::snapshot());
    pod["spec"]["initContainers"].as_array_mut().unwrap().push(json!({"name": "late"}));
    pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "mesh"}));
    pod["spec"]["containers"].as_array_mut().unwrap().swap(1, 2);
    let repaired = injected(&pod, &fixtures::snapshot());
    assert_eq!(names(&repaired["spec"]["initContainers"]), ["late", "proxy-init"]);
    assert_eq!(names(&repaired["spec"]["containers"]), ["agent", "mesh", "envoy-proxy", "spiffe-helper"]);
    unchanged(&repaired, &fixtures::snapshot());
}

#[test]
fn parts_that_no_longer_apply_are_removed() {
    let snapshot = native();
    let pod = injected(&labelled(&[(keys::LABEL_CLIENT_REGISTRATION, "true")]), &snapshot);
    let mut without = pod.clone();
    without["metadata"]["labels"][keys::LABEL_CLIENT_REGISTRATION] = json!("false");
    without["metadata"]["labels"][keys::LABEL_SPIFFE_HELPER] = json!("false");
    let seen = injected(&without, &snapshot);
    assert_eq!(names(&seen["spec"]["initContainers"]), ["proxy-init", "envoy-proxy"]);
    assert_eq!(
        names(&seen["spec"]["volumes"]),
        ["shared-data", "envoy-config", "authproxy-routes", "authbridge-runtime-config"]
    );
    assert_eq!(
        (&seen["spec"]["serviceAccountName"], &seen["spec"]["securityContext"]),
        (&json!("default"), &json!({}))
    );
    assert_eq!(names(&named(&seen["spec"]["initContainers"], "envoy-proxy")["volumeMounts"]).len(), 4);
    unchanged(&seen, &snapshot);

    let mut opted_out = pod;
    opted_out["metadata"]["labels"][keys::LABEL_INJECT] = json!("disabled");
    let verdict = fixtures::review_pod(&opted_out, &snapshot);
    assert_eq!(verdict.reason, Reason::Removed);
    let seen = fixtures::applied(&opted_out, &verdict);
    assert_eq!(seen["spec"], fixtures::pod()["spec"]);
    assert_eq!(fixtures::review_pod(&seen, &snapshot).reason, Reason::OptedOut);
}

#[test]
fn another_shape_replaces_the_first() {
    let first = injected(&proxy_mode(), &native());
    let mut other = first.clone();
    other["metadata"]["annotations"][keys::ANNOTATION_MODE] = json!("envoy-sidecar");
    let seen = injected(&other, &native());
    assert_eq!(names(&seen["spec"]["containers"]), ["agent"]);
    assert_eq!(seen["spec"]["containers"], proxy_mode()["spec"]["containers"]);
    assert_eq!(names(&seen["spec"]["initContainers"]), ["proxy-init", "envoy-proxy", "spiffe-helper"]);
    unchanged(&seen, &native());
    let regular = injected(&first, &fixtures::snapshot());
    assert_eq!(names(&regular["spec"]["containers"]), ["agent", "authbridge-proxy", "spiffe-helper"]);
    assert_eq!(regular["spec"].get("initContainers"), None);
    unchanged(&regular, &fixtures::snapshot());
}

#[test]
fn a_container_that_came_later_moves_the_layout() {
    let snapshot = native();
    let mut pod = injected(&proxy_mode(), &snapshot);
    pod["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"name": "mesh", "ports": [{"containerPort": 8001, "protocol": "UDP"}]}));
    let seen = injected(&pod, &snapshot);
    let agent = named(&seen["spec"]["containers"], "agent");
    assert_eq!(agent["ports"][0]["containerPort"], 8002);
    assert_eq!(agent["livenessProbe"]["httpGet"]["port"], 8002);
    assert_eq!(agent["lifecycle"]["preStop"]["tcpSocket"]["port"], 8002);
    assert_eq!(named(&agent["env"], "PORT")["value"], "8002");
    unchanged(&seen, &snapshot);
}

#[test]
fn the_agent_stays_the_agent_when_another_injector_comes_in_front() {
    let snapshot = native();
    let mut pod = injected(&proxy_mode(), &snapshot);
    let first = pod.clone();
    let mesh = json!({"name": "mesh", "ports": [{"name": "stats", "containerPort": 15090, "protocol": "TCP"}]});
    pod["spec"]["containers"].as_array_mut().unwrap().insert(0, mesh.clone());
    let seen = injected(&pod, &snapshot);
    assert_eq!(named(&seen["spec"]["containers"], "mesh")["ports"], mesh["ports"]);
    assert_eq!(named(&seen["spec"]["containers"], "agent"), named(&first["spec"]["containers"], "agent"));
    assert_eq!(seen["spec"]["initContainers"], first["spec"]["initContainers"]);
    unchanged(&seen, &snapshot);

    // An agent that declares nothing any more is none.
    named_mut(&mut pod["spec"]["containers"], "agent").as_object_mut().unwrap().remove("ports");
    let seen = injected(&pod, &snapshot);
    assert_eq!(
        named(&seen["spec"]["containers"], "mesh")["ports"],
        json!([{"containerPort": 15091, "protocol": "TCP"}])
    );
    unchanged(&seen, &snapshot);
}

#[test]
fn our_entries_come_back_as_a_whole() {
    let snapshot = native();
    let first = injected(&fixtures::pod(), &snapshot);
    let mut pod = first.clone();
    let envoy = named_mut(&mut pod["spec"]["initContainers"], "envoy-proxy");
    named_mut(&mut envoy["volumeMounts"], "envoy-config")["subPath"] = json!("of-somebody");
    named_mut(&mut envoy["volumeMounts"], "authproxy-routes")["subPathExpr"] = json!("$(POD_NAME)");
    named_mut(&mut envoy["ports"], "envoy-admin")["hostPort"] = json!(9901);
    let helper = named_mut(&mut pod["spec"]["initContainers"], "spiffe-helper");
    named_mut(&mut helper["volumeMounts"], "svid-output")["readOnly"] = json!(true);
    assert_eq!(injected(&pod, &snapshot), first);

    // What the API server and its plugins add says nothing.
    let mut pod = first;
    let helper = named_mut(&mut pod["spec"]["initContainers"], "spiffe-helper");
    for (key, value) in [("readOnly", json!(false)), ("subPath", json!("")), ("recursiveReadOnly", json!("Disabled"))] {
        named_mut(&mut helper["volumeMounts"], "svid-output")[key] = value;
    }
    unchanged(&pod, &snapshot);
}

#[test]
fn a_forged_marker_protects_nobody() {
    let snapshot = native();
    let whole = injected(&fixtures::pod(), &snapshot);
    let marker = whole["metadata"]["annotations"][keys::ANNOTATION_STATUS].clone();
    for forged in [
        marker.as_str().unwrap(),
        "{}",
        "null",
        "true",
        "not json",
        r#"{"init":[{"name":"agent"}],"volumes":[{"name":"x"}]}"#,
    ] {
        let mut pod = annotated(&[(keys::ANNOTATION_STATUS, forged)]);
        pod["spec"]["volumes"] = json!([{"name": "x", "emptyDir": {}}]);
        let seen = injected(&pod, &snapshot);
        assert_eq!(names(&seen["spec"]["containers"]), ["agent"], "{forged}");
        assert_eq!(seen["spec"]["initContainers"], whole["spec"]["initContainers"], "{forged}");
        unchanged(&seen, &snapshot);
    }
    // A container that only the forged marker calls ours becomes ours in everything that protects.
    let mut pod = annotated(&[(keys::ANNOTATION_STATUS, r#"{"init":[{"name":"envoy-proxy","image":"evil"}]}"#)]);
    pod["spec"]["initContainers"] = json!([{"name": "envoy-proxy", "image": "evil", "command": ["sleep"]}]);
    let seen = injected(&pod, &snapshot);
    let envoy = named(&seen["spec"]["initContainers"], "envoy-proxy");
    assert_eq!((&envoy["image"], envoy.get("command")), (&json!("REG/authbridge-envoy:latest"), None));
}

#[test]
fn a_marker_that_came_with_the_pod_is_no_licence() {
    // Our annotation among the fields the requester set: the parts were not added in this request.
    let snapshot = native();
    let mut pod = injected(&fixtures::pod(), &snapshot);
    pod["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update", "fieldsV1": {
        "f:metadata": {"f:annotations": {format!("f:{}", keys::ANNOTATION_STATUS): {}}}}}]);
    unchanged(&defaulted(pod.clone()), &snapshot);
    let envoy = named_mut(&mut pod["spec"]["initContainers"], "envoy-proxy");
    envoy["image"] = json!("evil");
    envoy["lifecycle"] = json!({"postStart": {"exec": {"command": ["kill"]}}});
    envoy["volumeMounts"].as_array_mut().unwrap().push(json!({"name": "evil", "mountPath": "/usr/bin"}));
    let seen = injected(&pod, &snapshot);
    assert_eq!(seen["spec"]["initContainers"], injected(&fixtures::pod(), &snapshot)["spec"]["initContainers"]);
    unchanged(&seen, &snapshot);
}

#[test]
fn a_marker_that_came_with_the_pod_gives_nothing_that_the_pod_did_not_ask_for() {
    // Whoever may write annotations of Pods and nothing else, as users of many operators, gains no identity, port or Secret.
    let note = json!([{"manager": "operator", "operation": "Update", "fieldsV1": {
        "f:metadata": {"f:annotations": {format!("f:{}", keys::ANNOTATION_STATUS): {}}}}}]);
    let secret = json!({"secretKeyRef": {"name": "of-somebody", "key": "token"}});
    let claims = |account: &str, was: &str| {
        json!({
            "version": 1, "serviceAccount": {"now": account, "was": was},
            "edits": [
                {"edit": "port", "container": "agent", "index": 0, "from": 8000, "to": 8000, "moved": {"hostPort": 80, "hostIP": "0.0.0.0"}},
                {"edit": "env", "container": "agent", "name": "PORT", "value": "8000", "was": {"valueFrom": secret}},
            ],
        })
    };
    let powerful = fixtures::snapshot_with(
        |_| {},
        |view| {
            view.service_accounts.insert("powerful".into(), crate::config::view::Ownership::Foreign);
            view.service_accounts.insert("given".into(), crate::config::view::Ownership::Foreign);
        },
    );
    for mode in ["envoy-sidecar", "proxy-sidecar", "waypoint"] {
        for (now, was) in [("given", "powerful"), ("given", "default"), ("weather-agent", "powerful")] {
            let text = claims(now, was).to_string();
            let mut pod = annotated(&[(keys::ANNOTATION_STATUS, &text), (keys::ANNOTATION_MODE, mode)]);
            pod["metadata"]["managedFields"] = note.clone();
            pod["spec"]["serviceAccountName"] = json!(now);
            pod["spec"]["serviceAccount"] = json!(now);
            let verdict = fixtures::review_sent(&pod, &powerful);
            let seen = fixtures::applied(&pod, &verdict);
            assert_eq!(seen["spec"]["serviceAccountName"], now, "{mode} {now} {was}");
            let text = seen["spec"].to_string();
            assert!(!text.contains("hostPort") && !text.contains("of-somebody"), "{mode}: {text}");
            assert_eq!(verdict, fixtures::review_pod(&pod, &powerful));
        }
    }
    // One of ours is taken back, so that a manifest that was injected beforehand gets what the cluster has now.
    let spireless = fixtures::snapshot_with(
        |resolved| {
            resolved.spire = crate::config::layers::Field::built_in(crate::config::resolved::SpireSwitch::Disabled)
        },
        |_| {},
    );
    let mut early = injected(&proxy_mode(), &fixtures::snapshot());
    assert_eq!(early["spec"]["serviceAccountName"], "weather-agent");
    early["metadata"]["managedFields"] = note;
    let seen = injected(&early, &spireless);
    assert_eq!(seen["spec"]["serviceAccountName"], "default");
    let proxy = named(&seen["spec"]["containers"], "authbridge-proxy");
    assert_eq!(proxy["ports"][1]["hostPort"], 80, "and a port of the node that was the agent's stays with the proxy");
}

#[test]
fn uninject_gives_the_pod_back() {
    let mut rich = proxy_mode();
    rich["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH] = json!("template");
    rich["metadata"]["annotations"][keys::ANNOTATION_CREDENTIALS] = json!("s");
    rich["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "shared-data", "mountPath": "/s"}]);
    rich["spec"]["initContainers"] = json!([{"name": "migrate"}]);
    for pod in [fixtures::pod(), proxy_mode(), rich] {
        for snapshot in [native(), fixtures::snapshot()] {
            let mut seen = injected(&pod, &snapshot);
            let operations = uninject(&seen);
            json_patch::patch(&mut seen, &operations).unwrap();
            assert_eq!(seen, pod);
        }
    }
    assert_eq!(uninject(&fixtures::pod()), []);
}

#[test]
fn where_there_was_no_port_to_take_over_nobody_who_comes_later_loses_one() {
    let snapshot = native();
    let mut portless = proxy_mode();
    portless["spec"]["containers"][0] = json!({"name": "agent", "image": "x"});
    let first = injected(&portless, &snapshot);
    unchanged(&first, &snapshot);
    let mut pod = first.clone();
    let mesh = json!({"name": "mesh", "ports": [{"name": "stats", "containerPort": 15090, "protocol": "TCP"}]});
    pod["spec"]["containers"].as_array_mut().unwrap().insert(0, mesh.clone());
    let seen = injected(&pod, &snapshot);
    assert_eq!(named(&seen["spec"]["containers"], "mesh")["ports"], mesh["ports"]);
    assert_eq!(seen["spec"]["initContainers"], first["spec"]["initContainers"]);
    assert!(warned(&pod, &snapshot).contains(&Reason::NoDeclaredPort));
    // It may call us again, and is known by then.
    unchanged(&seen, &snapshot);

    // A port of the agent's own is taken over whenever it comes.
    named_mut(&mut pod["spec"]["containers"], "agent")["ports"] = json!([{"containerPort": 9000}]);
    let seen = injected(&pod, &snapshot);
    assert_eq!(named(&seen["spec"]["containers"], "agent")["ports"], json!([{"containerPort": 9001}]));

    // What the requester wrote hides no port from us.
    let mut forged = proxy_mode();
    forged["metadata"]["annotations"][keys::ANNOTATION_STATUS] = json!(r#"{"portless":["nobody"]}"#);
    forged["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update", "fieldsV1": {
        "f:metadata": {"f:annotations": {format!("f:{}", keys::ANNOTATION_STATUS): {}}}}}]);
    let seen = injected(&forged, &snapshot);
    assert_eq!(named(&seen["spec"]["containers"], "agent")["ports"][0]["containerPort"], 8001);
}

/// Nobody would ever answer at the port of before, and the Pod would never start.
#[test]
fn the_startup_probe_follows_the_port_that_is_taken_over_later() {
    let snapshot = native();
    let mut portless = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar")]);
    portless["spec"]["containers"][0] = json!({"name": "agent", "image": "x"});
    let probe = |pod: &Value| named(&pod["spec"]["initContainers"], "authbridge-proxy")["startupProbe"].clone();
    let mut pod = injected(&portless, &snapshot);
    assert_eq!(probe(&pod)["tcpSocket"]["port"], 8000);
    named_mut(&mut pod["spec"]["containers"], "agent")["ports"] = json!([{"containerPort": 9000}]);
    let mut seen = injected(&pod, &snapshot);
    assert_eq!(probe(&seen)["tcpSocket"]["port"], 9000);
    unchanged(&seen, &snapshot);

    // Somebody else's wish stays while ours is the same.
    named_mut(&mut seen["spec"]["initContainers"], "authbridge-proxy")["startupProbe"]["failureThreshold"] = json!(600);
    unchanged(&seen, &snapshot);
}

/// The API server takes a startup probe of those init containers alone that stay.
#[test]
fn a_signer_has_a_startup_probe_while_it_stays_and_no_longer() {
    let snapshot = native();
    let asks = |pod: &Value, value: &str| {
        let mut pod = pod.clone();
        pod["metadata"]["annotations"][keys::ANNOTATION_SIGN] = json!(value);
        injected(&pod, &snapshot)
    };
    let first = injected(&annotated(&[(keys::ANNOTATION_SIGN, "true")]), &snapshot);
    let sidecar = asks(&first, keys::SIGN_SIDECAR);
    let once = asks(&sidecar, "true");
    for (pod, stays) in [(&first, false), (&sidecar, true), (&once, false)] {
        let signer = named(&pod["spec"]["initContainers"], "sign-agentcard");
        for member in ["restartPolicy", "startupProbe"] {
            assert_eq!(signer.get(member).is_some(), stays, "{member} of {signer}");
        }
        unchanged(pod, &snapshot);
    }
}
