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
//! Wiring: make a [`Resolver`] and a [`Context`]; make one source; give the source and its [`Publisher`] a
//! [`crate::cluster::lease::Writer`] where this process may write (`writing`); spawn `run` of both. Readiness:
//! `resolver.served()` is `Some`, and `publisher.publication()` has been settled: `Published`, or `ByOthers` where the
//! source knows no authority (files have no publisher: whoever provides them publishes).
//!
//! Who writes what: with a writer, the holder of the Lease changes the Secret and publishes, and any process creates the
//! Secret where there is none (see [`authority`]); without one, nothing is written. Rights needed in the operator's
//! namespace: on Secret `drawbridge-webhook-ca` `get, list, watch`, on both webhook configurations of our name the same;
//! with a writer also Secrets `create`, that Secret `update`, both configurations `patch`, and Events `get, create` here
//! and in namespace `default`, where Events about the configurations belong; without the latter they are told about the Deployment
//! of the controllers.

pub mod authority;
pub mod bundle;
mod clients;
mod context;
mod events;
mod expiry;
mod files;
mod metrics;
mod pair;
mod polled;
mod resolver;
#[cfg(test)]
mod restored;
mod root;
mod secret;
mod source;
mod trust;
mod trust_bundle;
mod wanted;

pub use authority::{Lifetimes, SelfManaged, SelfManagedConfig};
pub use bundle::{Installed, Publication, Publisher, covered};
pub use clients::{AuthoritiesError, ClientAuthorities, ClientAuthoritiesError, ClientVerifier};
pub use context::{Clock, Context, Listener, Notice};
pub use events::Events;
pub use expiry::Threshold;
pub use files::{Files, FilesError};
pub use metrics::{CertificateMetrics, Part};
pub use pair::{Pair, PairError, Served};
pub use resolver::Resolver;
pub use root::{Fingerprint, Millis, Root, RootCertificate};
pub use secret::{CertManagerSecret, CertManagerSecretConfig};
pub use trust_bundle::{Damaged, TrustBundle, read_bundle, write_bundle};
