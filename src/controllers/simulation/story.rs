//! What users and operators of a cluster do in a simulation, and what it should be in the end.

use std::collections::BTreeMap;
use std::time::Duration;

use drawbridge_cluster::cluster::lease::machine::Write;
use serde_json::{Value, json};

use super::random::Random;
use super::replica::{Replica, TEAM, WATCHED};
use super::server::Server;
use super::{Event, REPLICAS, Simulation};
use crate::controllers::enrolment::tests::bench::deployment;
use crate::store::{Key, Kind};

/// Until when things happen.
const RESTLESS: Duration = Duration::from_secs(110);
/// When it is over: long after the longest pause of a failure.
pub(super) const END: Duration = Duration::from_secs(700);

/// One of the things that happen.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Users apply what they want to have.
    Apply(Wish),
    /// Somebody deletes an AgentRuntime.
    Delete(&'static str),
    /// A replica is killed and comes back.
    Kill(usize),
    /// A replica is told to end, and comes back.
    Stop(usize),
    /// A replica gets no time.
    Freeze(usize, Duration),
    /// A watch breaks, or what it goes on from is compacted away.
    Expire(usize, Kind),
    /// Somebody deletes the Lease.
    DeleteLease,
    /// A backup is made.
    BackUp,
    /// It is put back.
    Restore,
}

/// What users want.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wish {
    /// The workloads alone.
    Workloads,
    /// And both AgentRuntimes.
    All,
    /// The second one has another type.
    Tool,
}

/// When what happens.
pub(super) fn of(random: &mut Random, disturbed: bool) -> Vec<(Duration, Act)> {
    let mut acts =
        vec![(Duration::ZERO, Act::Apply(Wish::Workloads)), (random.millis(10, 20_000), Act::Apply(Wish::All))];
    if disturbed {
        let end = u64::try_from(RESTLESS.as_millis()).unwrap_or(u64::MAX);
        for _ in 0..18 {
            let replica = usize::try_from(random.below(REPLICAS as u64)).unwrap_or_default();
            let act = match random.below(10) {
                0 => Act::Kill(replica),
                1 => Act::Stop(replica),
                2 => Act::Freeze(replica, random.millis(100, 20_000)),
                3 | 4 => Act::Expire(replica, WATCHED[usize::try_from(random.below(5)).unwrap_or_default()]),
                5 => Act::DeleteLease,
                6 => Act::BackUp,
                7 => Act::Restore,
                8 => Act::Delete(if random.chance(50) { "web" } else { "api" }),
                _ => Act::Apply(if random.chance(50) { Wish::All } else { Wish::Tool }),
            };
            acts.push((random.millis(1_000, end), act));
        }
    }
    // Users see to it that what they want is there, however late it is possible.
    for seconds in [120, 160, 220, 280] {
        acts.push((Duration::from_secs(seconds), Act::Apply(Wish::All)));
    }
    acts
}

impl Simulation {
    pub(super) fn act(&mut self, act: Act) {
        self.trace.push(format!("{:?} {act:?}", self.now));
        match act {
            Act::Apply(wish) => self.apply(wish),
            Act::Delete(name) => {
                self.server.delete(Kind::AgentRuntime, &Key::new(TEAM, name));
                self.tell(Kind::AgentRuntime);
            }
            Act::Kill(number) => self.restart(number),
            Act::Stop(number) => {
                let to = (number, self.replicas[number].incarnation);
                let is_busy = self.replicas[number].request.is_some();
                if let Some(lease) = self.replicas[number].resign().filter(|_| !is_busy) {
                    let write = Write { creates: false, acquires: false, lease, patience: Duration::ZERO };
                    self.soon((1, 300), to, Event::LeaseLands(0, Box::new(write)));
                }
                self.restart(number);
            }
            Act::Freeze(number, time) => self.replicas[number].frozen = self.now + time,
            Act::Expire(number, kind) => {
                self.replicas[number].expire(kind);
                let to = (number, self.replicas[number].incarnation);
                self.soon((200, 5_000), to, Event::Watch(kind));
            }
            Act::DeleteLease => {
                self.server.delete_lease();
                self.lease_changed();
            }
            Act::BackUp => self.server.back_up(),
            Act::Restore => {
                if self.server.restore() {
                    self.lease_changed();
                    for number in 0..REPLICAS {
                        let to = (number, self.replicas[number].incarnation);
                        for kind in WATCHED {
                            self.soon((200, 20_000), to, Event::Watch(kind));
                        }
                    }
                }
            }
        }
    }

    /// Another process in place of a replica's.
    fn restart(&mut self, number: usize) {
        let incarnation = self.replicas[number].incarnation + 1;
        let seed = self.seed ^ (u64::from(incarnation) << 8) ^ number as u64;
        self.replicas[number] = Replica::start((number, incarnation), seed, self.fault);
        self.soon((100, 4_000), (number, incarnation), Event::Start(number));
    }

    fn apply(&mut self, wish: Wish) {
        let namespace = json!({"metadata": {"name": TEAM}});
        self.wish(Kind::Namespace, namespace);
        for name in ["web", "api"] {
            let mut object = deployment(name);
            object["metadata"]["namespace"] = json!(TEAM);
            self.wish(Kind::Deployment, object);
        }
        let types = match wish {
            Wish::Workloads => return,
            Wish::All => [("web", "agent"), ("api", "agent")],
            Wish::Tool => [("web", "agent"), ("api", "tool")],
        };
        for (name, agent_type) in types {
            self.wish(Kind::AgentRuntime, json!({
                "metadata": {"name": name, "namespace": TEAM},
                "spec": {"type": agent_type, "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}},
            }));
        }
    }

    /// As `kubectl apply`: what is there is changed where it says something else.
    fn wish(&mut self, kind: Kind, object: Value) {
        let of = |member: &str| object["metadata"][member].as_str().unwrap_or_default();
        let known = self.server.get(kind, &Key::new(of("namespace"), of("name"))).cloned();
        let wanted = match known {
            None => object,
            Some(known) if !known["metadata"]["deletionTimestamp"].is_null() => return,
            Some(known) => {
                let mut merged = known.clone();
                json_patch::merge(&mut merged, &json!({"spec": object["spec"]}));
                if merged == known {
                    return;
                }
                merged
            }
        };
        self.server.put(kind, wanted);
        self.tell(kind);
    }
}

/// What tells of the past of an object, and not of what it is.
const PAST: [&str; 9] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "observedGeneration",
    "lastTransitionTime",
    "managedFields",
    "ownerReferences",
    "time",
];

/// The cluster without its past.
pub(super) fn without_past(server: &Server) -> BTreeMap<String, Value> {
    let named = |((kind, key), object): (&(Kind, Key), &Value)| {
        (format!("{} {}/{}", kind.as_str(), key.namespace, key.name), present(object))
    };
    server.objects().map(named).collect()
}

fn present(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, value)| !PAST.contains(&key.as_str()) && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), present(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(present).collect()),
        other => other.clone(),
    }
}
