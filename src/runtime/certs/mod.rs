//! The certificate of the webhook server, where it comes from, and who trusts it.
//!
//! ```text
//! SelfManaged ────────┐                              ┌──► Resolver ──► TLS handshakes
//! CertManagerSecret ──┼── pair ──────────────────────┘
//! Files ──────────────┘
//!        │ ▲
//!  roots │ │ what every bundle holds, and since when
//!        ▼ │
//!     Publisher ◄──► caBundle of our webhook configurations
//! ```
//!
//! In: a client, names, lifetimes, a clock; or files; or the name of a Secret. Out: a [`Resolver`] for rustls, a
//! [`Publication`] for readiness, metrics and notices. Promises: rotation fails no call (old and new roots are
//! published together before anything depends on the new one, and a root goes only when it has expired); the API server
//! being away changes nothing; steady state sends nothing but watches.
//!
//! Wiring: make a [`Resolver`] and a [`Context`]; make one source; spawn `run` of the source and of its
//! [`Publisher`]. Readiness: `resolver.served()` is `Some`, and `publisher.publication()` has been `Published` (files
//! have no publisher: whoever provides them publishes).
//!
//! Rights needed in the operator's namespace: Secrets `create`; on Secret `drawbridge-webhook-ca` `get, list, watch,
//! update`; on both webhook configurations of our name `get, list, watch, patch`.

pub mod authority;
pub mod bundle;
mod context;
mod expiry;
mod files;
mod metrics;
mod pair;
mod resolver;
mod root;
mod secret;
mod trust;
mod wanted;
mod watched;

pub use authority::{Lifetimes, SelfManaged, SelfManagedConfig};
pub use bundle::{Publication, Publisher};
pub use context::{Clock, Context, Listener, Notice};
pub use expiry::Threshold;
pub use files::{Files, FilesError};
pub use metrics::{CertificateMetrics, Part};
pub use pair::{Pair, PairError, Served};
pub use resolver::Resolver;
pub use root::{Fingerprint, Millis, Root, RootCertificate, read_bundle, write_bundle};
pub use secret::{CertManagerSecret, CertManagerSecretConfig};
