//! By which way a change comes, what it comes to, and when an object is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::domain::keys;
use crate::store::{
    Change, ConfigMapSeen, Key, Kind, Observed, Over, SelectionId, ServiceAccountSeen, Store, Taken, Via, What,
    change_of,
};

const BY_NAME: SelectionId = SelectionId::new(3);
const BY_LABEL: SelectionId = SelectionId::new(40);

fn key(name: &str) -> Key {
    Key::new("team", name)
}

/// `flag` is what differs between versions.
fn seen(name: &str, version: u64, (via, flag): (Via, bool)) -> Change {
    let what = What::ServiceAccount(ServiceAccountSeen { ours: flag, ..ServiceAccountSeen::default() });
    let now = Some(Arc::new(Observed { uid: "u".into(), version, what }));
    Change { kind: Kind::ServiceAccount, key: key(name), version, via, now }
}

fn gone(name: &str, version: u64, via: Via) -> Change {
    Change { now: None, ..seen(name, version, (via, false)) }
}

struct Trial(Store);

impl Trial {
    fn new() -> Self {
        Self(Store::new("own"))
    }

    fn take(&mut self, change: &Change) -> Taken {
        self.0.take(change, Duration::ZERO).0
    }

    fn sees(&mut self, version: u64, via: Via, flag: bool) -> Taken {
        self.take(&seen("a", version, (via, flag)))
    }

    fn loses(&mut self, version: u64, via: Via) -> Taken {
        self.take(&gone("a", version, via))
    }

    fn version(&self) -> Option<u64> {
        self.0.service_account("team", "a").map(|(_, observed, _)| observed.version)
    }

    /// Ends a list of that version, in which only `names` were.
    fn lists(&mut self, selection: SelectionId, version: u64, names: &[&str]) -> Vec<String> {
        let listed: HashSet<Key> = names.iter().map(|name| key(name)).collect();
        self.0.listed((Kind::ServiceAccount, selection, None), version);
        let missing = self.0.missing((Kind::ServiceAccount, selection, None), (&listed, version));
        let gone = missing.iter().filter(|one| self.0.take(one, Duration::ZERO).0 == Taken::New);
        gone.map(|one| one.key.name.to_string()).collect()
    }
}

#[test]
fn a_list_may_go_back_and_an_event_may_not() {
    let (list, watch) = (Via::List(BY_NAME), Via::Watch(BY_NAME));
    let mut trial = Trial::new();
    assert_eq!(trial.sees(7, list, false), Taken::New);
    assert_eq!(trial.sees(7, watch, false), Taken::No, "known");
    assert_eq!(trial.sees(6, watch, true), Taken::No, "late");
    assert_eq!(trial.sees(9, watch, false), Taken::Same, "something that is not kept");
    assert_eq!(trial.sees(9, watch, true), Taken::New, "the same version as there is room for it now");
    assert_eq!(trial.sees(3, list, true), Taken::Same, "a backup was put back");
    assert_eq!(
        (trial.sees(3, list, false), trial.version()),
        (Taken::New, Some(3)),
        "under the same number, and another"
    );
    assert_eq!(trial.sees(4, watch, true), Taken::New, "what follows is compared with the list");
}

#[test]
fn what_a_whole_list_lacks_is_gone_unless_it_was_learned_later() {
    let mut trial = Trial::new();
    for name in ["a", "b", "c", "d"] {
        trial.take(&seen(name, if name == "d" { 8 } else { 5 }, (Via::Watch(BY_NAME), true)));
    }
    assert!(trial.lists(BY_LABEL, 6, &[]).is_empty(), "another selection's objects");
    assert_eq!(trial.lists(BY_NAME, 6, &["b"]), ["a", "c"]);
    assert_eq!(trial.sees(5, Via::Watch(BY_LABEL), true), Taken::No, "a late event of another selection");
    assert_eq!(trial.sees(6, Via::Watch(BY_LABEL), true), Taken::New, "made again");
    assert!(trial.0.delivers((Kind::ServiceAccount, BY_LABEL, Some("team"))));
    assert!(!trial.0.delivers((Kind::ServiceAccount, BY_LABEL, Some("other"))));
}

