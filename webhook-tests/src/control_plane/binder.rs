//! Plays the scheduler: binds every Pod without node and without scheduling gates, round robin over the nodes.
//!
//! It speaks as `system:kube-scheduler`, through the same binding subresource. A Pod that names its node by node
//! affinity on `metadata.name` (a DaemonSet's) gets that node. Resources, taints and ports are not looked at.

use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::core::Status;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::patience::patience;

/// How many bindings are on their way at once.
const CONCURRENCY: usize = 16;

/// Starts the binder on the current runtime; it ends when the handle is aborted.
pub(super) fn start(client: Client, nodes: Vec<String>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let pods: Api<Pod> = Api::all(client.clone());
        let waiting = watcher::Config::default().fields("spec.nodeName=");
        // Errors of the watch are repeated by its backoff; the API server may be away for a while.
        let schedulable = watcher(pods, waiting)
            .default_backoff()
            .applied_objects()
            .into_stream()
            .filter_map(|pod| async { pod.ok().filter(is_schedulable) })
            .enumerate();
        schedulable
            .for_each_concurrent(CONCURRENCY, |(turn, pod)| {
                let node = named_node(&pod).unwrap_or_else(|| nodes[turn % nodes.len()].clone());
                let client = client.clone();
                async move { bind(&client, &pod, &node).await }
            })
            .await;
    })
}

fn is_schedulable(pod: &Pod) -> bool {
    let gated =
        pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty());
    !gated && pod.metadata.deletion_timestamp.is_none()
}

/// The node that a DaemonSet's Pod is meant for.
fn named_node(pod: &Pod) -> Option<String> {
    let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms = &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    let fields = terms.iter().filter_map(|term| term.match_fields.as_ref()).flatten();
    fields.filter(|field| field.key == "metadata.name").find_map(|field| field.values.as_ref()?.first().cloned())
}

/// Binds until it worked or the Pod is gone, bound, or not bindable; the API server may be away for a while.
async fn bind(client: &Client, pod: &Pod, node: &str) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let binding = Binding {
        metadata: ObjectMeta { name: pod.metadata.name.clone(), uid: pod.uid(), ..ObjectMeta::default() },
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    };
    let mut pause = Duration::from_millis(100);
    let begun = Instant::now();
    while begun.elapsed() < patience() {
        let answer: Result<Status, kube::Error> =
            pods.create_subresource("binding", &pod.name_any(), &PostParams::default(), &binding).await;
        match answer {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 404 | 409 | 422) => return,
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}
