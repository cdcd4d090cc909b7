//! What `explain` says of addresses, proxies and probes, and what no golden can show.

use super::*;
use crate::config::layers::{Field, Layer};
use crate::domain::workload::{Workload, WorkloadKind};

/// The tree of the review of that Pod.
fn explained(pod: &Value, snapshot: &Snapshot) -> Explanation {
    let raw = serde_json::value::to_raw_value(pod).unwrap();
    crate::admission::explain(&fixtures::request(&raw), snapshot).1
}

#[test]
fn mend_07_explain_says_what_host_and_port_became() {
    let endpoint = |text: &str| Field { value: Some(text.to_owned()), layer: Layer::PlatformFile, shadowed: vec![] };
    for (written, shown) in
        [("otel:4317", "http://otel:4317 (written as otel:4317)"), ("https://otel.example", "https://otel.example")]
    {
        let snapshot = with(|resolved| resolved.trace.endpoint = endpoint(written));
        let tree = explained(&fixtures::pod(), &snapshot);
        let line = tree.fields.iter().find(|line| line.name == "trace.endpoint").unwrap();
        assert_eq!((line.value.as_str(), line.layer.as_str()), (shown, "platform file"));
        assert_eq!(
            tree.edits.iter().filter(|edit| edit.contains("OTEL_EXPORTER_OTLP_ENDPOINT=http")).count(),
            1,
            "{:?}",
            tree.edits
        );
    }
}

/// What stands in ConfigMaps and Secrets is not read here, so that whoever asks hears what may be hidden.
#[test]
fn mend_09_explain_names_the_sources_of_variables_that_count_less() {
    let told = |pod: &Value, snapshot: &Snapshot| {
        let edits = explained(pod, snapshot).edits;
        edits.into_iter().filter(|edit| edit.contains("envFrom")).collect::<Vec<_>>()
    };
    let plain = fixtures::snapshot();
    let traced = with(|resolved| resolved.trace.sampling_ratio.value = Some(0.5));
    for (sources, proxied, by_trace) in [
        (json!([]), None, None),
        (json!([{"secretRef": {"name": "corp"}}]), Some("(Secret corp)"), Some("(Secret corp)")),
        (json!([{"prefix": "APP_", "secretRef": {"name": "corp"}}]), None, None),
        (json!([{"prefix": "HTTP_", "configMapRef": {"name": "net"}}]), Some("(ConfigMap net)"), None),
        (
            json!([{"prefix": "OTEL_", "configMapRef": {"name": "otel"}}, {"prefix": "X", "secretRef": {"name": "corp"}}]),
            None,
            Some("(ConfigMap otel)"),
        ),
    ] {
        let (mut proxy, mut envoy) = (proxy_mode(), fixtures::pod());
        proxy["spec"]["containers"][0]["envFrom"] = sources.clone();
        envoy["spec"]["containers"][0]["envFrom"] = sources.clone();
        for (pod, snapshot, says) in [(&proxy, &plain, proxied), (&envoy, &traced, by_trace), (&envoy, &plain, None)] {
            let told = told(pod, snapshot);
            assert_eq!(told.len(), usize::from(says.is_some()), "{sources}: {told:?}");
            assert!(
                told.iter().all(|one| one.starts_with("agent: ") && one.contains(says.unwrap_or_default())),
                "{told:?}"
            );
        }
    }
}

#[test]
fn mend_09_a_proxys_password_is_repeated_nowhere_but_in_the_pod() {
    let mut pod = proxy_mode();
    pod["spec"]["containers"][0]["env"] = json!([{"name": "HTTP_PROXY", "value": "http://me:hunter2@corp:3128/x"}]);
    let seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(env(&seen, "containers", "agent", "http_proxy")["value"], "http://me:hunter2@corp:3128/x");
    let tree = serde_json::to_string(&explained(&pod, &fixtures::snapshot())).unwrap();
    assert!(tree.contains("http://…@corp:3128/x") && !tree.contains("hunter2"), "{tree}");
    let warnings = fixtures::review_pod(&pod, &fixtures::snapshot()).warnings;
    assert!(warnings[0].text.contains("http://…@corp:3128/x") && !warnings[0].text.contains("hunter2"), "{warnings:?}");
}

