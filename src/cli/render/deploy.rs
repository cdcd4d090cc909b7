//! The processes: two Deployments of the same image, so that the webhook runs with rights that only read.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{
    Capabilities, ConfigMapVolumeSource, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction, Namespace,
    ObjectFieldSelector, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, ResourceRequirements, SeccompProfile,
    SecurityContext, Service, ServicePort, ServiceSpec, TopologySpreadConstraint, Volume, VolumeMount,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::platform::{FOLDER_GATES, FOLDER_PLATFORM};
use super::rbac::Role;
use super::{FailureMode, Install, metadata, object};
use crate::config::cards::SOCKET;
use crate::domain::keys;

/// Name of the container port that reviews arrive at.
pub const PORT_NAME_WEBHOOK: &str = "webhook-server";
/// Number of that port.
pub const PORT_WEBHOOK: i32 = 9443;
/// Name of the port for probes and metrics.
pub const PORT_NAME_HEALTH: &str = "health";
/// Number of that port.
pub const PORT_HEALTH: i32 = 8081;
/// User the image runs as.
pub const USER: i64 = 65532;
/// Replicas of each Deployment.
const REPLICAS: i32 = 2;
/// Seconds between SIGTERM and SIGKILL; draining takes less.
const GRACE_SECONDS: i64 = 45;

/// The operator's namespace, which itself admits only hardened Pods.
#[must_use]
pub fn namespace(install: &Install) -> Value {
    let mut metadata = metadata(&install.namespace, None);
    metadata
        .labels
        .get_or_insert_default()
        .insert("pod-security.kubernetes.io/enforce".to_owned(), "restricted".to_owned());
    object(&Namespace { metadata, ..Namespace::default() })
}

/// Service, Deployment, disruption budget and network policy of the webhook.
#[must_use]
pub fn webhook(install: &Install) -> Vec<Value> {
    vec![
        object(&service(install)),
        object(&deployment(install, Role::Webhook)),
        object(&budget(install, Role::Webhook)),
        object(&network_policy(install, Role::Webhook)),
    ]
}

/// Deployment, disruption budget and network policy of the controllers.
#[must_use]
pub fn controllers(install: &Install) -> Vec<Value> {
    vec![
        object(&deployment(install, Role::Controllers)),
        object(&budget(install, Role::Controllers)),
        object(&network_policy(install, Role::Controllers)),
    ]
}

fn selector(role: Role) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "drawbridge".to_owned()),
        ("app.kubernetes.io/component".to_owned(), role.argument().to_owned()),
    ])
}

fn selected(role: Role) -> LabelSelector {
    LabelSelector { match_labels: Some(selector(role)), ..LabelSelector::default() }
}

/// Metadata of a Deployment or Service of the installation: without the label by which policies with parameters know what is made for an Agent. Such a
/// policy refuses whatever it matches, whoever writes it, while the API server has not looked up the kind of its parameters.
fn unmarked(name: &str, install: &Install) -> ObjectMeta {
    let mut metadata = metadata(name, Some(&install.namespace));
    metadata.labels.get_or_insert_default().remove(keys::LABEL_APP_MANAGED_BY);
    metadata
}

