//! A namespace whose objects take what the plans write, the way an API server does: server-side apply with owners,
//! merge patches, statuses, finalizers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::controllers::enrolment::memory::{Enrolment, Memory};
use crate::controllers::enrolment::plan::{NAME, ROW};
use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::check::Objection;
use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::fixtures::{Cluster, account, s};
use crate::controllers::scaffold::plan::{Item, Op, Report};
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::store::{Key, Kind, Reach};

/// Namespace of everything.
pub(super) const TEAM: &str = "team";
/// The user's Deployment.
pub(super) const WEB: (Kind, &str) = (Kind::Deployment, "web");

/// Objects, and what the controllers make of them.
pub(super) struct Bench {
    pub(super) cluster: Cluster,
    pub(super) objects: BTreeMap<(Kind, String), Value>,
    pub(super) told: Vec<Report>,
    pub(super) evicted: Vec<String>,
    /// A disruption budget forbids every eviction.
    pub(super) budget: bool,
    /// How often a workload did not pass what is asked of it before it is written.
    pub(super) refused: usize,
    pub(super) now: Duration,
    version: u64,
}

impl Bench {
    /// A cluster in which every kind could be read, with a user's Deployment `web` and what its Pods need.
    pub(super) fn new() -> Self {
        Self::with("")
    }

    /// The same with lines for the platform file.
    pub(super) fn with(platform: &str) -> Self {
        let mut cluster = Cluster::with(platform, crate::config::gates::Gates::default());
        for kind in [Kind::AgentRuntime, Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet, Kind::CronJob, Kind::Pod]
        {
            cluster.store.set_reach(kind, Reach::Listed);
        }
        cluster.store.set_reach(Kind::Sandbox, Reach::Absent);
        cluster.memory.surveyed = true;
        for name in keys::NAMESPACE_CONFIG_MAPS {
            let metadata = json!({"name": name, "namespace": TEAM, "uid": name, "resourceVersion": "1"});
            cluster.see(Kind::ConfigMap, json!({"metadata": metadata, "data": {}}));
        }
        let mut bench = Self {
            cluster,
            objects: BTreeMap::new(),
            told: Vec::new(),
            evicted: Vec::new(),
            budget: false,
            refused: 0,
            now: s(100),
            version: 1_000,
        };
        bench.put(Kind::Deployment, deployment("web"));
        bench
    }

