//! One question over one connection.

use std::io::ErrorKind;
use std::sync::Arc;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, HOST, SERVER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::fault::{Bound, HttpFault, Phase};
use super::wire::{Came, Metered};
use super::{Answer, BODY, Get, HEAD, HEADERS, Patience, SAID, SMALL};
use crate::domain::printable::printable;

pub(super) async fn exchange(get: Get<'_>, patience: Patience, large: &Arc<Semaphore>) -> Result<Answer, HttpFault> {
    let begun = Instant::now();
    let (head, whole) = (begun + patience.head.min(patience.whole), begun + patience.whole);
    let connected = timeout_at(head, TcpStream::connect(get.address)).await;
    let stream = connected.map_err(|_| HttpFault::Timeout(Phase::Connect))?.map_err(|error| unconnected(&error))?;
    until(stream, get, (head, whole), large).await
}

/// The same over a connection that is there already.
pub(super) async fn over<S>(
    stream: S,
    get: Get<'_>,
    patience: Patience,
    large: &Arc<Semaphore>,
) -> Result<Answer, HttpFault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let begun = Instant::now();
    until(stream, get, (begun + patience.head.min(patience.whole), begun + patience.whole), large).await
}

async fn until<S>(
    stream: S,
    get: Get<'_>,
    (head, whole): (Instant, Instant),
    large: &Arc<Semaphore>,
) -> Result<Answer, HttpFault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (stream, came) = Metered::new(stream);
    // The buffer holds one head, and is what bounds it.
    let built = Builder::new().max_headers(HEADERS).max_buf_size(HEAD).handshake(TokioIo::new(stream)).await;
    let (sender, connection) = built.map_err(|error| broken(&error, &came))?;
    let mut talk = Box::pin(talk(sender, get, (&came, large), head, whole));
    let mut connection = Box::pin(connection);
    tokio::select! {
        answer = &mut talk => return answer,
        // What ended it is heard by whoever reads from it.
        _ = &mut connection => {}
    }
    talk.await
}

async fn talk(
    mut sender: SendRequest<Empty<Bytes>>,
    get: Get<'_>,
    (came, large): (&Arc<Came>, &Arc<Semaphore>),
    head: Instant,
    whole: Instant,
) -> Result<Answer, HttpFault> {
    let request = Request::get(get.path)
        .header(HOST, get.host)
        .header(ACCEPT, "application/json")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .header(USER_AGENT, concat!("drawbridge/", env!("CARGO_PKG_VERSION")))
        .body(Empty::new());
    // Only a Host that no header can hold: it is no name of a Service then.
    let request = request.map_err(|_| HttpFault::Malformed)?;
    let answered = timeout_at(head, sender.send_request(request)).await;
    let answer =
        answered.map_err(|_| HttpFault::Timeout(Phase::Head))?.map_err(|error| match error.is_parse_too_large() {
            true => HttpFault::TooLarge(Bound::Head),
            false => broken(&error, came),
        })?;
    let late = HttpFault::Timeout(Phase::Body);
    match answer.status() {
        StatusCode::OK => timeout_at(whole, body(answer, came, large)).await.map_err(|_| late)?,
        StatusCode::NOT_FOUND => Err(HttpFault::NotFound),
        status if status.is_redirection() => Err(HttpFault::Redirect(status.as_u16())),
        _ => Err(timeout_at(whole, refusal(answer)).await.map_err(|_| late)?),
    }
}

/// All of the body.
async fn body(answer: Response<Incoming>, came: &Came, large: &Arc<Semaphore>) -> Result<Answer, HttpFault> {
    let mut encodings = answer.headers().get_all(CONTENT_ENCODING).iter();
    if encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(HttpFault::Encoded);
    }
    let mut incoming = answer.into_body();
    if incoming.size_hint().lower() > BODY as u64 {
        return Err(HttpFault::TooLarge(Bound::Body));
    }
    let (mut body, mut place) = (Vec::new(), None);
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| broken(&error, came))?;
        let Ok(data) = frame.into_data() else { continue };
        if body.len() + data.len() > BODY {
            return Err(HttpFault::TooLarge(Bound::Body));
        }
        if body.len() + data.len() > SMALL && place.is_none() {
            // Nothing is read meanwhile, so the agent waits; the semaphore is never closed.
            place = large.clone().acquire_owned().await.ok();
        }
        body.extend_from_slice(&data);
    }
    Ok(Answer { body, _place: place })
}

/// What another status than 200 says: the beginning of it.
async fn refusal(answer: Response<Incoming>) -> HttpFault {
    let envoy = answer.headers().get(SERVER).is_some_and(|server| server.as_bytes().eq_ignore_ascii_case(b"envoy"));
    let code = answer.status().as_u16();
    let is_plain = !answer.headers().contains_key(CONTENT_ENCODING);
    let mut incoming = answer.into_body();
    let mut said = Vec::new();
    while is_plain && said.len() < SAID {
        let Some(Ok(frame)) = incoming.frame().await else { break };
        if let Ok(data) = frame.into_data() {
            said.extend_from_slice(&data[..data.len().min(SAID)]);
        }
    }
    HttpFault::Status { code, said: printable(&String::from_utf8_lossy(&said), SAID).into(), envoy }
}

fn unconnected(error: &std::io::Error) -> HttpFault {
    HttpFault::Connect(match error.kind() {
        ErrorKind::ConnectionRefused => "nobody listens at the port",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "the address is not reached",
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => "it was reset",
        ErrorKind::TimedOut => "nobody answered",
        _ => "the system refused it",
    })
}

fn broken(error: &hyper::Error, came: &Came) -> HttpFault {
    match () {
        () if came.is_over() => HttpFault::TooLarge(Bound::Wire),
        () if came.is_nothing() => HttpFault::Closed,
        () if came.is_tls() => HttpFault::SpeaksTls,
        () if error.is_parse() || is_nonsense(error) => HttpFault::Malformed,
        () => HttpFault::Cut,
    }
}

/// A body whose chunks cannot be read, or have more beside them than is read.
fn is_nonsense(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| matches!(cause.kind(), ErrorKind::InvalidData | ErrorKind::InvalidInput))
}
