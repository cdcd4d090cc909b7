//! Whom a quota ends, and what it refuses, without a socket.

use std::net::IpAddr;

use futures::FutureExt;

use super::*;

const KIB: usize = 1024;
const BOUNDS: Bounds = Bounds { connections: 64, memory: 1024 * KIB };
const COST: usize = KIB;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn origin(text: &str) -> Origin {
    Origin::of(address(text))
}

fn open(quota: &Arc<Quota>, from: &str, count: usize) -> Vec<Arc<Account>> {
    (0..count).map(|_| quota.open(address(from), COST).unwrap()).collect()
}

/// Positions of those that were told to end since the last call.
fn told(accounts: &[Arc<Account>]) -> Vec<usize> {
    let told = |account: &Arc<Account>| account.told_to_end().now_or_never().is_some();
    accounts.iter().enumerate().filter(|(_, account)| told(account)).map(|(at, _)| at).collect()
}

#[test]
fn mend_04_an_origin_is_an_ipv4_address_or_an_ipv6_64() {
    for (one, other, same) in [
        ("10.0.0.1", "10.0.0.1", true),
        ("10.0.0.1", "10.0.0.2", false),
        ("10.0.0.1", "::ffff:10.0.0.1", true),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", false),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
    ] {
        assert_eq!(origin(one) == origin(other), same, "{one} {other}");
    }
}

#[test]
fn mend_04_below_half_of_the_connections_nobody_is_ended_however_many_come_from_one_address() {
    let quota = Quota::new(BOUNDS);
    let all = open(&quota, "10.0.0.1", BOUNDS.connections / 2);
    assert_eq!(told(&all), [0; 0]);
}

#[test]
fn mend_04_above_half_the_oldest_of_the_address_with_most_unproven_connections_ends() {
    let quota = Quota::new(BOUNDS);
    let servers = open(&quota, "10.0.0.1", 20);
    servers.iter().for_each(|account| account.prove());
    let quiet = open(&quota, "10.0.0.2", 5);
    let crowd = open(&quota, "10.0.0.3", 7);
    assert_eq!((told(&servers), told(&quiet), told(&crowd)), (vec![], vec![], vec![]));
    let more = open(&quota, "10.0.0.3", 3);
    assert_eq!((told(&servers), told(&quiet), told(&more)), (vec![], vec![], vec![]));
    assert_eq!(told(&crowd), [0, 1, 2]);
    // Five and seven are left: two more of the seven, and then they take turns.
    let newcomers = open(&quota, "10.0.0.4", 4);
    assert_eq!((told(&servers), told(&quiet).len(), told(&crowd).len()), (vec![], 1, 3), "the larger one first");
    assert_eq!(told(&newcomers), [0; 0]);
}

#[test]
fn mend_04_one_64_is_one_address() {
    let quota = Quota::new(BOUNDS);
    let other = open(&quota, "10.0.0.1", 10);
    let spread: Vec<_> =
        (0..40).map(|at| quota.open(address(&format!("2001:db8:1:2::{at:x}")), COST).unwrap()).collect();
    assert_eq!(told(&other), [0; 0]);
    assert_eq!(told(&spread).len(), 18);
}

#[test]
fn mend_04_when_the_proven_take_more_than_half_who_comes_new_still_has_time_for_a_review() {
    let quota = Quota::new(BOUNDS);
    let servers = open(&quota, "10.0.0.1", 30);
    servers.iter().for_each(|account| account.prove());
    let more = open(&quota, "10.0.0.1", 26);
    more.iter().take(18).for_each(|account| account.prove());
    let ended = told(&more);
    assert!(ended.iter().all(|at| *at < 18), "those that came before had not proved anything then: {ended:?}");
    let room = BOUNDS.connections / 8;
    let fresh = open(&quota, "10.0.0.1", room);
    assert_eq!(told(&fresh), [0; 0]);
    assert_eq!(told(&servers), [0; 0]);
    let again = open(&quota, "10.0.0.1", room);
    assert_eq!((told(&fresh).len(), told(&again).len()), (room, 0));
}

