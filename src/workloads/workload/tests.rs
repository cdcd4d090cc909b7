//! The cases of agents (A; docs/cases.md) that are the shape of what runs: A1 to A3, A13, A15 to A18, A21 to
//! A25, A30, A36, A38. The rest of 19.1 is the controller's: what changes when, and what is never touched.

use serde_json::{Value, json};

use super::{Workload, render};
use crate::workloads::agent;

fn agent(members: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "weather", "namespace": "team1", "uid": "u-1",
            "labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}},
        "spec": {
            "imageSource": {"image": "ghcr.io/acme/weather:v1"},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}},
            "replicas": 1,
            "servicePorts": [{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}],
        },
    });
    json_patch::merge(&mut object, &members);
    object
}

fn rendered_on(members: Value, openshift: bool) -> Workload {
    let request = agent::workload(&agent(members), None);
    render(&request, request.image.as_deref().unwrap(), openshift)
}

fn rendered(members: Value) -> Workload {
    rendered_on(members, false)
}

fn pod(members: Value) -> Value {
    rendered(json!({"spec": {"podTemplateSpec": {"spec": members}}})).deployment["spec"]["template"]["spec"].clone()
}

/// The worked example, with our own `managed-by`.
#[test]
fn case_a01_the_example() {
    let Workload { deployment, service, account } = rendered(json!({}));
    let owner = json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "weather", "uid": "u-1",
        "controller": true, "blockOwnerDeletion": true}]);
    assert_eq!(
        deployment,
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "weather", "namespace": "team1",
                "labels": {"app.kubernetes.io/name": "weather", "app.kubernetes.io/managed-by": "drawbridge",
                    "kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""},
                "ownerReferences": owner,
            },
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app.kubernetes.io/name": "weather"}},
                "template": {
                    "metadata": {"labels": {"app.kubernetes.io/name": "weather", "kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}},
                    "spec": {
                        "serviceAccountName": "weather",
                        "automountServiceAccountToken": false,
                        "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
                        "containers": [{
                            "name": "agent",
                            "image": "ghcr.io/acme/weather:v1",
                            "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
                            "securityContext": {"allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
                            "volumeMounts": [{"name": "cache", "mountPath": "/app/.cache"}, {"name": "tmp", "mountPath": "/tmp"}],
                        }],
                        "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
                    },
                },
            },
        })
    );
    let service = service.unwrap();
    assert_eq!(
        service["spec"],
        json!({"selector": {"app.kubernetes.io/name": "weather"},
        "ports": [{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}]})
    );
    assert_eq!(
        service["metadata"]["labels"],
        json!({"app.kubernetes.io/name": "weather", "app.kubernetes.io/managed-by": "drawbridge"})
    );
    let account = account.unwrap();
    assert_eq!(account["automountServiceAccountToken"], false);
    for object in [&service, &account] {
        assert_eq!(object["metadata"]["ownerReferences"], owner);
    }
}

#[test]
fn case_a02_and_a03_which_container_gets_the_image() {
    let two = pod(json!({"containers": [{"name": "side", "image": "own"}, {"name": "agent"}]}));
    assert_eq!(
        (&two["containers"][0]["image"], &two["containers"][1]["image"]),
        (&json!("own"), &json!("ghcr.io/acme/weather:v1"))
    );
    assert!(two["containers"][0].get("ports").is_none() && two["containers"][0].get("volumeMounts").is_none());
    let one = pod(json!({"containers": [{"name": "main", "image": "set by operator"}]}));
    assert_eq!(one["containers"][0]["image"], "ghcr.io/acme/weather:v1");
}

#[test]
fn case_a13_no_ports_no_service() {
    let workload = rendered(json!({"spec": {"servicePorts": []}}));
    assert_eq!(workload.service, None);
    let container = &workload.deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["containerPort"], 8000);
    // Before the schema's default, as offline.
    assert!(rendered(json!({"spec": {"servicePorts": null}})).service.is_some());
}

#[test]
fn the_containers_port_is_the_services_target() {
    let workload = rendered(
        json!({"spec": {"servicePorts": [{"port": 80, "targetPort": "x", "name": "a"}, {"port": 81, "targetPort": 9000, "name": "b"}]}}),
    );
    assert_eq!(workload.deployment["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"], 9000);
}

