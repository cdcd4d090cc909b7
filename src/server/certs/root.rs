//! Certificates as facts: what a trust bundle is made of.
//!
//! In: DER bytes. Out: [`Root`] (fingerprint and validity, all that a decision needs) and [`RootCertificate`]
//! (the same with its DER, all that a bundle needs). Pure; times are Unix milliseconds handed in by callers.

use std::fmt;

use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};

/// A moment or a duration in milliseconds; moments count from the Unix epoch.
pub type Millis = i64;

/// SHA-256 of a certificate's DER.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate.
    #[must_use]
    pub fn of(der: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(der).into())
    }
}

/// The first eight bytes in hexadecimal: enough to tell certificates apart in a log line.
impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// What a decision needs to know of one certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Root {
    /// Identity.
    pub fingerprint: Fingerprint,
    /// First moment of validity.
    pub not_before: Millis,
    /// First moment after which nothing it signed is accepted.
    pub not_after: Millis,
}

impl Root {
    /// Reads the facts of a DER certificate; nothing when it is not one.
    #[must_use]
    pub fn read(der: &[u8]) -> Option<Root> {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        let validity = certificate.validity();
        Some(Root {
            fingerprint: Fingerprint::of(der),
            not_before: validity.not_before.timestamp().saturating_mul(1000),
            not_after: validity.not_after.timestamp().saturating_mul(1000),
        })
    }

    /// Whether a certificate is accepted at that moment, by its own dates.
    #[must_use]
    pub fn valid(&self, now: Millis) -> bool {
        now >= self.not_before && !self.expired(now)
    }

    /// Whether nothing signed by it is accepted any more.
    #[must_use]
    pub fn expired(&self, now: Millis) -> bool {
        now >= self.not_after
    }
}

/// A certificate of a trust bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootCertificate {
    /// Its facts.
    pub root: Root,
    /// Its bytes.
    pub der: CertificateDer<'static>,
}

impl RootCertificate {
    /// Reads a DER certificate; nothing when it is not one.
    #[must_use]
    pub fn read(der: CertificateDer<'static>) -> Option<RootCertificate> {
        Root::read(&der).map(|root| RootCertificate { root, der })
    }
}
