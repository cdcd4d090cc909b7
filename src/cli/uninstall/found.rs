//! What is there: every object of ours, and every object that carries something of ours. Lists and reads only.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::plan::{Options, left_behind};
use super::trust::{self, Trust};
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::render::{self, FailureMode, Install};
use crate::cli::survey::{self, TYPES, annotation, label, text};
use crate::config::cards::{BUNDLE_NAMESPACE, BundleConfigMap};
use crate::config::content::digest;
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::server::guards::Kind as Guard;
use crate::store::{Kind, KindOrigin};

/// One object, and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Path of the object.
    pub(super) path: String,
    /// The object.
    pub(super) object: Value,
    /// Its name says that it is ours; otherwise a label has to.
    pub(super) always_ours: bool,
    /// A person changed it.
    pub(super) edited: bool,
}

/// Everything that concerns an uninstall.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Found {
    /// Objects of the installation.
    pub(super) parts: Vec<Part>,
    /// What makes Pods.
    pub(super) workloads: Vec<Part>,
    /// Pods of namespaces that concern us.
    pub(super) pods: Vec<Part>,
    /// How many Pods of each workload run with our parts, by namespace.
    pub(super) injected: BTreeMap<(String, Workload), usize>,
    /// AgentRuntimes.
    pub(super) agent_runtimes: Vec<Part>,
    /// Objects of our other kinds.
    pub(super) agents: Vec<Part>,
    /// What cuts off and opens agents.
    pub(super) trust: Trust,
    /// ConfigMaps and ServiceAccounts that controllers made.
    pub(super) belongings: Vec<Part>,
    /// Who uses a ConfigMap or ServiceAccount: by kind, namespace and name.
    pub(super) users: BTreeMap<(String, String, String), BTreeSet<String>>,
    /// NetworkPolicies that let only its Agents reach a ModelAPI.
    pub(super) restricting: Vec<Part>,
    /// Jobs whose Pods wait behind the scheduling gate.
    pub(super) jobs: Vec<Part>,
    /// Namespaces of which not everything could be read that may use a ConfigMap or ServiceAccount.
    pub(super) unread: BTreeSet<String>,
}

impl Found {
    /// Who uses a ConfigMap or ServiceAccount.
    pub(super) fn users_of(&self, kind: &str, namespace: &str, name: &str) -> impl Iterator<Item = &str> {
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.users.get(&key).into_iter().flatten().map(String::as_str)
    }
}

/// Plural, and whether it is namespaced, of every kind that `render` and `alerts` print.
const KINDS: &[(&str, &str, bool)] = &[
    ("ClusterRole", "clusterroles", false),
    ("ClusterRoleBinding", "clusterrolebindings", false),
    ("ConfigMap", "configmaps", true),
    ("CustomResourceDefinition", "customresourcedefinitions", false),
    ("Deployment", "deployments", true),
    ("Gateway", "gateways", true),
    ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", false),
    ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", false),
    ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
    ("Namespace", "namespaces", false),
    ("NetworkPolicy", "networkpolicies", true),
    ("PodDisruptionBudget", "poddisruptionbudgets", true),
    ("PodMonitor", "podmonitors", true),
    ("PrometheusRule", "prometheusrules", true),
    ("Role", "roles", true),
    ("RoleBinding", "rolebindings", true),
    ("Service", "services", true),
    ("ServiceAccount", "serviceaccounts", true),
    ("ValidatingAdmissionPolicy", "validatingadmissionpolicies", false),
    ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false),
    ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
];

/// The order within a phase: bindings ahead of what they bind, rights ahead of processes.
const FIRST: &[&str] = &[
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicy",
    "ClusterRoleBinding",
    "RoleBinding",
    "Deployment",
];

/// Path of an object of the manifests.
pub(in crate::cli) fn path(object: &Value) -> Option<String> {
    let (_, plural, namespaced) = KINDS.iter().find(|(kind, ..)| *kind == text(object, "/kind"))?;
    let version = text(object, "/apiVersion");
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let name = text(object, "/metadata/name");
    let namespace = text(object, "/metadata/namespace");
    Some(if *namespaced {
        format!("{root}/namespaces/{namespace}/{plural}/{name}")
    } else {
        format!("{root}/{plural}/{name}")
    })
}

