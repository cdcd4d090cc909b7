//! The TLS configuration: built once, certificates through a resolver, so that rotation is a pointer store and
//! session resumption goes on.
//!
//! TLS 1.2 and 1.3 with forward secrecy only, no early data, no renegotiation: what rustls offers. ALPN offers h2 and
//! http/1.1.

use std::sync::Arc;

use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::version::{TLS12, TLS13};
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};

/// The protocol name of HTTP/2 in ALPN.
pub(super) const ALPN_H2: &[u8] = b"h2";
/// The protocol name of HTTP/1.1 in ALPN.
const ALPN_HTTP11: &[u8] = b"http/1.1";

/// A configuration that serves what `certificates` resolves.
///
/// # Errors
/// When the crypto provider offers neither version, or no randomness for session tickets: a broken build or machine.
pub fn server_config(certificates: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = versions()?.with_no_client_auth().with_cert_resolver(certificates);
    config.alpn_protocols = vec![ALPN_H2.to_vec(), ALPN_HTTP11.to_vec()];
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()?;
    Ok(Arc::new(config))
}

/// The same for callers that `clients` accepts only. Sessions are not resumed: a resumed one would not be judged again, and
/// a certificate that has expired or an authority that was taken away must count from the next connection on.
///
/// # Errors
/// When the crypto provider offers neither version: a broken build.
pub fn mutual_server_config(
    certificates: Arc<dyn ResolvesServerCert>,
    clients: Arc<dyn ClientCertVerifier>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = versions()?.with_client_cert_verifier(clients).with_cert_resolver(certificates);
    config.alpn_protocols = vec![ALPN_H2.to_vec(), ALPN_HTTP11.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn versions() -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12])
}
