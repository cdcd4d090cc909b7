//! The admission endpoints: one row per path, one handler for all.
//!
//! In: HTTP requests. Out: AdmissionReviews, or a plain status where no uid was readable. Promises: POST with
//! `application/json` only; no more than [`BODY_LIMIT`] is read and never more held than the connection's
//! quota has room for; each review is
//! decided once, from one snapshot, and leaves one log line without a byte of the object; an answer comes before the
//! API server's own patience ends; a panic is an answer too.

mod answer;
mod body;
mod decide;
mod patch;
mod soon;
#[cfg(test)]
mod tests;
mod told;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use http::{Request, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::admission::verdict::Verdict;
use crate::api::review;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::server::listener::quota::{Account, Bounds, Charge};
use crate::server::snapshots::SnapshotCell;
use crate::server::telemetry::metrics::{Cause, Metrics, Webhook, WebhookCode};
use answer::Answer;
use body::Fault;

/// Largest body: two objects at etcd's limit of 3 MiB and slack, as controller-runtime has it.
pub const BODY_LIMIT: usize = 7 * 1024 * 1024;
/// What all bodies under way may hold together where requests come without a connection.
const ALONE: Bounds = Bounds { connections: 1, memory: 128 * 1024 * 1024 };
/// Bodies up to here are decided where they are read: that takes some 100 µs, less than handing them over would cost
/// under load. Larger ones go to a blocking thread, so that they delay nobody else. A decision that has begun here cannot
/// be cut short, and need not be: the worst body of this size takes less than [`MARGIN`] (shown in a test).
pub const INLINE: usize = 256 * 1024;
/// Large reviews decided at once; more are refused with [`Reason::Overloaded`].
const LARGE_AT_ONCE: usize = 4;
/// `timeoutSeconds` of our registrations, for callers that do not send `?timeout=`.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest `timeoutSeconds` Kubernetes allows.
const TIMEOUT_LONGEST: Duration = Duration::from_secs(30);
/// Least margin between our answer and the API server's patience.
pub const MARGIN: Duration = Duration::from_millis(100);

/// How a review is decided; [`crate::admission::evaluate`] but in tests.
pub type Evaluate = fn(&review::Request<'_>, &Snapshot) -> Verdict;

/// One endpoint.
#[derive(Debug)]
struct Route {
    path: &'static str,
    phase: review::Phase,
    /// It is registered with `failurePolicy: Ignore`: what it cannot look at is stored all the same, and the answer says so.
    advises: bool,
}

impl Route {
    const fn mutates(path: &'static str) -> Self {
        Self { path, phase: review::Phase::Mutate, advises: false }
    }

    const fn validates(path: &'static str) -> Self {
        Self { path, phase: review::Phase::Validate, advises: false }
    }

    const fn advises(path: &'static str) -> Self {
        Self { advises: true, ..Self::validates(path) }
    }
}

/// Every endpoint.
const ROUTES: &[Route] = &[
    Route::mutates(keys::PATH_INJECT),
    Route::advises(keys::PATH_EXPLAIN),
    Route::advises(keys::PATH_AGENT_RUNTIME),
    Route::mutates(keys::PATH_COMPLETE_BUILD),
    Route::validates(keys::PATH_AGENT_BUILD),
    Route::validates(keys::PATH_AGENT),
    Route::validates(keys::PATH_BEEAI_AGENT),
    Route::validates(keys::PATH_KAOS),
    Route::validates(keys::PATH_BEEAI_BUILD),
    Route::validates(keys::PATH_AGENT_CARD),
];

/// The paths of the endpoints that only advise, as [`ROUTES`] has them.
pub fn advisory() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().filter(|route| route.advises).map(|route| route.path)
}

/// What the endpoints share.
#[derive(Debug)]
pub struct Reviews {
    snapshots: SnapshotCell,
    metrics: Arc<Metrics>,
    evaluate: Evaluate,
    alone: Arc<Account>,
    large: Arc<Semaphore>,
    waiting: soon::Places,
    in_vain: soon::InVain,
    told: told::Told,
}

impl Reviews {
    /// Reviews decided from what is in `snapshots`.
    #[must_use]
    pub fn new(snapshots: SnapshotCell, metrics: Arc<Metrics>) -> Self {
        Self {
            snapshots,
            metrics,
            evaluate: crate::admission::evaluate,
            alone: Account::alone(ALONE),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
            waiting: soon::Places::default(),
            in_vain: soon::InVain::default(),
            told: told::Told::default(),
        }
    }

    /// The same, decided by another function.
    #[must_use]
    pub fn decided_by(mut self, evaluate: Evaluate) -> Self {
        self.evaluate = evaluate;
        self
    }

