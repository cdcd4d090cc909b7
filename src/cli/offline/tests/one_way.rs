//! The same objects give the same snapshot, verdicts and plans, whether they come from files, by lists or by watches, and a process that keeps
//! no more than admission reads has the same snapshot and verdicts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::admission::verdict::{Outcome, Verdict};
use crate::cli::offline::review;
use crate::cli::offline::workload::Subject;
use crate::cli::offline::world::{Facts, World as Offline};
use crate::config::gather::{self, Touched};
use crate::config::inputs::NamespaceInputs;
use crate::config::snapshot::{Published, Snapshot};
use crate::config::view::namespace_view;
use crate::controllers::scaffold::memory::Memory;
use crate::controllers::scaffold::plan::Plan;
use crate::controllers::scaffold::runner::{Runner, Scene};
use crate::controllers::{agent, enrolment, namespace_config, network_policy, service_account, trust_label, waiting};
use crate::store::{Change, Key, Kind, Reach, SelectionId, Store, Via, change_of};

/// Controllers that remember nothing yet.
fn rows() -> [Box<dyn Runner>; 7] {
    [
        network_policy::plan::ROW.runner(),
        trust_label::plan::ROW.runner(),
        service_account::plan::ROW.runner(),
        namespace_config::plan::ROW.runner(),
        agent::plan::ROW.runner(),
        enrolment::plan::ROW.runner(),
        waiting::plan::ROW.runner(),
    ]
}

const SPACES: [&str; 2] = ["team", "other"];
const OWN: &str = "kagenti-system";
/// What delivers every object.
const SELECTION: SelectionId = SelectionId::new(0);

/// What a process keeps of what it is told.
type Keeps = fn(Change) -> Change;

/// With controllers.
const WHOLE: Keeps = |change| change;
/// Without.
const SLIM: Keeps = |change| change.slim();

/// An object of which there are several versions; `flag` and `number` are what differs between them.
type Make = fn(&str, bool, u64) -> Value;

