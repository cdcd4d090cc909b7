//! Three replicas and an API server, in every order that chance finds.
//!
//! The replicas run the real plans of the authority and of the publisher on views that are as old as chance wants;
//! writes land later than they were decided, and land as the real ones do: creation if absent, replacement if the
//! resourceVersion is still the one seen, patches by the real JSON patch library. After every single step: whatever a
//! ready replica serves, and has not expired, is trusted by every bundle.

use std::collections::{BTreeMap, BTreeSet};

use json_patch::Patch;
use proptest::prelude::*;
use proptest::sample::Index;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use super::Fake;
use crate::runtime::certs::authority::plan::{
    self, Authority as _, Content, Facts, Flaw, Generations, Leaf, Lifetimes, Secret, SecretStep,
};
use crate::runtime::certs::bundle::plan::{Configuration, Entry, Memory, Step, step};
use crate::runtime::certs::root::{Fingerprint, Millis, RootCertificate};
use crate::runtime::certs::trust::{Observed, Trust};

const REPLICAS: usize = 3;
const ENTRIES: [&str; 2] = ["inject.kagenti.io", "explain.kagenti.io"];

fn lifetimes() -> Lifetimes {
    Lifetimes { leaf: 3_000, authority: 15_000, backdate: 1_000, settle: 500 }
}

/// What the API server holds.
struct World {
    now: Millis,
    version: u64,
    secret: Option<(u64, Content<Fake>)>,
    configurations: [Value; 2],
    /// The same, as the real code reads them.
    read: [Configuration; 2],
    /// Every authority ever made, by its fake DER.
    made: BTreeMap<Vec<u8>, Fake>,
    writes: usize,
}

impl World {
    fn new() -> World {
        let mut world = World {
            now: 1_000_000,
            version: 1,
            secret: None,
            configurations: [Value::Null, Value::Null],
            read: <[Configuration; 2]>::default(),
            made: BTreeMap::new(),
            writes: 0,
        };
        world.recreate(0);
        world.recreate(1);
        world
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn found(&mut self) -> Fake {
        let id = u32::try_from(self.made.len()).unwrap();
        let fake = Fake::issued(id, self.now, &lifetimes());
        self.made.insert(id.to_be_bytes().to_vec(), fake);
        fake
    }

    fn certificate(&self, fake: Fake) -> RootCertificate {
        let (der, _) = self.made.iter().find(|(_, made)| **made == fake).unwrap();
        RootCertificate { root: fake.root(), der: CertificateDer::from(der.clone()) }
    }

    /// An installer deletes the configuration and applies its manifest again.
    fn recreate(&mut self, kind: usize) {
        let version = self.next_version();
        let webhooks: Vec<Value> = ENTRIES.iter().map(|name| json!({"name": name, "clientConfig": {}})).collect();
        self.configurations[kind] = json!({
            "metadata": {"uid": format!("{kind}-{version}"), "resourceVersion": version.to_string()},
            "webhooks": webhooks,
        });
        self.read[kind] = self.configuration(kind);
    }

    /// What the real code reads out of a configuration.
    fn configuration(&self, kind: usize) -> Configuration {
        let object = &self.configurations[kind];
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let hooks = object["webhooks"].as_array().unwrap().iter().enumerate();
        Configuration {
            uid: text(&object["metadata"]["uid"]),
            resource_version: text(&object["metadata"]["resourceVersion"]),
            entries: hooks
                .map(|(index, hook)| Entry { index, name: text(&hook["name"]), roots: self.roots(hook), writer: None })
                .collect(),
            published_by_other: false,
        }
    }

    fn roots(&self, hook: &Value) -> Vec<RootCertificate> {
        use base64::Engine as _;
        let Some(bundle) = hook["clientConfig"]["caBundle"].as_str() else { return Vec::new() };
        let pem = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap();
        CertificateDer::pem_slice_iter(&pem)
            .map(|der| der.unwrap())
            .map(|der| RootCertificate { root: self.made[der.as_ref()].root(), der })
            .collect()
    }

    fn patch(&mut self, kind: usize, patch: &Patch) {
        let mut changed = self.configurations[kind].clone();
        if json_patch::patch(&mut changed, patch).is_ok() {
            changed["metadata"]["resourceVersion"] = json!(self.next_version().to_string());
            self.configurations[kind] = changed;
            self.read[kind] = self.configuration(kind);
            self.writes += 1;
        }
    }

    /// Creation or replacement; who comes second changes nothing.
    fn write_secret(&mut self, expected: Option<u64>, generations: Generations<Fake>) {
        if self.secret.as_ref().map(|(version, _)| *version) != expected {
            return;
        }
        let Generations { current, next, previous } = generations;
        let content = Content { ours: true, current: Ok(current), next: next.map(Ok), previous };
        self.secret = Some((self.next_version(), content));
        self.writes += 1;
    }

    fn edit_secret(&mut self, edit: impl FnOnce(&mut Content<Fake>)) {
        let version = self.next_version();
        if let Some((known, content)) = &mut self.secret {
            *known = version;
            edit(content);
        }
    }
}

/// One replica: the loops of the real sources, without their I/O.
struct Replica {
    secret: Secret<Fake>,
    secret_version: Option<u64>,
    configurations: [Option<Configuration>; 2],
    trust: Trust,
    held: Option<Generations<Fake>>,
    leaf: Option<Leaf<Fake>>,
    memory: [Memory; 2],
    writing: Option<(Option<u64>, Generations<Fake>)>,
    patching: Option<(usize, Patch)>,
    /// It has seen that every bundle trusts what it serves: from then on it gets calls.
    ready: bool,
}

impl Replica {
    fn new() -> Replica {
        Replica {
            secret: Secret::Unread,
            secret_version: None,
            configurations: [None, None],
            trust: Trust::default(),
            held: None,
            leaf: None,
            memory: <[Memory; 2]>::default(),
            writing: None,
            patching: None,
            ready: false,
        }
    }