fn service(install: &Install) -> Service {
    Service {
        metadata: unmarked(keys::SERVICE_WEBHOOK, install),
        spec: Some(ServiceSpec {
            selector: Some(selector(Role::Webhook)),
            ports: Some(vec![ServicePort {
                name: Some("webhook".to_owned()),
                port: 443,
                target_port: Some(IntOrString::String(PORT_NAME_WEBHOOK.to_owned())),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn deployment(install: &Install, role: Role) -> Deployment {
    Deployment {
        metadata: unmarked(role.name(), install),
        spec: Some(DeploymentSpec {
            replicas: Some(REPLICAS),
            selector: selected(role),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(1)),
                    max_unavailable: Some(IntOrString::Int(0)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(selector(role)), ..ObjectMeta::default() }),
                spec: Some(pod(install, role)),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn pod(install: &Install, role: Role) -> PodSpec {
    // A fixed user lies outside of every range that OpenShift assigns, and its Pod is refused.
    let run_as_user = (!install.values.openshift).then_some(USER);
    PodSpec {
        service_account_name: Some(role.name().to_owned()),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user,
            run_as_group: run_as_user,
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".to_owned(), ..SeccompProfile::default() }),
            ..PodSecurityContext::default()
        }),
        containers: vec![container(install, role)],
        volumes: Some(vec![
            config_volume("platform-config", keys::CONFIG_MAP_PLATFORM),
            config_volume("feature-gates", keys::CONFIG_MAP_GATES),
        ]),
        topology_spread_constraints: Some(vec![TopologySpreadConstraint {
            max_skew: 1,
            topology_key: "kubernetes.io/hostname".to_owned(),
            when_unsatisfiable: "ScheduleAnyway".to_owned(),
            label_selector: Some(selected(role)),
            ..TopologySpreadConstraint::default()
        }]),
        ..PodSpec::default()
    }
}

fn config_volume(name: &str, config_map: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        config_map: Some(ConfigMapVolumeSource { name: config_map.to_owned(), ..ConfigMapVolumeSource::default() }),
        ..Volume::default()
    }
}

fn container(install: &Install, role: Role) -> Container {
    let mount = |name: &str, path: &str| VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    let mut ports = vec![port(PORT_NAME_HEALTH, PORT_HEALTH)];
    if role == Role::Webhook {
        ports.insert(0, port(PORT_NAME_WEBHOOK, PORT_WEBHOOK));
    }
    Container {
        name: "drawbridge".to_owned(),
        image: Some(install.image.clone()),
        args: Some(arguments(install, role)),
        env: Some(environment(install)),
        ports: Some(ports),
        startup_probe: Some(Probe { period_seconds: Some(1), failure_threshold: Some(60), ..probe("/healthz") }),
        liveness_probe: Some(Probe { period_seconds: Some(20), ..probe("/healthz") }),
        readiness_probe: Some(Probe { period_seconds: Some(2), failure_threshold: Some(1), ..probe("/readyz") }),
        resources: Some(ResourceRequirements {
            requests: Some(quantities(&[("cpu", "50m"), ("memory", "64Mi")])),
            limits: Some(quantities(&[("memory", "256Mi")])),
            ..ResourceRequirements::default()
        }),
        security_context: Some(SecurityContext {
            allow_privilege_escalation: Some(false),
            read_only_root_filesystem: Some(true),
            capabilities: Some(Capabilities { drop: Some(vec!["ALL".to_owned()]), add: None }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(vec![mount("platform-config", FOLDER_PLATFORM), mount("feature-gates", FOLDER_GATES)]),
        ..Container::default()
    }
}

/// Where the process runs, and which namespaces it serves.
fn environment(install: &Install) -> Vec<EnvVar> {
    let mut environment = vec![EnvVar {
        name: "POD_NAMESPACE".to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                field_path: "metadata.namespace".to_owned(),
                ..ObjectFieldSelector::default()
            }),
            ..EnvVarSource::default()
        }),
        value: None,
    }];
    if !install.namespaces.is_empty() {
        let value = Some(install.namespaces.join(","));
        environment.push(EnvVar { name: "NAMESPACES2WATCH".to_owned(), value, value_from: None });
    }
    environment
}

/// The controllers have to know whether Pods may wait behind the scheduling gate.
fn arguments(install: &Install, role: Role) -> Vec<String> {
    let mut arguments = vec!["serve".to_owned(), format!("--roles={}", role.argument())];
    if role == Role::Controllers && install.mode() == FailureMode::Gate {
        arguments.push("--failure-mode=gate".to_owned());
    }
    arguments.extend(install.kinds.argument());
    arguments
}

fn port(name: &str, number: i32) -> ContainerPort {
    ContainerPort { name: Some(name.to_owned()), container_port: number, ..ContainerPort::default() }
}

fn probe(path: &str) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::String(PORT_NAME_HEALTH.to_owned()),
            ..HTTPGetAction::default()
        }),
        ..Probe::default()
    }
}

fn quantities(pairs: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Quantity((*value).to_owned()))).collect()
}

