//! Who is asked next; pure.
//!
//! In: what the plan of an item asks, the ends of questions, the time. Out: the question to begin with next, and the items to plan again.
//! Promises: namespaces have turns, and inside one the hosts; a host that is slow takes places from the slow only; one that
//! fails again and again is left alone, then tried once, and one that was not asked has not failed; the same question of several items is asked once.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{Ask, AskError, AskFault, Attempt, Fact, Facts, Host, Question};
use crate::store::Key;

/// Questions under way at once. One that is waited for costs a socket and a few KiB: what is read is bounded elsewhere.
pub(super) const PLACES: usize = 256;
/// Of these, to slow hosts.
pub(super) const PATIENT: usize = 64;
/// Questions under way for one namespace.
pub(super) const SHARE: usize = 128;
/// Of these, to slow hosts.
pub(super) const PATIENT_SHARE: usize = 32;
/// Questions under way to one host.
pub(super) const PER_HOST: usize = 2;
/// A host whose last answer took longer is slow.
pub(super) const SLOW: Duration = Duration::from_secs(2);
/// So many failures in a row, and a host is left alone.
pub(super) const BREAKS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A question to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begun<Q> {
    pub(super) question: Q,
    pub(super) attempt: Attempt,
    pub(super) asked: Duration,
}

#[derive(Debug)]
struct Wanted {
    items: BTreeSet<Key>,
    /// The latest of what those items ask.
    since: Duration,
    /// When it was begun, while it is under way.
    begun: Option<Duration>,
}

#[derive(Debug)]
struct HostState<Q> {
    namespace: Arc<str>,
    /// Questions to it that somebody names; it is forgotten with the last.
    named: usize,
    waiting: VecDeque<Q>,
    running: usize,
    slow: bool,
    failures: u32,
    /// Left alone until then.
    until: Duration,
    /// Its place among the ready of its namespace: by class, then by turn.
    place: Option<(bool, u64)>,
}

#[derive(Debug, Default)]
struct Space {
    /// Hosts that may be asked, the quick and the slow, each in order of turn.
    ready: [BTreeMap<u64, Host>; 2],
    running: [usize; 2],
    served: u64,
    /// The last that was begun was of a slow host.
    patient: bool,
}

/// What is asked and known.
#[derive(Debug)]
pub(super) struct State<Q: Question> {
    pub(super) facts: Facts<Q>,
    named: HashMap<Key, Vec<Q>>,
    wanted: HashMap<Q, Wanted>,
    hosts: HashMap<Host, HostState<Q>>,
    spaces: HashMap<Arc<str>, Space>,
    /// Namespaces with a ready host, by turn.
    turns: BTreeSet<(u64, Arc<str>)>,
    /// Hosts that are left alone although something waits for them.
    broken: BTreeSet<(Duration, Host)>,
    running: [usize; 2],
    sequence: u64,
}

impl<Q> HostState<Q> {
    fn of(namespace: Arc<str>) -> Self {
        Self {
            namespace,
            named: 0,
            waiting: VecDeque::new(),
            running: 0,
            slow: false,
            failures: 0,
            until: Duration::ZERO,
            place: None,
        }
    }
}

impl<Q: Question> Default for State<Q> {
    fn default() -> Self {
        Self {
            facts: Facts::default(),
            named: HashMap::new(),
            wanted: HashMap::new(),
            hosts: HashMap::new(),
            spaces: HashMap::new(),
            turns: BTreeSet::new(),
            broken: BTreeSet::new(),
            running: [0; 2],
            sequence: 0,
        }
    }
}

impl<Q: Question> State<Q> {
    /// The plan of an item asks exactly this.
    pub(super) fn ask(&mut self, item: &Key, asks: Vec<Ask<Q>>, now: Duration) {
        let named: Vec<Q> = asks.iter().map(|ask| ask.question.clone()).collect();
        let before = if named.is_empty() {
            self.named.remove(item).unwrap_or_default()
        } else {
            self.named.insert(item.clone(), named.clone()).unwrap_or_default()
        };
        for gone in before.iter().filter(|question| !named.contains(question)) {
            self.unwanted(gone, item);
        }
        for Ask { question, since } in asks {
            let entry = self.wanted.entry(question.clone());
            let is_new = matches!(entry, std::collections::hash_map::Entry::Vacant(_));
            let wanted = entry.or_insert(Wanted { items: BTreeSet::new(), since, begun: None });
            wanted.items.insert(item.clone());
            if is_new {
                let host = self.hosts.entry(question.host()).or_insert_with(|| HostState::of(question.namespace()));
                host.named += 1;
            }
            let known = self.facts.get(&question).map(|fact| fact.asked);
            let was_due = !is_new && known.is_none_or(|asked| asked < wanted.since);
            wanted.since = wanted.since.max(since);
            let is_due = known.is_none_or(|asked| asked < wanted.since);
            if is_due && !was_due && wanted.begun.is_none() {
                self.wait(question, now);
            }
        }
    }

