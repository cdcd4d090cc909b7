//! Rules that no numbered case holds: several good signatures, what a refusal says, what it means for a trusted agent.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::{Kat, NOW, forge, judge, loaded, reasons, words};
use crate::{Algorithm, Class, EntryReason, NotVerified, Policy, Profile, SpiffeId, Verdict, limits, verify_bytes};

#[test]
fn only_a_good_signature_without_an_authority_awaits_one() {
    let kat = Kat::read();
    let other = super::bundle(&stranger(), Some("example.org")).unwrap();
    let Verdict::NotVerified(unknown) = judge(&kat.signed(), &other) else { panic!("verified") };
    assert!(unknown.awaits_authority(), "{unknown}");
    let mut tampered = kat.signed();
    tampered["name"] = "Evil".into();
    let Verdict::NotVerified(wrong) = judge(&tampered, &other) else { panic!("verified") };
    assert!(!wrong.awaits_authority() && !NotVerified::NoSignatures.awaits_authority(), "{wrong}");
}

/// An authority that signed nothing here.
fn stranger() -> String {
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem()
}

#[test]
fn among_good_signatures_the_wanted_identity_goes_first() {
    let kat = Kat::read();
    let Verdict::Verified(mut verified) = judge(&kat.signed(), &kat.bundle()) else { panic!("not verified") };
    let mut other = verified.good[0].clone();
    other.identity = SpiffeId::read("spiffe://example.org/other").unwrap();
    other.until += 1;
    let (own, other_id) = (verified.good[0].identity.clone(), other.identity.clone());
    verified.good.push(other);
    for _ in 0..2 {
        assert_eq!(verified.best(None).unwrap().identity, other_id, "it holds longer");
        assert_eq!(verified.best(Some(&own)).unwrap().identity, own);
        verified.good.reverse();
    }
}

/// Every order of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for next in 0..count {
        let with = |order: &Vec<usize>, at: usize| [&order[..at], &[next], &order[at..]].concat();
        all = all.iter().flat_map(|order| (0..=order.len()).map(move |at| with(order, at))).collect();
    }
    all
}

/// A signer makes one entry per profile: they tie in all but the profile, and what is published with one is not what is with another.
#[test]
fn of_signatures_that_hold_as_long_the_one_whose_profile_is_tried_first_counts_in_any_order() {
    let (v2, v1, sdk) = (Profile::KagentiV2, Profile::KagentiV1, Profile::A2aSdk1);
    let root = forge::authority("root", None, |_| {});
    let trusted = super::bundle(&root.pem(), Some("example.org")).unwrap();
    let document = serde_json::json!(
        {"name": "Q & A", "version": "1", "url": "http://w.example", "defaultInputModes": ["", "text"]}
    );
    let (one, other) = (forge::svid(&root, |_| {}), forge::svid(&root, |_| {}));
    let by = |who: &forge::Party, profile: Profile| who.signs(document.clone(), &[], profile)["signatures"][0].clone();
    let verdict = |entries: Vec<serde_json::Value>, policy: &Policy| {
        let mut signed = document.clone();
        signed["signatures"] = entries.into();
        verify_bytes(signed.to_string().as_bytes(), loaded(&trusted), policy, NOW)
    };
    let entries = [by(&one, v2), by(&one, v1), by(&one, sdk), by(&other, sdk)];
    for profiles in [[v2, v1, sdk], [v1, sdk, v2], [sdk, v2, v1]] {
        let policy = Policy { profiles: profiles.to_vec(), ..Policy::default() };
        let covered = super::card(&document).canonical(profiles[0]).unwrap();
        let mut leaves = std::collections::BTreeSet::new();
        for order in orders(entries.len()) {
            let found = verdict(order.iter().map(|at| entries[*at].clone()).collect(), &policy);
            let verified = found.verified().unwrap();
            assert_eq!(verified.good().len(), entries.len());
            let best = verified.best(None).unwrap();
            assert_eq!(verified.best(Some(&best.identity)), Some(best));
            assert_eq!((best.profile, &*best.covered), (profiles[0], &*covered), "{order:?}");
            leaves.insert(best.leaf.clone());
        }
        assert_eq!(leaves.len(), 1, "of two who signed under one profile always the same: {profiles:?}");
    }
    // The profile decides only where both hold as long.
    let brief = by(&forge::svid(&root, |params| forge::valid(params, NOW - 60, NOW + 60)), v2);
    let strict = Policy { tolerance: 0, ..Policy::default() };
    for entries in [[brief.clone(), entries[2].clone()], [entries[2].clone(), brief]] {
        let found = verdict(entries.to_vec(), &strict);
        assert_eq!(found.verified().unwrap().best(None).unwrap().profile, sdk);
    }
}