    fn see_secret(&mut self, world: &World) {
        match &world.secret {
            None => (self.secret, self.secret_version) = (Secret::Absent, None),
            Some((version, content)) => {
                self.held = content.good().or(self.held.take());
                (self.secret, self.secret_version) = (Secret::Present(content.clone()), Some(*version));
            }
        }
    }

    fn observed(&self) -> Observed {
        let entries = self.configurations.iter().flatten().flat_map(|configuration| &configuration.entries);
        let roots = |entry: &Entry| entry.roots.iter().map(|certificate| certificate.root.fingerprint).collect();
        Observed { synced: self.configurations.iter().all(Option::is_some), entries: entries.map(roots).collect() }
    }

    fn see_configuration(&mut self, world: &World, kind: usize) {
        self.configurations[kind] = Some(world.read[kind].clone());
        let now_there =
            (0..2).all(|kind| self.configurations[kind].as_ref().is_some_and(|seen| seen.uid == world.read[kind].uid));
        if now_there && let Some(leaf) = &self.leaf {
            let root = leaf.issuer.root().fingerprint;
            self.ready |= self.observed().entries.iter().all(|entry| entry.contains(&root));
        }
    }

    fn turn(&mut self, world: &mut World) {
        let now = world.now;
        self.trust.observe(&self.observed(), now);
        let plan = plan::plan(&Facts {
            now,
            secret: &self.secret,
            held: self.held.as_ref(),
            leaf: self.leaf.as_ref(),
            trust: &self.trust,
            lifetimes: &lifetimes(),
        });
        if let Some(issuer) = plan.sign {
            // When what was served has expired no call could succeed any more: this is a new start.
            self.ready &= self.leaf.as_ref().is_some_and(|leaf| now < leaf.not_after);
            let not_after = plan::leaf_end(&lifetimes(), &issuer.root(), now);
            self.leaf = Some(Leaf { issuer, issued: now, not_before: now - 1_000, not_after });
        }
        if let SecretStep::Create(change) | SecretStep::Replace(change) = plan.secret
            && self.writing.is_none()
        {
            let seen = match &self.secret {
                Secret::Present(content) => Some(content),
                Secret::Unread | Secret::Absent => None,
            };
            let fresh = world.found();
            let after = plan::apply(change, seen, self.held.as_ref(), fresh, now);
            self.writing = Some((self.secret_version, after.expect("the plan fits what it was made from")));
        }
    }

    fn land_secret(&mut self, world: &mut World, answered: bool) {
        if let Some((expected, generations)) = self.writing.take() {
            world.write_secret(expected, generations);
            if answered {
                self.see_secret(world);
            }
        }
    }

    fn wanted(&self, world: &World) -> Vec<RootCertificate> {
        let mut wanted: Vec<Fake> = Vec::new();
        if let Some(held) = &self.held {
            wanted.push(held.current);
            wanted.extend(held.next);
            wanted.extend(&held.previous);
        }
        wanted.extend(self.leaf.as_ref().map(|leaf| leaf.issuer));
        let mut known = BTreeSet::new();
        wanted.retain(|fake| known.insert(fake.root().fingerprint));
        wanted.into_iter().map(|fake| world.certificate(fake)).collect()
    }

