//! Pods and reviews as the API server sends them, of a size one can choose, and the snapshot they are decided from.
//!
//! A Pod here is what a ReplicaSet's Pod is at admission: defaulted, with its token volume and with the managed fields of
//! the controller that made it, which are a third of the bytes of a real one. It grows by environment variables.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::Context as _;
use drawbridge::cli::render::platform;
use drawbridge::config::builds::Builds;
use drawbridge::config::builds::Settings;
use drawbridge::config::gates::Gates;
use drawbridge::config::inputs::{ConfigMapInput, NamespaceInputs};
use drawbridge::config::schema::Platform;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::config::view::{ClusterView, Ownership, namespace_view};
use drawbridge::domain::keys;
use drawbridge::pipelines::agent_build::read;
use drawbridge::pipelines::beeai_build;
use drawbridge::pipelines::catalogue::{self, Values};
use drawbridge::pipelines::compose::{Composition, Surroundings, compose};
use serde_json::{Map, Value, json};

/// Namespace of the reviews.
pub const NAMESPACE: &str = "team1";
/// Workload of the Pods.
pub const WORKLOAD: &str = "weather-agent";
/// What stands for the uid in [`Review`]; 36 bytes, like a real one.
const UID: &str = "00000000-0000-4000-8000-000000000000";
/// Variables of one container before the next one is begun.
const PER_CONTAINER: usize = 40;

/// A Pod of `namespace` of about `size` bytes as compact JSON, that Drawbridge injects.
#[must_use]
pub fn pod(namespace: &str, size: usize) -> Value {
    let mut pod = with_variables(namespace, 0);
    let one = with_variables(namespace, 1).to_string().len() - pod.to_string().len();
    let mut variables = size.saturating_sub(pod.to_string().len()) / one;
    // Every further container takes bytes of its own; the estimate is corrected until it fits.
    loop {
        pod = with_variables(namespace, variables);
        if pod.to_string().len() <= size || variables == 0 {
            return pod;
        }
        variables -= 1;
    }
}

/// The same Pod as a person writes it: without what the API server and its plugins add.
#[must_use]
pub fn manifest(namespace: &str, size: usize) -> Value {
    let mut pod = pod(namespace, size);
    for key in ["managedFields", "creationTimestamp", "ownerReferences", "uid"] {
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.remove(key);
        }
    }
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.remove("volumes");
        spec.remove("serviceAccount");
        spec.remove("serviceAccountName");
    }
    for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
        if let Some(container) = container.as_object_mut() {
            container.remove("volumeMounts");
        }
    }
    pod
}

fn with_variables(namespace: &str, variables: usize) -> Value {
    let containers: Vec<Value> = (0..=variables.saturating_sub(1) / PER_CONTAINER)
        .map(|index| {
            let first = index * PER_CONTAINER;
            container(index, first..variables.min(first + PER_CONTAINER))
        })
        .collect();
    let fields: Map<String, Value> = containers
        .iter()
        .map(|container| (format!("k:{{\"name\":{}}}", container["name"]), fields_of(container)))
        .collect();
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "generateName": format!("{WORKLOAD}-7d4f8b9c5-"),
            "namespace": namespace,
            "creationTimestamp": null,
            "labels": {
                "app.kubernetes.io/name": WORKLOAD, "kagenti.io/type": "agent", "protocol.kagenti.io/a2a": "",
                "pod-template-hash": "7d4f8b9c5",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{WORKLOAD}-7d4f8b9c5"),
                "uid": "6f4d9b1e-2a8b-4f5f-9a6e-0c6f7f6f1a11", "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": [{
                "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
                "time": "2026-11-21T10:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {
                        "f:generateName": {},
                        "f:labels": {
                            ".": {}, "f:app.kubernetes.io/name": {}, "f:kagenti.io/type": {},
                            "f:pod-template-hash": {}, "f:protocol.kagenti.io/a2a": {},
                        },
                        "f:ownerReferences": { ".": {}, "k:{\"uid\":\"6f4d9b1e-2a8b-4f5f-9a6e-0c6f7f6f1a11\"}": {} },
                    },
                    "f:spec": {
                        "f:containers": fields, "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {},
                        "f:schedulerName": {}, "f:securityContext": {}, "f:terminationGracePeriodSeconds": {},
                    },
                },
            }],
        },
        "spec": {
            "volumes": [{ "name": "kube-api-access-x7k2p", "projected": { "defaultMode": 420, "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                { "downwardAPI": { "items": [{ "path": "namespace",
                    "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } }] } },
            ] } }],
            "containers": containers,
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "serviceAccount": "default", "securityContext": {},
            "schedulerName": "default-scheduler", "enableServiceLinks": true, "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
            "tolerations": [
                { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 300 },
                { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 300 },
            ],
        },
        "status": {},
    })
}

