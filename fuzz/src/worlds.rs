//! Snapshots that differ in everything a decision depends on besides the object.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use drawbridge::config::agent_runtime::AgentRuntimeInput;
use drawbridge::config::gates::Gates;
use drawbridge::config::inputs::{ConfigMapInput, NamespaceInputs};
use drawbridge::config::schema::Platform;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::config::view::{ClusterView, JobOwner, Ownership, namespace_view};
use drawbridge::domain::workload::{Workload, WorkloadKind};

/// One row per world.
struct World {
    /// The platform file, below its images.
    platform: &'static str,
    gates: &'static str,
    server_version: (u32, u32),
    spiffe_driver: bool,
    /// Labels of namespace `team1`; `None`: no namespace is known.
    labels: Option<&'static [(&'static str, &'static str)]>,
    /// `config.yaml` of the namespace's defaults.
    defaults: &'static str,
    /// `spec` of an AgentRuntime; empty: there is none.
    agent_runtime: &'static str,
}

const IMAGES: &str = "images: {envoyProxy: e.example/e:1, authbridgeLight: e.example/l:1, proxyInit: e.example/i:1, \
    spiffeHelper: e.example/h:1, clientRegistration: e.example/r:1, authbridge: e.example/a:1}\n";

const WORLDS: [World; 6] = [
    World {
        platform: "",
        gates: "",
        server_version: (1, 36),
        spiffe_driver: true,
        labels: Some(&[("kagenti-enabled", "true")]),
        defaults: "",
        agent_runtime: r#"{"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"},
            "authBridgeMode": "envoy-sidecar", "identity": {"spiffe": {"trustDomain": "team.example"}},
            "trace": {"endpoint": "http://otel.team1:4318", "protocol": "grpc", "sampling": {"rate": 1}}}"#,
    },
    World {
        platform: "nativeSidecars: disabled\nspire: required",
        gates: "",
        server_version: (1, 36),
        spiffe_driver: false,
        labels: Some(&[]),
        defaults: "",
        agent_runtime: "",
    },
    World {
        platform: "mode: proxy-sidecar\nspire: disabled",
        gates: "{injectTools: true, perWorkloadConfigResolution: true}",
        server_version: (1, 33),
        spiffe_driver: false,
        labels: Some(&[("pod-security.kubernetes.io/enforce", "restricted")]),
        defaults: "trace: {endpoint: 'http://otel:4317', protocol: http, samplingRatio: 0.5}",
        agent_runtime: r#"{"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"},
            "authBridgeMode": "envoy-sidecar", "identity": {"spiffe": {"trustDomain": "team.example"}},
            "trace": {"endpoint": "http://otel.team1:4318", "protocol": "grpc", "sampling": {"rate": 1}}}"#,
    },
    World {
        platform: "proxy: {port: 16001, inboundProxyPort: 16002, adminPort: 16003, uid: 2000}",
        gates: "{combinedSidecar: true, injectTools: true}",
        server_version: (1, 28),
        spiffe_driver: true,
        labels: Some(&[("pod-security.kubernetes.io/enforce", "privileged")]),
        defaults: "",
        agent_runtime: "",
    },
    World {
        platform: "requireNamespaceLabel: true\nmode: waypoint",
        gates: "{envoyProxy: false}",
        server_version: (1, 36),
        spiffe_driver: true,
        labels: Some(&[("kagenti-enabled", "true"), ("pod-security.kubernetes.io/enforce", "baseline")]),
        defaults: "mode: proxy-sidecar",
        agent_runtime: "",
    },
    World {
        platform: "",
        gates: "{spiffeHelper: false, clientRegistration: false}",
        server_version: (1, 36),
        spiffe_driver: false,
        labels: None,
        defaults: "",
        agent_runtime: "",
    },
];

static SNAPSHOTS: LazyLock<Vec<Snapshot>> = LazyLock::new(|| WORLDS.iter().map(snapshot).collect());

/// The world that `selector` stands for.
#[must_use]
pub fn world(selector: u8) -> &'static Snapshot {
    &SNAPSHOTS[usize::from(selector) % SNAPSHOTS.len()]
}

fn snapshot(world: &World) -> Snapshot {
    let platform = Platform::parse(&format!("{IMAGES}{}", world.platform), "config.yaml")
        .expect("the platform files above are right");
    let (gates, _) = Gates::parse(world.gates, "feature-gates.yaml").expect("the gates above are right");
    let mut namespaces = HashMap::new();
    if let Some(labels) = world.labels {
        let view = namespace_view(&platform, "team1", &inputs(world, labels), None);
        namespaces.insert(Arc::from("team1"), Arc::new(view));
    }
    let view = ClusterView {
        operator_namespace: Arc::from("kagenti-system"),
        server_version: world.server_version,
        spiffe_driver: world.spiffe_driver,
        namespaces,
    };
    Snapshot::new(&platform, gates, view)
}

fn inputs(world: &World, labels: &[(&str, &str)]) -> NamespaceInputs {
    let data = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let config_map = |is_defaults, pairs: &[(&str, &str)]| ConfigMapInput {
        is_defaults,
        data: data(pairs),
        ..ConfigMapInput::default()
    };
    let job = JobOwner {
        uid: "5f1c8a5e-0001-4a51-9d0c-000000001b2c".into(),
        workload: Workload { kind: WorkloadKind::CronJob, name: "weather-agent".to_owned() },
    };
    let agent_runtime = (!world.agent_runtime.is_empty()).then(|| {
        let spec = serde_json::from_str(world.agent_runtime).expect("the specs above are JSON");
        (Arc::from("weather"), Arc::new(AgentRuntimeInput::of_spec(&spec)))
    });
    NamespaceInputs {
        cut_off: false,
        quarantine: None,
        labels: data(labels),
        config_maps: [
            (
                "authbridge-config".to_owned(),
                config_map(false, &[("KEYCLOAK_URL", "http://kc:8080"), ("ISSUER", "https://kc.example/realms/k")]),
            ),
            ("defaults".to_owned(), config_map(true, &[("config.yaml", world.defaults)])),
        ]
        .into(),
        service_accounts: [
            (Arc::from("weather-agent"), Ownership::Ours),
            (Arc::from("default"), Ownership::Foreign),
            (Arc::from("foreign"), Ownership::Foreign),
        ]
        .into(),
        jobs: [(Arc::from("weather-agent-29"), Arc::new(job))].into(),
        agent_runtimes: agent_runtime.into_iter().collect(),
        agent_cards: BTreeMap::new(),
        ..NamespaceInputs::default()
    }
}
