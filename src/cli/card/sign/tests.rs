//! What is signed is verified by the other command, and by OpenSSL's own hand: the keys of the known answer test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use serde_json::Value;

use crate::cli::io::Io;
use crate::cli::{Cli, Exit, conclude};

const ID: &str = "spiffe://example.org/ns/team1/sa/weather";

/// Files of an SVID and its authority.
struct Svid {
    folder: tempfile::TempDir,
}

fn uri(text: &str) -> Vec<SanType> {
    vec![SanType::URI(text.try_into().unwrap())]
}

impl Svid {
    fn new(algorithm: &'static rcgen::SignatureAlgorithm) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.subject_alt_names = uri("spiffe://example.org");
        let authority_key = KeyPair::generate().unwrap();
        let pem = authority.self_signed(&authority_key).unwrap().pem();
        let mut leaf = CertificateParams::default();
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.subject_alt_names = uri(ID);
        let key = KeyPair::generate_for(algorithm).unwrap();
        let chain = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap().pem();
        let svid = Self { folder };
        svid.file("bundle", &pem);
        svid.file("chain", &chain);
        svid.file("key", &key.serialize_pem());
        svid
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// How signing ended, and what was printed on both streams.
    fn signs(&self, card: &str, more: &[&str]) -> (Exit, String, String) {
        let words = ["sign", "-", "--key", &self.path("key"), "--chain", &self.path("chain")].map(str::to_owned);
        run(&[&words[..], &more.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()].concat(), card)
    }

    fn verifies(&self, card: &str) -> (Exit, String) {
        let words = ["verify", "-", "--bundle", &self.path("bundle"), "--spiffe-id", ID].map(str::to_owned);
        let (exit, out, err) = run(&words, card);
        (exit, format!("{out}{err}"))
    }
}

fn run(words: &[String], stdin: &str) -> (Exit, String, String) {
    let words = ["drawbridge".to_owned(), "card".to_owned()].into_iter().chain(words.iter().cloned());
    let (mut stdin, mut out, mut err) = (stdin.as_bytes(), Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let result = Cli::try_parse_from(words).unwrap().command.run(&mut io);
    let exit = conclude(result, &mut io);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

/// Every profile sees another card: an empty text in a list, members of 1.x, and numbers as nobody rewrites them.
const CARD: &str = r#"{"version": "1.0.0", "name": "Weather & Wind", "defaultInputModes": ["", "text/plain"],
  "supportedInterfaces": [{"url": "http://weather:8000"}], "skills": [{"id": "get_weather"}],
  "capabilities": {"extensions": [{"uri": "x", "params": {"n": 1.10, "big": 123456789012345678901234567890}}]},
  "unknown": {"kept": [1.0, 1e3]}}"#;

fn entries(card: &str) -> Vec<Value> {
    let card: Value = serde_json::from_str(card).unwrap();
    card["signatures"].as_array().unwrap().clone()
}

#[test]
fn what_is_signed_is_verified_and_nothing_else_of_the_card_changes() {
    for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ECDSA_P521_SHA512] {
        let svid = Svid::new(algorithm);
        let (exit, out, err) = svid.signs(CARD, &[]);
        assert_eq!(exit, Exit::Ok, "{err}");
        assert!(err.contains(ID) && err.contains("kagenti-v2, kagenti-v1, a2a-sdk-1.x"), "{err}");
        assert!(out.contains(r#""unknown": {"kept": [1.0, 1e3]}"#) && out.contains("1.10"), "{out}");
        assert!(out.starts_with("{\n  \"version\""), "the order of the members is kept: {out}");
        assert_eq!(entries(&out).len(), 3);
        assert_eq!(svid.verifies(&out).0, Exit::Ok, "{}", svid.verifies(&out).1);
        for tampered in [out.replace("get_weather", "get_money"), out.replace("1.10", "1.11")] {
            assert_eq!(svid.verifies(&tampered).0, Exit::Findings);
        }
        assert_eq!(svid.verifies(&out.replace("1e3", "1e4")).0, Exit::Ok, "no profile covers it");
        // Each entry is good by itself.
        for entry in entries(&out) {
            let mut alone: Value = serde_json::from_str(CARD).unwrap();
            alone["signatures"] = vec![entry].into();
            let text =
                CARD.strip_suffix('}').unwrap().to_owned() + &format!(", \"signatures\": {}}}", alone["signatures"]);
            assert_eq!(svid.verifies(&text).0, Exit::Ok, "{}", svid.verifies(&text).1);
        }
    }
}

#[test]
fn one_signature_where_all_profiles_give_the_same_bytes_and_only_those_that_are_asked_for() {
    let svid = Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256);
    let plain = r#"{"name": "Weather Agent", "skills": [{"id": "a"}]}"#;
    assert_eq!(entries(&svid.signs(plain, &[]).1).len(), 1);
    let (_, out, err) = svid.signs(CARD, &["--profile", "a2a-sdk-1.x"]);
    assert_eq!(entries(&out).len(), 1);
    assert!(err.contains("a2a-sdk-1.x") && !err.contains("kagenti"), "{err}");
    assert!(svid.verifies(&out).1.contains("a2a-sdk-1.x"));
}

#[test]
fn own_signatures_are_renewed_and_those_of_others_are_kept() {
    let (one, other) = (Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256), Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256));
    let first = one.signs(CARD, &["--profile", "kagenti-v2"]).1;
    let again = one.signs(&first, &["--profile", "kagenti-v2"]).1;
    assert_eq!(entries(&again).len(), 1);
    let both = other.signs(&again, &["--profile", "kagenti-v2"]).1;
    assert_eq!(entries(&both).len(), 2);
    assert_eq!(entries(&both)[0], entries(&again)[0]);
    assert_eq!((one.verifies(&both).0, other.verifies(&both).0), (Exit::Ok, Exit::Ok));
}

