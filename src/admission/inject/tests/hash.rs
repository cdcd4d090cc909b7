//! The configuration hash: one for a template and all its Pods, and a new one exactly when the injected result is new.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::config::resolved::{NativeSidecars, Resolved, SpireSwitch, TraceProtocol};
use crate::config::view::{NamespaceView, Ownership};
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::store::{Kind, What, change_of};

fn deployment() -> Workload {
    Workload { kind: WorkloadKind::Deployment, name: "weather-agent".to_owned() }
}

/// The template of a Deployment, as a user writes it.
fn template(mode: Option<&str>, env: &[&str], labels: &[(&str, &str)], sidecar: bool) -> Value {
    let env: Vec<_> = env.iter().map(|name| json!({"name": name, "value": "own"})).collect();
    let mut template = json!({
        "metadata": {"labels": {"kagenti.io/type": "agent", "app": "weather"}},
        "spec": {"containers": [{"name": "agent", "image": "i", "ports": [{"containerPort": 8000}], "env": env}]}
    });
    for (key, value) in labels {
        template["metadata"]["labels"][*key] = json!(value);
    }
    if let Some(mode) = mode {
        template["metadata"]["annotations"] = json!({keys::ANNOTATION_MODE: mode});
    }
    if sidecar {
        template["spec"]["initContainers"] =
            json!([{"name": "log", "image": "i", "restartPolicy": "Always"}, {"name": "once", "image": "i"}]);
    }
    template
}

