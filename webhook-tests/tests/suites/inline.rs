//! Row A15 for bodies that are decided where they are read, up to `routes::INLINE`: such a decision cannot be cut
//! short, so it must not need to be. A review is refused when its deadline has passed before the decision begins, and
//! the deadline lies `routes::MARGIN` ahead of the API server's; what is shown here is the other half: no body of that
//! size, however it is made, takes longer than that margin.
//!
//! Time is that of the processor for the deciding thread, so that what else the machine does is not measured.

#![allow(clippy::print_stdout, reason = "what it measured is its result, shown with --nocapture")]

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use drawbridge::domain::keys;
use drawbridge::server::routes::{INLINE, MARGIN, Reviews};
use drawbridge::server::snapshots::SnapshotCell;
use drawbridge::server::telemetry::metrics::Metrics;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use webhook_tests::corpus::load;

/// What is repeated in a Pod: the path of the list or map, and its element number `n`.
type Shape = (&'static str, fn(&mut Value, usize));

fn push(pod: &mut Value, pointer: &str, element: Value) {
    pod.pointer_mut(pointer).unwrap().as_array_mut().unwrap().push(element);
}

fn insert(pod: &mut Value, pointer: &str, key: String, value: Value) {
    pod.pointer_mut(pointer).unwrap().as_object_mut().unwrap().insert(key, value);
}

const SHAPES: [Shape; 16] = [
    ("env", |pod, n| push(pod, "/spec/containers/0/env", json!({ "name": format!("E{n}"), "value": "v" }))),
    ("small env", |pod, _| push(pod, "/spec/containers/0/env", json!({}))),
    ("ports", |pod, n| push(pod, "/spec/containers/0/ports", json!({ "containerPort": n % 65535 + 1 }))),
    ("the same port", |pod, _| push(pod, "/spec/containers/0/ports", json!({ "containerPort": 8000 }))),
    ("mounts", |pod, n| {
        push(pod, "/spec/containers/0/volumeMounts", json!({ "name": "shared-data", "mountPath": format!("/{n}") }))
    }),
    ("containers", |pod, n| push(pod, "/spec/containers", json!({ "name": format!("c{n}"), "image": "i" }))),
    ("empty containers", |pod, _| push(pod, "/spec/containers", json!({}))),
    ("containers with a port", |pod, n| {
        push(
            pod,
            "/spec/containers",
            json!({ "name": format!("c{n}"), "ports": [{ "containerPort": n % 65535 + 1 }] }),
        );
    }),
    ("containers with a probe", |pod, n| {
        push(
            pod,
            "/spec/containers",
            json!({ "name": format!("c{n}"), "livenessProbe": { "httpGet": { "port": 8000 } } }),
        );
    }),
    ("init containers", |pod, n| push(pod, "/spec/initContainers", json!({ "name": format!("i{n}") }))),
    ("volumes", |pod, n| push(pod, "/spec/volumes", json!({ "name": format!("v{n}"), "emptyDir": {} }))),
    ("labels", |pod, n| insert(pod, "/metadata/labels", format!("l{n}"), json!("v"))),
    ("annotations", |pod, n| insert(pod, "/metadata/annotations", format!("a{n}"), json!("v"))),
    ("unknown fields", |pod, n| insert(pod, "/spec", format!("future{n}"), json!([{}]))),
    ("scheduling gates", |pod, n| push(pod, "/spec/schedulingGates", json!({ "name": format!("example.com/g{n}") }))),
    ("owners", |pod, n| {
        push(
            pod,
            "/metadata/ownerReferences",
            json!({ "apiVersion": "v1", "kind": "X", "name": format!("o{n}"), "uid": "u" }),
        )
    }),
];

/// A Pod that is injected in `mode`, with every list that a shape fills.
fn pod(mode: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "agent", "labels": { "app": "agent", keys::LABEL_TYPE: "agent", keys::LABEL_CLIENT_REGISTRATION: "true" },
            "annotations": { keys::ANNOTATION_MODE: mode }, "ownerReferences": [] },
        "spec": { "schedulingGates": [], "initContainers": [], "volumes": [{ "name": "shared-data", "emptyDir": {} }],
            "containers": [{ "name": "agent", "image": "example.com/agent:1", "env": [], "volumeMounts": [],
                "ports": [{ "containerPort": 8000, "name": "http" }] }] } })
}

