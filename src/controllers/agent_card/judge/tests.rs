//! Cases of cards (docs/cases.md) about verification and binding, by number. Overridden: 117 (the AgentCard's own trust domain has to be one that the platform
//! names), 122 and 128 (trust and its label are somebody else's; what is said here is `Verified`), 156 (binding always counts).

use std::sync::atomic::AtomicI64;

use serde_json::{Value, json};

use super::*;
use crate::crypto::{Card, Signer, TrustBundle};

/// 15 January 2027.
const NOW: i64 = 1_800_000_000;
const DAY: i64 = 86_400;

/// The known answer test of the specification: signed by spiffe://example.org/ns/team1/sa/weather.
fn kat(member: &str) -> String {
    let kat: Value = serde_json::from_str(include_str!("../../../crypto/tests/vectors/kat.json")).unwrap();
    kat[member].as_str().unwrap().to_owned()
}

fn card(entries: &[Value]) -> Value {
    let mut card: Value = serde_json::from_str(&kat("card")).unwrap();
    card["signatures"] = entries.into();
    card
}

fn entry() -> Value {
    json!({"protected": kat("protected"), "signature": kat("signature")})
}

fn signed() -> Value {
    card(&[entry()])
}

fn authority() -> TrustBundle {
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", kat("ca"));
    TrustBundle::read(pem.as_bytes(), None).unwrap()
}

fn bundles(bundle: TrustBundle, read_at: i64) -> Bundles {
    Bundles::loaded(Arc::new(bundle), Arc::new(AtomicI64::new(read_at)))
}

/// A bundle that vouches for nobody here.
fn strangers() -> Bundles {
    bundles(TrustBundle::default(), NOW)
}

fn cards(audit: bool) -> Cards {
    Cards { audit, ..crate::config::schema::Platform::built_in().cards() }
}

fn runs_as(domain: &str, account: &str) -> RunsAs {
    RunsAs { trust_domain: domain.to_owned(), namespace: "team1".to_owned(), account: account.to_owned() }
}

/// What a test changes.
struct Trial {
    card: Value,
    bundles: Bundles,
    cards: Cards,
    trust_domain: &'static str,
    runs_as: Option<RunsAs>,
    binding: Option<Option<&'static str>>,
    shared_with: Vec<&'static str>,
    now: i64,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            card: signed(),
            bundles: bundles(authority(), NOW),
            cards: cards(false),
            trust_domain: "example.org",
            runs_as: Some(runs_as("example.org", "weather")),
            binding: Some(None),
            shared_with: Vec::new(),
            now: NOW,
        }
    }
}

impl Trial {
    fn judgement(&self) -> Judgement {
        let policy = self.cards.policy();
        let under = Under { bundles: &self.bundles, policy: &policy };
        let verdict = under.verdict(self.card.to_string().as_bytes(), self.now);
        let asked = Asked {
            cards: &self.cards,
            trust_domain: self.trust_domain,
            runs_as: self.runs_as.as_ref(),
            binding: self.binding,
            shared_with: &self.shared_with,
        };
        judge(&verdict, &self.bundles, &asked)
    }
}

fn is(said: &Said, status: Option<bool>, reason: Reason) {
    assert_eq!((said.status, said.reason), (status, reason), "{}", said.message);
    assert!(said.message.len() <= MESSAGE);
}

#[test]
fn case_093_a_good_signature_says_who_signed_and_by_which_profile() {
    let found = Trial::default().judgement();
    is(found.signature.as_ref().unwrap(), Some(true), Reason::SignatureValid);
    is(&found.verified, Some(true), Reason::SignatureVerified);
    assert_eq!((found.valid_signature, found.identity_match), (Some(true), Some(true)));
    assert_eq!(found.spiffe_id.as_deref(), Some("spiffe://example.org/ns/team1/sa/weather"));
    assert_eq!(found.key_id.as_deref(), Some("fd1f05edec59d946"));
    assert_eq!((found.profile, found.trusted_account.as_deref()), (Some(Profile::KagentiV2), Some("weather")));
    assert_eq!(
        found.publish,
        Publish::Covered(kat("canonical").into_bytes().into()),
        "S-08: nothing that is not signed"
    );
    assert!(!found.refused && found.warnings.is_empty());
}

