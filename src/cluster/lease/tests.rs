//! The plan as a table with a driven clock, the fence, and the protocol against a small API server in memory.

use serde_json::json;

use super::plan::{Held, LeaseSeen, Situation, Step, end_of_writing, step};
use super::*;
use crate::cluster::watch::tests::lines::Lines;
use crate::cluster::watch::tests::server::Server;

const fn s(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

fn lease(holder: &str, changed: u64) -> LeaseSeen {
    LeaseSeen { holder: holder.to_owned(), duration: s(8), changed: s(changed) }
}

fn held(sent: u64, tried: u64) -> Option<Held> {
    Some(Held { sent: s(sent), tried: s(tried) })
}

#[test]
fn what_to_do_next() {
    let (me, other, free) = (lease("me", 10), lease("other", 10), lease("", 10));
    // (what, lease, deleted, held, now, step); times: lease 8 s, renewal 2 s, margin 1 s
    type Row<'a> = (&'a str, Option<&'a LeaseSeen>, Option<&'a LeaseSeen>, Option<Held>, u64, Step);
    let table: &[Row<'_>] = &[
        ("no lease, never one, and long enough looked for", None, None, None, 0, Step::Create),
        ("released", Some(&free), None, None, 10, Step::Take),
        ("held by another, fresh", Some(&other), None, None, 10, Step::Wait(s(18))),
        ("held by another, nearly over", Some(&other), None, None, 17, Step::Wait(s(18))),
        ("held by another, over", Some(&other), None, None, 18, Step::Take),
        ("left over from a lost term of ours", Some(&me), None, None, 11, Step::Take),
        ("deleted while another held it", None, Some(&other), None, 12, Step::Wait(s(18))),
        ("deleted, and its time is over", None, Some(&other), None, 18, Step::Create),
        ("deleted after release, perhaps taken in between", None, Some(&free), None, 12, Step::Wait(s(18))),
        ("deleted after a lost term of ours, perhaps taken in between", None, Some(&me), None, 12, Step::Wait(s(18))),
        ("ours, fresh", Some(&me), None, held(10, 10), 11, Step::Wait(s(12))),
        ("ours, to be renewed", Some(&me), None, held(10, 10), 12, Step::Renew),
        ("ours, a renewal failed, next one due later", Some(&me), None, held(10, 12), 13, Step::Wait(s(14))),
        ("ours, renewals fail, end before the next", Some(&me), None, held(10, 16), 16, Step::Wait(s(17))),
        ("ours, end of writing reached", Some(&me), None, held(10, 16), 17, Step::Lose),
        ("stopped for an hour and resumed", Some(&me), None, held(10, 10), 3610, Step::Lose),
        ("taken by another meanwhile", Some(&other), None, held(10, 10), 11, Step::Lose),
        ("ours was deleted", None, Some(&me), held(10, 10), 11, Step::Create),
        ("ours was deleted too long ago", None, Some(&me), held(10, 10), 17, Step::Lose),
    ];
    for (what, lease, deleted, held, now, expected) in table.iter().copied() {
        let situation = Situation { lease, deleted, me: "me", held };
        assert_eq!(step(situation, Times::default(), s(now)), expected, "{what}");
    }
}

