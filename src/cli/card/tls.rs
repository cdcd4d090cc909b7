//! A connection that somebody vouches for. In: a connection, the name in a URL, whom to believe. Out: the same over TLS and who vouches, or why it is
//! not to be believed. Promise: nothing is asked of a server whose certificate is not that name's.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Bytes of a file with authorities.
const CA_BYTES: u64 = 1 << 20;

/// Whom to believe.
pub(super) struct Roots {
    store: RootCertStore,
    /// Who they are, in words.
    named: String,
}

impl Roots {
    /// The authorities in that file (PEM), else those of this system.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn read(ca: Option<&Path>) -> anyhow::Result<Self> {
        let mut store = RootCertStore::empty();
        let Some(path) = ca else {
            let found = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(found.certs);
            if store.is_empty() {
                bail!("this system has no authorities that are read; --ca FILE names one");
            }
            return Ok(Self { store, named: "an authority of this system".to_owned() });
        };
        let named = || format!("--ca {}", path.display());
        let mut text = Vec::new();
        std::fs::File::open(path).and_then(|file| file.take(CA_BYTES).read_to_end(&mut text)).with_context(named)?;
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| anyhow::anyhow!("{}: {error}", named()))?;
            store.add(certificate).with_context(named)?;
        }
        if store.is_empty() {
            bail!("{}: no certificate in PEM", named());
        }
        Ok(Self { named: format!("an authority of {}", path.display()), store })
    }

    /// TLS over `stream` with who is named `host`, and what can be said of it then.
    pub(super) async fn over(self, stream: TcpStream, host: &str) -> Result<(TlsStream<TcpStream>, String), String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("{host} is not the name of a server"))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut config = config.with_root_certificates(self.store).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream =
            TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| error.to_string())?;
        let version = stream.get_ref().1.protocol_version().and_then(|version| version.as_str());
        let version =
            version.map_or_else(|| "TLS".to_owned(), |version| version.replace("TLSv", "TLS ").replace('_', "."));
        Ok((stream, format!("{version}; {} vouches for {host}", self.named)))
    }
}
