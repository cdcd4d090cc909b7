//! The one outgoing HTTP/1.1 client. In: an address, a Host, a path, how long to wait, and what is sent besides. Out: at most 1 MiB of a body that was
//! answered with 200, or a fault of a closed list.
//!
//! Promises: it connects to that very address and to no other: no name is resolved, no redirect followed, no proxy asked, no environment
//! read; addresses that no Pod can have are refused before the first packet. Everything is bounded: head, number of headers, body, what came
//! over the wire in all, the time of each phase, and what the servers of one namespace take of the places that there are for all. A compressed
//! body is refused, so there is nothing to inflate. What was answered besides a body stands in a fault in at most [`SAID`] bytes of printable text.

mod address;
mod exchange;
mod fault;
mod places;
mod sent;
mod wire;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

pub use address::{Addresses, PodAddresses, Refused};
pub use fault::{Bound, HttpFault, Phase};
pub use places::Place;
use places::Places;
pub use sent::{Answered, Method, Sent};

/// Bytes of a body.
pub const BODY: usize = 1 << 20;
/// Bytes of an answer's status line and headers.
pub const HEAD: usize = 32 << 10;
/// Headers of an answer.
pub const HEADERS: usize = 64;
/// Bytes of an answer altogether, with what marks its chunks.
pub const WIRE: usize = HEAD + 3 * BODY;
/// Bytes of an answer other than 200 that are repeated.
pub const SAID: usize = 256;

/// Bytes of a body that anybody may have in memory.
pub const SMALL: usize = 64 << 10;
/// Bodies that are larger, at once: as many questions are open as agents are slow, and all of them together may not cost a process its memory.
pub const LARGE: usize = 16;

/// What is fetched.
#[derive(Debug, Clone, Copy)]
pub struct Get<'a> {
    /// Whom to connect to.
    pub address: SocketAddr,
    /// The header Host.
    pub host: &'a str,
    /// The path, from its slash.
    pub path: &'a str,
}

/// How long to wait, from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until the answer's head is there.
    pub head: Duration,
    /// Until everything is there.
    pub whole: Duration,
}

/// What was answered with 200. Whoever keeps it keeps its place among the large ones.
#[derive(Debug)]
pub struct Answer {
    /// All of it.
    pub body: Vec<u8>,
    /// Of a body of more than [`SMALL`] bytes.
    pub(super) _place: Option<Place>,
}

impl Answer {
    /// The body, and the place that it takes for as long as it is there.
    #[must_use]
    pub fn apart(self) -> (Vec<u8>, Option<Place>) {
        (self.body, self._place)
    }
}

/// What was answered, whatever place it takes.
impl PartialEq for Answer {
    fn eq(&self, other: &Self) -> bool {
        self.body == other.body
    }
}

/// The client. It has no connections of its own: each question is one.
#[derive(Debug, Clone)]
pub struct Http<A> {
    addresses: A,
    large: Places,
}

impl<A: Addresses> Http<A> {
    /// One that connects to what `addresses` does not refuse.
    pub fn new(addresses: A) -> Self {
        Self { addresses, large: Places::new() }
    }

    /// Why it connects to nobody at that address, where it does not.
    pub fn refuses(&self, address: SocketAddr) -> Option<HttpFault> {
        self.addresses.refuses(address.ip()).map(HttpFault::AddressRefused)
    }

    /// Asks once.
    pub async fn get(&self, get: Get<'_>, patience: Patience) -> Result<Answer, HttpFault> {
        if let Some(refused) = self.addresses.refuses(get.address.ip()) {
            return Err(HttpFault::AddressRefused(refused));
        }
        let answered = Box::pin(exchange::exchange(Sent::of(get), patience, &self.large)).await;
        answered.map(|answered| answered.answer)
    }

    /// Asks once, by another method than GET or with headers of one's own.
    pub async fn send(&self, sent: Sent<'_>, patience: Patience) -> Result<Answered, HttpFault> {
        if let Some(refused) = self.addresses.refuses(sent.address.ip()) {
            return Err(HttpFault::AddressRefused(refused));
        }
        Box::pin(exchange::exchange(sent, patience, &self.large)).await
    }

    /// Asks once over `stream`, a connection to that address that is there already, such as one of TLS.
    pub async fn get_over<S>(&self, stream: S, get: Get<'_>, patience: Patience) -> Result<Answer, HttpFault>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if let Some(refused) = self.addresses.refuses(get.address.ip()) {
            return Err(HttpFault::AddressRefused(refused));
        }
        let answered = Box::pin(exchange::over(stream, Sent::of(get), patience, &self.large)).await;
        answered.map(|answered| answered.answer)
    }
}
