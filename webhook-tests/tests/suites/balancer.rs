//! The balancer that plays kube-proxy: readiness decides about new connections and about no others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use webhook_tests::balancer::How;
use webhook_tests::{Balancer, BalancerOptions};

/// An echo server with a readiness switch.
struct Instance {
    address: SocketAddr,
    probes: SocketAddr,
    ready: Arc<AtomicBool>,
    serving: tokio::task::JoinHandle<()>,
}

async fn instance() -> Result<Instance> {
    let ready = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&ready);
    let answer = move || async move {
        if switch.load(Ordering::SeqCst) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    };
    let probes = TcpListener::bind("127.0.0.1:0").await?;
    let probes_address = probes.local_addr()?;
    tokio::spawn(async move { axum::serve(probes, Router::new().route("/readyz", get(answer))).await });
    let echo = TcpListener::bind("127.0.0.1:0").await?;
    let address = echo.local_addr()?;
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = echo.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    Ok(Instance { address, probes: probes_address, ready, serving })
}

async fn echoes(stream: &mut TcpStream) -> bool {
    let mut back = [0; 2];
    stream.write_all(b"hi").await.is_ok() && stream.read_exact(&mut back).await.is_ok() && &back == b"hi"
}

#[tokio::test]
async fn new_connections_go_to_ready_instances_only_and_old_ones_stay() -> Result<()> {
    let (one, two) = (instance().await?, instance().await?);
    let balancer = Balancer::start(BalancerOptions::default()).await?;
    let mut nobody = TcpStream::connect(balancer.address()).await?;
    assert!(!echoes(&mut nobody).await);
    assert_eq!(balancer.unserved(), 1);
    balancer.add(one.address, one.probes);
    balancer.add(two.address, two.probes);
    balancer.wait_for_endpoints(2).await?;
    for _ in 0..4 {
        assert!(echoes(&mut TcpStream::connect(balancer.address()).await?).await);
    }
    assert_eq!((balancer.served(one.address), balancer.served(two.address)), (2, 2));

    let mut old = TcpStream::connect(balancer.address()).await?;
    let mut other = TcpStream::connect(balancer.address()).await?;
    assert!(echoes(&mut old).await && echoes(&mut other).await);
    one.ready.store(false, Ordering::SeqCst);
    balancer.wait_for_endpoints(1).await?;
    assert_eq!(balancer.endpoints(), [two.address]);
    let before = balancer.served(one.address);
    for _ in 0..4 {
        assert!(echoes(&mut TcpStream::connect(balancer.address()).await?).await);
    }
    assert_eq!(balancer.served(one.address), before);
    assert!(echoes(&mut old).await && echoes(&mut other).await);
    balancer.remove(two.address);
    balancer.wait_for_endpoints(0).await
}

#[tokio::test]
async fn an_endpoint_update_takes_as_long_as_it_was_told_to() -> Result<()> {
    let one = instance().await?;
    let endpoint_delay = Duration::from_millis(400);
    let balancer = Balancer::start(BalancerOptions { endpoint_delay, ..BalancerOptions::default() }).await?;
    let began = Instant::now();
    balancer.add(one.address, one.probes);
    balancer.wait_for_endpoints(1).await?;
    assert!(began.elapsed() >= endpoint_delay);
    one.ready.store(false, Ordering::SeqCst);
    let began = Instant::now();
    balancer.wait_for_endpoints(0).await?;
    assert!(began.elapsed() >= endpoint_delay);
    Ok(())
}

/// Waits until `count` losses are on record; returns how they happened.
async fn lost(balancer: &Balancer, count: usize) -> Vec<How> {
    let deadline = Instant::now() + webhook_tests::patience::patience();
    while balancer.losses().len() < count && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    balancer.losses().iter().map(|loss| loss.how).collect()
}

