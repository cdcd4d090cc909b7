//! The step function as tables.

use std::collections::BTreeSet;

use super::{DAY, Fake};
use crate::server::certs::authority::plan::*;
use crate::server::certs::root::{Millis, Root};
use crate::server::certs::trust::{Observed, Trust};

/// What a row starts from: an authority of day 0 that is published, served, and in the Secret; the row changes it.
struct World {
    now: Millis,
    secret: Secret<Fake>,
    held: Option<Generations<Fake>>,
    leaf: Option<Leaf<Fake>>,
    trusted: Vec<(Fake, Millis)>,
}

fn authority(id: u32, day: Millis) -> Fake {
    Fake::issued(id, day * DAY, &Lifetimes::default())
}

fn generations(current: Fake) -> Generations<Fake> {
    Generations { current, next: None, previous: Vec::new() }
}

fn content(current: Result<Fake, Flaw>) -> Content<Fake> {
    Content { ours: true, current, next: None, previous: Vec::new() }
}

fn leaf(issuer: Fake, issued: Millis) -> Leaf<Fake> {
    let lifetimes = Lifetimes::default();
    let not_after = leaf_end(&lifetimes, &issuer.root(), issued);
    Leaf { issuer, issued, not_before: issued - lifetimes.backdate, not_after }
}

impl World {
    fn steady(now: Millis) -> World {
        let current = authority(1, 0);
        World {
            now,
            secret: Secret::Present(content(Ok(current))),
            held: Some(generations(current)),
            leaf: Some(leaf(current, now - DAY)),
            trusted: vec![(current, 0)],
        }
    }

    fn fresh(secret: Secret<Fake>) -> World {
        World { now: DAY, secret, held: None, leaf: None, trusted: Vec::new() }
    }

    fn plan(&self) -> (SecretStep, Option<Fake>, Option<Complaint>) {
        let mut trust = Trust::default();
        let mut since: Vec<Millis> = self.trusted.iter().map(|(_, since)| *since).collect();
        since.sort_unstable();
        for moment in since {
            let there = self.trusted.iter().filter(|(_, since)| *since <= moment);
            let entry: BTreeSet<_> = there.map(|(fake, _)| fake.root().fingerprint).collect();
            trust.observe(&Observed { synced: true, entries: vec![entry], ..Observed::default() }, moment);
        }
        let plan = plan(&Facts {
            now: self.now,
            secret: &self.secret,
            held: self.held.as_ref(),
            leaf: self.leaf.as_ref(),
            trust: &trust,
            lifetimes: &Lifetimes::default(),
        });
        (plan.secret, plan.sign, plan.complaint)
    }
}

const KEEP: SecretStep = SecretStep::Keep;

#[test]
fn first_start() {
    assert_eq!(World::fresh(Secret::Unread).plan(), (KEEP, None, None), "nothing is made before the Secret was read");
    assert_eq!(World::fresh(Secret::Absent).plan(), (SecretStep::Create(Change::Found), None, None), "C1");
    let theirs = authority(1, 0);
    assert_eq!(
        World::fresh(Secret::Present(content(Ok(theirs)))).plan(),
        (KEEP, Some(theirs), None),
        "what the Secret holds is served at once, published or not: there is nothing else"
    );
}

#[test]
fn steady_state_does_nothing() {
    for day in [1, 100, 242] {
        assert_eq!(World::steady(day * DAY).plan(), (KEEP, None, None), "day {day}");
    }
}

#[test]
fn the_authority_rotates_at_two_thirds_with_overlap() {
    let (old, new) = (authority(1, 0), authority(2, 244));
    let with_next = |day: Millis, trusted: &[(Fake, Millis)]| {
        let mut world = World::steady(day * DAY);
        world.secret = Secret::Present(Content { next: Some(Ok(new)), ..content(Ok(old)) });
        world.trusted.extend_from_slice(trusted);
        world.plan()
    };
    assert_eq!(World::steady(243 * DAY).plan(), (KEEP, None, None));
    assert_eq!(World::steady(244 * DAY).plan(), (SecretStep::Replace(Change::Introduce), None, None));
    assert_eq!(with_next(245, &[]), (KEEP, None, None), "not in every bundle yet");
    assert_eq!(with_next(245, &[(new, 245 * DAY - 9_999)]), (KEEP, None, None), "not long enough");
    assert_eq!(with_next(245, &[(new, 245 * DAY - 10_000)]), (SecretStep::Replace(Change::Promote), None, None));

    let mut promoted = World::steady(245 * DAY);
    promoted.secret = Secret::Present(Content { previous: vec![old], ..content(Ok(new)) });
    assert_eq!(promoted.plan(), (KEEP, None, None), "this replica has not seen the new root everywhere");
    promoted.trusted.push((new, 245 * DAY - 10_000));
    assert_eq!(promoted.plan(), (KEEP, Some(new), None));
}

