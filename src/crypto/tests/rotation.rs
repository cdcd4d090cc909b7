//! 48 simulated hours of SPIRE: authorities rotate, SVIDs live an hour, expired authorities stay in the bundle.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};

use super::{NOW, bundle, card, words};
use crate::{Policy, Profile, Trust, verify};

const HOUR: i64 = 3600;
/// Life of an authority, and half of it: when the next one begins to sign.
const AUTHORITY: i64 = 12 * HOUR;

/// `second` as rcgen takes it.
fn at(params: &mut CertificateParams, from: i64, until: i64) {
    let day = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = day + std::time::Duration::from_secs(u64::try_from(from).unwrap());
    params.not_after = day + std::time::Duration::from_secs(u64::try_from(until).unwrap());
}

fn authority(from: i64) -> (String, Issuer<'static, KeyPair>, i64) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.subject_alt_names = vec![SanType::URI("spiffe://example.org".try_into().unwrap())];
    at(&mut params, from, from + AUTHORITY);
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key), from + AUTHORITY)
}

/// The card, signed by an SVID of `issuer` from `from` for an hour.
fn signed(issuer: &Issuer<'static, KeyPair>, from: i64, until: i64) -> serde_json::Value {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.subject_alt_names = vec![SanType::URI("spiffe://example.org/ns/team1/sa/weather".try_into().unwrap())];
    params.use_authority_key_identifier_extension = true;
    at(&mut params, from, until);
    let leaf = params.signed_by(&key, issuer).unwrap();
    let mut document = serde_json::json!({"name": "Weather Agent", "version": from.to_string()});
    let payload = card(&document).canonical(Profile::KagentiV2).unwrap();
    let header = serde_json::json!({"alg": "ES256", "x5c": [STANDARD.encode(leaf.der())]});
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    let input = format!("{protected}.{}", URL_SAFE_NO_PAD.encode(payload));
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.serialized_der()).unwrap();
    let signature = pair.sign(&SystemRandom::new(), input.as_bytes()).unwrap();
    document["signatures"] =
        serde_json::json!([{"protected": protected, "signature": URL_SAFE_NO_PAD.encode(signature)}]);
    document
}

#[test]
fn simulated_48_hours_no_agent_whose_signer_ran_loses_trust_and_expired_authorities_stop_counting() {
    let strict = Policy { tolerance: 0, ..Policy::default() };
    let lenient = Policy { tolerance: 24 * HOUR, ..Policy::default() };
    let mut authorities = vec![authority(NOW)];
    let mut cards = Vec::new();
    let (mut current, mut gone, mut tolerated) = (0, 0, 0);
    for tick in 0..96 {
        let now = NOW + tick * HOUR / 2;
        // The next authority is published well before it signs.
        if now >= authorities.last().unwrap().2 - AUTHORITY / 2 {
            authorities.push(authority(now));
        }
        let pems: Vec<&str> = authorities.iter().map(|(pem, ..)| pem.as_str()).collect();
        let bundle = bundle(&pems.concat(), None).unwrap();
        let signing = authorities.iter().find(|(_, _, until)| *until >= now + 2 * HOUR).unwrap();
        cards.push((card(&signed(&signing.1, now, now + HOUR)), now + HOUR, signing.2));
        let trust = Trust::Loaded { bundle: &bundle, read_at: now };
        // Half an hour later, just before the signer runs again, and for all that was signed before.
        for moment in [now, now + HOUR / 2 - 1] {
            // The newest always; of the older ones, every fifth, another one each time.
            let newest = cards.len() - 1;
            let looked_at = cards.iter().enumerate().filter(|(at, _)| *at == newest || (at + newest) % 5 == 0);
            for (_, (card, leaf_until, authority_until)) in looked_at {
                let wanted = |tolerance: i64| match moment {
                    _ if moment <= *leaf_until => "Verified",
                    _ if moment > leaf_until + tolerance => "Expired",
                    _ if moment > *authority_until => "AuthorityExpired",
                    _ => "VerifiedExpired",
                };
                for policy in [&strict, &lenient] {
                    let found = words(&verify(card, trust, policy, moment));
                    assert_eq!(found, [wanted(policy.tolerance)], "at {} for {}", moment - NOW, leaf_until - NOW);
                }
                current += usize::from(wanted(0) == "Verified");
                tolerated += usize::from(wanted(24 * HOUR) == "VerifiedExpired");
                gone += usize::from(wanted(24 * HOUR) == "AuthorityExpired");
            }
        }
    }
    assert!(current > 150 && tolerated > 150 && gone > 150, "{current} {tolerated} {gone}");
    assert!(authorities.len() >= 8);
}
