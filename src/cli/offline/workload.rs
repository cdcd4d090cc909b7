//! From a workload to the Pod its controller would send, and back.
//!
//! In: an object of a kind that makes Pods, or a Pod. Out: the Pod as it reaches admission, owner reference included; and, after it was
//! changed, the same object with the change in its template. What was added only to make the Pod does not come back.

use serde_json::{Map, Value, json};

use crate::cli::io::shown;
use crate::domain::workload::{Workload, WorkloadKind};

/// uid of owners that exist only in manifests.
pub const OFFLINE_UID: &str = "00000000-0000-0000-0000-000000000000";

/// Name of the Job that stands for a CronJob's next one.
#[must_use]
pub fn next_job(cron_job: &str) -> String {
    format!("{cron_job}-0")
}

/// An object that is, or makes, Pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Kind and name; the name is empty where the API server makes it up.
    pub workload: Workload,
    /// Where it is applied.
    pub namespace: String,
    /// The kind as manifests spell it.
    kind: &'static str,
    /// What the API server makes the name from.
    generate_name: String,
}

/// A kind that makes Pods and that the engine has no name for; to it their controller is one of a kind it does not know.
const REPLICATION_CONTROLLER: &str = "ReplicationController";

/// What is or makes Pods in Kubernetes itself.
const OWN: [WorkloadKind; 7] = [
    WorkloadKind::Pod,
    WorkloadKind::Deployment,
    WorkloadKind::StatefulSet,
    WorkloadKind::DaemonSet,
    WorkloadKind::ReplicaSet,
    WorkloadKind::Job,
    WorkloadKind::CronJob,
];

/// A type that no API server knows, and the one that was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownType<'v> {
    api_version: &'v str,
    kind: &'v str,
    meant: (&'static str, &'static str),
}

impl<'v> UnknownType<'v> {
    /// That of an object, where it is meant to be or to make Pods: in groups without a dot there are no types but Kubernetes' own.
    #[must_use]
    pub fn of(object: &'v Value) -> Option<Self> {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let own = OWN.into_iter().map(|one| (one.api_version(), one.as_str()));
        let mut own = own.chain([(WorkloadKind::Unknown.api_version(), REPLICATION_CONTROLLER)]);
        let meant = own.find(|(_, known)| known.eq_ignore_ascii_case(kind)).filter(|_| !group.contains('.'))?;
        (meant != (api_version, kind)).then_some(Self { api_version, kind, meant })
    }

    /// Whether the object says of no version that it is.
    #[must_use]
    pub fn is_without_version(&self) -> bool {
        self.api_version.is_empty()
    }

    /// The field that is wrong.
    #[must_use]
    pub fn field(&self) -> &'static str {
        if self.api_version == self.meant.0 { "kind" } else { "apiVersion" }
    }

    /// What is wrong with it, and what to write.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { api_version, kind, meant: (meant, meant_kind) } = self;
        let and = if kind == meant_kind { String::new() } else { format!(", and kind: {meant_kind}") };
        match () {
            () if api_version.is_empty() => format!("is missing; write apiVersion: {meant}{and}"),
            () if api_version == meant => {
                format!("the API server knows no {kind} of {meant}; write kind: {meant_kind}")
            }
            () => format!("the API server knows no {kind} of {api_version}; write apiVersion: {meant}{and}"),
        }
    }
}

/// Why an object that is meant to be or to make Pods is no subject; `None` of every other object.
#[must_use]
pub fn unread(object: &Value, default_namespace: &str) -> Option<String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let title = || {
        let (kind, namespace) = (text("/kind").unwrap_or_default(), text("/metadata/namespace"));
        let (namespace, name) = (namespace.unwrap_or(default_namespace), text("/metadata/name").unwrap_or_default());
        shown(&format!("{kind} {namespace}/{name}"))
    };
    if let Some(unknown) = UnknownType::of(object) {
        return Some(format!("{}: {}: {}", title(), unknown.field(), unknown.words()));
    }
    let (version, kind) = (text("/apiVersion")?, text("/kind")?);
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = WorkloadKind::from_group_kind(group, kind).filter(|kind| kind.api_version() == version)?;
    Subject::of(object, default_namespace).is_none().then(|| {
        let path = kind.template_path().join(".");
        format!("{}: {path} is missing or no mapping, so that it makes no Pods; write their template there", title())
    })
}

