//! Laws over generated Agents: rendering is a function, closes what is open once, and keeps what it does not know.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::render;
use crate::workloads::agent::{AgentChange, validate, workload};
use crate::workloads::settings::{Lockdown, Settings};

/// Members of the Pod that rendering may set or add to; all others are the user's.
const OF_POD: [&str; 6] = [
    "serviceAccountName",
    "automountServiceAccountToken",
    "securityContext",
    "containers",
    "initContainers",
    "volumes",
];
/// The same of a container.
const OF_CONTAINER: [&str; 4] = ["image", "ports", "securityContext", "volumeMounts"];

fn context() -> impl Strategy<Value = Value> {
    select(vec![
        Value::Null,
        json!({}),
        json!({"privileged": true}),
        json!({"capabilities": {"add": ["SYS_ADMIN"]}, "zzFuture": 1}),
        json!({"capabilities": null, "readOnlyRootFilesystem": false}),
        json!({"runAsUser": 0, "runAsNonRoot": false}),
        json!("odd"),
    ])
}

fn container() -> impl Strategy<Value = Value> {
    let name = select(vec!["agent", "agent", "agents", "Agent", "proxy", ""]);
    let mount = select(vec![
        json!({"name": "cache", "mountPath": "/app/.cache/"}),
        json!({"name": "tmp", "mountPath": "/tmp"}),
        json!({"name": "agent-tmp", "mountPath": "/tmp2"}),
        json!("odd"),
    ]);
    let ports = select(vec![Value::Null, json!([]), json!([{"containerPort": 9000, "zz": 1}]), json!("odd")]);
    (name, vec(mount, 0..3), ports, context(), any::<bool>()).prop_map(|(name, mounts, ports, context, known)| {
        let mut container = json!({"name": name, "volumeMounts": mounts, "ports": ports, "securityContext": context});
        if !known {
            container["zzFuture"] = json!({"a/b~c": [null, 1.5]});
        }
        container
    })
}

fn volume() -> impl Strategy<Value = Value> {
    select(vec!["cache", "tmp", "agent-tmp", "caches", "data"])
        .prop_map(|name| json!({"name": name, "emptyDir": {"zz": 1}}))
}

prop_compose! {
    fn agent()(
        regular in vec(container(), 0..3),
        init in vec(container(), 0..2),
        volumes in vec(volume(), 0..3),
        context in context(),
        account in select(vec![Value::Null, json!(""), json!("own")]),
        odd in select(vec![Value::Null, json!({"os": {"name": "windows"}}), json!({"hostNetwork": true}), json!({"zzFuture": [{}]}), json!({"volumes": "odd"})]),
        members in select(vec![json!({}), json!({"replicas": 0}), json!({"servicePorts": []}), json!({"servicePorts": null}), json!({"labels": {"a": "b", "app.kubernetes.io/name": "x"}})]),
    ) -> Value {
        let mut pod = json!({"containers": regular, "initContainers": init, "volumes": volumes, "securityContext": context, "serviceAccountName": account});
        json_patch::merge(&mut pod, &odd);
        let mut object = json!({
            "metadata": {"name": "weather", "namespace": "team1", "uid": "u-1"},
            "spec": {"imageSource": {"image": "ghcr.io/acme/weather:v1"}, "podTemplateSpec": {"spec": pod, "zzFuture": true}},
        });
        json_patch::merge(&mut object["spec"], &members);
        object
    }
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_runs_is_closed_once_and_keeps_what_nobody_knows(object in agent(), openshift in any::<bool>()) {
        let request = workload(&object, None);
        let made = render(&request, "r.example/a:1", openshift);
        prop_assert_eq!(&made, &render(&workload(&object, None), "r.example/a:1", openshift));
        let template = &made.deployment["spec"]["template"];
        let mut closed = request.clone();
        closed.pod_template = template.clone();
        prop_assert_eq!(&render(&closed, "r.example/a:1", openshift).deployment["spec"]["template"], template);

        let written = &object["spec"]["podTemplateSpec"];
        prop_assert_eq!(&template["zzFuture"], &written["zzFuture"]);
        for (key, value) in members(&written["spec"]).iter().filter(|(key, _)| !OF_POD.contains(&key.as_str())) {
            prop_assert_eq!(template["spec"].get(key), Some(value));
        }
        for list in ["containers", "initContainers"] {
            let all = |of: &Value| of["spec"][list].as_array().cloned().unwrap_or_default();
            prop_assert_eq!(all(written).len(), all(template).len());
            for (written, made) in all(written).iter().zip(&all(template)) {
                for (key, value) in members(written).iter().filter(|(key, _)| !OF_CONTAINER.contains(&key.as_str())) {
                    prop_assert_eq!(made.get(key), Some(value));
                }
            }
        }
        let volumes = |of: &Value| of["spec"]["volumes"].as_array().cloned().unwrap_or_default();
        prop_assert!(volumes(template).starts_with(&volumes(written)), "volumes of the user come first and stay");
    }

    /// Judging is a function, says nothing twice, and leaves alone what an update leaves alone.
    #[test]
    fn judging_says_everything_once(object in agent(), enforced in any::<bool>()) {
        let lockdown = if enforced { Lockdown::Enforce } else { Lockdown::Default };
        let settings = Settings { lockdown, ..Settings::default() };
        let judged = |old| validate(&AgentChange { object: &object, old, builds: None, server: (1, 33) }, &settings);
        let found = judged(None);
        prop_assert_eq!(&found, &judged(None));
        for (index, fault) in found.faults.iter().enumerate() {
            prop_assert!(fault.path.starts_with("spec") || fault.path.starts_with("metadata"), "{}", fault);
            prop_assert!(!fault.remedy.is_empty() && !found.faults[..index].contains(fault), "{}", fault);
        }
        prop_assert!(judged(Some(&object)).faults.is_empty());
    }
}