/// The private key of RFC 7515, A.3, as PKCS#8: with it the known answer test is signed.
const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgjpsQnnGQmL+YBIffH1136cspYG6+0iY7X1fCE9+E9LKhRANCAAR/zc4ncPbEXUGDy+5v20t7WAczNXvp7xO6z248e9FURcfxRM0bvZt+hyzf7bnuufSzaV1uqQskrYpGIyiFiOWt";

/// What signs an agent's card makes one entry per profile, with one key: they tie in all but what they cover.
#[test]
fn the_order_of_entries_decides_neither_the_profile_nor_what_is_published() {
    let pem = |kind: &str, body: &str| format!("-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\n");
    let (key, chain) = (pem("PRIVATE KEY", KEY), pem("CERTIFICATE", &kat("leaf")));
    let signer = Signer::read(key.as_bytes(), chain.as_bytes()).unwrap();
    let mut document: Value = serde_json::from_str(&kat("card")).unwrap();
    document["defaultInputModes"] = json!(["", "text/plain"]);
    let made = signer.sign(&Card::read(document.to_string().as_bytes()).unwrap(), Profile::ALL).unwrap();
    assert_eq!(made.iter().map(|entry| entry.profile).collect::<Vec<_>>(), Profile::ALL);
    let judged = |profiles: &[Profile], order: &[usize]| {
        let of = |at: &usize| json!({"protected": made[*at].protected, "signature": made[*at].signature});
        let mut card = document.clone();
        card["signatures"] = order.iter().map(of).collect();
        let cards = Cards { profiles: profiles.to_vec(), ..cards(false) };
        Trial { card, cards, ..Trial::default() }.judgement()
    };
    let (v2, v1, sdk) = (Profile::KagentiV2, Profile::KagentiV1, Profile::A2aSdk1);
    for (profiles, first) in [([v2, v1, sdk], 0), ([v1, v2, sdk], 1), ([sdk, v1, v2], 2)] {
        let alone = judged(&profiles, &[first]);
        is(&alone.verified, Some(true), Reason::SignatureVerified);
        assert_eq!(alone.profile, Some(profiles[0]));
        assert!(matches!(alone.publish, Publish::Covered(_)), "{alone:?}");
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            assert_eq!(judged(&profiles, &order), alone, "{profiles:?} {order:?}");
        }
    }
}

#[test]
fn case_094_without_signatures_or_chains_a_card_is_not_valid_and_not_published() {
    for entries in [vec![], vec![json!({"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": kat("signature")})]] {
        let found = Trial { card: card(&entries), ..Trial::default() }.judgement();
        is(found.signature.as_ref().unwrap(), Some(false), Reason::SignatureInvalid);
        is(&found.verified, Some(false), Reason::SignatureInvalid);
        is(found.bound.as_ref().unwrap(), Some(false), Reason::NotBound);
        assert_eq!((found.valid_signature, found.refused, found.publish), (Some(false), true, Publish::Nothing));
        assert!(found.spiffe_id.is_none() && found.trusted_account.is_none() && !found.awaits_authority);
    }
}

#[test]
fn case_095_an_authority_that_no_bundle_has_yet_is_told_apart_from_what_is_wrong() {
    let unknown = Trial { bundles: strangers(), ..Trial::default() };
    let found = unknown.judgement();
    is(&found.verified, Some(false), Reason::SignatureInvalid);
    assert!(found.awaits_authority, "the signature is good, and SPIRE may publish later");
    let mut tampered = signed();
    tampered["description"] = "Evil".into();
    let found = Trial { card: tampered, ..unknown }.judgement();
    assert!(!found.awaits_authority && found.publish == Publish::Nothing, "case 64");
}

#[test]
fn case_102_an_expired_svid_counts_within_the_tolerance_and_the_end_is_named() {
    let end = 2_366_841_600;
    let fresh = |now| Trial { now, bundles: bundles(authority(), now), ..Trial::default() };
    let found = fresh(end - 10).judgement();
    assert_eq!((found.freshness, found.again), (Some(Freshness::Current), Some(end + 1)));
    let found = fresh(end + 1).judgement();
    is(&found.verified, Some(true), Reason::SignatureVerified);
    assert_eq!((found.freshness, found.again), (Some(Freshness::Expired { since: end }), Some(end + DAY + 1)));
    assert!(found.signature.unwrap().message.contains("has expired"));
    let found = fresh(end + DAY + 1).judgement();
    is(&found.verified, Some(false), Reason::SignatureInvalid);
    let strict = Trial { cards: Cards { tolerance: std::time::Duration::ZERO, ..cards(false) }, ..fresh(end + 1) };
    is(&strict.judgement().verified, Some(false), Reason::SignatureInvalid);
}

