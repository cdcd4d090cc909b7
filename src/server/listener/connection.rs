//! One connection, from accepted to gone.
//!
//! In: an accepted stream and the steps of the server's end. Out: nothing; what happened is in the metrics.
//! Promises: HTTP/1 connections are retired by `Connection: close` on an answer and never closed between requests by us
//! unless they were quiet, HTTP/2 ones by GOAWAY; none lives much longer than `age`, so none outlives the certificate
//! it was opened with.

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::metered::{Metered, Undelivered};
use super::pulse::{Ending, Pulse};
use super::quota::Account;
use super::requests::Requests;
use super::scan::{FrameScan, HeadScan};
use super::tls::ALPN_H2;
use super::wire::{Counted, Framing, Wire};
use super::{Limits, Server};
use crate::server::telemetry::metrics::PortCause;

/// What a client that speaks plain HTTP to a TLS port is told.
const PLAIN_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Connection: close\r\nContent-Length: 48\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// Bytes of such a request that are read away, so that closing does not reset the answer.
const PLAIN_READ: u64 = 64 * 1024;
/// What a connection takes by being there: its task, TLS, and the buffers of HTTP/1.1 (measured in `tests/server_faults/flood.rs`).
pub(super) const COST: usize = 16 * 1024;
/// What HTTP/2 may take besides before a request is there: every byte that its window lets in, and a head that is not whole.
const HTTP2_COST: usize = HTTP2_WINDOW as usize + 64 * 1024;
/// Bytes of bodies that a client may have sent and nobody read, for all streams of a connection.
const HTTP2_WINDOW: u32 = 256 * 1024;
/// The same for one stream.
const HTTP2_STREAM_WINDOW: u32 = 64 * 1024;

/// The end of the server, step by step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Serving.
    Running,
    /// Clients should move on.
    Draining,
    /// Quiet connections end.
    Closing,
    /// All connections end.
    Cut,
}

/// A stream that we can serve on.
pub(super) trait Transport: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The first byte, without taking it off the stream.
    fn first_byte(&self) -> impl Future<Output = io::Result<u8>> + Send;
}

impl Transport for TcpStream {
    async fn first_byte(&self) -> io::Result<u8> {
        let mut byte = [0];
        match self.peek(&mut byte).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(byte[0]),
        }
    }
}

/// Serves `stream` until it ends.
pub(super) async fn serve<S: Transport>(
    server: Arc<Server>,
    stream: S,
    account: Arc<Account>,
    steps: watch::Receiver<Step>,
) {
    let Some(config) = server.tls.clone() else {
        let opened = Opened { stream, undelivered: Undelivered::default(), account };
        return http1_on(&server, opened, steps).await;
    };
    let stream = Metered::new(stream, &account);
    let undelivered = stream.undelivered();
    let stream = match tokio::time::timeout(server.limits.handshake, handshake(config, stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(cause)) => return failed(&server, cause),
        Err(_elapsed) => return failed(&server, "timeout"),
    };
    let session = stream.get_ref().1;
    // Those that we do not accept do not come here.
    if session.peer_certificates().is_some() {
        account.prove();
    }
    let http2 = session.alpn_protocol() == Some(ALPN_H2);
    let opened = Opened { stream, undelivered, account };
    if http2 { http2_on(&server, opened, steps).await } else { http1_on(&server, opened, steps).await }
}

/// A stream that is ready for requests.
struct Opened<S> {
    stream: S,
    undelivered: Undelivered,
    account: Arc<Account>,
}

impl<S> Opened<S> {
    /// What hyper reads and writes, and what it asks.
    fn parts(self, server: &Server, framing: Framing) -> (TokioIo<Wire<S>>, Requests) {
        let (pulse, account) = (Arc::new(Pulse::default()), self.account);
        let counted = Counted { pulse: pulse.clone(), account: account.clone(), undelivered: self.undelivered };
        let wire = Wire::new(self.stream, framing, server.limits, counted);
        let requests = Requests { router: server.router.clone(), pulse, account, metrics: server.metrics.clone() };
        (TokioIo::new(wire), requests)
    }
}

fn failed(server: &Server, cause: &'static str) {
    server.metrics.handshake_failures.get_or_create(&PortCause { port: server.name, cause }).inc();
}

/// TLS, or the cause for the metric. The bytes of a failed handshake are the peer's choice, so none are logged.
async fn handshake<S: Transport>(config: Arc<ServerConfig>, stream: S) -> Result<TlsStream<S>, &'static str> {
    let first = stream.first_byte().await.map_err(|_| "disconnected")?;
    // A handshake record begins with 22, methods of HTTP with a capital letter.
    if first.is_ascii_uppercase() {
        refuse_plain(stream).await;
        return Err("plain_http");
    }
    TlsAcceptor::from(config).accept(stream).await.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => refusal(&error),
        _ => "disconnected",
    })
}