#[test]
fn the_verdict_names_the_end_to_the_second() {
    let kat = Kat::read();
    let bundle = kat.bundle();
    let bytes = kat.signed().to_string();
    for tolerance in [0, 1, 86_400, i64::MAX] {
        let policy = Policy { tolerance, bundle_age: i64::MAX, ..Policy::default() };
        let at = |now| verify_bytes(bytes.as_bytes(), loaded(&bundle), &policy, now);
        let until = at(NOW).verified().unwrap().best(None).unwrap().until;
        assert!(at(until).verified().is_some(), "{tolerance}");
        assert!(at(until.saturating_add(1)).verified().is_none(), "{tolerance}");
    }
    for now in [i64::MIN, 0, i64::MAX] {
        assert!(verify_bytes(bytes.as_bytes(), loaded(&bundle), &Policy::default(), now).verified().is_none());
    }
}

#[test]
fn only_the_profiles_of_the_policy_are_tried() {
    let kat = Kat::read();
    let bundle = kat.bundle();
    let with = |profiles: &[Profile]| {
        let policy = Policy { profiles: profiles.to_vec(), ..Policy::default() };
        words(&verify_bytes(kat.signed().to_string().as_bytes(), loaded(&bundle), &policy, NOW))
    };
    assert_eq!(with(&[Profile::KagentiV1]), ["Verified"]);
    assert_eq!(with(&[Profile::A2aSdk1]), ["SignatureWrong"]);
    assert_eq!(with(&[]), ["NoCanonicalForm"]);
    let mut typed = kat.signed();
    typed["version"] = 1.into();
    let verdict = judge(&typed, &bundle);
    assert_eq!(reasons(&verdict), [EntryReason::NoCanonicalForm]);
    let Verdict::NotVerified(NotVerified::Entries { profiles, .. }) = verdict else { panic!("verified") };
    assert_eq!(profiles.len(), Profile::ALL.len(), "each profile says why");
}

#[test]
fn words_are_short_and_hold_nothing_that_was_sent() {
    let kat = Kat::read();
    let rubbish: Vec<_> =
        (0..limits::SIGNATURES).map(|_| serde_json::json!({"protected": "canary", "signature": "canary"})).collect();
    let Verdict::NotVerified(why) = judge(&kat.with(rubbish), &kat.bundle()) else { panic!("verified") };
    let text = why.to_string();
    assert!(text.contains("and 13 more") && text.len() < 600 && !text.contains("canary"), "{text}");
}

#[test]
fn names_are_found_again() {
    for profile in Profile::ALL {
        assert_eq!(Profile::named(profile.as_str()), Some(*profile));
    }
    for algorithm in Algorithm::ALL {
        assert_eq!(Algorithm::named(algorithm.as_str()), Some(*algorithm));
    }
    assert_eq!((Profile::named("a2a-1.0"), Algorithm::named("none")), (None, None));
    assert_eq!(EntryReason::AuthorityUnknown.class().as_str(), "chain_invalid");
    assert_eq!(EntryReason::SignatureWrong.class().as_str(), "jws_invalid");
    assert_eq!(EntryReason::SpiffeIdMissing.class().as_str(), "san_invalid");
    assert_eq!(EntryReason::HeaderMalformed.class().as_str(), "parse_error");
    assert_eq!(Class::Ok.as_str(), "ok");
}

/// Refused by size alone, before anything of it is checked.
#[test]
fn what_is_far_too_much_is_refused_before_it_is_looked_at() {
    let kat = Kat::read();
    let bundle = kat.bundle();
    let entry = |header: &str| {
        let protected = URL_SAFE_NO_PAD.encode(header);
        serde_json::json!({"protected": protected, "signature": kat.text("signature")})
    };
    let of = |entries: Vec<serde_json::Value>| words(&judge(&kat.with(entries), &bundle));
    assert_eq!(of(vec![serde_json::json!({}); 10_000]), ["TooManySignatures"]);
    let chain = |count: usize| format!("{{\"alg\":\"ES256\",\"x5c\":[{}]}}", vec!["\"AA==\""; count].join(","));
    assert_eq!(of(vec![entry(&chain(10_000))]), ["HeaderTooLarge"]);
    assert_eq!(of(vec![entry(&chain(5_000))]), ["ChainTooLong"]);
    // A key of 16,384 bits under a certificate that is good: nobody computes with it.
    let root = forge::authority("root", None, |_| {});
    let large = forge::svid_of_rsa(&root, 16_384);
    let x5c = STANDARD.encode(&large);
    let signature = URL_SAFE_NO_PAD.encode([7; 1024]);
    let header = format!("{{\"alg\":\"RS256\",\"x5c\":[\"{x5c}\"]}}");
    let entry = serde_json::json!({"protected": URL_SAFE_NO_PAD.encode(header), "signature": signature});
    let trusted = super::bundle(&root.pem(), Some("example.org")).unwrap();
    assert_eq!(words(&judge(&kat.with(vec![entry]), &trusted)), ["KeyNotAllowed"]);
}
