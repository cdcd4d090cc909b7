//! The one way in: whatever this process learns of the cluster enters one [`Store`] here, in one order.
//!
//! ```text
//! watches, lists ─┐                               ┌─► snapshot: a namespace is dirty, a text is to be read
//! our own writes ─┴─► apply (write lock, store) ──┴─► controllers: items for their queue
//! ```
//!
//! In: changes, each with the epoch of the cluster's history that it belongs to. Out: the store, to be read, and calls of every [`Witness`].
//! Promises: witnesses hear of a change under the lock in which it is taken, so nobody sees it earlier or in another order; what belongs to
//! a history that is over is dropped; nothing under the lock waits, parses, or frees what a tenant has written. Lock order: the store, then
//! whatever a witness has.

use std::collections::HashSet;
use std::time::Duration;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use tokio::time::Instant;

use crate::store::{Change, Key, Kind, Reach, SelectionId, Store, Taken};

/// Who is told of each change while nothing else can happen: it takes note, and works later.
pub trait Witness: Send {
    /// The change is about to be taken; unless it `alters` what is known of the object, that stays as it is, whatever it comes to.
    fn before(&mut self, store: &Store, change: &Change, alters: bool);
    /// It was taken, and comes to that; what comes to nothing is not told.
    fn after(&mut self, store: &Store, change: &Change, taken: Taken);
    /// What may be concluded from the absence of objects is another.
    fn reach(&mut self, _store: &Store) {}
    /// So many first lists are missing.
    fn listed(&mut self, _store: &Store, _missing: usize) {}
    /// The cluster went back, and another epoch has begun.
    fn turned(&mut self, _store: &Store) {}
}

/// What a process keeps of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// Whole projections: controllers look things up.
    Projections,
    /// What admission reads of them ([`Descriptor::slim`](crate::store::Descriptor::slim)), and nothing else.
    Slim,
}

/// The store of the process, and who is told.
pub struct Keeper {
    store: RwLock<Store>,
    told: Mutex<Told>,
    keeps: Keeps,
    base: Instant,
}

/// Who is told.
#[derive(Default)]
struct Told {
    witnesses: Vec<Box<dyn Witness>>,
    /// First lists that are missing; `None`: nobody has said how many there are.
    missing: Option<usize>,
}

impl Keeper {
    /// An empty cluster.
    #[must_use]
    pub fn new(operator_namespace: &str, keeps: Keeps) -> Self {
        Self::of(Store::new(operator_namespace), keeps)
    }

    /// A cluster of which so much is known.
    #[must_use]
    pub fn of(store: Store, keeps: Keeps) -> Self {
        Self { store: RwLock::new(store), told: Mutex::default(), keeps, base: Instant::now() }
    }

    /// The time since the keeper was made: what arrival times are compared with.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.base.elapsed()
    }

    /// When that was.
    #[must_use]
    pub fn base(&self) -> Instant {
        self.base
    }

    /// One more that is told, from now on.
    pub fn join(&self, mut witness: Box<dyn Witness>) {
        let store = self.store.read();
        let mut told = self.told.lock();
        if let Some(missing) = told.missing {
            witness.listed(&store, missing);
        }
        told.witnesses.push(witness);
    }

    /// Looks something up. Whoever changes something waits meanwhile: it has to be short.
    pub fn read<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.store.read())
    }

    /// Takes note of where the settings have the list of tool servers.
    pub fn set_registry_namespace(&self, name: Option<&str>) {
        self.store.write().set_registry_namespace(name);
    }

    /// Takes note of a change that belongs to that epoch, at `now`; what it comes to.
    pub fn apply(&self, epoch: u64, change: &Change, now: Duration) -> Taken {
        let slim = (self.keeps == Keeps::Slim).then(|| change.slim());
        let mut store = self.store.write();
        let mut told = self.told.lock();
        if !told.turn(&mut store, epoch) {
            return Taken::No;
        }
        let change = store.admitted(change);
        let kept = slim.as_ref().unwrap_or(&change);
        let alters = store.alters(kept);
        for witness in &mut told.witnesses {
            witness.before(&store, &change, alters);
        }
        let (taken, replaced) = store.take(kept, now);
        if taken != Taken::No {
            for witness in &mut told.witnesses {
                witness.after(&store, &change, taken);
            }
        }
        drop((told, store));
        drop(replaced);
        taken
    }

    /// What a complete list of a selection lacks, which belongs to that epoch and has that version ([`Store::missing`]). It is still there, until
    /// each is given to [`Keeper::apply`]; an answer that is no newer than the list brings back none of it ([`Store::listed`]).
    pub fn missing(
        &self,
        of: (Kind, SelectionId, Option<&str>),
        epoch: u64,
        (listed, version): (&HashSet<Key>, u64),
    ) -> Vec<Change> {
        self.turn(epoch);
        let mut store = self.store.write();
        if epoch < store.epoch() {
            return Vec::new();
        }
        store.listed(of, version);
        // Who looks something up does not wait while all of a kind is gone through.
        RwLockWriteGuard::downgrade(store).missing(of, (listed, version))
    }

    /// An epoch has begun, as a list says: whatever belongs to an earlier one is late from now on.
    pub fn turn(&self, epoch: u64) {
        if self.store.read().epoch() < epoch {
            let mut store = self.store.write();
            self.told.lock().turn(&mut store, epoch);
        }
    }

    /// Takes note of whether all of a kind is known.
    pub fn reach(&self, kind: Kind, reach: Reach) {
        let mut store = self.store.write();
        if store.set_reach(kind, reach) {
            for witness in &mut self.told.lock().witnesses {
                witness.reach(&store);
            }
        }
    }

    /// One more first list is complete, and so many are missing.
    pub fn listed(&self, missing: usize) {
        let store = self.store.read();
        let mut told = self.told.lock();
        // Two that end at the same time may come in either order.
        let missing = told.missing.map_or(missing, |known| known.min(missing));
        told.missing = Some(missing);
        for witness in &mut told.witnesses {
            witness.listed(&store, missing);
        }
    }
}