/// Why we refused: what is wrong with the client's certificate, where we ask for one.
fn refusal(error: &io::Error) -> &'static str {
    use rustls::{CertificateError, Error as TlsError};
    match error.get_ref().and_then(|error| error.downcast_ref::<TlsError>()) {
        Some(TlsError::NoCertificatesPresented) => "client_certificate_missing",
        Some(TlsError::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. })) => {
            "client_certificate_expired"
        }
        Some(TlsError::InvalidCertificate(_)) => "client_certificate_refused",
        _ => "refused",
    }
}

async fn refuse_plain<S: Transport>(mut stream: S) {
    // The peer may be gone at any point; there is nobody else to tell.
    if stream.write_all(PLAIN_ANSWER).await.is_ok() && stream.shutdown().await.is_ok() {
        drop(tokio::io::copy(&mut stream.take(PLAIN_READ), &mut tokio::io::sink()).await);
    }
}

async fn http1_on<S>(server: &Server, opened: Opened<S>, steps: watch::Receiver<Step>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (stream, requests) = opened.parts(server, Framing::Heads(HeadScan::default()));
    let pulse = requests.pulse.clone();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(server.limits.head_size)
        .serve_connection(stream, requests);
    live(server, pin!(connection), &pulse, steps).await;
}

async fn http2_on<S>(server: &Server, opened: Opened<S>, steps: watch::Receiver<Step>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if opened.account.cost(COST + HTTP2_COST).is_err() {
        opened.account.give_up();
        return std::future::pending().await;
    }
    let (stream, requests) = opened.parts(server, Framing::Frames(FrameScan::default()));
    let pulse = requests.pulse.clone();
    let connection = http2_settings(server.limits).serve_connection(stream, requests);
    live(server, pin!(connection), &pulse, steps).await;
}

/// hyper's defaults are for browsers; a review is one small request with one small answer.
fn http2_settings(limits: Limits) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        .max_header_list_size(u32::try_from(limits.head_size).unwrap_or(u32::MAX))
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_WINDOW)
        .max_send_buf_size(256 * 1024)
        .max_pending_accept_reset_streams(20)
        .max_local_error_reset_streams(64)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(limits.write);
    builder
}

/// Something hyper serves on.
trait Drains: Future<Output = hyper::Result<()>> {
    /// Tells the client to move on, where the protocol has a message for it.
    fn go_away(self: Pin<&mut Self>);
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Drains for http1::Connection<TokioIo<Wire<S>>, Requests> {
    /// `Connection: close` on the next answer does it.
    fn go_away(self: Pin<&mut Self>) {}
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Drains
    for http2::Connection<TokioIo<Wire<S>>, Requests, TokioExecutor>
{
    fn go_away(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

async fn live<C: Drains>(
    server: &Server,
    mut connection: Pin<&mut C>,
    pulse: &Pulse,
    mut steps: watch::Receiver<Step>,
) {
    let mut age = pin!(tokio::time::sleep(jittered(server.limits.age)));
    let mut aged = false;
    // A connection that is accepted while the server drains learns of it at once.
    steps.mark_changed();
    loop {
        tokio::select! {
            // An error is the peer's doing, or ours and then in `pulse`.
            _ = connection.as_mut() => break,
            () = &mut age, if !aged => {
                aged = true;
                pulse.retire();
                connection.as_mut().go_away();
            }
            () = pulse.told_to_move_on(), if !aged => {
                aged = true;
                pulse.retire();
                connection.as_mut().go_away();
            }
            changed = steps.changed() => match *steps.borrow_and_update() {
                Step::Running if changed.is_ok() => {}
                Step::Draining => pulse.retire(),
                Step::Closing => {
                    pulse.close();
                    connection.as_mut().go_away();
                }
                Step::Running | Step::Cut => {
                    pulse.end(Ending::Grace);
                    break;
                }
            },
        }
    }
    if let Some(ending) = pulse.ending() {
        let cause = ending.as_str();
        server.metrics.connections_ended.get_or_create(&PortCause { port: server.name, cause }).inc();
    }
}

/// `duration` and up to a tenth more, so that connections opened together do not end together.
fn jittered(duration: Duration) -> Duration {
    let random = RandomState::new().build_hasher().finish() % 1000;
    duration + duration.mul_f64(f64::from(u16::try_from(random).unwrap_or(0)) / 10_000.0)
}
