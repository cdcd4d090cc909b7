//! 500 AgentBuilds at once: every one gets its run, none two; and that takes at most half as long again as a bare loop
//! that creates the same runs. Run by `make crowd`, which prints the quotient.
//!
//! Half of the loop runs before and half after, so that a machine whose pace changes meanwhile does so for both.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::api::{DynamicObject, ListParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::tekton::Part;
use webhook_tests::{ControlPlane, Installation, Installing, Options, Tekton, TestNamespace};

use super::stage::{api, build};

const CROWD: usize = 500;
/// Requests on their way at once.
const AT_ONCE: usize = 32;
/// How long it may take beside the bare loop.
const MOST: f64 = 1.5;
/// How long all of them may take.
const PATIENCE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, of several minutes when the machine is busy: make crowd"]
async fn five_hundred_builds_get_one_run_each() {
    let cp = ControlPlane::start(Options::default()).await.unwrap();
    let tekton = Tekton::start(&cp).await.unwrap();
    // Runs are judged and stored; running them would only take time from both loops.
    tekton.kill(Part::Controller).await;
    let _installation = Installation::start(&cp, &Installing::default()).await.unwrap();
    let (ours, bare) = (cp.namespace("ours").await.unwrap(), cp.namespace("bare").await.unwrap());

    let mut runs =
        Box::pin(watcher(api(&ours, "PipelineRun"), watcher::Config::default()).default_backoff().applied_objects());
    // The first of all, whose run is the pattern of the loop's.
    ours.accepts(&build("first")).await.unwrap();
    let first = runs.next().await.unwrap().unwrap();
    let mut loops = bare_loop(&bare, &first, 0..CROWD / 2).await;

    let began = Instant::now();
    let creating = futures::stream::iter(0..CROWD).for_each_concurrent(AT_ONCE, |number| {
        let ours = &ours;
        async move { drop(ours.accepts(&build(&format!("crowd-{number}"))).await.unwrap()) }
    });
    let mut seen = BTreeSet::new();
    let watching = async {
        while seen.len() < CROWD {
            let run = runs.next().await.unwrap().unwrap();
            if run.metadata.name != first.metadata.name {
                seen.insert(run.metadata.name.clone());
            }
        }
    };
    let both = async { tokio::join!(creating, watching) };
    tokio::time::timeout(PATIENCE, both).await.unwrap();
    let took = began.elapsed();

    loops += bare_loop(&bare, &first, CROWD / 2..CROWD).await;
    let ratio = took.as_secs_f64() / loops.as_secs_f64();
    println!("{CROWD} builds to runs in {took:.1?}, a bare loop in {loops:.1?}: {ratio:.2}");

    // No build was started twice: a run for each, and of each build only one.
    let all = api(&ours, "PipelineRun").list(&ListParams::default()).await.unwrap().items;
    let owners: BTreeSet<_> =
        all.iter().map(|run| run.metadata.owner_references.as_ref().unwrap()[0].name.clone()).collect();
    assert_eq!((all.len(), owners.len()), (CROWD + 1, CROWD + 1));
    assert!(ratio <= MOST, "500 builds take {ratio:.2} times as long as a bare loop");
}

/// Creates runs like `pattern`, one after the other; how long that takes.
async fn bare_loop(ns: &TestNamespace, pattern: &DynamicObject, numbers: Range<usize>) -> Duration {
    let began = Instant::now();
    for number in numbers {
        let object = json!({
            "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
            "metadata": {
                "name": format!("bare-{number}"),
                "labels": pattern.metadata.labels, "annotations": pattern.metadata.annotations,
            },
            "spec": pattern.data["spec"],
        });
        ns.accepts(&object).await.unwrap();
    }
    began.elapsed()
}
