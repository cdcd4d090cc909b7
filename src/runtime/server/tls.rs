//! The TLS configuration: built once, certificates through a resolver, so that rotation is a pointer store and
//! session resumption goes on (anchors 3, habit 16).
//!
//! TLS 1.2 and 1.3 with forward secrecy only, no early data, no renegotiation: what rustls offers. ALPN offers h2 and
//! http/1.1.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use rustls::version::{TLS12, TLS13};

/// The protocol name of HTTP/2 in ALPN.
pub(super) const ALPN_H2: &[u8] = b"h2";
/// The protocol name of HTTP/1.1 in ALPN.
const ALPN_HTTP11: &[u8] = b"http/1.1";

/// A configuration that serves what `certificates` resolves.
///
/// # Errors
/// When the crypto provider offers neither version, or no randomness for session tickets: a broken build or machine.
pub fn server_config(certificates: Arc<dyn ResolvesServerCert>) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(certificates);
    config.alpn_protocols = vec![ALPN_H2.to_vec(), ALPN_HTTP11.to_vec()];
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()?;
    Ok(Arc::new(config))
}
