//! Cases 116 to 121, and SPIFFE IDs themselves.

use super::domain;
use crate::{NotBound, SpiffeFault, SpiffeId, TrustDomain, Wanted, bind};

fn id(text: &str) -> SpiffeId {
    SpiffeId::read(text).unwrap()
}

#[test]
fn cases_116_to_121_binding() {
    let weather = SpiffeId::of_service_account(&domain("example.org"), "team1", "weather").unwrap();
    let wanted = Wanted { domain: Some(domain("example.org")), workload: Some(weather.clone()) };
    let bound = bind(Some(&weather), &wanted);
    assert!(bound.is_bound() && bound.reason() == "Bound", "case 116");
    let because = |identity: Option<&SpiffeId>, wanted: &Wanted| match bind(identity, wanted) {
        crate::Binding::NotBound(why) => why,
        crate::Binding::Bound(id) => panic!("bound to {id}"),
    };
    let elsewhere = Wanted { domain: Some(domain("other.org")), ..wanted.clone() };
    let why = because(Some(&weather), &elsewhere);
    assert_eq!(why, NotBound::OtherTrustDomain { found: weather.clone(), wanted: domain("other.org") }, "case 117");
    let evil = id("spiffe://example.org.evil/ns/team1/sa/weather");
    assert!(matches!(because(Some(&evil), &wanted), NotBound::OtherTrustDomain { .. }), "case 118");
    assert_eq!(SpiffeId::read("spiffe://example.org/"), Err(SpiffeFault::Segment), "case 118");
    assert_eq!(because(None, &wanted), NotBound::NoIdentity, "case 119");
    let nowhere = because(Some(&weather), &Wanted::default());
    assert_eq!(nowhere, NotBound::NoTrustDomain, "case 120");
    assert!(nowhere.to_string().contains("spec.identityBinding.trustDomain"), "case 120");
    let other = id("spiffe://example.org/ns/other/sa/x");
    let why = because(Some(&other), &wanted);
    assert_eq!(why, NotBound::OtherWorkload { found: other.clone(), wanted: weather.clone() }, "case 121");
    assert!(why.to_string().contains(other.as_str()) && why.to_string().contains(weather.as_str()), "case 121");
    assert!(bind(Some(&other), &Wanted { workload: None, ..wanted }).is_bound(), "no workload is asked for");
}

#[test]
fn a_card_may_only_narrow_to_trust_domains_that_the_platform_lists() {
    let platform = domain("example.org");
    let allowed = [domain("b.org")];
    let of = |card| Wanted::domain(card, Some(&platform), &allowed);
    assert_eq!(of(None), Ok(Some(platform.clone())));
    assert_eq!(of(Some("")), Ok(Some(platform.clone())));
    assert_eq!(of(Some("Example.org")), Ok(Some(platform.clone())), "capitals are lowered");
    assert_eq!(of(Some("spiffe://b.org")), Ok(Some(domain("b.org"))));
    assert_eq!(of(Some("c.org")), Err(NotBound::TrustDomainNotAllowed { name: "c.org".into() }));
    assert_eq!(of(Some("\u{1b}")), Err(NotBound::TrustDomainNotAllowed { name: "\\u{1b}".into() }));
    assert_eq!(Wanted::domain(None, None, &allowed), Ok(None));
}

#[test]
fn case_100_spiffe_ids_are_read_strictly() {
    for good in ["spiffe://a/b", "spiffe://a-b.c_d.0/A-Z/a.b_c-0", "spiffe://1.2.3.4/x", "spiffe://a/..."] {
        assert_eq!(id(good).to_string(), good);
    }
    for (bad, fault) in [
        ("", SpiffeFault::Scheme),
        ("https://a/b", SpiffeFault::Scheme),
        ("Spiffe://a/b", SpiffeFault::Scheme),
        ("spiffe:/a/b", SpiffeFault::Scheme),
        (" spiffe://a/b", SpiffeFault::Scheme),
        ("spiffe://", SpiffeFault::TrustDomain),
        ("spiffe:///b", SpiffeFault::TrustDomain),
        ("spiffe://A/b", SpiffeFault::TrustDomain),
        ("spiffe://a:1/b", SpiffeFault::TrustDomain),
        ("spiffe://u@a/b", SpiffeFault::TrustDomain),
        ("spiffe://ä/b", SpiffeFault::TrustDomain),
        ("spiffe://a%62/b", SpiffeFault::TrustDomain),
        ("spiffe://[::1]/b", SpiffeFault::TrustDomain),
        ("spiffe://a?x=/b", SpiffeFault::TrustDomain),
        ("spiffe://a", SpiffeFault::NoPath),
        ("spiffe://a/", SpiffeFault::Segment),
        ("spiffe://a/b/", SpiffeFault::Segment),
        ("spiffe://a//b", SpiffeFault::Segment),
        ("spiffe://a/./b", SpiffeFault::Segment),
        ("spiffe://a/b/..", SpiffeFault::Segment),
        ("spiffe://a/%2e%2e", SpiffeFault::PathCharacter),
        ("spiffe://a/b?c", SpiffeFault::PathCharacter),
        ("spiffe://a/b#c", SpiffeFault::PathCharacter),
        ("spiffe://a/b c", SpiffeFault::PathCharacter),
        ("spiffe://a/é", SpiffeFault::PathCharacter),
        ("spiffe://a/b\0", SpiffeFault::PathCharacter),
    ] {
        assert_eq!(SpiffeId::read(bad), Err(fault), "{bad:?}");
    }
    assert_eq!(SpiffeId::read(&format!("spiffe://{}/b", "a".repeat(256))), Err(SpiffeFault::TooLong));
    assert!(SpiffeId::read(&format!("spiffe://{}/b", "a".repeat(255))).is_ok());
    assert_eq!(TrustDomain::of_uri("spiffe://example.org"), Ok(domain("example.org")));
}
