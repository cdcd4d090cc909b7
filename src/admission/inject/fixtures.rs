//! What the tests of this folder start from: the Pod of the weather agent and its namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::admission::verdict::Verdict;
use crate::api::review::{GroupVersionKind, Operation, Phase, Request};
use crate::config::builds::Builds;
use crate::config::builds::Settings;
use crate::config::enrolment::WorkloadLabels;
use crate::config::gates::Gates;
use crate::config::layers::{Field, Layer};
use crate::config::resolved::{Images, NativeSidecars, Resolved, SpireSwitch};
use crate::config::snapshot::Snapshot;
use crate::config::view::{ClusterView, NamespaceView, Ownership, PodSecurity};

/// The configuration of the goldens: classic images, `nativeSidecars: disabled`, `spire: required`.
pub(in crate::admission) fn resolved() -> Resolved {
    let file = |value: &str| Field { value: Some(value.to_owned()), layer: Layer::PlatformFile, shadowed: vec![] };
    Resolved {
        images: Images {
            envoy_proxy: file("REG/authbridge-envoy:latest"),
            authbridge_light: file("REG/authbridge-light:latest"),
            proxy_init: file("REG/proxy-init:latest"),
            spiffe_helper: file("REG/spiffe-helper:latest"),
            client_registration: file("REG/client-registration:latest"),
            authbridge: file("REG/authbridge:latest"),
            card_signer: file("REG/drawbridge:latest"),
            pull_policy: Field::built_in("IfNotPresent".to_owned()),
        },
        spire: Field { value: SpireSwitch::Required, layer: Layer::PlatformFile, shadowed: vec![] },
        native_sidecars: Field { value: NativeSidecars::Disabled, layer: Layer::PlatformFile, shadowed: vec![] },
        ..Resolved::built_in()
    }
}

/// Namespace `team1`, with ServiceAccount `weather-agent` of ours and the chart's `authbridge-config`.
pub(in crate::admission) fn namespace() -> NamespaceView {
    let config = [
        ("ISSUER", "https://kc.example/realms/kagenti"),
        ("KEYCLOAK_URL", "http://keycloak-service.keycloak.svc:8080"),
        ("KEYCLOAK_REALM", "kagenti"),
        ("CLIENT_AUTH_TYPE", "client-secret"),
    ];
    NamespaceView {
        trust: crate::domain::trust::TrustLevel::Off,
        cut_off: false,
        enabled_label: None,
        waypoint: None,
        pod_security: PodSecurity::Privileged,
        authbridge_config: Some(Arc::new(config.map(|(key, value)| (key.to_owned(), value.to_owned())).into())),
        mounted: BTreeMap::new(),
        service_accounts: [(Arc::from("weather-agent"), Ownership::Ours)].into(),
        jobs: BTreeMap::new(),
        governors: crate::config::agent_runtime::Governors::default(),
        cards: crate::config::agent_card::ManualCards::default(),
        named: crate::config::namesakes::Named::default(),
        shared: false,
        quarantine: None,
        resolved: Arc::new(resolved()),
        last_good: BTreeMap::new(),
    }
}

/// A snapshot that knows [`namespace`] as `team1`.
pub(in crate::admission) fn snapshot() -> Snapshot {
    snapshot_with(|_| {}, |_| {})
}

/// A snapshot whose configuration and namespace were changed first.
pub(in crate::admission) fn snapshot_with(
    configure: impl FnOnce(&mut Resolved),
    observe: impl FnOnce(&mut NamespaceView),
) -> Snapshot {
    let mut in_force = resolved();
    configure(&mut in_force);
    let in_force = Arc::new(in_force);
    let mut view = namespace();
    view.resolved = Arc::clone(&in_force);
    observe(&mut view);
    Snapshot {
        builds: Arc::new(Builds::new(Settings::new("kagenti-system"))),
        gates: Gates::default(),
        require_namespace_label: false,
        labels: WorkloadLabels::of_key(None),
        fresh: Arc::new(NamespaceView { resolved: in_force, ..NamespaceView::default() }),
        view: ClusterView {
            operator_namespace: Arc::from("kagenti-system"),
            server_version: (1, 33),
            spiffe_driver: true,
            namespaces: HashMap::from([(Arc::from("team1"), Arc::new(view))]),
        },
    }
}

/// The Pod of the weather agent without registration label and annotations (what cases start from).
pub(in crate::admission) fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "generateName": "weather-agent-7d4f8b9c5-", "namespace": "team1",
            "labels": {
                "app.kubernetes.io/name": "weather-agent", "kagenti.io/type": "agent", "pod-template-hash": "7d4f8b9c5"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "weather-agent-7d4f8b9c5", "uid": "1b2c",
                "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {
            "serviceAccountName": "default",
            "containers": [{
                "name": "agent", "image": "example/weather:v1",
                "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
                "env": [{"name": "PORT", "value": "8000"}]}],
        },
    })
}

/// The review of that object through the one entry.
pub(in crate::admission) fn review(
    phase: Phase,
    operation: Operation,
    (group, kind): (&str, &str),
    object: &Value,
    snapshot: &Snapshot,
) -> Verdict {
    let raw = serde_json::value::to_raw_value(object).unwrap();
    let kind = GroupVersionKind { group: group.into(), version: "v1".into(), kind: kind.into() };
    crate::admission::evaluate(&Request { phase, kind, operation, ..request(&raw) }, snapshot)
}

/// The request of a Pod at CREATE in namespace `team1`.
pub(in crate::admission) fn request(pod: &RawValue) -> Request<'_> {
    Request {
        phase: Phase::Mutate,
        uid: "review".into(),
        kind: GroupVersionKind { group: "".into(), version: "v1".into(), kind: "Pod".into() },
        sub_resource: None,
        name: None,
        namespace: Some("team1".into()),
        operation: Operation::Create,
        dry_run: None,
        object: Some(pod.into()),
        old_object: None,
    }
}

/// The review of a Pod at CREATE in namespace `team1`.
pub(in crate::admission) fn review_pod(pod: &Value, snapshot: &Snapshot) -> Verdict {
    review(Phase::Mutate, Operation::Create, ("", "Pod"), pod, snapshot)
}

/// The same review as it arrives, without what is passed over on its way through the envelope.
pub(in crate::admission) fn review_sent(pod: &Value, snapshot: &Snapshot) -> Verdict {
    let kind = r#"{"group":"","version":"v1","kind":"Pod"}"#;
    let body = format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"review","kind":{kind},"namespace":"team1","operation":"CREATE","object":{pod}}}}}"#
    );
    let request = crate::api::review::parse(body.as_bytes(), Phase::Mutate).unwrap();
    assert!(request.object.as_ref().is_some_and(|raw| raw.pod().is_some()), "read on the way");
    crate::admission::evaluate(&request, snapshot)
}

/// The Pod with the answer applied, as the API server would.
pub(in crate::admission) fn applied(pod: &Value, verdict: &Verdict) -> Value {
    let mut out = pod.clone();
    json_patch::patch(&mut out, &verdict.operations()).unwrap();
    out
}
