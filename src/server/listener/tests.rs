//! Deadlines and ends of connections, in virtual time, over streams in memory.

mod memory;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Extension;
use axum::routing::post;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::accept::{self, Accept};
use super::connection::Transport;
use super::quota::Charge;
use super::{Limits, Server};
use crate::server::shutdown::{Phase, Shutdown};
use crate::server::telemetry::metrics::{Cause, Metrics, Port, PortCause};

const PORT: Port = Port { port: "test" };
const REQUEST: &[u8] = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";

impl Transport for DuplexStream {
    async fn first_byte(&self) -> io::Result<u8> {
        Ok(22)
    }
}

type Offer = io::Result<(DuplexStream, IpAddr)>;

struct Queue {
    offers: mpsc::UnboundedReceiver<Offer>,
    calls: Arc<AtomicUsize>,
}

impl Accept for Queue {
    type Stream = DuplexStream;
    async fn accept(&mut self) -> Offer {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match self.offers.recv().await {
            Some(offer) => offer,
            None => std::future::pending().await,
        }
    }
}

struct Running {
    offers: mpsc::UnboundedSender<Offer>,
    calls: Arc<AtomicUsize>,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
    ended: JoinHandle<usize>,
}

fn start(limits: Limits) -> Running {
    let router = Router::new()
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/prove", post(|Extension(charge): Extension<Arc<Charge>>| async move { charge.account().prove() }))
        .route("/slow", post(|| async { sleep(Duration::from_secs(5)).await }))
        .route("/quarter", post(|| async { vec![b'x'; 256 * 1024] }))
        .route("/large", post(|| async { vec![b'x'; 1 << 20] }));
    start_with(limits, router, Metrics::new())
}

fn start_with(limits: Limits, router: Router, metrics: Arc<Metrics>) -> Running {
    let (offers, queue) = mpsc::unbounded_channel();
    let (shutdown, calls) = (Shutdown::new(), Arc::default());
    let server =
        Server { name: "test", router, tls: None, limits, shutdown: shutdown.clone(), metrics: metrics.clone() };
    let queue = Queue { offers: queue, calls: Arc::clone(&calls) };
    let ended = tokio::spawn(accept::serve(Arc::new(server), queue));
    Running { offers, calls, shutdown, metrics, ended }
}

impl Running {
    fn connect(&self) -> DuplexStream {
        self.connect_from(Ipv4Addr::LOCALHOST.into())
    }

    /// A connection that carried what the server understood.
    async fn connect_proven(&self) -> DuplexStream {
        let mut client = self.connect();
        client.write_all(b"POST /prove HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        answer(&mut client, 0).await.unwrap();
        client
    }

    fn connect_from(&self, from: IpAddr) -> DuplexStream {
        let (client, server) = duplex(64 * 1024);
        self.offers.send(Ok((server, from))).unwrap();
        client
    }

    fn ended_by(&self, cause: &'static str) -> u64 {
        self.metrics.connections_ended.get_or_create(&PortCause { port: "test", cause }).get()
    }
}

/// One answer's head and a body of `length` bytes; `None` when the connection ended before it began.
async fn answer(client: &mut DuplexStream, length: usize) -> Option<String> {
    let mut all = Vec::new();
    let mut byte = [0; 1];
    while !all.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte).await {
            Ok(1) => all.push(byte[0]),
            _ if all.is_empty() => return None,
            other => panic!("an answer broke off: {other:?} after {}", String::from_utf8_lossy(&all)),
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).await.unwrap();
    Some(String::from_utf8(all).unwrap().to_ascii_lowercase())
}

/// Waits for the end of the connection and says how long it took.
async fn until_end(client: &mut DuplexStream) -> Duration {
    let from = Instant::now();
    let mut rest = Vec::new();
    // Reset or end: both are the end.
    let _ = client.read_to_end(&mut rest).await;
    from.elapsed()
}

fn about(actual: Duration, expected: Duration) {
    let slack = Duration::from_millis(50);
    assert!(actual >= expected && actual <= expected + slack, "{actual:?}, expected {expected:?}");
}

#[test]
fn b2_the_idle_deadline_is_longer_than_that_of_any_client_we_serve() {
    assert!(Limits::default().idle >= Duration::from_secs(120));
}

