//! A gRPC server of `envoy.service.ext_proc.v3.ExternalProcessor` that lets everything pass, or what a runtime configuration
//! lets pass, and remembers what it saw.
//!
//! In: the stream of ProcessingRequests. Out: an empty answer to each, or 401 where the [`TokenCheck`] asks for a token, and [`Seen`]. Only what the tests judge is
//! decoded (`envoy/service/ext_proc/v3/external_processor.proto`, `envoy/config/core/v3/base.proto`):
//!
//! ```text
//! ProcessingRequest { 2: request_headers, 3: response_headers }   HttpHeaders { 1: headers }
//! HeaderMap { 1: repeated HeaderValue }                           HeaderValue { 1: key, 2: value, 3: raw_value }
//! ProcessingResponse { 1: request_headers, 2: response_headers, 7: immediate_response }
//! ImmediateResponse { 1: status }                                 HttpStatus { 1: code }
//! ```

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body, Bytes, Frame, Incoming};
use parking_lot::Mutex;

use drawbridge::domain::keys::HEADER_DIRECTION;
use serde_json::Value;

use super::serving::Serving;
use super::token_check::TokenCheck;

const METHOD: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
const REQUEST_HEADERS: u64 = 2;
const RESPONSE_HEADERS: u64 = 3;

/// Names and values of one request, in the order sent.
pub type Headers = Vec<(String, String)>;

type Seen = Arc<Mutex<Vec<Headers>>>;

/// A running stub; connections and port are closed when it is dropped.
#[derive(Debug)]
pub struct ExtProc {
    serving: Serving,
    seen: Seen,
}

impl ExtProc {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start() -> Result<Self> {
        Self::start_with(None).await
    }

    /// Starts one that applies the runtime configuration: what comes in needs a token, any token, unless its path is let through.
    ///
    /// # Errors
    /// When there is no free port, or the real one would not start with the configuration.
    pub async fn applying(config: &Value) -> Result<Self> {
        Self::start_with(Some(TokenCheck::of(config)?)).await
    }

    async fn start_with(check: Option<TokenCheck>) -> Result<Self> {
        let (seen, check) = (Seen::default(), Arc::new(check));
        let shared = Arc::clone(&seen);
        let serving = Serving::start(move |request| {
            let (seen, check) = (Arc::clone(&shared), Arc::clone(&check));
            async move { answer(request, seen, check) }
        });
        Ok(Self { serving: serving.await?, seen })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.serving.address
    }

    /// The headers of every request for `path` that was shown to it, pseudo-headers included.
    #[must_use]
    pub fn seen(&self, path: &str) -> Vec<Headers> {
        let is_for_path = |headers: &&Headers| headers.iter().any(|(name, value)| name == ":path" && value == path);
        self.seen.lock().iter().filter(is_for_path).cloned().collect()
    }

    /// How many requests were shown to it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.seen.lock().len()
    }

    /// Goes away: the port refuses and open streams break.
    pub async fn stop(self) {
        self.serving.stop().await;
    }
}

type Frames = UnboundedSender<Result<Frame<Bytes>, Infallible>>;

