//! The AgentRuntime as the strongest layer, and cases 35 and 37 of the webhook (docs/cases.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::config::agent_runtime::Governors;
use crate::config::inputs::AgentRuntimeInput;
use crate::config::layers::Layer;
use crate::config::resolved::Resolved;
use crate::config::schema::Show;
use crate::config::view::Ownership;
use crate::domain::bounds::Over;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::workload::{Workload, WorkloadKind};

/// A snapshot in which these AgentRuntimes stand in the namespace of the Pod.
fn governed_over(configure: impl FnOnce(&mut Resolved), list: &[(&str, Value)]) -> Snapshot {
    let inputs: BTreeMap<Arc<str>, Arc<AgentRuntimeInput>> = list
        .iter()
        .map(|(name, spec)| {
            let object = json!({"metadata": {"uid": name, "creationTimestamp": "2026-05-01T00:00:00Z"}, "spec": spec});
            (Arc::from(*name), Arc::new(AgentRuntimeInput::of_object(&object)))
        })
        .collect();
    fixtures::snapshot_with(configure, |view| view.governors = Governors::of(&inputs))
}

/// An AgentRuntime of the fixture's Deployment that says this besides.
fn spec(more: Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"});
    let mut spec = json!({"type": "agent", "targetRef": target});
    json_patch::merge(&mut spec, &more);
    spec
}

fn governed(more: Value) -> Snapshot {
    governed_over(|_| {}, &[("weather", spec(more))])
}

/// What it says is not known, and without it a sidecar might let through what it forbids.
#[test]
fn mend_02_pods_of_an_agent_runtime_over_a_bound_are_refused_and_no_others() {
    let over = |target: &str| {
        let read = AgentRuntimeInput::of_spec(&spec(json!({"targetRef": {"name": target}})));
        let over = AgentRuntimeInput { target: read.target, over: Some(Over::Count), ..AgentRuntimeInput::default() };
        let inputs = BTreeMap::from([(Arc::from("late"), Arc::new(over))]);
        fixtures::snapshot_with(|_| {}, |view| view.governors = Governors::of(&inputs))
    };
    let denial = refusal(&fixtures::pod(), &over("weather-agent"));
    assert_eq!((denial.code, denial.reason), (422, Reason::ConfigUnknown));
    assert!(denial.sentence.starts_with("AgentRuntime team1/late is one too many"), "{}", denial.sentence);
    injected(&fixtures::pod(), &over("another"));
}

/// The variables of a container, in order.
fn env(container: &Value) -> Vec<(String, String)> {
    items(container, "env")
        .iter()
        .map(|entry| (text(entry, "name").to_owned(), text(entry, "value").to_owned()))
        .collect()
}

/// Codes and texts of the warnings.
fn said(pod: &Value, snapshot: &Snapshot) -> Vec<String> {
    fixtures::review_pod(pod, snapshot).warnings.iter().map(ToString::to_string).collect()
}

fn explained(pod: &Value, snapshot: &Snapshot) -> Explanation {
    let raw = serde_json::value::to_raw_value(pod).unwrap();
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "team1", "operation": "CREATE", "object": raw}});
    let bytes = serde_json::to_vec(&review).unwrap();
    let request = crate::api::review::parse(&bytes, crate::api::review::Phase::Mutate).unwrap();
    crate::admission::explain(&request, snapshot).1
}

#[test]
fn case_035_an_agent_runtime_that_says_nothing_more_changes_nothing() {
    let pod = fixtures::pod();
    assert_eq!(injected(&pod, &governed(json!({}))), injected(&pod, &fixtures::snapshot()));
    assert_eq!(said(&pod, &governed(json!({}))), said(&pod, &fixtures::snapshot()));
}

#[test]
fn case_037_an_agent_runtime_of_another_workload_changes_nothing() {
    let other = |target: Value| spec(json!({"authBridgeMode": "proxy-sidecar", "targetRef": target}));
    for target in [
        json!({"name": "other"}),
        json!({"kind": "StatefulSet"}),
        json!({"kind": "Sandbox", "apiVersion": "agents.x-k8s.io/v1alpha1"}),
    ] {
        let snapshot = governed_over(|_| {}, &[("weather", other(target.clone()))]);
        assert_eq!(
            injected(&fixtures::pod(), &snapshot),
            injected(&fixtures::pod(), &fixtures::snapshot()),
            "{target}"
        );
    }
}