/// Everything that tells whose Pods are whose, what is ours, and what is wanted.
const OBJECTS: [(Kind, Make); 11] = [
    (Kind::Namespace, |space, flag, _| {
        let labels = json!({"kagenti-enabled": flag.to_string(), "agent.kagenti.dev/trust": if flag { "enforce" } else { "off" }});
        json!({"metadata": {"name": space, "labels": labels}})
    }),
    (Kind::ServiceAccount, |_, flag, _| {
        let labels = if flag { json!({"kagenti.io/managed-by": "webhook"}) } else { json!({}) };
        json!({"metadata": {"name": "web", "labels": labels}})
    }),
    (Kind::Deployment, |_, flag, number| {
        let labels = if flag { json!({"app": "web", "kagenti.io/type": "agent"}) } else { json!({"app": "web"}) };
        json!({"metadata": {"name": "web", "generation": number}, "spec": {"replicas": number, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": if flag { "web" } else { "mine" },
                "containers": [{"name": "app", "image": format!("i:{number}")}]}}}})
    }),
    (Kind::AgentRuntime, |_, flag, number| {
        let kind = if number == 1 { "StatefulSet" } else { "Deployment" };
        json!({"metadata": {"name": "r", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": number},
            "spec": {"type": if flag { "agent" } else { "tool" }, "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": "web"}}})
    }),
    (Kind::ReplicaSet, |_, flag, _| {
        let owner = if flag { "deployments-web" } else { "deployments-former" };
        let owner =
            json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner, "controller": true}]);
        json!({"metadata": {"name": "web-1", "ownerReferences": owner}, "spec": {"template": {
            "metadata": {"labels": {"app": "web", "kagenti.io/type": "agent"}}, "spec": {"containers": [{"name": "app", "image": "i"}]}}}})
    }),
    (Kind::Pod, |_, flag, number| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "replicasets-web-1", "controller": true}]);
        json!({"metadata": {"name": "web-1-a", "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owner,
            "labels": {"app": "web", "kagenti.io/type": "agent", "pod-template-hash": "1"}},
            "spec": {"serviceAccountName": if flag { "web" } else { "default" }, "containers": [{"name": "app", "image": "i"}]},
            "status": {"phase": if number == 1 { "Pending" } else { "Running" }}})
    }),
    (Kind::Job, |_, flag, _| {
        let kind = if flag { "CronJob" } else { "Other" };
        let owner =
            json!([{"apiVersion": "batch/v1", "kind": kind, "name": "nightly", "uid": "c", "controller": true}]);
        json!({"metadata": {"name": "nightly-0", "ownerReferences": owner}, "spec": {"template": {
            "metadata": {"labels": {"kagenti.io/type": "tool"}}, "spec": {"containers": [{"name": "app", "image": "i"}]}}}})
    }),
    (Kind::AgentBuild, |_, _, number| json!({"metadata": {"name": "built", "generation": number}, "spec": {}})),
    (Kind::AgentCard, |_, flag, number| {
        let labels = if flag { json!({}) } else { json!({"app.kubernetes.io/managed-by": "drawbridge"}) };
        json!({"metadata": {"name": "web-card", "labels": labels, "generation": number},
            "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
    }),
    (Kind::NetworkPolicy, |_, flag, _| {
        let labels = if flag {
            json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"})
        } else {
            json!({})
        };
        json!({"metadata": {"name": "drawbridge-default-deny", "labels": labels}, "spec": {"podSelector": {}}})
    }),
    (
        Kind::ModelApi,
        |_, _, number| json!({"metadata": {"name": "web", "generation": number}, "spec": {"mode": "Hosted"}}),
    ),
];

/// One object of one namespace and what became of it: its versions, in order, and whether it is gone in the end.
#[derive(Debug, Clone)]
struct History {
    kind: Kind,
    versions: Vec<Value>,
    gone: bool,
}

impl History {
    fn changes(&self) -> Vec<Change> {
        let mut all: Vec<_> = self.versions.iter().map(|object| change(self.kind, object)).collect();
        if let Some(last) = all.last().cloned().filter(|_| self.gone) {
            all.push(Change { version: last.version + 1, now: None, ..last });
        }
        all
    }

    fn last(&self) -> Option<&Value> {
        self.versions.last().filter(|_| !self.gone)
    }
}

fn change(kind: Kind, object: &Value) -> Change {
    change_of(kind, &object.to_string()).unwrap()
}

/// Every object of every namespace, with one to three versions; a Namespace stays.
fn histories() -> impl Strategy<Value = Vec<History>> {
    let one = (prop::collection::vec((any::<bool>(), 1..4u64), 1..4), prop::bool::weighted(0.2));
    prop::collection::vec(one, OBJECTS.len() * SPACES.len()).prop_map(|all| {
        let places = SPACES.iter().flat_map(|space| OBJECTS.iter().map(move |object| (*space, object)));
        type Place<'p> = (&'p str, &'p (Kind, Make));
        let of = |((space, (kind, make)), (said, gone)): (Place<'_>, (Vec<(bool, u64)>, bool))| {
            let versions = said.into_iter().enumerate().map(|(at, (flag, number))| {
                let mut object = make(space, flag, number);
                object["apiVersion"] = json!(kind.api_version());
                object["kind"] = json!(kind.as_str());
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                object["metadata"]["uid"] = json!(format!("{}-{name}", kind.plural()));
                object["metadata"]["resourceVersion"] = json!((10 * (at + 1)).to_string());
                if *kind != Kind::Namespace {
                    object["metadata"]["namespace"] = json!(space);
                }
                object
            });
            History { kind: *kind, versions: versions.collect(), gone: gone && *kind != Kind::Namespace }
        };
        places.zip(all).map(of).collect()
    })
}

/// Numbers from one seed.
struct Seed(u64);

impl Seed {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }
}

fn store() -> Store {
    let mut store = Store::new(OWN);
    for kind in Kind::ALL {
        store.set_reach(*kind, Reach::Listed);
    }
    store
}

