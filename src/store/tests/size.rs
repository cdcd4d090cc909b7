//! What an object costs, whatever its size.

use serde_json::{Value, json};

use super::*;
use crate::domain::written;

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

impl Heap for ClaimSeen {
    fn heap(&self) -> usize {
        let texts = [self.managed_by.as_deref(), self.applied.as_deref(), self.fields.as_deref()];
        self.controller.heap() + texts.into_iter().flatten().map(|part| text(part) + BLOCK).sum::<usize>()
    }
}

impl Heap for AgentDeploymentSeen {
    fn heap(&self) -> usize {
        let texts = [self.applied.as_deref(), self.fields.as_deref(), self.image.as_deref(), self.failure.as_deref()];
        let selector = self.selector.iter().map(|(key, value)| 2 * size_of::<String>() + text(key) + text(value));
        let texts = texts.into_iter().flatten().map(|part| text(part) + BLOCK).sum::<usize>();
        size_of::<Self>() + BLOCK + texts + selector.sum::<usize>()
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
                    + seen.agent.as_deref().map_or(0, Heap::heap)
                    + seen.retried.as_deref().map_or(0, |fact| text(fact) + BLOCK)
                    + template
            }
            What::Slim(Slim::Job(owner)) => {
                size_of::<JobOwner>() + 4 * BLOCK + text(&owner.uid) + text(&owner.workload.name)
            }
            What::ConfigMap(seen) => {
                let data: usize = seen.data.iter().map(|(key, value)| text(key) + text(value)).sum();
                let claim = seen.claim.as_deref().map_or(0, |claim| size_of::<ClaimSeen>() + BLOCK + claim.heap());
                let texts = [Some(&*seen.digest), seen.created.as_deref(), seen.written.as_deref()];
                data + claim + texts.into_iter().flatten().map(|part| text(part) + BLOCK).sum::<usize>()
            }
            What::Claim(seen) => seen.heap(),
            What::ServiceAccount(seen) => {
                let owners = seen.owners.iter().map(|owner| Some(Arc::new(owner.clone())).heap()).sum::<usize>();
                owners + seen.claim.as_deref().map_or(0, |claim| size_of::<ClaimSeen>() + BLOCK + claim.heap())
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
    let spec = workload(Kind::Deployment, &object).unwrap().template.unwrap().spec;
    assert_eq!(
        &*spec,
        concat!(
            r#"{"serviceAccountName":"weather-agent","containers":[{"name":"agent"},{"name":"metrics"}],"#,
            r#""nodeSelector":{"kubernetes.io/os":"linux"}}"#
        ),
        "nothing of sixty variables of its own"
    );
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

/// Metadata as large as whoever may write an object can make it: annotations, labels, that owner and the fields of that manager, whose name anybody
/// may take.
fn attacked(labels: Value, (owner, manager): (&Value, &str)) -> Value {
    let long = "x".repeat(250 * 1024);
    let known = [
        keys::ANNOTATION_CONFIG_HASH,
        keys::ANNOTATION_CONTENT_DIGEST,
        keys::ANNOTATION_RETRY,
        keys::ANNOTATION_ROLLED_FOR,
        keys::ANNOTATION_RESTART_REPLICAS,
        keys::ANNOTATION_MODE,
        keys::ANNOTATION_STATUS,
        keys::ANNOTATION_RUNTIME_CONFIG,
        keys::ANNOTATION_OUTBOUND_EXCLUDE,
        keys::ANNOTATION_INBOUND_EXCLUDE,
        keys::ANNOTATION_CREDENTIALS,
        keys::ANNOTATION_PORT_VARIABLE,
        keys::ANNOTATION_CARD_PORT,
        keys::ANNOTATION_SIGN,
        keys::ANNOTATION_RESIGN_TRIGGER,
        keys::ANNOTATION_BUNDLE_HASH,
        keys::ANNOTATION_SANDBOX_POD,
        "kagenti.io/x",
        "agentcard.kagenti.dev/x",
    ];
    let annotations: serde_json::Map<_, _> = known.map(|key| (key.to_owned(), json!(long))).into_iter().collect();
    let many = |prefix: &str| -> serde_json::Map<String, Value> {
        (0..5_000).map(|at| (format!("{prefix}kagenti.io/x{at}"), json!({}))).collect()
    };
    let mut labels = labels;
    for at in 0..5_000 {
        labels[format!("kagenti.io/x{at}")] = json!("x");
        labels[format!("protocol.kagenti.io/x{at}")] = json!("");
    }
    let marks = json!({"f:labels": many("f:"), "f:annotations": many("f:")});
    json!({"name": "w", "namespace": "team-one", "uid": UID, "resourceVersion": "1", "labels": labels,
        "annotations": annotations, "creationTimestamp": "2026-01-02T03:04:05Z",
        "ownerReferences": [owner],
        "managedFields": [{"manager": manager, "operation": "Apply",
            "fieldsV1": {"f:metadata": marks, "f:spec": {"f:template": {"f:metadata": marks}}}}]})
}

/// Whoever may write an object can write as much on it as the API server takes, also on one that says that an Agent made it: of a Deployment of that
/// sort more is kept than of any.
#[test]
fn what_a_tenant_writes_on_an_object_is_not_kept_however_much_it_is() {
    let long = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "n".repeat(1 << 20), "uid": UID, "controller": true});
    let agent = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "a", "uid": UID, "controller": true});
    let nodes: serde_json::Map<_, _> = (0..5_000).map(|at| (format!("example.org/node-{at}"), json!("x"))).collect();
    let selected: serde_json::Map<_, _> = (0..5_000).map(|at| (format!("kagenti.io/x{at}"), json!("x"))).collect();
    for by in [(&long, keys::MANAGER_ENROLMENT), (&agent, keys::MANAGER_AGENT)] {
        let (_, manager) = by;
        let containers = json!([{"name": "agent", "image": "i".repeat(1 << 20)}]);
        let spec = json!({"serviceAccountName": "n".repeat(1 << 20), "containers": containers, "nodeSelector": nodes});
        let template = json!({"metadata": attacked(json!({"kagenti.io/type": "agent"}), by), "spec": spec});
        for kind in WorkloadKind::WITH_TEMPLATE {
            let path = kind.template_path().iter().rev();
            let mut object = path.fold(template.clone(), |inner, key| json!({*key: inner}));
            object["metadata"] = attacked(json!({"kagenti.io/type": "agent", "app.kubernetes.io/name": "w"}), by);
            object["spec"]["selector"] = json!({"matchLabels": selected});
            let of_agent = kind == WorkloadKind::Deployment && manager == keys::MANAGER_AGENT;
            let now = change(Kind::of_workload(kind).unwrap(), &object).now.unwrap();
            let What::Workload(seen) = &now.what else { panic!("{kind:?}: {:?}", now.what) };
            assert_eq!(seen.agent.is_some(), of_agent, "{kind:?} of {manager}: what is kept of an Agent's is measured");
            // Besides, labels of the selector by which its Pods are found.
            let (kept, most) = (now.heap(), if of_agent { 12 } else { 4 });
            assert!(kept < most * 1024, "{kind:?} of {manager}: {kept}");
        }
        let containers = json!([{"name": "agent"}]);
        let pod = json!({"metadata": template["metadata"], "spec": {"containers": containers, "nodeSelector": nodes}});
        let kept = heap(Kind::Pod, &pod);
        assert!(kept < 4 * 1024, "a Pod of {manager}: {kept}");
        let labels =
            json!({"kagenti.io/defaults": "true", "app": "modelapi", "app.kubernetes.io/managed-by": "drawbridge"});
        for kind in [Kind::ConfigMap, Kind::PersistentVolumeClaim] {
            let metadata = attacked(labels.clone(), by);
            let kept = heap(kind, &json!({"metadata": metadata, "data": {"config.yaml": "spire: auto"}}));
            assert!(kept < 4 * 1024, "{kind:?} of {manager}: {kept}");
        }
    }
}

