//! Who there is: Pods, their workloads, Namespaces and NetworkPolicies, of a cluster or of manifests.
//!
//! In: objects as JSON. Out: a [`World`] for the room `policy`, and to which workload each of its Pods belongs. A workload without Pods stands for itself with
//! the one that its template would make. Promise: what could not be seen is named; nothing is concluded from its absence.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::cli::cluster::{Answer, Cluster};
use crate::cli::offline::workload::Subject;
use crate::cli::survey::{self, TYPES, text};
use crate::domain::workload::{Workload, WorkloadKind};
use crate::policy::network_policy::{ClusterPolicy, NetworkPolicy};
use crate::policy::pod::{Pod, labels};
use crate::policy::selector::Labels;
use crate::policy::world::World;
use crate::store::Kind;

/// Where NetworkPolicies are listed.
const POLICIES: &str = "networkpolicies";
/// The API of ClusterNetworkPolicies, where it is served.
const CLUSTER_POLICIES: &str = "policy.networking.k8s.io/v1alpha2";

/// The ClusterNetworkPolicies; `None` where the API server does not serve them, which everybody may ask it.
///
/// # Errors
/// [`crate::cli::Unreachable`] when nobody answers.
pub(in crate::cli) async fn cluster_policies(
    cluster: &Cluster,
    unseen: &mut Vec<String>,
) -> anyhow::Result<Option<Vec<Value>>> {
    let api = format!("/apis/{CLUSTER_POLICIES}");
    if !matches!(cluster.get(&api).await?, Answer::Object(_)) {
        return Ok(None);
    }
    cluster.list(&format!("{api}/clusternetworkpolicies"), unseen).await.map(Some)
}

/// What was read.
#[derive(Debug, Default)]
pub(in crate::cli) struct Population {
    namespaces: BTreeMap<String, Labels>,
    pods: Vec<Value>,
    jobs: Vec<Value>,
    /// Objects that make Pods, with where they are.
    makers: Vec<(Subject, Value)>,
    /// Services, which have names for Pods and ports.
    pub(in crate::cli) services: Vec<Value>,
    /// The policies.
    pub(in crate::cli) policies: Vec<NetworkPolicy>,
    /// Those of the cluster, which are asked before these and after them.
    cluster: Vec<ClusterPolicy>,
    /// What could not be seen, one sentence each.
    pub(in crate::cli) unseen: Vec<String>,
}

/// A Pod of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Member {
    /// Its workload.
    pub(in crate::cli) workload: Workload,
    /// There is no such Pod: it is what the template of the workload would make.
    pub(in crate::cli) is_template: bool,
}

/// Everybody, ready to be judged.
#[derive(Debug)]
pub(in crate::cli) struct Settled {
    /// The world.
    pub(in crate::cli) world: World,
    /// For each Pod of the world what it is.
    pub(in crate::cli) members: Vec<Member>,
}

impl Population {
    /// Takes note of an object; `namespace` is where it is when it does not say. Other kinds are passed over.
    pub(in crate::cli) fn observe(&mut self, object: &Value, namespace: &str) {
        let mut placed = object.clone();
        let own = text(object, "/metadata/namespace").to_owned();
        let place = if own.is_empty() { namespace.to_owned() } else { own };
        match (text(object, "/apiVersion"), text(object, "/kind")) {
            ("v1", "Namespace") => {
                self.namespaces.insert(text(object, "/metadata/name").to_owned(), labels(object));
                return;
            }
            ("networking.k8s.io/v1", "NetworkPolicy") => {
                match NetworkPolicy::read(object, &place) {
                    Ok(policy) => self.policies.push(policy),
                    Err(fault) => self.unseen.push(format!("{fault}; the policy is left out")),
                }
                return;
            }
            (CLUSTER_POLICIES, "ClusterNetworkPolicy") => {
                match ClusterPolicy::read(object) {
                    Ok(policy) => self.cluster.push(policy),
                    Err(fault) => self.unseen.push(format!("{fault}; the policy is left out")),
                }
                return;
            }
            _ => {}
        }
        if placed.get("metadata").is_some_and(Value::is_object) {
            placed["metadata"]["namespace"] = Value::String(place.clone());
        }
        match (text(object, "/apiVersion"), text(object, "/kind")) {
            ("v1", "Pod") => self.pods.push(placed),
            ("v1", "Service") => self.services.push(placed),
            _ => {
                if text(object, "/kind") == "Job" {
                    self.jobs.push(placed.clone());
                }
                if let Some(subject) = Subject::of(&placed, &place).filter(|_| !survey::belongs_to_another(&placed)) {
                    self.makers.push((subject, placed));
                }
            }
        }
    }

