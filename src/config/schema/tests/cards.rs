//! Keys below `cards`.

use std::path::Path;
use std::time::Duration;

use super::{Platform, one, read, refused};
use crate::config::cards::{BundleConfigMap, Cards};
use crate::config::trust::{CardPeer, PeerWhom, VerifiedPeers};
use crate::crypto::{Profile, TrustDomain};
use crate::domain::trust::TrustLevel;

fn cards(text: &str) -> Cards {
    read(&format!("cards: {text}")).cards()
}

#[test]
fn every_key_of_cards_changes_what_its_row_says_and_nothing_else() {
    let domain = |name| TrustDomain::read(name).unwrap();
    let built_in = Platform::built_in().cards();
    assert!(!built_in.bundle.any() && built_in.audit && built_in.trust_domains.is_empty());
    let changed = |text: &str, change: &dyn Fn(&mut Cards)| {
        let mut wanted = built_in.clone();
        change(&mut wanted);
        // Signatures that are judged are audited, unless somebody says otherwise.
        if wanted.bundle.any() {
            wanted.trust.default = TrustLevel::Audit;
        }
        assert_ne!(wanted, built_in, "{text}");
        assert_eq!(cards(text), wanted, "{text}");
    };
    let at = |namespace: &str, key: &str| {
        let (namespace, key) = (namespace.to_owned(), key.to_owned());
        Some(BundleConfigMap { namespace, name: "b".to_owned(), key })
    };
    changed("{trustDomains: [a.org, b.org]}", &|cards| cards.trust_domains = vec![domain("a.org"), domain("b.org")]);
    changed("{trustBundle: {configMap: {name: b}}}", &|cards| {
        cards.bundle.config_map = at("spire-system", "bundle.spiffe");
    });
    changed("{trustBundle: {configMap: {name: b, namespace: n, key: bundle.crt}}}", &|cards| {
        cards.bundle.config_map = at("n", "bundle.crt");
    });
    changed("{trustBundle: {file: /run/bundle.pem}}", &|cards| cards.bundle.file = Some("/run/bundle.pem".into()));
    changed("{trustBundle: {trustDomain: a.org}}", &|cards| cards.bundle.trust_domain = Some(domain("a.org")));
    changed("{trustBundle: {maxAgeSeconds: 60}}", &|cards| cards.bundle.max_age = Duration::from_secs(60));
    changed("{profiles: [a2a-sdk-1.x]}", &|cards| cards.profiles = vec![Profile::A2aSdk1]);
    changed("{audit: false}", &|cards| cards.audit = false);
    changed("{expiredSvidSeconds: 0}", &|cards| cards.tolerance = Duration::ZERO);
    changed("{proactiveRestart: true}", &|cards| cards.restarts = true);
    changed("{restartGraceSeconds: 60}", &|cards| cards.restart_grace = Duration::from_secs(60));
    changed("{minimumPeriodSeconds: 30}", &|cards| cards.least_period = Duration::from_secs(30));
    changed("{trust: enforced}", &|cards| cards.trust.default = TrustLevel::Enforced);
    changed("{trustFloor: audit}", &|cards| cards.trust.floor = TrustLevel::Audit);
    changed("{verifiedPeers: all}", &|cards| cards.trust.verified_peers = VerifiedPeers::All);
    changed("{verifiedPeers: declared}", &|cards| cards.trust.verified_peers = VerifiedPeers::Declared);
    changed("{restrictiveDNS: true}", &|cards| cards.trust.dns = true);
    let gateway = CardPeer { whom: PeerWhom::Block("10.0.0.0/8".to_owned()), ports: vec![443] };
    changed("{ingressPeers: [{cidr: 10.0.0.0/8, ports: [443]}]}", &|cards| cards.trust.ingress = vec![gateway.clone()]);
    changed("{restrictiveEgress: [{cidr: 10.0.0.0/8, ports: [443]}]}", &|cards| {
        cards.trust.egress = vec![gateway.clone()]
    });
    assert_eq!(cards("{trust: 'off', trustBundle: {file: /b}}").trust.default, TrustLevel::Off);
    assert!(cards("{trustBundle: {file: /b}}").bundle.any());
    assert_eq!(cards("{trustBundle: {configMap: {namespace: n, key: k}}}"), built_in, "without a name there is none");
}

