//! An SVID from the SPIFFE Workload API. In: the Unix socket of the agent on this machine, how long to wait. Out: the first X.509-SVID that the agent has for this
//! process, or why there is none; and, for who stays, each one by which the agent renews it ([`Renewals`]).
//!
//! One call over one connection, by hand: the API is one request without members and one message of five that matter here, and the libraries
//! for it bring a second HTTP stack with them. Promises: the header that keeps a confused browser out (`workload.spiffe.io`) is sent; an answer
//! is at most [`MESSAGE`] bytes; a process that has no SVID yet is told so only once its time is over, since entries take a
//! moment to reach an agent; the key stands in no error and in no Debug, and is overwritten when the SVID goes.

mod message;
mod own;

#[cfg(test)]
pub(in crate::adapters) mod tests;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout_at};
use zeroize::Zeroizing;

pub use own::{NoIdentity, Own, Source};

use crate::domain::printable::printable;

/// Bytes of an answer.
pub const MESSAGE: usize = 1 << 20;
/// Bytes of what an agent says of a refusal.
const SAID: usize = 256;
/// Until the agent is asked again.
const PAUSE: Duration = Duration::from_millis(250);
const METHOD: &str = "http://localhost/SpiffeWorkloadAPI/FetchX509SVID";
/// Statuses of gRPC that pass: nobody serves yet, and there is no entry yet.
const PASSING: [&str; 2] = ["14", "7"];

/// An X.509-SVID.
pub struct Svid {
    /// Its certificates in DER, one behind the other, its own first.
    pub chain: Vec<u8>,
    /// Its key: PKCS#8.
    pub key: Zeroizing<Vec<u8>>,
    /// The authorities of its trust domain in DER, one behind the other.
    pub bundle: Vec<u8>,
}

impl std::fmt::Debug for Svid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Svid").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

/// Why there is no SVID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoSvid {
    /// Nobody listens at the socket.
    #[error("no SPIFFE agent answers at the socket: {0}")]
    Connect(Box<str>),
    /// It took too long.
    #[error("the SPIFFE agent did not answer in time")]
    Timeout,
    /// The agent refuses.
    #[error("the SPIFFE agent gives no SVID (gRPC status {code}{}{said}){}", if said.is_empty() { "" } else { ": " }, hint(code))]
    Refused {
        /// gRPC's status.
        code: Box<str>,
        /// What it says, as it may stand in a sentence.
        said: Box<str>,
    },
    /// The answer is larger than [`MESSAGE`].
    #[error("the answer of the SPIFFE agent is larger than {MESSAGE} bytes")]
    TooLarge,
    /// What answers is no Workload API.
    #[error("what answers at the socket is not a SPIFFE Workload API: {0}")]
    NotWorkloadApi(Box<str>),
}

fn hint(code: &str) -> &'static str {
    match code {
        "7" => "; an entry of the SPIRE server has to select this process (spire-server entry show)",
        _ => "",
    }
}

/// The path of a socket as `SPIFFE_ENDPOINT_SOCKET` names it: `unix:///run/agent.sock`, `unix:/run/agent.sock`, or the path alone.
#[must_use]
pub fn socket(named: &str) -> Option<PathBuf> {
    let path = match named.strip_prefix("unix:") {
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
        None if named.contains("://") => return None,
        None => named,
    };
    let is_named = !path.is_empty() && (!named.starts_with("unix:") || path.starts_with('/'));
    is_named.then(|| PathBuf::from(path))
}

/// The first SVID that the agent has for this process, waited for as long as `patience`.
pub async fn svid(socket: &Path, patience: Duration) -> Result<Svid, NoSvid> {
    let end = Instant::now() + patience;
    let mut last = NoSvid::Timeout;
    loop {
        match timeout_at(end, once(socket)).await {
            Err(_) => return Err(last),
            Ok(Ok(svid)) => return Ok(svid),
            Ok(Err(fault)) => {
                let passes = match &fault {
                    NoSvid::Connect(_) => true,
                    NoSvid::Refused { code, .. } => PASSING.contains(&&**code),
                    _ => false,
                };
                if !passes {
                    return Err(fault);
                }
                last = fault;
            }
        }
        if timeout_at(end, sleep(PAUSE)).await.is_err() {
            return Err(last);
        }
    }
}

async fn once(socket: &Path) -> Result<Svid, NoSvid> {
    renewals(socket).await?.next().await
}

/// A call of the agent, which goes on: it says the SVIDs of this process whenever they are renewed.
pub struct Renewals {
    body: Incoming,
    came: Zeroizing<Vec<u8>>,
    _sender: SendRequest<Full<Bytes>>,
    _connection: Ending,
}

/// A task that ends with this.
struct Ending(AbortHandle);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks the agent at that socket for the SVIDs of this process.
pub async fn renewals(socket: &Path) -> Result<Renewals, NoSvid> {
    let stream = UnixStream::connect(socket).await;
    let stream = stream.map_err(|error| NoSvid::Connect(format!("{}: {}", socket.display(), error.kind()).into()))?;
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .handshake(TokioIo::new(stream))
        .await
        .map_err(none)?;
    let connection = Ending(tokio::spawn(connection).abort_handle());
    // Not compressed, and no bytes: the request has no members.
    let body = Full::new(Bytes::from_static(&[0; 5]));
    let request = Request::post(METHOD)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("workload.spiffe.io", "true")
        .body(body)
        .map_err(|error| NoSvid::NotWorkloadApi(said(&error.to_string())))?;
    let answer = sender.send_request(request).await.map_err(none)?;
    if !answer.status().is_success() {
        return Err(NoSvid::NotWorkloadApi(format!("HTTP status {}", answer.status().as_u16()).into()));
    }
    refusal(answer.headers())?;
    let came = Zeroizing::new(Vec::new());
    Ok(Renewals { body: answer.into_body(), came, _sender: sender, _connection: connection })
}

impl Renewals {
    /// The first SVID of the next message; nothing that came is lost when this is not awaited to its end.
    pub async fn next(&mut self) -> Result<Svid, NoSvid> {
        loop {
            if let Some(message) = message::whole(&self.came)? {
                let (svid, length) = (message::first_svid(message), message::HEAD + message.len());
                // What was read is overwritten.
                self.came = Zeroizing::new(self.came.get(length..).unwrap_or_default().to_vec());
                return svid;
            }
            let Some(frame) = self.body.frame().await else {
                return Err(NoSvid::NotWorkloadApi("the answer ended before a message".into()));
            };
            match frame.map_err(none)?.into_data() {
                Ok(data) if self.came.len() + data.len() > MESSAGE => return Err(NoSvid::TooLarge),
                Ok(data) => self.came.extend_from_slice(&data),
                Err(frame) => refusal(frame.trailers_ref().unwrap_or(&HeaderMap::new()))?,
            }
        }
    }
}

fn none(error: hyper::Error) -> NoSvid {
    NoSvid::NotWorkloadApi(said(&error.to_string()))
}

/// What headers or trailers say of how the call ended.
fn refusal(headers: &HeaderMap) -> Result<(), NoSvid> {
    let text = |name: &str| headers.get(name).map(|value| said(&String::from_utf8_lossy(value.as_bytes())));
    match text("grpc-status") {
        None => Ok(()),
        Some(code) if &*code == "0" => Ok(()),
        Some(code) => Err(NoSvid::Refused { code, said: text("grpc-message").unwrap_or_default() }),
    }
}

fn said(text: &str) -> Box<str> {
    printable(text, SAID).into()
}