#[test]
fn somebody_s_short_lived_authority_is_renewed_in_time_too() {
    let root = Root { not_before: 10 * DAY, not_after: 11 * DAY, ..authority(9, 0).root() };
    let at = |now: Millis| {
        let mut world = World::steady(now);
        world.secret = Secret::Present(content(Ok(Fake(root))));
        world.plan().0
    };
    assert_eq!(at(10 * DAY + DAY / 2), KEEP);
    assert_eq!(at(10 * DAY + DAY / 3 * 2), SecretStep::Replace(Change::Introduce));
}

#[test]
fn a_retired_authority_leaves_the_secret_when_it_has_expired() {
    let (old, new) = (authority(1, 0), authority(2, 244));
    let at = |now: Millis| {
        let mut world = World::steady(now);
        world.secret = Secret::Present(Content { previous: vec![old], ..content(Ok(new)) });
        world.leaf = Some(leaf(new, now - DAY));
        world.plan().0
    };
    assert_eq!(at(364 * DAY), KEEP);
    assert_eq!(at(365 * DAY), SecretStep::Replace(Change::Tidy));
}

#[test]
fn leaves_are_renewed_at_two_thirds_and_never_outlive_their_authority() {
    let signer = authority(1, 0);
    let at = |now: Millis, issued: Millis| {
        let mut world = World::steady(now);
        world.leaf = Some(leaf(signer, issued));
        world.secret = Secret::Present(Content { next: Some(Ok(authority(2, 244))), ..content(Ok(signer)) });
        world.plan().1
    };
    assert_eq!(at(14 * DAY, 10 * DAY), None);
    assert_eq!(at(15 * DAY, 10 * DAY), Some(signer));
    assert_eq!(at(15 * DAY, 8 * DAY), Some(signer), "an expired one too");
    assert_eq!(at(362 * DAY, 357 * DAY), Some(signer), "cut off, and longer than the old one");
    assert_eq!(at(364 * DAY, 360 * DAY), None, "no leaf can last longer than this one");
    assert_eq!(leaf(signer, 362 * DAY).not_after, 365 * DAY);
}

#[test]
fn c4_a_deleted_secret_comes_back_and_brings_a_successor() {
    let mut world = World::steady(DAY);
    world.secret = Secret::Absent;
    assert_eq!(world.plan(), (SecretStep::Create(Change::RestoreAndRotate), None, None));
    let after = apply(Change::RestoreAndRotate, None, world.held.as_ref(), authority(2, 1), DAY).unwrap();
    assert_eq!((after.current, after.next), (authority(1, 0), Some(authority(2, 1))));
    world.now = 366 * DAY;
    assert_eq!(world.plan().0, SecretStep::Create(Change::Found), "memory has expired too");
}