/// A Service of one of ours may have a thousand ports, of which a tree takes a megabyte: where it leads is kept of it, as of any.
#[test]
fn of_a_service_of_an_agent_no_more_is_kept_than_where_it_leads() {
    let owner = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "a", "uid": UID, "controller": true});
    let ports: Vec<_> =
        (1..800).map(|port| json!({"name": format!("p{port}"), "port": port, "targetPort": port})).collect();
    let object = json!({"metadata": attacked(json!({}), (&owner, keys::MANAGER_AGENT)),
        "spec": {"selector": {"app": "a"}, "ports": ports}});
    assert!(object["spec"].to_string().len() < LARGEST_TEXT, "it is read");
    let kept = heap(Kind::Service, &object);
    assert!(kept < 4 * 1024, "{kept}");
}

/// What says whose an account is may be a list of megabytes: nobody writes one that is not known, so whose it is nobody knows.
#[test]
fn a_service_account_with_more_owners_than_anybody_s_is_somebody_else_s() {
    let agent = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "a", "uid": UID, "controller": true});
    let account = |owners: Vec<Value>| {
        let labels = json!({"kagenti.io/managed-by": "webhook"});
        let metadata =
            json!({"name": "w", "namespace": "team-one", "uid": UID, "labels": labels, "ownerReferences": owners});
        let now = change(Kind::ServiceAccount, &json!({"metadata": metadata})).now.unwrap();
        let What::ServiceAccount(seen) = &now.what else { panic!("{:?}", now.what) };
        (seen.ours, seen.is_dedicated(), seen.owners.len(), now.heap() < 128 * 1024)
    };
    assert_eq!(account(vec![agent.clone(); 200]), (true, true, 200, true));
    assert_eq!(account(vec![agent.clone(); 5_000]), (false, false, 0, true));
    let mut long = agent;
    long["name"] = json!("n".repeat(1 << 20));
    assert_eq!(account(vec![long]), (false, false, 0, true));
}

