//! B1: slow and silent clients beside a healthy one.

use std::time::{Duration, Instant};

use drawbridge::runtime::descriptors;
use drawbridge::runtime::server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::support::{Client, PATH, PATIENCE, Running, eventually, start, turn};

#[test]
fn b1_the_deadlines_in_force_are_those_promised() {
    let limits = Limits::default();
    assert_eq!((limits.handshake, limits.head), (Duration::from_secs(5), Duration::from_secs(10)));
}

async fn until_closed(stream: &mut (impl AsyncReadExt + Unpin)) -> Duration {
    let begun = Instant::now();
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("closed by its deadline");
    begun.elapsed()
}

#[tokio::test]
async fn b1_a_hello_of_one_byte_at_a_time_ends_at_the_handshake_deadline() {
    let limits = Limits { handshake: Duration::from_millis(700), ..Limits::default() };
    let running = start(limits);
    for hello in [&[][..], &[22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3, 7, 7, 7, 7, 7, 7, 7, 7, 7]] {
        let (mut reader, mut writer) = TcpStream::connect(running.address).await.unwrap().into_split();
        let hello = hello.to_vec();
        let trickle = tokio::spawn(async move {
            for byte in hello {
                if writer.write_all(&[byte]).await.is_err() {
                    return writer;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            writer
        });
        let took = until_closed(&mut reader).await;
        assert!(took >= Duration::from_millis(600) && took < Duration::from_secs(3), "{took:?}");
        drop(trickle.await.unwrap());
    }
    eventually("both are counted", || running.handshakes_failed("timeout") == 2).await;
}

#[tokio::test]
async fn b1_a_slow_head_over_tls_ends_at_the_head_deadline_and_a_slow_body_is_answered() {
    let limits = Limits { head: Duration::from_millis(500), ..Limits::default() };
    let running = start(limits);
    let mut stream = running.connect("http/1.1").await;
    stream.write_all(b"POST / HTTP/1.1\r\nHo").await.unwrap();
    let took = until_closed(&mut stream).await;
    assert!(took >= Duration::from_millis(450) && took < Duration::from_secs(3), "{took:?}");
    eventually("it is counted", || running.connections_ended("head") == 1).await;

    let slow = PATH.replace("10s", "1s");
    let head =
        format!("POST {slow} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{");
    let begun = Instant::now();
    let answer = running.exchange(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("DeadlineExceeded: "), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(1), "before the caller gives up: {:?}", begun.elapsed());
}

/// The best of five rounds: what the machine does besides disturbs some of them, what we do wrong all.
async fn p99(running: &Running) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        best = best.min(round(running).await);
    }
    best
}

/// The 99th percentile of 400 reviews on one connection.
async fn round(running: &Running) -> Duration {
    let mut client = Client::new(running).await;
    let mut spent = Vec::new();
    for _ in 0..400 {
        let begun = Instant::now();
        client.review("u-1").await.unwrap();
        spent.push(begun.elapsed());
    }
    spent.sort_unstable();
    spent[395]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_five_thousand_idle_sockets_do_not_slow_a_healthy_client() {
    const SOCKETS: usize = 5_000;
    let _turn = turn().await;
    let (have, needed) = (descriptors::raise(), 2 * SOCKETS as u64 + 500);
    assert!(have >= needed, "this test opens {needed} files, {have} are allowed: raise the hard limit (ulimit -Hn)");
    let limits = Limits { handshake: Duration::from_secs(5), ..Limits::default() };
    let running = start(limits);
    let alone = p99(&running).await;
    let mut idle = Vec::new();
    for _ in 0..SOCKETS {
        idle.push(TcpStream::connect(running.address).await.unwrap());
    }
    let crowded = p99(&running).await;
    // Below a millisecond it is the machine's scheduler that is measured.
    assert!(crowded < (alone * 2).max(Duration::from_millis(5)), "alone {alone:?}, crowded {crowded:?}");
    let mut closed = JoinSet::new();
    for mut stream in idle {
        closed.spawn(async move { until_closed(&mut stream).await });
    }
    assert_eq!(closed.join_all().await.len(), SOCKETS);
    eventually("all are counted", || running.handshakes_failed("timeout") == SOCKETS as u64).await;
    running.healthy().await;
}