/// The objects that `render` prints for either failure mode, once each, in the order in which they go.
fn rendered(options: &Options) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = Vec::new();
    for failure_mode in [FailureMode::Gate, FailureMode::Fail] {
        let install = Install::new(failure_mode, &*options.operator_namespace, "");
        let parts = render::parts(&install).into_iter().flat_map(|part| part.objects);
        let catalogue = render::rbac::catalogue(&install);
        // Whichever class it was made of.
        let gateway = render::kinds::gateway(&install, "");
        // Whichever ConfigMap it is about: its name and that of its account count.
        let bundle =
            BundleConfigMap { namespace: BUNDLE_NAMESPACE.to_owned(), name: String::new(), key: String::new() };
        let bundle = render::rbac::trust_bundle(&install, &bundle);
        for object in parts.chain(render::compat::objects(&install)).chain(catalogue).chain(bundle).chain([gateway]) {
            let Some(path) = path(&object) else { continue };
            if all.iter().all(|(known, _)| *known != path) {
                all.push((path, object));
            }
        }
    }
    all.sort_by_key(|(_, object)| turn(object));
    all
}

/// When an object goes, within its phase.
fn turn(object: &Value) -> usize {
    FIRST.iter().position(|first| *first == text(object, "/kind")).unwrap_or(FIRST.len())
}

/// Reads everything.
///
/// # Errors
/// When the cluster does not answer.
pub(super) async fn read(cluster: &Cluster, options: &Options, notes: &mut Vec<String>) -> anyhow::Result<Found> {
    let mut found = Found { parts: installation(cluster, options, notes).await?, ..Found::default() };
    for known in TYPES.iter().filter(|known| known.kind != WorkloadKind::Pod) {
        let collection = known.collection("");
        for object in cluster.list(&collection.path(), notes).await? {
            if carries(&object) || labels_its_pods(&object, known.kind) {
                found.workloads.push(part(&known.collection(text(&object, "/metadata/namespace")).path(), object));
            }
        }
    }
    for object in cluster.list(&survey::agent_runtimes("").path(), notes).await? {
        let collection = survey::agent_runtimes(text(&object, "/metadata/namespace"));
        found.agent_runtimes.push(part(&collection.path(), object));
    }
    let is_ours = |kind: &&Kind| matches!(kind.descriptor().origin, KindOrigin::Ours | KindOrigin::Compat);
    for kind in Kind::ALL.iter().filter(is_ours).filter(|kind| **kind != Kind::AgentRuntime) {
        for object in cluster.list(&kind.path(""), notes).await? {
            found.agents.push(part(&kind.path(text(&object, "/metadata/namespace")), object));
        }
    }
    belongings(cluster, options, &mut found, notes).await?;
    let policies = cluster.list(&format!("{}?{}", Kind::NetworkPolicy.path(""), ours()), notes).await?;
    let restricting = policies.into_iter().filter(is_of_model_api);
    found.restricting = restricting
        .map(|object| part(&Kind::NetworkPolicy.path(text(&object, "/metadata/namespace")), object))
        .collect();
    pods(cluster, &mut found, notes).await?;
    found.trust = trust::read(cluster, notes).await?;
    Ok(found)
}

pub(super) fn part(collection: &str, object: Value) -> Part {
    let path = format!("{collection}/{}", text(&object, "/metadata/name"));
    Part { path, object, always_ours: true, edited: false }
}

/// The query for what carries our label.
fn ours() -> String {
    format!("labelSelector={}%3D{}", keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE)
}

/// A NetworkPolicy of a ModelAPI: `kaos.restrictModelAPIs`.
fn is_of_model_api(policy: &Value) -> bool {
    survey::controller(policy).is_some_and(|owner| {
        text(owner, "/kind") == Kind::ModelApi.as_str() && text(owner, "/apiVersion") == Kind::ModelApi.api_version()
    })
}