#[test]
fn mend_09_uninject_takes_both_spellings_back() {
    let mut pod = proxy_mode();
    pod["spec"]["containers"][0]["env"] = json!([
        {"name": "https_proxy", "valueFrom": {"secretKeyRef": {"name": "corp", "key": "url"}}},
        {"name": "NO_PROXY", "value": "internal"}]);
    let mut seen = injected(&pod, &fixtures::snapshot());
    assert_eq!(env(&seen, "containers", "agent", "HTTPS_PROXY")["valueFrom"]["secretKeyRef"]["name"], "corp");
    let taken_back = uninject(&seen);
    json_patch::patch(&mut seen, &taken_back).unwrap();
    assert_eq!(seen["spec"]["containers"][0]["env"], pod["spec"]["containers"][0]["env"]);
}

#[test]
fn mend_15_explain_names_the_probe_for_which_a_path_is_open() {
    let mut pod = fixtures::pod();
    pod["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"path": "/health", "port": "http"}});
    let tree = explained(&pod, &fixtures::snapshot());
    let part = tree.parts.iter().find(|part| part.kind == "openPath").unwrap();
    assert_eq!(
        (part.name.as_str(), part.detail.as_str()),
        ("/health", "without a token, for livenessProbe of container agent")
    );
    let seen = injected(&pod, &fixtures::snapshot());
    let plugin = &runtime_config(&seen)["pipeline"]["inbound"]["plugins"][0]["config"];
    assert_eq!(plugin["bypass_paths"], json!(["/.well-known/*", "/healthz", "/readyz", "/livez", "/health"]));
}

#[test]
fn mend_15_what_the_platform_closes_is_in_the_hash_and_what_a_pod_asks_is_not() {
    use crate::config::resolved::InboundExclusions;
    let workload = Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() };
    let hash = |pod: &Value, snapshot: &Snapshot| needs("team1", &workload, pod, snapshot).config_hash.unwrap();
    let mut probed = fixtures::pod();
    probed["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"path": "/health", "port": "http"}});
    let (open, closed) = (
        fixtures::snapshot(),
        with(|resolved| resolved.proxy.inbound_exclusions = Field::built_in(InboundExclusions::None)),
    );
    assert_eq!(hash(&probed, &open), hash(&fixtures::pod(), &open));
    assert_ne!(hash(&probed, &closed), hash(&probed, &open));
    let mut plain = proxy_mode();
    plain["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"path": "/", "port": "http"}});
    assert_eq!(hash(&plain, &closed), hash(&plain, &open), "nothing is redirected there");
}

/// What is passed over on the way through the envelope is read where it decides.
#[test]
fn mend_15_and_08_reviews_see_arguments_variables_and_affinity() {
    let snapshot = fixtures::snapshot();
    let mut fixed = proxy_mode();
    fixed["spec"]["containers"][0]["args"] = json!(["--port=8000"]);
    assert_eq!(fixtures::review_sent(&fixed, &snapshot).reason, Reason::PortFixed);
    let by_namespace = with(|resolved| resolved.mode.value = Mode::ProxySidecar);
    fixed["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(fixtures::review_sent(&fixed, &by_namespace).reason, Reason::PortFixed);
    let mut named = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar"), (keys::ANNOTATION_PORT_VARIABLE, "LISTEN")]);
    named["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "1"}, {"name": "LISTEN", "value": "8000"}]);
    let seen = fixtures::applied(&named, &fixtures::review_sent(&named, &snapshot));
    assert_eq!(seen["spec"]["containers"][0]["env"][1], json!({"name": "LISTEN", "value": "8001"}));
    assert_eq!(names(&seen["spec"]["containers"][0]["env"])[..2], ["A", "LISTEN"]);
    let mut windows = fixtures::pod();
    windows["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}]}}});
    assert_eq!(fixtures::review_sent(&windows, &snapshot).reason, Reason::WindowsPod);
}