fn container(index: usize, variables: std::ops::Range<usize>) -> Value {
    let port = 8000 + index;
    let env: Vec<Value> = variables
        .map(|number| {
            json!({
                "name": format!("AGENT_SETTING_{number:04}"),
                "value": format!("https://settings.example.com/agents/weather/v{number:04}"),
            })
        })
        .collect();
    json!({
        "name": if index == 0 { "agent".to_owned() } else { format!("part-{index}") },
        "image": "registry.example.com/agents/weather:1.4.2",
        "ports": [{ "name": format!("http-{index}"), "containerPort": port, "protocol": "TCP" }],
        "env": env,
        "resources": { "limits": { "cpu": "500m", "memory": "1Gi" }, "requests": { "cpu": "100m", "memory": "256Mi" } },
        "volumeMounts": [{ "name": "kube-api-access-x7k2p", "readOnly": true,
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" }],
        "livenessProbe": { "httpGet": { "path": "/health", "port": port, "scheme": "HTTP" },
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3 },
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    })
}

/// What the API server notes about a container that one manager wrote.
fn fields_of(container: &Value) -> Value {
    let mut fields = Map::new();
    fields.insert(".".to_owned(), json!({}));
    for key in container.as_object().into_iter().flatten().map(|(key, _)| key) {
        let inside = match key.as_str() {
            "volumeMounts" => continue,
            "env" => named(container, "env"),
            "ports" => json!({ ".": {}, format!("k:{{\"containerPort\":{},\"protocol\":\"TCP\"}}",
                container["ports"][0]["containerPort"]):
                { ".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {} } }),
            "resources" => json!({ ".": {}, "f:limits": { ".": {}, "f:cpu": {}, "f:memory": {} },
                "f:requests": { ".": {}, "f:cpu": {}, "f:memory": {} } }),
            "livenessProbe" => json!({ ".": {}, "f:failureThreshold": {}, "f:httpGet": { ".": {}, "f:path": {},
                "f:port": {}, "f:scheme": {} }, "f:periodSeconds": {}, "f:successThreshold": {}, "f:timeoutSeconds": {} }),
            _ => json!({}),
        };
        fields.insert(format!("f:{key}"), inside);
    }
    Value::Object(fields)
}

fn named(container: &Value, list: &str) -> Value {
    let entries = container[list].as_array().into_iter().flatten();
    let mut fields = Map::new();
    fields.insert(".".to_owned(), json!({}));
    fields.extend(
        entries.map(|entry| {
            (format!("k:{{\"name\":{}}}", entry["name"]), json!({ ".": {}, "f:name": {}, "f:value": {} }))
        }),
    );
    Value::Object(fields)
}

/// An AgentBuild as a person writes it: of mode dev, whose template has 5 steps, or with another number of steps of its own.
#[must_use]
pub fn agent_build(namespace: &str, steps: usize) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentBuild",
        "metadata": { "name": "weather-build", "namespace": namespace },
        "spec": {
            "mode": "dev",
            "source": { "sourceRepository": "github.com/kagenti/agent-examples.git", "sourceRevision": "main",
                "sourceSubfolder": "a2a/weather_service" },
            "buildOutput": { "imageRegistry": "registry.example.com", "image": "agents/weather", "imageTag": "v1.4.2" },
        },
    });
    if steps != 5 {
        let own = |number: usize| json!({ "name": format!("step-{number}"), "configMap": "github-clone-step" });
        object["spec"]["pipeline"] = json!({ "steps": (0..steps).map(own).collect::<Vec<_>>() });
    }
    object
}

/// The bytes of a review, and where its uid stands in them.
#[derive(Debug, Clone)]
pub struct Review {
    bytes: Vec<u8>,
    uid: usize,
}

impl Review {
    /// The API server's question about the creation of `pod`.
    #[must_use]
    pub fn of(pod: &Value) -> Self {
        let kind = r#"{"group":"","version":"v1","kind":"Pod"}"#;
        let resource = r#"{"group":"","version":"v1","resource":"pods"}"#;
        Self::created(kind, resource, pod)
    }

    /// The API server's question about the creation of an AgentBuild.
    #[must_use]
    pub fn of_agent_build(object: &Value) -> Self {
        let kind = r#"{"group":"agent.kagenti.dev","version":"v1alpha1","kind":"AgentBuild"}"#;
        let resource = r#"{"group":"agent.kagenti.dev","version":"v1alpha1","resource":"agentbuilds"}"#;
        Self::created(kind, resource, object)
    }

    fn created(kind: &str, resource: &str, pod: &Value) -> Self {
        let namespace = &pod["metadata"]["namespace"];
        let text = format!(
            r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"{UID}","kind":{kind},"resource":{resource},"requestKind":{kind},"requestResource":{resource},"namespace":{namespace},"operation":"CREATE","userInfo":{{"username":"system:serviceaccount:kube-system:replicaset-controller","uid":"0b5e8a0e-6c2f-4e4e-9a55-6a4f3c4a7b10","groups":["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"]}},"object":{pod},"oldObject":null,"dryRun":false,"options":{{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}}}}}}"#
        );
        let uid = text.find(UID).unwrap_or(0);
        Self { bytes: text.into_bytes(), uid }
    }

    /// Its bytes, with a uid of its own for each `number`.
    pub fn numbered(&mut self, number: u64) -> &[u8] {
        let digits = format!("{number:012}");
        self.bytes[self.uid + 24..self.uid + 36].copy_from_slice(&digits.as_bytes()[..12]);
        &self.bytes
    }

    /// Its length in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// A fresh installation with `others` more agents, ten in a namespace; [`NAMESPACE`] holds [`WORKLOAD`], with what its
