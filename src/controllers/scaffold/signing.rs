//! Until when a signature counts, as it was judged last; data.
//!
//! Whoever judges a card and whoever restarts its workload in time are two controllers. The status of a card does not say these ends, so
//! they are remembered beside the item for both.

use std::sync::Arc;
use std::time::Duration;

/// How the signature of a card stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    /// What was found.
    pub stands: Stands,
    /// Fingerprint of the authorities by which it was judged.
    pub bundle: Arc<str>,
    /// When it was answered, in seconds since 1970.
    pub read: i64,
    /// The same moment on the clock of the plans.
    pub at: Duration,
}

/// Whether a signature counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// Until then; seconds since 1970.
    Until {
        /// The first second of the certificate that signed.
        from: i64,
        /// Its last second.
        leaf: i64,
        /// The last second of the authority that vouches for it.
        authority: i64,
    },
    /// It is a good one, and no authority vouches for its certificate any more.
    Lost,
}