    /// An item no longer names a question; what nobody names is forgotten.
    fn unwanted(&mut self, question: &Q, item: &Key) {
        let Some(wanted) = self.wanted.get_mut(question) else { return };
        wanted.items.remove(item);
        if !wanted.items.is_empty() {
            return;
        }
        self.facts.0.remove(question);
        if wanted.begun.is_some() {
            // Its end forgets it.
            return;
        }
        self.forget(question);
        self.settle(&question.host(), Duration::ZERO);
    }

    /// Nobody wants to know any more.
    fn forget(&mut self, question: &Q) {
        self.wanted.remove(question);
        if let Some(host) = self.hosts.get_mut(&question.host()) {
            host.waiting.retain(|other| other != question);
            host.named = host.named.saturating_sub(1);
        }
    }

    fn wait(&mut self, question: Q, now: Duration) {
        let host = question.host();
        if let Some(state) = self.hosts.get_mut(&host) {
            state.waiting.push_back(question);
        }
        self.settle(&host, now);
    }

    /// Puts a host where it belongs: among the ready, among those left alone, or nowhere.
    fn settle(&mut self, host: &Host, now: Duration) {
        let Some(state) = self.hosts.get_mut(host) else { return };
        let left_alone = state.failures >= BREAKS;
        let most = if left_alone { 1 } else { PER_HOST };
        let asks = !state.waiting.is_empty() && state.running < most;
        let is_ready = asks && state.until <= now;
        self.broken.remove(&(state.until, host.clone()));
        if asks && !is_ready {
            self.broken.insert((state.until, host.clone()));
        }
        let namespace = state.namespace.clone();
        let (place, slow) = (state.place, state.slow);
        let is_over = state.named == 0 && state.running == 0;
        let keeps = place.is_some_and(|(class, _)| is_ready && class == slow);
        if !keeps {
            let space = self.spaces.entry(namespace.clone()).or_default();
            if let Some((class, at)) = place {
                space.ready[usize::from(class)].remove(&at);
            }
            let place = is_ready.then(|| {
                self.sequence += 1;
                space.ready[usize::from(slow)].insert(self.sequence, host.clone());
                (slow, self.sequence)
            });
            if let Some(state) = self.hosts.get_mut(host) {
                state.place = place;
            }
        }
        // Addresses come and go for as long as a term lasts.
        if is_over {
            self.hosts.remove(host);
        }
        self.turn(&namespace);
    }

    /// Keeps the turn of a namespace in step with what is ready in it.
    fn turn(&mut self, namespace: &Arc<str>) {
        let Some(space) = self.spaces.get(namespace) else { return };
        let turn = (space.served, namespace.clone());
        if space.ready.iter().any(|class| !class.is_empty()) {
            self.turns.insert(turn);
        } else {
            self.turns.remove(&turn);
            if space.running == [0, 0] {
                self.spaces.remove(namespace);
            }
        }
    }

    /// Whether a namespace may begin a question of that class.
    fn may(&self, space: &Space, slow: bool) -> bool {
        let (all, here) = (self.running[0] + self.running[1], space.running[0] + space.running[1]);
        let free = all < PLACES && here < SHARE && !space.ready[usize::from(slow)].is_empty();
        free && (!slow || (self.running[1] < PATIENT && space.running[1] < PATIENT_SHARE))
    }