    /// Reads what decides about Pods of one namespace, or of all when the name is empty.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub(in crate::cli) async fn read(&mut self, cluster: &Cluster, namespace: &str) -> anyhow::Result<()> {
        let policies = match namespace {
            "" => format!("/apis/networking.k8s.io/v1/{POLICIES}"),
            name => format!("/apis/networking.k8s.io/v1/namespaces/{name}/{POLICIES}"),
        };
        for path in [Kind::Pod.path(namespace), Kind::Job.path(namespace), policies] {
            self.list(cluster, &path).await?;
        }
        if self.cluster.is_empty() {
            let found = cluster_policies(cluster, &mut self.unseen).await?;
            found.into_iter().flatten().for_each(|object| self.observe(&object, ""));
        }
        if namespace.is_empty() {
            return self.list(cluster, "/api/v1/namespaces").await;
        }
        let path = format!("/api/v1/namespaces/{namespace}");
        match cluster.get(&path).await? {
            Answer::Object(object) => self.observe(&object, ""),
            Answer::Absent => self.unseen.push(format!("Namespace {namespace} does not exist")),
            Answer::Refused(code, message) => {
                self.unseen.push(format!("{path} could not be read ({code}: {message}); its labels are not known"));
            }
        }
        Ok(())
    }

    /// Reads the objects that make Pods, and Services.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub(in crate::cli) async fn read_makers(&mut self, cluster: &Cluster, namespace: &str) -> anyhow::Result<()> {
        let read = [WorkloadKind::Pod, WorkloadKind::Job];
        let makers = TYPES.iter().filter(|known| !read.contains(&known.kind));
        let paths: Vec<_> = makers.map(|known| known.collection(namespace).path()).collect();
        for path in paths.into_iter().chain([Kind::Service.path(namespace)]) {
            self.list(cluster, &path).await?;
        }
        Ok(())
    }

    async fn list(&mut self, cluster: &Cluster, path: &str) -> anyhow::Result<()> {
        let mut notes = Vec::new();
        let found = cluster.list(path, &mut notes).await?;
        self.unseen.append(&mut notes);
        found.iter().for_each(|object| self.observe(object, ""));
        Ok(())
    }

    /// Everybody, ready to be judged.
    pub(in crate::cli) fn settle(&self) -> Settled {
        let mut jobs: HashMap<&str, HashMap<&str, &Value>> = HashMap::new();
        for job in &self.jobs {
            jobs.entry(text(job, "/metadata/namespace")).or_default().insert(text(job, "/metadata/name"), job);
        }
        let none = HashMap::new();
        let (mut pods, mut members, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
        for object in &self.pods {
            let pod = Pod::read(object);
            let workload = survey::owner(object, jobs.get(pod.namespace.as_str()).unwrap_or(&none));
            known.insert((pod.namespace.clone(), workload.clone()));
            members.push(Member { workload, is_template: false });
            pods.push(pod);
        }
        for (subject, object) in &self.makers {
            let workload = subject.workload.clone();
            if workload.name.is_empty() || !known.insert((subject.namespace.clone(), workload.clone())) {
                continue;
            }
            pods.push(Pod::template(&subject.pod(object), &subject.namespace, &workload.name));
            members.push(Member { workload, is_template: true });
        }
        let namespaces = self.namespaces.iter().map(|(name, labels)| (name.clone(), labels.clone()));
        let world = World::new(namespaces, pods, self.policies.iter().cloned());
        Settled { world: world.with_cluster(self.cluster.iter().cloned()), members }
    }
}
