//! One HTTP/1.1 request over one new connection, plain or TLS: probes, scrapes, and reviews sent by hand.
//!
//! Nothing is pooled or retried, so that what a caller sees is what the server did with this connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How long a whole exchange may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What the server must prove.
#[derive(Debug, Clone)]
pub struct Trust {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Trust {
    /// The server must show a certificate for `name` that chains to one of the PEM certificates in `bundle`.
    ///
    /// # Errors
    /// When the name is no host name or the bundle holds no certificate.
    pub fn new(name: &str, bundle: &[u8]) -> Result<Self> {
        crate::install_crypto();
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(bundle) {
            roots.add(certificate.map_err(|error| anyhow!("not a PEM bundle: {error}"))?)?;
        }
        anyhow::ensure!(!roots.is_empty(), "the bundle holds no certificate");
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self { name: ServerName::try_from(name.to_owned())?, config: Arc::new(config) })
    }
}

/// `GET path` over a new plain connection; status and body.
///
/// # Errors
/// When there is no connection or no HTTP answer within [`PATIENCE`].
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let request = Request::get(path).header("host", address.to_string()).body(Full::default())?;
    let exchange = async { exchange(TcpStream::connect(address).await?, request).await };
    let (status, body) = tokio::time::timeout(PATIENCE, exchange).await.context("no answer in time")??;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// `POST path` with a JSON body over a new plain connection; status and body.
///
/// # Errors
/// As [`get`].
pub async fn post_plain(address: SocketAddr, path: &str, body: Vec<u8>) -> Result<(u16, String)> {
    let request = Request::post(path)
        .header("host", address.to_string())
        .header("content-type", "application/json")
        .body(Full::from(body))?;
    let exchange = async { exchange(TcpStream::connect(address).await?, request).await };
    let (status, body) = tokio::time::timeout(PATIENCE, exchange).await.context("no answer in time")??;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// `POST path` with a JSON body over a new TLS connection; status and body.
///
/// # Errors
/// When the certificate does not satisfy `trust`, or there is no HTTP answer within [`PATIENCE`].
pub async fn post(address: SocketAddr, trust: &Trust, path: &str, body: Vec<u8>) -> Result<(u16, Bytes)> {
    let request = Request::post(path)
        .header("host", trust.name.to_str().as_ref())
        .header("content-type", "application/json")
        .body(Full::from(body))?;
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&trust.config));
        exchange(connector.connect(trust.name.clone(), stream).await.context("TLS handshake")?, request).await
    };
    tokio::time::timeout(PATIENCE, exchange).await.context("no answer in time")?
}

/// `GET path` over a new TLS connection, with a token if there is one; status and body.
///
/// # Errors
/// As [`post`].
pub async fn get_as(address: SocketAddr, trust: &Trust, path: &str, token: Option<&str>) -> Result<(u16, String)> {
    let request = Request::get(path).header("host", trust.name.to_str().as_ref());
    let request =
        token.into_iter().fold(request, |request, token| request.header("authorization", format!("Bearer {token}")));
    let request = request.body(Full::default())?;
    let exchange = async {
        let stream = TcpStream::connect(address).await?;
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&trust.config));
        exchange(connector.connect(trust.name.clone(), stream).await.context("TLS handshake")?, request).await
    };
    let (status, body) = tokio::time::timeout(PATIENCE, exchange).await.context("no answer in time")??;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// The certificate (DER) that the server shows, whoever signed it.
///
/// # Errors
/// When there is no TLS connection within [`PATIENCE`].
pub async fn leaf(address: SocketAddr) -> Result<Vec<u8>> {
    crate::install_crypto();
    let config = ClientConfig::builder().dangerous().with_custom_certificate_verifier(Arc::new(Anybody));
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let shown = async {
        let stream = TcpStream::connect(address).await?;
        let stream = connector.connect(ServerName::try_from("localhost")?, stream).await?;
        let certificates = stream.get_ref().1.peer_certificates();
        anyhow::Ok(certificates.and_then(<[_]>::first).context("no certificate")?.to_vec())
    };
    tokio::time::timeout(PATIENCE, shown).await.context("no answer in time")?
}

/// Looks at certificates without judging them.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<(u16, Bytes)>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let talking = async {
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
    };
    // Driven side by side and dropped together: no task is left when the caller gives up.
    let mut connection = std::pin::pin!(connection);
    let mut talking = std::pin::pin!(talking);
    tokio::select! {
        answer = &mut talking => answer,
        ended = &mut connection => {
            ended?;
            talking.await
        }
    }
}
