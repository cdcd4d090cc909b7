//! D1: what SIGTERM does to the phases. Alone in its process, because the signals are the process's.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::time::{Duration, Instant};

use drawbridge::server::health::Readiness;
use drawbridge::server::shutdown::{Phase, Shutdown, Signals, drive};
use tokio::time::timeout;

fn terminate() {
    let status = std::process::Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn d1_the_first_signal_drains_then_closes_and_the_second_aborts() {
    const PATIENCE: Duration = Duration::from_secs(20);
    let (shutdown, readiness) = (Shutdown::new(), Readiness::new());
    let delay = Duration::from_millis(400);
    let driven = tokio::spawn(drive(Signals::listen().unwrap(), shutdown.clone(), readiness.clone(), delay));
    assert!(readiness.ready());
    terminate();
    timeout(PATIENCE, shutdown.reached(Phase::Draining)).await.unwrap();
    let draining = Instant::now();
    assert!(!readiness.ready(), "not ready before anything else");
    timeout(PATIENCE, shutdown.reached(Phase::Closing)).await.unwrap();
    assert!(draining.elapsed() >= delay - Duration::from_millis(50), "served for the whole delay");
    assert!(!driven.is_finished());
    terminate();
    timeout(PATIENCE, driven).await.unwrap().unwrap();
}