    /// An object appears or is replaced by a user.
    pub(super) fn put(&mut self, kind: Kind, mut object: Value) {
        self.version += 1;
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        object["metadata"]["namespace"] = json!(TEAM);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("{}-{name}", kind.plural()));
        }
        if WorkloadKind::TARGETS.iter().any(|target| Kind::of_workload(*target) == Some(kind)) {
            self.cluster.see(Kind::ServiceAccount, account(&name, true, json!([])));
        }
        self.cluster.see(kind, object.clone());
        self.objects.insert((kind, name), object);
        self.settle();
    }

    /// Merges into an object, as a user would.
    pub(super) fn change(&mut self, kind: Kind, name: &str, patch: Value) {
        let mut object = self.object(kind, name).clone();
        json_patch::merge(&mut object, &patch);
        self.put(kind, object);
    }

    /// An object goes.
    pub(super) fn remove(&mut self, kind: Kind, name: &str) {
        if let Some(object) = self.objects.remove(&(kind, name.to_owned())) {
            self.cluster.lose(kind, object);
        }
        self.settle();
    }

    pub(super) fn object(&self, kind: Kind, name: &str) -> &Value {
        self.objects.get(&(kind, name.to_owned())).unwrap_or_else(|| panic!("there is no {} {name}", kind.as_str()))
    }

    /// The snapshot learns of the AgentRuntimes, as the watches would see to.
    pub(super) fn settle(&mut self) {
        self.cluster.settle();
    }

    /// An AgentRuntime on `kind` `name`.
    pub(super) fn runtime(&mut self, name: &str, target: (Kind, &str), more: Value) {
        let mut object = json!({
            "metadata": {"name": name, "generation": 1, "creationTimestamp": "2026-05-01T00:00:00Z"},
            "spec": {"type": "agent", "targetRef": {
                "apiVersion": target.0.api_version(), "kind": target.0.as_str(), "name": target.1,
            }},
        });
        json_patch::merge(&mut object, &more);
        self.put(Kind::AgentRuntime, object);
    }

    /// Plans and carries out until nothing is planned any more; returns the writes, in order.
    pub(super) fn converge(&mut self) -> Vec<Op> {
        let mut all = Vec::new();
        for round in 0.. {
            assert!(round < 20, "no end: {all:#?}");
            let refused = self.refused;
            let ops = self.round();
            if ops.is_empty() && self.refused == refused {
                return all;
            }
            all.extend(ops);
        }
        all
    }

    /// One plan of every item, carried out.
    pub(super) fn round(&mut self) -> Vec<Op> {
        let mut keys: Vec<Key> = (ROW.of_namespace)(&self.cluster.store, TEAM);
        let kinds = [Kind::Deployment, Kind::StatefulSet, Kind::Sandbox, Kind::CronJob, Kind::DaemonSet];
        let known = self.objects.keys().filter(|(kind, _)| kinds.contains(kind));
        keys.extend(known.map(|(kind, name)| Key::new(TEAM, &format!("{}/{name}", kind.plural()))));
        keys.sort();
        keys.dedup();
        let mut all = Vec::new();
        for key in keys {
            let mut plan = self.cluster.plan_at(ROW, &key, self.now);
            self.cluster.note::<Enrolment>(NAME, &key, std::mem::take(&mut plan.note));
            plan.ops.retain(|op| !matches!(op, Op::Report(report) if self.told.contains(report)));
            for op in plan.ops {
                if let Some(Objection { reason, message, .. }) = self.objection(&op) {
                    let item = Item { controller: NAME, key: key.clone() };
                    self.cluster.memory.failure(&item, self.now, (op, Some(reason), message));
                    self.refused += 1;
                    break;
                }
                self.carry_out(&key, &op);
                all.push(op);
            }
        }
        all
    }

    /// What the object as it is does not pass of what is asked of it before it is written.
    fn objection(&self, op: &Op) -> Option<Objection> {
        let Op::Apply { kind, key, check: Some(check), .. } = op else { return None };
        check.objection(self.object(*kind, &key.name))
    }

    fn carry_out(&mut self, item: &Key, op: &Op) {
        match op {
            Op::Apply { kind, key, body, .. } => {
                let mut object = self.object(*kind, &key.name).clone();
                assert_eq!(body["metadata"]["uid"], object["metadata"]["uid"], "an apply names the object it is for");
                apply(*kind, &mut object, body);
                self.put(*kind, object);
            }
            Op::Merge { kind, key, patch } | Op::Status { kind, key, patch } => {
                let mut object = self.object(*kind, &key.name).clone();
                let version = &patch["metadata"]["resourceVersion"];
                assert_eq!(
                    (version, &patch["metadata"]["uid"]),
                    (&object["metadata"]["resourceVersion"], &object["metadata"]["uid"])
                );
                json_patch::merge(&mut object, patch);
                let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
                for condition in conditions.into_iter().flatten().filter(|one| one["lastTransitionTime"].is_null()) {
                    condition["lastTransitionTime"] = json!(format!("time {}", self.version));
                }
                let finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
                if !object["metadata"]["deletionTimestamp"].is_null() && !finalizers {
                    self.remove(*kind, &key.name);
                } else {
                    self.put(*kind, object);
                }
            }
            Op::Edit { kind, key, operations } => {
                let mut object = self.object(*kind, &key.name).clone();
                json_patch::patch(
                    &mut object,
                    &serde_json::from_value::<json_patch::Patch>(operations.clone()).unwrap(),
                )
                .unwrap();
                self.put(*kind, object);
            }
            Op::Evict { .. } if self.budget => self.answered(item, &Learned::Blocked),
            Op::Evict { key, .. } => {
                self.evicted.push(key.name.to_string());
                self.answered(item, &Learned::Evicted);
                self.change(Kind::Pod, &key.name, json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
            }
            Op::Report(report) => self.told.push(report.clone()),
            other => panic!("enrolment never does that: {other:?}"),
        }
    }

    fn answered(&mut self, item: &Key, learned: &Learned) {
        Enrolment::answered(self.cluster.owns.of_mut(NAME), item, learned, self.now);
    }

    /// What enrolment remembers.
    pub(super) fn remembered(&mut self) -> &Memory {
        &self.cluster.owns.of_mut::<Enrolment>(NAME).memory
    }

    /// A condition of an AgentRuntime as `status/reason`.
    pub(super) fn condition(&self, name: &str, type_: &str) -> String {
        let conditions = self.object(Kind::AgentRuntime, name)["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|one| one["type"] == type_);
        found.map_or_else(String::new, |one| {
            format!("{}/{}", one["status"].as_str().unwrap(), one["reason"].as_str().unwrap())
        })
    }

    pub(super) fn message(&self, name: &str, type_: &str) -> String {
        let conditions = self.object(Kind::AgentRuntime, name)["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|one| one["type"] == type_).unwrap();
        found["message"].as_str().unwrap().to_owned()
    }

    pub(super) fn phase(&self, name: &str) -> &str {
        self.object(Kind::AgentRuntime, name)["status"]["phase"].as_str().unwrap_or_default()
    }

    /// The template hash of a workload.
    pub(super) fn hash(&self, kind: Kind, name: &str) -> Option<&str> {
        let template = self.object(kind, name).pointer(template(kind))?;
        template["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH].as_str()
    }
}

/// The user's Deployment, enrolled by AgentRuntime `art`.
pub(super) fn enrolled() -> Bench {
    let mut bench = Bench::new();
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    bench
}

/// Where the Pod template is.
pub(super) fn template(kind: Kind) -> &'static str {
    match kind {
        Kind::CronJob => "/spec/jobTemplate/spec/template",
        Kind::Sandbox => "/spec/podTemplate",
        _ => "/spec/template",
    }
}

/// A Deployment of a user who knows nothing of us, rolled out.
pub(in crate::controllers) fn deployment(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "generation": 1, "labels": {"app": name}},
        "spec": {"replicas": 1, "template": {
            "metadata": {"labels": {"app": name}, "annotations": {"theirs": "x"}},
            "spec": {"containers": [{"name": "app", "image": "i"}]},
        }},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    })
}

