//! The command on the known answer of the specification, and on what was done to it.

use std::path::Path;

use clap::Parser;
use serde_json::{Value, json};

use super::bound;
use crate::cli::io::Io;
use crate::cli::{Cli, Exit, conclude};
use crate::crypto::{Algorithm, Freshness, Good, Profile, SpiffeId, TrustDomain, Wanted};

/// A card signed with the key of RFC 7515 A.3, and the authority of its certificate.
fn known() -> (Value, String) {
    let known: Value = serde_json::from_str(include_str!("../../../crypto/tests/vectors/kat.json")).unwrap();
    let text = |name: &str| known[name].as_str().unwrap();
    let mut card: Value = serde_json::from_str(text("card")).unwrap();
    card["signatures"] = json!([{"protected": text("protected"), "signature": text("signature")}]);
    let ca = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", text("ca"));
    (card, ca)
}

/// How it ended, and what was printed on both streams.
fn verify(folder: &Path, card: &[u8], bundle: Option<&str>, more: &[&str]) -> (Exit, String, String) {
    let mut words = vec!["drawbridge".to_owned(), "card".to_owned(), "verify".to_owned(), "-".to_owned()];
    if let Some(bundle) = bundle {
        let path = folder.join("bundle");
        std::fs::write(&path, bundle).unwrap();
        words.extend(["--bundle".to_owned(), path.display().to_string()]);
    }
    words.extend(["--at", "2027-01-15T08:00:00Z"].iter().chain(more).map(|word| (*word).to_owned()));
    let (mut stdin, mut out, mut err) = (card, Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
    let result = Cli::try_parse_from(words).unwrap().command.run(&mut io);
    let exit = conclude(result, &mut io);
    (exit, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn states(printed: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(printed).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    report["assurances"].as_array().unwrap().iter().map(|one| (text(&one["name"]), text(&one["state"]))).collect()
}

#[test]
fn a_good_card_has_every_assurance_on_a_line_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (card, bundle) = known();
    let (exit, out, err) = verify(folder.path(), card.to_string().as_bytes(), Some(&bundle), &[]);
    assert_eq!((exit, err.as_str()), (Exit::Ok, ""), "{out}");
    let lines: Vec<_> = out.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    let wanted = ["transport not", "signature ok", "chain ok", "identity ok", "profile ok", "freshness ok"];
    assert_eq!(lines, wanted, "{out}");
    assert!(out.contains("spiffe://") && out.contains("kagenti-v2") && out.contains("ES256 of entry 0"), "{out}");
}

#[test]
fn who_should_have_signed_is_asked_and_fails_the_command_where_it_was_another() {
    let folder = tempfile::tempdir().unwrap();
    let (card, bundle) = known();
    let bytes = card.to_string().into_bytes();
    let (_, out, _) = verify(folder.path(), &bytes, Some(&bundle), &[]);
    let line = out.lines().find(|line| line.starts_with("identity")).unwrap();
    let id = line.split_whitespace().find(|word| word.starts_with("spiffe://")).unwrap().to_owned();
    let domain = id.trim_start_matches("spiffe://").split('/').next().unwrap().to_owned();
    for (asked, exit) in [
        (["--spiffe-id", id.as_str()], Exit::Ok),
        (["--trust-domain", domain.as_str()], Exit::Ok),
        (["--spiffe-id", "spiffe://other.example/ns/a/sa/b"], Exit::Findings),
    ] {
        let (ended, out, err) = verify(folder.path(), &bytes, Some(&bundle), &asked);
        assert_eq!(ended, exit, "{asked:?}: {out}{err}");
        let line = out.lines().find(|line| line.starts_with("identity")).unwrap();
        assert_eq!(line.contains("failed"), exit == Exit::Findings, "{out}");
        let (_, out, _) = verify(folder.path(), &bytes, Some(&bundle), &[&asked[..], &["-o", "json"]].concat());
        let report: Value = serde_json::from_str(&out).unwrap();
        let reason = if exit == Exit::Ok { "SignatureValid" } else { "NotBound" };
        assert_eq!((&report["verified"], &report["reason"]), (&json!(exit == Exit::Ok), &json!(reason)));
    }
    let x5c: String = bundle.lines().filter(|line| !line.contains("CERTIFICATE")).collect();
    let set = json!({"keys": [{"kty": "EC", "use": "x509-svid", "x5c": [x5c]}]});
    for (bundle, exit) in [(json!({ domain: set }), Exit::Ok), (json!({ "other.example": set }), Exit::Findings)] {
        let (ended, out, err) = verify(folder.path(), &bytes, Some(&bundle.to_string()), &["--spiffe-id", &id]);
        assert_eq!(ended, exit, "{bundle}: {out}{err}");
    }
}

#[test]
fn what_was_changed_is_not_signed_and_what_nobody_vouches_for_has_no_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (mut card, bundle) = known();
    card["name"] = json!("Another Agent");
    let (exit, out, _) = verify(folder.path(), card.to_string().as_bytes(), Some(&bundle), &["-o", "json"]);
    assert_eq!(exit, Exit::Findings);
    let failed: Vec<_> =
        states(&out).into_iter().filter(|(_, state)| state == "failed").map(|(name, _)| name).collect();
    assert_eq!(failed, ["signature"], "{out}");

    let (card, _) = known();
    let (exit, out, _) = verify(folder.path(), card.to_string().as_bytes(), None, &["-o", "json"]);
    assert_eq!(exit, Exit::Findings, "without a bundle nothing is verified");
    assert!(states(&out).iter().all(|(_, state)| state == "notJudged"), "{out}");
}

#[test]
fn input_that_is_no_card_or_no_bundle_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let (card, bundle) = known();
    for bytes in [&b""[..], b"{", b"[]", b"{\"name\":1,\"name\":2}", &vec![b'['; 2 << 20][..], b"\xff\xfe{\0}\0"] {
        let (exit, out, err) = verify(folder.path(), bytes, Some(&bundle), &[]);
        assert_eq!(exit, Exit::Findings, "{out}{err}");
        assert!(out.contains("signature  failed"), "{out}");
    }
    for bundle in ["", "no bundle", "{}", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        let (exit, out, err) = verify(folder.path(), card.to_string().as_bytes(), Some(bundle), &[]);
        assert_eq!((exit, out.as_str()), (Exit::Usage, ""), "{bundle:?}");
        assert!(err.contains("trust bundle"), "{err}");
    }
}

/// A card that two have signed, of whom the other's signature holds longer.
#[test]
fn one_of_several_signatures_is_enough_when_it_is_by_whom_was_asked_for() {
    let good = |entry, id: &str, until| Good {
        entry,
        identity: SpiffeId::read(id).unwrap(),
        profile: Profile::KagentiV2,
        algorithm: Algorithm::Es256,
        key_id: None,
        key_id_differs: false,
        leaf: String::new(),
        leaf_from: 0,
        leaf_until: until,
        authority: String::new(),
        authority_until: until,
        freshness: Freshness::Current,
        until,
        covered: std::sync::Arc::default(),
    };
    let mut signed = [good(0, "spiffe://a.example/ns/x/sa/y", 10), good(1, "spiffe://b.example/ns/x/sa/y", 20)];
    let wanted = |name: &str| Wanted { domain: Some(TrustDomain::configured(name).unwrap()), workload: None };
    for _ in 0..2 {
        for (name, entry) in [("a.example", Some(0)), ("b.example", Some(1)), ("c.example", None)] {
            assert_eq!(bound(&signed, &wanted(name)).map(|good| good.entry), entry, "{name}");
        }
        signed.reverse();
    }
}
