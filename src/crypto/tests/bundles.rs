//! Trust bundles: formats, fingerprints, age (cases 106 to 113 as far as they are no signed card).

use super::{Kat, NOW, bundle, domain, judge, loaded, words};
use crate::{BundleFault, BundleFormat, Policy, Trust, TrustBundle, limits, verify_bytes};

fn key_set(kat: &Kat, more: &str) -> String {
    format!(r#"{{"keys":[{{"use":"x509-svid","kty":"EC","x5c":["{}"]}}]{more}}}"#, kat.text("ca"))
}

#[test]
fn case_106_pem_and_case_107_spiffe_name_the_same_authority() {
    let kat = Kat::read();
    let (pem, set) = (kat.bundle(), bundle(&key_set(&kat, ""), None).unwrap());
    assert_eq!((pem.format(), set.format()), (BundleFormat::Pem, BundleFormat::Jwks));
    assert_eq!(pem.fingerprint(), set.fingerprint());
    assert_eq!(set.domains().collect::<Vec<_>>(), [&domain("example.org")]);
    assert_eq!((set.len(), set.is_empty(), set.skipped()), (1, false, 0));
}

#[test]
fn case_106_pem_blocks_that_are_no_certificate_are_counted() {
    let kat = Kat::read();
    let pem = |body: &str| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
    let text = pem("AAAA") + &pem(kat.text("ca")) + &pem(kat.text("leaf")) + "-----BEGIN CERTIFICATE-----\nAAAA";
    let read = bundle(&text, None).unwrap();
    assert_eq!((read.len(), read.skipped()), (1, 3));
}

/// A note of an editor that knows one language only.
#[test]
fn words_between_pem_blocks_may_be_in_any_encoding() {
    let kat = Kat::read();
    let pem = format!("-----BEGIN CERTIFICATE-----\r\n{}\r\n-----END CERTIFICATE-----\r\n", kat.text("ca"));
    for note in [&b"# D\xf6rte\n"[..], b"\xef\xbb\xbf", b"\xff\xfe\n", b""] {
        let text = [note, pem.as_bytes(), note].concat();
        assert_eq!(TrustBundle::read(&text, None), Ok(kat.bundle()), "{note:?}");
    }
    let fault = TrustBundle::read(b"{\"keys\": \xf6}", None).unwrap_err();
    assert_eq!(fault.as_str(), "invalid_json", "of JSON every byte counts");
}

#[test]
fn case_110_a_bundle_counts_until_its_maximum_age_from_when_it_was_last_readable() {
    let (kat, policy) = (Kat::read(), Policy::default());
    let bundle = kat.bundle();
    let at = |read_at| {
        let trust = Trust::Loaded { bundle: &bundle, read_at };
        words(&verify_bytes(kat.signed().to_string().as_bytes(), trust, &policy, NOW))
    };
    assert_eq!(at(NOW - policy.bundle_age), ["Verified"]);
    assert_eq!(at(NOW - policy.bundle_age - 1), ["TrustBundleStale"]);
}

#[test]
fn case_109_without_a_bundle_ever_loaded_nothing_is_said() {
    let verdict =
        verify_bytes(Kat::read().signed().to_string().as_bytes(), Trust::NeverLoaded, &Policy::default(), NOW);
    assert_eq!((words(&verdict), verdict.reason()), (vec!["Unknown".to_owned()], "TrustBundleUnavailable"));
}

#[test]
fn case_112_only_an_authority_changes_the_fingerprint() {
    let kat = Kat::read();
    let plain = bundle(&key_set(&kat, ""), None).unwrap();
    let sequence = bundle(&key_set(&kat, r#","spiffe_sequence":7,"spiffe_refresh_hint":9"#), None).unwrap();
    let twice = plain.clone().join(sequence.clone()).unwrap();
    assert_eq!(plain.fingerprint(), sequence.fingerprint());
    assert_eq!(plain.fingerprint(), twice.fingerprint());
    let elsewhere = bundle(&key_set(&kat, ""), Some("other.org")).unwrap();
    assert_ne!(plain.fingerprint(), elsewhere.fingerprint(), "whose authority it is counts, too");
}

#[test]
fn case_113_sources_are_joined_and_each_domain_keeps_its_own() {
    let kat = Kat::read();
    let foreign = bundle(&key_set(&kat, ""), Some("other.org")).unwrap();
    assert_eq!(words(&judge(&kat.signed(), &foreign)), ["AuthorityOfOtherDomain"]);
    let joined = foreign.join(kat.bundle()).unwrap();
    assert_eq!((joined.len(), joined.domains().count()), (2, 2));
    assert_eq!(words(&judge(&kat.signed(), &joined)), ["Verified"]);
}

#[test]
fn bundles_are_bounded() {
    let kat = Kat::read();
    let large = vec![b' '; limits::BUNDLE_BYTES + 1];
    assert_eq!(TrustBundle::read(&large, None), Err(BundleFault::TooLarge { bytes: large.len() }));
    let many = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".repeat(limits::AUTHORITIES + 1);
    assert_eq!(bundle(&many, None), Err(BundleFault::TooManyCertificates));
    let key = format!(r#"{{"use":"x509-svid","x5c":["{}"]}}"#, kat.text("ca"));
    let keys = vec![key; limits::AUTHORITIES + 1].join(",");
    assert_eq!(bundle(&format!(r#"{{"keys":[{keys}]}}"#), None), Err(BundleFault::TooManyCertificates));
    let maps: Vec<_> = (0..=limits::TRUST_DOMAINS).map(|at| format!(r#""td{at}":{{"keys":[]}}"#)).collect();
    assert_eq!(bundle(&format!("{{{}}}", maps.join(",")), None), Err(BundleFault::TooManyTrustDomains));
}

#[test]
fn every_fault_of_a_bundle_has_a_label() {
    let kat = Kat::read();
    for (text, label) in [
        ("", "empty_bundle"),
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        (r#"{"keys":[{"use":"x509-svid","x5c":["*"]}]}"#, "invalid_base64"),
        (r#"{"keys":[{"use":"x509-svid"}]}"#, "invalid_cert"),
        (r#"{"a b":{"keys":[]}}"#, "trust_domain_unknown"),
    ] {
        assert_eq!(bundle(text, None).unwrap_err().as_str(), label, "{text}");
    }
    let bundle = kat.bundle();
    assert!(matches!(loaded(&bundle), Trust::Loaded { .. }));
}