#[test]
fn an_object_is_gone_when_no_selection_delivers_it() {
    let (name, label) = (Via::Watch(BY_NAME), Via::Watch(BY_LABEL));
    let mut trial = Trial::new();
    assert_eq!(trial.sees(5, name, false), Taken::New);
    assert_eq!(trial.sees(5, label, false), Taken::No, "the same from another selection");
    assert_eq!(trial.sees(6, label, true), Taken::New, "its label was taken off: the other selection has it still");
    assert_eq!(trial.loses(6, name), Taken::No);
    assert_eq!(trial.loses(6, name), Taken::No, "nothing twice");
    assert_eq!((trial.loses(7, label), trial.version()), (Taken::New, None));
    assert_eq!(trial.loses(7, name), Taken::No);
    assert_eq!(trial.sees(6, name, true), Taken::No, "late");
    assert_eq!(trial.sees(9, name, true), Taken::New, "made again");
    assert_eq!(trial.take(&gone("never", 9, name)), Taken::No, "of no interest, and never known");
}

/// A label that moves an object from one selection to another does so in one version, and each tells of its part.
#[test]
fn an_object_may_move_between_selections() {
    for late_first in [false, true] {
        let mut trial = Trial::new();
        trial.sees(5, Via::Watch(BY_NAME), true);
        if late_first {
            assert_eq!(trial.sees(6, Via::Watch(BY_LABEL), true), Taken::Same);
            assert_eq!(trial.loses(6, Via::Watch(BY_NAME)), Taken::No);
        } else {
            assert_eq!(trial.loses(6, Via::Watch(BY_NAME)), Taken::New);
            assert_eq!(trial.sees(6, Via::Watch(BY_LABEL), true), Taken::New);
        }
        assert_eq!(trial.version(), Some(6));
    }
}

#[test]
fn answers_count_at_once_and_what_was_under_way_does_not_undo_them() {
    let watch = Via::Watch(BY_NAME);
    let mut trial = Trial::new();
    trial.sees(5, watch, false);
    assert_eq!(trial.sees(9, Via::Answer, true), Taken::New);
    assert_eq!(trial.sees(7, watch, false), Taken::No);
    assert_eq!(trial.loses(12, Via::Answer), Taken::New, "we deleted it, whoever delivers it");
    assert_eq!((trial.sees(11, watch, true), trial.sees(12, watch, true)), (Taken::No, Taken::No));
    assert_eq!(trial.loses(12, watch), Taken::No);
    // One that we made: a list that was read before has not got it, and one that was read later lacks it.
    assert_eq!(trial.sees(20, Via::Answer, true), Taken::New);
    assert_eq!(trial.loses(12, watch), Taken::No, "the end of its predecessor");
    assert!(trial.lists(BY_NAME, 19, &[]).is_empty());
    assert_eq!(trial.lists(BY_NAME, 21, &[]), ["a"]);
}

/// The policies that one selection delivers by name are of no interest to the one that delivers all others.
#[test]
fn what_an_answer_told_of_is_for_the_selection_that_has_it() {
    let mut store = Store::new("own");
    let what = What::Known;
    let now = Some(Arc::new(Observed { uid: "u".into(), version: 20, what }));
    let made = Change { kind: Kind::NetworkPolicy, now, ..seen("deny", 20, (Via::Answer, true)) };
    assert_eq!(store.take(&made, Duration::ZERO).0, Taken::New);
    let other = |version| Change { now: None, version, via: Via::Watch(BY_LABEL), ..made.clone() };
    assert_eq!(store.take(&other(20), Duration::ZERO).0, Taken::No);
    assert_eq!(store.take(&other(21), Duration::ZERO).0, Taken::No);
    assert!(store.missing((Kind::NetworkPolicy, BY_LABEL, None), (&HashSet::new(), 30)).is_empty());
    let named = Change { version: 21, via: Via::Watch(BY_NAME), ..made.clone() };
    assert_eq!(store.take(&named, Duration::ZERO).0, Taken::Same);
    assert_eq!(store.missing((Kind::NetworkPolicy, BY_NAME, None), (&HashSet::new(), 30)).len(), 1);
}

