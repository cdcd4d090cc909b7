//! A gRPC server of `envoy.service.ext_proc.v3.ExternalProcessor` that lets everything pass and remembers what it saw.
//!
//! In: the stream of ProcessingRequests. Out: an empty answer to each, and [`Seen`]. Only what the tests judge is
//! decoded (`envoy/service/ext_proc/v3/external_processor.proto`, `envoy/config/core/v3/base.proto`):
//!
//! ```text
//! ProcessingRequest { 2: request_headers, 3: response_headers }   HttpHeaders { 1: headers }
//! HeaderMap { 1: repeated HeaderValue }                           HeaderValue { 1: key, 2: value, 3: raw_value }
//! ProcessingResponse { 1: request_headers, 2: response_headers }
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

use super::serving::Serving;

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
        let seen = Seen::default();
        let shared = Arc::clone(&seen);
        let serving = Serving::start(move |request| {
            let seen = Arc::clone(&shared);
            async move { answer(request, seen) }
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
) -> Response<impl Body<Data = Bytes, Error = Infallible> + Send + 'static> {
    let (frames, outgoing) = unbounded();
    let mut response = Response::new(StreamBody::new(outgoing));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    if request.uri().path() == METHOD {
        tokio::spawn(async move {
            let outcome = converse(request.into_body(), &seen, &frames).await;
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
async fn converse(mut incoming: Incoming, seen: &Seen, frames: &Frames) -> Result<()> {
    let mut buffer = Vec::new();
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        buffer.extend_from_slice(&data);
        while let Some(message) = take_message(&mut buffer)? {
            let reply = process(&message, seen)?;
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

/// Notes the request's headers, and returns the framed answer: go on, with nothing changed.
fn process(message: &[u8], seen: &Seen) -> Result<Bytes> {
    for (field, value) in fields(message)? {
        let answered = match (field, value) {
            (REQUEST_HEADERS, Field::Bytes(headers)) => {
                seen.lock().push(header_map(headers)?);
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