fn budget(install: &Install, role: Role) -> PodDisruptionBudget {
    PodDisruptionBudget {
        metadata: metadata(role.name(), Some(&install.namespace)),
        spec: Some(PodDisruptionBudgetSpec {
            max_unavailable: Some(IntOrString::Int(1)),
            selector: Some(selected(role)),
            // Replicas that do not work protect nothing, and must not keep a node from being drained.
            unhealthy_pod_eviction_policy: Some("AlwaysAllow".to_owned()),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    }
}

/// Name of the container port that the catalogue is answered at, and of the port of the Service that leads to it.
pub const PORT_NAME_CATALOGUE: &str = "catalogue";
/// Number of that port.
pub const PORT_CATALOGUE: i32 = 9444;

/// Opens the port of the catalogue in what belongs to the webhook's Pods: for Pods of the cluster, since nobody else has a token.
pub fn with_catalogue(object: &mut Value) {
    if object["metadata"]["name"] != Role::Webhook.name() {
        return;
    }
    let (list, item) = match object["kind"].as_str() {
        Some("Deployment") => {
            let port = serde_json::json!({"name": PORT_NAME_CATALOGUE, "containerPort": PORT_CATALOGUE});
            ("/spec/template/spec/containers/0/ports", port)
        }
        Some("Service") => {
            let port = serde_json::json!({"name": PORT_NAME_CATALOGUE, "port": keys::PORT_CATALOGUE, "targetPort": PORT_NAME_CATALOGUE});
            ("/spec/ports", port)
        }
        Some("NetworkPolicy") => {
            let rule = serde_json::json!({"ports": [{"port": PORT_CATALOGUE}], "from": [{"namespaceSelector": {}}]});
            ("/spec/ingress", rule)
        }
        _ => return,
    };
    if let Some(list) = object.pointer_mut(list).and_then(Value::as_array_mut) {
        list.push(item);
    }
    // What the catalogue keeps comes besides (docs/limits.md).
    if let Some(limit) = object.pointer_mut("/spec/template/spec/containers/0/resources/limits/memory") {
        *limit = "320Mi".into();
    }
}

/// Mounts the SPIFFE agent's socket where the object is the Deployment of the controllers.
pub(super) fn with_socket(object: &mut Value) {
    if object["kind"] != "Deployment" || object["metadata"]["name"] != Role::Controllers.name() {
        return;
    }
    let folder = std::path::Path::new(SOCKET).parent().unwrap_or_else(|| std::path::Path::new("/"));
    let volume = serde_json::json!({"name": keys::VOLUME_SPIRE_SOCKET,
        "csi": {"driver": keys::CSI_DRIVER_SPIFFE, "readOnly": true}});
    let mount = serde_json::json!({"name": keys::VOLUME_SPIRE_SOCKET, "mountPath": folder, "readOnly": true});
    let spec = "/spec/template/spec";
    for (list, item) in [("volumes", volume), ("containers/0/volumeMounts", mount)] {
        if let Some(list) = object.pointer_mut(&format!("{spec}/{list}")).and_then(Value::as_array_mut) {
            list.push(item);
        }
    }
}

/// What has the Prometheus operator scrape every replica of both roles.
pub(super) fn pod_monitor(install: &Install) -> Value {
    serde_json::json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": metadata("drawbridge", Some(&install.namespace)),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": "drawbridge"}},
            "podMetricsEndpoints": [{"port": PORT_NAME_HEALTH, "path": "/metrics"}],
        },
    })
}

/// Reviews from anywhere (the API server has no label to select it by), probes and metrics from namespaces that are
/// labelled for it. Nothing is said about egress: the port of the API server's endpoints differs between clusters.
fn network_policy(install: &Install, role: Role) -> NetworkPolicy {
    let to = |number: i32| {
        Some(vec![NetworkPolicyPort { port: Some(IntOrString::Int(number)), ..NetworkPolicyPort::default() }])
    };
    let from_metrics = NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector {
            match_labels: Some(BTreeMap::from([("metrics".to_owned(), "enabled".to_owned())])),
            ..LabelSelector::default()
        }),
        ..NetworkPolicyPeer::default()
    };
    let mut ingress = vec![NetworkPolicyIngressRule { ports: to(PORT_HEALTH), from: Some(vec![from_metrics]) }];
    if role == Role::Webhook {
        ingress.push(NetworkPolicyIngressRule { ports: to(PORT_WEBHOOK), from: None });
    }
    NetworkPolicy {
        metadata: metadata(role.name(), Some(&install.namespace)),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selected(role)),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(ingress),
            ..NetworkPolicySpec::default()
        }),
    }
}
