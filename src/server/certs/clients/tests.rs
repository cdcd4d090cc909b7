//! Whose certificates are accepted, and how the file is followed.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;

use super::*;
use crate::server::certs::metrics::CertificateMetrics;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn certificate(issuer: &Issuer, common: &str, dns: &[&str], usage: ExtendedKeyUsagePurpose) -> CertificateDer<'static> {
    let mut params = CertificateParams::new(dns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, common);
    params.extended_key_usages = vec![usage];
    params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap().der().clone()
}

fn client(issuer: &Issuer, common: &str, dns: &[&str]) -> CertificateDer<'static> {
    certificate(issuer, common, dns, ExtendedKeyUsagePurpose::ClientAuth)
}

struct Scene {
    folder: TempDir,
    registry: Registry,
    context: Context,
    said: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new() -> Scene {
        let (mut registry, said) = (Registry::default(), Arc::<Mutex<Vec<String>>>::default());
        let heard = Arc::clone(&said);
        let clock = Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000));
        let metrics = CertificateMetrics::register(&mut registry);
        let context = Context::new(clock, metrics, Arc::new(move |notice| heard.lock().push(notice.to_string())));
        Scene { folder: TempDir::new().unwrap(), registry, context, said }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    fn open(&self, names: &[&str]) -> Result<ClientAuthorities, ClientAuthoritiesError> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ClientAuthorities::open(&self.path(), names, self.context.clone())
    }

    fn counted(&self, name: &str) -> bool {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text.lines().any(|line| line == name)
    }
}

fn accepts(authorities: &ClientAuthorities, certificate: &CertificateDer<'_>) -> bool {
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_795_000_000));
    authorities.verifier().verify_client_cert(certificate, &[], now).is_ok()
}

#[test]
fn every_authority_of_the_file_counts_and_no_other() {
    let scene = Scene::new();
    let (one, two, other) = (authority(), authority(), authority());
    fs::write(scene.path(), format!("{}\n# a note\n{}", one.pem(), two.pem())).unwrap();
    let open = scene.open(&[]).unwrap();
    assert!(accepts(&open, &client(&one, "kube-apiserver", &[])));
    assert!(accepts(&open, &client(&two, "anyone", &[])));
    assert!(!accepts(&open, &client(&other, "kube-apiserver", &[])));
    let server = certificate(&one, "kube-apiserver", &["localhost"], ExtendedKeyUsagePurpose::ServerAuth);
    assert!(!accepts(&open, &server), "a serving certificate is no client certificate");
    assert!(open.verifier().client_auth_mandatory());
}

#[test]
fn names_are_common_names_or_dns_names_in_full() {
    let scene = Scene::new();
    let issuer = authority();
    fs::write(scene.path(), issuer.pem()).unwrap();
    let open = scene.open(&["kube-apiserver", "webhooks.example"]).unwrap();
    for (common, dns, accepted) in [
        ("kube-apiserver", &[][..], true),
        ("x", &["webhooks.example"], true),
        ("x", &["other.example", "webhooks.example"], true),
        ("system:node:one", &[], false),
        ("kube-apiserver2", &[], false),
        ("KUBE-APISERVER", &[], false),
        ("x", &["a.webhooks.example"], false),
        ("", &[], false),
    ] {
        assert_eq!(accepts(&open, &client(&issuer, common, dns)), accepted, "{common} {dns:?}");
    }
}

#[test]
fn a_file_that_cannot_be_used_fails_the_start_and_is_named() {
    let scene = Scene::new();
    let whole = authority().pem();
    let cut = whole[..whole.len() / 2].to_owned();
    let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (content, words) in [
        (None, "cannot be read"),
        (Some(String::new()), "no CERTIFICATE section"),
        (Some("garbage".to_owned()), "no CERTIFICATE section"),
        (Some(KeyPair::generate().unwrap().serialize_pem()), "no CERTIFICATE section"),
        (Some(cut.clone()), "not complete PEM"),
        (Some(format!("{whole}{cut}")), "not complete PEM"),
        (Some(format!("{whole}{wrong}")), "certificate 2 of it cannot be decoded"),
    ] {
        if let Some(content) = content {
            fs::write(scene.path(), content).unwrap();
        }
        let error = scene.open(&[]).unwrap_err().to_string();
        assert!(error.contains("ca.crt") && error.contains(words), "{error}");
    }
}

#[test]
fn a_changed_file_counts_once_it_is_whole_and_a_bad_one_never() {
    let scene = Scene::new();
    let (old, new) = (authority(), authority());
    let by = |issuer: &Issuer| client(issuer, "kube-apiserver", &[]);
    fs::write(scene.path(), old.pem()).unwrap();
    let mut open = scene.open(&[]).unwrap();
    let half = new.pem().as_bytes()[..200].to_vec();
    for reading in [Ok(half.clone()), Ok(half), Err("gone".to_owned()), Err("gone".to_owned())] {
        open.take(reading, 0);
        assert!(accepts(&open, &by(&old)) && !accepts(&open, &by(&new)));
    }
    assert!(scene.counted("certwatcher_read_certificate_errors_total 2"));
    for expected in [false, true] {
        open.take(Ok(new.pem().into_bytes()), 0);
        assert_eq!((accepts(&open, &by(&new)), accepts(&open, &by(&old))), (expected, !expected));
    }
    assert!(scene.counted("drawbridge_certificate_changes_total{part=\"Clients\"} 2"));
}

#[test]
fn the_end_of_the_last_authority_is_announced() {
    let scene = Scene::new();
    let issuer = authority();
    fs::write(scene.path(), issuer.pem()).unwrap();
    let mut open = scene.open(&[]).unwrap();
    let end = open.last.unwrap().not_after;
    for now in [0, end - 3_600_000, end - 3_600_000] {
        open.take(Ok(issuer.pem().into_bytes()), now);
    }
    let said = scene.said.lock();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("less than a day") && said[0].contains("--webhook-client-ca"), "{said:?}");
}

#[tokio::test]
async fn b4_a_swapped_link_as_the_kubelet_makes_it_is_followed() {
    let scene = Scene::new();
    let (old, new) = (authority(), authority());
    let root = scene.folder.path();
    for (generation, issuer) in [("..1", &old), ("..2", &new)] {
        fs::create_dir(root.join(generation)).unwrap();
        fs::write(root.join(generation).join("ca.crt"), issuer.pem()).unwrap();
    }
    symlink("..1", root.join("..data")).unwrap();
    symlink("..data/ca.crt", scene.path()).unwrap();
    let open = scene.open(&[]).unwrap();
    let (verifier, shutdown) = (open.verifier(), Shutdown::new());
    let running = tokio::spawn(open.run(shutdown.clone()));
    symlink("..2", root.join("..data_tmp")).unwrap();
    fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    let (by_new, by_old) = (client(&new, "x", &[]), client(&old, "x", &[]));
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_795_000_000));
    let followed = async {
        while verifier.verify_client_cert(&by_new, &[], now).is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), followed).await.expect("followed");
    assert!(verifier.verify_client_cert(&by_old, &[], now).is_err());
    shutdown.advance(Phase::Closing);
    running.await.unwrap();
}
