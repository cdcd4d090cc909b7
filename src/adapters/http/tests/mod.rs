//! The client against servers that do whatever they like, on a loopback address: that is refused by what the binary has, so the tests have a
//! type of their own that says where they may connect to.

mod hostile;
mod plain;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::{Addresses, Answer, Get, Http, HttpFault, Patience, Refused};

/// The test's own servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Here;

impl Addresses for Here {
    fn refuses(&self, address: IpAddr) -> Option<Refused> {
        (!address.is_loopback()).then_some(Refused::Reserved)
    }
}

/// With a clock that runs only while nobody has anything to do, this is never waited for, and never missed by chance.
pub(super) const PATIENCE: Patience = Patience { head: Duration::from_secs(10), whole: Duration::from_secs(10) };

/// What a server does once it was asked.
pub(super) enum Then {
    /// Closes.
    Close,
    /// Keeps the connection and says no more.
    Hold,
    /// Says this again and again, as long as somebody listens.
    Again(Vec<u8>),
    /// Says this again and again, with a pause of a second.
    Drip(Vec<u8>),
}

/// Answers one connection; what it was asked is sent to the channel.
async fn answer(mut stream: TcpStream, first: &[u8], then: &Then, asked: &mpsc::UnboundedSender<String>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let _ = asked.send(String::from_utf8(head).unwrap());
    if stream.write_all(first).await.is_err() {
        return;
    }
    match then {
        Then::Close => drop(stream.shutdown().await),
        Then::Hold => drop(stream.read_u8().await),
        Then::Again(bytes) => while stream.write_all(bytes).await.is_ok() {},
        Then::Drip(bytes) => {
            while stream.write_all(bytes).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

/// A server, and what it was asked.
pub(super) async fn server(first: Vec<u8>, then: Then) -> (SocketAddr, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, &first, &then, &sender).await;
        }
    });
    (address, asked)
}

/// Asks such a server once.
pub(super) async fn ask(first: impl Into<Vec<u8>>, then: Then, patience: Patience) -> Result<Answer, HttpFault> {
    let (address, _asked) = server(first.into(), then).await;
    let get = Get { address, host: "w.n.svc.cluster.local:8000", path: "/.well-known/agent-card.json" };
    Http::new(Here).get(get, patience).await
}
