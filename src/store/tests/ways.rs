//! By which way a change comes, what it comes to, and when an object is gone.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::keys;
use crate::store::{
    Change, ConfigMapSeen, Key, Kind, Observed, SelectionId, ServiceAccountSeen, Store, Taken, Via, What,
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