impl Subject {
    /// The subject an object is; `None` for other kinds and for workloads without a template.
    #[must_use]
    pub fn of(object: &Value, default_namespace: &str) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (group, version) = match text("/apiVersion")?.split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text("/apiVersion")?),
        };
        let (kind, spelled) = match (group, text("/kind")?) {
            ("", REPLICATION_CONTROLLER) => (WorkloadKind::Unknown, REPLICATION_CONTROLLER),
            (group, kind) => WorkloadKind::from_group_kind(group, kind).map(|kind| (kind, kind.as_str()))?,
        };
        if version != kind.api_version().rsplit('/').next().unwrap_or_default() {
            return None;
        }
        let subject = Self {
            workload: Workload { kind, name: text("/metadata/name").unwrap_or_default().to_owned() },
            namespace: text("/metadata/namespace").unwrap_or(default_namespace).to_owned(),
            kind: spelled,
            generate_name: text("/metadata/generateName").unwrap_or_default().to_owned(),
        };
        subject.template(object).filter(|template| template.is_object()).map(|_| subject.clone())
    }

    /// How people and reports name it, on one line.
    #[must_use]
    pub fn title(&self) -> String {
        let name = match (&*self.workload.name, &*self.generate_name) {
            ("", "") => "(without a name)".to_owned(),
            ("", name) | (name, _) => name.to_owned(),
        };
        shown(&format!("{} {}/{name}", self.kind, self.namespace))
    }

    /// The kind as manifests spell it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Whether a controller makes a ServiceAccount for its Pods ahead of them: the name must be known, and the kind.
    #[must_use]
    pub fn may_have_account(&self) -> bool {
        !self.workload.name.is_empty() && !matches!(self.workload.kind, WorkloadKind::Pod | WorkloadKind::Unknown)
    }

    /// Whether a controller will make an account for its Pods once the API server has given it a name.
    #[must_use]
    pub fn is_named_later(&self) -> bool {
        self.workload.name.is_empty() && !matches!(self.workload.kind, WorkloadKind::Pod | WorkloadKind::Unknown)
    }

    /// The template of an object of this kind.
    #[must_use]
    pub fn template<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.workload.kind.template_path().iter().try_fold(object, |value, key| value.get(key))
    }

    /// The name of the Job that owns the Pods, for the kinds that have one.
    #[must_use]
    pub fn job_name(&self) -> Option<String> {
        match self.workload.kind {
            _ if self.workload.name.is_empty() => None,
            WorkloadKind::Job => Some(self.workload.name.clone()),
            WorkloadKind::CronJob => Some(next_job(&self.workload.name)),
            _ => None,
        }
    }

    /// The uid of what owns the Pods: that of an object of a cluster, where it owns them itself and somebody asks for it.
    fn uid<'v>(&self, object: &'v Value) -> &'v str {
        let own = object.pointer("/metadata/uid").and_then(Value::as_str).filter(|uid| !uid.is_empty());
        own.filter(|_| self.workload.kind == WorkloadKind::Job).unwrap_or(OFFLINE_UID)
    }

    /// The Pod as it reaches admission.
    #[must_use]
    pub fn pod(&self, object: &Value) -> Value {
        if self.workload.kind == WorkloadKind::Pod {
            return object.clone();
        }
        let template = self.template(object).cloned().unwrap_or_default();
        let mut metadata = template.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let (kind, group, owner) = match self.job_name() {
            Some(job) => ("Job", "batch/v1", job),
            None => (self.kind, self.workload.kind.api_version(), self.workload.name.clone()),
        };
        metadata.insert("namespace".to_owned(), json!(self.namespace));
        // An owner whose name nobody knows yet cannot be named; the Pod is as one of a controller of another kind.
        let (group, generated) = match owner.as_str() {
            "" => ("", self.generate_name.clone()),
            name => (group, format!("{name}-")),
        };
        metadata.insert("generateName".to_owned(), json!(generated));
        metadata.insert(
            "ownerReferences".to_owned(),
            json!([{"apiVersion": group, "kind": kind, "name": owner, "uid": self.uid(object), "controller": true}]),
        );
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
               "spec": template.get("spec").cloned().unwrap_or_default()})
    }

    /// The object with the template that makes this Pod.
    #[must_use]
    pub fn with_pod(&self, object: &Value, pod: &Value) -> Value {
        if self.workload.kind == WorkloadKind::Pod {
            return pod.clone();
        }
        let mut changed = object.clone();
        let mut place = &mut changed;
        for key in self.workload.kind.template_path() {
            place = &mut place[*key];
        }
        let before = place.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let after = pod.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let metadata = template_metadata(before, after);
        if place.get("metadata").is_some() || !metadata.is_empty() {
            place["metadata"] = Value::Object(metadata);
        }
        place["spec"] = pod["spec"].clone();
        changed
    }
}

/// A template's metadata after the Pod made from it was changed.
fn template_metadata(before: Map<String, Value>, mut after: Map<String, Value>) -> Map<String, Value> {
    for synthesised in ["namespace", "generateName", "ownerReferences"] {
        match before.get(synthesised) {
            Some(own) => after.insert(synthesised.to_owned(), own.clone()),
            None => after.remove(synthesised),
        };
    }
    for map in ["annotations", "labels"] {
        if after.get(map).and_then(Value::as_object).is_some_and(Map::is_empty) && before.get(map) != after.get(map) {
            after.remove(map);
        }
    }
    after
}