/// What the API server notes about the containers of a request.
fn note(spec: &Value) -> Value {
    let mut fields = json!({});
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            let mut own = json!({".": {}, "f:image": {}, "f:name": {}});
            for variable in items(container, "env") {
                own["f:env"][format!(r#"k:{{"name":"{}"}}"#, text(variable, "name"))] = json!({".": {}, "f:name": {}});
            }
            fields[format!("f:{list}")][format!(r#"k:{{"name":"{}"}}"#, text(container, "name"))] = own;
        }
    }
    json!([{"manager": "kube-controller-manager", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}])
}

/// A Pod of that template as it comes to us: made by the ReplicaSet controller, defaulted, with the token's volume, and with
/// what other webhooks added.
fn pod_of(template: &Value, others: bool) -> Value {
    let mut pod = template.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    let metadata = &mut pod["metadata"];
    metadata["generateName"] = json!("weather-agent-7d4f8b9c5-");
    metadata["namespace"] = json!("team1");
    metadata["labels"]["pod-template-hash"] = json!("7d4f8b9c5");
    metadata["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "weather-agent-7d4f8b9c5", "uid": "1", "controller": true}]);
    metadata["managedFields"] = note(&template["spec"]);
    let spec = &mut pod["spec"];
    spec["restartPolicy"] = json!("Always");
    spec["serviceAccountName"] = json!("default");
    spec["serviceAccount"] = json!("default");
    spec["securityContext"] = json!({});
    spec["tolerations"] = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]);
    spec["volumes"] = json!([{"name": "kube-api-access-x", "projected": {"sources": []}}]);
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container["imagePullPolicy"] = json!("IfNotPresent");
            container["volumeMounts"] = json!([{"name": "kube-api-access-x", "mountPath": "/var/run/secrets"}]);
        }
    }
    if others {
        pod["metadata"]["annotations"]["sidecar.istio.io/status"] = json!("{}");
        let containers = pod["spec"]["containers"].as_array_mut().unwrap();
        containers[0]["env"]
            .as_array_mut()
            .unwrap()
            .push(json!({"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "theirs"}));
        containers.push(json!({"name": "istio-proxy", "image": "i", "ports": [{"containerPort": 8081}]}));
    }
    pod
}

/// One change of the world; most Pods do not care about most of them.
#[derive(Debug, Clone, Copy)]
enum Change {
    Field(fn(&mut Resolved)),
    Key(&'static str, Option<&'static str>),
    Mounted(&'static str),
    Snapshot(fn(&mut Snapshot)),
}

const CHANGES: &[Change] = &[
    Change::Field(|r| r.mode.value = Mode::ProxySidecar),
    Change::Field(|r| r.mode.value = Mode::Waypoint),
    Change::Field(|r| r.images.envoy_proxy.value = Some("new".to_owned())),
    Change::Field(|r| r.images.authbridge_light.value = Some("new".to_owned())),
    Change::Field(|r| r.images.proxy_init.value = Some("new".to_owned())),
    Change::Field(|r| r.images.spiffe_helper.value = Some("new".to_owned())),
    Change::Field(|r| r.images.client_registration.value = Some("new".to_owned())),
    Change::Field(|r| r.images.authbridge.value = Some("new".to_owned())),
    Change::Field(|r| r.images.pull_policy.value = "Always".to_owned()),
    Change::Field(|r| r.proxy.port.value = 16001),
    Change::Field(|r| r.proxy.inbound_port.value = 16002),
    Change::Field(|r| r.proxy.admin_port.value = 16003),
    Change::Field(|r| r.proxy.uid.value = 1444),
    Change::Field(|r| r.resources.envoy_proxy.value = json!({"limits": {"cpu": "1"}})),
    Change::Field(|r| r.resources.spiffe_helper.value = json!({"limits": {"cpu": "1"}})),
    Change::Field(|r| r.resources.authbridge.value = json!({})),
    Change::Field(|r| r.trust_domain.value = "elsewhere".to_owned()),
    Change::Field(|r| r.spire.value = SpireSwitch::Disabled),
    Change::Field(|r| r.native_sidecars.value = NativeSidecars::Disabled),
    Change::Field(|r| r.token_exchange.token_url.value = "http://t".to_owned()),
    Change::Field(|r| r.token_exchange.default_audience.value = "kagenti".to_owned()),
    Change::Field(|r| r.trace.endpoint.value = Some("http://otel:4317".to_owned())),
    Change::Field(|r| r.trace.protocol.value = Some(TraceProtocol::Http)),
    Change::Field(|r| r.trace.sampling_ratio.value = Some(0.0)),
    Change::Field(|r| r.runtime_base = json!({"mode": "waypoint"})),
    Change::Field(|r| r.runtime_base = json!({"pipeline": null})),
    Change::Field(|r| r.runtime_base = json!({"pipeline": {"inbound": {}}})),
    Change::Field(|r| r.runtime_base = json!({"listener": {"forward_proxy_addr": ":1"}})),
    Change::Field(|r| r.runtime_base = json!({"listener": {"forward_proxy_addr": ":1", "idle": 5}})),
    Change::Field(|r| r.runtime_base = json!({"listener": []})),
    Change::Key("ISSUER", None),
    Change::Key("ISSUER", Some("")),
    Change::Key("ISSUER", Some("http://other")),
    Change::Key("TOKEN_URL", Some("http://t")),
    Change::Key("TARGET_AUDIENCE", Some("kagenti")),
    Change::Key("PLATFORM_CLIENT_IDS", Some("a,b")),
    Change::Key("CLIENT_AUTH_TYPE", Some("federated-jwt")),
    Change::Key("DEFAULT_OUTBOUND_POLICY", Some("")),
    Change::Key("NOBODY_READS_THIS", Some("x")),
    Change::Mounted(keys::CONFIG_MAP_ENVOY),
    Change::Mounted(keys::CONFIG_MAP_ROUTES),
    Change::Mounted(keys::CONFIG_MAP_SPIFFE_HELPER),
    Change::Snapshot(|s| s.view.spiffe_driver = false),
    Change::Snapshot(|s| s.view.server_version = (1, 28)),
    Change::Snapshot(|s| s.gates.per_workload_config_resolution = true),
    Change::Snapshot(|s| s.gates.combined_sidecar = true),
    Change::Snapshot(|s| s.gates.client_registration = false),
    Change::Snapshot(|s| s.gates.inject_tools = true),
    Change::Snapshot(|s| s.gates.envoy_proxy = false),
];

fn world(changes: &[Change]) -> Snapshot {
    let configure = |resolved: &mut Resolved| {
        for change in changes {
            if let Change::Field(set) = change {
                set(resolved)
            }
        }
    };
    let observe = |view: &mut NamespaceView| {
        let config = Arc::make_mut(view.authbridge_config.as_mut().unwrap());
        for change in changes {
            match change {
                Change::Key(key, Some(value)) => drop(config.insert((*key).to_owned(), (*value).to_owned())),
                Change::Key(key, None) => drop(config.remove(*key)),
                Change::Mounted(name) => drop(view.mounted.insert(name, "changed".to_owned())),
                Change::Field(_) | Change::Snapshot(_) => {}
            }
        }
        view.service_accounts = [(Arc::from("weather-agent"), Ownership::Ours)].into();
    };
    let mut snapshot = fixtures::snapshot_with(configure, observe);
    for change in changes {
        if let Change::Snapshot(set) = change {
            set(&mut snapshot)
        }
    }
    snapshot
}

/// Everything a Pod gets: the Pod itself, what its references come to, and what it mounts.
fn result(pod: &Value, snapshot: &Snapshot) -> Option<Value> {
    let verdict = fixtures::review_pod(pod, snapshot);
    if verdict.reason != Reason::Injected {
        return None;
    }
    let mut injected = fixtures::applied(pod, &verdict);
    let annotations = injected["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove(keys::ANNOTATION_CONFIG_HASH);
    annotations.remove(keys::ANNOTATION_STATUS);
    let view = snapshot.namespace("team1").unwrap();
    let mut behind = Vec::new();
    for container in items(&injected["spec"], "containers").iter().chain(items(&injected["spec"], "initContainers")) {
        for variable in items(container, "env") {
            if let Some(key) = variable.pointer("/valueFrom/configMapKeyRef/key").and_then(Value::as_str) {
                behind.push(json!([key, view.authbridge_config.as_ref().and_then(|data| data.get(key))]));
            }
        }
    }
    for volume in items(&injected["spec"], "volumes") {
        if let Some(name) = volume.pointer("/configMap/name").and_then(Value::as_str) {
            behind.push(json!([name, view.mounted.get(name)]));
        }
    }
    Some(json!([injected, behind]))
}

/// What controllers read of a template.
fn kept(template: &Value) -> Value {
    let object = json!({"metadata": {"name": "weather-agent", "namespace": "team1"}, "spec": {"template": template}});
    let change = change_of(Kind::Deployment, &object.to_string()).unwrap();
    match &change.now.unwrap().what {
        What::Workload(seen) => seen.template.as_ref().unwrap().value(),
        other => panic!("{other:?}"),
    }
}

prop_compose! {
    fn any_template()(
        mode in select(vec![None, None, Some("proxy-sidecar")]),
        env in subsequence(vec!["PORT", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"], 0..=5),
        labels in subsequence(vec![(keys::LABEL_ENVOY_PROXY, "false"), (keys::LABEL_SPIFFE_HELPER, "false"), (keys::LABEL_CLIENT_REGISTRATION, "true")], 0..=2),
        sidecar in any::<bool>(),
    ) -> Value {
        template(mode, &env, &labels, sidecar)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_template_and_its_pods_have_one_hash(template in any_template(), changes in vec(select(CHANGES), 0..6), others in any::<bool>()) {
        let snapshot = world(&changes);
        let needs = needs("team1", &deployment(), &template, &snapshot);
        let pod = pod_of(&template, others);
        let injected = injected(&pod, &snapshot);
        let stamp = |pod: &Value| pod["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH].as_str().map(str::to_owned);
        prop_assert_eq!(&stamp(&injected), &needs.config_hash, "{:?}", needs.reason);
        // Other webhooks run, the API server asks again: the stamp stays.
        let mut again = injected.clone();
        again["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "late", "image": "i"}));
        if needs.config_hash.is_some() {
            prop_assert_eq!(stamp(&super::injected(&again, &snapshot)), needs.config_hash);
        }
    }

    /// Controllers do not read the whole template.
    #[test]
    fn what_is_kept_of_a_template_asks_for_what_the_whole_one_does(
        template in any_template(), own_signer in any::<bool>(), changes in vec(select(CHANGES), 0..6),
    ) {
        let mut template = template;
        template["metadata"]["annotations"][keys::ANNOTATION_SIGN] = json!("true");
        if own_signer {
            let mut inits = items(&template["spec"], "initContainers").to_vec();
            inits.push(json!({"name": keys::CONTAINER_SIGNER, "image": "i"}));
            template["spec"]["initContainers"] = json!(inits);
        }
        let snapshot = world(&changes);
        let asks = |template: &Value| needs("team1", &deployment(), template, &snapshot);
        prop_assert_eq!(asks(&kept(&template)), asks(&template));
    }

    #[test]
    fn the_hash_changes_exactly_when_the_result_does(
        template in any_template(), before in vec(select(CHANGES), 0..5), added in vec(select(CHANGES), 1..3),
    ) {
        let after: Vec<_> = before.iter().chain(&added).copied().collect();
        let (before, after) = (world(&before), world(&after));
        let pod = pod_of(&template, false);
        let hash = |snapshot: &Snapshot| needs("team1", &deployment(), &template, snapshot).config_hash;
        let same = result(&pod, &before) == result(&pod, &after);
        prop_assert_eq!(hash(&before) == hash(&after), same, "added {:?}", added);
    }
}

#[test]
fn the_hash_of_a_version_is_the_hash_of_every_version() {
    // Written down once: a binary that gives another value would roll every enrolled workload at its upgrade.
    let hash = |annotation| {
        let mut pod = fixtures::pod();
        if let Some(mode) = annotation {
            pod["metadata"]["annotations"] = json!({keys::ANNOTATION_MODE: mode});
        }
        needs("team1", &deployment(), &pod, &fixtures::snapshot()).config_hash.unwrap()
    };
    assert_eq!(
        [hash(None), hash(Some("proxy-sidecar"))],
        [
            "f4b201ad1dc2241cceb979645f97ff2ff4439f9cf76e23d56888c2e5e8c9447d",
            "7d81c477bbbd03f307132357598ad1c1f57fa28f1c2d0755b746599504989281"
        ]
    );
}

#[test]
fn a_namespace_that_nobody_knows_yet_gives_the_hash_it_will_have() {
    let images = "images: {envoyProxy: e, proxyInit: p, spiffeHelper: s, clientRegistration: c}";
    let platform = crate::config::schema::Platform::parse(images, "config.yaml").unwrap();
    let mut snapshot = fixtures::snapshot();
    snapshot.view.namespaces.clear();
    let snapshot = Snapshot::new(&platform, snapshot.gates, snapshot.view);
    let mut known = snapshot.clone();
    let view = crate::config::view::namespace_view(
        &platform,
        "team1",
        &crate::config::inputs::NamespaceInputs::default(),
        None,
    );
    known.view.namespaces.insert("team1".into(), Arc::new(view));
    let template = template(None, &[], &[], false);
    let hash = |snapshot| needs("team1", &deployment(), &template, snapshot).config_hash;
    assert!(hash(&known).is_some());
    assert_eq!(hash(&snapshot), hash(&known));
}

/// A namespace with its ConfigMaps: name, whether it is labelled as defaults, `config.yaml`.
type Place<'a> = (&'a str, &'a [(&'a str, bool, &'a str)]);

#[test]
fn case_106_a_label_only_workload_has_a_new_hash_when_a_change_reaches_it() {
    use crate::config::inputs::{ConfigMapInput, NamespaceInputs};
    use crate::config::schema::Platform;
    use crate::config::view::namespace_view;
    let images = "images: {envoyProxy: e, proxyInit: p, spiffeHelper: s, clientRegistration: c}\n";
    let hash = |platform: &str, namespaces: &[Place<'_>]| {
        let platform = Platform::parse(&format!("{images}{platform}"), "config.yaml").unwrap();
        let mut view = fixtures::snapshot().view;
        view.namespaces.clear();
        for (namespace, config_maps) in namespaces {
            let mut inputs = NamespaceInputs::default();
            for (name, is_defaults, text) in *config_maps {
                let data = [("config.yaml".to_owned(), (*text).to_owned())].into();
                inputs.config_maps.insert(
                    (*name).to_owned(),
                    ConfigMapInput { is_defaults: *is_defaults, kept: false, data, ..ConfigMapInput::default() },
                );
            }
            view.namespaces.insert((*namespace).into(), Arc::new(namespace_view(&platform, namespace, &inputs, None)));
        }
        let snapshot = Snapshot::new(&platform, fixtures::snapshot().gates, view);
        needs("team1", &deployment(), &template(None, &[], &[], false), &snapshot).config_hash
    };
    let base = hash("", &[("team1", &[])]);
    assert!(base.is_some());
    let defaults = "resources: {envoyProxy: {limits: {cpu: '2'}}}";
    assert_ne!(hash("", &[("team1", &[("d", true, defaults)])]), base, "defaults of the namespace");
    assert_eq!(hash("", &[("team1", &[])]), base, "and back, when they are deleted");
    assert_ne!(hash(defaults, &[("team1", &[])]), base, "the platform file");
    assert_eq!(hash("", &[("team1", &[("d", false, defaults)])]), base, "an irrelevant ConfigMap");
    assert_eq!(hash("", &[("team1", &[]), ("team2", &[("d", true, defaults)])]), base, "another namespace");
    for unreadable in ["{a: [", "- a", "&a [*a]", "a: &a [1,1]\nb: &b [*a,*a]\nc: [*b,*b]"] {
        assert_eq!(hash("", &[("team1", &[("d", true, unreadable)])]), base, "what cannot be read: {unreadable}");
    }
    let large = format!("# {}", "x".repeat(1 << 20));
    // Not as the case has it: what is over the bounds is not read, and nobody rolls by a guess of what it says.
    assert_eq!(hash("", &[("team1", &[("d", true, &large)])]), None, "a mebibyte of nothing");
}