async fn installation(cluster: &Cluster, options: &Options, notes: &mut Vec<String>) -> anyhow::Result<Vec<Part>> {
    let mut parts = Vec::new();
    let own = &options.operator_namespace;
    let more = [
        (format!("/api/v1/namespaces/{own}/secrets/{}", keys::SECRET_AUTHORITY), "v1", "Secret"),
        (
            format!("/apis/coordination.k8s.io/v1/namespaces/{own}/leases/{}", keys::LEASE),
            "coordination.k8s.io/v1",
            "Lease",
        ),
    ];
    let rendered = rendered(options);
    let accounts = accounts(&rendered);
    let rendered = rendered.into_iter().map(|(path, object)| (path, object, false));
    let more = more
        .into_iter()
        .map(|(path, version, kind)| (path, serde_json::json!({"apiVersion": version, "kind": kind}), kind == "Lease"));
    for (path, wanted, always_ours) in rendered.chain(more) {
        // What may not be seen is told, and so does the exit code.
        if let Answer::Object(mut object) = cluster.read(&path, notes).await? {
            object["kind"] = wanted["kind"].clone();
            let edited = is_settings(&object) && edited(&object).unwrap_or_else(|| object["data"] != wanted["data"]);
            parts.push(Part { path, object, always_ours, edited });
        }
    }
    let ours = ours();
    let settings = cluster.list(&format!("/api/v1/namespaces/{own}/configmaps?{ours}"), notes).await?;
    let more = unknown_settings(&settings, &parts);
    parts.extend(more);
    let root = "/apis/rbac.authorization.k8s.io/v1";
    let bindings = cluster.list(&format!("{root}/rolebindings?{ours}"), notes).await?;
    let roles = cluster.list(&format!("{root}/roles?{ours}"), notes).await?;
    let mut more = of_watched_namespaces(bindings, roles, own, &accounts);
    for kind in Guard::ALL.into_iter().filter(|kind| !kind.is_webhook()) {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{}?{ours}", kind.plural());
        more.extend(cluster.list(&path, notes).await?.into_iter().filter(bears_our_name));
    }
    // What `render --pod-monitor` and `alerts --prometheus-rule` print, in whichever namespace Prometheus looks for it.
    for plural in ["podmonitors", "prometheusrules"] {
        more.extend(cluster.list(&format!("/apis/monitoring.coreos.com/v1/{plural}?{ours}"), notes).await?);
    }
    for object in more {
        let path = path(&object).filter(|path| parts.iter().all(|part| part.path != *path));
        parts.extend(path.map(|path| Part { path, object, always_ours: false, edited: false }));
    }
    parts.sort_by_key(|part| turn(&part.object));
    Ok(parts)
}

/// A ConfigMap of the manifests: people may edit it.
fn is_settings(object: &Value) -> bool {
    text(object, "/kind") == "ConfigMap"
}

/// Whether the data of a ConfigMap differ from what `render` or a controller wrote there, by the digest that they left with it: so it does not
/// matter which options or which version of the manifests it came from. `None` without a digest.
fn edited(object: &Value) -> Option<bool> {
    let written = annotation(object, keys::ANNOTATION_CONTENT_DIGEST)?;
    let data = object["data"].as_object().into_iter().flatten();
    let data = data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    let more = object["binaryData"].as_object().is_some_and(|more| !more.is_empty());
    Some(more || written != digest(&data))
}

/// ConfigMaps that another version of `render` has written into the operator's namespace. A template of namespace ConfigMaps is a person's, even
/// when it was copied from one that a controller made.
fn unknown_settings(all: &[Value], known: &[Part]) -> Vec<Part> {
    let parts = all.iter().filter_map(|object| {
        let path = path(object).filter(|path| known.iter().all(|part| part.path != *path))?;
        let template = keys::NAMESPACE_CONFIG_MAPS.contains(&text(object, "/metadata/name"));
        // An earlier version's leader kept the parameters of the gate policy in a ConfigMap.
        let earlier = text(object, "/metadata/name") == keys::GATE;
        let edited = if earlier { Some(false) } else { edited(object) };
        let edited = edited.filter(|_| is_settings(object) && !template)?;
        Some(Part { path, object: object.clone(), always_ours: false, edited })
    });
    parts.collect()
}