impl Told {
    /// Begins a later epoch; whether that one is the present one now.
    fn turn(&mut self, store: &mut Store, epoch: u64) -> bool {
        if epoch > store.epoch() {
            store.turn_to(epoch);
            for witness in &mut self.witnesses {
                witness.turned(store);
            }
        }
        epoch == store.epoch()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::{NamespaceSeen, Observed, ServiceAccountSeen, Via, What};

    const SELECTION: SelectionId = SelectionId::new(0);

    /// Writes down what it is told, and how many namespaces the store has then.
    struct Notes(Arc<Mutex<Vec<String>>>);

    impl Witness for Notes {
        fn before(&mut self, store: &Store, change: &Change, alters: bool) {
            let how = if alters { "before" } else { "before (same)" };
            self.0.lock().push(format!("{how} {}: {}", change.key.name, store.namespaces().count()));
        }

        fn after(&mut self, store: &Store, change: &Change, taken: Taken) {
            self.0.lock().push(format!("{taken:?} {}: {}", change.key.name, store.namespaces().count()));
        }

        fn listed(&mut self, _: &Store, missing: usize) {
            self.0.lock().push(format!("missing {missing}"));
        }

        fn turned(&mut self, store: &Store) {
            self.0.lock().push(format!("epoch {}", store.epoch()));
        }
    }

    fn seen(name: &str, version: u64, via: Via) -> Change {
        let what = What::Namespace(NamespaceSeen::default());
        let now = Some(Arc::new(Observed { uid: "u".into(), version, what }));
        Change { kind: Kind::Namespace, key: Key::new("", name), version, via, now }
    }

    fn trial(keeps: Keeps) -> (Keeper, Arc<Mutex<Vec<String>>>) {
        let (keeper, notes) = (Keeper::new("own", keeps), Arc::<Mutex<Vec<String>>>::default());
        keeper.join(Box::new(Notes(notes.clone())));
        (keeper, notes)
    }

    #[test]
    fn whoever_follows_is_told_before_and_after_and_not_of_what_comes_to_nothing() {
        let (keeper, notes) = trial(Keeps::Projections);
        assert_eq!(keeper.apply(0, &seen("a", 5, Via::Watch(SELECTION)), Duration::ZERO), Taken::New);
        assert_eq!(keeper.apply(0, &seen("a", 4, Via::Watch(SELECTION)), Duration::ZERO), Taken::No);
        assert_eq!(keeper.apply(0, &seen("a", 6, Via::Watch(SELECTION)), Duration::ZERO), Taken::Same);
        assert_eq!(
            std::mem::take(&mut *notes.lock()),
            ["before a: 0", "New a: 1", "before (same) a: 1", "before (same) a: 1", "Same a: 1"]
        );
        keeper.listed(1);
        keeper.listed(0);
        let late = Arc::<Mutex<Vec<String>>>::default();
        keeper.join(Box::new(Notes(late.clone())));
        assert_eq!(
            (&notes.lock()[..], &late.lock()[..]),
            (&["missing 1".to_owned(), "missing 0".to_owned()][..], &["missing 0".to_owned()][..])
        );
    }

    /// A watch that has not noticed yet goes on telling of the history before.
    #[test]
    fn mend_03_what_belongs_to_a_history_that_is_over_is_dropped() {
        let (keeper, notes) = trial(Keeps::Projections);
        keeper.apply(0, &seen("a", 900, Via::Watch(SELECTION)), Duration::ZERO);
        keeper.apply(0, &seen("b", 901, Via::Watch(SELECTION)), Duration::ZERO);
        notes.lock().clear();
        keeper.turn(1);
        keeper.turn(1);
        assert_eq!(keeper.apply(0, &seen("a", 950, Via::Watch(SELECTION)), Duration::ZERO), Taken::No);
        assert_eq!(keeper.apply(1, &seen("a", 7, Via::List(SELECTION)), Duration::ZERO), Taken::Same);
        assert_eq!(*notes.lock(), ["epoch 1", "before (same) a: 2", "Same a: 2"]);
        let listed = HashSet::from([Key::new("", "a")]);
        let of = (Kind::Namespace, SELECTION, None);
        assert!(keeper.missing(of, 0, (&listed, 990)).is_empty(), "a list of the history before");
        let missing = keeper.missing(of, 1, (&listed, 8));
        assert_eq!(missing.iter().map(|one| &*one.key.name).collect::<Vec<_>>(), ["b"]);
    }

    /// We wrote it, somebody deleted it, and the watch fell into a list meanwhile: no event of its end ever comes.
    #[test]
    fn an_answer_that_is_as_old_as_a_list_brings_nothing_back_and_one_that_comes_between_stays() {
        let (keeper, _) = trial(Keeps::Projections);
        let apply = |change: &Change| keeper.apply(0, change, Duration::ZERO);
        apply(&seen("a", 5, Via::Watch(SELECTION)));
        apply(&seen("b", 5, Via::Watch(SELECTION)));
        let gone = keeper.missing((Kind::Namespace, SELECTION, None), 0, (&HashSet::new(), 30));
        assert_eq!(
            apply(&seen("a", 9, Via::Answer)),
            Taken::No,
            "it was deleted before the list, which is about to say so"
        );
        assert_eq!(apply(&seen("b", 31, Via::Answer)), Taken::Same, "made again since");
        assert_eq!(gone.iter().map(apply).collect::<Vec<_>>(), [Taken::New, Taken::No]);
        assert_eq!(apply(&seen("a", 9, Via::Answer)), Taken::No, "gone");
        assert_eq!(apply(&seen("c", 30, Via::Answer)), Taken::No, "made and gone, and never heard of");
        assert_eq!(apply(&seen("b", 31, Via::Watch(SELECTION))), Taken::No, "known");
        let there = |name: &str| keeper.read(|store| store.namespace(name).is_some());
        assert_eq!([there("a"), there("b"), there("c")], [false, true, false]);
        keeper.turn(1);
        assert_eq!(keeper.apply(1, &seen("c", 7, Via::Answer), Duration::ZERO), Taken::New, "of another history");
    }

    #[test]
    fn a_process_without_controllers_keeps_what_admission_reads_and_passes_everything_on() {
        let (keeper, notes) = trial(Keeps::Slim);
        let account = |version: u64, ours: bool, for_builds: bool| {
            let what = What::ServiceAccount(ServiceAccountSeen { ours, for_builds, ..ServiceAccountSeen::default() });
            let now = Some(Arc::new(Observed { uid: "u".into(), version, what }));
            let key = Key::new("team", "a");
            Change { kind: Kind::ServiceAccount, key, version, via: Via::Watch(SELECTION), now }
        };
        let table = [
            (5, false, false, Taken::New),
            (6, false, true, Taken::Same),
            (6, false, true, Taken::No),
            (4, true, true, Taken::No),
            (7, true, true, Taken::New),
        ];
        for (version, ours, for_builds, taken) in table {
            let told = keeper.apply(0, &account(version, ours, for_builds), Duration::ZERO);
            assert_eq!(told, taken, "{version}");
        }
        assert_eq!(notes.lock().iter().filter(|note| !note.starts_with("before")).count(), 3);
        assert!(keeper.read(|store| store.service_account("team", "a").is_none()), "nothing else of it");
        assert!(keeper.read(|store| store.delivers((Kind::ServiceAccount, SELECTION, None))));
        keeper.apply(0, &seen("a", 5, Via::Watch(SELECTION)), Duration::ZERO);
        assert!(keeper.read(|store| store.namespace("a").is_some()), "of a namespace everything is read");
    }
}