fn answer(
    request: Request<Incoming>,
    seen: Seen,
    check: Arc<Option<TokenCheck>>,
) -> Response<impl Body<Data = Bytes, Error = Infallible> + Send + 'static> {
    let (frames, outgoing) = unbounded();
    let mut response = Response::new(StreamBody::new(outgoing));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    if request.uri().path() == METHOD {
        tokio::spawn(async move {
            let outcome = converse(request.into_body(), (&seen, check.as_ref().as_ref()), &frames).await;
            // 13 is INTERNAL: Envoy then fails the request, and the test sees it.
            let status = if outcome.is_ok() { "0" } else { "13" };
            let trailers = HeaderMap::from_iter([(
                http::HeaderName::from_static("grpc-status"),
                HeaderValue::from_static(status),
            )]);
            // Nobody listens any more when Envoy has given the stream up.
            let _ = frames.unbounded_send(Ok(Frame::trailers(trailers)));
        });
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

/// Answers every message of the stream until Envoy ends it.
async fn converse(mut incoming: Incoming, rules: Rules<'_>, frames: &Frames) -> Result<()> {
    let mut buffer = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        buffer.extend_from_slice(&data);
        while let Some(message) = take_message(&mut buffer)? {
            let reply = process(&message, rules)?;
            if frames.unbounded_send(Ok(Frame::data(reply))).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The first complete length-prefixed message of `buffer`, taken out.
fn take_message(buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
    let Some((&[compressed, a, b, c, d], rest)) = buffer.split_first_chunk::<5>() else { return Ok(None) };
    if compressed != 0 {
        bail!("a compressed message was sent, which was not offered");
    }
    let length = usize::try_from(u32::from_be_bytes([a, b, c, d]))?;
    let Some(message) = rest.get(..length).map(<[u8]>::to_vec) else { return Ok(None) };
    buffer.drain(..5 + length);
    Ok(Some(message))
}

/// Where requests are noted, and who checks them.
type Rules<'r> = (&'r Seen, Option<&'r TokenCheck>);

/// `ProcessingResponse` with an immediate answer of status 401, in front the gRPC prefix for its seven bytes.
const UNAUTHORIZED: [u8; 12] = [0, 0, 0, 0, 7, 0x3a, 5, 0x0a, 3, 0x08, 0x91, 0x03];

/// Whether a request with these headers lacks a token that it needs.
fn is_refused(headers: &Headers, check: &TokenCheck) -> bool {
    let value = |name: &str| headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str());
    value(HEADER_DIRECTION) == "inbound" && value("authorization").is_empty() && !check.lets_through(value(":path"))
}

/// Notes the request's headers, and returns the framed answer: go on, with nothing changed, or no further.
fn process(message: &[u8], (seen, check): Rules<'_>) -> Result<Bytes> {
    for (field, value) in fields(message)? {
        let answered = match (field, value) {
            (REQUEST_HEADERS, Field::Bytes(headers)) => {
                let headers = header_map(headers)?;
                let refused = check.is_some_and(|check| is_refused(&headers, check));
                seen.lock().push(headers);
                if refused {
                    return Ok(Bytes::from_static(&UNAUTHORIZED));
                }
                1
            }
            (RESPONSE_HEADERS, Field::Bytes(_)) => 2,
            _ => continue,
        };
        // Tag of a message of that field number, length 0; in front the gRPC prefix for two bytes.
        return Ok(Bytes::from(vec![0, 0, 0, 0, 2, answered << 3 | 2, 0]));
    }
    bail!("neither request nor response headers were sent")
}

fn header_map(http_headers: &[u8]) -> Result<Headers> {
    let mut headers = Headers::new();
    for (_, map) in fields(http_headers)?.into_iter().filter(|(field, _)| *field == 1) {
        for (_, header) in fields(map.bytes()?)?.into_iter().filter(|(field, _)| *field == 1) {
            let (mut name, mut value) = (String::new(), String::new());
            for (field, part) in fields(header.bytes()?)? {
                let text = String::from_utf8_lossy(part.bytes()?).into_owned();
                match field {
                    1 => name = text,
                    // Envoy fills one of the two.
                    2 | 3 if value.is_empty() => value = text,
                    _ => {}
                }
            }
            headers.push((name, value));
        }
    }
    Ok(headers)
}

/// The content of one protobuf field.
#[derive(Clone, Copy)]
enum Field<'a> {
    Bytes(&'a [u8]),
    /// Of no interest to anybody here.
    Scalar,
}

impl<'a> Field<'a> {
    fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Field::Bytes(bytes) => Ok(bytes),
            Field::Scalar => bail!("a scalar stands where a message is expected"),
        }
    }
}

/// Splits a protobuf message into its fields.
fn fields(mut message: &[u8]) -> Result<Vec<(u64, Field<'_>)>> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let field = match tag & 7 {
            0 => varint(&mut message).map(|_| Field::Scalar)?,
            1 => take(&mut message, 8).map(|_| Field::Scalar)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?)?;
                Field::Bytes(take(&mut message, length)?)
            }
            5 => take(&mut message, 4).map(|_| Field::Scalar)?,
            other => bail!("{other} is no wire type of protobuf 3"),
        };
        found.push((tag >> 3, field));
    }
    Ok(found)
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (head, rest) = message.split_at_checked(length).context("a message is cut short")?;
    *message = rest;
    Ok(head)
}

fn varint(message: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(message, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    bail!("a number is longer than 64 bits")
}
