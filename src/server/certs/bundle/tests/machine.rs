//! Three publishers and one API server in one thread, driven by a seed: events come late, answers are lost, the lead moves, somebody overwrites
//! bundles, configurations go and come again. Whatever happened, in the end every entry holds what is wanted, nobody has taken away what
//! somebody else put there, and nothing is written any more.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;

use super::super::machine::{Effect, Input, Machine, Now};
use super::super::objects::Kind;
use super::super::publication::Publication;
use super::*;
use crate::server::certs::wanted::Wanted;

/// Length of a tick.
const TICK: Duration = Duration::from_millis(100);
/// Ticks in which things happen, and those until all must be well: a fight is answered a minute after its last repair.
const UNREST: u64 = 3_000;
const REST: u64 = 1_500;
/// What is wanted, and what somebody else puts in.
const WANTED: [u8; 2] = [1, 2];
const FOREIGN: u8 = 9;

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

#[derive(Default)]
struct Replica {
    machine: Machine,
    /// What arrives, and at which tick.
    inbox: VecDeque<(u64, Input)>,
    /// Newest version that is known of each kind, and the one that was when its last patch was sent.
    known: [u64; 2],
    sent: [u64; 2],
    wake: Option<Duration>,
    publication: Publication,
}

struct Cluster {
    chance: Chance,
    tick: u64,
    version: u64,
    stored: [Option<Configuration>; 2],
    replicas: Vec<Replica>,
    leader: usize,
    trace: Vec<String>,
    sent: Vec<u64>,
}

fn numbered(configuration: &Configuration) -> u64 {
    configuration.resource_version.parse().unwrap()
}

