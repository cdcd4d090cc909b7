//! Three replicas and an API server, in every order that chance finds.
//!
//! The replicas run the real plans of the authority and of the publisher on views that are as old as chance wants;
//! writes land later than they were decided, and land as the real ones do: creation if absent, replacement if the
//! resourceVersion is still the one seen, patches by the real JSON patch library. One of them leads and may write, or,
//! harder than any real cluster, all of them do. After every single step: whatever a ready replica serves, and has not
//! expired, is trusted by every bundle.

mod cluster;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::Index;

use super::Fake;
use crate::server::certs::authority::plan::{Authority as _, Content, Flaw, Lifetimes};
use crate::server::certs::root::{Fingerprint, Millis};
use cluster::{Replica, World};

const REPLICAS: usize = 3;
const ENTRIES: [&str; 2] = ["inject.kagenti.io", "explain.kagenti.io"];

fn lifetimes() -> Lifetimes {
    Lifetimes { leaf: 3_000, authority: 15_000, backdate: 1_000, settle: 500 }
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
    Elect(usize),
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
        2 => (0..REPLICAS).prop_map(Event::Elect),
    ]
}

struct Simulation {
    world: World,
    replicas: Vec<Replica>,
    /// Who holds the Lease; nothing when there is none and everyone writes.
    leader: Option<usize>,
}

impl Simulation {
    fn new(led: bool) -> Simulation {
        let replicas = (0..REPLICAS).map(|_| Replica::new()).collect();
        Simulation { world: World::new(), replicas, leader: led.then_some(0) }
    }

    fn leads(&self, replica: usize) -> bool {
        self.leader.is_none_or(|leader| leader == replica)
    }

    fn happen(&mut self, event: &Event) {
        let leads = matches!(event, Event::Turn(replica) | Event::Publish(replica) if self.leads(*replica));
        let (world, replicas) = (&mut self.world, &mut self.replicas);
        match event {
            Event::SeeSecret(replica) => replicas[*replica].see_secret(world),
            Event::SeeConfiguration(replica, kind) => replicas[*replica].see_configuration(world, *kind),
            Event::Turn(replica) => replicas[*replica].turn(world, leads),
            Event::LandSecret(replica, answered) => replicas[*replica].land_secret(world, *answered),
            Event::Publish(replica) => replicas[*replica].publish(world, leads),
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
            Event::Elect(replica) => {
                if let Some(old) = &mut self.leader {
                    replicas[*old].deposed();
                    *old = *replica;
                }
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
        led in any::<bool>(),
    ) {
        let mut simulation = Simulation::new(led);
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
        led in any::<bool>(),
    ) {
        let mut simulation = Simulation::new(led);
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
    fn steady_state_writes_nothing(
        events in proptest::collection::vec(eventful(), 0..100),
        pick in any::<Index>(),
        led in any::<bool>(),
    ) {
        let mut simulation = Simulation::new(led);
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
    let mut simulation = Simulation::new(true);
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
