//! The API server as a value: objects at versions, a log of what happened to them, and a Lease.
//!
//! In: operations of plans, writes of the Lease, and what users and operators of a cluster do. Out: answers, as the executor gives them to
//! the loop. It knows of uids, versions, finalizers, generations and owners of fields what enrolment depends on; rollouts are done at once.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};

use crate::controllers::enrolment::tests::bench::apply as apply_fields;
use crate::controllers::scaffold::apply::{ApplyError, Learned};
use crate::controllers::scaffold::fixtures::change;
use crate::controllers::scaffold::plan::Op;
use crate::store::{Change, Key, Kind};

/// One thing that happened to an object: what watches make of it then, and whether it is gone.
pub(super) struct Happened {
    pub(super) seen: Change,
    pub(super) gone: bool,
}

/// An object, and what watches make of it.
#[derive(Clone)]
struct Stored {
    object: Value,
    seen: Change,
}

/// Everything that a backup holds.
#[derive(Clone, Default)]
struct State {
    version: u64,
    objects: BTreeMap<(Kind, Key), Stored>,
    lease: Option<Lease>,
}

/// The server.
#[derive(Default)]
pub(super) struct Server {
    state: State,
    backup: Option<State>,
    uids: u64,
    /// Grows when an older state is put back: places in the log are of one history.
    pub(super) history: u64,
    pub(super) log: Vec<Happened>,
    /// Since when an AgentRuntime is there without interruption.
    pub(super) since: BTreeMap<Key, Duration>,
    pub(super) now: Duration,
}

fn key(object: &Value) -> Key {
    let of = |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
    Key::new(&of("namespace"), &of("name"))
}

