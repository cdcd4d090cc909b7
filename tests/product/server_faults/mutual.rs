//! B4: client certificates, over real TLS.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use drawbridge::server::certs::{CertificateMetrics, ClientAuthorities, Context};
use drawbridge::server::listener::Limits;
use drawbridge::server::shutdown::Shutdown;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};
use rustls::client::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, SupportedProtocolVersion};
use tempfile::TempDir;

use super::support::{Client, Running, eventually, start_mutual};

type Issuer = CertifiedIssuer<'static, KeyPair>;
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A client certificate of `common`, valid until the end of `year`.
fn identity(issuer: &Issuer, common: &str, year: i32) -> Identity {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.not_after = date_time_ymd(year, 12, 31);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap().der().clone();
    (certificate, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

struct Mutual {
    running: Running,
    file: PathBuf,
    _folder: TempDir,
    following: Shutdown,
}

impl Drop for Mutual {
    fn drop(&mut self) {
        self.following.advance(drawbridge::server::shutdown::Phase::Closing);
    }
}

fn open(issuer: &Issuer, names: &[&str]) -> Mutual {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, issuer.pem()).unwrap();
    #[allow(clippy::disallowed_methods, reason = "the test's own clock")]
    let context = Context::new(Arc::new(SystemTime::now), CertificateMetrics::default(), Arc::new(|_| ()));
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    let authorities = ClientAuthorities::open(&file, names, context).unwrap();
    let running = start_mutual(Limits::default(), authorities.verifier());
    let following = Shutdown::new();
    tokio::spawn(authorities.run(following.clone()));
    Mutual { running, file, _folder: folder, following }
}

impl Mutual {
    fn config(&self, versions: &[&'static SupportedProtocolVersion], identity: Option<&Identity>) -> Arc<ClientConfig> {
        let plain = self.running.client_config(versions, &["http/1.1"]);
        let Some((certificate, key)) = identity else { return Arc::new(plain) };
        let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(key).unwrap();
        let certified = rustls::sign::CertifiedKey::new(vec![certificate.clone()], key);
        let mut config = plain;
        config.client_auth_cert_resolver = Arc::new(rustls::sign::SingleCertAndKey::from(certified));
        Arc::new(config)
    }

    /// One review over a new connection. With TLS 1.3 the refusal comes when the client thinks that it is connected.
    async fn review(&self, config: &Arc<ClientConfig>) -> std::io::Result<HandshakeKind> {
        let stream = self.running.connect_as(Arc::clone(config), "localhost").await?;
        let kind = stream.get_ref().1.handshake_kind().expect("the handshake is done");
        let (status, _) = Client::over(stream).review("u-1").await?;
        assert_eq!(status, 200);
        Ok(kind)
    }
}

/// The alert in the words of rustls.
fn alert(result: std::io::Result<HandshakeKind>) -> String {
    result.expect_err("refused").to_string()
}

#[tokio::test]
async fn b4_none_expired_and_another_authority_s_get_an_alert_and_the_right_one_an_answer() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let mutual = open(&ours, &[]);
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let refused = |identity: Option<Identity>| mutual.config(versions, identity.as_ref());
        let none = alert(mutual.review(&refused(None)).await);
        let words = if versions[0] == &TLS13 { "CertificateRequired" } else { "HandshakeFailure" };
        assert!(none.contains(words) || none.contains("CertificateRequired"), "{none}");
        let expired = alert(mutual.review(&refused(Some(identity(&ours, "kube-apiserver", 2020)))).await);
        assert!(expired.contains("CertificateExpired"), "{expired}");
        let other = alert(mutual.review(&refused(Some(identity(&theirs, "kube-apiserver", 2090)))).await);
        // An authority of the same name may be found first, and then it is the signature that does not fit.
        assert!(other.contains("UnknownCA") || other.contains("DecryptError"), "{other}");
        let right = mutual.config(versions, Some(&identity(&ours, "kube-apiserver", 2090)));
        assert_eq!(mutual.review(&right).await.unwrap(), HandshakeKind::Full);
    }
    for cause in ["client_certificate_missing", "client_certificate_expired", "client_certificate_refused"] {
        eventually(cause, || mutual.running.handshakes_failed(cause) == 2).await;
    }
}

#[tokio::test]
async fn b4_a_name_that_was_not_asked_for_is_refused() {
    let ours = authority("ours");
    let mutual = open(&ours, &["kube-apiserver"]);
    let by = |name: &str| mutual.config(rustls::ALL_VERSIONS, Some(&identity(&ours, name, 2090)));
    assert!(mutual.review(&by("kube-apiserver")).await.is_ok());
    alert(mutual.review(&by("system:node:one")).await);
    eventually("counted", || mutual.running.handshakes_failed("client_certificate_refused") == 1).await;
}

#[tokio::test]
async fn b4_a_new_authority_counts_without_a_restart_also_for_who_was_accepted_before() {
    let (old, new) = (authority("old"), authority("new"));
    let mutual = open(&old, &[]);
    let configs = |versions: &[&'static SupportedProtocolVersion]| {
        [&old, &new].map(|issuer| mutual.config(versions, Some(&identity(issuer, "kube-apiserver", 2090))))
    };
    let clients: Vec<_> = [&[&TLS12][..], &[&TLS13]].into_iter().map(configs).collect();
    for [by_old, by_new] in &clients {
        for _ in 0..2 {
            // A resumed session would not be judged again.
            assert_eq!(mutual.review(by_old).await.unwrap(), HandshakeKind::Full);
        }
        alert(mutual.review(by_new).await);
    }
    std::fs::write(&mutual.file, new.pem()).unwrap();
    let [_, first] = &clients[0];
    let followed = async {
        while mutual.review(first).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), followed).await.expect("followed");
    for [by_old, by_new] in &clients {
        alert(mutual.review(by_old).await);
        mutual.review(by_new).await.unwrap();
    }
}
