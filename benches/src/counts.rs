//! One case, decided a given number of times from the bytes of its body to the bytes of its answer: what valgrind counts.

use anyhow::{Context as _, ensure};
use axum::body::Body;
use drawbridge::admission;
use drawbridge::api::review::{self, Phase};
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys;
use drawbridge::domain::reason::Reason;
use drawbridge::runtime::routes::Reviews;
use drawbridge::runtime::snapshots::SnapshotCell;
use drawbridge::runtime::telemetry::log;
use drawbridge::runtime::telemetry::metrics::Metrics;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::Service as _;

use crate::fixture::{self, NAMESPACE, Review};

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Case {
    /// A Pod of 8 KiB that opted out.
    Skipped,
    /// A Pod of 8 KiB that is injected.
    Injected,
    /// A Pod of 88 KiB that is injected.
    Large,
    /// The injected Pod of 8 KiB, seen again.
    Again,
}

impl Case {
    /// The reason its answers give.
    fn reason(self) -> Reason {
        match self {
            Case::Skipped => Reason::OptedOut,
            Case::Injected | Case::Large => Reason::Injected,
            Case::Again => Reason::AlreadyInjected,
        }
    }

    /// Its review.
    ///
    /// # Errors
    /// When the first review of the Pod does not inject it.
    pub fn review(self, snapshot: &Snapshot) -> anyhow::Result<Review> {
        let mut pod = fixture::pod(NAMESPACE, if self == Case::Large { 88 } else { 8 } * 1024);
        match self {
            Case::Skipped => pod["metadata"]["labels"][keys::LABEL_INJECT] = json!(keys::INJECT_DISABLED),
            Case::Again => injected(&mut pod, snapshot)?,
            Case::Injected | Case::Large => {}
        }
        Ok(Review::of(&pod))
    }
}

/// Makes `pod` what the answer to its first review makes it.
fn injected(pod: &mut Value, snapshot: &Snapshot) -> anyhow::Result<()> {
    let mut review = Review::of(pod);
    let request = review::parse(review.numbered(1), Phase::Mutate)?;
    let verdict = admission::evaluate(&request, snapshot);
    ensure!(verdict.reason == Reason::Injected, "the Pod is not injected: {verdict:?}");
    Ok(json_patch::patch(pod, &verdict.operations())?)
}

/// Decides `case` `times` times, and checks the first answer.
///
/// # Errors
/// When an answer is not what the case is about.
pub async fn run(case: Case, times: u64) -> anyhow::Result<()> {
    log::init("info", log::Format::Json)?;
    let snapshot = fixture::snapshot(0)?;
    let mut review = case.review(&snapshot)?;
    let cell = SnapshotCell::new();
    cell.store(snapshot);
    let mut router = Reviews::new(cell, Metrics::new()).router();
    for number in 0..times {
        let body = review.numbered(number).to_vec();
        let request = Request::post(endpoint())
            .header("content-type", "application/json")
            .header("content-length", body.len())
            .body(Body::from(body))?;
        let response = router.call(request).await?;
        let answer = response.into_body().collect().await?.to_bytes();
        if number == 0 {
            let answer: Value = serde_json::from_slice(&answer).context("the answer")?;
            let reason = &answer["response"]["auditAnnotations"]["reason"];
            ensure!(reason == case.reason().code(), "{case:?}: {answer}");
        }
    }
    log::finish();
    Ok(())
}

fn endpoint() -> String {
    format!("{}?timeout=10s", keys::PATH_INJECT)
}
