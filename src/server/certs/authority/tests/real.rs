//! Real keys: what is made can be read back, is verified by rustls' own client verifier, and never printed.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret as SecretObject;
use rcgen::{CertificateParams, IsCa, KeyPair, PKCS_ECDSA_P384_SHA384};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use super::DAY;
use crate::domain::keys;
use crate::server::certs::authority::content;
use crate::server::certs::authority::mint::SigningAuthority;
use crate::server::certs::authority::plan::{Authority as _, Flaw, Generations, Lifetimes};
use crate::server::certs::authority::run::SelfManagedConfig;
use crate::server::certs::resolver::Resolver;
use crate::server::certs::root::Millis;

/// 2026-11-21 in whole days.
const NOW: Millis = 20_778 * DAY;

fn names() -> Vec<String> {
    let config = SelfManagedConfig {
        namespace: "kagenti-system".into(),
        service: keys::SERVICE_WEBHOOK.into(),
        extra_names: vec!["10.0.0.7".into(), String::new()],
        lifetimes: Lifetimes::default(),
    };
    config.names()
}

fn verifies(leaf: &CertificateDer<'static>, root: &SigningAuthority, name: &str, at: Millis) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(root.certificate().der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let at = UnixTime::since_unix_epoch(Duration::from_millis(at.unsigned_abs()));
    let name = ServerName::try_from(name.to_owned()).unwrap();
    verifier.verify_server_cert(leaf, &[], &name, &[], at).is_ok()
}

#[test]
fn a_leaf_verifies_for_every_name_from_a_day_before_until_its_end() {
    let lifetimes = Lifetimes::default();
    let authority = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let (pair, leaf) = authority.sign(&names(), &lifetimes, NOW).unwrap();
    let der = &pair.certified.cert[0];
    for name in [
        "drawbridge-webhook.kagenti-system.svc",
        "drawbridge-webhook.kagenti-system.svc.cluster.local",
        "drawbridge-webhook.kagenti-system",
        "localhost",
        "127.0.0.1",
        "::1",
        "10.0.0.7",
    ] {
        for at in [NOW - DAY, NOW, NOW + DAY, leaf.not_after - 1000] {
            assert!(verifies(der, &authority, name, at), "{name} at {at}");
        }
        assert!(!verifies(der, &authority, name, leaf.not_after + 1000), "{name} after its end");
    }
    assert!(!verifies(der, &authority, "drawbridge-webhook.other.svc", NOW));
    let stranger = SigningAuthority::found(&lifetimes, NOW).unwrap();
    assert!(!verifies(der, &stranger, "localhost", NOW));
}

#[test]
fn a_leaf_ends_no_later_than_its_authority() {
    let lifetimes = Lifetimes::default();
    let authority = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let (pair, leaf) = authority.sign(&names(), &lifetimes, NOW + 363 * DAY).unwrap();
    assert_eq!(leaf.not_after, authority.root().not_after);
    assert_eq!(pair.leaf.not_after, authority.root().not_after);
    let (_, short) = authority.sign(&names(), &Lifetimes::new(2_000, 10_000), NOW + 1).unwrap();
    assert_eq!(short.not_after, NOW + 3_000, "whole seconds, rounded up");
}

#[test]
fn a_secret_is_read_back_and_foreign_parts_survive() {
    let lifetimes = Lifetimes::default();
    let found = |day: Millis| SigningAuthority::found(&lifetimes, NOW + day * DAY).unwrap();
    let (old, current, next) = (found(0), found(1), found(2));
    let generations =
        Generations { current: current.clone(), next: Some(next.clone()), previous: vec![old.certificate().clone()] };
    let mut base = SecretObject::default();
    base.metadata.resource_version = Some("7".into());
    base.metadata.annotations = Some([("theirs".to_owned(), "kept".to_owned())].into());
    base.data = Some([("note".to_owned(), ByteString(b"kept".to_vec()))].into());
    let secret = content::write(Some(&base), "kagenti-system", &generations);
    assert_eq!(secret.metadata.annotations, base.metadata.annotations);
    assert_eq!(secret.metadata.resource_version.as_deref(), Some("7"), "a replacement of exactly that version");
    assert_eq!(secret.data.as_ref().unwrap()["note"].0, b"kept");

    let read = content::read(&secret);
    assert!(read.ours);
    assert_eq!(read.current.unwrap().root(), current.root());
    assert_eq!(read.next.unwrap().unwrap().root(), next.root());
    assert_eq!(read.previous, vec![old.certificate().clone()]);

    let alone = Generations { next: None, previous: Vec::new(), ..generations };
    let keys: Vec<_> = content::write(Some(&secret), "x", &alone).data.unwrap().into_keys().collect();
    assert_eq!(keys, ["ca.crt", "ca.key", "note"], "what is over is taken out");
    let created = content::write(None, "kagenti-system", &alone);
    assert_eq!(created.metadata.resource_version, None, "a creation");
    assert_eq!(created.metadata.name.as_deref(), Some(keys::SECRET_AUTHORITY));
}