    /// The endpoints.
    pub fn router(self) -> Router {
        let shared = Arc::new(self);
        ROUTES.iter().fold(Router::new(), |router, route| {
            let shared = shared.clone();
            router.route(route.path, post(move |request| handle(shared.clone(), route, request)))
        })
    }

    fn shed(&self, cause: &'static str) {
        self.metrics.shed.get_or_create(&Cause { cause }).inc();
    }
}

/// A review under way, for the gauge; also when the client gives up.
struct UnderWay<'m>(&'m Metrics, Webhook);

impl<'m> UnderWay<'m> {
    fn begin(metrics: &'m Metrics, webhook: Webhook) -> Self {
        metrics.webhook_in_flight.get_or_create(&webhook).inc();
        Self(metrics, webhook)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.webhook_in_flight.get_or_create(&self.1).dec();
    }
}

async fn handle(shared: Arc<Reviews>, route: &'static Route, request: Request<Body>) -> Response<Body> {
    let arrived = Instant::now();
    let webhook = Webhook { webhook: route.path };
    let under_way = UnderWay::begin(&shared.metrics, webhook);
    let answer = answer(&shared, route, request, arrived).await;
    drop(under_way);
    let code = WebhookCode { webhook: route.path, code: answer.http.as_u16() };
    shared.metrics.webhook_requests.get_or_create(&code).inc();
    shared.metrics.webhook_latency.get_or_create(&webhook).observe(arrived.elapsed().as_secs_f64());
    answer.into_response()
}

async fn answer(shared: &Arc<Reviews>, route: &'static Route, request: Request<Body>, arrived: Instant) -> Answer {
    if let Err(sentence) = readable(request.headers()) {
        return Answer::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, Reason::BadReview, sentence);
    }
    let deadline = arrived + patience(request.uri().query());
    let declared = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let charge = match request.extensions().get::<Arc<Charge>>() {
        Some(charge) => charge.clone(),
        None => Arc::new(shared.alone.charge()),
    };
    let body = match body::collect(request.into_body(), declared, charge, deadline).await {
        Ok(body) => body,
        Err(fault) => {
            shared.shed(fault.cause());
            return refused_body(fault);
        }
    };
    let Some(snapshot) = shared.snapshots.load() else {
        shared.shed("not_ready");
        let sentence = "the cluster has not been read yet; ask another replica";
        return Answer::plain(StatusCode::SERVICE_UNAVAILABLE, Reason::NotReady, sentence);
    };
    let review = decide::Review { shared: shared.clone(), route, body, snapshot, arrived, deadline };
    if review.body.len() <= INLINE { review.decide_soon().await } else { review.decide_elsewhere().await }
}

fn refused_body(fault: Fault) -> Answer {
    let (status, reason) = match fault {
        Fault::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Reason::BadReview),
        Fault::Late => (StatusCode::REQUEST_TIMEOUT, Reason::DeadlineExceeded),
        Fault::Broken => (StatusCode::BAD_REQUEST, Reason::BadReview),
        Fault::NoRoom => (StatusCode::SERVICE_UNAVAILABLE, Reason::Overloaded),
    };
    Answer::plain(status, reason, &fault.to_string())
}

/// Whether the body is JSON as it stands.
fn readable(headers: &HeaderMap) -> Result<(), &'static str> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?").trim().to_ascii_lowercase());
    if text(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err("Content-Encoding is not decoded here; send the review as it is");
    }
    let Some(media) = text(CONTENT_TYPE) else { return Err("Content-Type is missing; send application/json") };
    let mut parts = media.split(';').map(str::trim);
    if parts.next() != Some("application/json") {
        return Err("Content-Type is not application/json");
    }
    let utf8 = |part: &str| match part.strip_prefix("charset=") {
        Some(charset) => matches!(charset.trim_matches('"'), "utf-8" | "utf8"),
        None => true,
    };
    if parts.all(utf8) { Ok(()) } else { Err("charset is not utf-8, the only one JSON has") }
}

/// How long we may take: what the caller says it waits (`?timeout=10s`), less a margin for the way back.
fn patience(query: Option<&str>) -> Duration {
    let asked = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .find_map(|pair| pair.strip_prefix("timeout="))
        .and_then(go_seconds)
        .map_or(TIMEOUT, |asked| asked.min(TIMEOUT_LONGEST));
    asked.saturating_sub(MARGIN.max(asked / 10))
}

/// A Go duration of one unit, as the API server sends it: `10s`, `1.5s`, `500ms`.
fn go_seconds(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => (text.strip_suffix('s')?, 1.0),
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}