/// As the command line reads them.
fn by_files(all: &[History]) -> (Offline, Store) {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 36),
        spire_driver: true,
        operator_namespace: OWN.to_owned(),
    };
    let (mut offline, mut store) = (Offline::new(&facts).unwrap(), store());
    for object in all.iter().filter(|one| one.last().is_none() && one.kind == Kind::NetworkPolicy) {
        offline.is_not_cut_off(object.versions[0]["metadata"]["namespace"].as_str().unwrap());
    }
    for (kind, object) in all.iter().filter_map(|one| Some((one.kind, one.last()?))) {
        offline.observe(object, "");
        store.apply(&Change { via: Via::File, ..change(kind, object) }, Duration::ZERO);
    }
    (offline, store)
}

/// A list of some of what was there first, and a list of what is there in the end.
fn by_lists(all: &[History], seed: &mut Seed, keeps: Keeps) -> Store {
    let mut store = store();
    for again in [false, true] {
        let mut listed: BTreeMap<Kind, HashSet<Key>> =
            OBJECTS.iter().map(|(kind, _)| (*kind, HashSet::new())).collect();
        for one in all {
            let object = if again { one.last() } else { one.versions.first().filter(|_| seed.below(3) > 0) };
            let Some(object) = object else { continue };
            let seen = Change { via: Via::List(SELECTION), ..change(one.kind, object) };
            listed.entry(one.kind).or_default().insert(seen.key.clone());
            store.apply(&keeps(seen), Duration::ZERO);
        }
        for (kind, listed) in listed {
            for gone in store.missing((kind, SELECTION, None), (&listed, u64::MAX)) {
                store.apply(&gone, Duration::ZERO);
            }
        }
    }
    store
}

/// Event by event: in order for each object and in any order between them, with what was told before told again at times.
fn by_watches(all: &[History], seed: &mut Seed, keeps: Keeps) -> Store {
    let mut store = store();
    let histories: Vec<_> = all.iter().map(History::changes).collect();
    let mut told = vec![0; histories.len()];
    let mut left: Vec<_> = (0..histories.len()).collect();
    while !left.is_empty() {
        let pick = seed.below(left.len());
        let at = left[pick];
        let seen = Change { via: Via::Watch(SELECTION), ..histories[at][told[at]].clone() };
        store.apply(&keeps(seen), Duration::ZERO);
        told[at] += 1;
        if told[at] == histories[at].len() {
            left.swap_remove(pick);
        }
        // One that is late, or comes twice: the answer to a request of ours.
        let late = seed.below(histories.len());
        if told[late] > 0 {
            store.apply(&keeps(histories[late][seed.below(told[late])].clone()), Duration::ZERO);
        }
    }
    store
}

/// What a process decides from that knows this.
fn facts(store: &Store, offline: &Offline) -> Published {
    let platform = offline.platform().unwrap();
    let mut snapshot: Snapshot = offline.snapshot().unwrap();
    let view = |name: &&str| {
        let view = namespace_view(&platform, name, &NamespaceInputs::of(store, name), None);
        (Arc::from(*name), Arc::new(view))
    };
    snapshot.view.namespaces = SPACES.iter().map(view).collect::<HashMap<_, _>>();
    let snapshot = Arc::new(snapshot);
    Published { settled: snapshot.clone(), snapshot, platform: Arc::new(platform), spreading: false }
}

fn plans(store: &Store, facts: &Published) -> Vec<(&'static str, Key, Plan)> {
    let mut memory = Memory::default();
    memory.surveyed = true;
    let mut all = Vec::new();
    for row in &mut rows() {
        for key in SPACES.iter().flat_map(|space| row.of_namespace(store, space)).collect::<Vec<_>>() {
            let planned = row.plan(Scene { store, memory: &memory, facts, key: &key, now: Duration::from_secs(60) });
            all.push((row.controller().as_str(), key, planned.plan));
        }
    }
    all
}