/// One that we made and somebody deleted before its watch told of it, while that watch fell into a list: nothing else ever tells that it is gone.
#[test]
fn what_only_an_answer_told_of_is_missing_from_the_list_of_whoever_would_deliver_it() {
    let mut store = Store::new("own");
    let mut makes = |kind, namespace: &str, name: &str, what| {
        let now = Some(Arc::new(Observed { uid: "u".into(), version: 20, what }));
        let made = Change { kind, key: Key::new(namespace, name), version: 20, via: Via::Answer, now };
        assert_eq!(store.take(&made, Duration::ZERO).0, Taken::New, "{name}");
    };
    makes(Kind::NetworkPolicy, "team", keys::DEFAULT_DENY, What::Known);
    makes(Kind::NetworkPolicy, "team", "w-signature-policy", What::Known);
    let text = |is_defaults| What::ConfigMap(ConfigMapSeen { is_defaults, ..ConfigMapSeen::default() });
    makes(Kind::ConfigMap, "team", keys::CONFIG_MAP_AUTHBRIDGE, text(false));
    makes(Kind::ConfigMap, "team", keys::CONFIG_MAP_ENROLMENT, text(false));
    makes(Kind::ConfigMap, "team", "labelled", text(true));
    makes(Kind::ConfigMap, "own", keys::CONFIG_MAP_ENROLMENT, text(false));
    let missing = |store: &Store, kind: Kind, version| -> Vec<String> {
        let of_all = kind.selected().flat_map(|(id, row)| {
            let missing = store.missing((kind, id, None), (&HashSet::new(), version));
            missing.into_iter().map(move |one| format!("{:?}: {}/{}", row.name, one.key.namespace, one.key.name))
        });
        of_all.collect()
    };
    for kind in [Kind::NetworkPolicy, Kind::ConfigMap] {
        assert!(missing(&store, kind, 19).is_empty(), "lists that were read before it was made");
    }
    let deny = format!("{:?}: team/{}", Some(keys::DEFAULT_DENY), keys::DEFAULT_DENY);
    assert_eq!(missing(&store, Kind::NetworkPolicy, 20), [deny, "None: team/w-signature-policy".to_owned()]);
    let named = format!("{:?}: team/{}", Some(keys::CONFIG_MAP_AUTHBRIDGE), keys::CONFIG_MAP_AUTHBRIDGE);
    let ours = format!("None: own/{}", keys::CONFIG_MAP_ENROLMENT);
    assert_eq!(missing(&store, Kind::ConfigMap, 20), [named, ours], "what labels select nobody can tell");
    // It goes, and what the other selection would deliver stays.
    let selected: Vec<_> = Kind::NetworkPolicy.selected().map(|(id, _)| id).collect();
    let gone = store.missing((Kind::NetworkPolicy, selected[1], None), (&HashSet::new(), 20));
    assert_eq!(gone.iter().map(|one| store.take(one, Duration::ZERO).0).collect::<Vec<_>>(), [Taken::New]);
    assert_eq!(missing(&store, Kind::NetworkPolicy, 20).len(), 1);
}

/// What is known of the history before is compared with nothing.
#[test]
fn after_the_cluster_went_back_a_list_takes_away_what_it_lacks_whatever_its_version_was() {
    let mut trial = Trial::new();
    trial.sees(900, Via::Watch(BY_NAME), true);
    trial.0.turn_to(1);
    assert_eq!(trial.lists(BY_NAME, 10, &[]), ["a"]);
    assert_eq!(trial.sees(12, Via::Watch(BY_NAME), true), Taken::New, "made again, under a number of before");
    trial.sees(901, Via::Watch(BY_NAME), true);
    trial.0.turn_to(2);
    assert_eq!((trial.sees(3, Via::Watch(BY_NAME), true), trial.version()), (Taken::Same, Some(3)));
}

