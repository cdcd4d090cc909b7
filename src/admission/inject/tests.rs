//! The engine as a whole, through `evaluate`: goldens, the numbered cases of the spec, laws for any Pod.

mod attacked;
mod cases_decision;
mod cases_parts;
mod cases_proxy;
mod golden;
mod governed;
mod hash;
mod itself;
mod laws;
mod mends;
mod reinvocation;
mod resources;
mod rulings;
mod signing;
mod token;
mod trust;

use serde_json::{Value, json};

use super::fixtures;
use super::pod::{items, text};
use super::*;
use crate::admission::verdict::Outcome;
use crate::config::resolved::Resolved;
use crate::config::view::NamespaceView;

/// The element of that name in a list.
fn named<'v>(list: &'v Value, name: &str) -> &'v Value {
    list.as_array().unwrap().iter().find(|element| element["name"] == name).unwrap_or(&Value::Null)
}

/// The same, to change it.
fn named_mut<'v>(list: &'v mut Value, name: &str) -> &'v mut Value {
    list.as_array_mut().unwrap().iter_mut().find(|element| element["name"] == name).unwrap()
}

/// Names of the elements of a list, in order; none when it is absent.
fn names(list: &Value) -> Vec<&str> {
    list.as_array().map(|list| list.iter().map(|element| text(element, "name")).collect()).unwrap_or_default()
}

/// The Pod after the review; it must be allowed.
fn injected(pod: &Value, snapshot: &Snapshot) -> Value {
    let verdict = fixtures::review_pod(pod, snapshot);
    assert!(verdict.allowed(), "{:?}", verdict.outcome);
    fixtures::applied(pod, &verdict)
}

/// The refusal of the review.
fn refusal(pod: &Value, snapshot: &Snapshot) -> Denial {
    match fixtures::review_pod(pod, snapshot).outcome {
        Outcome::Deny(denial) => denial,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// The reasons of the warnings of a review.
fn warned(pod: &Value, snapshot: &Snapshot) -> Vec<Reason> {
    fixtures::review_pod(pod, snapshot).warnings.iter().map(|warning| warning.reason).collect()
}

/// The Pod of the fixtures with labels set.
fn labelled(labels: &[(&str, &str)]) -> Value {
    let mut pod = fixtures::pod();
    for (key, value) in labels {
        pod["metadata"]["labels"][*key] = json!(value);
    }
    pod
}

/// The Pod of the fixtures with annotations.
fn annotated(annotations: &[(&str, &str)]) -> Value {
    let mut pod = fixtures::pod();
    for (key, value) in annotations {
        pod["metadata"]["annotations"][*key] = json!(value);
    }
    pod
}

/// The runtime configuration inside the Pod.
fn runtime_config(pod: &Value) -> Value {
    let text = pod["metadata"]["annotations"][crate::domain::keys::ANNOTATION_RUNTIME_CONFIG].as_str().unwrap();
    serde_saphyr::from_str(text).unwrap()
}

/// The snapshot of the fixtures with other settings.
fn with(configure: impl FnOnce(&mut Resolved)) -> Snapshot {
    fixtures::snapshot_with(configure, |_| {})
}

/// The snapshot of the fixtures with another view of the namespace.
fn observing(observe: impl FnOnce(&mut NamespaceView)) -> Snapshot {
    fixtures::snapshot_with(|_| {}, observe)
}

/// Why an allowed Pod is left alone.
fn skipped(pod: &Value, snapshot: &Snapshot) -> Reason {
    let verdict = fixtures::review_pod(pod, snapshot);
    assert_eq!(verdict.outcome, Outcome::Allow);
    verdict.reason
}

/// The Pod of the fixtures in mode proxy-sidecar.
fn proxy_mode() -> Value {
    annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecar")])
}

/// A variable of a container of that list.
fn env<'v>(pod: &'v Value, list: &str, container: &str, name: &str) -> &'v Value {
    named(&named(&pod["spec"][list], container)["env"], name)
}