#[test]
fn case_58_periods_stay_within_their_bounds_whatever_a_card_asks_for() {
    let seconds = Duration::from_secs;
    let built_in = Platform::built_in().cards();
    for (wanted, period) in [(0, 5), (1, 5), (5, 5), (30, 30), (90_000, 86_400)] {
        assert_eq!(built_in.period(seconds(wanted)), seconds(period), "{wanted}");
    }
    assert_eq!(built_in.period(Duration::from_nanos(1)), seconds(5));
    assert_eq!(cards("{minimumPeriodSeconds: 60}").period(seconds(30)), seconds(60));
}

#[test]
fn the_policy_is_what_the_file_says() {
    let policy = cards("{profiles: [kagenti-v1], expiredSvidSeconds: 7, trustBundle: {maxAgeSeconds: 90}}").policy();
    assert_eq!((policy.profiles.as_slice(), policy.tolerance), (&[Profile::KagentiV1][..], 7));
    assert_eq!(policy.bundle_age, 90);
    assert_eq!(Platform::built_in().cards().policy(), crate::crypto::Policy::default(), "the defaults are one");
}

#[test]
fn faults_name_the_entry_and_what_to_do() {
    for (path, value, says) in [
        ("cards.trustDomains", "[a.org, 'spiffe://b.org']", "cards.trustDomains[1]"),
        ("cards.trustDomains", "[A.org]", "without spiffe://"),
        ("cards.trustBundle.configMap.name", "A_b", "not the name of a ConfigMap"),
        ("cards.trustBundle.configMap.namespace", "a.b", "not the name of a namespace"),
        ("cards.trustBundle.configMap.key", "'a/b'", "not a key of a ConfigMap"),
        ("cards.trustBundle.file", "bundle.pem", "a path from /"),
        ("cards.trustBundle.trustDomain", "a/b", "not a trust domain"),
        ("cards.trustBundle.maxAgeSeconds", "59", "60 to 2678400"),
        ("cards.profiles", "[kagenti-v3]", "did you mean kagenti-v"),
        ("cards.profiles", "[kagenti-v1, kagenti-v1]", "cards.profiles[1]"),
        ("cards.profiles", "[]", "no signature is good"),
        ("cards.audit", "maybe", "true or false"),
        ("cards.expiredSvidSeconds", "-1", "0 to 2678400"),
        ("cards.minimumPeriodSeconds", "4", "5 to 86400"),
        ("cards.ingressPeers", "[{namespace: a}, {namespace: a_b}]", "cards.ingressPeers[1].namespace: "),
        ("cards.ingressPeers", "[{namespace: a, podLabels: [x]}]", "cards.ingressPeers[0].podLabels: a mapping"),
        ("cards.ingressPeers", "[{namespace: a, podLabels: {x: 1}}]", "cards.ingressPeers[0].podLabels.x: a string"),
        ("cards.ingressPeers", "[{namespace: a, podLabels: {x: a b}}]", "[0].podLabels.x: x=a b is not a label"),
        ("cards.ingressPeers", "[{cidr: 10.0.0.0/8, podLabels: {}}]", "cards.ingressPeers[0].podLabels: goes with"),
        ("cards.restrictiveEgress", "[{cidr: 10.0.0.0/8, ports: [443, 0]}]", "cards.restrictiveEgress[0].ports[1]: 0"),
    ] {
        let message = refused(&one(path, value));
        assert!(message.contains(says) && message.contains(path), "{path}: {message}");
    }
    assert_eq!(cards("{trustBundle: {file: /a}}").bundle.file.as_deref(), Some(Path::new("/a")));
}

#[test]
fn agents_prove_who_they_are_only_where_that_is_said_and_the_socket_may_be_named_as_spiffe_does() {
    let proof = |text: &str| Platform::parse(text, "config.yaml").unwrap().cards().proof;
    assert_eq!(proof("cards: {proof: {socket: /a.sock}}"), None);
    let shipped = std::path::PathBuf::from("/spiffe-workload-api/spire-agent.sock");
    assert_eq!(proof("cards: {proof: {enabled: true}}"), Some(shipped));
    for named in ["/a/b.sock", "unix:///a/b.sock"] {
        assert_eq!(proof(&format!("cards: {{proof: {{enabled: true, socket: {named}}}}}")), Some("/a/b.sock".into()));
    }
    for wrong in ["b.sock", "tcp://1.2.3.4:1"] {
        assert!(
            Platform::parse(&format!("cards: {{proof: {{socket: '{wrong}'}}}}"), "config.yaml").is_err(),
            "{wrong}"
        );
    }
}
