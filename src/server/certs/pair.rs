//! A certificate chain and its private key, ready to be served.
//!
//! In: PEM bytes from a file or a Secret. Out: [`Pair`], or a [`PairError`] that says which of the two is wrong, or why
//! it would serve callers worse than what they get now, or not at all. Promises: the key belongs to the first certificate, every section of
//! the PEM was complete, chains of several certificates are kept in order. Nothing of the key is ever printed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error as TlsError, InconsistentKeys, RootCertStore};
use x509_parser::public_key::PublicKey;

use super::root::{Fingerprint, Millis, Root, RootCertificate};

/// Why a pair cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// The certificate file is not PEM, or was cut off.
    #[error("the certificate is not complete PEM: {}", words(.0))]
    CertificatePem(pem::Error),
    /// The certificate file holds no certificate.
    #[error("the certificate file holds no CERTIFICATE section")]
    NoCertificate,
    /// The first certificate cannot be decoded.
    #[error("the first certificate cannot be decoded")]
    UnreadableCertificate,
    /// The key file is not PEM, was cut off, or holds no private key.
    #[error("the private key is not complete PEM: {}", words(.0))]
    KeyPem(pem::Error),
    /// The key file holds a key under a password, which nobody can enter here.
    #[error("the private key is encrypted; write it without a password, for instance with `openssl pkey`")]
    EncryptedKey,
    /// The key belongs to a later certificate of the chain.
    #[error(
        "the private key belongs to certificate {0} of the chain; the webhook's own must come first, then who issued it"
    )]
    Order(usize),
    /// rustls does not take the first certificate.
    #[error("the first certificate cannot be served: {0}")]
    Refused(rustls::Error),
    /// The key belongs to another certificate.
    #[error("the private key belongs to another certificate")]
    Mismatch,
    /// The key is of a kind nobody serves with.
    #[error(
        "the private key is of no kind that is served with: RSA from 2048 bits, ECDSA P-256, P-384 or P-521, Ed25519 ({0})"
    )]
    Unusable(rustls::Error),
    /// The pair has expired, and nothing is served or what has not.
    #[error("the certificate has already expired by this machine's clock")]
    Expired,
    /// The pair is not valid yet, and nothing is served or what is.
    #[error("the certificate is not valid yet by this machine's clock; it is taken into use once it is")]
    Early,
    /// The certificate is for other names than the one that callers ask for.
    #[error("the certificate is not valid for {0}, the name under which the API server calls (subjectAltName)")]
    Name(String),
    /// The certificate is for clients, for code, or for whatever else, and nothing is served or what is for servers.
    #[error("the certificate is not for servers: its extendedKeyUsage lacks serverAuth, so the API server refuses it")]
    Purpose,
    /// None of the authorities that callers are told to trust signed the certificate.
    #[error(
        "tls.crt is not signed by a certificate of ca.crt, so the API server, which is told to trust ca.crt, refuses it; put its \
         authority into ca.crt, and what stands between the two into tls.crt; or leave ca.crt out, and keep caBundle of both webhook \
         configurations yourself"
    )]
    Foreign,
}

/// The longest name of a section that is repeated, in characters: longer than any that is in use.
const NAME_LIMIT: usize = 32;

/// What is wrong with PEM, without a byte of it but the name of a section, and that only where it can be nothing else: where a
/// line lost its end, what is taken for the name goes on with the key.
pub(super) fn words(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => match std::str::from_utf8(end_marker) {
            Ok(name) if name.len() <= NAME_LIMIT && name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b' ')) => {
                format!("section {name} has no end")
            }
            _ => "a section has no end, and its first line is not in order".to_owned(),
        },
        pem::Error::IllegalSectionStart { .. } => "a section begins in a line that cannot be read".to_owned(),
        pem::Error::Base64Decode(_) => "a section is not base64".to_owned(),
        pem::Error::NoItemsFound => "there is no section of that kind".to_owned(),
        other => other.to_string(),
    }
}

/// How an encrypted key begins, in both of its forms.
const ENCRYPTED: [&[u8]; 2] = [b"-----BEGIN ENCRYPTED PRIVATE KEY-----", b"Proc-Type: 4,ENCRYPTED"];

