//! A namespace that takes what the plans write.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::fields::Fields;
use crate::controllers::agent::note::Note;
use crate::controllers::agent::plan::ROW;
use crate::controllers::enrolment::plan::ROW as ENROLMENT;
use crate::controllers::scaffold::answers::{SecretFact, TemplateFact};
use crate::controllers::scaffold::consent::{Demand, refusal};
use crate::controllers::scaffold::fixtures::{Cluster, Rowed, s};
use crate::controllers::scaffold::plan::{Item, Name, Op, Plan, Report, UNMADE};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Reach};

/// Namespace of everything.
pub(in crate::controllers::agent) const TEAM: &str = "team";

#[derive(Debug, Clone, Default)]
struct Object {
    uid: String,
    fields: Fields,
    /// What is not applied: generation, deletion, status.
    more: Value,
}

/// Objects, and what the controllers make of them.
pub(in crate::controllers::agent) struct Bench {
    pub(in crate::controllers::agent) cluster: Cluster,
    pub(in crate::controllers::agent) told: Vec<Report>,
    pub(in crate::controllers::agent) now: Duration,
    /// What Secrets hold.
    pub(in crate::controllers::agent) secrets: BTreeMap<String, SecretFact>,
    /// How often Secrets were asked for their consent.
    pub(in crate::controllers::agent) asked: usize,
    objects: BTreeMap<(Kind, String), Object>,
    version: u64,
}

impl Bench {
    pub(in crate::controllers::agent) fn new() -> Self {
        Self::with("")
    }

    /// The same with lines for the platform file.
    pub(in crate::controllers::agent) fn with(platform: &str) -> Self {
        let mut cluster = Cluster::with(platform, crate::config::gates::Gates::default());
        for kind in [
            Kind::Agent,
            Kind::BeeaiAgent,
            Kind::BeeaiCompatAgent,
            Kind::KaosAgent,
            Kind::ModelApi,
            Kind::McpServer,
            Kind::HttpRoute,
            Kind::AgentBuild,
            Kind::AgentRuntime,
            Kind::Deployment,
            Kind::Service,
            Kind::Pod,
        ] {
            cluster.store.set_reach(kind, Reach::Listed);
        }
        cluster.memory.surveyed = true;
        for name in keys::NAMESPACE_CONFIG_MAPS {
            let metadata = json!({"name": name, "namespace": TEAM, "uid": name, "resourceVersion": "1"});
            cluster.see(Kind::ConfigMap, json!({"metadata": metadata, "data": {}}));
        }
        Self {
            cluster,
            told: Vec::new(),
            now: s(100),
            secrets: BTreeMap::new(),
            asked: 0,
            objects: BTreeMap::new(),
            version: 1_000,
        }
    }

    /// The object as an API server shows it.
    pub(in crate::controllers::agent) fn object(&self, kind: Kind, name: &str) -> Value {
        self.find(kind, name).unwrap_or_else(|| panic!("there is no {} {name}", kind.as_str()))
    }

    pub(in crate::controllers::agent) fn find(&self, kind: Kind, name: &str) -> Option<Value> {
        let known = self.objects.get(&(kind, name.to_owned()))?;
        let mut object = known.fields.object();
        json_patch::merge(&mut object, &known.more);
        let metadata = json!({"metadata": {"name": name, "namespace": TEAM, "uid": known.uid}});
        json_patch::merge(&mut object, &metadata);
        Some(object)
    }