/// `make` of as many elements as fit into a review that is still decided inline; each adds the same number of bytes.
fn filled(make: impl Fn(usize) -> String) -> String {
    let (one, two) = (make(1).len(), make(2).len());
    let body = make(1 + (INLINE - one) / (two - one));
    assert!(body.len() <= INLINE && body.len() > INLINE * 9 / 10, "{} bytes", body.len());
    body
}

/// Processor time of this thread.
fn spent() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// What one answer costs, and its text; the best of three, since caches are cold at first.
async fn cost(router: &Router, body: &str) -> (Duration, String) {
    let mut best = (Duration::MAX, String::new());
    for _ in 0..3 {
        let request = Request::post(format!("{}?timeout=10s", keys::PATH_INJECT));
        let request = request.header("Content-Type", "application/json").body(Body::from(body.to_owned())).unwrap();
        let begun = spent();
        let response = router.clone().oneshot(request).await.unwrap();
        let cost = spent() - begun;
        assert_eq!(response.status(), StatusCode::OK);
        let text = String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
        best = if cost < best.0 { (cost, text) } else { best };
    }
    best
}

#[tokio::test]
async fn a15_no_body_that_is_decided_inline_takes_longer_than_the_margin() {
    let cases = load().unwrap();
    let case = cases.iter().find(|case| case.expect.injects()).unwrap();
    let cell = SnapshotCell::new();
    cell.store(case.fixture.snapshot().unwrap());
    let router = Reviews::new(cell, Metrics::new()).router();
    let mut slow = Vec::new();
    let mut judge = |what: String, cost: Duration, length: usize| {
        println!("{cost:>12.3?}  {length:>7} bytes  {what}");
        slow.extend((cost >= MARGIN).then(|| format!("{what}: {cost:?}")));
    };
    let injected = |answer: &str| answer.contains("\"patch\":");
    for mode in ["envoy-sidecar", "proxy-sidecar"] {
        let (_, answer) = cost(&router, &case.fixture.request.review("u-1", &pod(mode))).await;
        assert!(injected(&answer), "{mode}: {answer}");
        for (name, fill) in SHAPES {
            let body = filled(|count| {
                let mut object = pod(mode);
                // All numbers have as many digits.
                (0..count).for_each(|n| fill(&mut object, n + 10_000));
                case.fixture.request.review("u-1", &object)
            });
            let (cost, answer) = cost(&router, &body).await;
            judge(format!("{mode}, {name}, injected: {}", injected(&answer)), cost, body.len());
        }
    }
    let plain = case.fixture.request.review("u-1", &pod("envoy-sidecar"));
    assert!(plain.contains("\"spec\":{"), "{plain}");
    let beside = |more: String| plain.replacen("\"spec\":{", &format!("\"spec\":{{\"future\":{more},"), 1);
    let annotated = |key: &str, value: String| {
        let mut object = pod("envoy-sidecar");
        object["metadata"]["annotations"][key] = json!(value);
        case.fixture.request.review("u-1", &object)
    };
    for (name, body) in [
        ("arrays in arrays", filled(|n| beside(format!("{}{}", "[".repeat(n), "]".repeat(n))))),
        ("objects in objects", filled(|n| beside(format!("{}1{}", "{\"a\":".repeat(n), "}".repeat(n))))),
        ("a key twice", filled(|n| beside(format!("{{{}\"a\":1}}", "\"a\":1,".repeat(n))))),
        ("numbers", filled(|n| beside(format!("[{}1]", "1e5,".repeat(n))))),
        ("escapes", filled(|n| beside(format!("\"{}\"", "\\u00e9".repeat(n))))),
        ("a list of ports", filled(|n| annotated(keys::ANNOTATION_OUTBOUND_EXCLUDE, "8080,".repeat(n) + "1"))),
        ("a long mode", filled(|n| annotated(keys::ANNOTATION_MODE, "m".repeat(n)))),
        ("a status of nothing", filled(|n| annotated(keys::ANNOTATION_STATUS, "{".repeat(n)))),
    ] {
        let (cost, _) = cost(&router, &body).await;
        judge(name.to_owned(), cost, body.len());
    }
    assert!(slow.is_empty(), "longer than {MARGIN:?}: {slow:#?}");
}
