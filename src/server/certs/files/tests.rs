//! Real files, replaced as the kubelet and as careless people do it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::server::certs::metrics::CertificateMetrics;
use crate::server::certs::root::{Fingerprint, Root};
use crate::server::testing::lines::Lines;

/// A leaf and one intermediate.
struct Issued {
    chain: String,
    key: String,
    leaf: Fingerprint,
}

fn issue() -> Issued {
    let intermediate_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let intermediate = params.self_signed(&intermediate_key).unwrap();
    let issuer = Issuer::from_params(&params, &intermediate_key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    Issued {
        chain: format!("{}{}", leaf.pem(), intermediate.pem()),
        key: key.serialize_pem(),
        leaf: Fingerprint::of(leaf.der()),
    }
}

/// A mounted Secret: `tls.crt -> ..data/tls.crt`, `..data -> ..<generation>`.
struct Mount(TempDir);

impl Mount {
    fn new(first: &Issued) -> Mount {
        let mount = Mount(TempDir::new().unwrap());
        mount.swap("..1", first);
        for name in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(name), mount.0.path().join(name)).unwrap();
        }
        mount
    }

    /// What the kubelet does: a new folder, a new link beside the old one, and a rename over it.
    fn swap(&self, generation: &str, issued: &Issued) {
        let (root, folder) = (self.0.path(), self.0.path().join(generation));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("tls.crt"), &issued.chain).unwrap();
        fs::write(folder.join("tls.key"), &issued.key).unwrap();
        symlink(generation, root.join("..data_tmp")).unwrap();
        let old = fs::read_link(root.join("..data")).ok();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(root.join(old)).unwrap();
        }
    }
}

struct Running {
    resolver: Arc<Resolver>,
    registry: Registry,
    shutdown: Shutdown,
    task: JoinHandle<()>,
    said: Arc<Mutex<Vec<String>>>,
}

fn context(registry: &mut Registry, said: &Arc<Mutex<Vec<String>>>) -> Context {
    let said = Arc::clone(said);
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000));
    Context::new(
        clock,
        CertificateMetrics::register(registry),
        Arc::new(move |notice| said.lock().push(notice.to_string())),
    )
}

fn start(directory: &Path) -> Running {
    let (mut registry, said) = (Registry::default(), Arc::default());
    let (resolver, shutdown) = (Resolver::new(), Shutdown::new());
    let context = context(&mut registry, &said);
    let files = Files::open(directory, ("tls.crt", "tls.key"), resolver.clone(), context).unwrap();
    let task = tokio::spawn(files.run(shutdown.clone()));
    Running { resolver, registry, shutdown, task, said }
}

impl Running {
    /// Waits until this leaf is served; says how long it took.
    async fn serves(&self, leaf: Fingerprint) -> Duration {
        let started = Instant::now();
        let mut served = self.resolver.served();
        let there = served.wait_for(|served| served.as_ref().is_some_and(|served| served.fingerprint == leaf));
        drop(tokio::time::timeout(Duration::from_secs(5), there).await.expect("within five seconds").unwrap());
        started.elapsed()
    }

    fn failures(&self) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        let line = text.lines().find(|line| line.starts_with("certwatcher_read_certificate_errors_total")).unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    async fn failed(&self, times: u64) {
        let counted = async {
            while self.failures() < times {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), counted).await.expect("the failure is counted");
    }

    fn leaf(&self) -> Fingerprint {
        self.resolver.served().borrow().as_ref().unwrap().fingerprint
    }

    async fn end(self) {
        self.shutdown.advance(Phase::Closing);
        self.task.await.unwrap();
    }
}

#[tokio::test]
async fn c3_the_kubelets_symlink_swap_is_picked_up() {
    let (first, second, third) = (issue(), issue(), issue());
    let mount = Mount::new(&first);
    let running = start(mount.0.path());
    running.serves(first.leaf).await;
    mount.swap("..2", &second);
    assert!(running.serves(second.leaf).await < Duration::from_secs(5));
    mount.swap("..3", &third);
    running.serves(third.leaf).await;
    assert_eq!(running.failures(), 0);
    running.end().await;
}