#[test]
fn d4_d5_two_replicas_never_write_at_once_whatever_their_clocks_say() {
    // The candidate sees a renewal at the earliest when it was sent; it never compares clocks, so only this counts.
    let times = Times::default();
    for sent in 0..5u64 {
        for delay in 0..3u64 {
            let seen = LeaseSeen { holder: "other".into(), duration: times.duration, changed: s(sent + delay) };
            let end = end_of_writing(s(sent), times);
            let situation = Situation { lease: Some(&seen), deleted: None, me: "me", held: None };
            assert!(matches!(step(situation, times, end), Step::Wait(_)), "sent {sent}, seen {delay} s later");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d4_the_fence_closes_by_the_clock_alone() {
    let fence = Fence::closed();
    assert_eq!(fence.left(), Err(Fenced));
    fence.open_until(Instant::now() + s(7));
    assert!(fence.left().unwrap() > s(6));
    tokio::time::advance(s(60)).await;
    assert_eq!(fence.left(), Err(Fenced), "stopped for a minute and resumed");
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_writes_under_way_but_not_for_ever() {
    let fence = Fence::closed();
    assert!(fence.drained(s(1)).await);
    let write = fence.enter();
    assert!(!fence.drained(s(1)).await);
    let waiting = tokio::spawn({
        let fence = fence.clone();
        async move { fence.drained(s(10)).await }
    });
    tokio::task::yield_now().await;
    drop(write);
    assert!(waiting.await.unwrap());
}

fn holder(server: &Server) -> String {
    let lease = server.object(keys::LEASE);
    lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str().map(str::to_owned)).unwrap_or_default()
}

async fn becomes(leadership: &Leadership, leader: bool) -> Duration {
    let before = Instant::now();
    leadership.terms().wait_for(|term| term.is_some() == leader).await.unwrap();
    before.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_graceful_end_hands_over_at_once_and_a_kill_within_the_lease() {
    let server = Server::new("Lease");
    let (first, one) = candidacy(server.client(), "ns", "one", Times::default());
    let (second, two) = candidacy(server.client(), "ns", "two", Times::default());
    let (third, three) = candidacy(server.client(), "ns", "three", Times::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let one = tokio::spawn(one.run(async move { drop(stopped.await) }));
    becomes(&first, true).await;
    assert!(holder(&server).starts_with("one_"));
    let two = tokio::spawn(two.run(std::future::pending()));
    tokio::time::sleep(s(60)).await;
    assert!(first.leads() && !second.leads(), "renewed for a minute");

    stop.send(()).unwrap();
    assert!(becomes(&second, true).await <= Duration::from_millis(500), "planned hand-over");
    one.await.unwrap();
    assert!(!first.leads());

    let three = tokio::spawn(three.run(std::future::pending()));
    tokio::time::sleep(s(3)).await;
    two.abort();
    let took = becomes(&third, true).await;
    assert!(took <= s(10), "killed: next after {took:?}");
    assert!(!second.leads(), "the fence of the killed one closed by itself");
    three.abort();
}

/// A client of the server for which a renewal is done at once, and answered late.
fn slow(server: &Server, by: Duration) -> Client {
    let client = server.client();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let client = client.clone();
        async move {
            let renews = *request.method() == http::Method::PUT;
            let answer = client.send(request).await;
            if renews {
                tokio::time::sleep(by).await;
            }
            answer
        }
    });
    Client::new(service, "default")
}

/// Where the API server is slow a renewal is often under way; it counts, though the process that sent it ends meanwhile.
#[tokio::test(start_paused = true)]
async fn a_renewal_under_way_does_not_keep_the_lease_from_being_handed_over() {
    let server = Server::new("Lease");
    let (first, one) = candidacy(slow(&server, Duration::from_millis(400)), "ns", "one", Times::default());
    let (second, two) = candidacy(server.client(), "ns", "two", Times::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let one = tokio::spawn(one.run(async move { drop(stopped.await) }));
    becomes(&first, true).await;
    let two = tokio::spawn(two.run(std::future::pending()));
    tokio::time::sleep(s(20)).await;
    drop(server.asked());
    while !server.asked().iter().any(|(_, asked)| asked.starts_with("PUT ")) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.send(()).unwrap();
    let took = becomes(&second, true).await;
    assert!(took <= s(1), "handed over after {took:?}");
    one.await.unwrap();
    assert!(!first.leads());
    two.abort();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder_only() {
    let server = Server::new("Lease");
    let (first, one) = candidacy(server.client(), "ns", "one", Times::default());
    let (second, two) = candidacy(server.client(), "ns", "two", Times::default());
    let one = tokio::spawn(one.run(std::future::pending()));
    becomes(&first, true).await;
    let two = tokio::spawn(two.run(std::future::pending()));
    tokio::time::sleep(s(5)).await;
    let term = *first.terms().borrow();
    for _ in 0..3 {
        server.delete(keys::LEASE);
        tokio::time::sleep(s(3)).await;
        assert!(holder(&server).starts_with("one_"), "{}", holder(&server));
        assert!(first.leads() && !second.leads());
    }
    assert_eq!(*first.terms().borrow(), term, "one term throughout");
    one.abort();
    two.abort();
}

/// A candidate that got no time for a while has not seen the last renewals: the holder may write for a whole Lease after the deletion is noticed.
#[test]
fn after_a_deletion_a_candidate_waits_a_whole_lease() {
    let lease = json!({"metadata": {"name": "l", "resourceVersion": "1"},
        "spec": {"holderIdentity": "other", "leaseDurationSeconds": 8}});
    let lease = serde_json::from_value(lease).unwrap();
    let mut candidate = super::machine::Candidate::new("me", Times::default());
    let writes = |effects: Vec<Effect>| effects.iter().any(|effect| matches!(effect, Effect::Write(_)));
    assert!(!writes(candidate.step(Input::Seen(Some(Box::new(lease))), s(10))));
    assert!(!writes(candidate.step(Input::Seen(None), s(17))));
    assert!(!writes(candidate.step(Input::Time, s(24))), "the holder may have renewed at the 17th second");
    assert!(writes(candidate.step(Input::Time, s(25))));
}

/// A process that finds no Lease when it begins does not know whether one was deleted a moment ago, whose holder still writes.
#[test]
fn without_a_lease_a_new_process_waits_a_whole_one() {
    let mut candidate = super::machine::Candidate::new("me", Times::default());
    let writes = |effects: Vec<Effect>| effects.iter().any(|effect| matches!(effect, Effect::Write(_)));
    assert!(!writes(candidate.step(Input::Time, s(1))), "nothing was looked at yet");
    assert!(!writes(candidate.step(Input::Seen(None), s(10))));
    let effects = candidate.step(Input::Time, s(17));
    assert!(effects.contains(&Effect::Wake(s(18))), "{effects:?}");
    assert!(!writes(effects));
    assert!(writes(candidate.step(Input::Time, s(18))));
}

/// The Lease as it is seen with that `spec`, in that version.
fn lease_of(version: u64, spec: &serde_json::Value) -> Input {
    let lease = json!({"metadata": {"name": "l", "resourceVersion": version.to_string()}, "spec": spec});
    Input::Seen(Some(serde_json::from_value(lease).unwrap()))
}

/// When a candidate that saw one after the other, a second apart from the 10th on, would write; looked for each second until the 2,000th.
fn writes_after(specs: &[serde_json::Value]) -> Option<u64> {
    let mut candidate = super::machine::Candidate::new("me", Times::default());
    let writes = |effects: Vec<Effect>| effects.iter().any(|effect| matches!(effect, Effect::Write(_)));
    for (at, spec) in (10..).zip(specs) {
        if writes(candidate.step(lease_of(at, spec), s(at))) {
            return Some(at);
        }
    }
    (10..2_000).find(|at| writes(candidate.step(Input::Time, s(*at))))
}

/// Whoever edits the Lease does not tell its holder, who goes by its own flag: `kubectl patch` lets no two write at once, and locks nobody out.
#[test]
fn what_somebody_else_writes_into_the_lease_takes_no_time_from_its_holder() {
    let held = |seconds: i64| json!({"holderIdentity": "other", "leaseDurationSeconds": seconds});
    let free = |seconds: i64| json!({"holderIdentity": "", "leaseDurationSeconds": seconds});
    for (what, specs, expected) in [
        ("left alone", vec![held(8)], 18),
        ("released", vec![held(8), free(1)], 11),
        ("its holder taken out", vec![held(8), free(8)], 19),
        ("the same, of a longer one", vec![held(30), free(8)], 41),
        ("all of it taken out", vec![held(8), json!({})], 19),
        ("without a holder from the first look on", vec![free(8)], 18),
        ("cut short", vec![held(8), held(0)], 19),
        ("of a negative time", vec![held(-5)], 18),
        ("of a longer time", vec![held(30)], 40),
        ("for 68 years", vec![held(i64::from(i32::MAX))], 610),
    ] {
        assert_eq!(writes_after(&specs), Some(expected), "{what}");
    }
}

/// Released, perhaps taken in between by one that nobody saw, and deleted.
#[test]
fn a_release_does_not_make_the_lease_that_follows_it_short() {
    let mut candidate = super::machine::Candidate::new("me", Times::default());
    let writes = |effects: Vec<Effect>| effects.iter().any(|effect| matches!(effect, Effect::Write(_)));
    candidate.step(lease_of(3, &json!({"holderIdentity": "", "leaseDurationSeconds": 1})), s(10));
    candidate.step(Input::Failed("no answer".to_owned()), s(11));
    assert!(!writes(candidate.step(Input::Seen(None), s(12))));
    assert!(!writes(candidate.step(Input::Time, s(19))));
    assert!(writes(candidate.step(Input::Time, s(20))));
}

/// Where there is no namespace to create it in, a read would tell nothing, twenty times a second and without a word.
#[test]
fn a_lease_that_cannot_be_created_for_want_of_a_place_is_a_failure_that_is_told() {
    assert!(is_conflict(true, 409) && is_conflict(false, 409) && is_conflict(false, 404));
    assert!(!is_conflict(true, 404) && !is_conflict(true, 403) && !is_conflict(false, 500));
}

/// One that was starved while it led, and then finds the Lease deleted: another may have taken it in between.
#[test]
fn a_former_holder_that_finds_its_lease_deleted_waits_a_whole_one() {
    let mut candidate = super::machine::Candidate::new("me", Times::default());
    let written = |effects: &[Effect]| {
        effects
            .iter()
            .find_map(|effect| if let Effect::Write(write) = effect { Some(write.lease.clone()) } else { None })
    };
    candidate.step(Input::Seen(None), s(0));
    let lease = written(&candidate.step(Input::Time, s(8))).unwrap();
    assert!(candidate.step(Input::Stored(Box::new(lease)), s(8)).contains(&Effect::Term(Some(1))));
    let effects = candidate.step(Input::Time, s(100));
    assert!(
        effects.contains(&Effect::Closed) && written(&effects).is_some(),
        "it tries to take back what is its own: {effects:?}"
    );
    assert!(matches!(candidate.step(Input::Conflict, s(100))[..], [Effect::Read { .. }]));
    assert_eq!(written(&candidate.step(Input::Read(Some(None)), s(101))), None);
    assert_eq!(written(&candidate.step(Input::Time, s(108))), None);
    assert!(written(&candidate.step(Input::Time, s(109))).is_some());
}

#[tokio::test(start_paused = true)]
async fn d4_requests_are_refused_and_ended_by_the_fence() {
    use tower::{Layer as _, Service as _, ServiceExt as _};
    let fence = Fence::closed();
    let uris = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = uris.clone();
    let inner = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        seen.lock().push(request.uri().to_string());
        async move {
            if request.uri().path() == "/slow" {
                tokio::time::sleep(s(60)).await;
            }
            Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
        }
    });
    let mut service = client::FenceLayer { fence: fence.clone() }.layer(inner);
    let request = |uri: &str| http::Request::builder().uri(uri).body(kube::client::Body::empty()).unwrap();

    let error = service.ready().await.unwrap().call(request("/a")).await.unwrap_err();
    assert!(error.is::<Fenced>() && uris.lock().is_empty(), "nothing left the process");

    fence.open_until(Instant::now() + s(3));
    service.ready().await.unwrap().call(request("/a?fieldManager=x")).await.unwrap();
    assert_eq!(uris.lock()[0], "/a?fieldManager=x&timeout=3s", "the server gives up no later than the lease ends");
    let before = Instant::now();
    service.ready().await.unwrap().call(request("/slow")).await.unwrap_err();
    assert!(before.elapsed() <= s(3) + Duration::from_millis(10), "no request outlives the lease");
}

/// The Lease as a backup has it: renewed at some time by that holder.
fn held_by(holder: &str) -> serde_json::Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": holder,
        "leaseDurationSeconds": 8, "leaseTransitions": 3, "renewTime": "2026-01-01T00:00:00.000000Z"}})
}