    fn seen(&mut self, kind: Kind, name: &str) {
        self.version += 1;
        let known = self.objects.get_mut(&(kind, name.to_owned())).unwrap();
        known.more["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = self.object(kind, name);
        self.cluster.see(kind, object);
        self.cluster.settle();
    }

    /// A user makes or changes an object; `null` takes a member away.
    pub(in crate::controllers::agent) fn edit(&mut self, kind: Kind, name: &str, patch: Value) {
        self.edit_as(("kubectl-edit", "Update"), kind, name, patch);
    }

    /// The same of another field manager and operation.
    pub(in crate::controllers::agent) fn edit_as(
        &mut self,
        by: (&str, &'static str),
        kind: Kind,
        name: &str,
        patch: Value,
    ) {
        let new = Object { uid: uid_of(kind, name), ..Object::default() };
        let known = self.objects.entry((kind, name.to_owned())).or_insert(new);
        let before = known.fields.object();
        let mut patch = patch;
        let status = patch.as_object_mut().and_then(|members| members.remove("status"));
        let deletion = patch.pointer_mut("/metadata").and_then(Value::as_object_mut);
        let deletion = deletion.and_then(|members| members.remove("deletionTimestamp"));
        known.fields.edit(by, &patch);
        let after = known.fields.object();
        if before.get("spec") != after.get("spec") || known.more["metadata"]["generation"].is_null() {
            let generation = known.more["metadata"]["generation"].as_i64().unwrap_or_default();
            known.more["metadata"]["generation"] = json!(generation + 1);
        }
        if let Some(status) = status {
            json_patch::merge(&mut known.more, &json!({"status": status}));
        }
        if let Some(deletion) = deletion {
            known.more["metadata"]["deletionTimestamp"] = deletion;
        }
        self.seen(kind, name);
    }

    /// Somebody takes the mark that policies look for off an Agent.
    pub(in crate::controllers::agent) fn unmark(&mut self, name: &str) {
        let known = self.objects.get_mut(&(Kind::Agent, name.to_owned())).unwrap();
        known.more["metadata"].as_object_mut().unwrap().remove("labels");
        self.seen(Kind::Agent, name);
    }

    /// An object goes.
    pub(in crate::controllers::agent) fn remove(&mut self, kind: Kind, name: &str) {
        let object = self.object(kind, name);
        self.objects.remove(&(kind, name.to_owned()));
        self.cluster.lose(kind, object);
        self.cluster.settle();
    }

    /// An Agent as 4.10 has it, with `more` merged in, as the API server stores it.
    pub(in crate::controllers::agent) fn agent(&mut self, name: &str, more: Value) {
        let mut object = json!({
            "metadata": {"labels": {"team": "weather"}, "creationTimestamp": "2026-05-01T00:00:00Z"},
            "spec": {
                "imageSource": {"image": "ghcr.io/acme/weather:v1"},
                "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}},
                "replicas": 1,
                "servicePorts": [{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}],
            },
        });
        json_patch::merge(&mut object, &more);
        self.edit(Kind::Agent, name, object);
    }

    /// An AgentBuild in that state.
    pub(in crate::controllers::agent) fn build(&mut self, name: &str, status: Value) {
        self.edit(Kind::AgentBuild, name, json!({"metadata": {"labels": {"a": "b"}}, "status": status}));
    }

    /// The Deployment's Pods come up, as its controller reports.
    pub(in crate::controllers::agent) fn rolled_out(&mut self, name: &str) {
        let object = self.object(Kind::Deployment, name);
        let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
        let status = json!({
            "observedGeneration": object["metadata"]["generation"], "replicas": wanted, "updatedReplicas": wanted,
            "readyReplicas": wanted, "availableReplicas": wanted, "unavailableReplicas": 0,
            "conditions": [{"type": "Available", "status": "True"}],
        });
        self.edit(Kind::Deployment, name, json!({"status": status}));
    }

    /// Plans and carries out until nothing is planned any more; returns the writes, in order.
    pub(in crate::controllers::agent) fn converge(&mut self) -> Vec<Op> {
        self.converge_with(&[&ROW])
    }

    /// The same with enrolment beside it.
    pub(in crate::controllers::agent) fn converge_enrolling(&mut self) -> Vec<Op> {
        self.converge_with(&[&ROW, &ENROLMENT])
    }

    /// The same of those rows.
    pub(in crate::controllers::agent) fn converge_with(&mut self, rows: &[&dyn Rowed]) -> Vec<Op> {
        let mut all = Vec::new();
        for round in 0.. {
            assert!(round < 20, "no end: {all:#?}");
            let asked = self.asked;
            let ops: Vec<_> = rows.iter().flat_map(|row| self.round(*row)).collect();
            if ops.is_empty() && self.asked == asked {
                return all;
            }
            all.extend(ops);
        }
        all
    }

    /// One plan of every item, carried out.
    pub(in crate::controllers::agent) fn round(&mut self, row: &dyn Rowed) -> Vec<Op> {
        let mut all = Vec::new();
        for key in row.keys(&self.cluster, TEAM) {
            let plan = row.planned(&mut self.cluster, &key, self.now);
            let item = Item { controller: row.controller(), key: key.clone() };
            let (settles, some) = (plan.ops.iter().any(Op::settles), !plan.ops.is_empty());
            let mut failed = false;
            for op in plan.ops {
                if let Op::Consent { demands, .. } = &op {
                    self.asked += 1;
                    if let Some(words) = self.refusal(demands) {
                        let trouble = (op, Some(Reason::SecretNotUsable), words);
                        self.cluster.memory.failure(&item, self.now, trouble);
                        failed = true;
                        break;
                    }
                } else if let Op::Template { key } = &op {
                    self.asked += 1;
                    self.read(key);
                } else if self.carry_out(row.controller(), &op) {
                    all.push(op);
                }
            }
            if some && !failed {
                self.cluster.memory.success(&item, settles);
            }
        }
        all
    }

    /// One plan of every item, of whose operations the first that `is_it` is answered with an error of the API server. False: there was none.
    pub(in crate::controllers::agent) fn round_that_fails(
        &mut self,
        row: &dyn Rowed,
        is_it: impl Fn(&Op) -> bool,
    ) -> bool {
        let mut failed = false;
        for key in row.keys(&self.cluster, TEAM) {
            let plan = row.planned(&mut self.cluster, &key, self.now);
            let item = Item { controller: row.controller(), key: key.clone() };
            for op in plan.ops {
                if !failed && is_it(&op) {
                    self.cluster.memory.failure(&item, self.now, (op, None, "answered with 500".to_owned()));
                    failed = true;
                    break;
                }
                self.carry_out(row.controller(), &op);
            }
        }
        failed
    }

    /// What an API server answers when it is asked for a Deployment.
    fn read(&mut self, key: &Key) {
        let object = self.object(Kind::Deployment, &key.name);
        let fact = TemplateFact {
            uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            generation: object["metadata"]["generation"].as_i64().unwrap_or_default(),
            spec: Some(object["spec"].to_string().into()),
        };
        self.cluster.memory.answers.template(key.clone(), fact, self.now);
    }

    fn refusal(&self, demands: &[Demand]) -> Option<String> {
        let fact = |name: &str| self.secrets.get(name).cloned().unwrap_or(SecretFact::Absent);
        demands.iter().find_map(|demand| refusal(&fact(&demand.secret), demand))
    }

    /// The plan about one Agent, not carried out.
    pub(in crate::controllers::agent) fn plan(&self, name: &str) -> Plan<Note> {
        self.cluster.plan_at(ROW, &Key::new(TEAM, name), self.now)
    }

    fn carry_out(&mut self, controller: Name, op: &Op) -> bool {
        match op {
            Op::Own { kind, key, body } | Op::Apply { kind, key, body, .. } => {
                let at = (*kind, key.name.to_string());
                let (uid, version) = (&body["metadata"]["uid"], &body["metadata"]["resourceVersion"]);
                match self.objects.get(&at) {
                    Some(known) => assert_eq!((uid.as_str(), version), (Some(&*known.uid), &Value::Null), "{op:?}"),
                    None => assert_eq!((uid, version), (&Value::Null, &json!(UNMADE)), "{op:?}"),
                }
                let new = Object { uid: uid_of(*kind, &key.name), ..Object::default() };
                let known = self.objects.entry(at).or_insert(new);
                let before = known.fields.object();
                known.fields.apply(&controller.manager(), body);
                if before.get("spec") != known.fields.object().get("spec") {
                    let generation = known.more["metadata"]["generation"].as_i64().unwrap_or_default();
                    known.more["metadata"]["generation"] = json!(generation + 1);
                }
                self.seen(*kind, &key.name);
            }
            Op::Status { kind, key, patch } => {
                let mut object = self.object(*kind, &key.name);
                assert_eq!(patch["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
                json_patch::merge(&mut object, &json!({"status": patch["status"]}));
                let text = object["status"].to_string().replace("$now", &format!("time {}", self.version));
                let mut status: Value = serde_json::from_str(&text).unwrap();
                for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                    if condition["lastTransitionTime"].is_null() {
                        condition["lastTransitionTime"] = json!(format!("time {}", self.version));
                    }
                }
                self.objects.get_mut(&(*kind, key.name.to_string())).unwrap().more["status"] = status;
                self.seen(*kind, &key.name);
            }
            Op::Edit { kind, key, operations } | Op::Merge { kind, key, patch: operations } => {
                let mut object = self.object(*kind, &key.name);
                if matches!(op, Op::Merge { .. }) {
                    json_patch::merge(&mut object, operations);
                } else {
                    let patch: json_patch::Patch = serde_json::from_value(operations.clone()).unwrap();
                    json_patch::patch(&mut object, &patch).unwrap();
                }
                let finalizers = object["metadata"]["finalizers"].clone();
                let ends = !object["metadata"]["deletionTimestamp"].is_null();
                if ends && finalizers.as_array().is_none_or(Vec::is_empty) {
                    self.remove(*kind, &key.name);
                } else {
                    let mark = object["metadata"]["labels"].get(keys::LABEL_POLICY_PARAMETER).cloned();
                    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
                    let known = self.objects.get_mut(&(*kind, key.name.to_string())).unwrap();
                    known.fields.rename(&entries);
                    known.more["metadata"]["finalizers"] = finalizers;
                    if let Some(mark) = mark {
                        known.more["metadata"]["labels"] = json!({keys::LABEL_POLICY_PARAMETER: mark});
                    }
                    self.seen(*kind, &key.name);
                }
            }
            Op::Delete { kind, key, uid } => {
                assert_eq!(self.object(*kind, &key.name)["metadata"]["uid"], json!(uid));
                self.remove(*kind, &key.name);
            }
            Op::Report(report) => {
                if self.told.contains(report) {
                    return false;
                }
                self.told.push(report.clone());
            }
            other => panic!("not planned here: {other:?}"),
        }
        true
    }

    /// A condition of an Agent as `status/reason`.
    pub(in crate::controllers::agent) fn condition(&self, name: &str, type_: &str) -> String {
        let entry = self.entry(name, type_);
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        if entry.is_null() { String::new() } else { format!("{}/{}", text("status"), text("reason")) }
    }

    pub(in crate::controllers::agent) fn message(&self, name: &str, type_: &str) -> String {
        self.entry(name, type_)["message"].as_str().unwrap_or_default().to_owned()
    }

    fn entry(&self, name: &str, type_: &str) -> Value {
        let status = self.object(Kind::Agent, name)["status"].clone();
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["type"] == type_).unwrap_or_default()
    }

    pub(in crate::controllers::agent) fn status(&self, name: &str) -> Value {
        self.object(Kind::Agent, name)["status"].clone()
    }

    pub(in crate::controllers::agent) fn phase(&self, name: &str) -> String {
        self.status(name)["deploymentStatus"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// The container of the Deployment's template at that place.
    pub(in crate::controllers::agent) fn container(&self, name: &str, at: usize) -> Value {
        self.object(Kind::Deployment, name)["spec"]["template"]["spec"]["containers"][at].clone()
    }

    /// The reasons that people were told, in order.
    pub(in crate::controllers::agent) fn reasons(&self) -> Vec<&'static str> {
        self.told.iter().map(|report| report.reason.code()).collect()
    }
}

/// The kinds that have their name from another's are told apart by it.
fn uid_of(kind: Kind, name: &str) -> String {
    format!("{}-{name}", kind.descriptor().full.unwrap_or(kind.plural()))
}

/// Agent `weather`, rolled out.
pub(in crate::controllers::agent) fn running() -> Bench {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    bench.converge();
    bench.rolled_out("weather");
    bench.converge();
    bench
}

/// The kinds of objects that are applied, in order.
pub(in crate::controllers::agent) fn owns(ops: &[Op]) -> Vec<Kind> {
    let kind = |op: &Op| match op {
        Op::Own { kind, .. } => Some(*kind),
        _ => None,
    };
    ops.iter().filter_map(kind).collect()
}