impl Server {
    pub(super) fn version(&self) -> u64 {
        self.state.version
    }

    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.state.objects.iter().filter(move |((of, _), _)| *of == kind).map(|(_, stored)| &stored.object)
    }

    /// What a list of the kind says.
    pub(super) fn listed(&self, kind: Kind) -> impl Iterator<Item = Change> {
        self.state.objects.iter().filter(move |((of, _), _)| *of == kind).map(|(_, stored)| stored.seen.clone())
    }

    pub(super) fn get(&self, kind: Kind, key: &Key) -> Option<&Value> {
        self.state.objects.get(&(kind, key.clone())).map(|stored| &stored.object)
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = (&(Kind, Key), &Value)> {
        self.state.objects.iter().map(|(place, stored)| (place, &stored.object))
    }

    /// Stores an object as somebody wants it.
    pub(super) fn put(&mut self, kind: Kind, mut object: Value) {
        self.state.version += 1;
        let place = (kind, key(&object));
        let before = self.state.objects.get(&place).map(|stored| &stored.object);
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.state.version.to_string());
        if metadata["uid"].is_null() {
            self.uids += 1;
            metadata["uid"] = json!(format!("uid-{}", self.uids));
            metadata["creationTimestamp"] =
                json!(format!("2026-01-01T{:02}:{:02}:{:02}Z", self.uids / 3600, self.uids / 60 % 60, self.uids % 60));
        }
        let generation = before.map_or(0, |before| before["metadata"]["generation"].as_i64().unwrap_or_default());
        let same = before.is_some_and(|before| before["spec"] == object["spec"]);
        object["metadata"]["generation"] = json!(generation + i64::from(!same));
        if kind == Kind::Deployment {
            object["status"] = json!({"observedGeneration": object["metadata"]["generation"], "replicas": 1, "updatedReplicas": 1,
                "availableReplicas": 1});
        }
        let finalizers = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        let gone = !object["metadata"]["deletionTimestamp"].is_null() && !finalizers;
        if kind == Kind::AgentRuntime {
            if gone || !object["metadata"]["deletionTimestamp"].is_null() {
                self.since.remove(&place.1);
            } else {
                self.since.entry(place.1.clone()).or_insert(self.now);
            }
        }
        let seen = change(kind, object.clone());
        if gone {
            self.state.objects.remove(&place);
        } else {
            self.state.objects.insert(place, Stored { object, seen: seen.clone() });
        }
        self.log.push(Happened { seen, gone });
    }

    /// Asks for an object to go; finalizers are waited for.
    pub(super) fn delete(&mut self, kind: Kind, key: &Key) {
        if let Some(mut object) = self.get(kind, key).cloned() {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
            self.put(kind, object);
        }
    }

    pub(super) fn lease(&self) -> Option<Lease> {
        self.state.lease.clone()
    }

    /// Creates or replaces the Lease; nothing when somebody else was faster, or there is none to replace.
    pub(super) fn put_lease(&mut self, creates: bool, mut lease: Lease) -> Option<Lease> {
        let fits = match &self.state.lease {
            None => creates,
            Some(stored) => !creates && stored.metadata.resource_version == lease.metadata.resource_version,
        };
        fits.then(|| {
            self.state.version += 1;
            lease.metadata.resource_version = Some(self.state.version.to_string());
            self.state.lease = Some(lease.clone());
            lease
        })
    }

    pub(super) fn delete_lease(&mut self) {
        self.state.version += 1;
        self.state.lease = None;
    }

    /// Makes a backup, unless the Lease is just being handed over.
    pub(super) fn back_up(&mut self) {
        let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        if self.state.lease.as_ref().and_then(holder).is_some_and(|holder| holder.is_empty()) {
            return;
        }
        self.backup = Some(self.state.clone());
    }

    /// Puts the backup back; whether there is one.
    pub(super) fn restore(&mut self) -> bool {
        let Some(backup) = self.backup.clone() else { return false };
        self.state = backup;
        self.history += 1;
        self.log.clear();
        let there = self.of_kind(Kind::AgentRuntime).filter(|object| object["metadata"]["deletionTimestamp"].is_null());
        self.since = there.map(|object| (key(object), self.now)).collect();
        true
    }

    /// Carries out one operation of a plan.
    pub(super) fn carry_out(&mut self, op: &Op) -> Result<Learned, ApplyError> {
        let conflict = || ApplyError::Conflict { what: "simulated".to_owned() };
        match op {
            Op::Create { kind, namespace, body } => {
                let mut body = body.clone();
                body["metadata"]["namespace"] = json!(namespace);
                if self.get(*kind, &key(&body)).is_some() {
                    return Err(conflict());
                }
                Ok(self.stored(*kind, body))
            }
            Op::Apply { kind, key, body, .. } => {
                let Some(mut object) = self.get(*kind, key).cloned() else { return Ok(Learned::Nothing) };
                if body["metadata"]["uid"] != object["metadata"]["uid"] {
                    return Err(conflict());
                }
                apply_fields(*kind, &mut object, body);
                Ok(self.stored(*kind, object))
            }
            Op::Merge { kind, key, patch } | Op::Status { kind, key, patch } => {
                let Some(mut object) = self.get(*kind, key).cloned() else { return Ok(Learned::Nothing) };
                let differs = |member: &str| {
                    let wanted = &patch["metadata"][member];
                    !wanted.is_null() && *wanted != object["metadata"][member]
                };
                if differs("uid") || differs("resourceVersion") {
                    return Err(conflict());
                }
                json_patch::merge(&mut object, patch);
                Ok(self.stored(*kind, object))
            }
            Op::Edit { kind, key, operations } | Op::Restate { kind, key, operations } => {
                let Some(mut object) = self.get(*kind, key).cloned() else { return Ok(Learned::Nothing) };
                let patch: Result<json_patch::Patch, _> = serde_json::from_value(operations.clone());
                let patched = patch.is_ok_and(|patch| json_patch::patch(&mut object, &patch).is_ok());
                if patched { Ok(self.stored(*kind, object)) } else { Err(conflict()) }
            }
            Op::Delete { kind, key, uid } => {
                if self.get(*kind, key).is_some_and(|object| object["metadata"]["uid"] == **uid) {
                    self.delete(*kind, key);
                }
                Ok(Learned::Nothing)
            }
            Op::Report(_) => Ok(Learned::Nothing),
            other => panic!("nothing here plans that: {other:?}"),
        }
    }

    fn stored(&mut self, kind: Kind, object: Value) -> Learned {
        self.put(kind, object);
        let Some(last) = self.log.last() else { return Learned::Nothing };
        let mut seen = last.seen.clone();
        if last.gone {
            seen.now = None;
        }
        Learned::Change(seen)
    }
}