/// Lists of several namespaces, of several selections, of no version, and of before the cluster went back.
#[test]
fn an_answer_is_compared_with_the_lists_in_which_its_object_would_be() {
    let answer = |kind, (namespace, name): (&str, &str), version| {
        let now = Some(Arc::new(Observed { uid: "u".into(), version, what: What::Known }));
        Change { kind, key: Key::new(namespace, name), version, via: Via::Answer, now }
    };
    let one_of = |kind: Kind, at: usize| kind.selected().nth(at).unwrap().0;
    let (account, policy) = (one_of(Kind::ServiceAccount, 0), one_of(Kind::NetworkPolicy, 1));
    let labelled = Kind::ConfigMap.selected().find(|(_, row)| row.labels.is_some()).unwrap().0;
    let mut store = Store::new("own");
    store.listed((Kind::ServiceAccount, account, Some("team")), 30);
    store.listed((Kind::NetworkPolicy, policy, None), 30);
    store.listed((Kind::ConfigMap, labelled, None), 30);
    for (kind, at, version, taken) in [
        (Kind::ServiceAccount, ("team", "a"), 30, Taken::No),
        (Kind::ServiceAccount, ("team", "a"), 31, Taken::New),
        (Kind::ServiceAccount, ("other", "a"), 30, Taken::New),
        (Kind::ServiceAccount, ("team", "opaque"), 0, Taken::New),
        (Kind::NetworkPolicy, ("team", "w-signature-policy"), 30, Taken::No),
        (Kind::NetworkPolicy, ("team", keys::DEFAULT_DENY), 30, Taken::New),
        (Kind::ConfigMap, ("team", "of-what-labels-nobody-knows"), 30, Taken::New),
    ] {
        assert_eq!(store.take(&answer(kind, at, version), Duration::ZERO).0, taken, "{kind:?} {at:?} {version}");
    }
    store.listed((Kind::NetworkPolicy, policy, None), 0);
    assert!(store.apply(&answer(Kind::NetworkPolicy, ("team", "x"), 30), Duration::ZERO), "a list of no version");
    store.listed((Kind::NetworkPolicy, policy, None), 40);
    store.turn_to(1);
    assert!(store.apply(&answer(Kind::NetworkPolicy, ("team", "y"), 30), Duration::ZERO), "of another history");
}

/// Whatever else is deleted meanwhile, the last thousands of deletions are remembered.
#[test]
fn an_answer_that_is_late_brings_nothing_back_however_much_is_deleted_after_it() {
    let mut trial = Trial::new();
    let (watch, answer) = (Via::Watch(BY_NAME), Via::Answer);
    for at in 0..5_000_u64 {
        trial.take(&seen("a", 10 * at + 1, (watch, true)));
        assert_eq!(trial.take(&gone("a", 10 * at + 3, watch)), Taken::New);
        assert_eq!(trial.take(&gone(&format!("b{at}"), 10 * at + 4, answer)), Taken::No, "never known");
        assert_eq!(trial.take(&seen("a", 10 * at + 2, (answer, false))), Taken::No, "{at}");
    }
    // Made and deleted twice: the answer to the first deletion says nothing of the second.
    let mut trial = Trial::new();
    trial.sees(15, watch, true);
    assert_eq!((trial.loses(20, watch), trial.loses(12, answer)), (Taken::New, Taken::No));
    assert_eq!((trial.sees(16, answer, true), trial.sees(21, answer, true)), (Taken::No, Taken::New));
}

/// Numbers from one seed.
struct Seed(u64);

impl Seed {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).unwrap()
    }
}

/// An API server with few objects, a watch that lags and falls into a list at times, and answers to requests that take any time.
struct Cluster {
    /// Each version, in order.
    log: Vec<Change>,
    /// Up to where the watch has come.
    watched: usize,
    /// Answers that are under way, by the place of what they tell of.
    answers: Vec<usize>,
}

impl Cluster {
    /// The object of that name as it is now.
    fn now(&self, name: &str) -> Option<&Change> {
        self.log.iter().rev().find(|change| *change.key.name == *name).filter(|change| change.now.is_some())
    }

    /// Somebody writes or deletes that object; where `ours`, an answer follows.
    fn writes(&mut self, name: &str, (deletes, flag, ours): (bool, bool, bool)) {
        let version = 2 * self.log.len() as u64 + 2;
        let change = match (deletes, self.now(name)) {
            (true, None) => return,
            (true, Some(_)) => gone(name, version, Via::Answer),
            (false, _) => seen(name, version, (Via::Answer, flag)),
        };
        if ours {
            self.answers.push(self.log.len());
        }
        self.log.push(change);
    }

    fn event(&mut self, trial: &mut Trial) {
        if let Some(event) = self.log.get(self.watched) {
            trial.take(&Change { via: Via::Watch(BY_NAME), ..event.clone() });
            self.watched += 1;
        }
    }

