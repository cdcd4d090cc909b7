//! The balancer that plays kube-proxy: readiness decides about new connections and about no others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

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

#[tokio::test]
async fn a_refused_connection_is_lost_or_given_to_the_next_as_asked() -> Result<()> {
    for (next_when_refused, expected) in [(false, 2), (true, 4)] {
        let (dead, alive) = (instance().await?, instance().await?);
        let balancer = Balancer::start(BalancerOptions { next_when_refused, ..BalancerOptions::default() }).await?;
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
        assert_eq!(echoed, expected);
    }
    Ok(())
}