#[test]
fn its_mode_wins_over_annotation_and_namespace_and_says_so() {
    let snapshot = governed_over(
        |resolved| {
            resolved.mode = resolved
                .mode
                .clone()
                .over(Layer::NamespaceRuntimeConfig, Mode::Waypoint, |mode| mode.as_str().to_owned());
        },
        &[("weather", spec(json!({"authBridgeMode": "proxy-sidecar"})))],
    );
    let pod = annotated(&[(keys::ANNOTATION_MODE, "envoy-sidecar")]);
    assert!(names(&injected(&pod, &snapshot)["spec"]["containers"]).contains(&keys::CONTAINER_AUTHBRIDGE_PROXY));
    let said = said(&pod, &snapshot);
    let overridden =
        "ValueShadowed: mode envoy-sidecar from Pod annotation is overridden by AgentRuntime weather: proxy-sidecar";
    assert!(said.iter().any(|warning| warning == overridden), "{said:?}");
    let tree = explained(&pod, &snapshot);
    let mode = &tree.fields[0];
    assert_eq!((&*mode.name, &*mode.value, &*mode.layer), ("mode", "proxy-sidecar", "AgentRuntime weather"));
    let lost: Vec<_> = mode.shadowed.iter().map(|lost| (&*lost.layer, &*lost.value)).collect();
    assert_eq!(lost, [("ConfigMap authbridge-runtime-config", "waypoint"), ("Pod annotation", "envoy-sidecar")]);
}

#[test]
fn a_mode_without_a_plan_leaves_the_layer_below_in_force() {
    let pod = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar")]);
    let snapshot = governed(json!({"authBridgeMode": "lite"}));
    assert!(names(&injected(&pod, &snapshot)["spec"]["containers"]).contains(&keys::CONTAINER_AUTHBRIDGE_PROXY));
    let said = said(&pod, &snapshot);
    assert!(
        said[0].starts_with("ModeNotAvailable: AgentRuntime weather asks for mode lite")
            && said[0].contains("proxy-sidecar from Pod annotation is used"),
        "{said:?}"
    );
}

#[test]
fn its_trace_reaches_regular_containers_and_lasting_sidecars_variable_by_variable() {
    let snapshot = governed_over(
        |resolved| {
            let below = resolved.trace.endpoint.clone();
            resolved.trace.endpoint =
                below.over(Layer::PlatformFile, Some("http://platform".to_owned()), |_| String::new());
        },
        &[(
            "weather",
            spec(json!({"trace": {"endpoint": "http://otel:4318", "protocol": "http", "sampling": {"rate": 0}}})),
        )],
    );
    let mut pod = fixtures::pod();
    pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "second", "image": "i", "env": [
        {"name": "OTEL_TRACES_SAMPLER", "value": "always_on"}]}));
    pod["spec"]["initContainers"] = json!([
        {"name": "log", "image": "i", "restartPolicy": "Always", "env": [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "own"}]},
        {"name": "once", "image": "i"},
    ]);
    let out = injected(&pod, &snapshot);
    let all = |list: &str, name: &str| {
        let container = named(&out["spec"][list], name).clone();
        env(&container).into_iter().filter(|(name, _)| name.starts_with("OTEL_")).collect::<Vec<_>>()
    };
    let own = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    let four = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0"),
    ];
    assert_eq!(all("containers", "agent"), own(&four));
    assert_eq!(
        all("containers", "second"),
        own(&[("OTEL_TRACES_SAMPLER", "always_on"), four[0], four[1], four[3]]),
        "what a container sets stays, the rest is added"
    );
    assert_eq!(all("initContainers", "log"), own(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "own"), four[1], four[2], four[3]]));
    assert_eq!(all("initContainers", "once"), [], "it is over before the agent starts");
    assert_eq!(all("initContainers", keys::CONTAINER_ENVOY), []);
    let said = said(&pod, &snapshot);
    assert!(said.iter().any(|warning| warning == "ValueShadowed: trace.endpoint http://platform from platform file is overridden by AgentRuntime weather: http://otel:4318"), "{said:?}");
    assert_eq!(fixtures::review_pod(&out, &snapshot).reason, Reason::AlreadyInjected);
    let mut back = out.clone();
    json_patch::patch(&mut back, &uninject(&out)).unwrap();
    assert_eq!(back, pod, "uninject takes out exactly what was added");
    // The variables of an AgentRuntime that is gone go at the next call.
    let plain = injected(&out, &fixtures::snapshot());
    assert_eq!(env(named(&plain["spec"]["initContainers"], "log")), own(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "own")]));
}

