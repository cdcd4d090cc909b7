//! Probes and metrics, on a port of their own, so that nothing of them is reachable through the webhook's Service.
//!
//! ```text
//! /healthz  /healthz/ping          the process runs
//! /readyz   /readyz/<check>        it may receive traffic; `?verbose=1` lists the checks
//! /metrics                         OpenMetrics text
//! ```

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::health::{Check, Readiness};
use super::snapshots::SnapshotCell;
use super::telemetry::metrics::Metrics;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The one liveness check: an answer at all.
const PING: &str = "ping";

/// The probes.
pub fn probes(readiness: Readiness) -> Router {
    let verbose = readiness.clone();
    let single = readiness;
    Router::new()
        .route("/healthz", get(|query: RawQuery| async move { listed(&query, &[alive()]) }))
        .route("/healthz/{check}", get(|Path(check): Path<String>| async move { one(&check, &[alive()]) }))
        .route("/readyz", get(move |query: RawQuery| async move { listed(&query, &verbose.checks()) }))
        .route("/readyz/{check}", get(move |Path(check): Path<String>| async move { one(&check, &single.checks()) }))
}

/// The metrics.
pub fn metrics(metrics: Arc<Metrics>, snapshots: SnapshotCell) -> Router {
    Router::new().route("/metrics", get(move || async move { scrape(&metrics, &snapshots) }))
}

fn scrape(metrics: &Metrics, snapshots: &SnapshotCell) -> Response {
    metrics.snapshot_staleness.set(snapshots.staleness().map_or(-1.0, |age| age.as_secs_f64()));
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    metrics.tasks.set(i64::try_from(tasks).unwrap_or(i64::MAX));
    match metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn alive() -> Check {
    Check { name: PING, obstacle: None }
}

/// `ok`, or every check with a mark when asked or when one fails, as Kubernetes' own components answer.
fn listed(RawQuery(query): &RawQuery, checks: &[Check]) -> Response {
    let ok = checks.iter().all(Check::ok);
    let verbose =
        query.as_deref().is_some_and(|query| query.split('&').any(|pair| pair.split('=').next() == Some("verbose")));
    if ok && !verbose {
        return "ok".into_response();
    }
    let mut text = String::new();
    for check in checks {
        text.push_str(&match check.obstacle.as_deref() {
            None => format!("[+]{} ok\n", check.name),
            Some("") => format!("[-]{} failed\n", check.name),
            Some(why) => format!("[-]{} failed: {why}\n", check.name),
        });
    }
    text.push_str(if ok { "check passed\n" } else { "check failed\n" });
    (if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, text).into_response()
}

fn one(name: &str, checks: &[Check]) -> Response {
    match checks.iter().find(|check| check.name == name).map(|check| check.obstacle.as_deref()) {
        Some(None) => "ok".into_response(),
        Some(Some("")) => (StatusCode::SERVICE_UNAVAILABLE, "failed").into_response(),
        Some(Some(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("failed: {why}")).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
