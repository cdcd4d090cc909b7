//! Where requests arrive in the end: answers each with the header lines that it received.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use serde_json::json;

use super::serving::Serving;

/// A running upstream.
#[derive(Debug)]
pub struct Upstream {
    serving: Serving,
    received: Arc<AtomicU64>,
}

impl Upstream {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start() -> Result<Self> {
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let serving = Serving::start(move |request| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(tell(&request))
        });
        Ok(Self { serving: serving.await?, received })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.serving.address
    }

    /// Requests received so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }
}

/// A JSON list of `[name, value]`, in the order received.
fn tell(request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]))
        .collect();
    Response::new(Full::from(json!(headers).to_string()))
}
