//! Cards over TLS: who is believed, and that nothing is asked of anybody else.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use crate::cli::io::Io;
use crate::cli::{Cli, Exit, conclude};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Serves a card by TLS as `name`, for as long as the process runs; its port, and how many requests came.
fn serving(authority: &Authority, name: &str) -> (u16, Arc<AtomicUsize>) {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut asked = [0; 4096];
                if stream.read(&mut asked).await.is_ok_and(|read| read > 0) {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let card = json!({"name": "weather", "version": "1"}).to_string();
                    let head =
                        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", card.len());
                    let _ = stream.write_all(format!("{head}{card}").as_bytes()).await;
                    let _ = stream.shutdown().await;
                }
            }
        });
    });
    (port, requests)
}

/// How it ended, and the state and text of the first assurance.
fn verify(url: &str, ca: &Path) -> (Exit, String, Value) {
    let ca = ca.display().to_string();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut std::io::empty(), out: &mut out, err: &mut err, colour: false };
    let words = ["drawbridge", "card", "verify", url, "--ca", &ca, "-o", "json"];
    let result = Cli::try_parse_from(words).unwrap().command.run(&mut io);
    let exit = conclude(result, &mut io);
    let report: Value = serde_json::from_slice(&out).unwrap_or_default();
    (exit, String::from_utf8(err).unwrap(), report)
}

#[test]
fn a_card_by_tls_is_read_from_whom_the_url_names_and_from_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, others) = (authority(), authority());
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, ours.pem()).unwrap();
    for (by, name, wanted, told) in [
        (&ours, "127.0.0.1", "ok", "vouches for 127.0.0.1"),
        (&others, "127.0.0.1", "failed", "is not believed to be 127.0.0.1"),
        (&ours, "weather.example", "failed", "is not believed to be 127.0.0.1"),
    ] {
        let (port, requests) = serving(by, name);
        let (exit, err, report) = verify(&format!("https://127.0.0.1:{port}"), &file);
        assert_eq!(exit, Exit::Findings, "{name}: it is not signed in any case: {err}");
        let transport = &report["assurances"][0];
        assert_eq!((&transport["name"], &transport["state"]), (&json!("transport"), &json!(wanted)), "{report}");
        assert!(transport["text"].as_str().unwrap().contains(told), "{report}");
        assert_eq!(requests.load(Ordering::SeqCst), usize::from(wanted == "ok"), "{name}");
        assert_eq!(report["assurances"].as_array().unwrap().len(), 6, "{report}");
    }
}

#[test]
fn authorities_are_for_tls_and_have_to_be_some() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "nothing").unwrap();
    for (url, told) in [
        ("http://127.0.0.1:1", "is none"),
        ("card.json", "is none"),
        ("ftp://127.0.0.1", "only http:// and https:// are asked"),
        ("https://127.0.0.1:1", "no certificate in PEM"),
    ] {
        let (exit, err, _) = verify(url, &empty);
        assert_eq!(exit, Exit::Usage, "{url}: {err}");
        assert!(err.contains(told), "{url}: {err}");
    }
}
