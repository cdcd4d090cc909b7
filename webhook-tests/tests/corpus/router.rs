//! The corpus through the router of the webhook port: the same decision, from the wire.

use std::sync::Arc;

use axum::body::Body;
use drawbridge::api::review::Phase;
use drawbridge::domain::keys;
use drawbridge::server::routes::Reviews;
use drawbridge::server::snapshots::SnapshotCell;
use drawbridge::server::telemetry::metrics::Metrics;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use libtest_mimic::Trial;
use tower::ServiceExt as _;
use webhook_tests::corpus::Case;
use webhook_tests::corpus::answer::{ask, from_wire};

use super::verdict;

pub(crate) fn trials(cases: Vec<Case>) -> Vec<Trial> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = Arc::new(runtime.map_err(|error| error.to_string()));
    cases
        .into_iter()
        .filter(|case| case.expect.config_refused.is_none())
        .map(|case| {
            let runtime = Arc::clone(&runtime);
            Trial::test(format!("router::{}", case.name), move || match runtime.as_ref() {
                Ok(runtime) => verdict(runtime.block_on(asked_over_http(&case))),
                Err(error) => Err(error.as_str().into()),
            })
        })
        .collect()
}

async fn asked_over_http(case: &Case) -> anyhow::Result<Vec<String>> {
    let snapshot = case.fixture.snapshot()?;
    let cell = SnapshotCell::new();
    cell.store(snapshot.clone());
    let is_agent_runtime = case.object.as_ref().is_some_and(|object| object["kind"] == "AgentRuntime");
    let path = match case.fixture.phase() {
        Phase::Mutate => keys::PATH_INJECT,
        Phase::Validate if is_agent_runtime => keys::PATH_AGENT_RUNTIME,
        Phase::Validate => keys::PATH_EXPLAIN,
    };
    let request = Request::post(format!("{path}?timeout=10s"))
        .header("Content-Type", "application/json")
        .body(Body::from(case.review.clone()))?;
    let response = Reviews::new(cell, Metrics::new()).router().oneshot(request).await?;
    let status = response.status();
    let bytes = response.into_body().collect().await?.to_bytes();
    let uid = drawbridge::api::review::uid(case.review.as_bytes());
    if case.expect.unreadable {
        return Ok(refusal_of_unreadable(status, &bytes, uid.as_deref()));
    }
    let uid = uid.ok_or_else(|| anyhow::anyhow!("the review of the case has no uid"))?;
    if status != StatusCode::OK {
        return Ok(vec![format!("HTTP {status}: {}", String::from_utf8_lossy(&bytes))]);
    }
    let answer = from_wire(&bytes, &uid)?;
    let object = case.object.clone().unwrap_or_default();
    let mut wrong = case.expect.judge(&answer, &object)?;
    let direct = ask(case, &case.review, &snapshot)?;
    if direct.patch != answer.patch || direct.allowed != answer.allowed {
        wrong.push("the wire and evaluate give different answers".to_owned());
    }
    Ok(wrong)
}

/// A well-formed refusal when the uid could be read, else a plain 4xx.
fn refusal_of_unreadable(status: StatusCode, bytes: &[u8], uid: Option<&str>) -> Vec<String> {
    let Some(uid) = uid else {
        let text = String::from_utf8_lossy(bytes);
        return if status.is_client_error() && !text.is_empty() {
            Vec::new()
        } else {
            vec![format!("HTTP {status}, expected 4xx with a sentence: {text}")]
        };
    };
    let review: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let response = &review["response"];
    if status == StatusCode::OK
        && response["uid"] == uid
        && response["allowed"] == false
        && response["status"]["code"] == 400
    {
        Vec::new()
    } else {
        vec![format!("HTTP {status}, expected a refusal of {uid} with 400: {review}")]
    }
}
