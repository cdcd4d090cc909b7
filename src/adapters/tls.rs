//! TLS clients that judge whom they reach by a rule of their own, in place of names and the authorities of the system.
//!
//! In: the rule. Out: the beginning of a client's configuration. Promises: whoever is judged holds the key of its certificate, as by any other client;
//! aws-lc-rs does the arithmetic; TLS 1.2 and 1.3 alone.

use std::fmt;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, SignatureScheme};

/// A rule by which a server is believed.
pub trait Judge: fmt::Debug + Send + Sync + 'static {
    /// Whether whoever shows these certificates, its own first, is believed at that time.
    ///
    /// # Errors
    /// When it is not; the handshake ends with that.
    fn judge(&self, chain: &[&CertificateDer<'_>], now: UnixTime) -> Result<(), Error>;
}

/// The configuration of a client that believes whom `judge` believes; whom the client presents is still to be said.
///
/// # Errors
/// When the protocol versions are not to be had, which a build without them would say.
pub fn client(judge: Arc<dyn Judge>) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(Verifier { judge, provider: provider.clone() });
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier))
}

#[derive(Debug)]
struct Verifier {
    judge: Arc<dyn Judge>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain: Vec<_> = std::iter::once(leaf).chain(others).collect();
        self.judge.judge(&chain, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
