//! Many that refer to one Secret: how many of them roll at once, and what is said of the others.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ON, of, secret};
use crate::config::gates::Gates;
use crate::controllers::kaos_references::memory::Follows;
use crate::controllers::kaos_references::plan::{NAME, ROW};
use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::fixtures::{Cluster, change, s, workload};
use crate::controllers::scaffold::lane::{Fact, Facts};
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::{Key, Kind};

/// Agents of one namespace that refer to one Secret, rolled out, and an API server that takes what is written.
struct Fleet {
    cluster: Cluster,
    objects: BTreeMap<(Kind, String), Value>,
    version: u64,
}

/// A rollout of that generation that is over.
fn complete(generation: &Value) -> Value {
    json!({"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": null})
}

impl Fleet {
    /// That many, whose Pods follow that version of the Secret.
    fn of_size(size: usize, follows: &str) -> Self {
        let mut fleet = Self { cluster: Cluster::with(ON, Gates::default()), objects: BTreeMap::new(), version: 100 };
        fleet.cluster.memory.surveyed = true;
        for number in 0..size {
            let (name, uid) = (format!("a{number}"), format!("u{number}"));
            let env = json!([{"name": "K", "valueFrom": {"secretKeyRef": {"name": "provider", "key": "k"}}}]);
            let ready = json!({"type": "Ready", "status": "True", "reason": "DeploymentReady", "message": "m", "lastTransitionTime": "t"});
            let agent = json!({"metadata": {"name": name, "namespace": "team", "uid": uid, "generation": 1},
                "spec": {"modelAPI": "m", "container": {"env": env}},
                "status": {"references": of(follows), "conditions": [ready]}});
            let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": name, "uid": uid, "controller": true}]);
            let more = json!({"metadata": {"generation": 1, "ownerReferences": owner}, "spec": {"replicas": 1},
                "status": complete(&json!(1))});
            fleet.objects.insert((Kind::KaosAgent, name.clone()), agent);
            let deployment = format!("agent-{name}");
            let made = workload(Kind::Deployment, &deployment, more);
            fleet.objects.insert((Kind::Deployment, deployment.clone()), made);
            fleet.edit(Kind::KaosAgent, &name, &json!({}));
            fleet.edit(Kind::Deployment, &deployment, &json!({}));
        }
        fleet
    }

    fn edit(&mut self, kind: Kind, name: &str, patch: &Value) {
        self.version += 1;
        let object = self.objects.get_mut(&(kind, name.to_owned())).unwrap();
        let template = object["spec"]["template"].clone();
        json_patch::merge(object, patch);
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["spec"]["template"] != template {
            object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap_or_default() + 1);
        }
        let object = object.clone();
        self.cluster.see(kind, object);
    }

    /// One plan of each, carried out, while the Secret is of that version.
    fn round(&mut self, version: &str) -> Vec<Op> {
        let fact = Fact { value: Ok(version.into()), asked: s(90), at: s(90), failures: 0 };
        let facts = Facts::default().with(secret(), fact);
        let names: Vec<_> = self.objects.keys().filter(|(kind, _)| *kind == Kind::Deployment).cloned().collect();
        let mut all = Vec::new();
        for (_, name) in names {
            let key = Key::new("team", &name);
            let (plan, note) = self.cluster.asked_at(ROW, &key, &facts, s(100)).0.apart();
            self.cluster.note::<Follows>(NAME, &key, note);
            for op in plan.ops {
                match &op {
                    Op::Merge { kind, patch, .. } => {
                        self.edit(*kind, &name, patch);
                        let object = self.objects[&(*kind, name.clone())].clone();
                        let own = self.cluster.owns.of_mut::<Follows>(NAME);
                        Follows::answered(own, &key, &Learned::Change(change(*kind, object)), s(100));
                    }
                    Op::Status { kind, key, patch } => {
                        self.edit(*kind, &key.name, &json!({"status": patch["status"]}));
                    }
                    other => panic!("not planned here: {other:?}"),
                }
                all.push(op);
            }
        }
        all
    }

    /// Rounds until nothing is planned any more.
    fn settle(&mut self, version: &str) -> Vec<Op> {
        let mut all = Vec::new();
        for _ in 0..20 {
            let ops = self.round(version);
            if ops.is_empty() {
                return all;
            }
            all.extend(ops);
        }
        panic!("no end: {all:#?}");
    }

    fn deployment(&self, number: usize) -> &Value {
        &self.objects[&(Kind::Deployment, format!("agent-a{number}"))]
    }

    fn status(&self, number: usize) -> &Value {
        &self.objects[&(Kind::KaosAgent, format!("a{number}"))]["status"]
    }

    fn come_up(&mut self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let status = complete(&self.deployment(number)["metadata"]["generation"]);
            self.edit(Kind::Deployment, &format!("agent-a{number}"), &json!({"status": status}));
        }
    }

    fn fail(&mut self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            let generation = self.deployment(number)["metadata"]["generation"].clone();
            let late = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
            let status =
                json!({"observedGeneration": generation, "replicas": 2, "updatedReplicas": 1, "conditions": late});
            self.edit(Kind::Deployment, &format!("agent-a{number}"), &json!({"status": status}));
        }
    }

    /// How many templates were written for that version.
    fn rolled(&self, version: &str) -> usize {
        let is = |object: &&Value| {
            object["spec"]["template"]["metadata"]["annotations"][keys::ANNOTATION_KAOS_REFERENCES] == of(version)
        };
        self.objects.values().filter(is).count()
    }

    /// Those that say that they wait.
    fn waiting(&self) -> Vec<usize> {
        let says = |number: &usize| {
            let all = self.status(*number)["conditions"].as_array().cloned().unwrap_or_default();
            all.iter().any(|one| one["type"] == "ReferencesPending" && one["reason"] == "RolloutPending")
        };
        (0..8).filter(says).collect()
    }

    /// Another one leads, which looks at all before it rolls any.
    fn another_leads(&mut self, version: &str) {
        self.cluster.forget();
        self.round(version);
        self.cluster.memory.surveyed = true;
    }
}