#[tokio::test]
async fn c3_two_steps_half_files_and_missing_files_keep_the_last_good_pair() {
    let (first, second, third) = (issue(), issue(), issue());
    let folder = TempDir::new().unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    fs::write(&certificate, &first.chain).unwrap();
    fs::write(&key, &first.key).unwrap();
    let running = start(folder.path());

    fs::write(&certificate, &second.chain).unwrap();
    running.failed(1).await;
    assert_eq!(running.leaf(), first.leaf, "the new certificate does not go with the old key");
    fs::write(&key, &second.key).unwrap();
    running.serves(second.leaf).await;

    fs::write(&key, &third.key).unwrap();
    running.failed(2).await;
    fs::write(&certificate, &third.chain[..third.chain.len() - 40]).unwrap();
    running.failed(3).await;
    fs::remove_file(&certificate).unwrap();
    running.failed(4).await;
    fs::write(&certificate, "").unwrap();
    running.failed(5).await;
    assert_eq!(running.leaf(), second.leaf);
    fs::write(&certificate, &third.chain).unwrap();
    running.serves(third.leaf).await;
    assert_eq!(running.failures(), 5, "each bad content counts once");
    running.end().await;
}

#[test]
fn a_whole_chain_is_served() {
    let issued = issue();
    let mount = Mount::new(&issued);
    let resolver = Resolver::new();
    let context = context(&mut Registry::default(), &Arc::default());
    drop(Files::open(mount.0.path(), ("tls.crt", "tls.key"), resolver.clone(), context).unwrap());
    let pair = Pair::read(issued.chain.as_bytes(), issued.key.as_bytes()).unwrap();
    assert_eq!(pair.certified.cert.len(), 2);
    assert_eq!(resolver.served().borrow().as_ref().unwrap().fingerprint, issued.leaf);
}

#[test]
fn a_missing_or_bad_pair_is_an_error_at_start() {
    let (first, second) = (issue(), issue());
    let mount = Mount::new(&first);
    let open = |names: (&str, &str)| {
        let context = context(&mut Registry::default(), &Arc::default());
        Files::open(mount.0.path(), names, Resolver::new(), context).map(drop).unwrap_err().to_string()
    };
    assert!(open(("absent.crt", "tls.key")).contains("absent.crt cannot be read"));
    fs::write(mount.0.path().join("other.key"), &second.key).unwrap();
    let message = open(("tls.crt", "other.key"));
    assert!(message.contains("other.key") && message.contains("belongs to another certificate"), "{message}");
    assert!(open(("tls.key", "tls.key")).contains("no CERTIFICATE section"));
    assert!(open(("tls.crt", "tls.crt")).contains("the private key is not complete PEM"));
}

#[test]
fn half_written_content_between_two_readings_is_waited_for() {
    let (first, second) = (issue(), issue());
    let mount = Mount::new(&first);
    let resolver = Resolver::new();
    let context = context(&mut Registry::default(), &Arc::default());
    let mut files = Files::open(mount.0.path(), ("tls.crt", "tls.key"), resolver.clone(), context).unwrap();
    let reading =
        |chain: &str| Ok(Reading { certificate: chain.as_bytes().to_vec(), key: second.key.as_bytes().to_vec() });
    let end_of_leaf = second.chain.find("-----END CERTIFICATE-----\n").unwrap() + 26;
    files.take(reading(&second.chain[..end_of_leaf]), 0);
    files.take(reading(&second.chain), 0);
    assert_eq!(resolver.served().borrow().as_ref().unwrap().fingerprint, first.leaf, "not settled yet");
    files.take(reading(&second.chain), 0);
    assert_eq!(resolver.served().borrow().as_ref().unwrap().fingerprint, second.leaf);
}

#[tokio::test]
async fn c5_an_approaching_end_is_told() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    // The tests' clock stands at 2026-11-18.
    params.not_before = rcgen::date_time_ymd(2025, 11, 24);
    params.not_after = rcgen::date_time_ymd(2026, 11, 24);
    let chain = params.self_signed(&key).unwrap();
    let issued = Issued { chain: chain.pem(), key: key.serialize_pem(), leaf: Fingerprint::of(chain.der()) };
    let mount = Mount::new(&issued);
    let running = start(mount.0.path());
    let told = async {
        while running.said.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), told).await.expect("it is told");
    let said = running.said.lock().clone();
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("CertificateExpiring: "), "{said:?}");
    assert!(said[0].contains("expires in less than 7 days (2026-11-24T00:00:00Z)"), "{said:?}");
    running.end().await;
}