/// What docs/tasks/certificates.md says of how long a caller whose authority was taken away is still heard: over HTTP/2 until its connection is
/// told to end, over HTTP/1.1 until it has been idle after that.
#[test]
fn a_connection_ends_within_what_the_page_of_certificates_says() {
    let Limits { age, idle, .. } = Limits::default();
    let oldest = age + age / 10;
    let page = include_str!("../../../docs/tasks/certificates.md").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("within six minutes over HTTP/2, which API servers speak, and within nine over HTTP/1.1"));
    assert!(oldest < Duration::from_secs(6 * 60) && oldest + idle < Duration::from_secs(9 * 60));
}

#[tokio::test(start_paused = true)]
async fn b2_a_request_after_89_idle_seconds_is_answered_10000_times() {
    let running = start(Limits::default());
    let mut client = running.connect();
    let mut connections = 1;
    for round in 0..10_000 {
        client.write_all(REQUEST).await.unwrap();
        let head = answer(&mut client, 2).await.unwrap_or_else(|| panic!("connection lost in round {round}"));
        if head.contains("connection: close") {
            client = running.connect();
            connections += 1;
        }
        sleep(Duration::from_secs(89)).await;
    }
    assert!(connections > 1, "connections are retired by age");
    assert_eq!(running.ended_by("idle") + running.ended_by("head"), 0);
}

#[tokio::test(start_paused = true)]
async fn b1_a_silent_connection_ends_at_the_idle_deadline_and_not_before() {
    let limits = Limits::default();
    let running = start(limits);
    about(until_end(&mut running.connect()).await, limits.idle);

    let mut used = running.connect();
    used.write_all(REQUEST).await.unwrap();
    answer(&mut used, 2).await.unwrap();
    about(until_end(&mut used).await, limits.idle);
    assert_eq!(running.ended_by("idle"), 2);
}

