//! The authorities in force, as whoever judges cards is handed them. In: the last good bundle of all sources, and when they were last readable. Out:
//! a [`Trust`] to judge by. The time moves while the bundle stays: clones share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::bundle::TrustBundle;
use crate::verify::Trust;

/// The authorities in force.
#[derive(Clone, Debug, Default)]
pub struct Bundles {
    configured: bool,
    loaded: Option<Loaded>,
}

#[derive(Clone, Debug)]
struct Loaded {
    bundle: Arc<TrustBundle>,
    version: Arc<str>,
    read_at: Arc<AtomicI64>,
}

impl Bundles {
    /// A source is configured, and none of it was ever readable.
    #[must_use]
    pub fn never_loaded() -> Self {
        Self { configured: true, loaded: None }
    }

    /// The last good bundle, last readable at `read_at` (seconds since 1970), which whoever reads it keeps up to date.
    #[must_use]
    pub fn loaded(bundle: Arc<TrustBundle>, read_at: Arc<AtomicI64>) -> Self {
        let version = bundle.fingerprint().into();
        Self { configured: true, loaded: Some(Loaded { bundle, version, read_at }) }
    }

    /// Whether any source is configured: without one nothing is verified, and nothing is said of signatures.
    #[must_use]
    pub fn configured(&self) -> bool {
        self.configured
    }

    /// The bundle to judge by.
    #[must_use]
    pub fn trust(&self) -> Trust<'_> {
        match &self.loaded {
            None => Trust::NeverLoaded,
            Some(loaded) => Trust::Loaded { bundle: &loaded.bundle, read_at: loaded.read_at.load(Ordering::Acquire) },
        }
    }

    /// The fingerprint of its authorities; empty while there are none. The same authorities have the same.
    #[must_use]
    pub fn version(&self) -> Arc<str> {
        self.loaded.as_ref().map_or_else(|| "".into(), |loaded| loaded.version.clone())
    }

    /// When its sources were last readable, in seconds since 1970.
    #[must_use]
    pub fn read_at(&self) -> Option<i64> {
        self.loaded.as_ref().map(|loaded| loaded.read_at.load(Ordering::Acquire))
    }
}
