//! The cases of agents (A; docs/cases.md) that are the webhook's: A10, A11, A19, A20; and 6.7.
//!
//! The other cases of 19.1 are the controller's (A1 to A9, A13 to A18, A21 to A38), A12 the schema's defaults.

mod powers;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{AgentChange, validate};
use crate::api::findings::{Findings, printed};
use crate::domain::reason::Reason;
use crate::workloads::settings::{Lockdown, Settings};

fn agent(members: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "weather"},
        "spec": {
            "imageSource": {"image": "ghcr.io/acme/weather:v1"},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}},
            "servicePorts": [{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}],
        },
    });
    json_patch::merge(&mut object, &members);
    object
}

fn judged(object: &Value, lockdown: Lockdown) -> Findings {
    let settings = Settings { lockdown, ..Settings::default() };
    validate(&AgentChange { object, old: None, builds: None, server: (1, 33) }, &settings)
}

fn told(members: Value) -> String {
    printed(&judged(&agent(members), Lockdown::Default).faults)
}

fn container(container: Value) -> Value {
    json!({"spec": {"podTemplateSpec": {"spec": {"containers": [container]}}}})
}

#[test]
fn a_plain_agent_is_accepted_without_a_word() {
    assert_eq!(judged(&agent(json!({})), Lockdown::Enforce), Findings::default());
}

#[test]
fn case_a10_exactly_one_source_of_the_image() {
    for source in [
        json!({"image": null}),
        json!({"buildRef": {"name": "b"}}),
        json!({"image": ""}),
        json!({"image": null, "buildRef": {"name": ""}}),
        json!({"image": null, "buildRef": {"name": "B c"}}),
        json!({"image": "not an image"}),
        json!({"image": "ghcr.io/acme/weather:v1 "}),
    ] {
        assert!(told(json!({"spec": {"imageSource": source}})).contains("spec.imageSource"), "{source}");
    }
    assert_eq!(told(json!({"spec": {"image": "a/b:c", "imageSource": null}})), "");
    assert!(told(json!({"spec": {"image": "a/b:c"}})).contains("exactly one of image, buildRef"));
    assert_eq!(told(json!({"spec": {"imageSource": {"image": null, "buildRef": {"name": "b"}}}})), "");
}

#[test]
fn case_a11_names_that_no_service_can_have() {
    for name in ["1a", "a.b", &"a".repeat(64), "", "A"] {
        assert!(told(json!({"metadata": {"name": name}})).contains("metadata.name"), "{name}");
    }
    assert_eq!(told(json!({"metadata": {"name": "a".repeat(63)}})), "");
}

#[test]
fn case_a19_a_relaxed_lock_down_is_said() {
    let object = agent(container(json!({"name": "agent", "securityContext": {"readOnlyRootFilesystem": false}})));
    let findings = judged(&object, Lockdown::Default);
    assert_eq!(findings.faults, []);
    assert_eq!(findings.notes[0].reason, Reason::LockdownRelaxed);
    assert_eq!(
        findings.notes[0].path,
        "spec.podTemplateSpec.spec.containers[0].securityContext.readOnlyRootFilesystem"
    );
}

