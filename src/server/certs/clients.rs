//! Who may call the webhook: client certificates from the authorities of a file (`--webhook-client-ca`, docs/cases.md B4).
//!
//! In: a PEM file with one or more authorities, read again and again, and the names that are accepted. Out: a
//! [`ClientVerifier`] for rustls. Promises: without the flag nobody is asked; with it a caller without a certificate, with an
//! expired one, one of another authority or of another name is refused in the handshake; a changed file counts from
//! the next handshake on, within a quarter of a second; a file that is gone or cannot be used leaves the last good one in force; a
//! missing or bad one at start is an error.

use std::fmt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, RootCertStore, SignatureScheme,
};
use tokio::time::MissedTickBehavior;
use x509_parser::extensions::GeneralName;

use super::context::{self, Context};
use super::expiry::Announcements;
use super::metrics::Part;
use super::pair::words;
use super::polled::{self, POLL, Polled};
use super::root::{Millis, Root};
use crate::server::shutdown::{Phase, Shutdown};

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthoritiesError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Read(String),
    /// It is not PEM, or was cut off.
    #[error("it is not complete PEM: {}", words(.0))]
    Pem(pem::Error),
    /// It holds no certificate.
    #[error("it holds no CERTIFICATE section")]
    Empty,
    /// A certificate of it cannot be an authority.
    #[error("certificate {0} of it cannot be decoded")]
    Unreadable(usize),
    /// rustls refuses the set.
    #[error("its certificates cannot be used: {0}")]
    Unusable(String),
}

/// The file cannot be used at start.
#[derive(Debug, thiserror::Error)]
#[error("{path}, the authorities of client certificates: {error}")]
pub struct ClientAuthoritiesError {
    /// The file.
    pub path: String,
    /// Why.
    pub error: AuthoritiesError,
}

/// Judges client certificates by what the file last held. Sends no list of authorities: callers with one certificate need
/// none, and nobody else has to know.
pub struct ClientVerifier {
    authorities: ArcSwap<Arc<dyn ClientCertVerifier>>,
    /// Accepted names; empty for any.
    names: Vec<String>,
}

impl fmt::Debug for ClientVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientVerifier").field("names", &self.names).finish_non_exhaustive()
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        let verified = self.authorities.load().verify_client_cert(end_entity, intermediates, now)?;
        if self.names.is_empty() || names(end_entity).iter().any(|name| self.names.contains(name)) {
            return Ok(verified);
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.authorities.load().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.authorities.load().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.load().supported_verify_schemes()
    }
}

/// The common names and DNS names of a certificate.
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok((_, certificate)) = x509_parser::parse_x509_certificate(certificate) else { return Vec::new() };
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let alternative = alternative.iter().flat_map(|names| &names.value.general_names).filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(*name),
        _ => None,
    });
    common.chain(alternative).map(str::to_owned).collect()
}

/// The authorities of one reading.
struct Authorities {
    verifier: Arc<dyn ClientCertVerifier>,
    roots: Vec<Root>,
}

impl Authorities {
    fn read(pem: &[u8]) -> Result<Authorities, AuthoritiesError> {
        let certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(AuthoritiesError::Pem)?;
        let (mut store, mut roots) = (RootCertStore::empty(), Vec::new());
        for (index, certificate) in certificates.into_iter().enumerate() {
            let unreadable = AuthoritiesError::Unreadable(index + 1);
            let Some(root) = Root::read(&certificate) else { return Err(unreadable) };
            roots.push(root);
            store.add(certificate).map_err(|_| unreadable)?;
        }
        if roots.is_empty() {
            return Err(AuthoritiesError::Empty);
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider).build();
        let verifier = verifier.map_err(|error| AuthoritiesError::Unusable(error.to_string()))?;
        Ok(Authorities { verifier, roots })
    }

    /// The one that ends last: when that has ended, nobody can call any more.
    fn last(&self) -> Option<Root> {
        self.roots.iter().copied().max_by_key(|root| root.not_after)
    }
}

/// Follows the file. Spawn [`ClientAuthorities::run`].
pub struct ClientAuthorities {
    path: PathBuf,
    verifier: Arc<ClientVerifier>,
    context: Context,
    file: Polled<Vec<u8>>,
    last: Option<Root>,
    announcements: Announcements,
}

impl fmt::Debug for ClientAuthorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientAuthorities").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ClientAuthorities {
    /// Reads the file. `names`: common or DNS names that are accepted; none for any.
    ///
    /// # Errors
    /// When the file is missing or cannot be used: the process should not start.
    pub fn open(
        path: &Path,
        names: Vec<String>,
        context: Context,
    ) -> Result<ClientAuthorities, ClientAuthoritiesError> {
        context.metrics.read();
        let read = || {
            let pem = polled::read(path).map_err(|error| AuthoritiesError::Read(error.to_string()))?;
            Ok((Authorities::read(&pem)?, pem))
        };
        let (authorities, pem) =
            read().map_err(|error| ClientAuthoritiesError { path: path.display().to_string(), error })?;
        let last = authorities.last();
        if let Some(last) = &last {
            context.metrics.in_use(Part::Clients, last);
        }
        let verifier = Arc::new(ClientVerifier { authorities: ArcSwap::from_pointee(authorities.verifier), names });
        let announcements = Announcements::default();
        Ok(ClientAuthorities { path: path.to_owned(), verifier, context, file: Polled::new(pem), last, announcements })
    }

    /// What judges client certificates, now and after every change of the file.
    #[must_use]
    pub fn verifier(&self) -> Arc<ClientVerifier> {
        Arc::clone(&self.verifier)
    }

    /// Follows the file until the process closes.
    pub async fn run(mut self, shutdown: Shutdown) {
        let mut poll = tokio::time::interval(POLL);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        loop {
            tokio::select! {
                () = &mut closing => return,
                _ = poll.tick() => {}
            }
            let reading = polled::read_aside(&self.path).await;
            let reading = reading.map_err(|error| AuthoritiesError::Read(error.to_string()).to_string());
            self.take(reading, self.context.now());
        }
    }

    fn take(&mut self, reading: Result<Vec<u8>, String>, now: Millis) {
        if let Some(last) = self.last
            && let Some(threshold) = self.announcements.next(&last, now)
        {
            let about = context::configuration("MutatingWebhookConfiguration", None);
            self.context.expiring(Part::Clients, about, &last, threshold);
        }
        let Some(reading) = self.file.settled(reading) else { return };
        self.context.metrics.read();
        let judged = reading.and_then(|pem| match Authorities::read(&pem) {
            Ok(authorities) => Ok((authorities, pem)),
            Err(error) => Err(error.to_string()),
        });
        match judged {
            Ok((authorities, pem)) => {
                self.last = authorities.last();
                if let Some(last) = &self.last {
                    self.context.metrics.in_use(Part::Clients, last);
                }
                tracing::info!(
                    authorities = authorities.roots.len(),
                    "client certificates of other authorities are accepted now"
                );
                self.verifier.authorities.store(Arc::new(authorities.verifier));
                self.file.accept(pem);
            }
            Err(error) => {
                self.context.metrics.read_failed();
                tracing::warn!(
                    error,
                    path = %self.path.display(),
                    "the changed file with the authorities of client certificates cannot be used; the last good one stays in force"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
