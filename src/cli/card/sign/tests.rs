//! What is signed is verified by the other command, and by OpenSSL's own hand: the keys of the known answer test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use clap::Parser;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use serde_json::Value;

use crate::cli::io::Io;
use crate::cli::{Cli, Exit, conclude};
use crate::crypto::{Card, Profile, Signer};

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
fn cases_140_and_145_what_is_signed_is_verified_and_nothing_else_of_the_card_changes() {
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

/// clap takes them beside a card and a key, with which --in-pod is at odds.
#[test]
fn what_is_for_pods_alone_is_refused_elsewhere() {
    let svid = Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256);
    for flag in ["--stay", "--if-present", "--has-started"] {
        let (exit, out, err) = svid.signs(CARD, &[flag]);
        assert_eq!((exit, &*out), (Exit::Usage, ""), "{flag}: {err}");
        assert!(err.contains(&format!("{flag} needs --in-pod")), "{err}");
    }
}

/// The algorithm follows from the key, and keys that no verifier takes sign nothing.
#[test]
fn case_141_the_key_decides_the_algorithm() {
    for (algorithm, alg) in [
        (&rcgen::PKCS_RSA_SHA256, Some("RS256")),
        (&rcgen::PKCS_ECDSA_P256_SHA256, Some("ES256")),
        (&rcgen::PKCS_ECDSA_P384_SHA384, Some("ES384")),
        (&rcgen::PKCS_ED25519, None),
    ] {
        let svid = Svid::new(algorithm);
        let (exit, out, err) = svid.signs(CARD, &["--profile", "kagenti-v2"]);
        assert_eq!(exit, if alg.is_some() { Exit::Ok } else { Exit::Usage }, "{err}");
        let Some(alg) = alg else { continue };
        let protected = entries(&out)[0]["protected"].as_str().unwrap().to_owned();
        let header = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, protected).unwrap();
        assert!(
            String::from_utf8(header).unwrap().starts_with(&format!("{{\"alg\":\"{alg}\",\"typ\":\"JOSE\",\"kid\""))
        );
        assert_eq!(svid.verifies(&out).0, Exit::Ok, "{}", svid.verifies(&out).1);
    }
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
        [("[]", "not a JSON object"), ("{", "acceptable JSON"), (r#"{"name":1,"version":1}"#, "would cover")]
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
        ("https://169.254.169.254/", "link-local"),
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

#[test]
fn case_142_who_signs_is_said_once_and_a_socket_without_an_agent_is_told() {
    let svid = Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256);
    let (key, socket) = (svid.path("key"), svid.path("agent.sock"));
    let parsed = |more: &[&str]| {
        Cli::try_parse_from([&["drawbridge", "card", "sign", "-"], more].concat())
            .map(drop)
            .map_err(|error| error.kind())
    };
    use clap::error::ErrorKind::{ArgumentConflict, MissingRequiredArgument, ValueValidation};
    assert_eq!(parsed(&[]), Err(MissingRequiredArgument));
    assert_eq!(parsed(&["--key", &key]), Err(MissingRequiredArgument));
    assert_eq!(parsed(&["--key", &key, "--chain", &key, "--spiffe-socket", &socket]), Err(ArgumentConflict));
    assert_eq!(parsed(&["--spiffe-socket", "tcp://127.0.0.1:1"]), Err(ValueValidation));
    assert_eq!(parsed(&["--spiffe-socket", &socket, "--timeout", "0s"]), Err(ValueValidation));
    // Nobody is waited for where the SVID stands in files.
    for time in ["1ms", "30s"] {
        assert_eq!(parsed(&["--key", &key, "--chain", &key, "--timeout", time]), Err(ArgumentConflict), "{time}");
    }
    assert_eq!(parsed(&["--timeout", "1ms"]), Err(MissingRequiredArgument));
    assert_eq!(parsed(&["--key", &key, "--chain", &key]), Ok(()), "by default it is at odds with nothing");
    assert_eq!(parsed(&["--spiffe-socket", &socket, "--timeout", "1ms"]), Ok(()));
    let words = ["sign", "-", "--spiffe-socket", &socket, "--timeout", "1ms"].map(str::to_owned);
    let (exit, out, err) = run(&words, CARD);
    assert_eq!((exit, out.as_str()), (Exit::Usage, ""), "{err}");
    assert!(err.contains("agent.sock") && err.contains("SPIFFE agent"), "{err}");
}

#[test]
fn an_svid_as_the_workload_api_gives_it_signs_as_its_files_do() {
    let svid = Svid::new(&rcgen::PKCS_ECDSA_P256_SHA256);
    let decoded = |name: &str| {
        let text = std::fs::read_to_string(svid.path(name)).unwrap();
        let body: String = text.lines().filter(|line| !line.starts_with('-')).collect();
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, body).unwrap()
    };
    let (key, leaf, authority) = (decoded("key"), decoded("chain"), decoded("bundle"));
    let chain = [&leaf[..], &authority].concat();
    let signer = Signer::of_svid(&key, &chain).unwrap();
    let files = Signer::read(svid_text(&svid, "key").as_bytes(), svid_text(&svid, "chain").as_bytes()).unwrap();
    assert_eq!((signer.identity(), signer.key_id()), (files.identity(), files.key_id()));
    let entry = signer.sign(&Card::read(CARD.as_bytes()).unwrap(), Profile::ALL).unwrap().remove(0);
    let header = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, entry.protected).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["x5c"].as_array().unwrap().len(), 2, "the whole chain goes with it");
    // Whatever is cut off, nobody signs with half a certificate.
    for length in (0..chain.len()).filter(|length| *length != leaf.len()) {
        assert!(Signer::of_svid(&key, &chain[..length]).is_err(), "{length}");
    }
}

fn svid_text(svid: &Svid, name: &str) -> String {
    std::fs::read_to_string(svid.path(name)).unwrap()
}