#[test]
fn its_trust_domain_shapes_the_id_that_is_shown_and_not_the_pod() {
    let pod = fixtures::pod();
    let snapshot = governed(json!({"identity": {"spiffe": {"trustDomain": "custom.example.com"}}}));
    assert_eq!(injected(&pod, &snapshot), injected(&pod, &fixtures::snapshot()));
    let id = |pod: &Value, snapshot: &Snapshot, kind: &str| {
        let part = explained(pod, snapshot).parts.into_iter().find(|part| part.kind == kind).unwrap();
        if kind == "spiffeId" { part.name } else { part.detail }
    };
    assert_eq!(id(&pod, &snapshot, "serviceAccount"), "spiffe://custom.example.com/ns/team1/sa/weather-agent");
    assert_eq!(id(&pod, &fixtures::snapshot(), "serviceAccount"), "spiffe://cluster.local/ns/team1/sa/weather-agent");
    let mut own = pod.clone();
    own["spec"]["serviceAccountName"] = json!("own");
    assert_eq!(id(&own, &snapshot, "spiffeId"), "spiffe://custom.example.com/ns/team1/sa/own");
    // What a card's signature is held against is what is shown here.
    let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
    let runs_as = |pod: &Value, snapshot: &Snapshot| runs_as("team1", &workload, pod, snapshot).unwrap();
    assert_eq!(runs_as(&pod, &snapshot).spiffe_id(), id(&pod, &snapshot, "serviceAccount"));
    assert_eq!(runs_as(&own, &snapshot).spiffe_id(), id(&own, &snapshot, "spiffeId"));
    assert_eq!(runs_as(&pod, &fixtures::snapshot()).account, "weather-agent");
    // Left alone by us it keeps the account that it names; its trust domain is the namespace's.
    let mut alone = pod.clone();
    alone["metadata"]["labels"]["kagenti.io/inject"] = json!("disabled");
    assert_eq!(runs_as(&alone, &snapshot).spiffe_id(), "spiffe://cluster.local/ns/team1/sa/default");
    // Refused at the moment (its ServiceAccount is somebody else's): what runs still runs as before.
    let foreign = fixtures::snapshot_with(
        |_| {},
        |view| view.service_accounts = [(Arc::from("weather-agent"), Ownership::Foreign)].into(),
    );
    assert!(!fixtures::review_pod(&pod, &foreign).allowed());
    assert_eq!(runs_as(&pod, &foreign).account, "weather-agent");
}

#[test]
fn the_label_decides_what_a_pod_is() {
    let snapshot = governed(json!({"type": "tool"}));
    assert_eq!(fixtures::review_pod(&fixtures::pod(), &snapshot).reason, Reason::Injected);
    assert!(said(&fixtures::pod(), &snapshot)[0].starts_with("TypeMismatch: AgentRuntime weather says type tool"));
}

#[test]
fn a_wrong_field_is_named_and_the_others_work() {
    let snapshot = governed(json!({"trace": {"protocol": "udp", "endpoint": "http://otel"}}));
    let said = said(&fixtures::pod(), &snapshot);
    assert!(
        said[0].starts_with("InvalidSpec: AgentRuntime weather, spec.trace.protocol: grpc or http is expected (udp)"),
        "{said:?}"
    );
    let out = injected(&fixtures::pod(), &snapshot);
    assert!(
        env(named(&out["spec"]["containers"], "agent"))
            .contains(&("OTEL_EXPORTER_OTLP_ENDPOINT".to_owned(), "http://otel".to_owned()))
    );
}