#[test]
fn case_a20_an_enforced_lock_down_refuses_with_the_path() {
    let container = |member: Value| container(json!({"name": "agent", "securityContext": member}));
    let pod = |member: Value| json!({"spec": {"podTemplateSpec": {"spec": member}}});
    for (members, path) in [
        (container(json!({"readOnlyRootFilesystem": false})), "containers[0].securityContext.readOnlyRootFilesystem"),
        (container(json!({"privileged": true})), "containers[0].securityContext.privileged"),
        (
            container(json!({"allowPrivilegeEscalation": true})),
            "containers[0].securityContext.allowPrivilegeEscalation",
        ),
        (container(json!({"runAsNonRoot": false})), "containers[0].securityContext.runAsNonRoot"),
        (container(json!({"runAsUser": 0})), "containers[0].securityContext.runAsUser"),
        (container(json!({"capabilities": {"add": ["NET_BIND_SERVICE", "SYS_PTRACE"]}})), "capabilities.add[1]"),
        (container(json!({"procMount": "Unmasked"})), "containers[0].securityContext.procMount"),
        (
            container(json!({"seccompProfile": {"type": "Unconfined"}})),
            "containers[0].securityContext.seccompProfile.type",
        ),
        (pod(json!({"hostNetwork": true})), "spec.hostNetwork"),
        (pod(json!({"hostPID": true})), "spec.hostPID"),
        (pod(json!({"hostIPC": true})), "spec.hostIPC"),
        (pod(json!({"securityContext": {"runAsUser": 0}})), "spec.securityContext.runAsUser"),
        (pod(json!({"securityContext": {"runAsNonRoot": false}})), "spec.securityContext.runAsNonRoot"),
        (pod(json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]})), "volumes[0].hostPath"),
        (
            pod(json!({"containers": [{"name": "agent", "ports": [{"containerPort": 8000, "hostPort": 80}]}]})),
            "ports[0].hostPort",
        ),
        (
            pod(json!({"initContainers": [{"name": "i", "image": "x", "securityContext": {"privileged": true}}]})),
            "initContainers[0]",
        ),
    ] {
        let object = agent(members);
        let told = printed(&judged(&object, Lockdown::Enforce).faults);
        assert!(told.contains(path) && told.lines().count() == 1, "{told} does not name {path}");
        let relaxed = judged(&object, Lockdown::Default);
        assert_eq!((relaxed.faults.len(), relaxed.notes.len()), (0, 1), "{path}");
    }
    let fine = agent(container(
        json!({"runAsUser": 2000, "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}, "procMount": "Default"}),
    ));
    assert_eq!(judged(&fine, Lockdown::Enforce), Findings::default());
}

#[test]
fn containers_have_names_and_images() {
    let pod = |containers: Value| json!({"spec": {"podTemplateSpec": {"spec": {"containers": containers}}}});
    assert!(told(pod(json!([]))).contains("spec.podTemplateSpec.spec.containers must have at least one container"));
    assert!(told(pod(json!([{"name": "a"}, {"name": "agent"}]))).contains("containers[0].image is required"));
    assert_eq!(told(pod(json!([{"name": "a", "image": "x"}, {"name": "agent"}]))), "");
    assert_eq!(told(pod(json!([{"name": "main", "image": "set by operator"}]))), "", "any text may stand there");
    assert!(
        told(pod(json!([{"name": "a"}, {"name": "a", "image": "x"}]))).contains("containers[1].name is a duplicate")
    );
    assert!(told(json!({"spec": {"podTemplateSpec": null}})).contains("spec.podTemplateSpec.spec.containers"));
}

#[test]
fn ports_of_the_service() {
    let ports = |ports: Value| json!({"spec": {"servicePorts": ports}});
    assert_eq!(told(ports(json!([]))), "", "no Service");
    assert!(told(ports(json!([{"port": 1}, {"name": "b", "port": 2}]))).contains("servicePorts[0].name is required"));
    assert!(
        told(ports(json!([{"name": "b", "port": 1}, {"name": "b", "port": 2}])))
            .contains("servicePorts[1].name occurs twice")
    );
    assert!(told(ports(json!([{"port": 0}]))).contains("servicePorts[0].port is not a port"));
    assert!(
        told(ports(json!([{"port": 80, "targetPort": 70000}]))).contains("servicePorts[0].targetPort is not a port")
    );
    assert!(told(ports(json!([{"targetPort": 80}]))).contains("servicePorts[0].port is required"));
    for (member, value) in
        [("targetPort", json!("Not_A_Port")), ("protocol", json!("HTTP")), ("nodePort", json!(30000))]
    {
        let mut port = json!({"port": 80, "targetPort": 8000});
        port[member] = value;
        let told = told(ports(json!([port])));
        assert!(told.starts_with(&format!("spec.servicePorts[0].{member} ")) && told.lines().count() == 1, "{told}");
    }
    assert_eq!(told(ports(json!([{"port": 80, "targetPort": 8000, "protocol": "UDP", "nodePort": 0}]))), "");
    let unmatched = |members: Value| {
        let notes = judged(&agent(members), Lockdown::Default).notes;
        notes.iter().any(|note| note.reason == Reason::PortUnmatched)
    };
    assert!(!unmatched(ports(json!([{"port": 8080, "targetPort": "http"}]))));
    assert!(unmatched(ports(json!([{"port": 8080, "targetPort": "grpc"}]))));
    assert!(unmatched(ports(json!([{"port": 8080}]))), "8080 leads to 8080, where nothing listens");
    let mut members = ports(json!([{"port": 8080, "targetPort": 9000}]));
    assert!(!unmatched(members.clone()), "a container without ports gets the target");
    json_patch::merge(&mut members, &container(json!({"name": "agent", "ports": [{"containerPort": 8000}]})));
    assert!(unmatched(members));
}

/// Accepted, these come to an Agent that fails with the API server's words about a Deployment that nobody wrote.
#[test]
fn what_no_deployment_can_be_made_of_is_refused_at_once() {
    let pod = |pod: Value| json!({"spec": {"podTemplateSpec": {"spec": pod}}});
    let port =
        |number: u16, name: &str, protocol: &str| json!({"containerPort": number, "name": name, "protocol": protocol});
    let twice = json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let initial = |members: Value| {
        let mut one = json!({"name": "i", "image": "i"});
        json_patch::merge(&mut one, &members);
        pod(json!({"initContainers": [one]}))
    };
    let (probe, hook) = (json!({"tcpSocket": {"port": 80}}), json!({"preStop": {"exec": {"command": ["x"]}}}));
    for (members, path) in [
        (container(json!({"name": "agent", "env": twice})), "containers[0].env[1].name occurs twice"),
        (
            pod(json!({"initContainers": [{"name": "i", "image": "i", "env": twice}]})),
            "initContainers[0].env[1].name occurs twice",
        ),
        (
            pod(json!({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]})),
            "volumes[1].name occurs twice",
        ),
        (
            container(
                json!({"name": "agent", "volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x"}]}),
            ),
            "containers[0].volumeMounts[1].mountPath occurs twice",
        ),
        (
            container(json!({"name": "agent", "ports": [port(1, "a", "TCP"), {"containerPort": 1}]})),
            "ports[1].containerPort occurs twice",
        ),
        (
            container(json!({"name": "agent", "ports": [port(1, "a", "TCP"), port(2, "a", "TCP")]})),
            "ports[1].name occurs twice",
        ),
        (
            container(json!({"name": "agent", "ports": [port(1, "a-very-long-port-name", "TCP")]})),
            "ports[0].name is not the name of a port",
        ),
        (pod(json!({"restartPolicy": "Never"})), "restartPolicy is not Always"),
        (pod(json!({"activeDeadlineSeconds": 5})), "activeDeadlineSeconds limits"),
        (pod(json!({"ephemeralContainers": [{"name": "e", "image": "e"}]})), "ephemeralContainers holds"),
        (initial(json!({"lifecycle": hook})), "initContainers[0].lifecycle is for containers that keep running"),
        (initial(json!({"livenessProbe": probe})), "initContainers[0].livenessProbe is for"),
        (initial(json!({"readinessProbe": probe, "restartPolicy": null})), "initContainers[0].readinessProbe is for"),
        (initial(json!({"startupProbe": probe})), "initContainers[0].startupProbe is for"),
    ] {
        let told = told(members);
        assert!(told.starts_with("spec.podTemplateSpec.spec.") && told.contains(path), "{path}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
    let fine = container(json!({"name": "agent", "ports": [port(1, "a", "TCP"), port(1, "b", "UDP")],
        "env": [{"name": "A"}, {"name": "a"}]}));
    assert_eq!(told(fine), "");
    assert_eq!(told(pod(json!({"restartPolicy": "Always", "activeDeadlineSeconds": null}))), "");
    let sidecar = json!({"restartPolicy": "Always", "lifecycle": hook, "startupProbe": probe, "readinessProbe": probe});
    assert_eq!(told(initial(sidecar)), "");
    assert_eq!(told(initial(json!({"livenessProbe": null}))), "");
    assert_eq!(told(pod(json!({"ephemeralContainers": []}))), "");
}

/// A Service leads to the whole Pod: a port of any container that runs beside the agent answers, in its own protocol.
#[test]
fn ports_lead_to_any_container_of_the_pod() {
    let object = |target: Value, protocol: &str| {
        agent(json!({"spec": {
            "servicePorts": [{"name": "a", "port": 80, "targetPort": 8000}, {"name": "b", "port": 81, "targetPort": target, "protocol": protocol}],
            "podTemplateSpec": {"spec": {
                "containers": [{"name": "agent"}, {"name": "metrics", "image": "m:1", "ports": [{"name": "metrics", "containerPort": 9090}]}],
                "initContainers": [
                    {"name": "side", "image": "s:1", "restartPolicy": "Always", "ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}]},
                    {"name": "once", "image": "o:1", "ports": [{"name": "once", "containerPort": 7000}]}],
            }},
        }}))
    };
    for (target, protocol, answers) in [
        (json!("metrics"), "TCP", true),
        (json!(9090), "TCP", true),
        (json!(9090), "UDP", false),
        (json!("dns"), "UDP", true),
        (json!("dns"), "TCP", false),
        (json!("once"), "TCP", false),
        (json!("http"), "TCP", true),
    ] {
        let notes = judged(&object(target.clone(), protocol), Lockdown::Default).notes;
        assert_eq!(notes.is_empty(), answers, "{target} {protocol}: {notes:?}");
    }
}

#[test]
fn the_default_port_is_looked_at_where_nobody_has_filled_it_in() {
    let mut object = agent(container(json!({"name": "agent", "ports": [{"containerPort": 8080}]})));
    object["spec"].as_object_mut().unwrap().remove("servicePorts");
    assert_eq!(judged(&object, Lockdown::Default).notes[0].reason, Reason::PortUnmatched);
    object["spec"]["podTemplateSpec"]["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8000}]);
    assert_eq!(judged(&object, Lockdown::Default), Findings::default());
}

#[test]
fn a_port_is_there_once_per_protocol() {
    let ports = |protocol: &str| json!({"spec": {"servicePorts": [{"name": "a", "port": 80, "targetPort": 8000}, {"name": "b", "port": 80, "targetPort": 8000, "protocol": protocol}]}});
    assert!(told(ports("TCP")).contains("servicePorts[1].port occurs twice with protocol TCP"));
    assert_eq!(told(ports("UDP")), "");
}

/// What the lock-down sets beside a user's own value can keep the Pod from starting: said while it can be changed.
#[test]
fn root_beside_run_as_non_root_never_starts() {
    let notes = |container: Value, pod: Value| {
        let mut object = agent(self::container(json!({"name": "agent", "securityContext": container})));
        object["spec"]["podTemplateSpec"]["spec"]["securityContext"] = pod;
        let notes = judged(&object, Lockdown::Default).notes;
        notes.iter().filter(|note| note.text.contains("No Pod starts")).count()
    };
    assert_eq!(notes(json!({"runAsUser": 0}), json!({})), 1);
    assert_eq!(notes(json!({}), json!({"runAsUser": 0})), 1);
    assert_eq!(notes(json!({"runAsUser": 0, "runAsNonRoot": false}), json!({})), 0);
    assert_eq!(notes(json!({"runAsUser": 0}), json!({"runAsNonRoot": false})), 0);
    assert_eq!(notes(json!({"runAsUser": 2000}), json!({})), 0);
}

#[test]
fn labels_and_annotations() {
    assert!(told(json!({"spec": {"labels": {"app.kubernetes.io/name": "x"}}})).contains("reserved label"));
    assert!(told(json!({"spec": {"labels": {"agent.kagenti.dev/x": "x"}}})).contains("reserved label"));
    assert!(told(json!({"spec": {"labels": {"a": "b c"}}})).contains("spec.labels[a]"));
    assert!(told(json!({"spec": {"annotations": {"a b": "c"}}})).contains("spec.annotations"));
    // The Pod template's, too: the Deployment would be refused for them, when nobody looks any more.
    let template = |metadata: Value| json!({"spec": {"podTemplateSpec": {"metadata": metadata}}});
    let path = "spec.podTemplateSpec.metadata";
    assert!(told(template(json!({"labels": {"a b": "c"}}))).contains(&format!("{path}.labels[a b]")));
    assert!(told(template(json!({"labels": {"a": "b c"}}))).contains(&format!("{path}.labels[a]")));
    assert!(told(template(json!({"annotations": {"a b": "c"}}))).contains(&format!("{path}.annotations has a key")));
    // What the webhook notes on its own Pods would be taken back from them: an Agent would get any ServiceAccount, or a port of the node.
    let forged = json!({"annotations": {"kagenti.io/authbridge-status": "{}"}});
    for (members, path) in [(json!({"spec": forged}), "spec"), (template(forged.clone()), path)] {
        let told = told(members);
        assert!(
            told.contains(&format!("{path}.annotations[kagenti.io/authbridge-status] is what the webhook")),
            "{told}"
        );
    }
    let fine = json!({"labels": {"app.kubernetes.io/name": "x"}, "annotations": {"Example.com/A": "any thing"}});
    assert_eq!(told(template(fine)), "");
    assert_eq!(told(json!({"spec": {"labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}}})), "");
}

#[test]
fn warnings() {
    let reasons = |members: Value| -> Vec<Reason> {
        judged(&agent(members), Lockdown::Default).notes.iter().map(|note| note.reason).collect()
    };
    for image in ["ghcr.io/a/b", "ghcr.io/a/b:latest", "r:5000/a"] {
        assert_eq!(reasons(json!({"spec": {"imageSource": {"image": image}}})), [Reason::MovingReference], "{image}");
    }
    let pinned = format!("ghcr.io/a/b@sha256:{}", "0".repeat(64));
    assert_eq!(reasons(json!({"spec": {"imageSource": {"image": pinned}}})), []);
    let builds = BTreeSet::from(["there".to_owned()]);
    for (name, expected) in [("there", 0), ("gone", 1)] {
        let object = agent(json!({"spec": {"imageSource": {"image": null, "buildRef": {"name": name}}}}));
        let change = AgentChange { object: &object, old: None, builds: Some(&builds), server: (1, 33) };
        assert_eq!(validate(&change, &Settings::default()).notes.len(), expected, "{name}");
    }
}

/// What the API server would refuse of the Deployment is refused of the Agent: all of it, with what may have been meant.
#[test]
fn mend_12_unknown_fields_of_the_pod_are_refused_with_their_path_in_the_agent() {
    let object = agent(json!({"spec": {"podTemplateSpec": {"metadata": {"labels": {"any": "thing"}}, "spec": {
        "containers": [{"name": "agent", "imagePullPolcy": "Always", "resources": {"limits": {"cpu": 1, "any/thing": "2"}}}],
        "contaners": [],
        "nodeSelector": {"any": "thing"},
        "volumes": [{"name": "v", "emptyDir": {"sizelimit": "1Gi"}}],
        "futureField": {"deep": 1},
        "noField": null,
    }}}}));
    let findings = judged(&object, Lockdown::Enforce);
    assert_eq!(findings.notes, []);
    let told: Vec<_> = findings.faults.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(findings.faults.iter().all(|fault| fault.reason == Reason::FieldUnknown));
    for (path, meant) in [
        ("spec.podTemplateSpec.spec.containers[0].imagePullPolcy", "did you mean imagePullPolicy?"),
        ("spec.podTemplateSpec.spec.contaners", "did you mean containers?"),
        ("spec.podTemplateSpec.spec.volumes[0].emptyDir.sizelimit", "did you mean sizeLimit?"),
        ("spec.podTemplateSpec.spec.futureField", "remove it"),
    ] {
        assert!(
            told.iter().any(|line| line.starts_with(&format!("{path} ")) && line.contains(meant)),
            "{path}: {told:?}"
        );
    }
    // What the API server takes out of the template's metadata by itself refuses nothing.
    let pruned = json!({"spec": {"podTemplateSpec": {"metadata": {"name": "x", "creationTimestamp": null}}}});
    let findings = judged(&agent(pruned), Lockdown::Enforce);
    assert_eq!((findings.faults.len(), findings.notes.len()), (0, 1), "{findings:?}");
}

#[test]
fn mend_12_however_many_fields_are_unknown_the_answer_is_bounded_and_counts_all() {
    let many: serde_json::Map<_, _> = (0..2_000).map(|number| (format!("zz{number}"), json!(1))).collect();
    let findings = judged(&agent(json!({"spec": {"podTemplateSpec": {"spec": many}}})), Lockdown::Enforce);
    assert_eq!(findings.faults.len(), 101);
    assert!(findings.faults[100].to_string().contains("has 1900 more fields"), "{}", findings.faults[100]);
}

/// A field counts from the version on that has it; of a version that is newer than what is known here nothing is refused.
#[test]
fn mend_12_fields_of_later_kubernetes_are_taken_where_the_api_server_has_them() {
    let judged = |pod: &Value, minor: u32| {
        let object = agent(json!({"spec": {"podTemplateSpec": {"spec": pod}}}));
        let change = AgentChange { object: &object, old: None, builds: None, server: (1, minor) };
        validate(&change, &Settings::default())
    };
    let container = |more: Value| {
        let mut container = json!({"name": "agent"});
        json_patch::merge(&mut container, &more);
        json!({"containers": [container]})
    };
    let rules = json!({"restartPolicyRules": [{"action": "Restart"}]});
    let file =
        json!({"env": [{"name": "A", "valueFrom": {"fileKeyRef": {"key": "k", "path": "p", "volumeName": "v"}}}]});
    let certificate = json!({"sources": [{"podCertificate": {"signerName": "s"}}]});
    for (pod, first, last) in [
        (json!({"hostnameOverride": "h"}), 34, u32::MAX),
        (container(rules), 34, u32::MAX),
        (container(file), 34, u32::MAX),
        (json!({"volumes": [{"name": "v", "projected": certificate}]}), 34, u32::MAX),
        (json!({"workloadRef": {"name": "w"}}), 35, 35),
        (json!({"schedulingGroup": {"podGroupName": "g"}}), 36, u32::MAX),
        (
            json!({"volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p", "user": 1}]}}]}),
            37,
            u32::MAX,
        ),
    ] {
        for minor in 33..=37 {
            let findings = judged(&pod, minor);
            let known = (first..=last).contains(&minor);
            assert_eq!(
                (findings.faults.is_empty(), findings.notes.len()),
                (known, 0),
                "{pod} at 1.{minor}: {findings:?}"
            );
            let told = printed(&findings.faults);
            assert!(
                known || told.contains(&format!("Kubernetes 1.{first} ")) && told.contains(&format!("has 1.{minor}")),
                "{told}"
            );
        }
    }
    let findings = judged(&json!({"futureField": 1, "contaners": []}), 38);
    assert_eq!((findings.faults.len(), findings.notes.len()), (0, 2), "{findings:?}");
}

/// Registries and paths have no capitals; whoever wrote one is told so, and not to write what he has written.
#[test]
fn mend_12_an_image_with_capitals_says_so() {
    for image in ["ghcr.io/Acme/weather:v1", "Weather", "ghcr.io/acme/Weather:V1", "a/B@sha256:ab"] {
        let text = told(json!({"spec": {"imageSource": {"image": image}}}));
        // A digest that is none is no matter of capitals.
        assert_eq!(text.contains("has capital letters"), !image.contains('@'), "{image}: {text}");
        assert!(text.contains(image), "{text}");
    }
    assert_eq!(told(json!({"spec": {"imageSource": {"image": "ghcr.io/acme/weather:V1"}}})), "");
    for image in ["not an Image", "ghcr.io//Weather:v1", ""] {
        assert!(!told(json!({"spec": {"imageSource": {"image": image}}})).contains("capital"), "{image}");
    }
}

#[test]
fn updates_that_leave_the_spec_and_deletions_pass() {
    let bad = agent(json!({"metadata": {"name": "a.b"}, "spec": {"imageSource": null}}));
    let change = AgentChange { object: &bad, old: Some(&bad), builds: None, server: (1, 33) };
    assert_eq!(validate(&change, &Settings::default()), Findings::default());
    let mut deleting = bad.clone();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(judged(&deleting, Lockdown::Enforce), Findings::default());
    for broken in [
        json!(null),
        json!({}),
        json!({"spec": []}),
        json!({"spec": {"podTemplateSpec": {"spec": {"containers": "x"}}, "servicePorts": [1]}}),
    ] {
        assert!(!judged(&broken, Lockdown::Enforce).faults.is_empty(), "{broken}");
    }
}

/// G3's own list (docs/cases.md): each is a power that takes a right, whatever the lock-down says of it.
#[test]
fn g3_every_power_is_found_where_it_stands() {
    use super::privileges::asked;
    let container = |member: Value| json!({"containers": [{"name": "agent"}], "initContainers": [member]});
    for (pod, at) in [
        (json!({"serviceAccountName": "builder"}), ".serviceAccountName"),
        (json!({"serviceAccount": "builder"}), ".serviceAccount"),
        (json!({"automountServiceAccountToken": true}), ".automountServiceAccountToken"),
        (json!({"nodeName": "n1"}), ".nodeName"),
        (json!({"priorityClassName": "system-node-critical"}), ".priorityClassName"),
        (json!({"shareProcessNamespace": true}), ".shareProcessNamespace"),
        (json!({"hostPID": true}), ".hostPID"),
        (json!({"tolerations": [{"key": "gpu"}, {"operator": "Exists"}]}), ".tolerations[1].key"),
        (
            json!({"tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]}),
            ".tolerations[0].key",
        ),
        (json!({"securityContext": {"sysctls": [{"name": "a", "value": "b"}]}}), ".securityContext.sysctls[0]"),
        (json!({"volumes": [{"name": "v"}, {"name": "h", "hostPath": {"path": "/"}}]}), ".volumes[1].hostPath"),
        (
            json!({"volumes": [{"name": "v"}, {"name": "t", "projected": {"sources": [
                {"secret": {"name": "s"}}, {"serviceAccountToken": {"path": "token", "audience": "a"}}]}}]}),
            ".volumes[1].projected.sources[1].serviceAccountToken",
        ),
        (
            container(json!({"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}})),
            ".initContainers[0].securityContext.capabilities.add[0]",
        ),
    ] {
        let object = json!({"spec": {"podTemplateSpec": {"spec": pod}}});
        let found = asked(&object);
        assert_eq!(
            found.iter().map(|asked| &*asked.at).collect::<Vec<_>>(),
            [format!("spec.podTemplateSpec.spec{at}")]
        );
        assert!(found[0].privilege.weight.needs_right(), "{at}");
    }
    for pod in [
        json!({"serviceAccountName": "", "automountServiceAccountToken": false, "shareProcessNamespace": false}),
        json!({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}),
        json!({"volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [], "securityContext": {"runAsUser": 2000}}),
        json!({"volumes": [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}, {"downwardAPI": {}}]}}]}),
        json!({"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": null}, 3]}}, {"projected": null}]}),
        json!({"hostNetwork": "true", "containers": {"securityContext": []}, "volumes": [3], "tolerations": [null]}),
        json!(null),
    ] {
        assert!(asked(&json!({"spec": {"podTemplateSpec": {"spec": pod}}})).is_empty(), "{pod}");
    }
    let key = "container.apparmor.security.beta.kubernetes.io/agent";
    let template =
        json!({"spec": {"podTemplateSpec": {"metadata": {"annotations": {key: "unconfined", "a": "unconfined"}}}}});
    for object in [json!({"spec": {"annotations": {key: "unconfined"}}}), template] {
        let found = asked(&object);
        assert!(matches!(&found[..], [one] if one.at.ends_with(&format!("annotations[{key}]"))), "{found:?}");
    }
    assert!(asked(&json!({"spec": {"annotations": {key: "runtime/default"}}})).is_empty());
}
