//! What chains are worth, held against OpenSSL's answers to the same question (`vectors/openssl.json`): every disagreement is one of a list, with the rule that
//! explains it.

use std::collections::{BTreeMap, BTreeSet};

use super::json;

/// Where we say no and OpenSSL says nothing against the chain: our reason, and the rule.
const STRICTER: &[(&str, &str)] = &[
    ("LeafIsAuthority", "X.509-SVID 4.1 and 4.3: what signs data signs no certificates"),
    ("LeafKeyUsage", "X.509-SVID 4.3: digitalSignature"),
    ("SpiffeIdMissing", "X.509-SVID 2: a URI"),
    ("SpiffeIdAmbiguous", "X.509-SVID 2: exactly one URI"),
    ("SpiffeIdInvalid", "SPIFFE-ID 2"),
    ("AuthorityOfOtherDomain", "SPIFFE Trust Domain and Bundle 3: an authority is its own trust domain's"),
    ("ChainTooLong", "three certificates are looked at"),
    ("ChainMalformed", "nothing follows a certificate"),
    ("KeyNotAllowed", "RSA of 2048 to 8192 bits with an exponent from 65537, and three curves"),
    ("NameConstraint", "constraints that cannot be applied to the names refuse them: directory names, wildcards"),
    ("Empty", "an authority may sign certificates and has such a key; other uses are not x509-svid"),
    ("InvalidCertificate", "one key of a bundle is one certificate of an authority"),
    ("InvalidTrustDomain", "a map names trust domains"),
    ("TrustDomainUnknown", "a bundle that does not say whose it is is nobody's"),
];

/// Reasons that have nothing to do with the chain: it is not asked about, or only afterwards.
const OF_THE_SIGNATURE: &[&str] = &[
    "AlgorithmMissing",
    "AlgorithmNotAllowed",
    "CriticalHeader",
    "EntryMalformed",
    "HeaderMalformed",
    "HeaderOverlap",
    "HeaderTooLarge",
    "KeyMismatch",
    "SignatureMalformed",
    "SignatureWrong",
    "UnencodedPayload",
];

/// Where we say yes and OpenSSL says no: case, what it says, and the rule.
const LAXER: &[(&str, &str, &str)] = &[
    ("102 begins in 60 s", "certificate is not yet valid", "clocks may differ by 60 s"),
    ("102 valid to this second", "certificate has expired", "RFC 5280 4.1.2.5: the last second is within"),
    ("102 expired within the tolerance", "certificate has expired", "agents sign once, when they start"),
    ("102 expired, to the second within", "certificate has expired", "agents sign once, when they start"),
    ("102 intermediate gone with the leaf", "certificate has expired", "agents sign once, when they start"),
    (
        "113 eight of one name, and no key identifier",
        "certificate signature failure",
        "authorities of one name are tried one after another; OpenSSL takes the first",
    ),
];

#[test]
fn every_disagreement_with_openssl_is_explained_by_a_rule() {
    let cases = json(include_str!("vectors/chains.json"));
    let said = json(include_str!("vectors/openssl.json"));
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let ours: BTreeMap<String, String> = cases["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| (text(&case["name"]), text(&case["expected"][0])))
        .collect();
    let (mut unexplained, mut agreed, mut used) = (Vec::new(), [0, 0], BTreeSet::new());
    for case in said["cases"].as_array().unwrap() {
        let (name, says) = (text(&case["name"]), text(&case["says"]));
        let found = &ours[&name];
        let kind = found.split('(').next().unwrap();
        if OF_THE_SIGNATURE.contains(&kind) {
            continue;
        }
        let (yes, theirs) = (kind.starts_with("Verified"), says == "ok");
        let explained = match (yes, theirs) {
            (true, true) | (false, false) => {
                agreed[usize::from(yes)] += 1;
                continue;
            }
            (false, true) => STRICTER.iter().find(|(reason, _)| *reason == kind).map(|(reason, _)| *reason),
            (true, false) => LAXER.iter().find(|row| row.0 == name && row.1 == says).map(|row| row.0),
        };
        match explained {
            Some(row) => drop(used.insert(row)),
            None => unexplained.push(format!("{name}: {found} here, {says} there")),
        }
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    let rows: BTreeSet<&str> = STRICTER.iter().map(|row| row.0).chain(LAXER.iter().map(|row| row.0)).collect();
    assert_eq!(used, rows, "a row that explains nothing");
    assert!(agreed[0] >= 30 && agreed[1] >= 40, "{agreed:?}");
}
