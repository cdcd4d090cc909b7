//! When a pair from somebody else's Secret is taken into use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;

use super::*;
use crate::domain::keys;
use crate::server::certs::authority::mint::SigningAuthority;
use crate::server::certs::authority::plan::{Authority as _, Lifetimes};
use crate::server::certs::metrics::CertificateMetrics;
use crate::server::certs::trust::Observed;
use crate::server::certs::trust_bundle::write_bundle;
use crate::server::testing::lines::Lines;
use crate::server::testing::server::Server;

const NOW: Millis = 1_795_000_000_000;
const SETTLE: Millis = 10_000;
/// The name under which the API server calls.
const HOST: &str = "drawbridge-webhook.kagenti-system.svc";

fn authority() -> SigningAuthority {
    SigningAuthority::found(&Lifetimes::default(), NOW).unwrap()
}

fn provided(authority: &SigningAuthority, roots: bool) -> Provided {
    let (pair, _) = authority.sign(&[HOST.to_owned()], &Lifetimes::default(), NOW).unwrap();
    Provided { pair, roots: if roots { vec![authority.certificate().clone()] } else { Vec::new() } }
}

fn trust(roots: &[Fingerprint]) -> Trust {
    let mut trust = Trust::default();
    let entries = vec![roots.iter().copied().collect()];
    trust.observe(&Observed { synced: true, entries, ..Observed::default() }, NOW - SETTLE);
    trust
}

#[test]
fn a_new_pair_waits_for_its_root_unless_there_is_nothing_better() {
    let (old, new) = (authority(), authority());
    let (served, renewed, rotated) = (provided(&old, true), provided(&old, true), provided(&new, true));
    let (nobody, everybody) = (trust(&[]), trust(&[new.root().fingerprint]));
    let switch = |served: Option<&Provided>, candidate: &Provided, trust: &Trust, now: Millis| {
        may_switch(served, candidate, (trust, SETTLE), &[HOST.to_owned()].into(), now).unwrap_or(false)
    };
    assert!(switch(None, &rotated, &nobody, NOW), "nothing is served yet");
    assert!(switch(Some(&served), &renewed, &nobody, NOW), "the same authority");
    assert!(!switch(Some(&served), &rotated, &nobody, NOW), "nobody trusts it yet");
    assert!(!switch(Some(&served), &rotated, &everybody, NOW - 1), "not for long enough");
    assert!(switch(Some(&served), &rotated, &everybody, NOW));
    assert!(switch(Some(&served), &rotated, &nobody, NOW + 8 * 86_400_000), "the old pair has expired");
    let day = 86_400_000;
    let (pair, _) = old.sign(&[HOST.to_owned()], &Lifetimes::default(), NOW + 3 * day).unwrap();
    let early = Provided { pair, roots: renewed.roots.clone() };
    assert!(!switch(Some(&served), &early, &nobody, NOW), "not valid yet");
    assert!(switch(Some(&served), &early, &nobody, NOW + 3 * day));
    assert!(
        !switch(None, &early, &nobody, NOW),
        "nobody accepts it, and a replica that still serves a good one is worth more"
    );
    assert!(switch(None, &early, &nobody, NOW + 3 * day));
    assert!(switch(Some(&served), &provided(&new, false), &nobody, NOW), "without ca.crt there is nothing to wait for");
}

#[test]
fn the_keys_of_the_secret_are_cert_managers() {
    let authority = authority();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let with = |entries: &[(&str, String)]| Secret {
        data: Some(
            entries
                .iter()
                .map(|(name, text)| ((*name).to_owned(), ByteString(text.clone().into_bytes())))
                .collect::<BTreeMap<_, _>>(),
        ),
        ..Secret::default()
    };
    let ca = write_bundle([authority.certificate()]);
    let good = [("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem()), ("ca.crt", ca)];
    let (read, _) = Provided::read(&with(&good)).unwrap();
    assert_eq!(read.fingerprints(), [authority.root().fingerprint]);
    let mut cut = good.clone();
    cut[2].1.insert_str(0, "-----BEGIN CERTIFICATE-----\nMIIB\n");
    let (read, damaged) = Provided::read(&with(&cut)).unwrap();
    assert_eq!(
        (read.fingerprints(), damaged.len()),
        (vec![authority.root().fingerprint], 1),
        "the authority behind it counts"
    );
    assert!(Provided::read(&with(&good[..2])).unwrap().0.roots.is_empty());
    assert!(matches!(Provided::read(&with(&good[1..])), Err(PairError::NoCertificate)));
    assert!(matches!(Provided::read(&with(&good[..1])), Err(PairError::KeyPem(_))));
    assert!(matches!(Provided::read(&Secret::default()), Err(PairError::KeyPem(_) | PairError::NoCertificate)));
}

fn config() -> CertManagerSecretConfig {
    CertManagerSecretConfig {
        namespace: "kagenti-system".to_owned(),
        name: "pair".to_owned(),
        service: keys::SERVICE_WEBHOOK.to_owned(),
        settle: 0,
    }
}

/// A certificate for `name`, valid between two days (year, month, day), and its key.
fn issued(name: &str, from: (i32, u8, u8), to: (i32, u8, u8)) -> (CertificateParams, KeyPair) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
    params.not_after = rcgen::date_time_ymd(to.0, to.1, to.2);
    (params, KeyPair::generate().unwrap())
}

/// A Secret with that certificate and `key`; without its authority, so that nothing waits for bundles.
fn holding(issued: &(CertificateParams, KeyPair), key: &KeyPair) -> (Secret, Fingerprint) {
    let leaf = issued.0.self_signed(&issued.1).unwrap();
    let entries = [("tls.crt", leaf.pem()), ("tls.key", key.serialize_pem())];
    let data = entries.map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())));
    (Secret { data: Some(data.into()), ..Secret::default() }, Fingerprint::of(leaf.der()))
}

