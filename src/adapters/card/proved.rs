//! An agent that proves over TLS who it is. In: where it is, who this process is. Out: a connection on which the agent has proved its SPIFFE id, and that
//! id; or what went wrong. Promises: no name is looked up or checked; an address that no Pod can have is refused before the first packet.

use std::net::SocketAddr;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::adapters::spiffe::Own;
use crate::crypto::{SpiffeId, peer};
use crate::domain::printable::printable;

#[cfg(test)]
mod tests;

/// Bytes of what is said of a failure.
const SAID: usize = 256;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotProved {
    /// Nobody answers at the address.
    #[error("the agent cannot be reached over TLS: {0}")]
    Connect(Box<str>),
    /// It took too long.
    #[error("no TLS connection was made in time")]
    Timeout,
    /// The handshake failed: the agent has no SVID of this trust domain, or does not want ours.
    #[error("the TLS handshake failed: {0}")]
    Handshake(Box<str>),
}

/// Connects by `end`, and says who is there at `now`, in seconds since 1970.
pub(super) async fn connect(
    address: SocketAddr,
    own: &Own,
    (now, end): (i64, Instant),
) -> Result<(TlsStream<TcpStream>, SpiffeId), NotProved> {
    let stream = timeout_at(end, TcpStream::connect(address)).await.map_err(|_| NotProved::Timeout)?;
    let stream = stream.map_err(|error| NotProved::Connect(error.kind().to_string().into()))?;
    let connector = TlsConnector::from(own.config.clone());
    let name = ServerName::from(address.ip());
    let stream = timeout_at(end, connector.connect(name, stream)).await.map_err(|_| NotProved::Timeout)?;
    let failed = |said: String| NotProved::Handshake(printable(&said, SAID).into());
    let stream = stream.map_err(|error| failed(error.to_string()))?;
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let chain: Vec<&[u8]> = certificates.iter().map(AsRef::as_ref).collect();
    // The handshake has just verified it; this is how the id is told.
    let id = peer::peer(&chain, &own.authorities, now).map_err(|why| failed(why.to_string()))?;
    Ok((stream, id))
}
