//! Requests through the router, without sockets.

mod switches;
mod time;

use std::collections::HashMap;
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::admission::verdict::{Denial, Warning};
use crate::config::gates::Gates;
use crate::config::schema::Platform;
use crate::config::view::ClusterView;

fn snapshots() -> SnapshotCell {
    let cell = SnapshotCell::new();
    let view = ClusterView {
        operator_namespace: "kagenti-system".into(),
        server_version: (1, 33),
        spiffe_driver: false,
        namespaces: HashMap::new(),
    };
    cell.store(Snapshot::new(&Platform::built_in(), Gates::default(), view));
    cell
}

struct Fixture {
    router: Router,
    metrics: Arc<Metrics>,
}

fn fixture(evaluate: Evaluate) -> Fixture {
    let metrics = Metrics::new();
    let router = Reviews::new(snapshots(), metrics.clone()).decided_by(evaluate).router();
    Fixture { router, metrics }
}

fn allow(_: &review::Request<'_>, _: &Snapshot) -> Verdict {
    Verdict::skipped(Reason::NothingToInject)
}

fn body_of(uid: &str, object: &Value) -> Vec<u8> {
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"{uid}",
        "kind":{{"group":"","version":"v1","kind":"Pod"}},"namespace":"team1","operation":"CREATE","object":{object}}}}}"#
    )
    .into_bytes()
}

fn ask() -> http::request::Builder {
    Request::post(format!("{}?timeout=10s", keys::PATH_INJECT)).header(CONTENT_TYPE, "application/json")
}

impl Fixture {
    async fn send(&self, request: Request<Body>) -> (StatusCode, Bytes) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        (status, response.into_body().collect().await.unwrap().to_bytes())
    }

    async fn post(&self, body: Vec<u8>) -> (StatusCode, Bytes) {
        self.send(ask().body(Body::from(body)).unwrap()).await
    }

    async fn review(&self, body: Vec<u8>) -> Value {
        let (status, bytes) = self.post(body).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice::<Value>(&bytes).unwrap()["response"].take()
    }

    fn decisions(&self, reason: Reason) -> u64 {
        use crate::server::telemetry::metrics::{Decision, ReasonValue};
        self.metrics.decisions.get_or_create(&Decision { reason: ReasonValue(reason) }).get()
    }

    fn shed(&self, cause: &'static str) -> u64 {
        self.metrics.shed.get_or_create(&Cause { cause }).get()
    }
}

/// A body that sends `piece` every `pause`, for ever.
fn trickle(piece: &'static [u8], pause: Duration) -> Body {
    Body::from_stream(futures::stream::unfold((), move |()| async move {
        tokio::time::sleep(pause).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(piece)), ()))
    }))
}

