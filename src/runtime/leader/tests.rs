//! The plan as a table with a driven clock, the fence, and the protocol against a small API server in memory.

use super::*;

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
        ("no lease, never one", None, None, None, 0, Step::Create),
        ("released", Some(&free), None, None, 10, Step::Take),
        ("held by another, fresh", Some(&other), None, None, 10, Step::Wait(s(18))),
        ("held by another, nearly over", Some(&other), None, None, 17, Step::Wait(s(18))),
        ("held by another, over", Some(&other), None, None, 18, Step::Take),
        ("left over from a lost term of ours", Some(&me), None, None, 11, Step::Take),
        ("deleted while another held it", None, Some(&other), None, 12, Step::Wait(s(18))),
        ("deleted, and its time is over", None, Some(&other), None, 18, Step::Create),
        ("deleted after release", None, Some(&free), None, 12, Step::Create),
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
fn two_replicas_never_write_at_once_whatever_their_clocks_say() {
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
async fn the_fence_closes_by_the_clock_alone() {
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

mod server {
    //! Just enough of an API server for one Lease: versions, conflicts, and a watch.

    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{Method, Request, Response};
    use http_body_util::combinators::UnsyncBoxBody;
    use http_body_util::{BodyExt, Full, StreamBody};
    use hyper::body::{Bytes, Frame};
    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tokio::sync::broadcast;

    type Answer = UnsyncBoxBody<Bytes, Infallible>;

    #[derive(Clone)]
    pub(super) struct Server {
        state: Arc<Mutex<(u64, Option<Value>)>>,
        events: broadcast::Sender<Value>,
    }

    impl Server {
        pub(super) fn new() -> Self {
            Self { state: Arc::default(), events: broadcast::channel(64).0 }
        }

        pub(super) fn client(&self) -> kube::Client {
            let server = self.clone();
            let service = tower::service_fn(move |request| {
                let server = server.clone();
                async move { Ok::<_, Infallible>(server.answer(request).await) }
            });
            kube::Client::new(service, "default")
        }

        pub(super) fn holder(&self) -> String {
            let state = self.state.lock();
            let lease = state.1.as_ref();
            lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str()).unwrap_or_default().to_owned()
        }

        pub(super) fn delete(&self) {
            let mut state = self.state.lock();
            state.0 += 1;
            if let Some(mut gone) = state.1.take() {
                gone["metadata"]["resourceVersion"] = json!(state.0.to_string());
                drop(self.events.send(json!({"type": "DELETED", "object": gone})));
            }
        }

        async fn answer(&self, request: Request<Body>) -> Response<Answer> {
            let (parts, body) = request.into_parts();
            if parts.uri.query().is_some_and(|query| query.contains("watch=true")) {
                return Response::new(self.watch());
            }
            let sent: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or(Value::Null);
            let (code, answer) = self.decide(&parts.method, parts.uri.path().ends_with("/leases"), sent);
            let bytes = Full::new(Bytes::from(answer.to_string()));
            Response::builder().status(code).body(bytes.boxed_unsync()).unwrap()
        }

        fn watch(&self) -> Answer {
            let events = self.events.subscribe();
            let lines = futures::stream::unfold(events, |mut events| async move {
                let event = events.recv().await.ok()?;
                Some((Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{event}\n")))), events))
            });
            StreamBody::new(lines).boxed_unsync()
        }

        fn decide(&self, method: &Method, collection: bool, mut sent: Value) -> (u16, Value) {
            let mut state = self.state.lock();
            let refuse = |code: u16, reason: &str| {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                    "reason": reason, "message": reason});
                (code, status)
            };
            match (method, collection, &state.1) {
                (&Method::GET, true, lease) => {
                    let items: Vec<_> = lease.iter().cloned().collect();
                    let metadata = json!({"resourceVersion": state.0.to_string()});
                    (200, json!({"kind": "LeaseList", "apiVersion": "v1", "metadata": metadata, "items": items}))
                }
                (&Method::GET, false, Some(lease)) => (200, lease.clone()),
                (_, false, None) => refuse(404, "NotFound"),
                (&Method::POST, true, Some(_)) => refuse(409, "AlreadyExists"),
                (&Method::PUT, false, Some(old))
                    if sent["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"] =>
                {
                    refuse(409, "Conflict")
                }
                (&Method::POST | &Method::PUT, _, old) => {
                    let kind = if old.is_some() { "MODIFIED" } else { "ADDED" };
                    state.0 += 1;
                    sent["metadata"]["resourceVersion"] = json!(state.0.to_string());
                    sent["metadata"]["uid"] = json!("u");
                    state.1 = Some(sent.clone());
                    drop(self.events.send(json!({"type": kind, "object": sent.clone()})));
                    (200, sent)
                }
                _ => refuse(405, "MethodNotAllowed"),
            }
        }
    }
}

async fn becomes(leadership: &Leadership, leader: bool) -> Duration {
    let before = Instant::now();
    leadership.terms().wait_for(|term| term.is_some() == leader).await.unwrap();
    before.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_graceful_end_hands_over_at_once_and_a_kill_within_the_lease() {
    let server = server::Server::new();
    let (first, one) = candidacy(server.client(), "ns", "one", Times::default());
    let (second, two) = candidacy(server.client(), "ns", "two", Times::default());
    let (third, three) = candidacy(server.client(), "ns", "three", Times::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let one = tokio::spawn(one.run(async move { drop(stopped.await) }));
    becomes(&first, true).await;
    assert!(server.holder().starts_with("one_"));
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

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again_by_its_holder_only() {
    let server = server::Server::new();
    let (first, one) = candidacy(server.client(), "ns", "one", Times::default());
    let (second, two) = candidacy(server.client(), "ns", "two", Times::default());
    let one = tokio::spawn(one.run(std::future::pending()));
    becomes(&first, true).await;
    let two = tokio::spawn(two.run(std::future::pending()));
    tokio::time::sleep(s(5)).await;
    let term = *first.terms().borrow();
    for _ in 0..3 {
        server.delete();
        tokio::time::sleep(s(3)).await;
        assert!(server.holder().starts_with("one_"), "{}", server.holder());
        assert!(first.leads() && !second.leads());
    }
    assert_eq!(*first.terms().borrow(), term, "one term throughout");
    one.abort();
    two.abort();
}

#[tokio::test(start_paused = true)]
async fn requests_are_refused_and_ended_by_the_fence() {
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