#[test]
fn case_a15_to_a17_what_the_user_set_stays_and_the_rest_is_closed() {
    let pod = pod(json!({
        "securityContext": {"fsGroup": 3000},
        "containers": [{"name": "agent", "securityContext": {"runAsUser": 2000, "capabilities": {"add": ["NET_BIND_SERVICE"]}}}],
        "initContainers": [{"name": "init", "image": "i"}],
    }));
    assert_eq!(
        pod["containers"][0]["securityContext"],
        json!({
        "runAsUser": 2000, "allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true,
        "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}})
    );
    assert_eq!(
        pod["securityContext"],
        json!({
        "fsGroup": 3000, "runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}})
    );
    assert_eq!(
        pod["initContainers"][0]["securityContext"],
        json!({
        "allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
    );
}

#[test]
fn case_a18_openshift_assigns_users() {
    let workload = rendered_on(json!({}), true);
    let context = &workload.deployment["spec"]["template"]["spec"]["securityContext"];
    assert_eq!(context, &json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}));
}

/// The API server refuses these beside `allowPrivilegeEscalation: false`.
#[test]
fn nothing_is_closed_that_would_make_the_pod_invalid() {
    for context in [json!({"privileged": true}), json!({"capabilities": {"add": ["SYS_ADMIN"]}})] {
        let pod = pod(json!({"containers": [{"name": "agent", "securityContext": context}]}));
        assert!(pod["containers"][0]["securityContext"].get("allowPrivilegeEscalation").is_none(), "{context}");
    }
    let windows = pod(json!({"os": {"name": "windows"}}));
    assert!(windows.get("securityContext").is_none() && windows["containers"][0].get("securityContext").is_none());
}

#[test]
fn case_a21_and_a22_a_cache_of_the_users_own() {
    let other = pod(json!({
        "containers": [{"name": "agent", "volumeMounts": [{"name": "data", "mountPath": "/app/.cache/"}, {"name": "data", "mountPath": "/tmp"}]}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }));
    assert_eq!(other["containers"][0]["volumeMounts"].as_array().unwrap().len(), 2);
    assert_eq!(other["volumes"], json!([{"name": "data", "emptyDir": {}}]));
    let same = pod(json!({
        "containers": [{"name": "agent", "volumeMounts": [{"name": "cache", "mountPath": "/elsewhere"}]}],
        "volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "tmp", "configMap": {"name": "c"}}],
    }));
    assert_eq!(
        same["containers"][0]["volumeMounts"],
        json!([{"name": "cache", "mountPath": "/elsewhere"}, {"name": "agent-tmp", "mountPath": "/tmp"}])
    );
    assert_eq!(same["volumes"].as_array().unwrap().len(), 3, "a volume of the user's is never mounted for us");
    let writable =
        pod(json!({"containers": [{"name": "agent", "securityContext": {"readOnlyRootFilesystem": false}}]}));
    assert_eq!(writable["volumes"], json!([{"name": "cache", "emptyDir": {}}]));
}

#[test]
fn case_a23_to_a25_labels_and_annotations() {
    let workload = rendered(json!({
        "metadata": {"labels": {"app.kubernetes.io/name": "x", "app.kubernetes.io/managed-by": "Helm", "team": "object"}, "annotations": {"note": "object"}},
        "spec": {
            "labels": {"team": "spec", "tier": "spec"}, "annotations": {"note2": "spec"},
            "podTemplateSpec": {"metadata": {"labels": {"tier": "template", "pod": "only"}, "annotations": {"scrape": "true"}}},
        },
    }));
    let (deployment, template) = (&workload.deployment, &workload.deployment["spec"]["template"]);
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!({"app.kubernetes.io/name": "weather"}));
    assert_eq!(
        deployment["metadata"]["labels"],
        json!({
        "app.kubernetes.io/name": "weather", "app.kubernetes.io/managed-by": "drawbridge", "kagenti.io/type": "agent",
        "protocol.kagenti.io/a2a": "", "team": "object", "tier": "spec"})
    );
    assert_eq!(
        template["metadata"]["labels"],
        json!({
        "app.kubernetes.io/name": "weather", "kagenti.io/type": "agent", "protocol.kagenti.io/a2a": "", "team": "object",
        "tier": "spec", "pod": "only"})
    );
    assert_eq!(template["metadata"]["annotations"], json!({"scrape": "true", "note2": "spec"}));
    assert_eq!(deployment["metadata"]["annotations"], json!({"note": "object", "note2": "spec"}));
}

#[test]
fn case_a30_an_account_of_the_users_own() {
    let workload = rendered(json!({"spec": {"podTemplateSpec": {"spec": {"serviceAccountName": "mine"}}}}));
    assert_eq!(workload.account, None);
    assert_eq!(workload.deployment["spec"]["template"]["spec"]["serviceAccountName"], "mine");
    let kept = pod(json!({"automountServiceAccountToken": true}));
    assert_eq!(kept["automountServiceAccountToken"], true);
}

#[test]
fn case_a36_what_tools_wrote_on_the_agent_stays_there() {
    let workload = rendered(json!({"metadata": {"annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "{}", "meta.helm.sh/release-name": "x", "agent.kagenti.dev/x": "y"}}}));
    assert!(workload.deployment["metadata"].get("annotations").is_none());
    assert!(workload.service.unwrap()["metadata"].get("annotations").is_none());
}

#[test]
fn case_a38_fields_that_nobody_knows_reach_the_deployment() {
    let pod = pod(json!({"futureField": {"deep": [1]}, "containers": [{"name": "agent", "futureToo": 2.5}]}));
    assert_eq!((&pod["futureField"], &pod["containers"][0]["futureToo"]), (&json!({"deep": [1]}), &json!(2.5)));
}

/// A31, and replicas that somebody else scales.
#[test]
fn replicas_are_what_is_written_or_somebody_elses() {
    assert_eq!(rendered(json!({"spec": {"replicas": 0}})).deployment["spec"]["replicas"], 0);
    assert_eq!(rendered(json!({"spec": {"replicas": null}})).deployment["spec"]["replicas"], 1);
    let members = json!({"metadata": {"annotations": {"agent.kagenti.dev/replicas-managed-externally": "true"}}});
    assert!(rendered(members).deployment["spec"].get("replicas").is_none());
}

/// BeeAI's Agent: another selector, another profile, the namespace's account; the same core.
#[test]
fn another_front_end_needs_no_change() {
    use crate::workloads::request::LockdownProfile;
    let mut request = agent::workload(&agent(json!({})), Some("r/x@sha256:0"));
    request.selector =
        [("app", "weather"), ("controller", "weather")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    request.profile = LockdownProfile::Baseline;
    request.own_account = false;
    request.container_port = 9000;
    request.pod_template["spec"]["serviceAccountName"] = json!("default");
    let workload = render(&request, "r/x@sha256:0", false);
    let template = &workload.deployment["spec"]["template"];
    assert_eq!(
        workload.deployment["spec"]["selector"]["matchLabels"],
        json!({"app": "weather", "controller": "weather"})
    );
    let context = &template["spec"]["containers"][0]["securityContext"];
    assert!(context.get("readOnlyRootFilesystem").is_none() && context["allowPrivilegeEscalation"] == false);
    assert_eq!(
        template["spec"]["securityContext"],
        json!({"fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}})
    );
    assert_eq!(template["spec"]["containers"][0]["ports"][0]["containerPort"], 9000);
    assert_eq!(template["spec"]["volumes"], json!([{"name": "cache", "emptyDir": {}}]));
    assert_eq!((workload.account, &template["spec"]["serviceAccountName"]), (None, &json!("default")));
}

/// 4.7: the account is found by the labels of its Agent, and is no account that was made for injected Pods.
#[test]
fn mend_13_the_account_carries_the_labels_of_the_agent() {
    let workload = rendered(json!({
        "metadata": {"labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": null, "team": "weather", "app.kubernetes.io/name": "other", "kagenti.io/managed-by": "webhook"}},
        "spec": {"labels": {"tier": "gold", "team": "shadowed"}},
    }));
    let labels = &workload.account.unwrap()["metadata"]["labels"];
    assert_eq!(
        labels,
        &json!({"kagenti.io/type": "agent", "team": "weather", "tier": "gold", "app.kubernetes.io/name": "weather", "app.kubernetes.io/managed-by": "drawbridge"})
    );
    let labels = &workload.deployment["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["kagenti.io/managed-by"]), (&json!("weather"), &json!("webhook")));
}
