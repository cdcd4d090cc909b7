//! The one certificate that the TLS server presents.
//!
//! In: pairs, stored by whichever source is configured. Out: the newest pair for every handshake, whatever name the
//! client asks for (the API server of a `clientConfig.url` with an address sends none). A change is one pointer store:
//! connections that are open are not touched, and no handshake waits.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;

use super::pair::{Pair, Served};
use super::root::Fingerprint;

/// Holds what is being served; shared between the TLS server and one source.
#[derive(Debug)]
pub struct Resolver {
    current: ArcSwapOption<CertifiedKey>,
    served: watch::Sender<Option<Served>>,
}

impl Resolver {
    /// An empty one: handshakes fail until the first pair is stored.
    #[must_use]
    pub fn new() -> Arc<Resolver> {
        Arc::new(Resolver { current: ArcSwapOption::empty(), served: watch::Sender::new(None) })
    }

    /// Serves the pair from the next handshake on. `roots`: what callers must trust, when known.
    pub fn store(&self, pair: &Pair, roots: Vec<Fingerprint>) {
        self.current.store(Some(Arc::clone(&pair.certified)));
        self.served.send_replace(Some(Served {
            fingerprint: pair.leaf.fingerprint,
            roots,
            not_before: pair.leaf.not_before,
            not_after: pair.leaf.not_after,
        }));
    }

    /// What is being served, now and at every change. Readiness waits for the first `Some`.
    #[must_use]
    pub fn served(&self) -> watch::Receiver<Option<Served>> {
        self.served.subscribe()
    }

    /// Whether a pair is loaded.
    #[must_use]
    pub fn loaded(&self) -> bool {
        self.served.borrow().is_some()
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}
