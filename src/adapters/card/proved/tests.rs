//! Agents that prove over TLS who they are, by servers and a SPIFFE agent of the tests' own. The real SPIRE stands in the suite of peers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::adapters::card::{Cards, InForce, Judging};
use crate::adapters::http::{Addresses, Refused};
use crate::adapters::spiffe::tests::{agent, bytes, framed};
use crate::controllers::agent_card::metrics::CardMetrics;
use crate::controllers::agent_card::{CardQuestion, Fetch, Fetched};
use crate::controllers::scaffold::lane::{Adapter, AskError, AskFault, Attempt};
use crate::domain::reason::Reason;

const US: &str = "spiffe://example.org/ns/kagenti-system/sa/drawbridge-controllers";
const AGENT: &str = "spiffe://example.org/ns/n/sa/w";

#[derive(Debug, Clone, Copy)]
struct Here;

impl Addresses for Here {
    fn refuses(&self, address: std::net::IpAddr) -> Option<Refused> {
        (!address.is_loopback()).then_some(Refused::Reserved)
    }
}

fn params(uri: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
    params
}

/// An authority of a trust domain.
struct Authority {
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
type Pair = (Vec<u8>, Vec<u8>);

impl Authority {
    fn new(domain: &str) -> Self {
        let mut params = params(&format!("spiffe://{domain}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { der, issuer: Issuer::new(params, key) }
    }

    fn svid(&self, id: &str) -> Pair {
        let mut params = params(id);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().der().to_vec(), key.serialize_der())
    }
}

/// A SPIFFE agent that says that this process is whom `svid` says.
fn spiffe_agent(at: &Path, (chain, key): &Pair, authority: &Authority) {
    let svid = [bytes(1, US.as_bytes()), bytes(2, chain), bytes(3, key), bytes(4, &authority.der)].concat();
    agent(at, vec![(vec![framed(&bytes(1, &svid))], None)]);
}

/// An agent that serves a card to whom `authority` vouches for.
async fn serves((chain, key): Pair, authority: &Authority) -> SocketAddr {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.der.clone())).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![CertificateDer::from(chain)], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key)))
        .unwrap();
    let (listener, acceptor) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), TlsAcceptor::from(Arc::new(config)));
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else { break };
                head.push(byte);
            }
            let body = json!({"name": "A", "version": "1"}).to_string();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

/// A moment at which every certificate here counts, in seconds since 1970.
const fn now() -> i64 {
    1_790_000_000
}

async fn ask(address: SocketAddr, socket: &Path) -> Result<Fetched, AskError> {
    let socket = socket.to_owned();
    let under = move || InForce { proof: Some(socket.clone()), ..InForce::default() };
    let judging = Judging { under: Arc::new(under), now: Arc::new(now) };
    let none =
        Arc::new(|_| -> std::pin::Pin<Box<dyn Future<Output = _> + Send>> { unreachable!("no ConfigMap is read") });
    let cards = Cards::new(Here, judging, none, CardMetrics::default());
    let authority = "w.n.svc.cluster.local:8443".into();
    let fetch = Fetch { namespace: "n".into(), pod: "pod".into(), address, authority, injected: false, proves: true };
    cards.ask(CardQuestion::Fetch(fetch), Attempt::Patient).await
}

#[tokio::test]
async fn case_153_an_agent_proves_its_id_and_learns_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, authority) = (folder.path().join("agent.sock"), Authority::new("example.org"));
    spiffe_agent(&socket, &authority.svid(US), &authority);
    let address = serves(authority.svid(AGENT), &authority).await;
    let fetched = ask(address, &socket).await.unwrap();
    assert_eq!(fetched.peer.unwrap().as_str(), AGENT);
    assert_eq!(fetched.served.card["name"], "A");
    assert_eq!(fetched.served.card["url"], "https://w.n.svc.cluster.local:8443", "nobody is answered by http there");
}

#[tokio::test]
async fn case_154_who_has_no_svid_of_our_trust_domain_or_speaks_no_tls_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (socket, authority) = (folder.path().join("agent.sock"), Authority::new("example.org"));
    spiffe_agent(&socket, &authority.svid(US), &authority);
    let (other, namesake) = (Authority::new("other.org"), Authority::new("example.org"));
    let mut web = params(AGENT);
    web.subject_alt_names = vec![SanType::DnsName("w.n.svc".try_into().unwrap())];
    let key = KeyPair::generate().unwrap();
    let web = (web.signed_by(&key, &authority.issuer).unwrap().der().to_vec(), key.serialize_der());
    for (what, pair) in [
        ("another trust domain", other.svid("spiffe://other.org/ns/n/sa/w")),
        ("another authority of that name", namesake.svid(AGENT)),
        ("an id of another domain by our authority", authority.svid("spiffe://other.org/ns/n/sa/w")),
        ("a certificate of the web", web),
    ] {
        let error = ask(serves(pair, &authority).await, &socket).await.unwrap_err();
        assert_eq!((error.fault, error.reason), (AskFault::Refused, Reason::FetchFailed), "{what}: {error}");
        assert!(error.message.starts_with("https://127.0.0.1:"), "{error}");
    }
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let error = ask(address, &socket).await.unwrap_err();
    assert_eq!((error.fault, error.reason), (AskFault::Refused, Reason::FetchFailed), "{error}");
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let error = ask(nobody, &socket).await.unwrap_err();
    assert_eq!((error.fault, error.reason), (AskFault::Unreachable, Reason::AgentUnreachable), "{error}");
    let outside = SocketAddr::from(([10, 0, 0, 1], 1));
    assert_eq!(ask(outside, &socket).await.unwrap_err().reason, Reason::AddressRefused);
}

#[tokio::test]
async fn without_an_identity_of_our_own_nobody_is_asked_and_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("example.org");
    let address = serves(authority.svid(AGENT), &authority).await;
    let error = ask(address, &folder.path().join("none.sock")).await.unwrap_err();
    assert_eq!(error.fault, AskFault::NotAsked, "it is no fault of the agent");
    assert!(error.message.contains("no identity of its own") && error.message.contains("none.sock"), "{error}");
}