fn version(configuration: &Option<Configuration>) -> u64 {
    configuration.as_ref().map_or(0, numbered)
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let replica = |_| Replica { machine: Machine::new(true), ..Replica::default() };
        let replicas: Vec<Replica> = (0..3).map(replica).collect();
        let mut cluster = Self {
            chance: Chance(seed),
            tick: 0,
            version: 1,
            stored: [None, None],
            replicas,
            leader: 0,
            trace: Vec::new(),
            sent: Vec::new(),
        };
        for kind in Kind::ALL {
            cluster.create(kind);
        }
        let roots = WANTED.map(good).to_vec();
        let serving = roots.iter().map(|certificate| certificate.root.fingerprint).collect();
        let wanted = Wanted { roots, serving: Some(serving) };
        for at in 0..3 {
            cluster.input(at, Input::Wanted(wanted.clone()));
        }
        cluster
    }

    fn create(&mut self, kind: Kind) {
        let entries: &[(&str, &[u8])] = if kind == Kind::Mutating { &[("a", &[]), ("b", &[1])] } else { &[("c", &[])] };
        let mut made = configuration(entries);
        made.uid = format!("uid-{}", self.version);
        self.store(kind, Some(made));
    }

    /// What is stored now, and every replica will hear of it, in order.
    fn store(&mut self, kind: Kind, configuration: Option<Configuration>) {
        self.version += 1;
        let stored = configuration.map(|one| Configuration { resource_version: self.version.to_string(), ..one });
        self.stored[kind as usize] = stored.clone();
        for replica in &mut self.replicas {
            let last = replica.inbox.iter().filter(|(_, input)| matches!(input, Input::Seen(..))).map(|(due, _)| *due);
            let due = last.max().unwrap_or(0).max(self.tick + self.chance.below(10));
            replica.inbox.push_back((due, Input::Seen(kind, stored.clone())));
        }
    }

    /// One step of a replica; what it sends reaches the server at once, and its answer comes later, or never.
    fn input(&mut self, at: usize, input: Input) {
        let leads = at == self.leader;
        let wall = NOW + i64::try_from(self.tick * 100).unwrap();
        let now = Now { at: TICK * u32::try_from(self.tick).unwrap(), wall, leads };
        let replica = &mut self.replicas[at];
        replica.wake = None;
        for effect in replica.machine.step(input, now) {
            self.trace.push(format!("{} {at} {effect:?}", self.tick));
            match effect {
                Effect::Send(kind, patch) => {
                    assert!(leads, "who does not lead sends nothing");
                    self.sent.push(self.tick);
                    self.replicas[at].sent[kind as usize] = self.replicas[at].known[kind as usize];
                    self.patched(at, kind, &patch);
                }
                Effect::Wake(moment) => self.replicas[at].wake = Some(moment),
                Effect::Publication(publication) => self.replicas[at].publication = publication,
                _ => {}
            }
        }
    }

    fn patched(&mut self, at: usize, kind: Kind, patch: &json_patch::Patch) {
        let PatchOperation::Test(test) = &patch.0[0] else { panic!("{patch:?}") };
        let tested: u64 = test.value.as_str().unwrap().parse().unwrap();
        let now = self.stored[kind as usize].clone();
        let answer = if tested == version(&now) {
            let mut patched = now.unwrap();
            for (path, ids) in writes(&Step::Send(patch.clone())) {
                let index: usize = path.split('/').nth(2).unwrap().parse().unwrap();
                let before: BTreeSet<u8> = patched.entries[index].roots.iter().map(|held| held.der[0]).collect();
                assert!(before.iter().all(|held| ids.contains(held)), "{before:?} became {ids:?}");
                patched.entries[index].roots = ids.into_iter().map(good).collect();
            }
            self.store(kind, Some(patched));
            Input::Written(kind, self.stored[kind as usize].clone().unwrap())
        } else {
            Input::Changed(kind, Some(now))
        };
        let lost = self.chance.one_in(5);
        let answer = if lost { Input::Failed(kind, "no answer within 10 seconds".to_owned()) } else { answer };
        let due = self.tick + 1 + self.chance.below(8);
        self.replicas[at].inbox.push_back((due, answer));
    }

    /// What an input is worth once it arrives: nothing older than what is known counts, nor an answer that there is none once anything has been
    /// learned since the question (`cluster::watch::Known`).
    fn delivered(&mut self, at: usize, input: Input) {
        let Replica { known, sent, .. } = &mut self.replicas[at];
        let current = |kind: Kind, told: u64, known: &mut [u64; 2]| {
            let current = told == 0 || told >= known[kind as usize];
            known[kind as usize] = known[kind as usize].max(told);
            current
        };
        let input = match input {
            Input::Seen(kind, seen) if !current(kind, version(&seen), known) => return,
            Input::Changed(kind, Some(read)) => {
                let is_late = read.is_none() && known[kind as usize] != sent[kind as usize];
                let is_current = !is_late && current(kind, version(&read), known);
                Input::Changed(kind, is_current.then_some(read))
            }
            Input::Written(kind, written) => {
                let is_current = current(kind, numbered(&written), known);
                if is_current { Input::Written(kind, written) } else { Input::Changed(kind, None) }
            }
            other => other,
        };
        self.input(at, input);
    }

    fn unrest(&mut self) {
        let kind = if self.chance.one_in(2) { Kind::Mutating } else { Kind::Validating };
        let stored = self.stored[kind as usize].clone();
        match (self.chance.below(120), stored) {
            (0, _) => {
                self.leader = usize::try_from(self.chance.below(3)).unwrap();
                for at in 0..3 {
                    self.input(at, Input::Turned);
                }
            }
            (1, Some(_)) => self.store(kind, None),
            (2..=9, None) => self.create(kind),
            (2, Some(mut stored)) => {
                let entry = usize::try_from(self.chance.below(stored.entries.len() as u64)).unwrap();
                stored.entries[entry].roots = vec![good(FOREIGN)];
                self.store(kind, Some(stored));
            }
            _ => {}
        }
    }

    fn tick(&mut self, unrest: bool) {
        self.tick += 1;
        if unrest {
            self.unrest();
        }
        for at in 0..3 {
            let mut later = VecDeque::new();
            let arrived: Vec<(u64, Input)> = self.replicas[at].inbox.drain(..).collect();
            for (due, input) in arrived {
                if due <= self.tick {
                    self.delivered(at, input);
                } else {
                    later.push_back((due, input));
                }
            }
            // What came meanwhile is later than what was left.
            later.append(&mut self.replicas[at].inbox);
            self.replicas[at].inbox = later;
            if self.replicas[at].wake.is_some_and(|wake| wake <= TICK * u32::try_from(self.tick).unwrap()) {
                self.input(at, Input::Time);
            }
        }
    }

    fn run(seed: u64) -> Self {
        let mut cluster = Self::new(seed);
        for _ in 0..UNREST {
            cluster.tick(true);
        }
        for kind in Kind::ALL {
            if cluster.stored[kind as usize].is_none() {
                cluster.create(kind);
            }
        }
        for _ in 0..REST {
            cluster.tick(false);
        }
        cluster
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_happens_every_entry_is_complete_in_the_end(seed in any::<u64>()) {
        let cluster = Cluster::run(seed);
        for stored in &cluster.stored {
            for entry in &stored.as_ref().unwrap().entries {
                let held: BTreeSet<u8> = entry.roots.iter().map(|certificate| certificate.der[0]).collect();
                prop_assert!(WANTED.iter().all(|id| held.contains(id)), "{}: {:?}", entry.name, held);
            }
        }
        for replica in &cluster.replicas {
            prop_assert_eq!(&replica.publication, &Publication::Published);
        }
        let last = *cluster.sent.last().unwrap();
        prop_assert!(last < UNREST + REST - 300, "still written at {}", last);
        let again = Cluster::run(seed);
        prop_assert_eq!(cluster.trace, again.trace, "one seed, one history");
    }
}