#[test]
fn mend_04_the_address_that_holds_most_gives_way_before_memory_is_out_and_not_by_who_holds_little() {
    let quota = Quota::new(BOUNDS);
    let light = open(&quota, "10.0.0.1", 20);
    let idle = open(&quota, "10.0.0.2", 1);
    let heavy = open(&quota, "10.0.0.2", 6);
    let charges: Vec<_> = heavy.iter().map(|account| account.charge()).collect();
    for (at, charge) in charges.iter().enumerate() {
        charge.resize((60 + at) * KIB).unwrap();
    }
    assert_eq!(told(&heavy), [0; 0]);
    let small = light[0].charge();
    for _ in 0..20 {
        small.take(4 * KIB).unwrap();
    }
    assert_eq!((told(&light), told(&idle), told(&heavy)), (vec![], vec![], vec![0]));
    assert!(charges[0].take(1).is_err(), "who is told to end gets nothing more");
    // Its bytes count until they are gone.
    let before = quota.held();
    drop((charges, heavy));
    assert_eq!(before - quota.held(), (60 + 61 + 62 + 63 + 64 + 65 + 6) * KIB);
}

#[test]
fn mend_04_one_connection_holds_an_eighth_and_a_proven_one_half() {
    let quota = Quota::new(BOUNDS);
    let account = &open(&quota, "10.0.0.1", 1)[0];
    let parts: Vec<_> = (0..16).map(|_| account.charge()).collect();
    let fill = || parts.iter().take_while(|part| part.take(64 * KIB - 100).is_ok()).count();
    assert_eq!(fill(), 1, "64 KiB each, beside the connection's own cost");
    account.prove();
    parts[0].resize(0).unwrap();
    assert_eq!(fill(), 7);
}

#[test]
fn mend_04_large_bodies_have_half_and_small_ones_the_rest() {
    let quota = Quota::new(BOUNDS);
    let accounts = open(&quota, "10.0.0.1", 2);
    accounts.iter().for_each(|account| account.prove());
    let (large, more, small) = (accounts[0].charge(), accounts[1].charge(), accounts[1].charge());
    large.resize(500 * KIB).unwrap();
    more.resize(120 * KIB).unwrap();
    assert_eq!(more.resize(200 * KIB), Err(Full));
    small.resize(SMALL).unwrap();
    drop(large);
    more.resize(200 * KIB).unwrap();
}

/// Over HTTP/2 the reviews of all users of an API server share a connection: one that is written to be as large as may be took all that a connection may
/// hold, and whatever came beside it was refused.
#[test]
fn a_large_review_leaves_room_for_small_ones_on_its_connection() {
    let quota = Quota::new(Bounds { memory: 96 * KIB * KIB, ..BOUNDS });
    let account = &open(&quota, "10.0.0.1", 1)[0];
    account.prove();
    let large = account.charge();
    let most = (0..=96 * KIB).rev().find(|kib| large.resize(kib * KIB).is_ok()).unwrap();
    assert_eq!(most, 42 * KIB + 64, "seven sixteenths, and what a small one may have");
    let small: Vec<_> = (0..64).map(|_| account.charge()).collect();
    assert!(small.iter().all(|one| one.take(SMALL).is_ok()), "as many as there are streams");
    assert_eq!(large.take(1), Err(Full));
}

#[test]
fn mend_04_unproven_connections_never_take_the_half_of_the_others_and_together_all_stay_below_the_bound() {
    let quota = Quota::new(BOUNDS);
    let mut state: u64 = 42;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let server = quota.open(address("10.9.9.9"), COST).unwrap();
    server.prove();
    let served = server.charge();
    let mut open: Vec<(Arc<Account>, Vec<Charge>)> = Vec::new();
    for step in 0..20_000 {
        match random(10) {
            0..3 => {
                let from = format!("10.0.0.{}", random(9));
                open.extend(quota.open(address(&from), COST).ok().map(|account| (account, Vec::new())));
            }
            3..8 if !open.is_empty() => {
                let at = random(open.len());
                let charge = open[at].0.charge();
                if charge.resize(random(100 * KIB)).is_ok() {
                    open[at].1.push(charge);
                }
            }
            _ if !open.is_empty() => drop(open.swap_remove(random(open.len()))),
            _ => {}
        }
        // Those that are told to end do so soon.
        if step % 3 == 0 {
            open.retain(|(account, _)| account.told_to_end().now_or_never().is_none());
        }
        assert!(quota.held() <= BOUNDS.memory);
        assert!(served.resize(SMALL * (step % 2)).is_ok(), "step {step}: a proven connection finds room for a review");
    }
    assert!(server.told_to_end().now_or_never().is_none());
    drop((open, served));
    drop(server);
    let state = quota.state.lock();
    assert_eq!((state.held, state.large, state.held_by_proven, state.proven_count), (0, 0, 0, 0));
    assert_eq!((state.unproven_bytes, state.unproven_count), (0, 0));
    assert!(state.entries.is_empty() && state.unproven.is_empty());
}
