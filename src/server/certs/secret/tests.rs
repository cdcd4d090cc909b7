//! When a pair from somebody else's Secret is taken into use.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
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
    let mut of_client = issued(HOST, (2026, 11, 1), (2026, 12, 1));
    of_client.0.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let bad = [
        (holding(&early, &early.1), "is not valid yet"),
        (holding(&expired, &expired.1), "has already expired"),
        (holding(&other, &other.1), "is not valid for drawbridge-webhook.kagenti-system.svc"),
        (holding(&good, &other.1), "belongs to another certificate"),
        (holding(&of_client, &of_client.1), "its extendedKeyUsage lacks serverAuth"),
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

type Signer = CertifiedIssuer<'static, KeyPair>;

/// Parameters of an authority of that name.
fn of_authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

fn signer(name: &str) -> Signer {
    CertifiedIssuer::self_signed(of_authority(name), KeyPair::generate().unwrap()).unwrap()
}

/// An authority of that name with an RSA key of 1024 bits, which nobody has.
fn of_short_key(name: &str) -> String {
    let mut info: Vec<u8> = vec![0x30, 0x81, 0x9f];
    info.extend([0x30, 0x0d, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0]);
    info.extend([3, 0x81, 0x8d, 0, 0x30, 0x81, 0x89, 2, 0x81, 0x81, 0]);
    info.extend([0xc1; 128]);
    info.extend([2, 3, 1, 0, 1]);
    let key = rcgen::SubjectPublicKeyInfo::from_der(&info).unwrap();
    of_authority(name).signed_by(&key, &signer("somebody")).unwrap().pem()
}

/// A Secret with a pair for the webhook: its certificate, `chain` behind it, and `authorities` as ca.crt.
fn holding_all(leaf: &rcgen::Certificate, key: &KeyPair, chain: &str, authorities: &str) -> Secret {
    let entries = [
        ("tls.crt", format!("{}{chain}", leaf.pem())),
        ("tls.key", key.serialize_pem()),
        ("ca.crt", authorities.to_owned()),
    ];
    let data = entries.map(|(name, text)| (name.to_owned(), ByteString(text.into_bytes())));
    Secret { data: Some(data.into()), ..Secret::default() }
}

/// The API server is told to trust `ca.crt`: with one that did not sign the pair it would refuse every call, and who is told to trust it trusts a
/// stranger.
#[tokio::test]
async fn a_pair_that_ca_crt_did_not_sign_is_told_and_neither_served_nor_is_that_published() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_millis(NOW.unsigned_abs()));
    let context = Context::new(clock, CertificateMetrics::default(), Arc::new(|_| {}));
    let resolver = Resolver::new();
    let client = Server::new("Secret").client();
    let (mut source, publisher) = CertManagerSecret::new(&client, config(), Arc::clone(&resolver), context);
    publisher.shows(Observed { synced: true, names: [HOST.to_owned()].into(), ..Observed::default() });
    let wanted = publisher.wanted().subscribe();
    let served = || resolver.served().borrow().as_ref().map(|served| served.fingerprint);
    let published = || wanted.borrow().roots.iter().map(|root| root.root.fingerprint).collect::<Vec<_>>();

    let (own, namesake, other) = (signer("own"), signer("own"), signer("other"));
    let middle = CertifiedIssuer::signed_by(of_authority("middle"), KeyPair::generate().unwrap(), &other).unwrap();
    let leaf = |signer: &Signer| {
        let (params, key) = issued(HOST, (2026, 11, 1), (2026, 12, 1));
        (params.signed_by(&key, signer).unwrap(), key)
    };
    let alone = |is_authority: bool| {
        let (mut params, key) = issued(HOST, (2026, 11, 1), (2026, 12, 1));
        params.is_ca = if is_authority { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
        (params.self_signed(&key).unwrap(), key)
    };
    let (by_own, by_middle, plain, authority) = (leaf(&own), leaf(&middle), alone(false), alone(true));
    let by_short = leaf(&signer("short"));
    let both = [&other, &own].map(|signer| signer.pem()).concat();
    let cut = "-----BEGIN CERTIFICATE-----\nMIIB\n";
    let table = [
        (&by_own, String::new(), other.pem(), false),
        (&by_own, String::new(), namesake.pem(), false),
        (&by_middle, String::new(), other.pem(), false),
        (&by_own, String::new(), format!("{cut}{}", other.pem()), false),
        (&by_own, String::new(), own.pem().replace('\n', "\r\n"), true),
        (&by_own, String::new(), other.pem(), false),
        (&by_middle, middle.pem(), other.pem(), true),
        (&by_middle, middle.pem(), own.pem(), false),
        (&by_own, String::new(), both, true),
        // Who trusts a certificate itself needs nobody else: Go takes it, whatever it may sign.
        (&plain, String::new(), plain.0.pem(), true),
        (&authority, String::new(), authority.0.pem(), true),
        (&by_own, String::new(), by_own.0.pem(), true),
        (&plain, String::new(), by_own.0.pem(), false),
        // What cannot be checked here is nothing to refuse.
        (&by_short, String::new(), of_short_key("short"), true),
    ];
    let mut refused = 0;
    for (step, ((leaf, key), chain, authorities, is_good)) in table.into_iter().enumerate() {
        let before = (served(), published());
        source.see(Some(&holding_all(leaf, key, &chain, &authorities)));
        source.turn();
        source.turn();
        if is_good {
            let roots: Vec<_> = read_bundle(authorities.as_bytes()).certificates;
            let roots: Vec<_> = roots.iter().map(|root| root.root.fingerprint).collect();
            assert_eq!((served(), published()), (Some(Fingerprint::of(leaf.der())), roots), "step {step}");
        } else {
            refused += 1;
            assert_eq!((served(), published()), before, "step {step}");
        }
        let text = lines.text();
        assert_eq!(text.matches("tls.crt is not signed by a certificate of ca.crt").count(), refused, "{text}");
    }
    assert_eq!(lines.text().matches("serving the last good one").count(), refused - 4, "{}", lines.text());
}

/// A label of the Secret changes, a list tells of it again: the pair is the same, and nothing is counted or said.
#[tokio::test]
async fn what_is_served_is_not_taken_into_use_again() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_millis(NOW.unsigned_abs()));
    let context = Context::new(clock, CertificateMetrics::default(), Arc::new(|_| {}));
    let resolver = Resolver::new();
    let client = Server::new("Secret").client();
    let (mut source, publisher) = CertManagerSecret::new(&client, config(), Arc::clone(&resolver), context);
    publisher.shows(Observed { synced: true, names: [HOST.to_owned()].into(), ..Observed::default() });
    let (one, other) = (issued(HOST, (2026, 11, 1), (2026, 12, 1)), issued(HOST, (2026, 11, 2), (2026, 12, 1)));
    let [(first, leaf), (second, _)] = [&one, &other].map(|issued| holding(issued, &issued.1));
    for (secret, times) in [(&first, 1), (&first, 1), (&second, 2), (&first, 3), (&first, 3)] {
        source.see(Some(secret));
        source.turn();
        assert_eq!(lines.text().matches("serving a new certificate").count(), times, "{}", lines.text());
    }
    assert_eq!(resolver.served().borrow().as_ref().map(|served| served.fingerprint), Some(leaf));
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
