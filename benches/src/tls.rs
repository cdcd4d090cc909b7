//! Certificates of the processes that are measured, and the client's trust in them.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore};
use webhook_tests::pki::Authority;

/// File names, as Go's and our own flags call them by default.
const FILES: [&str; 2] = ["tls.crt", "tls.key"];
/// File name of the authority's certificate.
pub const BUNDLE: &str = "ca.crt";

/// Writes a pair for `host` into `folder`, and the certificate it is trusted by; returns who trusts it.
///
/// # Errors
/// When the files cannot be written.
pub fn write_pair(folder: &Path, host: &str) -> Result<Trust> {
    let authority = Authority::new("bench")?;
    let pair = authority.server(host, &[host])?;
    let files = FILES.into_iter().zip([&*pair.certificate, &*pair.key]);
    for (name, text) in files.chain([(BUNDLE, &*authority.certificate())]) {
        std::fs::write(folder.join(name), text).with_context(|| name.to_owned())?;
    }
    Trust::new(host, authority.certificate().as_bytes())
}

/// The pair in `folder`, for a server.
///
/// # Errors
/// When the files cannot be read.
pub fn resolver(folder: &Path) -> Result<Arc<dyn ResolvesServerCert>> {
    let [certificate, key] = FILES.map(|name| folder.join(name));
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&certificate)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&key)?;
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key)?;
    Ok(Arc::new(Single(Arc::new(CertifiedKey::new(chain, key)))))
}

#[derive(Debug)]
struct Single(Arc<CertifiedKey>);

impl ResolvesServerCert for Single {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// What a client believes.
#[derive(Debug, Clone)]
pub struct Trust {
    /// The server's name.
    pub name: ServerName<'static>,
    /// Whom it trusts; no ALPN, so that HTTP/1.1 is spoken, as the API server does to a Service.
    pub config: Arc<ClientConfig>,
}

impl Trust {
    /// Trusts certificates for `name` that chain to one in `bundle` (PEM).
    ///
    /// # Errors
    /// When the name is none, or the bundle is not PEM.
    pub fn new(name: &str, bundle: &[u8]) -> Result<Self> {
        webhook_tests::install_crypto();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle) {
            roots.add(certificate?)?;
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self { name: ServerName::try_from(name.to_owned())?, config: Arc::new(config) })
    }
}
