//! B3 with the real binary: every version and cipher suite that our provider has, with a leaf of either key type, and what is refused.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use drawbridge::domain::keys;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ClientConfig, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use webhook_tests::patience::patience;
use webhook_tests::{Drawbridge, Installation, Installing, Options, installation};

/// Name of the Service, as the API server asks for it.
fn host() -> String {
    format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE)
}

/// Puts a certificate of that key, which vouches for itself, into the folder; returns who must be trusted.
fn issue(folder: &Path, key: &KeyPair) -> Result<RootCertStore> {
    let mut params = CertificateParams::new([host()])?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.self_signed(key)?.pem();
    std::fs::write(folder.join("tls.key"), key.serialize_pem())?;
    std::fs::write(folder.join("tls.crt"), &certificate)?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|error| anyhow!("{error}"))?)?;
    Ok(roots)
}

/// What a client offers, and whom it trusts.
struct Offer<'o> {
    suites: Vec<SupportedCipherSuite>,
    version: &'static SupportedProtocolVersion,
    alpn: &'o [&'o str],
    roots: &'o RootCertStore,
}

impl Offer<'_> {
    async fn connect(&self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let provider = CryptoProvider { cipher_suites: self.suites.clone(), ..aws_lc_rs::default_provider() };
        let versions = ClientConfig::builder_with_provider(Arc::new(provider)).with_protocol_versions(&[self.version]);
        let mut config = versions.unwrap().with_root_certificates(self.roots.clone()).with_no_client_auth();
        config.alpn_protocols = self.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(host()).unwrap();
        timeout(patience(), TlsConnector::from(Arc::new(config)).connect(name, stream)).await?
    }
}

/// A review over that connection, in the protocol that was agreed on, is answered with a patch.
async fn review(stream: TlsStream<TcpStream>) -> Result<()> {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "agent", "labels": { "kagenti.io/type": "agent" } },
        "spec": { "containers": [{ "name": "agent", "image": "example.com/agent:1" }] } });
    let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "matrix", "operation": "CREATE", "namespace": "default", "object": pod,
        "kind": { "group": "", "version": "v1", "kind": "Pod" },
        "resource": { "group": "", "version": "v1", "resource": "pods" } } });
    let request = http::Request::post(format!("https://{}{}", host(), keys::PATH_INJECT))
        .header("host", host())
        .header("content-type", "application/json")
        .body(Full::<Bytes>::from(review.to_string()))?;
    let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let exchange = async {
        let answer = if h2 {
            let (mut sender, driver) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
            tokio::spawn(driver);
            sender.send_request(request).await?
        } else {
            let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(driver);
            sender.send_request(request).await?
        };
        anyhow::Ok((answer.status(), answer.into_body().collect().await?.to_bytes()))
    };
    let (status, body) = timeout(patience(), exchange).await??;
    let answer: Value = serde_json::from_slice(&body)?;
    ensure!(status == 200 && answer["response"]["patch"].is_string(), "{status}: {answer}");
    Ok(())
}

/// Each suite alone: those that the key can sign for are agreed on and carry a review, the others end with the alert for it.
async fn suites(webhook: SocketAddr, roots: &RootCertStore, key: &str) -> Result<()> {
    let all = aws_lc_rs::default_provider().cipher_suites;
    let mut agreed = Vec::new();
    for suite in all {
        let version = if suite.tls13().is_some() { &TLS13 } else { &TLS12 };
        let spoken = suite.tls13().is_some() || format!("{:?}", suite.suite()).contains(&format!("ECDHE_{key}_"));
        match (Offer { suites: vec![suite], version, alpn: &["http/1.1"], roots }).connect(webhook).await {
            Ok(stream) => {
                let session = &stream.get_ref().1;
                assert_eq!(session.negotiated_cipher_suite(), Some(suite));
                assert_eq!(session.protocol_version(), Some(version.version));
                ensure!(spoken, "{suite:?} with a key for {key}");
                review(stream).await.with_context(|| format!("{suite:?}"))?;
                agreed.push(suite);
            }
            Err(error) => {
                ensure!(!spoken, "{suite:?} with a key for {key}: {error}");
                let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
                let refused = rustls::Error::AlertReceived(AlertDescription::HandshakeFailure);
                ensure!(cause == Some(&refused), "{suite:?}: {error}");
            }
        }
    }
    assert_eq!(agreed.len(), 6, "three of each version: {agreed:?}");
    Ok(())
}

