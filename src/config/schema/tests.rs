//! Every key has an effect, every fault a line and a field.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

mod builds;
mod cards;
mod kaos;

use super::keys::{KEYS, key};
use super::{OnUpgrade, Platform, Repair};
use crate::config::defaults::config_map_data;
use crate::config::enrolment::WorkloadLabels;
use crate::config::inputs::{ConfigMapInput, NamespaceInputs};
use crate::config::layers::Layer;
use crate::config::resolved::Resolved;
use crate::config::view::namespace_view;
use crate::domain::reason::Reason;

fn read(text: &str) -> Platform {
    Platform::parse(text, "config.yaml").unwrap()
}

fn refused(text: &str) -> String {
    Platform::parse(text, "config.yaml").unwrap_err().to_string()
}

/// A document that sets one key: `a.b` and `1` become `{a: {b: 1}}`.
fn one(path: &str, value: &str) -> String {
    let opened: String = path.split('.').map(|name| format!("{{{name}: ")).collect();
    format!("{opened}{value}{}", "}".repeat(path.split('.').count()))
}

/// Per key of a field: what the file says, and what is in force then.
const FIELDS: &[(&str, &str, &str)] = &[
    ("mode", "proxy-sidecar", "proxy-sidecar"),
    ("images.envoyProxy", "example/envoy:1", "example/envoy:1"),
    ("images.authbridgeLight", "example/light:1", "example/light:1"),
    ("images.proxyInit", "example/init:1", "example/init:1"),
    ("images.spiffeHelper", "example/helper:1", "example/helper:1"),
    ("images.clientRegistration", "example/registration:1", "example/registration:1"),
    ("images.authbridge", "example/authbridge@sha256:00", "example/authbridge@sha256:00"),
    ("images.cardSigner", "example/drawbridge:1", "example/drawbridge:1"),
    ("images.pullPolicy", "Always", "Always"),
    ("proxy.port", "16001", "16001"),
    ("proxy.inboundProxyPort", "16002", "16002"),
    ("proxy.adminPort", "9902", "9902"),
    ("proxy.uid", "2000", "2000"),
    ("proxy.inboundExclusions", "none", "none"),
    (
        "resources.envoyProxy",
        "{limits: {cpu: 1}}",
        r#"{"limits":{"cpu":"1","memory":"256Mi"},"requests":{"cpu":"50m","memory":"64Mi"}}"#,
    ),
    (
        "resources.proxyInit",
        "{requests: {memory: 5Mi}}",
        r#"{"limits":{"cpu":"10m","memory":"10Mi"},"requests":{"cpu":"10m","memory":"5Mi"}}"#,
    ),
    (
        "resources.spiffeHelper",
        "{requests: {ephemeral-storage: 1Gi}}",
        r#"{"limits":{"cpu":"100m","memory":"128Mi"},"requests":{"cpu":"50m","ephemeral-storage":"1Gi","memory":"64Mi"}}"#,
    ),
    (
        "resources.clientRegistration",
        "{limits: {memory: 1e9}}",
        r#"{"limits":{"cpu":"100m","memory":"1000000000.0"},"requests":{"cpu":"50m","memory":"64Mi"}}"#,
    ),
    (
        "resources.authbridge",
        "{limits: {cpu: 500m, memory: 512Mi}}",
        r#"{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}}"#,
    ),
    (
        "resources.cardSigner",
        "{limits: {memory: 32Mi}}",
        r#"{"limits":{"cpu":"100m","memory":"32Mi"},"requests":{"cpu":"10m","memory":"16Mi"}}"#,
    ),
    ("tokenExchange.tokenUrl", "http://kc/token", "http://kc/token"),
    ("tokenExchange.defaultAudience", "tools", "tools"),
    ("tokenExchange.defaultScopes", "[openid, profile]", "[openid, profile]"),
    ("spiffe.trustDomain", "agents.example", "agents.example"),
    ("spire", "required", "required"),
    ("nativeSidecars", "disabled", "disabled"),
    ("trace.endpoint", "http://otel:4317", "http://otel:4317"),
    ("trace.protocol", "http", "http"),
    ("trace.samplingRatio", "0.25", "0.25"),
];