#[test]
fn case_109_without_a_bundle_ever_nothing_is_said_and_nothing_is_verified() {
    for audit in [false, true] {
        let found = Trial { bundles: Bundles::never_loaded(), cards: cards(audit), ..Trial::default() }.judgement();
        is(found.signature.as_ref().unwrap(), None, Reason::TrustBundleUnavailable);
        is(found.bound.as_ref().unwrap(), None, Reason::TrustBundleUnavailable);
        is(&found.verified, None, Reason::TrustBundleUnavailable);
        assert!(found.valid_signature.is_none() && !found.refused && found.trusted_account.is_none());
        assert_eq!(found.publish == Publish::Nothing, !audit, "no claim is made of what was served");
    }
}

#[test]
fn case_110_the_last_good_bundle_counts_until_it_is_too_old() {
    let read = |read_at| Trial { bundles: bundles(authority(), read_at), ..Trial::default() }.judgement();
    is(&read(NOW - DAY).verified, Some(true), Reason::SignatureVerified);
    let stale = read(NOW - DAY - 1);
    is(&stale.verified, Some(false), Reason::SignatureInvalid);
    assert!(stale.verified.message.contains("last readable") && !stale.awaits_authority, "{}", stale.verified.message);
}

#[test]
fn case_111_a_replaced_authority_counts_no_longer() {
    is(&Trial { bundles: strangers(), ..Trial::default() }.judgement().verified, Some(false), Reason::SignatureInvalid);
}

#[test]
fn case_114_audit_mode_claims_nothing_and_refuses_nothing() {
    let mut tampered = signed();
    tampered["name"] = "Evil".into();
    let found = Trial { card: tampered, cards: cards(true), ..Trial::default() }.judgement();
    is(found.signature.as_ref().unwrap(), Some(false), Reason::SignatureInvalidAudit);
    is(&found.verified, Some(false), Reason::SignatureInvalidAudit);
    assert!(found.verified.message.ends_with("(audit mode: allowed)"), "{}", found.verified.message);
    assert_eq!((found.valid_signature, found.identity_match), (Some(false), Some(false)));
    assert!(!found.refused && found.trusted_account.is_none() && found.publish == Publish::AsServed);
    let good = Trial { cards: cards(true), ..Trial::default() }.judgement();
    is(&good.verified, Some(true), Reason::SignatureVerified);
}

#[test]
fn cases_115_and_119_without_verification_there_is_no_word_of_signatures_and_nobody_is_bound() {
    let found = Trial { bundles: Bundles::default(), ..Trial::default() }.judgement();
    assert!(found.signature.is_none() && found.valid_signature.is_none() && !found.refused);
    is(found.bound.as_ref().unwrap(), Some(false), Reason::NotBound);
    is(&found.verified, Some(false), Reason::NotVerified);
    assert!(found.verified.message.contains("cards.trustBundle"), "{}", found.verified.message);
    assert_eq!(found.publish, Publish::AsServed);
}