#[test]
fn a_pair_that_is_not_valid_yet_waits_while_the_served_one_is() {
    let first = issue();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2026, 12, 24);
    let early = params.self_signed(&key).unwrap();
    let (leaf, from) = (Fingerprint::of(early.der()), Root::read(early.der()).unwrap().not_before);
    let mount = Mount::new(&first);
    let resolver = Resolver::new();
    let mut registry = Registry::default();
    let context = context(&mut registry, &Arc::default());
    let mut files = Files::open(mount.0.path(), ("tls.crt", "tls.key"), resolver.clone(), context).unwrap();
    let reading = || Ok(Reading { certificate: early.pem().into_bytes(), key: key.serialize_pem().into_bytes() });
    let served = || resolver.served().borrow().as_ref().unwrap().fingerprint;
    for now in [from - 3_000, from - 2_000, from - 1] {
        files.take(reading(), now);
        assert_eq!(served(), first.leaf);
    }
    files.take(reading(), from);
    assert_eq!(served(), leaf);
}

/// A self-signed certificate for `name`, valid between two days (year, month, day); the tests' clock stands at 2026-11-18.
fn dated(name: &str, from: (i32, u8, u8), to: (i32, u8, u8)) -> Issued {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
    params.not_after = rcgen::date_time_ymd(to.0, to.1, to.2);
    let leaf = params.self_signed(&key).unwrap();
    Issued { chain: leaf.pem(), key: key.serialize_pem(), leaf: Fingerprint::of(leaf.der()) }
}

/// What is read three times, as by three polls.
fn polls(files: &mut Files, issued: &Issued, now: Millis) {
    for _ in 0..3 {
        files.take(Ok(Reading { certificate: issued.chain.clone().into(), key: issued.key.clone().into() }), now);
    }
}

#[test]
fn a_first_pair_that_nobody_would_accept_is_not_served_and_told_once() {
    let day = 86_400_000;
    let now = 1_795_000_000_000;
    for (from, to, says, later) in [
        ((2026, 11, 24), (2027, 11, 24), "is not valid yet", true),
        ((2025, 11, 1), (2026, 11, 1), "has already expired", false),
    ] {
        let lines = Lines::default();
        let _guard = lines.collect();
        let (bad, good) = (dated("localhost", from, to), dated("localhost", (2026, 11, 1), (2027, 11, 1)));
        let mount = Mount::new(&bad);
        let (resolver, said) = (Resolver::new(), Arc::default());
        let context = context(&mut Registry::default(), &said);
        let mut files = Files::open(mount.0.path(), ("tls.crt", "tls.key"), resolver.clone(), context).unwrap();
        polls(&mut files, &bad, now);
        assert!(!resolver.loaded(), "{says}");
        let text = lines.text();
        assert_eq!((text.matches(says).count(), text.matches("nothing is served").count()), (1, 1), "{text}");
        assert_eq!(said.lock().len(), usize::from(!later), "an end is told as an Event, too");
        polls(&mut files, &bad, now + 7 * day);
        assert_eq!(resolver.loaded(), later, "from its first moment on, and never after its last");
        polls(&mut files, &good, now);
        assert_eq!(resolver.served().borrow().as_ref().unwrap().fingerprint, good.leaf);
        // The good one is kept now, as ever.
        polls(&mut files, &bad, now);
        assert_eq!(resolver.served().borrow().as_ref().unwrap().fingerprint, good.leaf);
        assert_eq!(lines.text().matches("serving the last good pair").count(), 1, "{}", lines.text());
    }
}

