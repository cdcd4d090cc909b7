//! B1: slow and silent clients beside a healthy one.

use std::time::{Duration, Instant};

use drawbridge::server::descriptors;
use drawbridge::server::listener::Limits;
use drawbridge::server::telemetry::metrics::Port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::support::{Client, PATH, PATIENCE, eventually, start, turn};

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
        assert!(took >= Duration::from_millis(600), "{took:?}");
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
    assert!(took >= Duration::from_millis(450), "{took:?}");
    eventually("it is counted", || running.connections_ended("head") == 1).await;

    let slow = PATH.replace("10s", "1s");
    let head =
        format!("POST {slow} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{");
    let answer = running.exchange(head.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("DeadlineExceeded: "), "{answer}");
}

/// How much slower reviews become is measured by `make bench`; here they are answered, all of them, while the crowd is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_beside_five_thousand_idle_sockets_a_healthy_client_is_served_and_they_all_end() {
    const SOCKETS: usize = 5_000;
    const PORT: Port = Port { port: "webhook" };
    let _turn = turn().await;
    let (have, needed) = (descriptors::raise(), 2 * SOCKETS as u64 + 500);
    assert!(have >= needed, "this test opens {needed} files, {have} are allowed: raise the hard limit (ulimit -Hn)");
    let limits = Limits { handshake: Duration::from_secs(5), ..Limits::default() };
    let running = start(limits);
    let mut client = Client::new(&running).await;
    client.review("u-1").await.unwrap();
    let mut idle = Vec::new();
    for number in 0..SOCKETS {
        idle.push(TcpStream::connect(running.address).await.unwrap());
        if number % 10 == 0 {
            client.review("u-1").await.unwrap();
        }
    }
    running.healthy().await;
    let mut closed = JoinSet::new();
    for mut stream in idle {
        closed.spawn(async move { until_closed(&mut stream).await });
    }
    assert_eq!(closed.join_all().await.len(), SOCKETS);
    let ended = || running.handshakes_failed("timeout") + running.connections_ended("shed");
    eventually("all are counted", || ended() == SOCKETS as u64).await;
    // Above half of what may be open the oldest go at once (how many depends on how many are there at once), the others when
    // their time is over.
    assert!(running.handshakes_failed("timeout") > 0);
    assert_eq!(client.review("u-1").await.unwrap(), (200, false), "who carried a review stays");
    assert_eq!(running.metrics.connections.get_or_create(&PORT).get(), 1);
}
