//! A card from where an agent serves it. In: `http(s)://HOST:PORT`, with or without a path. Out: the bytes, and how they came. Promises: only on
//! being told to; the operator's own client, so with its bounds: 1 MiB, 10 s, no redirect, no proxy, nothing that is compressed; link-local addresses and
//! those of clouds' metadata are not asked whoever names them; what answers by TLS is read only if it is whom the URL names.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tls::Roots;
use crate::adapters::http::{Addresses, Get, Http, HttpFault, Patience, PodAddresses, Refused};
use crate::cli::cluster;

/// Where agents serve their card.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";
const PATIENCE: Patience = Patience { head: Duration::from_secs(10), whole: Duration::from_secs(10) };

/// Where a card is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    is_tls: bool,
    host: String,
    port: u16,
    path: String,
}

/// A card that came, or why it was not read.
#[derive(Debug)]
pub(super) enum Came {
    /// Over a connection for which nobody vouches: the card, and what to say of it.
    Plain(Vec<u8>, String),
    /// Over TLS, from whom the URL names: the card, and who vouches.
    Vouched(Vec<u8>, String),
    /// Nothing was asked: who answers is not whom the URL names.
    NotBelieved(String),
}

/// What a person names, loopback included: that is where a forwarded port is.
#[derive(Clone)]
struct Named;

impl Addresses for Named {
    fn refuses(&self, address: IpAddr) -> Option<Refused> {
        PodAddresses.refuses(address).filter(|refused| *refused != Refused::Loopback)
    }
}

impl Url {
    /// The URL in an argument; `None` when it is the name of a file.
    ///
    /// # Errors
    /// When it is a URL that is not asked.
    pub(super) fn read(text: &str) -> anyhow::Result<Option<Self>> {
        let Some((scheme, _)) = text.split_once("://") else { return Ok(None) };
        let (is_tls, port) = match scheme {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => bail!("{text}: only http:// and https:// are asked"),
        };
        let uri: http::Uri = text.parse().with_context(|| text.to_owned())?;
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            bail!("a URL with a user in it is not asked");
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let path = match uri.path_and_query().map(http::uri::PathAndQuery::as_str) {
            None | Some("/") => WELL_KNOWN.to_owned(),
            Some(path) => path.to_owned(),
        };
        Ok(Some(Self { is_tls, host, port: uri.port_u16().unwrap_or(port), path }))
    }

    /// Whether it is asked by TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The card, and how it came. By TLS is believed whom an authority in the file `ca` vouches for, else one of this system.
    ///
    /// # Errors
    /// When there is no such host, no answer that is read, or no authority.
    pub(super) fn fetched(&self, ca: Option<&Path>) -> anyhow::Result<Came> {
        let roots = if self.is_tls { Some(Roots::read(ca)?) } else { None };
        let name = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let authority = format!("{name}:{}", self.port);
        let scheme = if self.is_tls { "https" } else { "http" };
        let whole = format!("{scheme}://{authority}{}", self.path);
        cluster::block_on(async {
            let looked = timeout(PATIENCE.head, tokio::net::lookup_host((self.host.as_str(), self.port)));
            let mut found = looked.await.context("the name was not found in time").and_then(|found| Ok(found?));
            let addresses = found.as_mut().map_err(|error| anyhow::anyhow!("{whole}: {error}"))?;
            let address = addresses.next().with_context(|| format!("{whole}: no address"))?;
            let get = Get { address, host: &authority, path: &self.path };
            let Some(roots) = roots else {
                let answer = Http::new(Named).get(get, PATIENCE).await.with_context(|| whole.clone())?;
                let transport = format!("fetched from {address} over plain HTTP, for which nobody vouches");
                return Ok(Came::Plain(answer.body, transport));
            };
            let stream = connected(address).await.with_context(|| whole.clone())?;
            let greeted = timeout(PATIENCE.head, roots.over(stream, &self.host)).await;
            let greeted = greeted.unwrap_or_else(|_| Err("the handshake did not end in time".to_owned()));
            let (stream, vouched) = match greeted {
                Ok(over) => over,
                Err(why) => {
                    return Ok(Came::NotBelieved(format!("{address} is not believed to be {}: {why}", self.host)));
                }
            };
            let answer = Http::new(Named).get_over(stream, get, PATIENCE).await.with_context(|| whole.clone())?;
            Ok(Came::Vouched(answer.body, format!("fetched from {address} over {vouched}")))
        })
    }
}

/// A connection, unless the address is one that nobody is asked at.
async fn connected(address: SocketAddr) -> anyhow::Result<TcpStream> {
    if let Some(refused) = Named.refuses(address.ip()) {
        return Err(HttpFault::AddressRefused(refused).into());
    }
    Ok(timeout(PATIENCE.head, TcpStream::connect(address)).await.context("no connection was made in time")??)
}

#[cfg(test)]
mod tests;