/// controllers make for it.
///
/// # Errors
/// When the platform file that `render` ships cannot be read.
pub fn snapshot(others: usize) -> anyhow::Result<Snapshot> {
    let platform = Platform::parse(&platform::platform_file(), "config.yaml").context("the shipped platform file")?;
    let config: BTreeMap<String, String> = [
        ("ISSUER", "https://keycloak.example.com/realms/kagenti"),
        ("KEYCLOAK_URL", "http://keycloak-service.keycloak.svc:8080"),
        ("KEYCLOAK_REALM", "kagenti"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    let with_config = |agents: Vec<String>| NamespaceInputs {
        config_maps: [(
            keys::CONFIG_MAP_AUTHBRIDGE.to_owned(),
            ConfigMapInput { data: config.clone(), ..ConfigMapInput::default() },
        )]
        .into(),
        service_accounts: agents.into_iter().map(|name| (Arc::from(name), Ownership::Ours)).collect(),
        ..NamespaceInputs::default()
    };
    let view = |name: &str, inputs: &NamespaceInputs| {
        (Arc::from(name), Arc::new(namespace_view(&platform, name, inputs, None)))
    };
    let ours = with_config(vec![WORKLOAD.to_owned()]);
    let mut namespaces = HashMap::from([view(NAMESPACE, &ours)]);
    namespaces.extend((0..others.div_ceil(10)).map(|team| {
        let agents = (0..10.min(others - team * 10)).map(|agent| format!("agent-{agent}")).collect();
        view(&format!("other-{team}"), &with_config(agents))
    }));
    let view = ClusterView {
        operator_namespace: Arc::from(keys::OPERATOR_NAMESPACE),
        server_version: (1, 36),
        spiffe_driver: true,
        namespaces,
    };
    Ok(Snapshot::new(&platform, Gates::default(), view).with_builds(Arc::new(builds())))
}

/// What is known of builds: the settings as they are without a word in the platform file, and the shipped ConfigMaps.
#[must_use]
pub fn builds() -> Builds {
    let shipped = catalogue::config_maps(keys::OPERATOR_NAMESPACE, &Values::default());
    let builds = Builds::new(Settings::new(keys::OPERATOR_NAMESPACE));
    Builds { view: builds.view.with(shipped), ..builds }
}

/// An AgentBuild of BeeAI, as its documentation has it.
#[must_use]
pub fn beeai_build(namespace: &str) -> Value {
    json!({
        "apiVersion": "beeai.dev/v1",
        "kind": "AgentBuild",
        "metadata": { "name": "weather-build", "namespace": namespace, "uid": "5f0c1c3e-6f7e-4a44-9a55-6a4f3c4a7b10" },
        "spec": {
            "repoUrl": "github.com/kagenti/agent-examples.git", "revision": "main", "sourceSubfolder": "a2a/weather_service",
            "imageRegistry": "registry.example.com", "image": "agents/weather", "imageTag": "v1.4.2",
            "env": [{ "name": "PIP_INDEX", "value": "internal" }],
        },
    })
}

/// The run of an AgentBuild of BeeAI.
///
/// # Errors
/// When nothing is composed.
pub fn beeai_composition(stored: &Value, builds: &Builds) -> anyhow::Result<Composition> {
    let namespace = stored.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let (view, settings) = (&builds.view, &builds.settings.pipelines);
    let request = beeai_build::read(stored, (beeai_build::front(keys::GROUP_BEEAI), namespace), view, settings);
    let around = Surroundings { steps: view.steps(view.operator_namespace()), settings, accounts: None };
    compose(&request, around).map_err(|found| anyhow::anyhow!("nothing is composed: {:?}", found.faults))
}

/// The run of a stored AgentBuild.
///
/// # Errors
/// When nothing is composed, or not a task for each step.
pub fn composition(stored: &Value, builds: &Builds) -> anyhow::Result<Composition> {
    let text = |pointer: &str| stored.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (view, settings) = (&builds.view, &builds.settings.pipelines);
    let around = Surroundings { steps: view.steps(text("/spec/pipeline/namespace")), settings, accounts: None };
    let request = read(stored, text("/metadata/namespace"), view, 1).0;
    let composition = compose(&request, around);
    let composition = composition.map_err(|found| anyhow::anyhow!("nothing is composed: {:?}", found.faults))?;
    let tasks = composition.run.pointer("/spec/pipelineSpec/tasks").and_then(Value::as_array).map_or(0, Vec::len);
    let steps = stored.pointer("/spec/pipeline/steps").and_then(Value::as_array).map_or(0, Vec::len);
    anyhow::ensure!(tasks == steps, "{tasks} tasks are composed of {steps} steps");
    Ok(composition)
}