/// What the webhook says of a Pod of every Deployment.
fn verdicts(all: &[History], snapshot: &Snapshot) -> Vec<Verdict> {
    let deployments = all.iter().filter(|one| one.kind == Kind::Deployment).filter_map(History::last);
    let of = |object: &Value| {
        let subject = Subject::of(object, "").unwrap();
        review::evaluate(&subject, &subject.pod(object), snapshot).unwrap()
    };
    deployments.map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn files_lists_and_watches_say_the_same(all in histories(), seed in any::<u64>()) {
        let mut seed = Seed(seed);
        let (offline, files) = by_files(&all);
        let said = offline.snapshot().unwrap();
        let of_files = facts(&files, &offline);
        let whole = [("lists", by_lists(&all, &mut seed, WHOLE)), ("watches", by_watches(&all, &mut seed, WHOLE))];
        let slim = [("lists", by_lists(&all, &mut seed, SLIM)), ("watches", by_watches(&all, &mut seed, SLIM))];
        for (way, store) in whole.iter().chain(&slim) {
            let facts = facts(store, &offline);
            for space in SPACES {
                prop_assert_eq!(facts.snapshot.namespace(space), said.namespace(space), "{}: {}", way, space);
                prop_assert_eq!(gather::builds(store, space), gather::builds(&files, space), "{}: {}", way, space);
            }
            prop_assert_eq!(gather::cluster(store), gather::cluster(&files), "{}", way);
            prop_assert_eq!(verdicts(&all, &facts.snapshot), verdicts(&all, &said), "{}", way);
        }
        for (way, store) in whole {
            prop_assert_eq!(plans(&store, &facts(&store, &offline)), plans(&files, &of_files), "{}", way);
        }
    }
}

/// What a namespace says as the events come: the views of a snapshot are made anew only where one of them touches it.
fn said_by_event(all: &[History], seed: &mut Seed, keeps: Keeps) -> Vec<NamespaceInputs> {
    let mut store = store();
    let mut said: BTreeMap<Arc<str>, NamespaceInputs> =
        SPACES.iter().map(|space| (Arc::from(*space), NamespaceInputs::default())).collect();
    let mut left: Vec<_> = all.iter().map(|one| one.changes().into_iter().peekable()).collect();
    while !left.is_empty() {
        let at = seed.below(left.len());
        if let Some(change) = left[at].next() {
            let touched = gather::touched(&store, &change);
            store.apply(&keeps(Change { via: Via::Watch(SELECTION), ..change }), Duration::ZERO);
            if let Touched::Namespace(name) = touched {
                let inputs = NamespaceInputs::of(&store, &name);
                said.insert(name, inputs);
            }
        }
        if left[at].peek().is_none() {
            drop(left.swap_remove(at));
        }
    }
    for space in SPACES {
        assert_eq!(said[space], NamespaceInputs::of(&store, space), "{space}");
    }
    said.into_values().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_no_change_touches_is_as_it_was(all in histories(), seed in any::<u64>()) {
        let mut seed = Seed(seed);
        let whole = said_by_event(&all, &mut seed, WHOLE);
        prop_assert_eq!(said_by_event(&all, &mut seed, SLIM), whole);
    }
}

/// What the property compares is not nothing: every row plans for these objects, and a Pod is changed.
#[test]
fn the_objects_that_are_compared_are_worked_on() {
    let made = |kind: Kind, make: Make| {
        let mut object = make("team", true, 2);
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.as_str());
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        object["metadata"]["uid"] = json!(format!("{}-{name}", kind.plural()));
        if kind != Kind::Namespace {
            object["metadata"]["namespace"] = json!("team");
        }
        History { kind, versions: vec![object], gone: false }
    };
    let all: Vec<_> = OBJECTS.iter().map(|(kind, make)| made(*kind, *make)).collect();
    let (offline, files) = by_files(&all);
    let of_files = facts(&files, &offline);
    let busy: Vec<_> = plans(&files, &of_files).into_iter().filter(|(_, _, plan)| !plan.ops.is_empty()).collect();
    let rows: Vec<_> = busy.iter().map(|(row, _, _)| *row).collect();
    assert!(rows.contains(&"enrolment") && rows.contains(&"namespace-config"), "{busy:?}");
    assert!(verdicts(&all, &of_files.snapshot).iter().all(|verdict| matches!(verdict.outcome, Outcome::Patch(_))));
}