#[test]
fn cases_116_to_121_who_signed_is_held_against_whom_the_workload_runs_as() {
    let bound = |trial: Trial| {
        let found = trial.judgement();
        assert_eq!(found.valid_signature, Some(true));
        let bound = found.bound.clone().unwrap();
        assert_eq!(found.identity_match, bound.status);
        assert_eq!(found.verified.status, bound.status);
        assert_eq!(found.trusted_account.is_some(), bound.status == Some(true));
        bound
    };
    is(&bound(Trial::default()), Some(true), Reason::Bound);
    // 117: another trust domain, whether the platform lists it or not.
    for trust_domains in [vec![], vec![TrustDomain::read("other.org").unwrap()]] {
        let cards = Cards { trust_domains, ..cards(false) };
        let said = bound(Trial { cards, binding: Some(Some("other.org")), ..Trial::default() });
        is(&said, Some(false), Reason::NotBound);
        assert!(said.message.contains("other.org"), "case 117: {}", said.message);
    }
    // Capitals, as the definition allows them.
    is(&bound(Trial { binding: Some(Some("Example.ORG")), ..Trial::default() }), Some(true), Reason::Bound);
    // 118 and 121: a name that begins alike, and another workload of the trust domain.
    for (domain, account) in [("example.org.evil", "weather"), ("example.org", "weathers"), ("example.org", "default")]
    {
        let runs_as = Some(runs_as(domain, account));
        let said = bound(Trial { runs_as: runs_as.clone(), ..Trial::default() });
        is(&said, Some(false), Reason::NotBound);
        let both = said.message.contains("sa/weather ") || said.message.contains(domain);
        assert!(both, "cases 118 and 121: {}", said.message);
    }
    // 120: the workload's trust domain is not one that the platform names.
    let said = bound(Trial { trust_domain: "cluster.local", ..Trial::default() });
    is(&said, Some(false), Reason::NotBound);
    let listed = Cards { trust_domains: vec![TrustDomain::read("example.org").unwrap()], ..cards(false) };
    is(&bound(Trial { trust_domain: "cluster.local", cards: listed, ..Trial::default() }), Some(true), Reason::Bound);
    // Nobody knows yet as whom it runs.
    is(&bound(Trial { runs_as: None, ..Trial::default() }), None, Reason::IdentityUnknown);
}

/// Else a card that a person makes would switch the check off, and any SVID of the trust domain would do.
#[test]
fn case_128_a_card_without_a_binding_is_verified_only_when_the_identity_is_the_workloads() {
    let found = Trial { binding: None, ..Trial::default() }.judgement();
    assert!(found.bound.is_none(), "the condition follows the field");
    is(&found.verified, Some(true), Reason::SignatureVerified);
    let found = Trial { binding: None, runs_as: Some(runs_as("example.org", "other")), ..Trial::default() }.judgement();
    is(&found.verified, Some(false), Reason::NotBound);
    assert!(found.bound.is_none() && found.trusted_account.is_none());
    assert_eq!(found.valid_signature, Some(true));
}

#[test]
fn workloads_that_share_an_account_are_told_and_named_within_bounds() {
    let found = Trial { shared_with: vec!["a", "b", "c", "d", "e"], ..Trial::default() }.judgement();
    let [said] = found.warnings.as_slice() else { panic!("{:?}", found.warnings) };
    is(said, None, Reason::SharedServiceAccount);
    assert!(said.message.contains("a, b, c") && said.message.contains("and 2 more"), "{}", said.message);
    is(&found.verified, Some(true), Reason::SignatureVerified);
}

#[test]
fn a_verdict_is_kept_for_the_same_bytes_under_the_same_authorities_as_long_as_it_holds() {
    let (bundles, policy, name) = (bundles(authority(), NOW), cards(false).policy(), Arc::from("team1/weather"));
    let text = signed().to_string();
    let (one, other) = ([1; 32], [2; 32]);
    let mut verdicts = Verdicts::default();
    let under = Under { bundles: &bundles, policy: &policy };
    let found = Arc::new(under.verdict(text.as_bytes(), NOW));
    assert!(verdicts.known(&name, one, under, NOW).is_none());
    verdicts.learn(&name, one, under, (found.clone(), NOW));
    let known = |verdicts: &Verdicts, document, now| verdicts.known(&name, document, under, now).is_some();
    assert!(known(&verdicts, one, NOW) && known(&verdicts, one, NOW + HOLDS));
    assert!(
        !known(&verdicts, one, NOW + HOLDS + 1) && !known(&verdicts, one, NOW - 1) && !known(&verdicts, other, NOW)
    );
    assert!(verdicts.known("team1/other", one, under, NOW).is_none());
    assert!(verdicts.known(&name, one, Under { bundles: &strangers(), ..under }, NOW).is_none(), "other authorities");
    let strict = Policy { tolerance: 0, ..policy.clone() };
    assert!(verdicts.known(&name, one, Under { policy: &strict, ..under }, NOW).is_none(), "another policy");
    // Too old a bundle is told whatever is known, and without asking anybody.
    let late = verdicts.known(&name, one, under, NOW + DAY + 1).unwrap();
    assert!(matches!(*late, Verdict::NotVerified(NotVerified::TrustBundleStale { .. })));
    // As many as there may be replicas, and no more.
    for document in 0..100 {
        verdicts.learn(&name, [document; 32], under, (found.clone(), NOW));
    }
    assert!(known(&verdicts, [99; 32], NOW) && !known(&verdicts, one, NOW));
    assert_eq!((verdicts.len(), verdicts.0[&name].len()), (1, KEPT));
    verdicts.forget(&name);
    assert!(verdicts.is_empty());
}