#[test]
fn pods_of_every_target_kind_find_their_agent_runtime() {
    for (kind, api_version) in
        [("StatefulSet", "apps/v1"), ("DaemonSet", "apps/v1"), ("Sandbox", "agents.x-k8s.io/v1alpha1")]
    {
        let target = json!({"kind": kind, "apiVersion": api_version, "name": "w"});
        let snapshot =
            governed_over(|_| {}, &[("x", spec(json!({"authBridgeMode": "waypoint", "targetRef": target})))]);
        let mut pod = fixtures::pod();
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": api_version, "kind": kind, "name": "w", "uid": "1", "controller": true}]);
        assert_eq!(fixtures::review_pod(&pod, &snapshot).reason, Reason::ModeWaypoint, "{kind}");
    }
    let target = json!({"kind": "CronJob", "apiVersion": "batch/v1", "name": "nightly"});
    let mut snapshot = governed_over(
        |resolved| resolved.mode.value = Mode::Waypoint,
        &[("x", spec(json!({"authBridgeMode": "envoy-sidecar", "targetRef": target})))],
    );
    let mut pod = fixtures::pod();
    pod["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "nightly-1", "uid": "7", "controller": true}]);
    assert_eq!(refusal(&pod, &snapshot).reason, Reason::OwnerPending, "its CronJob may be governed");
    let workload = Workload { kind: WorkloadKind::CronJob, name: "nightly".to_owned() };
    let mut view = snapshot.namespace("team1").unwrap().as_ref().clone();
    let job = crate::config::view::JobOwner { uid: "7".into(), workload };
    view.jobs.insert("nightly-1".into(), Arc::new(job));
    view.service_accounts.insert("nightly".into(), crate::config::view::Ownership::Ours);
    snapshot.view.namespaces.insert("team1".into(), Arc::new(view));
    assert_eq!(fixtures::review_pod(&pod, &snapshot).reason, Reason::Injected);
}

#[test]
fn a_template_gets_the_type_of_its_agent_runtime_unless_it_says_its_own() {
    let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
    let snapshot = governed(json!({"type": "tool"}));
    let label = |template: &Value, snapshot: &Snapshot| {
        governed_template("team1", &workload, template, snapshot).pointer("/metadata/labels/kagenti.io~1type").cloned()
    };
    for bare in [json!({}), json!({"metadata": null}), json!({"metadata": {"labels": {"a": "b"}}})] {
        assert_eq!(label(&bare, &snapshot), Some(json!("tool")), "{bare}");
        assert_eq!(label(&bare, &fixtures::snapshot()), None);
    }
    assert_eq!(label(&json!({"metadata": {"labels": {"kagenti.io/type": "agent"}}}), &snapshot), Some(json!("agent")));
    for odd in [json!([]), json!({"metadata": []}), json!({"metadata": {"labels": 1}})] {
        assert_eq!(*governed_template("team1", &workload, &odd, &snapshot), odd);
    }
}

#[test]
fn the_status_says_what_is_in_force_and_who_set_it() {
    let snapshot = governed(json!({
        "authBridgeMode": "proxy-sidecar",
        "trace": {"sampling": {"rate": 0.5}},
        "identity": {"spiffe": {"trustDomain": "custom.example.com"}}
    }));
    let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
    let pod = annotated(&[(keys::ANNOTATION_MODE, "waypoint")]);
    let status = serde_json::to_value(in_force("team1", &workload, &pod, &snapshot)).unwrap();
    assert_eq!(
        status,
        json!({
            "mode": "proxy-sidecar",
            "spiffeID": "spiffe://custom.example.com/ns/team1/sa/weather-agent",
            "values": [
                {"field": "mode", "value": "proxy-sidecar", "from": "AgentRuntime weather",
                 "shadowed": [{"from": "Pod annotation", "value": "waypoint"}]},
                {"field": "spiffe.trustDomain", "value": "custom.example.com", "from": "AgentRuntime weather"},
                {"field": "trace.samplingRatio", "value": "0.5", "from": "AgentRuntime weather"},
            ]
        })
    );
    let plain = in_force("team1", &workload, &fixtures::pod(), &fixtures::snapshot()).unwrap();
    assert_eq!((plain.mode.as_deref(), plain.values), (Some("envoy-sidecar"), Vec::new()));
}

/// What an address has before its host is for the Pod.
#[test]
fn a_password_in_an_address_is_repeated_nowhere_but_in_the_pod() {
    let address = |user: &str, place: &str| format!("http://{user}:hunter2@{place}");
    let below = || Layer::NamespaceDefaults("team".into());
    let snapshot = governed_over(
        |resolved| {
            let endpoint = Some(address("theirs", "otel:4318"));
            resolved.trace.endpoint = resolved.trace.endpoint.clone().over(below(), endpoint, Show::show);
            let tokens = &mut resolved.token_exchange;
            tokens.token_url = tokens.token_url.clone().over(below(), address("tokens", "idp/token"), Show::show);
        },
        &[("weather", spec(json!({"trace": {"endpoint": address("mine", "otel:4318")}})))],
    );
    let pod = fixtures::pod();
    let seen = injected(&pod, &snapshot).to_string();
    for told in ["http://mine:hunter2@otel:4318", "http://tokens:hunter2@idp/token"] {
        assert!(seen.contains(told), "{seen}");
    }
    let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
    let status = serde_json::to_string(&in_force("team1", &workload, &pod, &snapshot)).unwrap();
    let tree = serde_json::to_string(&explained(&pod, &snapshot)).unwrap();
    for text in [said(&pod, &snapshot).join("\n"), tree, status] {
        assert!(text.contains("http://…@otel:4318") && !text.contains("hunter2"), "{text}");
    }
}
