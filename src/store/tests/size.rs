//! What an object costs, whatever its size.

use serde_json::{Value, json};

use super::*;

/// Bytes on the heap behind a value, estimated from above: every block costs 16 bytes more and a tree's node is full.
trait Heap {
    fn heap(&self) -> usize;
}

const BLOCK: usize = 16;

fn text(text: &str) -> usize {
    if text.is_empty() { 0 } else { text.len() + BLOCK }
}

fn json_heap(value: &Value) -> usize {
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => BLOCK + items.iter().map(|item| size_of::<Value>() + json_heap(item)).sum::<usize>(),
        // A leaf of the tree has room for 11 entries.
        Value::Object(members) if !members.is_empty() => {
            let node = BLOCK + 11 * (size_of::<String>() + size_of::<Value>());
            let entries = members.iter().map(|(key, value)| text(key) + json_heap(value)).sum::<usize>();
            node * members.len().div_ceil(11) + entries
        }
        _ => 0,
    }
}

fn kept_heap(kept: &Kept) -> usize {
    size_of::<Box<str>>() + 2 * BLOCK + text(kept.text())
}

impl Heap for Pairs {
    fn heap(&self) -> usize {
        self.iter().map(|(key, value)| 2 * size_of::<Box<str>>() + text(key) + text(value)).sum::<usize>() + BLOCK
    }
}

impl Heap for Owned {
    fn heap(&self) -> usize {
        self.fields().map(|(_, key)| size_of::<(Place, Box<str>)>() + text(key)).sum::<usize>() + BLOCK
    }
}

impl Heap for Option<Arc<OwnerReference>> {
    fn heap(&self) -> usize {
        self.as_ref().map_or(0, |owner| {
            let texts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid].map(|part| text(part));
            size_of::<OwnerReference>() + 2 * BLOCK + texts.iter().sum::<usize>()
        })
    }
}

impl Heap for PodEndpoint {
    fn heap(&self) -> usize {
        let ports: usize = self.ports.iter().map(|port| size_of::<PodPort>() + text(&port.name)).sum();
        let addresses = size_of_val(&*self.addresses);
        addresses + ports + 2 * BLOCK + self.account.as_deref().map_or(0, |account| text(account) + BLOCK)
    }
}

impl Heap for Observed {
    fn heap(&self) -> usize {
        let own = size_of::<Self>() + 2 * BLOCK + text(&self.uid) + BLOCK;
        own + match &self.what {
            What::Workload(seen) => {
                let template = seen
                    .template
                    .as_ref()
                    .map_or(0, |seen| seen.labels.heap() + seen.annotations.heap() + seen.spec.len() + 2 * BLOCK);
                let since = |label: &TypeLabel| label.since.as_deref().map_or(0, text);
                let label = |label: &TypeLabel| size_of::<TypeLabel>() + BLOCK + text(&label.value) + since(label);
                let upstream = seen.upstream.as_ref().map_or(0, |(_, owned)| owned.heap());
                size_of::<WorkloadSeen>()
                    + BLOCK
                    + seen.controller.heap()
                    + seen.labels.heap()
                    + seen.annotations.heap()
                    + seen.applied.as_ref().map_or(0, Heap::heap)
                    + upstream
                    + seen.type_label.as_deref().map_or(0, label)
                    + seen.selector.as_ref().map_or(0, kept_heap)
                    + template
            }
            What::Pod(seen) => {
                seen.controller.heap()
                    + text(&seen.created)
                    + text(&seen.agent_type)
                    + seen.hash.as_deref().map_or(0, text)
                    + seen.endpoint.as_deref().map_or(0, |endpoint| size_of::<PodEndpoint>() + BLOCK + endpoint.heap())
            }
            What::Service(seen) => {
                let ports = seen.ports.iter().map(|port| {
                    let target = if let TargetPort::Name(name) = &port.target { text(name) } else { 0 };
                    size_of::<ServicePort>() + text(&port.name) + target
                });
                size_of::<ServiceSeen>()
                    + BLOCK
                    + seen.claim.controller.heap()
                    + seen.selector.as_ref().map_or(0, Heap::heap)
                    + ports.sum::<usize>()
                    + 2 * BLOCK
                    + seen.spec.as_deref().map_or(0, json_heap)
            }
            What::AgentCard(seen) => {
                let spec = &seen.spec;
                let target = spec.target.as_ref().map(|target| [&*target.api_version, &target.kind, &target.name]);
                let binding = spec.identity_binding.as_ref().and_then(|binding| binding.trust_domain.as_deref());
                let texts = [spec.sync_period.as_deref(), binding, seen.refresh.as_deref(), seen.managed_by.as_deref()];
                let owners = seen.owners.iter().map(|owner| Some(Arc::new(owner.clone())).heap()).sum::<usize>();
                size_of::<AgentCardSeen>()
                    + BLOCK
                    + texts.into_iter().flatten().chain(target.into_iter().flatten()).map(text).sum::<usize>()
                    + seen.finalizers.iter().map(|name| size_of::<Box<str>>() + text(name)).sum::<usize>()
                    + owners
                    + seen.controller.heap()
                    + text(&seen.created)
                    + json_heap(&seen.status)
                    + 2 * BLOCK
            }
            What::AgentRuntime(seen) => json_heap(&seen.spec) + kept_heap(&seen.status) + text(&seen.created) + BLOCK,
            _ => 0,
        }
    }
}

