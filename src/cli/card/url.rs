//! A card from where an agent serves it. In: `http://HOST:PORT`, with or without a path. Out: the bytes, and how they came. Promises: only on
//! being told to; the operator's own client, so with its bounds: 1 MiB, 10 s, no redirect, no proxy, nothing that is compressed; link-local addresses and
//! those of clouds' metadata are not asked whoever names them.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::adapters::http::{Addresses, Get, Http, Patience, PodAddresses, Refused};
use crate::cli::cluster;

/// Where agents serve their card.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";
const PATIENCE: Patience = Patience { head: Duration::from_secs(10), whole: Duration::from_secs(10) };

/// Where a card is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    host: String,
    port: u16,
    path: String,
}

/// What a person names, loopback included: that is where a forwarded port is.
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
        if scheme != "http" {
            bail!("{text}: only http:// is asked; for others: curl -sS URL | drawbridge card verify -");
        }
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
        Ok(Some(Self { host, port: uri.port_u16().unwrap_or(80), path }))
    }

    /// The card, and how it came.
    ///
    /// # Errors
    /// When there is no such host, or no answer that is read.
    pub(super) fn fetched(&self) -> anyhow::Result<(Vec<u8>, String)> {
        let name = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let authority = format!("{name}:{}", self.port);
        let whole = format!("http://{authority}{}", self.path);
        cluster::block_on(async {
            let looked = tokio::time::timeout(PATIENCE.head, tokio::net::lookup_host((self.host.as_str(), self.port)));
            let mut found = looked.await.context("the name was not found in time").and_then(|found| Ok(found?));
            let addresses = found.as_mut().map_err(|error| anyhow::anyhow!("{whole}: {error}"))?;
            let address = addresses.next().with_context(|| format!("{whole}: no address"))?;
            let get = Get { address, host: &authority, path: &self.path };
            let answer = Http::new(Named).get(get, PATIENCE).await.with_context(|| whole.clone())?;
            let transport = format!("fetched from {address} over plain HTTP, for which nobody vouches");
            Ok((answer.body, transport))
        })
    }
}
