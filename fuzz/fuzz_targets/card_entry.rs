//! What stands inside of a signature: in a card it is base64, which a fuzzer does not look through. In: bytes, divided by `%%`: a protected header, a leaf in DER,
//! what issued it, an authority. Laws: nothing panics; what was not signed is not verified; an authority that is read is found again in the form that SPIRE
//! publishes, under the same fingerprint; words are short.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use drawbridge_crypto::{Policy, SpiffeId, Trust, TrustBundle, TrustDomain, Verdict, verify_bytes};
use libfuzzer_sys::fuzz_target;

const DIVIDER: &[u8] = b"%%";
/// 15 January 2027: the time of the first inputs.
const NOW: i64 = 1_800_000_000;
/// A signature of nobody, as long as one on P-256.
const SIGNATURE: [u8; 64] = [7; 64];

fuzz_target!(|data: &[u8]| {
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(DIVIDER.len()).position(|window| window == DIVIDER).filter(|_| parts.len() < 3) {
        parts.push(&rest[..at]);
        rest = &rest[at + DIVIDER.len()..];
    }
    parts.push(rest);
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let domain = TrustDomain::read("example.org").expect("it is a trust domain");
    if let Ok(text) = std::str::from_utf8(part(0))
        && let Ok(id) = SpiffeId::read(text)
    {
        assert_eq!(SpiffeId::read(id.as_str()).as_ref(), Ok(&id));
    }
    let (leaf, other, authority) = (STANDARD.encode(part(1)), STANDARD.encode(part(2)), STANDARD.encode(part(3)));
    let pem = format!("-----BEGIN CERTIFICATE-----\n{authority}\n-----END CERTIFICATE-----\n");
    let set = format!("{{\"keys\":[{{\"use\":\"x509-svid\",\"x5c\":[\"{authority}\"]}}]}}");
    let bundle = TrustBundle::read(pem.as_bytes(), Some(&domain));
    let same = TrustBundle::read(set.as_bytes(), Some(&domain));
    assert_eq!(bundle.as_ref().ok().map(TrustBundle::fingerprint), same.ok().map(|set| set.fingerprint()));
    let bundle = bundle.unwrap_or_default();
    let signature = URL_SAFE_NO_PAD.encode(SIGNATURE);
    for header in [
        part(0).to_vec(),
        format!("{{\"alg\":\"ES256\",\"x5c\":[\"{leaf}\",\"{other}\"]}}").into_bytes(),
        format!("{{\"alg\":\"ES256\",\"x5c\":[\"{leaf}\"]}}").into_bytes(),
    ] {
        let protected = URL_SAFE_NO_PAD.encode(header);
        let entry = format!("{{\"protected\":\"{protected}\",\"signature\":\"{signature}\"}}");
        let card = format!("{{\"name\":\"Weather Agent\",\"signatures\":[{entry}]}}");
        match verify_bytes(card.as_bytes(), Trust::Loaded { bundle: &bundle, read_at: NOW }, &Policy::default(), NOW) {
            Verdict::NotVerified(why) => assert!(why.to_string().len() < 4096 && !why.awaits_authority()),
            other => panic!("nobody signed it: {other:?}"),
        }
    }
});
