//! Sockets to requests: accept, TLS, HTTP/1.1 and HTTP/2, deadlines, caps, drain.
//!
//! ```text
//! listener (accept, cap, back-off) ─► connection (handshake, age, drain) ─► wire (deadlines, strict heads)
//!      └─► quota (bytes in flight, who goes for others' sake) ◄─┴─ metered ──────┴─► hyper ─► requests ─► router
//! ```
//!
//! In: a bound socket, a router, optionally a TLS configuration. Out: answered requests, and how many connections were
//! cut off in the end. Promises: each phase of a connection has a deadline of its own, memory is bounded by the
//! limits, a draining server loses no request of a well-behaved client.
//!
//! Own loop instead of axum-server: that has one deadline for heads, which also ends idle keep-alive connections (the
//! API server keeps them for 90 s and does not retry), no cap on connections, no maximum age and no per-cause metrics.

mod accept;
mod connection;
mod metered;
mod pulse;
pub mod quota;
mod requests;
mod scan;
#[cfg(test)]
mod tests;
pub mod tls;
mod wire;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket};

use super::shutdown::Shutdown;
use super::telemetry::metrics::Metrics;

/// Connections the kernel holds for us until they are accepted.
const BACKLOG: u32 = 4096;

/// What the kernel buffers of a connection, each way; it doubles that. Left to itself it would be megabytes, which count as ours.
const SOCKET_BUFFER: u32 = 64 * 1024;

/// Every deadline and cap of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// TCP accept to end of the TLS handshake.
    pub handshake: Duration,
    /// First byte of a head to its end.
    pub head: Duration,
    /// Silence between requests. Longer than the 90 s for which Go's clients keep a connection, so that it is always
    /// the client that closes: a POST into a connection that we are closing is lost.
    pub idle: Duration,
    /// Time for which an answer may wait for a client that does not read.
    pub write: Duration,
    /// Age from which answers ask the client to reconnect; a tenth of it is added at random.
    pub age: Duration,
    /// Silence after which a connection is closed once the server is closing.
    pub quiet: Duration,
    /// Closing to exit: what is not answered by then is cut off.
    pub grace: Duration,
    /// Open connections; beyond it the kernel's backlog waits. Above half of it those that prove nothing are shed, see [`quota`].
    pub connections: usize,
    /// Bytes that all connections may hold together.
    pub memory: usize,
    /// Concurrent streams of one HTTP/2 connection.
    pub streams: u32,
    /// Size of a head, in bytes; also how much of a body is buffered ahead of its reader.
    pub head_size: usize,
    /// Largest body the router accepts, in bytes; bounds what a connection may send per request.
    pub body_size: usize,
    /// Bytes a connection may send without asking for anything (HTTP/2 control frames).
    pub chatter: usize,
    /// Requests of one connection that may be given up unanswered (HTTP/2 resets) until the client is asked to reconnect; with four times as many it is
    /// cut off.
    pub abandoned: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(150),
            write: Duration::from_secs(20),
            age: Duration::from_secs(300),
            quiet: Duration::from_secs(1),
            grace: Duration::from_secs(20),
            connections: 4096,
            memory: 96 * 1024 * 1024,
            streams: 64,
            head_size: 16 * 1024,
            body_size: super::routes::BODY_LIMIT,
            chatter: 256 * 1024,
            abandoned: 200,
        }
    }
}

impl Limits {
    /// For probes and metrics, which a few ask a few times a minute.
    #[must_use]
    pub fn admin() -> Self {
        Self { connections: 512, memory: 16 * 1024 * 1024, body_size: 0, ..Self::default() }
    }

    /// For the catalogue, whose callers are tenants: what they hold is not held by reviews, and little.
    #[must_use]
    pub fn catalogue() -> Self {
        Self { connections: 512, memory: 16 * 1024 * 1024, body_size: 0, streams: 8, ..Self::default() }
    }

    /// These limits in a process that may open `descriptors` files: the connections of the webhook take no more than half of them, and those
    /// of the other ports as much less as they are fewer, so that however full all of them are, watches and files are never out of descriptors.
    #[must_use]
    pub fn within(mut self, descriptors: u64) -> Self {
        let half = usize::try_from(descriptors / 2).unwrap_or(usize::MAX);
        let fewer = Self::default().connections / self.connections.max(1);
        let part = half / fewer.max(1);
        self.connections = self.connections.min(part.max(1));
        self
    }
}

/// One listener and what it serves.
#[derive(Debug)]
pub struct Server {
    /// Name in metrics and log lines.
    pub name: &'static str,
    /// What is served.
    pub router: Router,
    /// HTTPS, or plain HTTP/1.1 where `None`.
    pub tls: Option<Arc<ServerConfig>>,
    /// Deadlines and caps.
    pub limits: Limits,
    /// When to stop.
    pub shutdown: Shutdown,
    /// Where to count.
    pub metrics: Arc<Metrics>,
}

/// The port cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; choose another address or stop what uses it")]
pub struct BindError {
    /// The address asked for.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Binds before anything is spawned, so that a taken port fails the start and not the first request. `[::]` takes calls of both
/// families, and is `0.0.0.0` where the machine has no IPv6.
///
/// # Errors
/// When the address cannot be bound.
pub fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    let listen = |address: SocketAddr| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        // Accepted connections inherit them.
        socket.set_recv_buffer_size(SOCKET_BUFFER)?;
        socket.set_send_buffer_size(SOCKET_BUFFER)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen(address)
        .or_else(|error| {
            let everywhere = address.ip() == Ipv6Addr::UNSPECIFIED && error.kind() != io::ErrorKind::AddrInUse;
            let without = || listen((Ipv4Addr::UNSPECIFIED, address.port()).into());
            everywhere.then(without).and_then(Result::ok).ok_or(error)
        })
        .map_err(|source| BindError { address, source })
}

impl Server {
    /// Serves until the shutdown closes, then until every connection is gone or the grace is over; returns how many
    /// were cut off.
    pub async fn serve(self, socket: TcpListener) -> usize {
        accept::serve(Arc::new(self), socket).await
    }
}
