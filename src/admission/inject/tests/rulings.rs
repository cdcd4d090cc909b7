//! The rows of docs/deviations.md and of docs/limits.md that no numbered case speaks of.

use std::sync::Arc;

use super::*;
use crate::api::review::{Operation, Phase};
use crate::config::layers::Field;
use crate::config::resolved::{NativeSidecars, Resolved, SpireSwitch, TraceProtocol};
use crate::config::view::PodSecurity;
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};

/// A change of the spec, the refusal it earns, the field that is named.
type Refused = (fn(&mut Value), Reason, &'static str);

#[test]
fn refusals_name_the_field_and_the_way_out() {
    let snapshot = fixtures::snapshot();
    let refused = |change: fn(&mut Value)| {
        let mut pod = fixtures::pod();
        change(&mut pod["spec"]);
        refusal(&pod, &snapshot)
    };
    let table: [Refused; 9] = [
        (|s| s["hostNetwork"] = json!(true), Reason::HostNetwork, "spec.hostNetwork"),
        (|s| s["os"] = json!({"name": "windows"}), Reason::WindowsPod, "spec.os.name"),
        (
            |s| s["nodeSelector"] = json!({"kubernetes.io/os": "windows"}),
            Reason::WindowsPod,
            "spec.nodeSelector[kubernetes.io/os]",
        ),
        (
            |s| s["initContainers"] = json!([{"name": "a"}, {"name": "envoy-proxy"}]),
            Reason::ContainerNameCollision,
            "spec.initContainers[1].name",
        ),
        (
            |s| s["volumes"] = json!([{"name": "envoy-config", "configMap": {"name": "mine"}}]),
            Reason::VolumeCollision,
            "spec.volumes[0]",
        ),
        (
            |s| s["containers"][0]["ports"][0]["containerPort"] = json!(15124),
            Reason::PortCollision,
            "spec.containers[0].ports[0].containerPort",
        ),
        (
            |s| s["securityContext"] = json!({"runAsUser": 1337}),
            Reason::ProxyUidInUse,
            "spec.securityContext.runAsUser",
        ),
        (
            |s| s["containers"][0]["securityContext"] = json!({"runAsUser": 1337}),
            Reason::ProxyUidInUse,
            "spec.containers[0].securityContext.runAsUser",
        ),
        (
            |s| s["volumes"] = json!([{"name": "svid-output", "hostPath": {"path": "/"}}]),
            Reason::VolumeCollision,
            "spec.volumes[0]",
        ),
    ];
    for (change, reason, field) in table {
        let denial = refused(change);
        assert_eq!((denial.reason, denial.field.as_deref()), (reason, Some(field)));
        let text = denial.to_string();
        assert!(
            text.starts_with(reason.code()) && text.contains("What to do") && text.contains("drawbridge explain"),
            "{text}"
        );
    }
    let mut pod = fixtures::pod();
    pod["spec"]["securityContext"] = json!({"runAsUser": 1337});
    pod["spec"]["containers"][0]["securityContext"] = json!({"runAsUser": 1000});
    assert_eq!(fixtures::review_pod(&pod, &snapshot).reason, Reason::Injected, "the container decides");
}

#[test]
fn pod_security_levels() {
    let at = |level| fixtures::snapshot_with(|_| {}, move |view| view.pod_security = level);
    for level in [PodSecurity::Baseline, PodSecurity::Restricted] {
        assert_eq!(refusal(&fixtures::pod(), &at(level)).reason, Reason::PodSecurityForbids);
        let registering = {
            let mut pod = proxy_mode();
            pod["metadata"]["labels"][keys::LABEL_CLIENT_REGISTRATION] = json!("true");
            pod
        };
        assert_eq!(fixtures::review_pod(&registering, &at(level)).reason, Reason::Injected, "proxy-sidecar passes");
    }
}

#[test]
fn native_sidecars_start_before_the_users_init_containers() {
    let auto = |resolved: &mut Resolved| resolved.native_sidecars = Field::built_in(NativeSidecars::Auto);
    let mut pod = labelled(&[(keys::LABEL_CLIENT_REGISTRATION, "true")]);
    pod["spec"]["initContainers"] = json!([{"name": "migrate"}]);
    let seen = injected(&pod, &with(auto));
    let init = &seen["spec"]["initContainers"];
    assert_eq!(names(init), ["proxy-init", "envoy-proxy", "spiffe-helper", "kagenti-client-registration", "migrate"]);
    assert_eq!(names(&seen["spec"]["containers"]), ["agent"]);
    assert_eq!(named(init, "proxy-init").get("restartPolicy"), None);
    for name in ["envoy-proxy", "spiffe-helper", "kagenti-client-registration"] {
        assert_eq!(named(init, name)["restartPolicy"], "Always");
        assert_eq!(named(init, name).get("startupProbe").is_some(), name == "envoy-proxy");
    }
    let probe = json!({"tcpSocket": {"port": 15124}, "periodSeconds": 1, "failureThreshold": 60});
    assert_eq!(named(init, "envoy-proxy")["startupProbe"], probe);
    let proxy = injected(&proxy_mode(), &with(auto));
    assert_eq!(named(&proxy["spec"]["initContainers"], "authbridge-proxy")["startupProbe"]["tcpSocket"]["port"], 8000);

    let disabled = injected(&annotated(&[(keys::ANNOTATION_NATIVE_SIDECARS, "disabled")]), &with(auto));
    assert_eq!(names(&disabled["spec"]["containers"]), ["agent", "envoy-proxy", "spiffe-helper"]);
    let asked_for = injected(&annotated(&[(keys::ANNOTATION_NATIVE_SIDECARS, "auto")]), &fixtures::snapshot());
    assert_eq!(names(&asked_for["spec"]["containers"]), ["agent"]);
    let mut old = with(auto);
    old.view.server_version = (1, 28);
    assert_eq!(names(&injected(&fixtures::pod(), &old)["spec"]["containers"]).len(), 3);
    let odd = annotated(&[(keys::ANNOTATION_NATIVE_SIDECARS, "yes")]);
    assert_eq!(warned(&odd, &fixtures::snapshot()), [Reason::UnknownValue]);
}

#[test]
fn spire_follows_its_switch_and_its_driver() {
    for (switch, driver, parts, warning) in [
        (SpireSwitch::Auto, true, true, None),
        (SpireSwitch::Auto, false, false, Some(Reason::SpireUnavailable)),
        (SpireSwitch::Required, false, true, Some(Reason::SpireDriverMissing)),
        (SpireSwitch::Disabled, true, false, None),
    ] {
        let mut snapshot = with(|resolved| resolved.spire.value = switch);
        snapshot.view.spiffe_driver = driver;
        let seen = injected(&fixtures::pod(), &snapshot);
        assert_eq!(names(&seen["spec"]["containers"]).contains(&"spiffe-helper"), parts);
        assert_eq!(seen["spec"]["serviceAccountName"] == "weather-agent", parts);
        assert_eq!(warned(&fixtures::pod(), &snapshot), warning.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn issuer_is_waited_for_only_when_it_is_known_to_come() {
    let snapshot = fixtures::snapshot_with(|_| {}, |view| view.authbridge_config = None);
    let seen = injected(&fixtures::pod(), &snapshot);
    let envoy = named(&seen["spec"]["containers"], "envoy-proxy");
    assert_eq!(named(&envoy["env"], "ISSUER")["valueFrom"]["configMapKeyRef"]["optional"], true);
    assert_eq!(warned(&fixtures::pod(), &snapshot), [Reason::IssuerMissing]);
}

#[test]
fn the_platforms_token_exchange_stands_in() {
    let mut snapshot = fixtures::snapshot_with(
        |resolved| {
            resolved.token_exchange.token_url.value = "https://t".to_owned();
            resolved.token_exchange.default_audience.value = "a".to_owned();
            resolved.token_exchange.default_scopes.value = Some(vec!["openid".to_owned(), "x".to_owned()]);
        },
        |view| {
            Arc::make_mut(view.authbridge_config.as_mut().unwrap())
                .insert("TARGET_AUDIENCE".to_owned(), "mine".to_owned());
        },
    );
    for literal in [false, true] {
        snapshot.gates.per_workload_config_resolution = literal;
        let seen = injected(&fixtures::pod(), &snapshot);
        let env = &named(&seen["spec"]["containers"], "envoy-proxy")["env"];
        assert_eq!(named(env, "TOKEN_URL")["value"], "https://t");
        assert_eq!(named(env, "TARGET_SCOPES")["value"], "openid x");
        assert_eq!(named(env, "TARGET_AUDIENCE").get("valueFrom").is_some(), !literal);
        assert_eq!(named(env, "TARGET_AUDIENCE")["value"] == "mine", literal);
    }
}

#[test]
fn traces_are_announced_to_containers_that_say_nothing() {
    let snapshot = with(|resolved| {
        resolved.trace.endpoint.value = Some("http://otel:4318".to_owned());
        resolved.trace.protocol.value = Some(TraceProtocol::Http);
        resolved.trace.sampling_ratio.value = Some(0.25);
    });
    let mut pod = fixtures::pod();
    pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "own", "env": [
        {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://mine"}, {"name": "OTEL_TRACES_SAMPLER", "value": "always_on"}]}));
    let seen = injected(&pod, &snapshot);
    let env = &named(&seen["spec"]["containers"], "agent")["env"];
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
    ] {
        assert_eq!(named(env, name)["value"], value);
    }
    assert_eq!(
        names(&named(&seen["spec"]["containers"], "own")["env"]),
        [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_TRACES_SAMPLER",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "OTEL_TRACES_SAMPLER_ARG"
        ]
    );
}

#[test]
fn everything_that_led_to_the_agents_port_leads_to_the_proxy() {
    let mut pod = proxy_mode();
    let agent = &mut pod["spec"]["containers"][0];
    agent["ports"][0] =
        json!({"name": "http", "containerPort": 8000, "protocol": "TCP", "hostPort": 80, "hostIP": "10.0.0.1"});
    agent["livenessProbe"] = json!({"httpGet": {"port": 8000}});
    agent["readinessProbe"] = json!({"tcpSocket": {"port": "http"}});
    agent["startupProbe"] = json!({"grpc": {"port": 8000}});
    agent["lifecycle"] = json!({"preStop": {"httpGet": {"port": "8000"}}, "postStart": {"httpGet": {"host": "example.com", "port": 8000}}});
    pod["spec"]["initContainers"] =
        json!([{"name": "native", "restartPolicy": "Always", "ports": [{"containerPort": 8001}]}]);
    let seen = injected(&pod, &fixtures::snapshot());
    let agent = &seen["spec"]["containers"][0];
    assert_eq!(agent["ports"], json!([{"containerPort": 8002, "protocol": "TCP"}]));
    for pointer in [
        "/livenessProbe/httpGet/port",
        "/readinessProbe/tcpSocket/port",
        "/startupProbe/grpc/port",
        "/lifecycle/preStop/httpGet/port",
    ] {
        assert_eq!(agent.pointer(pointer), Some(&json!(8002)), "{pointer}");
    }
    assert_eq!(agent["lifecycle"]["postStart"]["httpGet"]["port"], 8000, "another host");
    assert_eq!(
        named(&seen["spec"]["containers"], "authbridge-proxy")["ports"],
        json!([
            {"name": "reverse-proxy", "containerPort": 8000, "protocol": "TCP"},
            {"name": "http", "containerPort": 8000, "protocol": "TCP", "hostPort": 80, "hostIP": "10.0.0.1"},
            {"name": "forward-proxy", "containerPort": 8081, "protocol": "TCP"}])
    );
}

#[test]
fn every_allowing_answer_removes_the_scheduling_gate() {
    let gates = json!([{"name": "other"}, {"name": keys::SCHEDULING_GATE}]);
    for (label, value) in [(keys::LABEL_TYPE, "agent"), (keys::LABEL_INJECT, "disabled"), (keys::LABEL_TYPE, "none")] {
        let mut pod = labelled(&[(label, value)]);
        pod["spec"]["schedulingGates"] = gates.clone();
        assert_eq!(injected(&pod, &fixtures::snapshot())["spec"]["schedulingGates"], json!([{"name": "other"}]));
        pod["spec"]["schedulingGates"] = json!([{"name": keys::SCHEDULING_GATE}]);
        assert_eq!(injected(&pod, &fixtures::snapshot())["spec"].get("schedulingGates"), None);
    }
}

#[test]
fn a_runtime_configuration_above_64_kib_is_refused() {
    let snapshot = with(|resolved| resolved.runtime_base = json!({"pipeline": "x".repeat(70_000)}));
    assert_eq!(refusal(&fixtures::pod(), &snapshot).reason, Reason::RuntimeConfigTooLarge);
}

/// The API server takes 256 KiB of annotations of one object, ours included; what we wrote at an earlier call is not counted twice.
#[test]
fn annotations_that_leave_no_room_for_ours_are_refused() {
    let snapshot = fixtures::snapshot();
    let noted = |bytes: usize| annotated(&[("note", &"x".repeat(bytes))]);
    let total = |pod: &Value| {
        let annotations = pod["metadata"]["annotations"].as_object().unwrap();
        annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum::<usize>()
    };
    for mode in ["envoy-sidecar", "proxy-sidecar"] {
        let of_mode = |bytes: usize| {
            let mut pod = noted(bytes);
            pod["metadata"]["annotations"][keys::ANNOTATION_MODE] = json!(mode);
            pod
        };
        let most = 256 * 1024;
        let room = most - total(&injected(&of_mode(0), &snapshot));
        let seen = injected(&of_mode(room), &snapshot);
        assert_eq!(total(&seen), most, "{mode}");
        assert_eq!(skipped(&seen, &snapshot), Reason::AlreadyInjected, "{mode}");
        let denial = refusal(&of_mode(room + 1), &snapshot);
        assert_eq!((denial.code, denial.reason), (422, Reason::AnnotationsTooLarge), "{mode}");
        assert_eq!(denial.field.as_deref(), Some("metadata.annotations"), "{mode}");
        assert!(denial.remedy.contains("authbridge-runtime-config"), "{denial}");
        let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
        let needs = needs("team1", &workload, &of_mode(room + 1), &snapshot);
        assert_eq!((needs.enrolled, needs.reason), (true, Reason::AnnotationsTooLarge), "{mode}");
    }
}

/// Several names of ours are no chance: whoever renamed one container would be refused for the next.
#[test]
fn parts_of_another_injection_are_told_as_a_whole() {
    let mut pod = fixtures::pod();
    pod["spec"]["initContainers"] = json!([{"name": "proxy-init", "image": "i"}]);
    let alone = refusal(&pod, &fixtures::snapshot());
    assert!(alone.remedy.starts_with("rename the container"), "{alone}");
    pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "envoy-proxy", "image": "i"}));
    let denial = refusal(&pod, &fixtures::snapshot());
    assert_eq!(denial.reason, Reason::ContainerNameCollision);
    assert_eq!(denial.field.as_deref(), Some("spec.containers[1].name"));
    assert!(denial.sentence.contains("envoy-proxy, proxy-init"), "{denial}");
    assert!(denial.remedy.contains("take them out") && denial.remedy.contains("drawbridge doctor"), "{denial}");
}

#[test]
fn texts_that_look_like_something_else_stay_texts_in_the_runtime_configuration() {
    let odd = [
        "n",
        "yes",
        "0755",
        "1e3",
        "~",
        "null",
        "2024-01-01",
        "0x1F",
        "1_000",
        "",
        " a ",
        "a: b",
        "#",
        "${HOME}",
        "é\u{7f}\n\t",
    ];
    let base = json!({"pipeline": odd, "n": 18446744073709551615u64, "f": 0.5});
    let seen = runtime_config(&injected(&fixtures::pod(), &with(|resolved| resolved.runtime_base = base.clone())));
    assert_eq!((&seen["pipeline"], &seen["n"], &seen["f"]), (&base["pipeline"], &base["n"], &base["f"]));
}

#[test]
fn ownerless_pods_keep_their_service_account() {
    let mut pod = fixtures::pod();
    pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    assert_eq!(warned(&pod, &fixtures::snapshot()), [Reason::ServiceAccountKept]);
    assert_eq!(injected(&pod, &fixtures::snapshot())["spec"]["serviceAccountName"], "default");
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": true}]);
    let denial = refusal(&pod, &fixtures::snapshot());
    assert_eq!((denial.code, denial.reason), (409, Reason::OwnerPending));
}

#[test]
fn namespaces() {
    let label = |value: &str| {
        let value = Some(value.to_owned());
        fixtures::snapshot_with(|_| {}, move |view| view.enabled_label = value)
    };
    assert_eq!(fixtures::review_pod(&fixtures::pod(), &label("false")).reason, Reason::NamespaceOptedOut);
    let mut strict = fixtures::snapshot();
    strict.require_namespace_label = true;
    assert_eq!(fixtures::review_pod(&fixtures::pod(), &strict).reason, Reason::NamespaceNotEnrolled);
    let mut enrolled = label("true");
    enrolled.require_namespace_label = true;
    assert_eq!(fixtures::review_pod(&fixtures::pod(), &enrolled).reason, Reason::Injected);
    let mut own = fixtures::snapshot();
    own.view.operator_namespace = "team1".into();
    assert_eq!(fixtures::review_pod(&fixtures::pod(), &own).reason, Reason::SystemNamespace);
    let mut unknown = fixtures::snapshot();
    unknown.view.namespaces.clear();
    let mut pod = fixtures::pod();
    pod["spec"]["serviceAccountName"] = json!("own");
    assert_eq!(fixtures::review_pod(&pod, &unknown).reason, Reason::Injected, "the cluster's defaults apply");
}

/// Whoever wrote the value meant something by it.
#[test]
fn a_switch_of_the_namespace_that_switches_nothing_is_told() {
    let label = |value: &str| observing(|view| view.enabled_label = Some(value.to_owned()));
    let words = |verdict: &Verdict| verdict.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let off = label("False");
    let verdict = fixtures::review_pod(&fixtures::pod(), &off);
    assert_eq!((verdict.reason, warned(&fixtures::pod(), &off)), (Reason::Injected, vec![Reason::UnknownValue]));
    assert!(words(&verdict).contains("kubectl label namespace team1 kagenti-enabled=false --overwrite"), "{verdict:?}");
    let raw = serde_json::value::to_raw_value(&fixtures::pod()).unwrap();
    let tree = crate::admission::explain(&fixtures::request(&raw), &off).1;
    let line = tree.filters.iter().find(|line| line.name == "namespace label kagenti-enabled").unwrap();
    assert_eq!((&*line.seen, line.passed), ("\"False\", which is neither true nor false", true));
    let of_workload = fixtures::review(
        Phase::Validate,
        Operation::Create,
        ("apps", "Deployment"),
        &deployment(json!({"kagenti.io/type": "agent"})),
        &off,
    );
    assert!(words(&of_workload).contains("UnknownValue: label kagenti-enabled of namespace team1 is \"False\""));
    let mut on = label("True");
    on.require_namespace_label = true;
    let verdict = fixtures::review_pod(&fixtures::pod(), &on);
    assert_eq!(verdict.reason, Reason::NamespaceNotEnrolled);
    assert!(words(&verdict).contains("kagenti-enabled=true --overwrite"), "{verdict:?}");
    for (value, count) in [("true", 0), ("false", 0), ("off", 1)] {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team1", "labels": {"kagenti-enabled": value}}});
        let verdict =
            fixtures::review(Phase::Validate, Operation::Update, ("", "Namespace"), &namespace, &fixtures::snapshot());
        assert_eq!((verdict.allowed(), verdict.warnings.len()), (true, count), "{value}: {verdict:?}");
    }
}

#[test]
fn the_hash_follows_what_reaches_the_pod_and_nothing_else() {
    let hash = |pod: &Value, snapshot: &Snapshot| {
        injected(pod, snapshot)["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH].as_str().unwrap().to_owned()
    };
    let base = hash(&fixtures::pod(), &fixtures::snapshot());
    let mut grown = fixtures::pod();
    grown["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(8500);
    grown["metadata"]["annotations"] = json!({keys::ANNOTATION_CONFIG_HASH: "template's"});
    assert_eq!(hash(&grown, &fixtures::snapshot()), base);
    let unused = with(|resolved| resolved.images.authbridge_light.value = Some("other".to_owned()));
    assert_eq!(hash(&fixtures::pod(), &unused), base);
    let changes: [Snapshot; 5] = [
        with(|resolved| resolved.images.envoy_proxy.value = Some("other".to_owned())),
        with(|resolved| resolved.proxy.admin_port.value = 9999),
        with(|resolved| resolved.trace.endpoint.value = Some("http://e".to_owned())),
        fixtures::snapshot_with(
            |_| {},
            |view| {
                Arc::make_mut(view.authbridge_config.as_mut().unwrap())
                    .insert("EXPECTED_AUDIENCE".to_owned(), "x".to_owned());
            },
        ),
        fixtures::snapshot_with(
            |_| {},
            |view| {
                view.mounted.insert(keys::CONFIG_MAP_ENVOY, "digest".to_owned());
            },
        ),
    ];
    for change in changes {
        assert_ne!(hash(&fixtures::pod(), &change), base);
    }
}

fn deployment(template_labels: Value) -> Value {
    let mut template = fixtures::pod();
    template["metadata"] = json!({"labels": template_labels});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "weather-agent", "labels": {"kagenti.io/type": "agent"}},
        "spec": {"template": {"metadata": template["metadata"], "spec": template["spec"]}}})
}

#[test]
fn workloads_hear_the_decision_and_are_never_refused() {
    let snapshot = fixtures::snapshot_with(|_| {}, |view| view.service_accounts.clear());
    let heard = |object: &Value, kind: (&str, &str)| {
        let verdict = fixtures::review(Phase::Validate, Operation::Create, kind, object, &snapshot);
        assert_eq!(verdict.outcome, Outcome::Allow);
        let audited =
            verdict.audit.iter().filter(|(key, _)| *key == "decision").map(|(_, text)| format!("audit: {text}"));
        verdict.warnings.iter().map(ToString::to_string).chain(audited).collect::<Vec<_>>()
    };
    let agent = json!({"kagenti.io/type": "agent"});
    let said = heard(&deployment(agent.clone()), ("apps", "Deployment"));
    assert_eq!(said.len(), 1);
    assert_eq!(
        said[0],
        "audit: Pods of Deployment team1/weather-agent get proxy-init, envoy-proxy, spiffe-helper (mode envoy-sidecar, \
         built-in; ServiceAccount weather-agent)"
    );
    let mut refused = deployment(agent.clone());
    refused["spec"]["template"]["spec"]["hostNetwork"] = json!(true);
    assert!(
        heard(&refused, ("apps", "Deployment"))[0]
            .starts_with("HostNetwork: Pods of Deployment team1/weather-agent will be refused")
    );
    assert!(heard(&deployment(json!({})), ("apps", "Deployment"))[0].contains("its Pods roll once"));
    let cron = json!({"metadata": {"name": "nightly"}, "spec": {"jobTemplate": {"spec": deployment(agent)["spec"]}}});
    assert!(heard(&cron, ("batch", "CronJob"))[0].contains("Pods of CronJob team1/nightly get"));
    for junk in [json!(null), json!([]), json!({"spec": {"template": {"spec": []}}})] {
        assert_eq!(heard(&junk, ("apps", "StatefulSet")), Vec::<String>::new());
    }
}

#[test]
fn needs_of_a_workload() {
    let snapshot = fixtures::snapshot_with(|_| {}, |view| view.service_accounts.clear());
    let asked = |kind, pod: &Value| {
        let needs = needs("team1", &Workload { kind, name: "w".to_owned() }, pod, &snapshot);
        (needs.enrolled, needs.service_account, needs.config_hash.is_some(), needs.reason)
    };
    let dedicated = (true, Some("w".to_owned()), true, Reason::Injected);
    assert_eq!(asked(WorkloadKind::CronJob, &fixtures::pod()), dedicated);
    assert_eq!(asked(WorkloadKind::Unknown, &fixtures::pod()), (true, None, true, Reason::Injected));
    let opted_out = labelled(&[(keys::LABEL_INJECT, "disabled")]);
    assert_eq!(asked(WorkloadKind::Deployment, &opted_out), (false, None, false, Reason::OptedOut));
    assert_eq!(asked(WorkloadKind::Deployment, &json!([])), (false, None, false, Reason::Undecodable));
    let mut refused = fixtures::pod();
    refused["spec"]["hostNetwork"] = json!(true);
    assert_eq!(asked(WorkloadKind::Deployment, &refused), (true, None, false, Reason::HostNetwork));
}

/// A ReplicaSet answers for its Deployment, as its Pods do: who explains or applies one hears of their account, and of no other.
#[test]
fn a_replica_set_is_judged_as_its_pods_are() {
    let snapshot = fixtures::snapshot();
    let template = fixtures::pod();
    let maker = |kind, name: &str| Workload { kind, name: name.to_owned() };
    for (name, account) in [
        ("weather-agent-7d4f8b9c5", "weather-agent"),
        // Its template is of no Deployment of that name.
        ("weather-agent-other", "weather-agent-other"),
    ] {
        let needs = needs("team1", &maker(WorkloadKind::ReplicaSet, name), &template, &snapshot);
        assert_eq!(needs.service_account.as_deref(), Some(account), "{name}");
        let object = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
            "spec": {"template": template}});
        let kind = ("apps", "ReplicaSet");
        let audit = fixtures::review(Phase::Validate, Operation::Create, kind, &object, &snapshot).audit;
        assert!(audit.iter().any(|(_, text)| text.ends_with(&format!("; ServiceAccount {account})"))), "{audit:?}");
    }
    let named = needs("team1", &maker(WorkloadKind::Deployment, "weather-agent-7d4f8b9c5"), &template, &snapshot);
    assert_eq!(named.service_account.as_deref(), Some("weather-agent-7d4f8b9c5"), "a Deployment may have any name");
}