/// A policy or binding with our label that some version of `render` has named: one that this version does not know would go on refusing, and comparing,
/// when nobody is there any more who looks after it.
fn bears_our_name(object: &Value) -> bool {
    text(object, "/metadata/name").starts_with("drawbridge-")
}

/// The name of every RoleBinding that `render` prints, and the account that it gives rights to: in watched namespaces they have the names that they have
/// in the operator's own.
fn accounts(rendered: &[(String, Value)]) -> BTreeMap<String, String> {
    let bindings = rendered.iter().map(|(_, object)| object).filter(|object| text(object, "/kind") == "RoleBinding");
    let named = |binding: &Value, pointer: &str| text(binding, pointer).to_owned();
    bindings.map(|binding| (named(binding, "/metadata/name"), named(binding, "/subjects/0/name"))).collect()
}

/// Bindings and Roles that `render --watch-namespaces` makes, whatever list they were made from: those by our names that give rights to the
/// operator in `own`, and Roles that nobody is bound to any more. What another operator is bound to is not ours.
fn of_watched_namespaces(
    bindings: Vec<Value>,
    roles: Vec<Value>,
    own: &str,
    accounts: &BTreeMap<String, String>,
) -> Vec<Value> {
    let named = |object: &Value| accounts.contains_key(text(object, "/metadata/name"));
    let place =
        |object: &Value| (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned());
    let of_own = |binding: &Value| {
        let account = accounts.get(text(binding, "/metadata/name")).map_or("", String::as_str);
        let mut subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.any(|it| it["kind"] == "ServiceAccount" && it["namespace"] == own && it["name"] == account)
    };
    let (ours, theirs): (Vec<Value>, Vec<Value>) = bindings.into_iter().filter(named).partition(of_own);
    let taken: BTreeSet<_> = theirs.iter().map(place).collect();
    let roles = roles.into_iter().filter(|role| named(role) && !taken.contains(&place(role)));
    ours.into_iter().chain(roles).collect()
}

/// Carries something of ours.
fn carries(object: &Value) -> bool {
    let managed = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    managed.into_iter().flatten().any(|entry| entry["manager"] == keys::MANAGER_ENROLMENT)
        || left_behind(object).next().is_some()
}

/// Whether its Pods carry the type label by its template.
fn labels_its_pods(object: &Value, kind: WorkloadKind) -> bool {
    let template = kind.template_path().iter().try_fold(object, |value, key| value.get(key));
    !survey::belongs_to_another(object) && template.is_some_and(|template| label(template, keys::LABEL_TYPE).is_some())
}

/// ConfigMaps and ServiceAccounts that controllers made in the namespaces of workloads.
async fn belongings(
    cluster: &Cluster,
    options: &Options,
    found: &mut Found,
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    let ours = ours();
    for object in cluster.list(&format!("/api/v1/configmaps?{ours}"), notes).await? {
        let namespace = text(&object, "/metadata/namespace").to_owned();
        if namespace == options.operator_namespace
            || !keys::NAMESPACE_CONFIG_MAPS.contains(&text(&object, "/metadata/name"))
        {
            continue;
        }
        let edited = edited(&object).unwrap_or(true);
        found.belongings.push(Part { edited, ..part(&format!("/api/v1/namespaces/{namespace}/configmaps"), object) });
    }
    for object in cluster.list(&format!("/api/v1/serviceaccounts?{ours}"), notes).await? {
        if label(&object, keys::LABEL_MANAGED_BY) != Some(keys::MANAGED_BY_WEBHOOK) {
            continue;
        }
        let namespace = text(&object, "/metadata/namespace").to_owned();
        let edited = ["imagePullSecrets", "secrets"]
            .iter()
            .any(|key| object[*key].as_array().is_some_and(|list| !list.is_empty()));
        found
            .belongings
            .push(Part { edited, ..part(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), object) });
    }
    Ok(())
}