fn now(millis: u64) -> Now {
    Now { at: Duration::from_millis(millis), wall: NOW, leads: true }
}

fn sends(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Send(..)))
}

/// What a source wants that serves a certificate of this root.
fn wants(id: u8) -> Wanted {
    Wanted { roots: vec![good(id)], serving: Some(vec![good(id).root.fingerprint]) }
}

/// What is there of the kind.
fn seen(kind: Kind, entries: &[(&str, &[u8])]) -> Input {
    Input::Seen(kind, Some(configuration(entries)))
}

/// A publisher that leads and has just sent a patch of the one configuration that is there.
fn sending() -> Machine {
    let mut machine = Machine::new(false);
    machine.step(Input::Wanted(wants(1)), now(0));
    machine.step(Input::Seen(Kind::Validating, None), now(0));
    let first = machine.step(seen(Kind::Mutating, &[("a", &[])]), now(0));
    assert!(sends(&first), "{first:?}");
    machine
}

#[test]
fn a_patch_that_is_refused_is_sent_again_after_pauses_that_double_and_people_are_told_once() {
    let mut machine = sending();
    let (mut at, mut pauses, mut told) = (0, Vec::new(), 0);
    for _ in 0..12 {
        let effects = machine.step(Input::Failed(Kind::Mutating, "forbidden".to_owned()), now(at));
        told += effects.iter().filter(|effect| matches!(effect, Effect::StillNotPublished(..))).count();
        let Some(Effect::Wake(wake)) = effects.last() else { panic!("{effects:?}") };
        let wake = u64::try_from(wake.as_millis()).unwrap();
        assert!(!sends(&machine.step(Input::Time, now(wake - 1))));
        let effects = machine.step(Input::Time, now(wake));
        assert!(sends(&effects), "{effects:?}");
        pauses.push(wake - at);
        at = wake;
    }
    assert_eq!(pauses[..9], [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000]);
    assert_eq!(told, 1);
    let fenced = Now { leads: false, ..now(at) };
    assert_eq!(machine.step(Input::Failed(Kind::Mutating, "fenced".to_owned()), fenced), [], "another's turn it is");
}

#[test]
fn a_patch_that_comes_too_late_again_and_again_waits_twice_as_long_each_time_up_to_seconds() {
    let mut machine = sending();
    let (mut at, mut pauses) = (0, Vec::new());
    for version in 8..16 {
        let changed = Configuration { resource_version: version.to_string(), ..configuration(&[("a", &[])]) };
        let effects = machine.step(Input::Changed(Kind::Mutating, Some(Some(changed))), now(at));
        let Some(Effect::Wake(wake)) = effects.last() else { panic!("{effects:?}") };
        let wake = u64::try_from(wake.as_millis()).unwrap();
        assert!(!sends(&machine.step(Input::Time, now(wake - 1))));
        assert!(sends(&machine.step(Input::Time, now(wake))));
        pauses.push(wake - at);
        at = wake;
    }
    assert_eq!(pauses, [200, 400, 800, 1_600, 3_200, 3_200, 3_200, 3_200]);
    // One that is stored ends it.
    machine.step(Input::Written(Kind::Mutating, configuration(&[("a", &[1])])), now(at));
    assert!(sends(&machine.step(seen(Kind::Mutating, &[("a", &[])]), now(at))));
    let effects = machine.step(Input::Changed(Kind::Mutating, None), now(at));
    assert_eq!(effects.last(), Some(&Effect::Wake(Duration::from_millis(at + 200))));
}

/// The kind that a patch is sent of.
fn sent(effects: &[Effect]) -> Option<Kind> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send(kind, _) => Some(*kind),
        _ => None,
    })
}

fn refused(kind: Kind) -> Input {
    Input::Failed(kind, "an admission policy refuses".to_owned())
}

