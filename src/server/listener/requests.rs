//! The router, counted: requests under way, and the bytes of their heads and answers.
//!
//! In: requests as hyper reads them. Out: the router's answers. Promises: a request that there is no room for is refused before its
//! body is read, and so is one over HTTP/1 that came before the one ahead of it was answered: nobody has looked whether its head could be
//! understood differently, and no client that is served here sends one; whoever reads the body finds the request's [`Charge`] among its extensions; an answer is charged until its last
//! byte is written, and [`Pulse`] knows for how long it has not been.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::Body;
use http::header::{CONNECTION, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use tower::Service;

use super::pulse::{InFlight, Pulse, Untaken};
use super::quota::{Account, Charge};
use crate::domain::reason::Reason;
use crate::server::telemetry::metrics::{Cause, Metrics};

/// What a request takes besides its bytes: its task, and the protocol's part of it (measured in `tests/server_faults/flood.rs`).
const REQUEST_COST: usize = 8 * 1024;
/// What a header takes besides its bytes.
const HEADER_COST: usize = 160;

/// The router of one connection.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    pub(super) router: Router,
    pub(super) pulse: Arc<Pulse>,
    pub(super) account: Arc<Account>,
    pub(super) metrics: Arc<Metrics>,
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let under_way = InFlight::begin(&self.pulse);
        let charge = Arc::new(self.account.charge());
        let taken = charge.take(REQUEST_COST + size(&request));
        let http1 = request.version() < Version::HTTP_2;
        let pipelined = http1 && !self.pulse.take_head();
        let answer = (taken.is_ok() && !pipelined).then(|| {
            request.extensions_mut().insert(charge.clone());
            self.router.clone().call(request)
        });
        let (pulse, metrics) = (self.pulse.clone(), self.metrics.clone());
        Box::pin(async move {
            let answer = match answer {
                // Of the answer itself, besides what the request took.
                Some(answer) => Some(answer.await?).filter(|answer| charge.take(length(answer)).is_ok()),
                None => None,
            };
            let response = answer.unwrap_or_else(|| {
                let cause = if pipelined { "pipelined" } else { "memory" };
                metrics.shed.get_or_create(&Cause { cause }).inc();
                if pipelined { too_soon() } else { overloaded() }
            });
            let held = Arc::new(Held { _charge: charge, _untaken: pulse.untaken() });
            let mut response = response.map(|body| Body::new(Kept { body, held }));
            // Afterwards, so that whoever is woken sees the answer.
            under_way.answered();
            if pipelined || (http1 && pulse.retiring()) {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response)
        })
    }
}

/// What a head takes in memory.
fn size<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let path = uri.path_and_query().map_or(0, |path| path.as_str().len());
    path + uri.authority().map_or(0, |authority| authority.as_str().len()) + of_headers(request.headers())
}

fn of_headers(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + HEADER_COST).sum()
}

fn overloaded() -> Response<Body> {
    let reason = Reason::Overloaded;
    let mut response = Response::new(Body::from(format!("{}: {}\n", reason.code(), reason.sentence())));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

fn too_soon() -> Response<Body> {
    let mut response = Response::new(Body::from(
        "the request came before the one ahead of it was answered; send the next one after the answer\n",
    ));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

/// Bytes of an answer.
fn length(response: &Response<Body>) -> usize {
    usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX)
}

/// What an answer holds until its last byte is written.
#[derive(Debug)]
struct Held {
    _charge: Arc<Charge>,
    _untaken: Untaken,
}

/// A body whose pieces hold that, since the protocol keeps them until they are written.
#[derive(Debug)]
struct Kept {
    body: Body,
    held: Arc<Held>,
}

/// A piece of it.
struct Piece {
    bytes: Bytes,
    _held: Arc<Held>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Kept {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let held = &self.held;
        let hold = |bytes| Bytes::from_owner(Piece { bytes, _held: held.clone() });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(hold))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
