//! One case, decided a given number of times from the bytes of its body to the bytes of its answer: what valgrind counts.
//! Composing the run of an AgentBuild is counted the same way, though it answers nobody.

use std::hint::black_box;

use anyhow::{Context as _, ensure};
use axum::body::Body;
use drawbridge::admission;
use drawbridge::api::review::{self, Phase};
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys;
use drawbridge::domain::reason::Reason;
use drawbridge::server::routes::Reviews;
use drawbridge::server::snapshots::SnapshotCell;
use drawbridge::server::telemetry::log;
use drawbridge::server::telemetry::metrics::Metrics;
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
    /// An AgentBuild that is given the 5 steps of its mode's template.
    Completed,
    /// The same, judged.
    Judged,
    /// The PipelineRun of the same.
    Composed,
}

/// What is done over and over.
enum Work {
    /// A review is answered, at that path and with that reason.
    Review(Review, &'static str, Reason),
    /// The run of a stored AgentBuild is composed.
    Compose(Value),
}

impl Case {
    /// What it is about.
    ///
    /// # Errors
    /// When the first review of the Pod does not inject it, or that of the AgentBuild does not complete it.
    fn work(self, snapshot: &Snapshot) -> anyhow::Result<Work> {
        let pod = |size: usize| fixture::pod(NAMESPACE, size * 1024);
        let of_pod = |pod: &Value, reason| Ok(Work::Review(Review::of(pod), keys::PATH_INJECT, reason));
        let of_build = |object: &Value, path, reason| Ok(Work::Review(Review::of_agent_build(object), path, reason));
        match self {
            Case::Skipped => {
                let mut pod = pod(8);
                pod["metadata"]["labels"][keys::LABEL_INJECT] = json!(keys::INJECT_DISABLED);
                of_pod(&pod, Reason::OptedOut)
            }
            Case::Injected => of_pod(&pod(8), Reason::Injected),
            Case::Large => of_pod(&pod(88), Reason::Injected),
            Case::Again => {
                let pod = pod(8);
                of_pod(&decided(pod.clone(), (Review::of(&pod), Phase::Mutate), snapshot)?, Reason::AlreadyInjected)
            }
            Case::Completed => {
                of_build(&fixture::agent_build(NAMESPACE, 5), keys::PATH_COMPLETE_BUILD, Reason::Completed)
            }
            Case::Judged => of_build(&completed(snapshot)?, keys::PATH_AGENT_BUILD, Reason::Accepted),
            Case::Composed => Ok(Work::Compose(completed(snapshot)?)),
        }
    }
}

/// The AgentBuild of [`Case::Completed`] as it is stored.
fn completed(snapshot: &Snapshot) -> anyhow::Result<Value> {
    let object = fixture::agent_build(NAMESPACE, 5);
    let review = Review::of_agent_build(&object);
    decided(object, (review, Phase::Mutate), snapshot)
}

/// `object` as the answer to its first review makes it.
fn decided(mut object: Value, (mut review, phase): (Review, Phase), snapshot: &Snapshot) -> anyhow::Result<Value> {
    let request = review::parse(review.numbered(1), phase)?;
    let verdict = admission::evaluate(&request, snapshot);
    ensure!(!verdict.operations().is_empty(), "nothing is changed: {verdict:?}");
    json_patch::patch(&mut object, &verdict.operations())?;
    Ok(object)
}

/// Decides `case` `times` times, and checks the first answer.
///
/// # Errors
/// When an answer is not what the case is about.
pub async fn run(case: Case, times: u64) -> anyhow::Result<()> {
    log::init("info", log::Format::Json)?;
    let snapshot = fixture::snapshot(0)?;
    match case.work(&snapshot)? {
        Work::Review(review, path, reason) => reviews(snapshot, (review, path, reason), times).await?,
        Work::Compose(stored) => {
            for _ in 0..times {
                black_box(fixture::composition(&stored, &snapshot.builds)?);
            }
        }
    }
    log::finish();
    Ok(())
}

async fn reviews(snapshot: Snapshot, what: (Review, &'static str, Reason), times: u64) -> anyhow::Result<()> {
    let (mut review, path, expected) = what;
    let cell = SnapshotCell::new();
    cell.store(snapshot);
    let mut router = Reviews::new(cell, Metrics::new()).router();
    for number in 0..times {
        let body = review.numbered(number).to_vec();
        let request = Request::post(format!("{path}?timeout=10s"))
            .header("content-type", "application/json")
            .header("content-length", body.len())
            .body(Body::from(body))?;
        let response = router.call(request).await?;
        let answer = response.into_body().collect().await?.to_bytes();
        if number == 0 {
            let answer: Value = serde_json::from_slice(&answer).context("the answer")?;
            let reason = &answer["response"]["auditAnnotations"]["reason"];
            ensure!(reason == expected.code(), "{path}: {answer}");
        }
    }
    Ok(())
}