#[test]
fn c4_a_damaged_secret_is_put_back_and_a_foreign_one_refused() {
    for flaw in [Flaw::Missing, Flaw::Unreadable, Flaw::NotAnAuthority, Flaw::WrongKeyType, Flaw::KeyMismatch] {
        let mut world = World::steady(DAY);
        world.secret = Secret::Present(content(Err(flaw)));
        let restored = (SecretStep::Replace(Change::Restore), None, Some(Complaint::Repaired(flaw)));
        assert_eq!(world.plan(), restored, "{flaw:?}: back from memory, serving goes on");

        world.secret = Secret::Present(Content { ours: false, ..content(Err(flaw)) });
        assert_eq!(world.plan(), (KEEP, None, Some(Complaint::Refused(flaw))), "{flaw:?}: not ours, serving goes on");
        world.leaf.as_mut().unwrap().issued = DAY - 6 * DAY;
        world.leaf.as_mut().unwrap().not_after = 2 * DAY;
        assert_eq!(world.plan().1, Some(authority(1, 0)), "{flaw:?}: and its leaf is renewed from memory");

        let nothing_held = World::fresh(Secret::Present(content(Err(flaw))));
        let founded = (SecretStep::Replace(Change::Found), None, Some(Complaint::Repaired(flaw)));
        assert_eq!(nothing_held.plan(), founded, "{flaw:?}: nothing held");

        let next = Some(Ok(authority(2, 0)));
        let with_next = World::fresh(Secret::Present(Content { next, ..content(Err(flaw)) }));
        assert_eq!(with_next.plan().0, SecretStep::Replace(Change::Promote), "{flaw:?}: the one being introduced");
        let foreign = World::fresh(Secret::Present(Content { ours: false, ..content(Err(flaw)) }));
        assert_eq!(foreign.plan(), (KEEP, None, Some(Complaint::Refused(flaw))), "{flaw:?}: nothing to serve");
    }
}

#[test]
fn c4_a_replaced_secret_is_used_once_it_is_trusted() {
    let theirs = authority(9, 0);
    for ours in [true, false] {
        let mut world = World::steady(DAY);
        world.secret = Secret::Present(Content { ours, ..content(Ok(theirs)) });
        assert_eq!(world.plan(), (KEEP, None, None));
        world.trusted.push((theirs, DAY - 10_000));
        assert_eq!(world.plan(), (KEEP, Some(theirs), None));
        world.trusted.pop();
        world.leaf.as_mut().unwrap().not_after = DAY;
        assert_eq!(world.plan(), (KEEP, Some(theirs), None), "an expired leaf protects nothing");
    }
}

/// Made by hand on a machine whose clock is ahead, or to begin tomorrow: trusted everywhere, and yet nobody accepts what it signs.
#[test]
fn c5_somebody_s_authority_that_is_not_valid_yet_signs_nothing_while_there_is_something_better() {
    let theirs = Fake(Root { not_before: DAY + 1_000, ..authority(9, 0).root() });
    let mut world = World::steady(DAY);
    world.secret = Secret::Present(Content { ours: false, ..content(Ok(theirs)) });
    world.trusted.push((theirs, DAY - 10_000));
    let refused = Some(Complaint::Refused(Flaw::Early));
    assert_eq!(world.plan(), (KEEP, None, refused));
    world.now = DAY + 1_000;
    assert_eq!(world.plan(), (KEEP, Some(theirs), None), "from its first moment on");
    world.now = DAY;
    world.leaf.as_mut().unwrap().not_after = DAY;
    assert_eq!(world.plan(), (KEEP, Some(theirs), refused), "an expired leaf is no better");
}

/// A rolling restart would else put replicas that nobody accepts, and that are ready, in the place of those that serve a good leaf.
#[test]
fn c5_a_fresh_replica_signs_nothing_with_an_authority_that_is_not_valid_yet() {
    let early = Fake(Root { not_before: DAY + 1_000, ..authority(9, 0).root() });
    for (ours, step, complaint) in [
        (true, SecretStep::Replace(Change::Introduce), Complaint::Early),
        (false, KEEP, Complaint::Refused(Flaw::Early)),
    ] {
        let mut world = World::fresh(Secret::Present(Content { ours, ..content(Ok(early)) }));
        world.held = Some(generations(early));
        world.trusted.push((early, DAY - 10_000));
        assert_eq!(world.plan(), (step, None, Some(complaint)), "ours: {ours}");
        world.now = DAY + 1_000;
        assert_eq!(world.plan(), (KEEP, Some(early), None), "from its first moment on; ours: {ours}");
    }

    // Ours need not wait for that: a successor is valid at once, and signs as soon as it has taken over.
    let successor = authority(2, 1);
    let next = Some(Ok(successor));
    let mut world = World::fresh(Secret::Present(Content { next, ..content(Ok(early)) }));
    assert_eq!(world.plan(), (KEEP, None, Some(Complaint::Early)), "not in every bundle yet");
    world.trusted.push((successor, DAY - 10_000));
    assert_eq!(world.plan().0, SecretStep::Replace(Change::Promote), "by who serves nothing, too");
    world.secret = Secret::Present(content(Ok(successor)));
    assert_eq!(world.plan(), (KEEP, Some(successor), None));

    // Deleted before it was valid: what is remembered of it does not sign either.
    let mut world = World::fresh(Secret::Absent);
    world.held = Some(generations(early));
    assert_eq!(world.plan(), (SecretStep::Create(Change::RestoreAndRotate), None, None));
}

