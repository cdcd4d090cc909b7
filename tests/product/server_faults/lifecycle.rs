//! D1 and C7: replicas that leave while clients go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use drawbridge::runtime::server::Limits;
use drawbridge::runtime::shutdown::Phase;
use drawbridge::runtime::telemetry::metrics::Port;
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
async fn steady(endpoints: Arc<Endpoints>, stop: Arc<AtomicBool>, pace: Duration) -> (u32, Vec<String>) {
    let (mut asked, mut failures) = (0, Vec::new());
    let mut client = endpoints.connect().await;
    let mut tick = tokio::time::interval(pace);
    while !stop.load(Ordering::Relaxed) {
        tick.tick().await;
        asked += 1;
        match client.review("u-1").await {
            Ok((200, false)) => {}
            Ok((200, true)) => client = endpoints.connect().await,
            other => {
                failures.push(format!("{other:?}"));
                client = endpoints.connect().await;
            }
        }
    }
    (asked, failures)
}

async fn leave(endpoint_delay: Duration) {
    let limits = Limits { quiet: Duration::from_millis(300), grace: Duration::from_secs(5), ..Limits::default() };
    let endpoints = Arc::new(Endpoints {
        replicas: [start(limits), start(limits)],
        routed: Mutex::new(vec![0, 1]),
        next: AtomicU32::new(0),
    });
    let stop = Arc::new(AtomicBool::new(false));
    // 25 clients at 50 ms: 500 reviews a second.
    let clients: Vec<_> =
        (0..25).map(|_| tokio::spawn(steady(endpoints.clone(), stop.clone(), Duration::from_millis(50)))).collect();
    let accepted = || endpoints.replicas[0].metrics.connections_accepted.get_or_create(&PORT).get();
    eventually("clients are connected", || accepted() >= 5).await;

    let leaving = &endpoints.replicas[0];
    let drain_delay = Duration::from_millis(1_500);
    leaving.shutdown.advance(Phase::Draining);
    tokio::time::sleep(endpoint_delay).await;
    *endpoints.routed.lock() = vec![1];
    tokio::time::sleep(drain_delay - endpoint_delay).await;
    leaving.shutdown.advance(Phase::Closing);
    let closing = Instant::now();
    eventually("the replica ends", || leaving.ended.is_finished()).await;
    let took = closing.elapsed();
    stop.store(true, Ordering::Relaxed);

    let (mut asked, mut failures) = (0, Vec::new());
    for client in clients {
        let (count, failed) = client.await.unwrap();
        asked += count;
        failures.extend(failed);
    }
    assert!(failures.is_empty(), "{} of {asked} lost: {:?}", failures.len(), failures.first());
    assert!(asked > 300, "{asked} reviews are no load");
    assert!(took < limits.grace, "{took:?} to end");
    assert_eq!(leaving.connections_ended("grace"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d1_a_replica_leaves_under_load_and_no_review_is_lost() {
    let _turn = turn().await;
    for endpoint_delay in [0, 700, 1_400] {
        leave(Duration::from_millis(endpoint_delay)).await;
    }
}

#[tokio::test]
async fn c7_connections_are_replaced_within_their_age_and_no_review_is_lost() {
    let age = Duration::from_millis(200);
    let running = start(Limits { age, ..Limits::default() });
    let mut client = Client::new(&running).await;
    let mut opened = Instant::now();
    let mut replaced = 0;
    while replaced < 5 {
        let (status, close) = client.review("u-1").await.unwrap();
        assert_eq!(status, 200);
        assert!(close || opened.elapsed() < age * 2, "a connection of {:?}", opened.elapsed());
        if close {
            assert!(opened.elapsed() >= age - Duration::from_millis(20), "too early: {:?}", opened.elapsed());
            client = Client::new(&running).await;
            opened = Instant::now();
            replaced += 1;
        }
    }
}