#[test]
fn explain_shows_filters_layers_and_parts() {
    let snapshot = with(|resolved| {
        let built_in = resolved.mode.clone();
        resolved.mode =
            built_in.over(crate::config::layers::Layer::PlatformFile, crate::domain::mode::Mode::Waypoint, |_| {
                String::new()
            });
    });
    let raw = serde_json::value::to_raw_value(&proxy_mode()).unwrap();
    let request = fixtures::request(&raw);
    let (verdict, tree) = crate::admission::explain(&request, &snapshot);
    assert_eq!(verdict, crate::admission::evaluate(&request, &snapshot));
    assert_eq!((tree.outcome.as_str(), tree.workload.as_deref()), ("injected", Some("Deployment/weather-agent")));
    assert!(tree.filters.iter().all(|filter| filter.passed));
    let mode = tree.fields.iter().find(|field| field.name == "mode").unwrap();
    assert_eq!((mode.value.as_str(), mode.layer.as_str()), ("proxy-sidecar", "Pod annotation"));
    assert_eq!((mode.shadowed[0].value.as_str(), mode.shadowed[0].layer.as_str()), ("waypoint", "platform file"));
    assert!(
        tree.parts.iter().any(|part| part.name == "authbridge-proxy" && part.detail == "REG/authbridge-light:latest")
    );
    assert!(tree.parts.iter().any(|part| part.detail == "spiffe://cluster.local/ns/team1/sa/weather-agent"));
    assert!(tree.edits.contains(&"agent: port 8000 moved to 8001".to_owned()), "{:?}", tree.edits);
}