#[tokio::test(start_paused = true)]
async fn b1_a_head_of_one_byte_a_second_ends_at_the_head_deadline_also_on_a_used_connection() {
    let limits = Limits::default();
    let running = start(limits);
    let mut client = running.connect();
    client.write_all(REQUEST).await.unwrap();
    answer(&mut client, 2).await.unwrap();
    sleep(Duration::from_secs(60)).await;

    let (mut reader, mut writer) = tokio::io::split(client);
    let begun = Instant::now();
    let trickle = tokio::spawn(async move {
        for byte in REQUEST {
            if writer.write_all(std::slice::from_ref(byte)).await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
    });
    let mut rest = Vec::new();
    let _ = reader.read_to_end(&mut rest).await;
    about(begun.elapsed(), limits.head);
    trickle.await.unwrap();
    assert_eq!(running.ended_by("head"), 1);
}

#[tokio::test(start_paused = true)]
async fn b1_a_request_that_takes_long_is_not_cut_by_the_deadlines_of_heads() {
    let limits = Limits { head: Duration::from_secs(1), idle: Duration::from_secs(2), ..Limits::default() };
    let running = start(limits);
    let mut client = running.connect();
    client.write_all(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    assert!(answer(&mut client, 0).await.unwrap().starts_with("http/1.1 200"));
    about(until_end(&mut client).await, limits.idle);
}

/// What comes while a request is answered may be its body, so that nobody looks for a head there: a second request in it could be one that a
/// proxy before us understands differently.
#[tokio::test(start_paused = true)]
async fn b7_a_request_that_comes_before_the_answer_to_the_one_ahead_of_it_is_400_and_the_end() {
    const SLOW: &[u8] = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    const AMBIGUOUS: &[u8] =
        b"POST /slow HTTP/1.1\nHost: x\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\r\n\r\n";
    let running = start(Limits::default());
    for second in [REQUEST, AMBIGUOUS] {
        let (mut together, mut meanwhile) = (running.connect(), running.connect());
        together.write_all(&[SLOW, second].concat()).await.unwrap();
        meanwhile.write_all(SLOW).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        meanwhile.write_all(second).await.unwrap();
        for client in [&mut together, &mut meanwhile] {
            assert!(answer(client, 0).await.unwrap().starts_with("http/1.1 200"));
            let refused = answer(client, 0).await.unwrap();
            assert!(refused.starts_with("http/1.1 400") && refused.contains("connection: close"), "{refused}");
            assert_eq!(until_end(client).await, Duration::ZERO);
        }
    }
    let mut waiting = running.connect();
    for _ in 0..3 {
        waiting.write_all(REQUEST).await.unwrap();
        assert!(answer(&mut waiting, 2).await.unwrap().starts_with("http/1.1 200"), "who waits is served");
    }
    assert_eq!(running.metrics.shed.get_or_create(&Cause { cause: "pipelined" }).get(), 4);
}

/// Alert `DrawbridgeNoReplicaAnswers` goes by it.
#[tokio::test(start_paused = true)]
async fn who_serves_a_port_says_so_before_the_first_connection() {
    let running = start(Limits::default());
    sleep(Duration::from_millis(1)).await;
    let text = running.metrics.text().unwrap();
    assert!(text.lines().any(|line| line == r#"drawbridge_connections{port="test"} 0"#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn b1_a_client_that_does_not_read_its_answer_is_let_go() {
    let limits = Limits::default();
    let running = start(limits);
    let mut client = running.connect();
    client.write_all(b"POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    sleep(limits.write + Duration::from_secs(1)).await;
    assert_eq!(running.ended_by("write"), 1);
}

#[tokio::test(start_paused = true)]
async fn b1_the_cap_on_connections_makes_others_wait_and_not_fail() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let running = start(limits);
    let (first, _second) = (running.connect_proven().await, running.connect_proven().await);
    let mut third = running.connect();
    third.write_all(REQUEST).await.unwrap();
    assert!(timeout(Duration::from_secs(5), answer(&mut third, 2)).await.is_err(), "there is no room");
    assert_eq!(running.metrics.connections.get_or_create(&PORT).get(), 2);
    drop(first);
    assert!(answer(&mut third, 2).await.is_some());
}

#[test]
fn b1_connections_leave_half_of_the_descriptors_to_others() {
    assert_eq!(Limits::default().within(1024).connections, 512);
    assert_eq!(Limits::default().within(1 << 20).connections, Limits::default().connections);
    assert_eq!(Limits::default().within(0).connections, 1);
}

/// Callers of the catalogue are tenants: who fills that port takes no descriptor from watches, whatever else is full.
#[test]
fn b1_all_ports_together_leave_a_quarter_of_the_descriptors_to_watches_and_files() {
    for descriptors in [64, 1024, 4096, 1 << 20] {
        let ports = [Limits::default(), Limits::catalogue(), Limits::admin(), Limits::admin()];
        let taken: usize = ports.map(|limits| limits.within(descriptors).connections).iter().sum();
        assert!(taken as u64 <= descriptors / 4 * 3, "{taken} of {descriptors}");
    }
    assert_eq!(Limits::catalogue().within(1 << 20), Limits::catalogue());
}

#[tokio::test(start_paused = true)]
async fn b6_accepting_backs_off_when_descriptors_run_out_and_recovers() {
    let running = start(Limits::default());
    const EMFILE: i32 = 24;
    for _ in 0..20 {
        running.offers.send(Err(io::Error::from_raw_os_error(EMFILE))).unwrap();
    }
    let begun = Instant::now();
    let mut client = running.connect();
    client.write_all(REQUEST).await.unwrap();
    assert!(answer(&mut client, 2).await.is_some(), "the process accepts connections again");
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(10), "20 failures without a pause: {took:?}");
    assert!(took < Duration::from_secs(20), "pauses do not grow without end: {took:?}");
    assert_eq!(running.metrics.accept_errors.get_or_create(&PORT).get(), 20);

    let calls = running.calls.load(Ordering::Relaxed);
    running.offers.send(Err(io::ErrorKind::ConnectionAborted.into())).unwrap();
    let begun = Instant::now();
    let mut client = running.connect();
    client.write_all(REQUEST).await.unwrap();
    answer(&mut client, 2).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO, "one client that went away is no reason to pause");
    assert!(running.calls.load(Ordering::Relaxed) <= calls + 2);
}

#[tokio::test(start_paused = true)]
async fn c7_a_connection_past_its_age_is_retired_with_its_next_answer() {
    let limits = Limits::default();
    let running = start(limits);
    let mut client = running.connect();
    let begun = Instant::now();
    loop {
        client.write_all(REQUEST).await.unwrap();
        if answer(&mut client, 2).await.unwrap().contains("connection: close") {
            break;
        }
        sleep(Duration::from_secs(7)).await;
    }
    let (age, slack) = (begun.elapsed(), limits.age / 10 + Duration::from_secs(8));
    assert!(age >= limits.age && age <= limits.age + slack, "{age:?}");
    assert_eq!(until_end(&mut client).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn d1_while_draining_every_answer_asks_to_reconnect_and_new_connections_are_served() {
    let running = start(Limits::default());
    let mut old = running.connect();
    old.write_all(REQUEST).await.unwrap();
    assert!(!answer(&mut old, 2).await.unwrap().contains("connection: close"));
    running.shutdown.advance(Phase::Draining);
    sleep(Duration::from_secs(10)).await;
    for client in [&mut old, &mut running.connect()] {
        client.write_all(REQUEST).await.unwrap();
        assert!(answer(client, 2).await.unwrap().contains("connection: close"));
    }
    assert!(!running.ended.is_finished());
}

#[tokio::test(start_paused = true)]
async fn d1_closing_answers_what_is_under_way_and_queued_and_ends_before_the_grace() {
    let limits = Limits::default();
    let running = start(limits);
    let (mut slow, mut idle) = (running.connect(), running.connect());
    slow.write_all(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    idle.write_all(REQUEST).await.unwrap();
    answer(&mut idle, 2).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    // Connected for the kernel, not yet accepted by us; its request comes a moment later.
    let mut queued = running.connect();
    running.shutdown.advance(Phase::Closing);
    let begun = Instant::now();
    sleep(Duration::from_millis(500)).await;
    queued.write_all(REQUEST).await.unwrap();
    assert!(answer(&mut queued, 2).await.unwrap().contains("connection: close"));
    assert!(answer(&mut slow, 0).await.unwrap().contains("connection: close"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(until_end(&mut idle).await, Duration::ZERO, "idle connections ended meanwhile");
    assert_eq!(running.ended.await.unwrap(), 0);
    assert!(begun.elapsed() < limits.grace, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn d1_what_outlasts_the_grace_is_cut_off_and_counted() {
    let limits = Limits { grace: Duration::from_secs(2), ..Limits::default() };
    let running = start(limits);
    let mut slow = running.connect();
    slow.write_all(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    sleep(Duration::from_millis(1)).await;
    running.shutdown.advance(Phase::Closing);
    assert_eq!(running.ended.await.unwrap(), 1);
    assert!(answer(&mut slow, 0).await.is_none());
    assert_eq!(running.metrics.connections_ended.get_or_create(&PortCause { port: "test", cause: "grace" }).get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a2_reading_stops_within_64_kib_of_the_cap() {
    const CHUNK: &str = "10000";
    let (metrics, limits) = (Metrics::new(), Limits::default());
    let router = crate::server::routes::Reviews::new(Default::default(), metrics.clone()).router();
    let running = start_with(limits, router, metrics);
    let (mut reader, mut writer) = tokio::io::split(running.connect());
    let sent = Arc::new(AtomicUsize::new(0));
    let sending = tokio::spawn({
        let sent = sent.clone();
        async move {
            let path = crate::domain::keys::PATH_INJECT;
            let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n");
            writer.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes()).await?;
            loop {
                writer.write_all(format!("{CHUNK}\r\n").as_bytes()).await?;
                for _ in 0..64 {
                    writer.write_all(&[b' '; 1024]).await?;
                    sent.fetch_add(1024, Ordering::Relaxed);
                }
                writer.write_all(b"\r\n").await?;
            }
            #[expect(unreachable_code, reason = "names the error type")]
            Ok::<(), io::Error>(())
        }
    });
    let mut back = Vec::new();
    let _ = reader.read_to_end(&mut back).await;
    assert!(back.starts_with(b"HTTP/1.1 413 "), "{}", String::from_utf8_lossy(&back));
    assert!(sending.await.unwrap().is_err());
    // What was written and not read is in the pipe between client and server, which holds 64 KiB.
    let read_at_most = sent.load(Ordering::Relaxed);
    assert!(
        read_at_most <= limits.body_size + 64 * 1024 + 64 * 1024,
        "{} KiB beyond",
        (read_at_most - limits.body_size) / 1024
    );
}

/// A Pod of an IPv6 cluster has no other address, and its probes come to that.
#[tokio::test]
async fn every_address_of_the_host_means_those_of_both_families() {
    let socket = super::bind((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
    let port = socket.local_addr().unwrap().port();
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    if super::bind((Ipv6Addr::LOCALHOST, 0).into()).is_ok() {
        TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.unwrap();
    }
}
