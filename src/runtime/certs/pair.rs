//! A certificate chain and its private key, ready to be served.
//!
//! In: PEM bytes from a file or a Secret. Out: [`Pair`], or a [`PairError`] that says which of the two is wrong.
//! Promises: the key belongs to the first certificate, every section of the PEM was complete, chains of several
//! certificates are kept in order. Nothing of the key is ever printed.

use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::root::{Fingerprint, Millis, Root};

/// Why a pair cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// The certificate file is not PEM, or was cut off.
    #[error("the certificate is not complete PEM: {0}")]
    CertificatePem(pem::Error),
    /// The certificate file holds no certificate.
    #[error("the certificate file holds no CERTIFICATE section")]
    NoCertificate,
    /// The first certificate cannot be decoded.
    #[error("the first certificate cannot be decoded")]
    UnreadableCertificate,
    /// The key file is not PEM, was cut off, or holds no private key.
    #[error("the private key is not complete PEM: {0}")]
    KeyPem(pem::Error),
    /// The key is of a kind nobody serves with, or belongs to another certificate.
    #[error("the pair cannot be served: {0}")]
    Unusable(rustls::Error),
    /// The pair has expired while the one that is being served has not.
    #[error("the new certificate has already expired, and the one being served has not")]
    Expired,
}

/// A certificate chain with its key.
#[derive(Debug, Clone)]
pub struct Pair {
    /// What rustls serves.
    pub certified: Arc<CertifiedKey>,
    /// The facts of the first certificate of the chain.
    pub leaf: Root,
}

impl Pair {
    /// Reads a PEM chain (first certificate = ours) and a PEM key (PKCS#8, PKCS#1 or SEC1).
    ///
    /// # Errors
    /// See [`PairError`]. A pair whose halves come from two different moments is [`PairError::Unusable`].
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Pair, PairError> {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>().map_err(PairError::CertificatePem)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(PairError::KeyPem)?;
        Pair::new(chain, key)
    }

    /// Joins a chain and a key.
    ///
    /// # Errors
    /// See [`PairError`].
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Pair, PairError> {
        let first = chain.first().ok_or(PairError::NoCertificate)?;
        let leaf = Root::read(first).ok_or(PairError::UnreadableCertificate)?;
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certified = CertifiedKey::from_der(chain, key, &provider).map_err(PairError::Unusable)?;
        Ok(Pair { certified: Arc::new(certified), leaf })
    }
}

/// What is being served, for readiness, metrics and draining.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The certificate that new connections see.
    pub fingerprint: Fingerprint,
    /// The roots that a caller must trust; empty when the source does not know them.
    pub roots: Vec<Fingerprint>,
    /// First moment of validity.
    pub not_before: Millis,
    /// When it expires; connections opened with it should not live longer.
    pub not_after: Millis,
}