#[test]
fn registration_says_what_it_cannot_do_without() {
    let without = |key: &'static str, value: Option<&'static str>, gates: fn(&mut Snapshot)| {
        let mut snapshot = observing(|view| {
            let config = Arc::make_mut(view.authbridge_config.as_mut().unwrap());
            config.remove(key);
            config.extend(value.map(|value| (key.to_owned(), value.to_owned())));
        });
        gates(&mut snapshot);
        let pod = labelled(&[(keys::LABEL_CLIENT_REGISTRATION, "true")]);
        let told: Vec<_> = fixtures::review_pod(&pod, &snapshot)
            .warnings
            .into_iter()
            .filter(|warning| warning.reason == Reason::RegistrationIncomplete)
            .map(|warning| warning.text)
            .collect();
        assert!(warned(&fixtures::pod(), &snapshot).is_empty(), "nobody registers");
        told
    };
    let as_is = |_: &mut Snapshot| {};
    let realm = without("KEYCLOAK_REALM", None, as_is);
    assert_eq!(realm.len(), 1);
    for part in ["team1/authbridge-config", "KEYCLOAK_REALM", "kagenti-client-registration does not start"] {
        assert!(realm[0].contains(part), "{realm:?}");
    }
    for (told, key) in [
        (without("KEYCLOAK_REALM", Some(""), as_is), "KEYCLOAK_REALM"),
        (without("KEYCLOAK_REALM", None, |s| s.gates.per_workload_config_resolution = true), "KEYCLOAK_REALM"),
        (without("KEYCLOAK_REALM", None, |s| s.gates.combined_sidecar = true), "KEYCLOAK_REALM"),
        (without("KEYCLOAK_URL", None, as_is), "KEYCLOAK_URL"),
    ] {
        assert!(
            told.len() == 1 && told[0].contains(key) && told[0].contains("no client can be registered"),
            "{told:?}"
        );
    }
    assert!(without("PLATFORM_CLIENT_IDS", None, as_is).is_empty());
}