#[tokio::test]
async fn a1_unreadable_bodies_are_400_with_the_uid_where_it_was_readable() {
    let fixture = fixture(allow);
    let whole = body_of("u-1", &json!({"a":1}));
    for body in [&b""[..], b"null", b"[]", b"garbage", b"\0\0", b"\xef\xbb\xbf{}", b"\xff\xfe{\0}\0"] {
        let (status, text) = fixture.post(body.to_vec()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(text.starts_with(b"BadReview: "), "{text:?}");
    }
    let cut = whole[..whole.len() - 4].to_vec();
    let response = fixture.review(cut).await;
    assert_eq!(response["uid"], "u-1");
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"]["code"], 400);
    assert_eq!(response["status"]["reason"], "BadRequest");
    assert_eq!(fixture.decisions(Reason::BadReview), 8);
}

#[tokio::test(start_paused = true)]
async fn a2_a_body_above_the_cap_is_413_whatever_its_length_says() {
    let fixture = fixture(allow);
    let declared = ask().header(CONTENT_LENGTH, BODY_LIMIT + 1);
    let never_read = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    assert_eq!(fixture.send(declared.body(never_read).unwrap()).await.0, StatusCode::PAYLOAD_TOO_LARGE);

    static PIECE: [u8; 64 * 1024] = [b' '; 64 * 1024];
    for lie in [None, Some(10)] {
        let mut request = ask();
        if let Some(lie) = lie {
            request = request.header(CONTENT_LENGTH, lie);
        }
        // 64 KiB a millisecond: over the cap long before the deadline.
        let (status, _) = fixture.send(request.body(trickle(&PIECE, Duration::from_millis(1))).unwrap()).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let mut largest = body_of("u-1", &json!({}));
    largest.resize(BODY_LIMIT, b' ');
    assert_eq!(fixture.review(largest).await["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a2_large_bodies_share_half_of_the_room_and_small_ones_have_the_other() {
    let metrics = Metrics::new();
    let mut reviews = Reviews::new(snapshots(), metrics.clone()).decided_by(allow);
    reviews.alone = Account::alone(Bounds { connections: 1, memory: 2560 * 1024 });
    let fixture = Fixture { router: reviews.router(), metrics };
    static HALF: [u8; 900 * 1024] = [b' '; 900 * 1024];
    let hog = ask().body(trickle(&HALF, Duration::from_secs(3))).unwrap();
    let hog = tokio::spawn(fixture.router.clone().oneshot(hog));
    tokio::time::sleep(Duration::from_secs(4)).await;

    let mut large = body_of("u-1", &json!({}));
    large.resize(512 * 1024, b' ');
    let (status, text) = fixture.post(large.clone()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.starts_with(b"Overloaded: "), "{text:?}");
    assert_eq!(fixture.review(body_of("u-2", &json!({}))).await["allowed"], true);
    assert_eq!(hog.await.unwrap().unwrap().status(), StatusCode::SERVICE_UNAVAILABLE, "it has outgrown the budget");
    assert_eq!(fixture.review(large).await["allowed"], true, "the room was given back");
    assert_eq!(fixture.shed("body_budget"), 2);
}

#[tokio::test]
async fn a3_depth_is_decided_by_evaluate_without_stack() {
    fn depth(request: &review::Request<'_>, _: &Snapshot) -> Verdict {
        assert!(request.object.as_ref().is_some_and(|object| object.get().len() > 1_000_000));
        Verdict::skipped(Reason::NothingToInject)
    }
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
    let body = String::from_utf8(body_of("u-1", &json!("DEEP"))).unwrap().replace("\"DEEP\"", &deep);
    let mocked = fixture(depth);
    assert_eq!(mocked.review(body.clone().into_bytes()).await["allowed"], true);
    assert_eq!(mocked.metrics.panics.get(), 0);

    let real = fixture(crate::admission::evaluate);
    let annotation = "[".repeat(1_000_000);
    let pod = json!({"metadata":{"annotations":{"kagenti.io/authbridge-status":annotation,"x":annotation},
        "labels":{"kagenti.io/type":"agent"}},"spec":{"containers":[{"name":"a"}]}});
    for body in [body.into_bytes(), body_of("u-2", &pod)] {
        let response = real.review(body).await;
        assert!(response["allowed"].is_boolean());
        assert_ne!(response["status"]["code"], 500);
    }
    assert_eq!(real.metrics.panics.get(), 0);
}

#[tokio::test]
async fn a5_only_post_of_plain_json_to_a_known_path() {
    let fixture = fixture(allow);
    let body = || Body::from(body_of("u-1", &json!({})));
    let path = keys::PATH_INJECT;
    for method in ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, "application/json");
        assert_eq!(fixture.send(request.body(body()).unwrap()).await.0, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    for path in ["/", "/metrics", "/debug", "/healthz", "/mutate-workloads-authbridge/", "/mutate"] {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        assert_eq!(fixture.send(request.body(body()).unwrap()).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    for (media, expected) in [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ("application/json;charset=\"utf-8\"", 200),
        ("application/json; charset=latin1", 415),
        ("application/jsonp", 415),
        ("text/plain", 415),
        ("", 415),
    ] {
        let request = Request::post(path).header(CONTENT_TYPE, media).body(body()).unwrap();
        assert_eq!(fixture.send(request).await.0.as_u16(), expected, "{media:?}");
    }
    let none = Request::post(path).body(body()).unwrap();
    assert_eq!(fixture.send(none).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    for (encoding, expected) in [("gzip", 415), ("identity", 200), ("zstd", 415)] {
        let request = ask().header(CONTENT_ENCODING, encoding).body(body()).unwrap();
        assert_eq!(fixture.send(request).await.0.as_u16(), expected, "{encoding}");
    }
}

#[tokio::test]
async fn a6_other_versions_are_refused_in_a_version_the_caller_reads() {
    let fixture = fixture(allow);
    let text = String::from_utf8(body_of("u-1", &json!({}))).unwrap();
    for (asked, answered) in [("v1beta1", "v1beta1"), ("v2", "v1")] {
        let body = text.replace("admission.k8s.io/v1", &format!("admission.k8s.io/{asked}"));
        let (status, bytes) = fixture.post(body.into_bytes()).await;
        let answer: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(status, StatusCode::OK);
        assert_eq!(answer["apiVersion"], format!("admission.k8s.io/{answered}"));
        assert_eq!(answer["response"]["uid"], "u-1");
        assert_eq!(answer["response"]["allowed"], false);
        let message = answer["response"]["status"]["message"].as_str().unwrap();
        assert!(message.starts_with("BadReview: ") && message.contains("What to do: "), "{message}");
    }
    let extra = text.replace("\"request\":{", "\"future\":[1],\"request\":{\"future\":{\"a\":1},");
    assert_eq!(fixture.review(extra.into_bytes()).await["allowed"], true);
}

#[tokio::test]
async fn a7_equal_reviews_get_equal_bytes_concurrently_and_from_another_process_start() {
    let pod = json!({"metadata":{"generateName":"a-","labels":{"kagenti.io/type":"agent"}},
        "spec":{"containers":[{"name":"agent","image":"x","ports":[{"containerPort":8000}]}]}});
    let body = body_of("u-1", &pod);
    let (first, second) = (fixture(crate::admission::evaluate), fixture(crate::admission::evaluate));
    let answers = futures::future::join_all(
        [&first, &first, &first, &second].into_iter().map(|fixture| fixture.post(body.clone())),
    )
    .await;
    assert!(answers.iter().all(|answer| answer == &answers[0]));
}

#[tokio::test]
async fn a14_a_panic_is_an_answer_and_the_next_review_is_fine() {
    fn trap(request: &review::Request<'_>, _: &Snapshot) -> Verdict {
        static LOCK: parking_lot::Mutex<u32> = parking_lot::Mutex::new(0);
        let mut held = LOCK.lock();
        *held += 1;
        assert!(request.uid != "trap", "a defect while a lock is held");
        Verdict::skipped(Reason::NothingToInject)
    }
    let fixture = fixture(trap);
    let mut large = body_of("trap", &json!({}));
    large.resize(INLINE + 1, b' ');
    for (body, count) in [(body_of("trap", &json!({})), 1), (large, 2)] {
        let refused = fixture.review(body).await;
        assert_eq!((refused["uid"].as_str(), refused["allowed"].as_bool()), (Some("trap"), Some(false)));
        assert_eq!(refused["status"]["code"], 500);
        assert_eq!(fixture.metrics.panics.get(), count);
        assert_eq!(fixture.review(body_of("u-2", &json!({}))).await["allowed"], true);
    }
    assert_eq!(fixture.metrics.webhook_in_flight.get_or_create(&Webhook { webhook: keys::PATH_INJECT }).get(), 0);
}

/// The answers of the endpoints that only advise, to a body whose decision comes to nothing.
async fn advised(fixture: &Fixture, body: &[u8]) -> Vec<Value> {
    let mut answers = Vec::new();
    for path in advisory() {
        let request = Request::post(format!("{path}?timeout=10s")).header(CONTENT_TYPE, "application/json");
        let (status, bytes) = fixture.send(request.body(Body::from(body.to_vec())).unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&bytes));
        answers.push(serde_json::from_slice::<Value>(&bytes).unwrap()["response"].take());
    }
    assert_eq!(answers.len(), 2);
    answers
}

/// Whoever only advises lets through what it could not look at, and says that it did not.
fn let_through(answers: &[Value], reason: Reason) {
    for answer in answers {
        assert_eq!((&answer["uid"], &answer["allowed"]), (&json!("u-1"), &json!(true)), "{answer}");
        let [warning] = &answer["warnings"].as_array().unwrap()[..] else { panic!("{answer}") };
        let warning = warning.as_str().unwrap();
        assert!(warning.starts_with(reason.code()) && warning.contains("could not look at this object"), "{warning}");
    }
}

#[tokio::test]
async fn a14_advice_that_ends_in_a_panic_refuses_nothing() {
    fn trap(_: &review::Request<'_>, _: &Snapshot) -> Verdict {
        panic!("a defect")
    }
    let fixture = fixture(trap);
    let mut large = body_of("u-1", &json!({}));
    large.resize(INLINE + 1, b' ');
    for body in [body_of("u-1", &json!({})), large] {
        let_through(&advised(&fixture, &body).await, Reason::InternalError);
    }
    assert_eq!((fixture.metrics.panics.get(), fixture.decisions(Reason::InternalError)), (4, 4));
}

#[tokio::test]
async fn a1_advice_about_a_review_that_cannot_be_read_refuses_nothing() {
    let fixture = fixture(allow);
    let whole = body_of("u-1", &json!({"a": 1}));
    let_through(&advised(&fixture, &whole[..whole.len() - 4]).await, Reason::BadReview);
    assert_eq!(fixture.decisions(Reason::BadReview), 2);
}

#[tokio::test]
async fn a_replica_without_a_snapshot_answers_503() {
    let metrics = Metrics::new();
    let fixture = Fixture { router: Reviews::new(SnapshotCell::new(), metrics.clone()).router(), metrics };
    let (status, text) = fixture.post(body_of("u-1", &json!({}))).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(text.starts_with(b"NotReady: "), "{text:?}");
}

#[tokio::test]
async fn verdicts_reach_the_answer_and_the_metrics() {
    fn decide(request: &review::Request<'_>, _: &Snapshot) -> Verdict {
        if request.phase == review::Phase::Validate {
            return Verdict::skipped(Reason::NothingToInject);
        }
        let denial = Denial::new(Reason::HostNetwork, 403, "no", "do").at("spec.hostNetwork", "true");
        let mut verdict = Verdict::denied(denial);
        verdict.warnings = vec![Warning::new(Reason::UnknownMode, "line\nbreak")];
        verdict.audit.push(("mode", "envoy-sidecar".to_owned()));
        verdict
    }
    let fixture = fixture(decide);
    let response = fixture.review(body_of("u-1", &json!({}))).await;
    assert_eq!(response["status"]["reason"], "Forbidden");
    assert_eq!(response["status"]["message"], "HostNetwork: no (spec.hostNetwork: true). What to do: do.");
    assert_eq!(response["warnings"], json!(["UnknownMode: line break"]));
    assert_eq!(response["auditAnnotations"], json!({"reason":"HostNetwork","mode":"envoy-sidecar"}));
    let explain = Request::post(keys::PATH_EXPLAIN).header(CONTENT_TYPE, "application/json");
    let (status, _) = fixture.send(explain.body(Body::from(body_of("u-2", &json!({})))).unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    let text = fixture.metrics.text().unwrap();
    for line in [
        r#"drawbridge_decisions_total{reason="HostNetwork"} 1"#,
        r#"drawbridge_decisions_total{reason="NothingToInject"} 1"#,
        r#"drawbridge_warnings_total{reason="UnknownMode"} 1"#,
        r#"controller_runtime_webhook_requests_total{webhook="/mutate-workloads-authbridge",code="200"} 1"#,
        r#"controller_runtime_webhook_requests_in_flight{webhook="/explain-workloads-authbridge"} 0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
    }
}

/// Collects log lines.
#[derive(Clone, Default)]
struct Lines(Arc<parking_lot::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a1_every_review_is_one_log_line_that_holds_nothing_of_the_object() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let real = fixture(crate::admission::evaluate);
    let canary = "canary-4711";
    let pod = json!({"metadata":{"labels":{"kagenti.io/type":"agent"},"annotations":{"a":canary}},
        "spec":{"containers":[{"name":"a","image":"x","env":[{"name":"TOKEN","value":canary}]}]}});
    let whole = body_of("u-1", &pod);
    let long = body_of(&"u".repeat(500), &json!({}));
    let bodies =
        [whole.clone(), whole[..whole.len() - 3].to_vec(), format!("[\"{canary}\"]").into_bytes(), vec![], long];
    let count = bodies.len();
    // Another test may come to the log line first, on a thread where nobody listens: what was noted of that is put right.
    real.post(whole.clone()).await;
    tracing::callsite::rebuild_interest_cache();
    lines.0.lock().clear();
    for body in bodies {
        real.post(body).await;
    }
    drop(guard);
    let text = String::from_utf8(lines.0.lock().clone()).unwrap();
    assert_eq!(text.lines().count(), count, "{text}");
    assert!(!text.contains(canary), "{text}");
    for line in text.lines() {
        assert!(line.len() < 1024, "{line}");
        let line: Value = serde_json::from_str(line).unwrap();
        for field in ["webhook", "uid", "namespace", "kind", "allowed", "reason", "operations", "micros"] {
            assert!(!line["fields"][field].is_null(), "{field} is missing in {line}");
        }
    }
}