fn heap(kind: Kind, object: &Value) -> usize {
    change(kind, object).now.unwrap().heap()
}

const UID: &str = "01234567-89ab-cdef-0123-456789abcdef";
const HASH: &str = "57de3ab75a7e36a3c4c47bcbffb87948375167db5b7022552820c708ce312550";

/// What a Helm chart writes: environment, probes, volumes, a `last-applied-configuration`; enrolled.
fn deployment(status: Value) -> Value {
    let environment: Vec<_> = (0..60).map(|at| json!({"name": format!("KEY_{at}"), "value": "x".repeat(80)})).collect();
    let container = |name: &str| {
        json!({"name": name, "image": "registry.example.org/team/weather-agent:1.2.3",
        "env": environment, "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8000}}})
    };
    let keys = |key: &str| json!({"f:labels": {"f:kagenti.io/type": {}}, "f:annotations": {key: {}}});
    json!({
        "metadata": {"name": "weather-agent", "namespace": "team-one", "uid": UID, "resourceVersion": "12345678",
            "generation": 4, "labels": {"app.kubernetes.io/name": "weather-agent", "kagenti.io/type": "agent",
                "app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "y".repeat(8000)},
            "managedFields": [{"manager": "drawbridge/enrolment", "operation": "Apply", "fieldsV1": {
                "f:metadata": keys("f:kagenti.io/enrolled-by"),
                "f:spec": {"f:template": {"f:metadata": keys("f:kagenti.io/config-hash")}}}}]},
        "spec": {"replicas": 3, "template": {
            "metadata": {"labels": {"kagenti.io/type": "agent", "app": "weather-agent"},
                "annotations": {"kagenti.io/config-hash": HASH, "checksum/config": HASH}},
            "spec": {"serviceAccountName": "weather-agent", "containers": [container("agent"), container("metrics")],
                "volumes": [{"name": "cache", "emptyDir": {}}], "nodeSelector": {"kubernetes.io/os": "linux"}}}},
        "status": status,
    })
}

#[test]
fn a_projection_is_a_few_hundred_bytes_whatever_the_object_is() {
    let object = deployment(json!({"replicas": 3}));
    assert!(object.to_string().len() > 16_000);
    let kept = heap(Kind::Deployment, &object);
    assert!(kept < 1_500, "an enrolled Deployment: {kept}");
    let mut plain = object.clone();
    plain["metadata"]["managedFields"] = json!([]);
    plain["metadata"]["labels"] = json!({"app": "x"});
    plain["spec"]["template"]["metadata"] = json!({"labels": {"app": "x"}});
    let kept = heap(Kind::Deployment, &plain);
    assert!(kept < 800, "one of somebody else's: {kept}");
    let pod = json!({
        "metadata": {"name": "weather-agent-6d5f7c9b8-x2x9k", "namespace": "team-one", "uid": UID,
            "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"kagenti.io/type": "agent"},
            "annotations": {"kagenti.io/config-hash": HASH, "kagenti.io/authbridge-status": "z".repeat(2000)},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "weather-agent-6d5f7c9b8",
                "uid": UID, "controller": true, "blockOwnerDeletion": true}]},
        "spec": object["spec"]["template"]["spec"], "status": {"phase": "Running",
            "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let agent = heap(Kind::Pod, &pod);
    assert!(agent < 1_000, "an agent's Pod: {agent}");
    let mut tool = pod;
    tool["metadata"]["labels"]["kagenti.io/type"] = json!("tool");
    let kept = heap(Kind::Pod, &tool);
    assert!(kept < 700 && kept < agent, "another Pod: {kept}, beside {agent}");
    let ports: Vec<_> = (0..200).map(|at| json!({"name": format!("port-{at}"), "port": 8000 + at})).collect();
    let service = json!({"metadata": {"name": "w", "namespace": "team-one", "uid": UID}, "spec": {"ports": ports,
        "selector": {"app.kubernetes.io/name": "weather-agent", "app": "x"}}});
    let kept = heap(Kind::Service, &service);
    assert!(kept < 2_500, "a Service of two hundred ports: {kept}");
    let mut plain = service;
    plain["spec"]["ports"] = json!([{"name": "http", "port": 8080, "targetPort": 8000}]);
    let kept = heap(Kind::Service, &plain);
    assert!(kept < 700, "a Service: {kept}");
}

/// What a full status takes, whatever the card.
#[test]
fn a_card_is_a_few_kilobytes_whatever_the_agent_serves() {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "SyncSucceeded", "message": "m".repeat(120),
            "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1})
    };
    let conditions: Vec<_> =
        ["Synced", "Reachable", "SignatureVerified", "Bound", "Verified", "Ready"].into_iter().map(condition).collect();
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"});
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent", "uid": UID,
        "controller": true, "blockOwnerDeletion": true});
    let card = json!({
        "metadata": {"name": "weather-agent-deployment-card", "namespace": "team-one", "uid": UID, "ownerReferences": [owner],
            "labels": {"app.kubernetes.io/managed-by": "drawbridge", "app.kubernetes.io/name": "weather-agent"}},
        "spec": {"syncPeriod": "30s", "targetRef": target, "identityBinding": {}},
        "status": {"card": {"description": "x".repeat(60_000)}, "cardId": HASH, "targetRef": target, "targetUID": UID,
            "conditions": conditions, "protocol": "a2a", "skills": "s".repeat(256)},
    });
    let kept = heap(Kind::AgentCard, &card);
    assert!(kept < 14_000, "a card: {kept}");
}

/// Of a thousand agents the statuses would be more than all their Pods.
#[test]
fn an_agent_runtime_is_little_more_than_the_text_of_its_status() {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "TargetResolved", "message": "Deployment weather-agent resolved",
            "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1})
    };
    let kinds = ["TargetResolved", "ConfigResolved", "Protected", "Ready", "PodsCurrent", "RolloutProgressing"];
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather-agent"});
    let status = json!({"observedGeneration": 1, "phase": "Active", "configHash": HASH, "appliedTarget": target,
        "effective": {"mode": "envoy-sidecar", "spiffeID": "spiffe://cluster.local/ns/team-one/sa/weather-agent"},
        "conditions": kinds.map(condition)});
    let runtime = json!({
        "metadata": {"name": "weather-agent", "namespace": "team-one", "uid": UID, "creationTimestamp": "2026-01-02T03:04:05Z"},
        "spec": {"type": "agent", "targetRef": target}, "status": status,
    });
    let (kept, written) = (heap(Kind::AgentRuntime, &runtime), status.to_string().len());
    assert!(kept < written + 2_200, "an AgentRuntime: {kept}, with a status of {written}");
}

#[test]
fn only_what_is_kept_makes_a_difference() {
    let status = |available: u64, probed: &str| {
        json!({"observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "availableReplicas": available,
            "conditions": [{"type": "Available", "status": "True", "lastUpdateTime": probed}]})
    };
    let before = kept(Kind::Deployment, &deployment(status(3, "2026-01-01T00:00:00Z")));
    let mut other = deployment(status(3, "2026-01-01T00:00:10Z"));
    other["metadata"]["annotations"]["note"] = json!("changed");
    other["metadata"]["resourceVersion"] = json!("12345679");
    other["metadata"]["managedFields"][0]["time"] = json!("2026-01-01T00:00:10Z");
    other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("other");
    assert_eq!(before, kept(Kind::Deployment, &other), "not a change to anybody here");
    assert_ne!(before, kept(Kind::Deployment, &deployment(status(2, "2026-01-01T00:00:00Z"))), "the rollout has moved");
}