/// What admission keeps of a Job has no room for more than names: the controller of one whose reference is longer than any name is nobody.
#[test]
fn a_job_s_owner_whose_name_nothing_can_have_is_none() {
    let job = |owner: &str, api_version: &str| {
        let owners =
            json!([{"apiVersion": api_version, "kind": "CronJob", "name": owner, "uid": UID, "controller": true}]);
        let object = json!({"metadata": {"name": "j", "namespace": "team-one", "uid": UID, "ownerReferences": owners}});
        let now = change(Kind::Job, &object).now.unwrap();
        let slim = (Kind::Job.descriptor().slim)("j", &now);
        assert!(slim.heap() < 1024, "{}", slim.heap());
        match &slim.what {
            What::Slim(Slim::Job(owner)) => (owner.workload.kind, owner.workload.name.clone()),
            other => panic!("{other:?}"),
        }
    };
    let longest = "n".repeat(253);
    assert_eq!(job(&longest, "batch/v1"), (WorkloadKind::CronJob, longest.clone()));
    assert_eq!(job(&format!("{longest}n"), "batch/v1"), (WorkloadKind::Job, "j".to_owned()));
    assert_eq!(job("nightly", &format!("batch/{}", "v".repeat(1 << 20))), (WorkloadKind::Job, "j".to_owned()));
}

/// What is short and known is kept as it was: also what only a template that was copied from a Pod carries.
#[test]
fn what_admission_reads_of_a_template_is_kept_up_to_its_own_bound() {
    let ports = (1..=800).map(|port: u16| port.to_string()).collect::<Vec<_>>().join(",");
    let kept_of = |key: &str, value: &str| {
        // The record of our parts is kept beside parts of ours alone.
        let parts = json!([{"name": keys::CONTAINER_ENVOY}]);
        let object = json!({"metadata": {"name": "w"}, "spec": {"template": {"metadata": {"annotations": {key: value}},
            "spec": {"containers": parts, "nodeSelector":
                {"kubernetes.io/os": "windows", "beta.kubernetes.io/os": "linux", "pool": "a"}}}}});
        let template = workload(Kind::Deployment, &object).unwrap().template.unwrap();
        let system = json!({"kubernetes.io/os": "windows", "beta.kubernetes.io/os": "linux"});
        assert_eq!(template.value()["spec"], json!({"containers": parts, "nodeSelector": system}));
        template.annotations.get(key).map(str::len)
    };
    assert_eq!(kept_of(keys::ANNOTATION_OUTBOUND_EXCLUDE, &ports), Some(ports.len()));
    for (key, most) in [
        (keys::ANNOTATION_STATUS, 8 * 1024),
        (keys::ANNOTATION_INBOUND_EXCLUDE, 4 * 1024),
        (keys::ANNOTATION_MODE, 1024),
        (keys::ANNOTATION_SIGN, 1024),
    ] {
        assert_eq!(kept_of(key, &"1".repeat(most)), Some(most), "{key}");
        assert_eq!(kept_of(key, &"1".repeat(most + 1)), None, "{key}");
    }
    assert_eq!(kept_of("kagenti.io/x", "1"), None, "a key that nobody reads");
}

/// What enrolment writes, and what controllers note on a workload, they have to find again.
#[test]
fn every_key_that_is_written_on_a_workload_is_kept_of_it() {
    let noted = [
        keys::ANNOTATION_RETRY,
        keys::ANNOTATION_SUSPENDED,
        keys::ANNOTATION_RESTART_PENDING,
        keys::ANNOTATION_RESTART_REPLICAS,
    ];
    for key in noted.into_iter().chain(written::released().map(|(_, key)| key)) {
        assert!(keys::is_of_workload(key) || keys::is_of_template(key), "{key}");
    }
}

/// The annotation of a ConfigMap tells one thing: whether what stands there is what we wrote.
#[test]
fn of_a_config_map_the_digest_that_was_written_is_kept_only_while_it_holds() {
    let of = |digest: &str, frozen: bool| {
        let metadata = json!({"name": "envoy-config", "annotations": {"kagenti.io/content-digest": digest},
            "labels": {"app.kubernetes.io/managed-by": "drawbridge"}});
        let object = json!({"metadata": metadata, "immutable": frozen, "data": {"envoy.yaml": "one"}});
        match kept(Kind::ConfigMap, &object) {
            Some(What::ConfigMap(seen)) => seen,
            other => panic!("{other:?}"),
        }
    };
    let digest = of("", false).digest;
    assert!(of(&digest, false).is_as_written());
    assert_eq!(of(&digest, false).written.as_deref(), Some(&*digest));
    assert!(of(&digest, true).written.is_none(), "a person has made it immutable");
    for other in ["", "another", &"x".repeat(250 * 1024)] {
        assert!(of(other, false).written.is_none() && !of(other, false).is_as_written());
    }
}