/// A publisher that leads and has just sent a patch of one of two configurations that lack what is wanted.
fn sending_one_of_two() -> Machine {
    let mut machine = Machine::new(false);
    machine.step(Input::Wanted(wants(1)), now(0));
    let first = machine.step(seen(Kind::Mutating, &[("a", &[])]), now(0));
    assert_eq!(sent(&first), Some(Kind::Mutating), "{first:?}");
    let second = machine.step(seen(Kind::Validating, &[("b", &[])]), now(0));
    assert_eq!(sent(&second), None, "one at a time: {second:?}");
    machine
}

#[test]
fn a_configuration_that_is_refused_does_not_hold_the_other_up_and_each_has_pauses_of_its_own() {
    let mut machine = sending_one_of_two();
    let wake = |millis: u64| Some(Effect::Wake(Duration::from_millis(millis)));
    let effects = machine.step(refused(Kind::Mutating), now(0));
    assert_eq!(sent(&effects), Some(Kind::Validating), "at once: {effects:?}");
    let effects = machine.step(refused(Kind::Validating), now(100));
    assert_eq!(effects.last().cloned(), wake(200), "the first pause that ends");
    assert_eq!(sent(&machine.step(Input::Time, now(199))), None);
    assert_eq!(sent(&machine.step(Input::Time, now(200))), Some(Kind::Mutating));
    let effects = machine.step(refused(Kind::Mutating), now(200));
    assert_eq!(effects.last().cloned(), wake(300), "that pause is as long as after one failure");
    assert_eq!(sent(&machine.step(Input::Time, now(300))), Some(Kind::Validating));
    let effects = machine.step(Input::Written(Kind::Validating, configuration(&[("b", &[1])])), now(300));
    assert_eq!(sent(&effects), None, "a patch that is stored ends no pause of the other: {effects:?}");
    assert_eq!(effects.last().cloned(), wake(600));
    assert_eq!(sent(&machine.step(Input::Time, now(600))), Some(Kind::Mutating));
    let effects = machine.step(refused(Kind::Mutating), now(600));
    assert_eq!(effects.last().cloned(), wake(1_400), "it has doubled each time");
    assert_eq!(sent(&machine.step(Input::Time, now(1_400))), Some(Kind::Mutating));
    let effects = machine.step(Input::Written(Kind::Mutating, configuration(&[("a", &[1])])), now(1_400));
    assert!(effects.contains(&Effect::Publication(Publication::Published)), "{effects:?}");
    assert!(!sends(&effects) && !effects.iter().any(|effect| matches!(effect, Effect::Wake(_))), "{effects:?}");
}

#[test]
fn a_patch_that_comes_too_late_or_a_turn_of_the_lead_concerns_each_configuration_alone() {
    let mut machine = sending_one_of_two();
    let effects = machine.step(Input::Changed(Kind::Mutating, None), now(0));
    assert_eq!(sent(&effects), Some(Kind::Validating), "at once: {effects:?}");
    let effects = machine.step(refused(Kind::Validating), now(0));
    assert_eq!(effects.last(), Some(&Effect::Wake(Duration::from_millis(200))), "{effects:?}");
    // Who leads anew begins at once, with both.
    assert_eq!(sent(&machine.step(Input::Turned, now(1))), Some(Kind::Mutating));
    let effects = machine.step(Input::Written(Kind::Mutating, configuration(&[("a", &[1])])), now(1));
    assert_eq!(sent(&effects), Some(Kind::Validating), "{effects:?}");
}

#[test]
fn people_are_told_once_of_each_configuration_that_is_refused_for_a_while() {
    let mut machine = sending_one_of_two();
    let (mut at, mut told) = (0, Vec::new());
    let mut effects = machine.step(refused(Kind::Mutating), now(at));
    while at < 60_000 {
        told.extend(effects.iter().filter_map(|effect| match effect {
            Effect::StillNotPublished(kind, ..) => Some(*kind),
            _ => None,
        }));
        effects = match (sent(&effects), effects.last()) {
            (Some(kind), _) => machine.step(refused(kind), now(at)),
            (None, Some(Effect::Wake(wake))) => {
                at = u64::try_from(wake.as_millis()).unwrap();
                machine.step(Input::Time, now(at))
            }
            _ => panic!("{effects:?}"),
        };
    }
    assert_eq!(told, Kind::ALL);
}