/// NOW is 2026-11-18.
#[tokio::test]
async fn what_nobody_would_accept_is_not_served_and_takes_no_good_pairs_place() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let clock = Arc::new(AtomicI64::new(NOW));
    let reader = Arc::clone(&clock);
    let time = move || SystemTime::UNIX_EPOCH + Duration::from_millis(reader.load(Ordering::Relaxed).unsigned_abs());
    let context = Context::new(Arc::new(time), CertificateMetrics::default(), Arc::new(|_| {}));
    let resolver = Resolver::new();
    let client = Server::new("Secret").client();
    let (mut source, publisher) = CertManagerSecret::new(&client, config(), Arc::clone(&resolver), context);
    publisher.shows(Observed { synced: true, names: [HOST.to_owned()].into(), ..Observed::default() });
    let served = || resolver.served().borrow().as_ref().map(|served| served.fingerprint);
    let shows = |source: &mut CertManagerSecret, secret: &Secret| {
        source.see(Some(secret));
        source.turn();
        source.turn();
    };

    let good = issued(HOST, (2026, 11, 1), (2026, 12, 1));
    let early = issued(HOST, (2026, 11, 24), (2027, 1, 1));
    let expired = issued(HOST, (2026, 10, 1), (2026, 11, 17));
    let other = issued("drawbridge-webhook.elsewhere.svc", (2026, 11, 1), (2026, 12, 1));
    let bad = [
        (holding(&early, &early.1), "is not valid yet"),
        (holding(&expired, &expired.1), "has already expired"),
        (holding(&other, &other.1), "is not valid for drawbridge-webhook.kagenti-system.svc"),
        (holding(&good, &other.1), "belongs to another certificate"),
    ];
    let first = holding(&good, &good.1);
    let mut before = None;
    for (round, kept) in ["nothing is served, and a replica", "serving the last good one"].into_iter().enumerate() {
        for ((secret, _), says) in &bad {
            shows(&mut source, secret);
            assert_eq!(served(), before, "{says}");
            assert_eq!(lines.text().matches(says).count(), round + 1, "once: {}", lines.text());
        }
        assert_eq!(lines.text().matches(kept).count(), bad.len(), "{}", lines.text());
        shows(&mut source, &first.0);
        before = Some(first.1);
        assert_eq!(served(), before);
    }
    let (secret, leaf) = &bad[0].0;
    shows(&mut source, secret);
    clock.store(NOW + 7 * 86_400_000, Ordering::Relaxed);
    source.turn();
    assert_eq!(served(), Some(*leaf), "from its first moment on");
}

/// They may call by URL: until that has been read nothing is said of a certificate that is for no Service.
#[tokio::test]
async fn a_pair_is_judged_by_the_names_under_which_the_configurations_call() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_millis(NOW.unsigned_abs()));
    let context = Context::new(clock, CertificateMetrics::default(), Arc::new(|_| {}));
    let resolver = Resolver::new();
    let client = Server::new("Secret").client();
    let (mut source, publisher) = CertManagerSecret::new(&client, config(), Arc::clone(&resolver), context);
    let by_url = issued("webhook.example.com", (2026, 11, 1), (2026, 12, 1));
    source.see(Some(&holding(&by_url, &by_url.1).0));
    source.turn();
    assert!(!resolver.loaded() && !lines.text().contains("cannot be used"), "{}", lines.text());
    publisher.shows(Observed { synced: true, ..Observed::default() });
    source.turn();
    assert!(!resolver.loaded() && lines.text().contains("cannot be used"), "no entry calls by URL: {}", lines.text());
    publisher.shows(Observed { synced: true, names: ["webhook.example.com".to_owned()].into(), ..Observed::default() });
    source.turn();
    assert!(resolver.loaded());
}

#[tokio::test(start_paused = true)]
async fn without_an_authority_in_the_secret_others_keep_the_bundles_and_that_is_said_once() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let (server, resolver) = (Server::new("Secret"), Resolver::new());
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_millis(NOW.unsigned_abs()));
    let context = Context::new(clock, CertificateMetrics::default(), Arc::new(|_| {}));
    let (source, publisher) = CertManagerSecret::new(&server.client(), config(), Arc::clone(&resolver), context);
    let wanted = publisher.wanted().subscribe();
    assert_eq!(wanted.borrow().serving, None, "nothing is served yet");
    let running = tokio::spawn(source.run(Shutdown::new()));
    let mut served = resolver.served();
    for authority in [None, Some("not a certificate")] {
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = rcgen::CertificateParams::new(vec![HOST.to_owned()]).unwrap().self_signed(&key).unwrap();
        let mut data = json!({"tls.crt": STANDARD.encode(leaf.pem()), "tls.key": STANDARD.encode(key.serialize_pem())});
        if let Some(text) = authority {
            data["ca.crt"] = json!(STANDARD.encode(text));
        }
        server.put("pair", json!({"apiVersion": "v1", "kind": "Secret", "data": data}));
        let expected = Fingerprint::of(leaf.der());
        let taken = served.wait_for(|served| served.as_ref().is_some_and(|served| served.fingerprint == expected));
        drop(tokio::time::timeout(Duration::from_secs(120), taken).await.expect("it is served").unwrap());
        let serving = wanted.borrow().serving.clone();
        assert_eq!(serving, Some(Vec::new()), "served, and nobody here knows its authority: {authority:?}");
    }
    assert_eq!(lines.text().matches("no certificate in ca.crt").count(), 1, "{}", lines.text());
    running.abort();
}