    fn publish(&mut self, world: &World) {
        let wanted = self.wanted(world);
        for kind in 0..2 {
            let Some(seen) = &self.configurations[kind] else { continue };
            self.memory[kind].observe(seen, &wanted, world.now);
            if let Step::Send(patch) = step(seen, &wanted, &self.memory[kind], world.now)
                && self.patching.is_none()
            {
                self.memory[kind].sent(world.now);
                self.patching = Some((kind, patch));
            }
        }
    }

    fn land_patch(&mut self, world: &mut World) {
        if let Some((kind, patch)) = self.patching.take() {
            world.patch(kind, &patch);
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    SeeSecret(usize),
    SeeConfiguration(usize, usize),
    Turn(usize),
    LandSecret(usize, bool),
    Publish(usize),
    LandPatch(usize),
    Advance(Millis),
    Restart(usize),
    DeleteSecret,
    DamageSecret(bool),
    ReplaceSecret,
    Recreate(usize),
}

fn ordinary() -> impl Strategy<Value = Event> {
    let replica = 0..REPLICAS;
    prop_oneof![
        4 => replica.clone().prop_map(Event::SeeSecret),
        6 => (replica.clone(), 0..2_usize).prop_map(|(replica, kind)| Event::SeeConfiguration(replica, kind)),
        8 => replica.clone().prop_map(Event::Turn),
        4 => (replica.clone(), any::<bool>()).prop_map(|(replica, answered)| Event::LandSecret(replica, answered)),
        6 => replica.clone().prop_map(Event::Publish),
        6 => replica.prop_map(Event::LandPatch),
        6 => (1..700_i64).prop_map(Event::Advance),
    ]
}

fn eventful() -> impl Strategy<Value = Event> {
    prop_oneof![
        40 => ordinary(),
        1 => (0..REPLICAS).prop_map(Event::Restart),
        1 => Just(Event::DeleteSecret),
        1 => any::<bool>().prop_map(Event::DamageSecret),
        1 => Just(Event::ReplaceSecret),
        1 => (0..2_usize).prop_map(Event::Recreate),
        1 => (1_000..9_000_i64).prop_map(Event::Advance),
    ]
}

struct Simulation {
    world: World,
    replicas: Vec<Replica>,
}

impl Simulation {
    fn new() -> Simulation {
        Simulation { world: World::new(), replicas: (0..REPLICAS).map(|_| Replica::new()).collect() }
    }

    fn happen(&mut self, event: &Event) {
        let (world, replicas) = (&mut self.world, &mut self.replicas);
        match event {
            Event::SeeSecret(replica) => replicas[*replica].see_secret(world),
            Event::SeeConfiguration(replica, kind) => replicas[*replica].see_configuration(world, *kind),
            Event::Turn(replica) => replicas[*replica].turn(world),
            Event::LandSecret(replica, answered) => replicas[*replica].land_secret(world, *answered),
            Event::Publish(replica) => replicas[*replica].publish(world),
            Event::LandPatch(replica) => replicas[*replica].land_patch(world),
            Event::Advance(by) => world.now += by,
            Event::Restart(replica) => replicas[*replica] = Replica::new(),
            Event::DeleteSecret => world.secret = None,
            Event::DamageSecret(next) => world.edit_secret(|content| {
                if *next {
                    content.next = Some(Err(Flaw::KeyMismatch));
                } else {
                    content.current = Err(Flaw::Unreadable);
                }
            }),
            Event::ReplaceSecret => {
                let theirs = world.found();
                world.edit_secret(|content| {
                    *content = Content { ours: true, current: Ok(theirs), next: None, previous: Vec::new() };
                });
            }
            Event::Recreate(kind) => {
                world.recreate(*kind);
                replicas.iter_mut().for_each(|replica| replica.ready = false);
            }
        }
    }

    /// The promise: a call that reaches a ready replica meets a certificate that its caller trusts.
    fn check(&self, event: &Event) -> Result<(), TestCaseError> {
        for (number, replica) in self.replicas.iter().enumerate() {
            let Some(leaf) = &replica.leaf else { continue };
            prop_assert!(leaf.not_after <= leaf.issuer.root().not_after, "a leaf outlives its authority");
            if !replica.ready || self.world.now >= leaf.not_after {
                continue;
            }
            for kind in 0..2 {
                for entry in &self.world.read[kind].entries {
                    let root = leaf.issuer.root().fingerprint;
                    prop_assert!(
                        entry.roots.iter().any(|certificate| certificate.root.fingerprint == root),
                        "after {event:?} replica {number} serves {root}, which {} does not hold",
                        entry.name
                    );
                }
            }
        }
        Ok(())
    }

    /// Everything is delivered and everyone has a turn, again and again.
    fn calm_down(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..10 {
            for replica in 0..REPLICAS {
                for event in [
                    Event::SeeSecret(replica),
                    Event::SeeConfiguration(replica, 0),
                    Event::SeeConfiguration(replica, 1),
                    Event::Turn(replica),
                    Event::LandSecret(replica, true),
                    Event::Publish(replica),
                    Event::LandPatch(replica),
                    Event::SeeConfiguration(replica, 0),
                    Event::SeeConfiguration(replica, 1),
                    Event::Advance(100),
                ] {
                    self.happen(&event);
                    self.check(&event)?;
                }
            }
        }
        Ok(())
    }

    /// Everything that can happen without time going by.
    fn stand_still(&mut self) {
        for replica in (0..8).flat_map(|_| 0..REPLICAS) {
            for event in [
                Event::SeeSecret(replica),
                Event::SeeConfiguration(replica, 0),
                Event::SeeConfiguration(replica, 1),
                Event::Turn(replica),
                Event::LandSecret(replica, true),
                Event::Publish(replica),
                Event::LandPatch(replica),
            ] {
                self.happen(&event);
            }
        }
    }

    fn agreed(&self) -> Result<Fingerprint, TestCaseError> {
        let (_, content) = self.world.secret.as_ref().expect("somebody made it");
        let current = content.current.expect("it is good").root();
        prop_assert!(!current.expired(self.world.now));
        for (number, replica) in self.replicas.iter().enumerate() {
            let leaf = replica.leaf.as_ref().expect("everyone serves");
            prop_assert_eq!(leaf.issuer.root(), current, "replica {} follows the Secret", number);
            prop_assert!(leaf.not_after > self.world.now, "replica {} serves what is valid", number);
            prop_assert!(replica.ready, "replica {} is ready", number);
        }
        Ok(current.fingerprint)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn c1_replicas_racing_at_first_start_agree_on_one_authority(
        events in proptest::collection::vec(ordinary(), 0..80),
    ) {
        let mut simulation = Simulation::new();
        let mut seen = BTreeSet::new();
        for event in events.iter().filter(|event| !matches!(event, Event::Advance(_))) {
            simulation.happen(event);
            simulation.check(event)?;
            seen.extend(simulation.replicas.iter().filter_map(|replica| Some(replica.leaf.as_ref()?.issuer.root())));
        }
        simulation.calm_down()?;
        seen.extend(simulation.replicas.iter().filter_map(|replica| Some(replica.leaf.as_ref()?.issuer.root())));
        prop_assert_eq!(seen.len(), 1, "nobody ever served another one");
        simulation.agreed()?;
    }

    #[test]
    fn c2_c4_every_call_is_trusted_through_rotation_restarts_and_damage(
        events in proptest::collection::vec(eventful(), 0..300),
    ) {
        let mut simulation = Simulation::new();
        for event in &events {
            simulation.happen(event);
            simulation.check(event)?;
        }
        // A clash with the publisher's pace is over after its interval.
        simulation.calm_down()?;
        simulation.world.now += 61_000;
        simulation.calm_down()?;
        simulation.agreed()?;
    }

    #[test]
    fn steady_state_writes_nothing(events in proptest::collection::vec(eventful(), 0..100), pick in any::<Index>()) {
        let mut simulation = Simulation::new();
        for event in &events {
            simulation.happen(event);
        }
        simulation.calm_down()?;
        simulation.world.now += 61_000;
        simulation.calm_down()?;
        simulation.calm_down()?;
        // Close to the last rotation nothing is due for some seconds; a restart of one replica changes nothing.
        simulation.stand_still();
        let before = (simulation.world.writes, simulation.world.secret.clone().map(|(version, _)| version));
        simulation.replicas[pick.index(REPLICAS)] = Replica::new();
        simulation.stand_still();
        prop_assert_eq!(before, (simulation.world.writes, simulation.world.secret.map(|(version, _)| version)));
    }
}

#[test]
fn a_rotation_runs_through_all_its_stages() {
    let mut simulation = Simulation::new();
    simulation.calm_down().unwrap();
    let first = simulation.agreed().unwrap();
    let mut stages = Vec::new();
    for _ in 0..12 {
        simulation.world.now += 1_000;
        simulation.calm_down().unwrap();
        let (_, content) = simulation.world.secret.as_ref().unwrap();
        stages.push((content.next.is_some(), content.previous.len()));
    }
    let leaf = simulation.replicas[0].leaf.as_ref().unwrap();
    assert_ne!(leaf.issuer.root().fingerprint, first);
    assert!(stages.iter().all(|(_, previous)| *previous <= 1), "{stages:?}");
    assert!(stages.iter().any(|(_, previous)| *previous == 1), "the old one stays while it is valid: {stages:?}");
}