fn is_encrypted(key: &[u8]) -> bool {
    ENCRYPTED.iter().any(|mark| key.windows(mark.len()).any(|window| window == *mark))
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
    /// See [`PairError`]. A pair whose halves come from two different moments is [`PairError::Mismatch`].
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Pair, PairError> {
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>().map_err(PairError::CertificatePem)?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| if is_encrypted(key) { PairError::EncryptedKey } else { PairError::KeyPem(error) })?;
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
        let key = provider.key_provider.load_private_key(key).map_err(PairError::Unusable)?;
        let matches = |certificate: &CertificateDer<'static>| {
            CertifiedKey::new(vec![certificate.clone()], Arc::clone(&key)).keys_match()
        };
        match matches(first) {
            // A key that does not tell is taken at its word, as rustls does.
            Ok(()) | Err(TlsError::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                let place = chain.iter().position(|certificate| matches(certificate).is_ok());
                return Err(place.map_or(PairError::Mismatch, |place| PairError::Order(place + 1)));
            }
            Err(error) => return Err(PairError::Refused(error)),
        }
        let certified = CertifiedKey::new(chain, key);
        Ok(Pair { certified: Arc::new(certified), leaf })
    }

    /// Why it is not to be served now: nobody would accept it, while what is served is accepted, or while nothing is served: a
    /// replica that is ready with it would take the place of one that still serves a good pair. `names`: those under which
    /// callers ask, as far as they are known.
    pub(super) fn unfit(&self, served: Option<&Pair>, names: &BTreeSet<String>, now: Millis) -> Option<PairError> {
        let leaf = served.map(|served| served.leaf);
        if !self.is_for_servers() && served.is_none_or(Pair::is_for_servers) {
            return Some(PairError::Purpose);
        }
        if self.leaf.expired(now) && leaf.is_none_or(|leaf| !leaf.expired(now)) {
            return Some(PairError::Expired);
        }
        if now < self.leaf.not_before && leaf.is_none_or(|leaf| leaf.valid(now)) {
            return Some(PairError::Early);
        }
        let lost = match served {
            // Some of the callers are better than none.
            None if names.iter().any(|name| self.is_for(name)) => None,
            None => names.first(),
            Some(served) => names.iter().find(|name| served.is_for(name) && !self.is_for(name)),
        };
        lost.map(|name| PairError::Name(name.clone()))
    }

    /// Whether who asks for `name` accepts the certificate for it; also where it cannot be told.
    pub(super) fn is_for(&self, name: &str) -> bool {
        let parsed = self.certified.cert.first().and_then(|first| ParsedCertificate::try_from(first).ok());
        let (Some(certificate), Ok(name)) = (parsed, ServerName::try_from(name)) else { return true };
        verify_server_name(&certificate, &name).is_ok()
    }

    /// Whether the certificate may be a server's, by its extended key usage; also where it cannot be told.
    fn is_for_servers(&self) -> bool {
        let Some(first) = self.certified.cert.first() else { return true };
        let Ok((_, certificate)) = x509_parser::parse_x509_certificate(first) else { return true };
        let usage = certificate.extended_key_usage().ok().flatten();
        usage.is_none_or(|usage| usage.value.server_auth || usage.value.any)
    }

    /// Whether the certificate is signed by one of `roots`, by way of the rest of the chain; also where there are none, and where it cannot be
    /// told: only what is sure to be refused is refused here. Whether everybody is valid now is another question, so that the moment in the middle
    /// of the certificate's life is taken.
    pub(super) fn is_vouched_for(&self, roots: &[RootCertificate]) -> bool {
        let Some((first, others)) = self.certified.cert.split_first() else { return true };
        // One that is trusted itself needs nobody, whatever it may do besides.
        if roots.is_empty() || roots.iter().any(|root| root.der == *first) {
            return true;
        }
        let mut anchors = RootCertStore::empty();
        let are_known = roots.iter().all(|root| anchors.add(root.der.clone()).is_ok())
            && roots.iter().map(|root| &root.der).chain(others).all(|issuer| is_checkable(issuer));
        let (Ok(certificate), true) = (ParsedCertificate::try_from(first), are_known) else { return true };
        let middle = self.leaf.not_before + (self.leaf.not_after - self.leaf.not_before) / 2;
        let at = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(middle).unwrap_or_default()));
        let algorithms = rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.all;
        let verified = verify_server_cert_signed_by_trust_anchor(&certificate, &anchors, others, at, algorithms);
        !matches!(
            verified,
            Err(TlsError::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature))
        )
    }
}

/// Whether what that certificate signs can be checked here. RSA of a length that is not checked looks like a wrong signature.
fn is_checkable(issuer: &[u8]) -> bool {
    let Ok((_, issuer)) = x509_parser::parse_x509_certificate(issuer) else { return false };
    let key = issuer.public_key().parsed();
    match key {
        Ok(PublicKey::RSA(key)) => (2048..=8192).contains(&key.key_size()),
        key => key.is_ok(),
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