#[test]
fn every_field_key_changes_its_field_and_nothing_else() {
    let mut covered: Vec<_> = FIELDS.iter().map(|(path, ..)| *path).collect();
    let mut known: Vec<_> = KEYS.iter().filter(|key| key.is_overridable()).map(|key| key.path).collect();
    covered.sort_unstable();
    known.sort_unstable();
    assert_eq!(covered, known, "a key without a row in this table may be without effect");
    let built_in = Resolved::built_in();
    for (path, value, in_force) in FIELDS {
        let platform = read(&one(path, value));
        for (now, before) in platform.resolved().fields().zip(built_in.fields()) {
            if now.path == *path {
                assert_eq!(now.value, *in_force, "{path}");
                assert_eq!(*now.layer, Layer::PlatformFile, "{path}");
                assert_ne!(now.value, before.value, "{path}");
            } else {
                assert_eq!(now, before, "{path} changed {}", now.path);
            }
        }
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table: one line per key")]
fn every_process_key_changes_what_the_process_does() {
    let known: Vec<_> =
        KEYS.iter().filter(|key| !key.is_overridable() && !key.is_retired()).map(|key| key.path).collect();
    let covered = [
        "images.kaosAgent",
        "images.kaosLitellm",
        "images.kaosOllama",
        "images.kaosMcpServer",
        "images.kaosPython",
        "requireNamespaceLabel",
        "namespaceOverrides",
        "keycloak.url",
        "keycloak.realm",
        "keycloak.publicUrl",
        "rollout.onUpgrade",
        "rollout.delaySeconds",
        "repair",
        "enrolment.byWorkloadLabel",
        "distribution",
        "agents.lockdown",
        "beeai.allowBaseline",
        "kaos.registryNamespace",
        "kaos.operatorNamespaces",
        "kaos.gateway.enabled",
        "kaos.gateway.name",
        "kaos.gateway.namespace",
        "kaos.gateway.timeouts.agent",
        "kaos.gateway.timeouts.modelAPI",
        "kaos.gateway.timeouts.mcp",
        "kaos.telemetry.enabled",
        "kaos.telemetry.endpoint",
        "kaos.logLevel",
        "kaos.clusterDomain",
        "kaos.servicePort80",
        "kaos.rollOnSecretChange",
        "kaos.toolDiscovery",
        "kaos.restrictModelAPIs",
        "beeai.enabled",
        "beeai.takeover",
        "beeai.tokenRegistries",
        "beeai.registrySecrets",
        "builds.insecureRegistries",
        "builds.pipelineNamespaces",
        "builds.insecureGit",
        "builds.requireGitHosts",
        "builds.privilegedSteps",
        "builds.trustBundle",
        "builds.environment",
        "builds.nodeSelector",
        "builds.tolerations",
        "builds.resources",
        "builds.byContent",
        "builds.history",
        "builds.lostRuns",
        "cards.trustDomains",
        "cards.trustBundle.configMap.name",
        "cards.trustBundle.configMap.namespace",
        "cards.trustBundle.configMap.key",
        "cards.trustBundle.file",
        "cards.trustBundle.trustDomain",
        "cards.trustBundle.maxAgeSeconds",
        "cards.profiles",
        "cards.audit",
        "cards.expiredSvidSeconds",
        "cards.minimumPeriodSeconds",
        "cards.proactiveRestart",
        "cards.restartGraceSeconds",
        "cards.proof.enabled",
        "cards.proof.socket",
        "cards.catalogue.enabled",
        "cards.trust",
        "cards.trustFloor",
        "cards.verifiedPeers",
        "cards.ingressPeers",
        "cards.restrictiveEgress",
        "cards.restrictiveDNS",
    ];
    assert_eq!(known, covered);
    assert_eq!(Platform::built_in().on_upgrade(), OnUpgrade::Auto);
    assert_eq!(read("rollout: {onUpgrade: manual}").on_upgrade(), OnUpgrade::Manual);
    let delay = |platform: &Platform| platform.rollout_delay().as_secs();
    assert_eq!((delay(&Platform::built_in()), delay(&read("rollout: {delaySeconds: 5}"))), (120, 5));
    assert_eq!(Platform::built_in().repair(), Repair::Report);
    assert_eq!(read("repair: evict").repair(), Repair::Evict);
    assert_eq!(Platform::built_in().workload_labels(), WorkloadLabels::Since(None));
    for (value, expected) in [(true, WorkloadLabels::All(None)), (false, WorkloadLabels::Ignored)] {
        assert_eq!(read(&format!("enrolment: {{byWorkloadLabel: {value}}}")).workload_labels(), expected);
    }
    assert!(!Platform::built_in().require_namespace_label());
    assert!(read("requireNamespaceLabel: true").require_namespace_label());
    let data = |text: &str, key: &str| config_map_data("authbridge-config", &read(text)).unwrap().get(key).cloned();
    assert_eq!(data("keycloak: {url: 'http://kc:80'}", "KEYCLOAK_URL").unwrap(), "http://kc:80");
    assert_eq!(data("keycloak: {realm: agents}", "KEYCLOAK_REALM").unwrap(), "agents");
    assert_eq!(data("keycloak: {publicUrl: 'https://kc'}", "ISSUER").unwrap(), "https://kc/realms/kagenti");
    let platform = read("namespaceOverrides: [proxy.uid, trace]");
    for (path, allowed) in [("proxy.uid", true), ("trace.endpoint", true), ("mode", false), ("proxy.port", false)] {
        assert_eq!(platform.namespace_may_set(path), allowed, "{path}");
    }
}

#[test]
fn what_namespaces_may_set_by_default() {
    let platform = Platform::built_in();
    for key in KEYS {
        let beginning = key.path.split('.').next().unwrap();
        let expected = !key.is_retired()
            && (["mode", "resources", "trace", "tokenExchange"].contains(&beginning)
                || key.path == "spiffe.trustDomain");
        assert_eq!(platform.namespace_may_set(key.path), expected, "{}", key.path);
    }
    assert!(!platform.namespace_may_set("nonsense"));
}

#[test]
fn keys_that_nothing_consumes_are_accepted_with_a_warning() {
    let text = "\
images: {authbridgeLite: x}
proxy: {transparentPort: 8082, iptablesCmd: odd, allowedEgressEnforcement: []}
spiffe: {socketPath: 'unix:///x', helperConfig: y}
observability: {logLevel: info, enableMetrics: true, enableTracing: no, tracingBackend: ''}
sidecars: {envoyProxy: {enabled: true}}
ibac: {judgeEndpoint: x, timeoutMs: 15000}
";
    let platform = read(text);
    assert_eq!(platform.resolved(), Platform::built_in().resolved());
    let warnings: Vec<_> = platform.warnings().iter().map(|notice| notice.text.as_str()).collect();
    assert_eq!(warnings.len(), 9, "{warnings:#?}");
    assert!(warnings[0].starts_with("config.yaml:1: images.authbridgeLite has no effect: "), "{}", warnings[0]);
    assert!(platform.warnings().iter().all(|notice| notice.reason == Reason::KeyWithoutEffect));
    for key in KEYS.iter().filter(|key| key.is_retired()) {
        assert_eq!(read(&one(key.path, "3")).warnings().len(), 1, "{}", key.path);
    }
}

#[test]
fn case_042_platform_ports_and_uid_are_in_force() {
    let platform = read("proxy: {port: 16001, inboundProxyPort: 16002, adminPort: 9902, uid: 2000}");
    let proxy = &platform.resolved().proxy;
    assert_eq!((proxy.port.value, proxy.inbound_port.value, proxy.admin_port.value), (16001, 16002, 9902));
    assert_eq!(proxy.uid.value, 2000);
}

#[test]
fn case_101_a_partial_file_leaves_the_rest_at_its_default() {
    let platform = read("tokenExchange: {defaultScopes: [a]}\nresources: {envoyProxy: {requests: {cpu: 60m}}}");
    let resolved = platform.resolved();
    // A list is replaced, a mapping is merged.
    assert_eq!(resolved.token_exchange.default_scopes.value.as_deref(), Some(&["a".to_owned()][..]));
    assert_eq!(resolved.resources.envoy_proxy.value["requests"]["cpu"], "60m");
    assert_eq!(resolved.resources.envoy_proxy.value["requests"]["memory"], "64Mi");
    assert_eq!(resolved.proxy, Resolved::built_in().proxy);
    // Issue 3 overrides upstream's silence about unknown keys: they are refused.
    let text = refused("images: {envoyProxy: x}\nproxy:\n  inboundProxyPrt: 16002\nobservabilty: {}\nfoo: 1\n");
    assert_eq!(
        text,
        "config.yaml:3: proxy.inboundProxyPrt: is not a key of this file; did you mean inboundProxyPort?\n\
         config.yaml:4: observabilty: is not a key of this file; leave it out\n\
         config.yaml:5: foo: is not a key of this file; leave it out"
    );
}

/// A dot is a part of a key: taken for a path, the same key could stand twice in one document, and the later one would win without a word.
#[test]
fn a_key_with_a_dot_or_without_a_name_is_no_path() {
    for (text, line, field, says) in [
        ("\"proxy.port\": 16001", 1, "\"proxy.port\"", "write it nested: proxy: {port: VALUE}"),
        ("proxy: {port: 16001}\nproxy.port: 16002", 2, "\"proxy.port\"", "write it nested: proxy: {port: VALUE}"),
        ("kaos:\n  gateway.enabled: true", 2, "kaos.\"gateway.enabled\"", "write it nested: gateway: {enabled: VALUE}"),
        ("kaos.gateway: {enabled: true}", 1, "\"kaos.gateway\"", "write it nested: kaos: {gateway: VALUE}"),
        ("spiffe.socketPath: x", 1, "\"spiffe.socketPath\"", "write it nested: spiffe: {socketPath: VALUE}"),
        ("proxy.colour: x", 1, "\"proxy.colour\"", "is not a key of this file; leave it out"),
        ("'': {mode: waypoint}", 1, "\"\"", "is not a key of this file; leave it out"),
        ("proxy: {'': 1}", 1, "proxy.\"\"", "is not a key of this file; leave it out"),
        ("proxy.: {port: 16001}", 1, "\"proxy.\"", "is not a key of this file"),
        (".mode: waypoint", 1, "\".mode\"", "is not a key of this file"),
    ] {
        let shown = refused(text);
        assert!(
            shown.starts_with(&format!("config.yaml:{line}: {field}: ")) && shown.contains(says),
            "{text}: {shown}"
        );
        assert_eq!(shown.lines().count(), 1, "{text}: {shown}");
    }
}

#[test]
fn an_empty_file_is_the_built_in_configuration() {
    for text in ["", "{}", "# nothing\n", "~", "images:\nproxy: {}\n", "mode:\n", "\u{feff}", "---\n...\n"] {
        assert_eq!(Platform::parse(text, "f").unwrap(), Platform::built_in(), "{text:?}");
    }
}

#[test]
fn case_102_ports_out_of_range_are_refused_with_line_and_field() {
    for port in ["80", "70000", "0", "-1", "1023", "65536", "15123.5", "true", "[]"] {
        let text = refused(&format!("images: {{}}\nproxy:\n  port: {port}\n"));
        assert!(text.starts_with("config.yaml:3: proxy.port: a port from 1024 to 65535 is expected"), "{text}");
    }
    assert!(refused("proxy: {port: '15123'}").contains("without quotes"));
}

#[test]
fn case_103_values_that_are_never_right() {
    // Classic profile: iptablesCmd and the allow-list of the late profile have no effect here.
    for (text, field) in [
        ("proxy: {uid: 0}", "proxy.uid"),
        ("proxy: {uid: 2147483648}", "proxy.uid"),
        ("images: {envoyProxy: ''}", "images.envoyProxy"),
        ("images: {envoyProxy: ' '}", "images.envoyProxy"),
        ("images: {envoyProxy: 3}", "images.envoyProxy"),
        ("images: {pullPolicy: always}", "images.pullPolicy"),
        ("images: [a]", "images"),
        ("mode: lite", "mode"),
        ("mode: [envoy-sidecar]", "mode"),
        ("spire: on", "spire"),
        ("proxy: {inboundExclusions: some}", "proxy.inboundExclusions"),
        ("trace: {endpoint: 4317}", "trace.endpoint"),
        ("nativeSidecars: required", "nativeSidecars"),
        ("requireNamespaceLabel: yes", "requireNamespaceLabel"),
        ("requireNamespaceLabel: 'true'", "requireNamespaceLabel"),
        ("rollout: {onUpgrade: never}", "rollout.onUpgrade"),
        ("rollout: {delaySeconds: 2m}", "rollout.delaySeconds"),
        ("rollout: {delaySeconds: 3601}", "rollout.delaySeconds"),
        ("repair: true", "repair"),
        ("trace: {samplingRatio: 1.5}", "trace.samplingRatio"),
        ("trace: {samplingRatio: -0.1}", "trace.samplingRatio"),
        ("trace: {protocol: http/protobuf}", "trace.protocol"),
        ("trace: {endpoint: ''}", "trace.endpoint"),
        ("spiffe: {trustDomain: 'spiffe://x'}", "spiffe.trustDomain"),
        ("spiffe: {trustDomain: Example.org}", "spiffe.trustDomain"),
        ("tokenExchange: {defaultScopes: openid}", "tokenExchange.defaultScopes"),
        ("tokenExchange: {defaultScopes: [openid, 3]}", "tokenExchange.defaultScopes[1]"),
        ("keycloak: {publicUrl: kc.example}", "keycloak.publicUrl"),
        ("keycloak: {url: 'https://'}", "keycloak.url"),
        ("resources: {envoyProxy: {limits: {cpu: 1 GB}}}", "resources.envoyProxy.limits.cpu"),
        ("resources: {envoyProxy: {limits: {cpu: -1}}}", "resources.envoyProxy.limits.cpu"),
        ("resources: {envoyProxy: {limits: {cpus: 1}}}", "resources.envoyProxy.limits.cpus"),
        // With these the API server would refuse every Pod.
        ("resources: {envoyProxy: {limits: {'a b/gpu': 1}}}", "resources.envoyProxy.limits.a b/gpu"),
        ("resources: {envoyProxy: {limits: {requests.a/gpu: 1}}}", "resources.envoyProxy.limits.requests.a/gpu"),
        ("resources: {envoyProxy: {limits: {example.com/gpu: 0.5}}}", "resources.envoyProxy.limits.example.com/gpu"),
        ("resources: {envoyProxy: {limits: {hugepages-2Mi: 3Mi}}}", "resources.envoyProxy.limits.hugepages-2Mi"),
        ("resources: {envoyProxy: {limits: {hugepages-big: 2Mi}}}", "resources.envoyProxy.limits.hugepages-big"),
        ("resources: {envoyProxy: {limit: {cpu: 1}}}", "resources.envoyProxy.limit"),
        ("resources: {envoyProxy: {limits: 3}}", "resources.envoyProxy.limits"),
        ("resources: {envoyProxy: 3}", "resources.envoyProxy"),
        ("resources: {envoyProxy: {requests: {cpu: 300m}}}", "resources.envoyProxy"),
        ("namespaceOverrides: mode", "namespaceOverrides"),
        ("namespaceOverrides: [mode, image]", "namespaceOverrides[1]"),
        ("namespaceOverrides: [requireNamespaceLabel]", "namespaceOverrides[0]"),
        ("namespaceOverrides: [observability]", "namespaceOverrides[0]"),
    ] {
        let shown = refused(text);
        assert!(shown.starts_with(&format!("config.yaml:1: {field}: ")), "{text}: {shown}");
        assert_eq!(shown.lines().count(), 1, "{text}: {shown}");
    }
    let counted = "{hugepages-2Mi: 4Mi, example.com/gpu: 2000m, kubernetes.io/batch: 0.5}";
    let platform = read(&format!("resources: {{envoyProxy: {{limits: {counted}}}}}"));
    assert_eq!(platform.resolved().resources.envoy_proxy.value["limits"]["example.com/gpu"], "2000m");
}

/// An operator that ran with such a value must not stop at its upgrade.
#[test]
fn mend_07_an_address_that_is_none_is_left_out_with_a_warning_and_the_file_is_not_refused() {
    for (address, kept) in [("otel", None), ("'grpc://otel:4317'", None), ("otel:4317", Some("otel:4317"))] {
        let platform = read(&format!("mode: waypoint\ntrace: {{protocol: grpc, endpoint: {address}}}"));
        let trace = &platform.resolved().trace;
        assert_eq!((trace.endpoint.value.as_deref(), trace.protocol.value.is_some()), (kept, true), "{address}");
        assert_eq!(platform.resolved().mode.value.as_str(), "waypoint");
        let warnings = platform.warnings();
        assert_eq!(warnings.len(), usize::from(kept.is_none()), "{warnings:?}");
        for warning in warnings {
            assert_eq!(warning.reason, Reason::TraceEndpointInvalid);
            assert!(
                warning.text.starts_with("config.yaml:2: trace.endpoint: ") && warning.text.contains("host:port"),
                "{warning:?}"
            );
        }
    }
}

#[test]
fn ports_that_collide_are_refused() {
    for (text, field, other) in [
        ("proxy: {port: 15124}", "proxy.port", "proxy.inboundProxyPort"),
        ("proxy: {inboundProxyPort: 9901}", "proxy.inboundProxyPort", "proxy.adminPort"),
        ("proxy: {adminPort: 15123}", "proxy.adminPort", "proxy.port"),
        ("proxy: {adminPort: 9090}", "proxy.adminPort", "9090"),
        ("proxy: {port: 9094}", "proxy.port", "9094"),
    ] {
        let shown = refused(text);
        assert!(shown.starts_with(&format!("config.yaml:1: {field}: ")) && shown.contains(other), "{text}: {shown}");
    }
    assert!(Platform::parse("proxy: {port: 15124, inboundProxyPort: 15123}", "f").is_ok());
}

#[test]
fn faults_name_the_line_they_stand_on() {
    let text = "\
resources:
  envoyProxy:
    limits:
      cpu: 200m
      memory: lots
namespaceOverrides:
- mode
- tarce
";
    assert_eq!(
        refused(text),
        "config.yaml:5: resources.envoyProxy.limits.memory: \"lots\" is not a quantity such as 100m or 64Mi\n\
         config.yaml:8: namespaceOverrides[1]: tarce is not a key of this file; did you mean trace?"
    );
}

#[test]
fn text_that_is_no_mapping_is_refused() {
    for (text, line, part) in [
        ("- mode", 1, "a list was found"),
        ("hello", 1, "a string was found"),
        ("3", 1, "an integer was found"),
        ("mode: envoy-sidecar\nmode: waypoint", 2, "twice"),
        ("mode: envoy-sidecar\n---\nmode: waypoint", 2, "second document"),
        ("mode: 'x", 1, ""),
        ("mode: \0", 1, "NUL"),
        ("{\"mode\": \"envoy-sidecar\"", 1, ""),
    ] {
        let shown = refused(text);
        assert!(shown.starts_with(&format!("config.yaml:{line}: ")) && shown.contains(part), "{text:?}: {shown}");
    }
    assert!(refused(&format!("mode: {}", "x".repeat(1 << 20))).contains("bytes"));
    assert!(refused(&format!("mode: {}", "[".repeat(10_000))).starts_with("config.yaml:1: "));
}

#[test]
fn missing_images_are_named_and_tolerated() {
    assert_eq!(
        Platform::built_in().missing_images(),
        ["images.envoyProxy", "images.proxyInit", "images.spiffeHelper", "images.clientRegistration"]
    );
    let some = read("images: {envoyProxy: a, spiffeHelper: b, proxyInit: c}");
    assert_eq!(some.missing_images(), ["images.clientRegistration"]);
    let all = read("images: {envoyProxy: a, spiffeHelper: b, proxyInit: c, clientRegistration: d}");
    assert!(all.missing_images().is_empty());
}

#[test]
fn json_is_yaml_and_the_order_of_keys_does_not_matter() {
    let a = read("{\"mode\": \"waypoint\", \"proxy\": {\"uid\": 2000, \"port\": 16001}}");
    let b = read("proxy:\n  port: 16001\n  uid: 2000\nmode: waypoint\n");
    assert_eq!(a, b);
}

#[test]
fn keys_are_unique_and_never_stand_inside_one_another() {
    for key_a in KEYS {
        assert_eq!(key(key_a.path).unwrap().path, key_a.path);
        assert!(!key_a.help.is_empty());
        let inside = format!("{}.", key_a.path);
        assert_eq!(KEYS.iter().filter(|key_b| key_b.path == key_a.path || key_b.path.starts_with(&inside)).count(), 1);
    }
}

#[test]
fn the_runtime_template_lies_below_the_namespaces() {
    let config_map = |text: &str| ConfigMapInput {
        is_defaults: false,
        kept: false,
        data: [("config.yaml".to_owned(), text.to_owned())].into(),
        ..ConfigMapInput::default()
    };
    let template = config_map("mode: proxy-sidecar\nstats: {address: ':1'}\nlist: [1, 2]\n");
    let platform = read("mode: waypoint").with_runtime_template(Some(&template), None);
    assert_eq!(platform.resolved().mode.layer, Layer::RuntimeTemplate);
    let mut inputs = NamespaceInputs::default();
    inputs.config_maps.insert(
        "authbridge-runtime-config".to_owned(),
        config_map("mode: envoy-sidecar\nstats: {ttl: 3}\nlist: [3]\n"),
    );
    let view = namespace_view(&platform, "team1", &inputs, None);
    assert_eq!(view.resolved.mode.layer, Layer::NamespaceRuntimeConfig);
    let shadowed: Vec<_> = view.resolved.mode.shadowed.iter().map(|value| value.value.as_str()).collect();
    assert_eq!(shadowed, ["waypoint", "proxy-sidecar"]);
    assert_eq!(
        view.resolved.runtime_base,
        serde_json::json!({"mode": "envoy-sidecar", "stats": {"address": ":1", "ttl": 3}, "list": [3]})
    );
    // Unreadable, the last good one serves, and everybody hears of it.
    let broken = read("mode: waypoint").with_runtime_template(Some(&config_map("- a")), Some(&platform));
    assert_eq!(broken.resolved().mode.value.as_str(), "proxy-sidecar");
    assert_eq!(broken.resolved().notices[0].reason, Reason::NamespaceConfigUnreadable);
    assert!(!broken.resolved().unread, "what it said is known");
    // Broken from the first look on, nobody knows what it said; there has been a look before, it said nothing.
    let bad = config_map("- a");
    let first = read("mode: waypoint").with_runtime_template(Some(&bad), None);
    let later = read("mode: waypoint").with_runtime_template(Some(&bad), Some(&first));
    let came = read("mode: waypoint").with_runtime_template(Some(&bad), Some(&read("mode: waypoint")));
    assert_eq!([first, later, came].map(|platform| platform.resolved().unread), [true, true, false]);
    // Gone, nothing of it serves.
    let gone = read("mode: waypoint").with_runtime_template(None, Some(&broken));
    assert_eq!(gone.resolved().mode.value.as_str(), "waypoint");
}

/// Larger than is read it is not absent: it says what it said before, and where nobody knows that, nothing rolls.
#[test]
fn a_template_that_is_too_large_is_told_and_what_it_said_before_serves() {
    let small = ConfigMapInput {
        data: [("config.yaml".to_owned(), "mode: proxy-sidecar\nx: 1".to_owned())].into(),
        ..ConfigMapInput::default()
    };
    let text = format!("mode: proxy-sidecar # {}", "x".repeat(crate::config::bounds::TEXT));
    let large = ConfigMapInput { data: [("config.yaml".to_owned(), text)].into(), ..ConfigMapInput::default() };
    let bad = ConfigMapInput { data: [("config.yaml".to_owned(), "- a".to_owned())].into(), ..small.clone() };
    let with = |template: &ConfigMapInput, last: Option<&Platform>| {
        let own = std::collections::BTreeMap::from([("authbridge-runtime-config".to_owned(), template.clone())]);
        read("mode: waypoint").with_templates(&own, last)
    };
    let good = with(&small, None);
    for over in [large, ConfigMapInput::too_large()] {
        let first = with(&over, None);
        let told = &first.resolved().notices;
        assert_eq!((told.len(), told[0].reason, first.resolved().unread), (1, Reason::ConfigOverBound, true));
        assert!(told[0].text.contains("what it said before is not known"), "{}", told[0].text);
        assert_eq!(first.resolved().mode.layer, Layer::PlatformFile);
        let known = with(&over, Some(&good));
        assert_eq!((&known.resolved().mode, known.resolved().unread), (&good.resolved().mode, false));
        assert_eq!(known.resolved().runtime_base, good.resolved().runtime_base);
        assert!(known.resolved().notices[0].text.contains("what it said before is used"));
        let broken = [&first, &known].map(|last| with(&bad, Some(last)).resolved().unread);
        assert_eq!(broken, [true, false], "what nobody knew nobody knows now");
        assert_eq!(with(&small, Some(&first)), good);
    }
}

/// kubectl puts a file there that is no UTF-8 text.
#[test]
fn a_template_in_binary_data_is_told() {
    let binary = |key: &str| crate::store::decode::wire::binary::Binary::of(Some(&serde_json::json!({key: "//4="})));
    let with = |key: &str, last: Option<&Platform>| {
        let data = binary(key).entries().collect();
        read("mode: waypoint").with_runtime_template(Some(&ConfigMapInput { data, ..ConfigMapInput::default() }), last)
    };
    for (key, part, unread) in
        [("config.yaml", "is a key of binaryData", true), ("settings.yaml", "(it has settings.yaml)", false)]
    {
        let platform = with(key, None);
        let told = &platform.resolved().notices;
        assert_eq!((told.len(), told[0].reason), (1, Reason::NamespaceConfigUnreadable), "{key}");
        assert!(told[0].text.contains(part) && platform.resolved().unread == unread, "{}", told[0].text);
    }
    let before = read("mode: waypoint");
    assert!(!with("config.yaml", Some(&before)).resolved().unread, "it said nothing");
}

/// Settings under another key than the one that is read are accepted by nobody: whoever wrote them hears it, as in a namespace.
#[test]
fn a_template_without_its_key_is_told_and_an_empty_one_says_nothing() {
    let template = |keys: &[&str]| ConfigMapInput {
        data: keys.iter().map(|key| ((*key).to_owned(), "mode: waypoint".to_owned())).collect(),
        ..ConfigMapInput::default()
    };
    let with = |keys: &[&str]| Platform::built_in().with_runtime_template(Some(&template(keys)), None);
    let view = namespace_view(&with(&["config.yml", "x"]), "team1", &NamespaceInputs::default(), None);
    assert_eq!(view.resolved.mode.layer, Layer::BuiltIn);
    let notices = &view.resolved.notices;
    assert_eq!((notices.len(), notices[0].reason), (1, Reason::NamespaceConfigUnreadable));
    let says = "of the operator's namespace has no key config.yaml (it has config.yml, x), so nothing of it is used";
    assert!(notices[0].text.contains(says), "{}", notices[0].text);
    assert!(!view.resolved.unread, "it is known that it says nothing");
    for keys in [&[][..], &["config.yaml"], &["config.yaml", "x"]] {
        assert!(with(keys).resolved().notices.is_empty(), "{keys:?}");
    }
}

proptest::proptest! {
    #[test]
    fn never_panics_on_any_bytes(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = Platform::parse(&text, "f");
        let _ = crate::config::gates::Gates::parse(&text, "f");
    }

    #[test]
    fn never_panics_on_known_keys_with_odd_values(index in 0..KEYS.len(), value in "[-a-z0-9:&*!\\[\\]{},.'\" ]{0,12}") {
        if let Err(error) = Platform::parse(&one(KEYS[index].path, &value), "f") {
            proptest::prop_assert!(error.faults.iter().all(|fault| fault.line == 1));
        }
    }
}