/// A Pod of a workload; `hash` is what it was injected with.
pub(super) fn pod(name: &str, owner: (Kind, &str), hash: Option<&str>) -> Value {
    let (kind, workload) = owner;
    let (mut annotations, mut containers) = (json!({}), json!([{"name": "app"}]));
    if let Some(hash) = hash {
        containers = json!([{"name": "app"}, {"name": "envoy-proxy"}]);
        annotations = json!({keys::ANNOTATION_CONFIG_HASH: hash, keys::ANNOTATION_STATUS: "{}"});
    }
    json!({
        "metadata": {
            "name": name, "creationTimestamp": "2026-05-01T00:00:00Z",
            "labels": {keys::LABEL_TYPE: "agent"}, "annotations": annotations,
            "ownerReferences": [{"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": workload,
                "uid": format!("{}-{workload}", kind.plural()), "controller": true}],
        },
        "spec": {"containers": containers},
        "status": {"phase": "Running"},
    })
}

/// Server-side apply by our manager: what it had and has no more goes, unless another manager has it, too.
pub(in crate::controllers) fn apply(kind: Kind, object: &mut Value, body: &Value) {
    let before = object.clone();
    let mut managers: Vec<Value> = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    managers.retain(|entry| entry["manager"] != keys::MANAGER_ENROLMENT);
    let path = template(kind);
    let mut owned = json!({});
    for (at, fields) in [("/metadata", "/f:metadata"), (&*format!("{path}/metadata"), &*field_path(path))] {
        for map in ["labels", "annotations"] {
            let mine = before["metadata"]["managedFields"].as_array().into_iter().flatten();
            let mine = mine.filter(|entry| entry["manager"] == keys::MANAGER_ENROLMENT);
            let old = mine
                .filter_map(|entry| entry["fieldsV1"].pointer(&format!("{fields}/f:{map}")))
                .find_map(Value::as_object);
            let wanted = body.pointer(&format!("{at}/{map}")).and_then(Value::as_object).cloned().unwrap_or_default();
            for key in old.into_iter().flat_map(|old| old.keys()).filter_map(|key| key.strip_prefix("f:")) {
                let others = managers.iter().any(|entry| {
                    let set = entry["fieldsV1"].pointer(&format!("{fields}/f:{map}")).and_then(Value::as_object);
                    set.is_some_and(|set| set.contains_key(&format!("f:{key}")))
                });
                if !wanted.contains_key(key)
                    && !others
                    && let Some(there) = object.pointer_mut(&format!("{at}/{map}")).and_then(Value::as_object_mut)
                {
                    there.remove(key);
                }
            }
            for (key, value) in wanted {
                json_patch::merge(object, &nested(&format!("{at}/{map}"), &key, value));
                json_patch::merge(&mut owned, &nested(&format!("{fields}/f:{map}"), &format!("f:{key}"), json!({})));
            }
        }
    }
    if owned.as_object().is_some_and(|owned| !owned.is_empty()) {
        managers.push(json!({"manager": keys::MANAGER_ENROLMENT, "operation": "Apply", "fieldsV1": owned}));
    }
    object["metadata"]["managedFields"] = json!(managers);
    if before.pointer(path) != object.pointer(path) {
        object["metadata"]["generation"] = json!(before["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
    }
}

fn field_path(path: &str) -> String {
    path.split('/').skip(1).chain(["metadata"]).map(|part| format!("/f:{part}")).collect()
}

/// `value` below a pointer and a key.
fn nested(pointer: &str, key: &str, value: Value) -> Value {
    let path: Vec<&str> = pointer.split('/').skip(1).chain([key]).collect();
    path.into_iter().rev().fold(value, |inner, part| json!({part: inner}))
}