fn statuses(ops: &[Op], number: usize) -> usize {
    let name = format!("a{number}");
    ops.iter().filter(|op| matches!(op, Op::Status { key, .. } if *key.name == *name)).count()
}

#[test]
fn ruling_17_those_that_use_one_secret_roll_five_at_a_time_and_the_others_say_so_once() {
    let mut fleet = Fleet::of_size(8, "u/1");
    assert_eq!(fleet.settle("u/1"), []);
    let ops = fleet.settle("u/2");
    assert_eq!((fleet.rolled("u/2"), fleet.waiting()), (5, vec![5, 6, 7]));
    for number in 0..8 {
        assert_eq!(
            statuses(&ops, number),
            usize::from(number >= 5),
            "{number}: who rolls at once says nothing before it is done"
        );
    }
    // The others' conditions stay in their places, so that nobody writes them anew.
    let types: Vec<_> =
        fleet.status(5)["conditions"].as_array().unwrap().iter().map(|one| one["type"].clone()).collect();
    assert_eq!(types, ["Ready", "ReferencesPending"]);
    assert_eq!(fleet.settle("u/2"), [], "nothing more is written while they wait");
    fleet.come_up(0..2);
    let ops = fleet.settle("u/2");
    assert_eq!((fleet.rolled("u/2"), statuses(&ops, 0), fleet.status(0)["references"] == of("u/2")), (7, 1, true));
    for _ in 0..2 {
        fleet.come_up(0..8);
        fleet.settle("u/2");
    }
    assert_eq!((fleet.rolled("u/2"), fleet.waiting()), (8, vec![]));
    for number in 0..8 {
        assert_eq!(fleet.status(number)["references"], of("u/2"), "{number}");
        assert_eq!(fleet.deployment(number)["metadata"]["generation"], 2, "{number}: one rollout");
    }
    assert_eq!(fleet.settle("u/2"), []);
}

/// Who leads next knows who rolls and what failed, from the cluster alone.
#[test]
fn ruling_17_two_that_fail_end_it_for_whoever_leads_next_as_well_and_another_version_goes_on() {
    let mut fleet = Fleet::of_size(8, "u/1");
    fleet.settle("u/2");
    fleet.another_leads("u/2");
    fleet.settle("u/2");
    assert_eq!(fleet.rolled("u/2"), 5, "those that roll keep their places");
    fleet.fail(0..2);
    fleet.settle("u/2");
    fleet.come_up(2..5);
    fleet.settle("u/2");
    assert_eq!((fleet.rolled("u/2"), fleet.waiting()), (5, vec![5, 6, 7]), "two have failed");
    fleet.another_leads("u/2");
    fleet.settle("u/2");
    assert_eq!(fleet.rolled("u/2"), 5);
    // What mends it goes to those that failed at once, and then to the others.
    fleet.settle("u/3");
    assert_eq!(fleet.rolled("u/3"), 5);
    for _ in 0..2 {
        fleet.come_up(0..8);
        fleet.settle("u/3");
    }
    assert_eq!((fleet.rolled("u/3"), fleet.waiting()), (8, vec![]));
}

/// A rollout that its user begins takes the change with it, and what makes no Pods waits for nobody.
#[test]
fn ruling_17_what_rolls_already_or_makes_no_pods_waits_for_nobody() {
    let mut fleet = Fleet::of_size(8, "u/1");
    fleet.edit(Kind::Deployment, "agent-a6", &json!({"spec": {"replicas": 0}}));
    fleet.settle("u/2");
    assert_eq!((fleet.rolled("u/2"), fleet.waiting()), (6, vec![5, 7]));
    assert_eq!(fleet.status(6)["references"], of("u/2"));
    let restarted = json!({"kubectl.kubernetes.io/restartedAt": "now"});
    let template = json!({"spec": {"template": {"metadata": {"annotations": restarted}}}});
    fleet.edit(Kind::Deployment, "agent-a7", &template);
    fleet.settle("u/2");
    assert_eq!((fleet.rolled("u/2"), fleet.waiting().contains(&5)), (7, true));
}

/// Nothing is said for long of a turn that does not come.
#[test]
fn ruling_17_what_is_said_of_a_turn_goes_with_the_setting_and_with_the_reference() {
    let mut fleet = Fleet::of_size(8, "u/1");
    fleet.settle("u/2");
    fleet.edit(Kind::KaosAgent, "a5", &json!({"spec": {"container": null}}));
    fleet.settle("u/2");
    assert_eq!(fleet.waiting(), [6, 7]);
    fleet.cluster.configure("");
    let ops = fleet.settle("u/2");
    assert_eq!((ops.len(), fleet.waiting()), (2, vec![]));
    assert_eq!(fleet.status(6)["conditions"].as_array().map(Vec::len), Some(1), "the others' stay");
}