/// The Pods of the namespaces that hold something of ours, and who uses what.
async fn pods(cluster: &Cluster, found: &mut Found, notes: &mut Vec<String>) -> anyhow::Result<()> {
    let enrolled = cluster.list(&format!("/api/v1/pods?labelSelector={}", keys::LABEL_TYPE), notes).await?;
    let mut namespaces: BTreeSet<String> = BTreeSet::new();
    namespaces.extend(enrolled.iter().map(|pod| text(pod, "/metadata/namespace").to_owned()));
    namespaces.extend(found.belongings.iter().map(|part| text(&part.object, "/metadata/namespace").to_owned()));
    for namespace in namespaces {
        let told = notes.len();
        let collection = format!("/api/v1/namespaces/{namespace}/pods");
        let of_jobs = Kind::Job.path(&namespace);
        let listed = cluster.list(&of_jobs, notes).await?;
        let jobs: HashMap<&str, &Value> = listed.iter().map(|job| (text(job, "/metadata/name"), job)).collect();
        let mut gated: BTreeSet<String> = BTreeSet::new();
        for pod in cluster.list(&collection, notes).await? {
            if !matches!(text(&pod, "/status/phase"), "Succeeded" | "Failed") {
                if survey::is_injected(&pod) && text(&pod, "/metadata/deletionTimestamp").is_empty() {
                    *found.injected.entry((namespace.clone(), survey::owner(&pod, &jobs))).or_default() += 1;
                }
                uses(&pod["spec"], &namespace, &format!("Pod {}", text(&pod, "/metadata/name")), &mut found.users);
            }
            if survey::is_gated(&pod) {
                gated.extend(survey::controller(&pod).map(|owner| text(owner, "/uid").to_owned()));
            }
            found.pods.push(part(&collection, pod));
        }
        let waiting = listed.iter().filter(|job| gated.contains(text(job, "/metadata/uid")));
        found.jobs.extend(waiting.map(|job| part(&of_jobs, job.clone())));
        for (group, plural) in
            [("apps", "deployments"), ("apps", "statefulsets"), ("apps", "daemonsets"), ("batch", "cronjobs")]
        {
            for object in cluster.list(&format!("/apis/{group}/v1/namespaces/{namespace}/{plural}"), notes).await? {
                let who = format!("the template of {} {}", text(&object, "/kind"), text(&object, "/metadata/name"));
                uses(&object["spec"], &namespace, &who, &mut found.users);
            }
        }
        for binding in cluster
            .list(&format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"), notes)
            .await?
        {
            // It goes before the account does.
            if trust::is_of_signing(&binding) {
                continue;
            }
            for subject in
                binding["subjects"].as_array().into_iter().flatten().filter(|it| it["kind"] == "ServiceAccount")
            {
                let key = (
                    "ServiceAccount".to_owned(),
                    text(subject, "/namespace").to_owned(),
                    text(subject, "/name").to_owned(),
                );
                found.users.entry(key).or_default().insert(format!("RoleBinding {}", text(&binding, "/metadata/name")));
            }
        }
        if notes.len() > told {
            found.unread.insert(namespace);
        }
    }
    Ok(())
}

/// Every ConfigMap and ServiceAccount that a Pod spec, or anything that holds one, names.
fn uses(value: &Value, namespace: &str, who: &str, users: &mut BTreeMap<(String, String, String), BTreeSet<String>>) {
    let mut used = |kind: &str, name: &Value| {
        if let Some(name) = name.as_str() {
            let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
            users.entry(key).or_default().insert(who.to_owned());
        }
    };
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                match key.as_str() {
                    "serviceAccountName" => used("ServiceAccount", below),
                    "configMap" | "configMapRef" | "configMapKeyRef" => used("ConfigMap", &below["name"]),
                    _ => {}
                }
            }
            map.values().for_each(|below| uses(below, namespace, who, users));
        }
        Value::Array(items) => items.iter().for_each(|below| uses(below, namespace, who, users)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