#[test]
fn a_bundle_that_somebody_else_completes_ends_what_failed_and_a_later_failure_is_told_again() {
    let mut machine = sending();
    let (mut at, mut told) = (0, 0);
    let mut fails = |machine: &mut Machine, at: &mut u64| {
        let effects = machine.step(Input::Failed(Kind::Mutating, "refused".to_owned()), now(*at));
        told += effects.iter().filter(|effect| matches!(effect, Effect::StillNotPublished(..))).count();
        let Some(Effect::Wake(wake)) = effects.last() else { panic!("{effects:?}") };
        *at = u64::try_from(wake.as_millis()).unwrap();
        told
    };
    while fails(&mut machine, &mut at) == 0 {
        assert!(sends(&machine.step(Input::Time, now(at))));
    }
    // An administrator writes it by hand while the pause lasts; then an installer adds an entry.
    machine.step(seen(Kind::Mutating, &[("a", &[1])]), now(at - 1));
    let effects = machine.step(seen(Kind::Mutating, &[("a", &[1]), ("b", &[])]), now(at - 1));
    assert!(sends(&effects), "at once: {effects:?}");
    at -= 1;
    while fails(&mut machine, &mut at) == 1 {
        assert!(sends(&machine.step(Input::Time, now(at))));
        assert!(at < 60_000, "never told");
    }
}

#[test]
fn where_the_authority_of_what_is_served_is_not_known_others_publish() {
    let by_others = Wanted { roots: Vec::new(), serving: Some(Vec::new()) };
    let mut machine = Machine::new(true);
    assert!(machine.step(Input::Wanted(by_others.clone()), now(0)).iter().all(|effect| !is_publication(effect)));
    assert!(machine.step(seen(Kind::Mutating, &[("a", &[9])]), now(0)).iter().all(|effect| !is_publication(effect)));
    let effects = machine.step(seen(Kind::Validating, &[("b", &[])]), now(0));
    assert!(effects.contains(&Effect::Publication(Publication::ByOthers)), "both are read: {effects:?}");
    assert!(effects.contains(&Effect::State { trusted: true, contested: 0 }), "{effects:?}");
    assert!(!sends(&effects), "{effects:?}");

    // Before anything is served, nothing is known; and an authority that comes later is published.
    let effects = machine.step(Input::Wanted(Wanted::default()), now(0));
    assert!(effects.contains(&Effect::Publication(Publication::Unknown)), "{effects:?}");
    assert!(effects.contains(&Effect::State { trusted: false, contested: 0 }), "{effects:?}");
    let effects = machine.step(Input::Wanted(wants(1)), now(0));
    let lacks = Publication::Incomplete { kind: Kind::Mutating.words(), entry: "a".to_owned() };
    assert!(effects.contains(&Effect::Publication(lacks)) && sends(&effects), "{effects:?}");
    assert!(Publication::ByOthers.is_settled() && Publication::Published.is_settled());
    assert!(!Publication::Unknown.is_settled() && !Publication::NoConfiguration.is_settled());
}

fn is_publication(effect: &Effect) -> bool {
    matches!(effect, Effect::Publication(_))
}

#[test]
fn c6_an_annotation_for_cert_managers_injector_counts_only_where_that_is_agreed() {
    let annotated =
        |roots: &[u8]| Configuration { published_by_other: true, ..configuration(&[("a", roots), ("b", &[1])]) };
    let first = |by_agreement: bool| {
        let mut machine = Machine::new(by_agreement);
        machine.step(Input::Wanted(wants(1)), now(0));
        machine.step(Input::Seen(Kind::Validating, None), now(0));
        let effects = machine.step(Input::Seen(Kind::Mutating, Some(annotated(&[]))), now(0));
        (machine, effects)
    };
    let (_, effects) = first(true);
    assert!(!sends(&effects), "left to the injector: {effects:?}");

    // Our own authority is put in, put back at once, and then once a minute; it is told whose doing that is.
    let (mut machine, effects) = first(false);
    assert!(sends(&effects), "{effects:?}");
    machine.step(Input::Written(Kind::Mutating, annotated(&[1])), now(0));
    let effects = machine.step(Input::Seen(Kind::Mutating, Some(annotated(&[9]))), now(0));
    let lost = effects.iter().find_map(|effect| match effect {
        Effect::Overwritten(_, _, lost) => Some(lost),
        _ => None,
    });
    assert!(lost.is_some_and(|lost| lost.injected && lost.entry == "a"), "{effects:?}");
    assert!(sends(&effects), "{effects:?}");
    machine.step(Input::Written(Kind::Mutating, annotated(&[9, 1])), now(0));
    let effects = machine.step(Input::Seen(Kind::Mutating, Some(annotated(&[9]))), now(0));
    assert!(!sends(&effects) && matches!(effects.last(), Some(Effect::Wake(_))), "{effects:?}");
}