    fn answer(&mut self, at: usize, trial: &mut Trial) {
        let change = self.log[self.answers.swap_remove(at)].clone();
        trial.take(&change);
    }

    fn list(&mut self, names: &[&'static str], trial: &mut Trial) {
        let there: Vec<_> = names.iter().filter(|name| self.now(name).is_some()).copied().collect();
        for name in &there {
            let listed = self.now(name).cloned().unwrap();
            trial.take(&Change { via: Via::List(BY_NAME), ..listed });
        }
        trial.lists(BY_NAME, 2 * self.log.len() as u64 + 1, &there);
        self.watched = self.log.len();
    }
}

/// Events come in order, lists at any time, and answers at any time and in any order: in the end what is there is known, as it is, and nothing else.
#[test]
fn the_same_objects_are_known_whenever_lists_events_and_answers_come() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    for seed in 0..400 {
        let (mut seed, number) = (Seed(seed), seed);
        let mut cluster = Cluster { log: Vec::new(), watched: 0, answers: Vec::new() };
        let mut trial = Trial::new();
        for _ in 0..60 {
            match seed.below(10) {
                0..4 => {
                    let name = NAMES[seed.below(NAMES.len())];
                    cluster.writes(name, (seed.below(3) == 0, seed.below(2) == 0, seed.below(2) == 0));
                }
                4..7 => cluster.event(&mut trial),
                7 | 8 if !cluster.answers.is_empty() => {
                    let at = seed.below(cluster.answers.len());
                    cluster.answer(at, &mut trial);
                }
                9 => cluster.list(&NAMES, &mut trial),
                _ => {}
            }
        }
        while cluster.watched < cluster.log.len() || !cluster.answers.is_empty() {
            if cluster.answers.is_empty() || seed.below(2) == 0 {
                cluster.event(&mut trial);
            } else {
                let at = seed.below(cluster.answers.len());
                cluster.answer(at, &mut trial);
            }
        }
        for name in NAMES {
            let known = trial.0.service_account("team", name).map(|(seen, observed, _)| (seen.ours, observed.version));
            let there = cluster.now(name).and_then(|change| change.now.as_ref()).map(|now| match &now.what {
                What::ServiceAccount(seen) => (seen.ours, now.version),
                other => panic!("{other:?}"),
            });
            assert_eq!(known, there, "{name} of seed {number}");
        }
    }
}

/// An object of that kind as whoever writes much would have it: an Agent's, with fields under the name of a manager of ours.
fn crowded(kind: Kind) -> Change {
    let owner = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "w", "uid": "a", "controller": true});
    let fields = json!({"manager": keys::MANAGER_AGENT, "operation": "Apply", "fieldsV1": {"f:spec": {}}});
    let metadata = json!({"name": "w-card-signed", "namespace": "team", "uid": "w", "resourceVersion": "7",
        "ownerReferences": [owner], "managedFields": [fields]});
    let object = json!({"metadata": metadata, "spec": {"template": {"spec": {"containers": []}}}});
    change_of(kind, &object.to_string()).unwrap()
}

/// A kind that is bounded and does not say what it is over would be whole again with each answer, until its watch tells of it.
#[test]
fn what_has_no_room_says_so_whatever_its_kind_and_the_answer_to_a_write_is_cut_as_well() {
    for kind in Kind::ALL.iter().copied() {
        let whole = crowded(kind);
        let slim = whole.now.as_ref().and_then(|now| now.what.slim(Over::Count));
        assert_eq!(slim.is_some(), kind.descriptor().bounded, "{kind:?} is bounded where something can be left out");
        let Some(what) = slim else { continue };
        assert_eq!(what.over(), Some(Over::Count), "{kind:?}");
        let now = Some(Arc::new(Observed { uid: "w".into(), version: 7, what }));
        let mut store = Store::new("own");
        store.apply(&Change { via: Via::Watch(BY_NAME), now, ..whole.clone() }, Duration::ZERO);
        let answer = Change { version: 8, ..whole };
        let over = store.admitted(&answer).now.as_ref().and_then(|now| now.what.over());
        assert_eq!(over, Some(Over::Count), "{kind:?}: the answer to a write of ours");
    }
}