/// Both protocols over both versions, whichever the client names first; and the end when it speaks neither.
async fn protocols(webhook: SocketAddr, roots: &RootCertStore) -> Result<()> {
    for version in [&TLS12, &TLS13] {
        let offer = |alpn| Offer { suites: aws_lc_rs::default_provider().cipher_suites, version, alpn, roots };
        for (alpn, agreed) in [
            (&["h2"][..], Some("h2")),
            (&["http/1.1"], Some("http/1.1")),
            (&["http/1.1", "h2"], Some("h2")),
            (&[], None),
        ] {
            let stream = offer(alpn).connect(webhook).await.with_context(|| format!("{alpn:?}"))?;
            assert_eq!(stream.get_ref().1.alpn_protocol(), agreed.map(str::as_bytes), "{alpn:?}");
            review(stream).await.with_context(|| format!("{version:?} {alpn:?}"))?;
        }
        let error = offer(&["spdy/3"]).connect(webhook).await.err().context("no protocol in common")?;
        let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        assert_eq!(cause, Some(&rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)));
    }
    Ok(())
}

/// A ClientHello of a client that speaks at most that version (RFC 5246 7.4.1.2), with suites that every client of its time had.
fn old_hello(version: [u8; 2]) -> Vec<u8> {
    let suites = [0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x13, 0x00, 0x2f, 0x00, 0x0a];
    let body = [&version[..], &[7; 32], &[0, 0, suites.len() as u8], &suites, &[1, 0]].concat();
    let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    [&[22, 3, 1, 0, message.len() as u8][..], &message].concat()
}

/// All that comes back before the server ends the connection, which it does.
async fn answer(webhook: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect(webhook).await?;
    stream.write_all(bytes).await?;
    let mut back = Vec::new();
    timeout(patience(), stream.read_to_end(&mut back)).await.context("the connection is not ended")??;
    Ok(back)
}

/// SSL 3.0, TLS 1.0 and 1.1 get a fatal alert (RFC 5246 7.2) and the end, plain HTTP an answer in words, and each is counted.
async fn refusals(webhook: &Drawbridge) -> Result<()> {
    const ALERT: u8 = 21;
    const FATAL: u8 = 2;
    const HANDSHAKE_FAILURE: u8 = 40;
    const PROTOCOL_VERSION: u8 = 70;
    let failed = async |cause| -> Result<f64> {
        let labels = [("port", "webhook"), ("cause", cause)];
        Ok(webhook.metrics().await?.sum("drawbridge_handshake_failures_total", &labels))
    };
    // What was refused before counts once its connection is gone, a moment after its client knows.
    let quiet = async {
        while webhook.metrics().await?.sum("drawbridge_connections", &[("port", "webhook")]) > 0.0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    timeout(patience(), quiet).await.context("every connection ends")??;
    let before = (failed("refused").await?, failed("plain_http").await?);
    for version in [[3, 0], [3, 1], [3, 2]] {
        let back = answer(webhook.webhook(), &old_hello(version)).await?;
        assert_eq!((back.first(), back.len(), back.get(5)), (Some(&ALERT), 7, Some(&FATAL)), "{version:?}: {back:x?}");
        ensure!([HANDSHAKE_FAILURE, PROTOCOL_VERSION].contains(&back[6]), "{version:?}: {back:x?}");
    }
    let request = format!("POST {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 2\r\n\r\n{{}}", keys::PATH_INJECT, host());
    let back = String::from_utf8(answer(webhook.webhook(), request.as_bytes()).await?)?;
    ensure!(back.starts_with("HTTP/1.1 400 ") && back.contains("Client sent an HTTP request to an HTTPS"), "{back}");
    let counted = async {
        while (failed("refused").await?, failed("plain_http").await?) != (before.0 + 3.0, before.1 + 1.0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    timeout(patience(), counted).await.context("each is counted once")?
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b3_the_running_webhook_speaks_every_suite_of_today_with_either_key_and_refuses_the_rest() -> Result<()> {
    webhook_tests::install_crypto();
    let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
    let folder = tempfile::tempdir()?;
    let roots = issue(folder.path(), &KeyPair::generate()?)?;
    let path = format!("--webhook-cert-path={}", folder.path().display());
    let flags = vec!["--drain-delay=0s".to_owned(), path];
    let installation = Installation::start(&cp, &Installing { flags, ..Installing::default() }).await?;
    let webhook = &installation.webhooks[0];
    // Nobody here publishes for files, so nobody claims that nothing is published.
    for process in installation.webhooks.iter().chain(&installation.controllers) {
        let metrics = process.metrics().await?;
        ensure!(metrics.select("drawbridge_bundle_published", &[]).next().is_none(), "files have no publisher");
    }
    suites(webhook.webhook(), &roots, "ECDSA").await?;
    protocols(webhook.webhook(), &roots).await?;
    refusals(webhook).await?;

    // The same process, with another key type from now on.
    let roots = issue(folder.path(), &KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?)?;
    let all = aws_lc_rs::default_provider().cipher_suites;
    let offer = Offer { suites: all, version: &TLS13, alpn: &["http/1.1"], roots: &roots };
    let taken = async {
        while offer.connect(webhook.webhook()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(patience(), taken).await.context("the new pair is taken")?;
    suites(webhook.webhook(), &roots, "RSA").await?;
    protocols(webhook.webhook(), &roots).await?;
    refusals(webhook).await
}