#[test]
fn what_signs_nothing_says_why_and_nothing_of_the_key() {
    let svid = Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256);
    let key = std::fs::read_to_string(svid.path("key")).unwrap();
    let refused = |says: &str| {
        let (exit, out, err) = svid.signs(CARD, &[]);
        assert!(exit == Exit::Usage && out.is_empty() && err.contains(says), "{exit:?}: {out}{err}");
        assert!(
            !key.lines().filter(|line| line.len() > 20 && !line.contains('-')).any(|line| err.contains(line)),
            "{err}"
        );
    };
    let other = KeyPair::generate().unwrap().serialize_pem();
    for (text, says) in [
        (other.clone(), "not that of the first certificate"),
        (KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().serialize_pem(), "not that of the first"),
        (key.replace("PRIVATE KEY", "EC PRIVATE KEY"), "openssl pkcs8 -topk8"),
        (key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"), "encrypted"),
        (key.replace("\nM", "\n!"), "not that of"),
        (String::new(), "not PKCS#8"),
        ("x".repeat(super::PEM_BYTES + 1), "more than 65536 bytes"),
    ] {
        svid.file("key", &text);
        refused(says);
    }
    svid.file("key", &key);
    let chain = std::fs::read_to_string(svid.path("chain")).unwrap();
    let bundle = std::fs::read_to_string(svid.path("bundle")).unwrap();
    for (text, says) in [
        (String::new(), "no certificate"),
        (chain.replace("\nM", "\n!"), "no certificate"),
        (chain.repeat(4), "more than 3 certificates"),
        (format!("{bundle}{chain}"), "signs no cards"),
    ] {
        svid.file("chain", &text);
        refused(says);
    }
    svid.file("chain", &chain);
    for (card, says) in
        [("[]", "no JSON object"), ("{", "acceptable JSON"), (r#"{"name":1,"version":1}"#, "would cover")]
    {
        let (exit, out, err) = svid.signs(card, &[]);
        assert!(exit == Exit::Usage && out.is_empty() && err.contains(says), "{card}: {err}");
    }
    let empty = svid.signs(r#"{"name": "x"}"#, &[]).2;
    assert!(empty.contains("names no skill"), "{empty}");
}

/// Serves these answers, one a connection, and says what was asked for.
fn serve(answers: Vec<String>) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            asked.push(lines.next().unwrap().unwrap());
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let _ = stream.write_all(answer.as_bytes());
        }
        asked
    });
    (port, asked)
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[test]
fn a_card_is_verified_where_an_agent_serves_it_and_the_transport_is_named() {
    let svid = Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256);
    let signed = svid.signs(CARD, &[]).1;
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (port, asked) =
        serve(vec![answer("200 OK", &signed), answer("200 OK", &signed), moved, answer("404 Not Found", "")]);
    let verify = |url: &str| {
        let words = ["verify", url, "--bundle", &svid.path("bundle"), "--spiffe-id", ID].map(str::to_owned);
        let (exit, out, err) = run(&words, "");
        (exit, format!("{out}{err}"))
    };
    let (exit, said) = verify(&format!("http://127.0.0.1:{port}"));
    assert_eq!(exit, Exit::Ok, "{said}");
    let transport = said.lines().find(|line| line.starts_with("transport")).unwrap();
    assert!(transport.contains("not judged") && transport.contains("plain HTTP"), "{transport}");
    assert_eq!(verify(&format!("http://127.0.0.1:{port}/card.json?x=1")).0, Exit::Ok);
    let (exit, said) = verify(&format!("http://127.0.0.1:{port}/moved"));
    assert!(exit == Exit::Usage && said.contains("redirect"), "{said}");
    let (exit, said) = verify(&format!("http://127.0.0.1:{port}/none"));
    assert!(exit == Exit::Usage && said.contains("404"), "{said}");
    let asked = asked.join().unwrap();
    assert!(asked[0].starts_with("GET /.well-known/agent-card.json ") && asked[1].starts_with("GET /card.json?x=1 "));
    for (url, says) in [
        ("https://127.0.0.1/", "curl -sS URL"),
        ("file:///etc/passwd", "only http://"),
        ("http://169.254.169.254/", "link-local"),
        ("http://[::ffff:169.254.169.254]/", "link-local"),
        ("http://user@127.0.0.1/", "a user"),
    ] {
        let (exit, said) = verify(url);
        assert!(exit == Exit::Usage && said.contains(says), "{url}: {said}");
    }
    assert!(Path::new(&svid.path("bundle")).exists());
}