/// Cards come and go, and one may have as many signatures as are looked at: what is kept is counted, so that it can be bounded.
#[test]
fn what_is_kept_of_all_cards_is_counted() {
    let (bundles, policy) = (bundles(authority(), NOW), cards(false).policy());
    let under = Under { bundles: &bundles, policy: &policy };
    let verdict = |document: &Value| Arc::new(under.verdict(document.to_string().as_bytes(), NOW));
    let (signed, twice, none) = (verdict(&signed()), verdict(&card(&[entry(), entry()])), verdict(&card(&[])));
    let (one, other): (Arc<str>, Arc<str>) = (Arc::from("team1/weather"), Arc::from("team1/other"));
    let mut verdicts = Verdicts::default();
    for (name, document, verdict, wanted) in
        [(&one, 1, &signed, 2), (&one, 1, &signed, 2), (&one, 2, &twice, 5), (&other, 1, &none, 6), (&one, 2, &none, 4)]
    {
        verdicts.learn(name, [document; 32], under, (verdict.clone(), NOW));
        assert_eq!(verdicts.signatures(), wanted);
    }
    for document in 0..100 {
        verdicts.learn(&one, [document; 32], under, (twice.clone(), NOW));
    }
    assert_eq!(verdicts.signatures(), KEPT * 3 + 1);
    for (name, wanted) in [(&one, 1), (&one, 1), (&other, 0)] {
        verdicts.forget(name);
        assert_eq!(verdicts.signatures(), wanted);
    }
}

#[test]
fn a_verdict_is_not_kept_beyond_the_end_of_its_leaf() {
    let end = 2_366_841_600;
    let (policy, name, document) = (cards(false).policy(), Arc::from("team1/weather"), [1; 32]);
    let bundles = bundles(authority(), end);
    let mut verdicts = Verdicts::default();
    let under = Under { bundles: &bundles, policy: &policy };
    let found = Arc::new(under.verdict(signed().to_string().as_bytes(), end - 10));
    verdicts.learn(&name, document, under, (found, end - 10));
    assert!(verdicts.known(&name, document, under, end).is_some());
    assert!(verdicts.known(&name, document, under, end + 1).is_none(), "it has to say that the SVID has expired");
}

/// A bundle that is gone is nobody's reason to forget, and one that was never there is no verdict to keep.
#[test]
fn what_cannot_be_said_is_not_kept() {
    let (bundles, policy, name) = (Bundles::never_loaded(), cards(false).policy(), Arc::from("team1/weather"));
    let (under, mut verdicts) = (Under { bundles: &bundles, policy: &policy }, Verdicts::default());
    verdicts.learn(&name, [1; 32], under, (Arc::new(Verdict::Unknown), NOW));
    assert!(verdicts.is_empty() && verdicts.known(&name, [1; 32], under, NOW).is_none());
}

/// Members that hold what was sent say it escaped and short.
#[test]
fn what_a_tenant_wrote_stands_in_no_message_as_it_was() {
    let mut hostile = signed();
    hostile["signatures"][0]["protected"] = "\u{1b}[2J\u{202e}canary".into();
    hostile["\u{1b}]0;canary"] = "canary".into();
    for audit in [false, true] {
        let found = Trial { card: hostile.clone(), cards: cards(audit), ..Trial::default() }.judgement();
        let binding = Trial { binding: Some(Some("\u{1b}[2J.canary")), ..Trial::default() }.judgement();
        for said in [&found.verified, &binding.verified] {
            assert!(!said.message.chars().any(char::is_control), "{:?}", said.message);
        }
        assert!(!found.verified.message.contains("canary"), "{}", found.verified.message);
    }
}