#[tokio::test]
async fn a_connection_to_a_dead_endpoint_is_lost_and_nobody_else_gets_it() -> Result<()> {
    let (dead, alive) = (instance().await?, instance().await?);
    let balancer = Balancer::start(BalancerOptions::default()).await?;
    balancer.add(dead.address, dead.probes);
    balancer.add(alive.address, alive.probes);
    balancer.wait_for_endpoints(2).await?;
    // Its probes go on answering 200: the time between a death and the probe that sees it.
    dead.serving.abort();
    let _ = dead.serving.await;
    let mut echoed = 0;
    for _ in 0..4 {
        echoed += i32::from(echoes(&mut TcpStream::connect(balancer.address()).await?).await);
    }
    assert_eq!(echoed, 2);
    assert_eq!(lost(&balancer, 2).await, [How::Refused; 2]);
    assert!(balancer.losses().iter().all(|loss| loss.backend == dead.address));
    assert_eq!(balancer.unserved(), 0);
    Ok(())
}

/// A server that answers the first `answers` times it is spoken to, and ends the connection at the next word.
async fn forgetful(answers: usize) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut word = [0; 100];
                for _ in 0..answers {
                    if stream.read_exact(&mut word).await.is_err() || stream.write_all(b"yes").await.is_err() {
                        return;
                    }
                }
                let _ = stream.read(&mut word[..1]).await;
            });
        }
    });
    Ok(address)
}

#[tokio::test]
async fn what_an_instance_owes_when_it_ends_is_on_record_and_nothing_else_is() -> Result<()> {
    let probes = instance().await?.probes;
    for (answers, words, farewell, expected) in [
        // The client closes after its answer: with an alert, or without a word.
        (1, 1, 31, vec![]),
        (1, 1, 0, vec![]),
        // The instance ends instead of answering: the first time, or on a connection that was in use.
        (0, 1, 0, vec![How::Unanswered]),
        (2, 3, 0, vec![How::Unanswered]),
    ] {
        let address = forgetful(answers).await?;
        let balancer = Balancer::start(BalancerOptions::default()).await?;
        balancer.add(address, probes);
        balancer.wait_for_endpoints(1).await?;
        let mut client = TcpStream::connect(balancer.address()).await?;
        for _ in 0..words {
            client.write_all(&[7; 100]).await?;
            let mut answer = [0; 3];
            if client.read_exact(&mut answer).await.is_err() {
                break;
            }
        }
        client.write_all(&vec![7; farewell]).await?;
        drop(client);
        // A connection that comes later and is lost shows that the first one has had its time.
        let mut last = TcpStream::connect(balancer.address()).await?;
        for _ in 0..=answers {
            // Its last word may meet an end instead of an answer.
            let _ = last.write_all(&[7; 100]).await;
            let _ = last.read(&mut [0; 3]).await;
        }
        drop(last);
        let case = format!("{answers} answers to {words} words");
        assert_eq!(lost(&balancer, expected.len() + 1).await.len(), expected.len() + 1, "{case}");
    }
    Ok(())
}

#[tokio::test]
async fn a_word_that_reaches_an_instance_as_it_ends_counts_as_unanswered() -> Result<()> {
    // Ends a moment after its answer, owing nothing; the client speaks again before it notices.
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut word = [0; 100];
            let _ = stream.read_exact(&mut word).await;
            let _ = stream.write_all(b"yes").await;
        }
    });
    let balancer = Balancer::start(BalancerOptions::default()).await?;
    balancer.add(address, instance().await?.probes);
    balancer.wait_for_endpoints(1).await?;
    let mut silent = TcpStream::connect(balancer.address()).await?;
    silent.write_all(&[7; 100]).await?;
    silent.read_exact(&mut [0; 3]).await?;
    // The end of the connection, seen and accepted.
    assert_eq!(silent.read(&mut [0; 1]).await?, 0);
    drop(silent);
    let mut late = TcpStream::connect(balancer.address()).await?;
    late.write_all(&[7; 100]).await?;
    late.read_exact(&mut [0; 3]).await?;
    late.write_all(&[7; 100]).await?;
    drop(late);
    assert_eq!(lost(&balancer, 1).await, [How::Unanswered]);
    Ok(())
}