/// Looks every 10 ms, for a minute: never two at once. Returns when one led for good.
async fn one_at_most(candidates: &[Leadership]) -> Duration {
    let begun = Instant::now();
    let mut since = begun;
    while begun.elapsed() < s(60) {
        let leaders = candidates.iter().filter(|candidate| candidate.leads()).count();
        assert!(leaders <= 1, "two lead after {:?}", begun.elapsed());
        if leaders == 0 {
            since = Instant::now();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    since - begun
}

#[tokio::test(start_paused = true)]
async fn mend_03_after_a_backup_was_put_back_one_leads_again_and_never_two() {
    for restarted in [true, false] {
        for what in ["held by the leader", "held by somebody gone", "held by the other one", "none"] {
            let server = Server::new("Lease");
            let (first, one) = candidacy(server.client(), "ns", "one", Times::default());
            let (second, two) = candidacy(server.client(), "ns", "two", Times::default());
            let mut backup = server.backup();
            let old = match what {
                "held by somebody gone" => Some("gone_0".to_owned()),
                "held by the other one" => Some(two.machine.identity().to_owned()),
                _ => None,
            };
            if let Some(old) = old {
                server.put(keys::LEASE, held_by(&old));
                backup = server.backup();
                server.delete(keys::LEASE);
            }
            let histories = [Watching::default(), Watching::default()];
            let one = tokio::spawn(one.watching(histories[0].clone()).run(std::future::pending()));
            becomes(&first, true).await;
            let two = tokio::spawn(two.watching(histories[1].clone()).run(std::future::pending()));
            if what == "held by the leader" {
                backup = server.backup();
            }
            tokio::time::sleep(s(120)).await;
            assert!(first.leads() && !second.leads());
            server.restore(backup, restarted);
            let both = [first, second];
            let took = one_at_most(&both).await;
            assert!(took < s(30), "{what}, restarted {restarted}: nobody led for {took:?}");
            assert!(both.iter().any(Leadership::leads), "{what}, restarted {restarted}");
            one.abort();
            two.abort();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn mend_03_that_nobody_leads_is_said_once_a_minute() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let server = Server::new("Lease");
    server.breaks(&[http::Method::POST, http::Method::PUT]);
    let (leadership, one) = candidacy(server.client(), "ns", "one", Times::default());
    let one = tokio::spawn(one.run(std::future::pending()));
    tokio::time::sleep(s(200)).await;
    assert!(!leadership.leads());
    let told = |what: &str| lines.text().lines().filter(|line| line.contains(what)).count();
    assert_eq!(told("nobody leads"), 4, "after 16 s and then each minute: {}", lines.text());
    assert_eq!(told("could not be written"), 4, "tried twice a second: {}", lines.text());
    server.breaks(&[]);
    becomes(&leadership, true).await;
    tokio::time::sleep(s(300)).await;
    assert_eq!(told("nobody leads"), 4, "{}", lines.text());
    one.abort();
}

/// A process that gets no time for longer than its Lease lasts loses it, and takes it back by itself.
#[tokio::test(start_paused = true)]
async fn mend_03_a_starved_leader_takes_its_lease_back() {
    let server = Server::new("Lease");
    let (leadership, one) = candidacy(server.client(), "ns", "one", Times::default());
    let one = tokio::spawn(one.run(std::future::pending()));
    becomes(&leadership, true).await;
    for round in 0..20 {
        let term = *leadership.terms().borrow();
        // All at once: no task has run in between.
        tokio::time::advance(s(7 + round)).await;
        assert!(!leadership.leads(), "the fence closed by the clock alone");
        let before = Instant::now();
        leadership.terms().wait_for(|now| now.is_some() && *now != term).await.unwrap();
        assert!(leadership.leads() && before.elapsed() < s(2), "a new term after {:?}", before.elapsed());
    }
    one.abort();
}