/// The API server refuses a certificate whose extended key usage is for something else; one without any is for everything.
#[test]
fn a_pair_that_is_for_no_server_takes_no_good_pairs_place() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let good = dated("localhost", (2026, 11, 1), (2027, 11, 1));
    let purposes = [ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    for (usages, is_served) in
        [(&purposes[..1], false), (&purposes[..], true), (&[ExtendedKeyUsagePurpose::Any], true), (&[], true)]
    {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = usages.to_vec();
        let certificate = params.self_signed(&key).unwrap();
        let leaf = Fingerprint::of(certificate.der());
        let issued = Issued { chain: certificate.pem(), key: key.serialize_pem(), leaf };
        for first in [Some(&good), None] {
            let mount = Mount::new(first.unwrap_or(&issued));
            let resolver = Resolver::new();
            let context = context(&mut Registry::default(), &Arc::default());
            let mut files = Files::open(mount.0.path(), ("tls.crt", "tls.key"), resolver.clone(), context).unwrap();
            polls(&mut files, &issued, 1_795_000_000_000);
            let expected = if is_served { Some(leaf) } else { first.map(|first| first.leaf) };
            assert_eq!(resolver.served().borrow().as_ref().map(|served| served.fingerprint), expected, "{usages:?}");
        }
    }
    assert_eq!(lines.text().matches("lacks serverAuth").count(), 2, "{}", lines.text());
}

#[test]
fn a_pair_for_the_services_name_is_replaced_by_none_for_another() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let made = |name: &str| dated(name, (2026, 11, 1), (2027, 11, 1));
    let (ours, wild) = (made("drawbridge-webhook.kagenti-system.svc"), made("*.kagenti-system.svc"));
    let (other, another) = (made("webhook.example.com"), made("webhook2.example.com"));
    for (first, steps) in [
        (&ours, [(&other, &ours), (&wild, &wild), (&another, &wild)]),
        // They may call by URL.
        (&other, [(&another, &another), (&ours, &ours), (&other, &ours)]),
    ] {
        let mount = Mount::new(first);
        let resolver = Resolver::new();
        let context = context(&mut Registry::default(), &Arc::default());
        let files = Files::open(mount.0.path(), ("tls.crt", "tls.key"), resolver.clone(), context).unwrap();
        let mut files = files.dialled_as(("drawbridge-webhook", "kagenti-system"));
        for (step, (read, served)) in steps.into_iter().enumerate() {
            polls(&mut files, read, 1_795_000_000_000);
            assert_eq!(resolver.served().borrow().as_ref().unwrap().fingerprint, served.leaf, "step {step}");
        }
    }
    let text = lines.text();
    assert_eq!(text.matches("serving the last good pair").count(), 3, "{text}");
    assert_eq!(
        text.matches("it refuses it, unless").count(),
        2,
        "each of those for another name that is served: {text}"
    );
}

#[test]
fn a_pair_that_cannot_be_served_is_told_in_words() {
    let (first, second) = (issue(), issue());
    let read = |chain: &str, key: &str| Pair::read(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string();
    let (leaf, intermediate) = first.chain.split_at(first.chain.find("-----END CERTIFICATE-----\n").unwrap() + 26);
    let encrypted = first.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let legacy =
        first.key.replace("-----BEGIN PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED");
    for (told, says) in [
        (
            read(&format!("{intermediate}{leaf}"), &first.key),
            "belongs to certificate 2 of the chain; the webhook's own must come first",
        ),
        (read(leaf, &second.key), "belongs to another certificate"),
        (read(&leaf[..200], &first.key), "section CERTIFICATE has no end"),
        (read(leaf, &first.key[..60]), "section PRIVATE KEY has no end"),
        (read(leaf, &encrypted), "is encrypted"),
        (read(leaf, &legacy), "is encrypted"),
        (read(leaf, leaf), "there is no section of that kind"),
        (read(leaf, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), "ECDSA P-256, P-384 or P-521"),
    ] {
        assert!(told.contains(says), "{says}: {told}");
    }
    // Whatever stands in a file, what is said of it stays a sentence.
    let told = read(&format!("-----BEGIN {}-----\nAAAA\n", "LONG\u{1b}[31m ".repeat(500)), &first.key);
    assert!(told.len() < 512 && !told.contains('\u{1b}'), "{told}");
    // Lines run together: what looks like the name of a section is the key.
    let body: String = first.key.lines().filter(|line| !line.starts_with('-')).collect();
    let told = read(leaf, &format!("-----BEGIN PRIVATE KEY {body}-----\n"));
    assert!(told.contains("first line is not in order") && !told.contains(&body[..16]), "{told}");
}
