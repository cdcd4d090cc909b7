//! One question over one connection.

use std::io::ErrorKind;
use std::sync::Arc;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, SERVER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::fault::{Bound, HttpFault, Phase};
use super::places::Places;
use super::sent::is_stream;
use super::wire::{Came, Metered};
use super::{Answer, Answered, BODY, HEAD, HEADERS, Method, Patience, SAID, SMALL, Sent};
use crate::domain::printable::printable;

pub(super) async fn exchange(sent: Sent<'_>, patience: Patience, large: &Places) -> Result<Answered, HttpFault> {
    let begun = Instant::now();
    let (head, whole) = (begun + patience.head.min(patience.whole), begun + patience.whole);
    let connected = timeout_at(head, TcpStream::connect(sent.address)).await;
    let stream = connected.map_err(|_| HttpFault::Timeout(Phase::Connect))?.map_err(|error| unconnected(&error))?;
    until(stream, sent, (head, whole), large).await
}

/// The same over a connection that is there already.
pub(super) async fn over<S>(
    stream: S,
    sent: Sent<'_>,
    patience: Patience,
    large: &Places,
) -> Result<Answered, HttpFault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let begun = Instant::now();
    until(stream, sent, (begun + patience.head.min(patience.whole), begun + patience.whole), large).await
}

async fn until<S>(
    stream: S,
    sent: Sent<'_>,
    (head, whole): (Instant, Instant),
    large: &Places,
) -> Result<Answered, HttpFault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (stream, came) = Metered::new(stream);
    // The buffer holds one head, and is what bounds it.
    let built = Builder::new().max_headers(HEADERS).max_buf_size(HEAD).handshake(TokioIo::new(stream)).await;
    let (sender, connection) = built.map_err(|error| broken(&error, &came))?;
    let mut talk = Box::pin(talk(sender, sent, (&came, large), head, whole));
    let mut connection = Box::pin(connection);
    tokio::select! {
        answer = &mut talk => return answer,
        // What ended it is heard by whoever reads from it.
        _ = &mut connection => {}
    }
    talk.await
}

async fn talk(
    mut sender: SendRequest<Full<Bytes>>,
    sent: Sent<'_>,
    (came, large): (&Arc<Came>, &Places),
    head: Instant,
    whole: Instant,
) -> Result<Answered, HttpFault> {
    let request = request(sent)?;
    let answered = timeout_at(head, sender.send_request(request)).await;
    let answer =
        answered.map_err(|_| HttpFault::Timeout(Phase::Head))?.map_err(|error| match error.is_parse_too_large() {
            true => HttpFault::TooLarge(Bound::Head),
            false => broken(&error, came),
        })?;
    let late = HttpFault::Timeout(Phase::Body);
    match answer.status() {
        StatusCode::OK => timeout_at(whole, body(answer, sent, came, large)).await.map_err(|_| late)?,
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT if sent.method != Method::Get => {
            Ok(Answered { headers: answer.headers().clone(), answer: Answer { body: Vec::new(), _place: None } })
        }
        StatusCode::NOT_FOUND => Err(HttpFault::NotFound),
        status if status.is_redirection() => Err(HttpFault::Redirect(status.as_u16())),
        _ => Err(timeout_at(whole, refusal(answer)).await.map_err(|_| late)?),
    }
}

/// The request, with what every request has.
fn request(sent: Sent<'_>) -> Result<Request<Full<Bytes>>, HttpFault> {
    let method = match sent.method {
        Method::Get => http::Method::GET,
        Method::Post => http::Method::POST,
        Method::Delete => http::Method::DELETE,
    };
    let mut request = Request::builder()
        .method(method)
        .uri(sent.path)
        .header(HOST, sent.host)
        .header(ACCEPT, sent.accept)
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .header(USER_AGENT, concat!("drawbridge/", env!("CARGO_PKG_VERSION")));
    for (name, value) in sent.headers {
        request = request.header(*name, *value);
    }
    if sent.method == Method::Post {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    // Only a value that no header can hold: it is no name of a Service then.
    request.body(Full::new(Bytes::copy_from_slice(sent.body.as_bytes()))).map_err(|_| HttpFault::Malformed)
}

/// All of the body.
async fn body(answer: Response<Incoming>, sent: Sent<'_>, came: &Came, large: &Places) -> Result<Answered, HttpFault> {
    let mut encodings = answer.headers().get_all(CONTENT_ENCODING).iter();
    if encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(HttpFault::Encoded);
    }
    let (parts, mut incoming) = answer.into_parts();
    let streams = sent.whole.filter(|_| is_stream(&parts.headers));
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
            // Nothing is read meanwhile, so the agent waits.
            place = large.take(sent.host).await;
        }
        body.extend_from_slice(&data);
        if streams.is_some_and(|whole| whole(&body)) {
            break;
        }
    }
    Ok(Answered { headers: parts.headers, answer: Answer { body, _place: place } })
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
        ErrorKind::ConnectionRefused => "nothing listens on the port",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "no route leads to the address",
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => "it was reset",
        ErrorKind::TimedOut => "nobody answered",
        _ => "the operating system refused the connection",
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