#[test]
fn a_foreign_secret_is_never_written() {
    let theirs = authority(9, 0);
    for (day, complaint) in [(300, None), (365, Some(Complaint::Refused(Flaw::Expired)))] {
        let mut world = World::steady(day * DAY);
        let expired = vec![authority(8, -400)];
        world.secret = Secret::Present(Content { ours: false, previous: expired, ..content(Ok(theirs)) });
        let (secret, _, said) = world.plan();
        assert_eq!((secret, said), (KEEP, complaint), "day {day}");
    }
}

#[test]
fn an_unusable_successor_is_replaced_or_dropped() {
    for next in [Err(Flaw::Unreadable), Ok(authority(2, -365))] {
        let mut world = World::steady(100 * DAY);
        world.secret = Secret::Present(Content { next: Some(next), ..content(Ok(authority(1, 0))) });
        assert_eq!(world.plan().0, SecretStep::Replace(Change::Tidy));
        world.now = 250 * DAY;
        assert_eq!(world.plan().0, SecretStep::Replace(Change::Introduce));
    }
}

#[test]
fn c5_expired_while_the_api_server_was_away() {
    let mut world = World::steady(250 * DAY);
    world.leaf = Some(leaf(authority(1, 0), 245 * DAY));
    let signed = world.plan().1;
    assert_eq!(signed, Some(authority(1, 0)), "leaves go on from memory while the successor waits to be introduced");
    world.now = 400 * DAY;
    assert_eq!(world.plan().1, None, "nothing better can be signed; what is served stays");
    assert_eq!(world.plan().0, SecretStep::Replace(Change::Found), "and a new authority as soon as it can be written");
    let next = authority(2, 244);
    world.secret = Secret::Present(Content { next: Some(Ok(next)), ..content(Ok(authority(1, 0))) });
    assert_eq!(world.plan().0, SecretStep::Replace(Change::Promote), "or the one that was prepared");
}

#[test]
fn c5_clocks_a_day_apart_agree() {
    let made_tomorrow = authority(1, 11);
    let mut world = World::steady(10 * DAY);
    world.secret = Secret::Present(content(Ok(made_tomorrow)));
    world.leaf = Some(leaf(made_tomorrow, 10 * DAY));
    assert_eq!(world.plan(), (KEEP, None, None), "its validity is back-dated far enough");

    let mut set_back = World::steady(10 * DAY);
    set_back.leaf = Some(leaf(authority(1, 0), 11 * DAY));
    assert_eq!(set_back.plan().1, None, "signed tomorrow, valid today");
    set_back.leaf = Some(leaf(authority(1, 0), 12 * DAY));
    assert_eq!(set_back.plan().1, Some(authority(1, 0)), "signed the day after tomorrow: signed anew");

    let mut far_ahead = World::steady(10 * DAY);
    far_ahead.secret = Secret::Present(content(Ok(authority(1, 13))));
    assert_eq!(far_ahead.plan().0, SecretStep::Replace(Change::Introduce), "one that is not valid yet is rotated");

    let tomorrow = World::steady(11 * DAY);
    assert_eq!(tomorrow.plan(), World::steady(10 * DAY).plan());
}

#[test]
fn short_lives_settle_and_tick_fast_enough_to_rotate_in_time() {
    for (leaf, authority) in [(3_000, 15_000), (2_000, 10_000), (7 * DAY, 365 * DAY), (60_000, 600_000)] {
        let lifetimes = Lifetimes::new(leaf, authority);
        let left = authority / 3;
        assert!(lifetimes.settle + 3 * lifetimes.tick() < left / 2, "{leaf} {authority}: {lifetimes:?}");
        assert!(lifetimes.tick() * 10 < leaf / 3 || lifetimes.tick() == 10_000, "{leaf}: {lifetimes:?}");
    }
}
