//! D1 and C7: replicas that leave while clients go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use drawbridge::server::listener::Limits;
use drawbridge::server::shutdown::Phase;
use drawbridge::server::telemetry::metrics::Port;
use parking_lot::Mutex;

use super::support::{Client, Running, eventually, start, turn};

const PORT: Port = Port { port: "webhook" };

/// What kube-proxy knows: the replicas that new connections go to.
struct Endpoints {
    replicas: [Running; 2],
    routed: Mutex<Vec<usize>>,
    next: AtomicU32,
}

impl Endpoints {
    async fn connect(&self) -> Client {
        let replica = {
            let routed = self.routed.lock();
            let turn = usize::try_from(self.next.fetch_add(1, Ordering::Relaxed)).unwrap();
            routed[turn % routed.len()]
        };
        Client::new(&self.replicas[replica]).await
    }
}

/// Reviews at a steady pace on one keep-alive connection, reconnecting only when asked to; like the API server, a
/// request that fails is not tried again.
async fn steady(endpoints: Arc<Endpoints>, stop: Arc<AtomicBool>, answered: Arc<AtomicU32>) -> Vec<String> {
    let mut failures = Vec::new();
    let mut client = endpoints.connect().await;
    let mut tick = tokio::time::interval(Duration::from_millis(20));
    while !stop.load(Ordering::Relaxed) {
        tick.tick().await;
        match client.review("u-1").await {
            Ok((200, close)) => {
                answered.fetch_add(1, Ordering::Relaxed);
                if close {
                    client = endpoints.connect().await;
                }
            }
            other => {
                failures.push(format!("{other:?}"));
                client = endpoints.connect().await;
            }
        }
    }
    failures
}

/// A replica leaves; `late` reviews are answered before new connections go elsewhere. Each step comes after a number of answers, and
/// the deadlines are longer than any machine is slow.
async fn leave(late: u32) {
    const EVENT: u32 = 200;
    let limits = Limits { quiet: Duration::from_secs(60), grace: Duration::from_secs(120), ..Limits::default() };
    let endpoints = Arc::new(Endpoints {
        replicas: [start(limits), start(limits)],
        routed: Mutex::new(vec![0, 1]),
        next: AtomicU32::new(0),
    });
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let clients: Vec<_> =
        (0..25).map(|_| tokio::spawn(steady(endpoints.clone(), stop.clone(), answered.clone()))).collect();
    let more = async |count: u32| {
        let goal = answered.load(Ordering::Relaxed) + count;
        eventually("more answers", || answered.load(Ordering::Relaxed) >= goal).await;
    };
    more(EVENT).await;
    let leaving = &endpoints.replicas[0];
    let accepted = leaving.metrics.connections_accepted.get_or_create(&PORT).get();
    assert!(accepted >= 5, "{accepted} connections are no load");

    leaving.shutdown.advance(Phase::Draining);
    more(late).await;
    *endpoints.routed.lock() = vec![1];
    more(EVENT).await;
    leaving.shutdown.advance(Phase::Closing);
    eventually("the replica ends", || leaving.ended.is_finished()).await;
    more(EVENT).await;
    stop.store(true, Ordering::Relaxed);

    let mut failures = Vec::new();
    for client in clients {
        failures.extend(client.await.unwrap());
    }
    let asked = answered.load(Ordering::Relaxed);
    assert!(failures.is_empty(), "{} beside {asked} answers: {:?}", failures.len(), failures.first());
    assert_eq!(leaving.connections_ended("grace"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_a_replica_leaves_under_load_and_no_review_is_lost() {
    let _turn = turn().await;
    for late in [0, 100, 500] {
        leave(late).await;
    }
}

/// How old a connection may become is held in virtual time, by the tests of the server.
#[tokio::test]
async fn c7_connections_are_replaced_at_their_age_and_no_review_is_lost() {
    let age = Duration::from_millis(200);
    let running = start(Limits { age, ..Limits::default() });
    for _ in 0..5 {
        let opened = Instant::now();
        let mut client = Client::new(&running).await;
        loop {
            let (status, close) = client.review("u-1").await.unwrap();
            assert_eq!(status, 200);
            if close {
                break;
            }
        }
        assert!(opened.elapsed() >= age, "too early: {:?}", opened.elapsed());
    }
}