    /// The next question to begin with; its end is told by [`State::ended`].
    pub(super) fn next(&mut self, now: Duration) -> Option<Begun<Q>> {
        while let Some((until, host)) = self.broken.first().filter(|(until, _)| *until <= now).cloned() {
            self.broken.remove(&(until, host.clone()));
            self.settle(&host, now);
        }
        // A namespace that has just begun one of a class begins one of the other, where it may.
        let choice = self.turns.iter().find_map(|(_, name)| {
            let space = self.spaces.get(name)?;
            let class = [!space.patient, space.patient].into_iter().find(|slow| self.may(space, *slow))?;
            Some((name.clone(), class))
        });
        let (namespace, slow) = choice?;
        let class = usize::from(slow);
        let space = self.spaces.get_mut(&namespace)?;
        self.turns.remove(&(space.served, namespace.clone()));
        let (_, host) = space.ready[class].pop_first()?;
        self.sequence += 1;
        space.served = self.sequence;
        space.patient = slow;
        space.running[class] += 1;
        self.running[class] += 1;
        let state = self.hosts.get_mut(&host)?;
        state.place = None;
        state.running += 1;
        let question = state.waiting.pop_front()?;
        if let Some(wanted) = self.wanted.get_mut(&question) {
            wanted.begun = Some(now);
        }
        self.settle(&host, now);
        self.turn(&namespace);
        let attempt = if slow { Attempt::Patient } else { Attempt::Quick };
        Some(Begun { question, attempt, asked: now })
    }

    /// A question that was begun has ended; the items for which that may change something.
    pub(super) fn ended(&mut self, begun: &Begun<Q>, value: Result<Q::Fact, AskError>, now: Duration) -> Vec<Key> {
        let Begun { question, attempt, asked } = begun;
        let host = question.host();
        let class = usize::from(*attempt == Attempt::Patient);
        self.running[class] = self.running[class].saturating_sub(1);
        let fault = value.as_ref().err().map(|error| error.fault);
        let is_retried = *attempt == Attempt::Quick && fault == Some(AskFault::Slow);
        if let Some(state) = self.hosts.get_mut(&host) {
            state.running = state.running.saturating_sub(1);
            if let Some(space) = self.spaces.get_mut(&state.namespace) {
                space.running[class] = space.running[class].saturating_sub(1);
            }
            let took_long = now.saturating_sub(*asked) > SLOW;
            state.slow = match fault {
                Some(AskFault::Slow | AskFault::TimedOut) => true,
                None => took_long,
                // What took long was not the host.
                Some(AskFault::NotAsked) => state.slow,
                Some(_) => state.slow || took_long,
            };
            // To be asked again among the slow is no failure yet.
            if !is_retried && fault != Some(AskFault::NotAsked) {
                state.failures = if fault.is_some() { state.failures.saturating_add(1) } else { 0 };
                if state.failures >= BREAKS {
                    let pause = FIRST_PAUSE.saturating_mul(1 << (state.failures - BREAKS).min(10));
                    self.broken.remove(&(state.until, host.clone()));
                    state.until = now + pause.min(LONGEST_PAUSE);
                } else {
                    state.until = Duration::ZERO;
                }
            }
        }
        let woken = self.known(question, value, (*asked, now), is_retried);
        self.settle(&host, now);
        woken
    }

    fn known(
        &mut self,
        question: &Q,
        value: Result<Q::Fact, AskError>,
        (asked, at): (Duration, Duration),
        is_retried: bool,
    ) -> Vec<Key> {
        let Some(wanted) = self.wanted.get_mut(question) else { return Vec::new() };
        wanted.begun = None;
        if wanted.items.is_empty() {
            self.forget(question);
            return Vec::new();
        }
        if is_retried {
            self.wait(question.clone(), at);
            return Vec::new();
        }
        let again = asked < wanted.since;
        let items = wanted.items.iter().cloned().collect();
        let before = self.facts.get(question).map_or(0, |fact| fact.failures);
        let failures = match value.as_ref().err().map(|error| error.fault) {
            None => 0,
            Some(AskFault::NotAsked) => before,
            Some(_) => before.saturating_add(1),
        };
        self.facts.0.insert(question.clone(), Fact { value, asked, at, failures });
        if again {
            self.wait(question.clone(), at);
        }
        items
    }

    /// When a host that is left alone may be tried again.
    pub(super) fn due(&self) -> Option<Duration> {
        self.broken.first().map(|(until, _)| *until)
    }

    /// Questions under way, and questions that wait.
    pub(super) fn load(&self) -> (usize, usize) {
        let running = self.running[0] + self.running[1];
        (running, self.hosts.values().map(|host| host.waiting.len()).sum())
    }
}