#[test]
fn c4_every_flaw_is_named() {
    let lifetimes = Lifetimes::default();
    let authority = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let generations = Generations { current: authority.clone(), next: None, previous: Vec::new() };
    let good = content::write(None, "kagenti-system", &generations);
    let data = good.data.clone().unwrap();
    let certificate = String::from_utf8(data["ca.crt"].0.clone()).unwrap();
    let key = String::from_utf8(data["ca.key"].0.clone()).unwrap();
    let other = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let other = content::write(None, "x", &Generations { current: other, next: None, previous: Vec::new() });
    let other_key = String::from_utf8(other.data.unwrap()["ca.key"].0.clone()).unwrap();

    let p384 = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let p384_certificate = params.self_signed(&p384).unwrap().pem();
    let plain = KeyPair::generate().unwrap();
    let plain_certificate = CertificateParams::new(vec!["x".to_owned()]).unwrap().self_signed(&plain).unwrap().pem();

    let cut = |text: &str| text[..text.len() / 2].to_owned();
    let rows = [
        (String::new(), key.clone(), Flaw::Missing),
        (certificate.clone(), String::new(), Flaw::Missing),
        (cut(&certificate), key.clone(), Flaw::Unreadable),
        (certificate.clone(), cut(&key), Flaw::Unreadable),
        ("garbage".to_owned(), "garbage".to_owned(), Flaw::Unreadable),
        (certificate.clone(), "\u{0}\u{1}".to_owned(), Flaw::Unreadable),
        (certificate.clone(), other_key, Flaw::KeyMismatch),
        (p384_certificate, p384.serialize_pem(), Flaw::WrongKeyType),
        (plain_certificate, plain.serialize_pem(), Flaw::NotAnAuthority),
    ];
    for (certificate, key, expected) in rows {
        let mut secret = good.clone();
        let data = secret.data.get_or_insert_default();
        data.insert("ca.crt".to_owned(), ByteString(certificate.into_bytes()));
        data.insert("ca.key".to_owned(), ByteString(key.into_bytes()));
        assert_eq!(content::read(&secret).current.err(), Some(expected));
    }
    let mut unlabelled = good.clone();
    unlabelled.metadata.labels = None;
    assert!(!content::read(&unlabelled).ours);
    assert!(content::read(&unlabelled).current.is_ok());
}

/// As openssl, an editor of another system or a person leave them: the authority is the same.
#[test]
fn an_authority_is_read_however_its_pem_is_dressed() {
    let lifetimes = Lifetimes::default();
    let authority = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let generations = Generations { current: authority.clone(), next: None, previous: Vec::new() };
    let data = content::write(None, "kagenti-system", &generations).data.unwrap();
    let [certificate, key] = ["ca.crt", "ca.key"].map(|name| String::from_utf8(data[name].0.clone()).unwrap());
    let curve = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let stranger = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let second = crate::server::certs::write_bundle([stranger.certificate()]);
    for (what, certificate, key) in [
        ("parameters before the key", certificate.clone(), format!("{curve}{key}")),
        ("both in one", format!("{certificate}{key}"), format!("{certificate}{key}")),
        ("carriage returns", certificate.replace('\n', "\r\n"), key.replace('\n', "\r\n")),
        ("words around", format!("subject=me\n{certificate}the end"), format!("# mine\n{key}\n\n")),
        ("another one behind it", format!("{certificate}{second}"), key.clone()),
    ] {
        let read = SigningAuthority::read(certificate.as_bytes(), key.as_bytes());
        assert_eq!(read.map(|read| read.root()), Ok(authority.root()), "{what}");
    }
}

#[test]
fn keys_are_not_printed() {
    let lifetimes = Lifetimes::default();
    let authority = SigningAuthority::found(&lifetimes, NOW).unwrap();
    let (pair, leaf) = authority.sign(&names(), &lifetimes, NOW).unwrap();
    for text in [format!("{authority:?}"), format!("{leaf:?}"), format!("{pair:?}")] {
        let key = String::from_utf8(
            content::write(None, "x", &Generations { current: authority.clone(), next: None, previous: Vec::new() })
                .data
                .unwrap()["ca.key"]
                .0
                .clone(),
        )
        .unwrap();
        let body: String = key.lines().filter(|line| !line.starts_with("-----")).collect();
        assert!(!text.contains(&body[..40]) && !text.contains("PRIVATE"), "{text}");
    }
}

/// One handshake in memory; the certificate that the client saw.
fn handshake(server: &Arc<ServerConfig>, root: &SigningAuthority, name: &str) -> Result<Vec<u8>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(root.certificate().der.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap())?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        let mut reader = wire.as_slice();
        while !reader.is_empty() {
            server.read_tls(&mut reader).unwrap();
            server.process_new_packets()?;
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).unwrap();
        }
        let mut reader = wire.as_slice();
        while !reader.is_empty() {
            client.read_tls(&mut reader).unwrap();
            client.process_new_packets()?;
        }
    }
    client.writer().write_all(b"x").unwrap();
    let mut wire = Vec::new();
    client.write_tls(&mut wire).unwrap();
    server.read_tls(&mut wire.as_slice()).unwrap();
    server.process_new_packets()?;
    let mut byte = [0];
    server.reader().read_exact(&mut byte).unwrap();
    Ok(client.peer_certificates().unwrap()[0].to_vec())
}

#[test]
fn the_newest_pair_is_presented_to_every_new_connection_with_or_without_a_name() {
    let now = jiff::Timestamp::now().as_millisecond();
    let lifetimes = Lifetimes::default();
    let authority = SigningAuthority::found(&lifetimes, now).unwrap();
    let resolver = Resolver::new();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(resolver.clone());
    let server = Arc::new(server);
    assert!(!resolver.loaded());
    assert!(handshake(&server, &authority, "localhost").is_err(), "nothing to present yet");
    for _ in 0..2 {
        let (pair, _) = authority.sign(&names(), &lifetimes, now).unwrap();
        resolver.store(&pair, vec![authority.root().fingerprint]);
        assert!(resolver.loaded());
        for name in ["127.0.0.1", "localhost", "drawbridge-webhook.kagenti-system.svc"] {
            assert_eq!(handshake(&server, &authority, name).unwrap(), pair.certified.cert[0].to_vec(), "{name}");
        }
        assert_eq!(resolver.served().borrow().as_ref().unwrap().fingerprint, pair.leaf.fingerprint);
    }
}
