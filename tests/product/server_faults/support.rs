//! A server on a port of its own, and a client that shows every byte.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use drawbridge::admission::verdict::Verdict;
use drawbridge::api::review::Request;
use drawbridge::config::gates::Gates;
use drawbridge::config::schema::Platform;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::config::view::ClusterView;
use drawbridge::domain::reason::Reason;
use drawbridge::server::listener::{Limits, Server, bind, tls};
use drawbridge::server::routes::Reviews;
use drawbridge::server::shutdown::Shutdown;
use drawbridge::server::snapshots::SnapshotCell;
use drawbridge::server::telemetry::metrics::{Metrics, PortCause};
use rustls::client::ClientConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ResolvesServerCert;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longer than any deadline in these tests: reaching it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
pub(crate) const PATH: &str = "/mutate-workloads-authbridge?timeout=10s";

pub(crate) struct Running {
    peer: Peer,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) shutdown: Shutdown,
    pub(crate) ended: JoinHandle<usize>,
}

pub(crate) fn allow(_: &Request<'_>, _: &Snapshot) -> Verdict {
    Verdict::skipped(Reason::NothingToInject)
}

pub(crate) fn snapshots() -> SnapshotCell {
    let cell = SnapshotCell::new();
    let view = ClusterView {
        operator_namespace: "kagenti-system".into(),
        server_version: (1, 33),
        spiffe_driver: false,
        namespaces: HashMap::new(),
    };
    cell.store(Snapshot::new(&Platform::built_in(), Gates::default(), view));
    cell
}

/// Heavy tests take turns, or they would measure each other.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

pub(crate) fn start(limits: Limits) -> Running {
    start_as(limits, |certificate| tls::server_config(certificate).unwrap())
}

/// A server that asks for a client certificate.
pub(crate) fn start_mutual(limits: Limits, clients: Arc<dyn ClientCertVerifier>) -> Running {
    start_as(limits, |certificate| tls::mutual_server_config(certificate, clients).unwrap())
}

fn start_as(limits: Limits, tls: impl FnOnce(Arc<dyn ResolvesServerCert>) -> Arc<ServerConfig>) -> Running {
    start_deciding(limits, tls, |reviews| reviews.decided_by(allow))
}

/// A server whose reviews are decided as `reviews` says.
pub(crate) fn start_deciding(
    limits: Limits,
    tls: impl FnOnce(Arc<dyn ResolvesServerCert>) -> Arc<ServerConfig>,
    reviews: impl FnOnce(Reviews) -> Reviews,
) -> Running {
    let names = ["localhost", "127.0.0.1", "other.example"].map(str::to_owned).to_vec();
    let pair = rcgen::generate_simple_self_signed(names).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
    let certified = CertifiedKey::from_der(vec![pair.cert.der().clone()], key, &provider).unwrap();
    let config = tls(Arc::new(SingleCertAndKey::from(certified)));

    let socket = bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    let (metrics, shutdown) = (Metrics::new(), Shutdown::new());
    let router = reviews(Reviews::new(snapshots(), metrics.clone())).router();
    let (for_server, until) = (metrics.clone(), shutdown.clone());
    let server = Server { name: "webhook", router, tls: Some(config), limits, shutdown: until, metrics: for_server };
    let ended = tokio::spawn(server.serve(socket));
    let peer = Peer { address, root: pair.cert.der().clone() };
    Running { peer, metrics, shutdown, ended }
}

/// Where a server is, and what its certificate is.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    pub(crate) root: CertificateDer<'static>,
}

impl std::ops::Deref for Running {
    type Target = Peer;
    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl Peer {
    pub(crate) fn client_config(&self, versions: &[&'static SupportedProtocolVersion], alpn: &[&str]) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }

    pub(crate) async fn connect_as(
        &self,
        config: Arc<ClientConfig>,
        name: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        TlsConnector::from(config).connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
    }

    /// From another address of this machine.
    pub(crate) async fn connect_from(&self, from: Ipv4Addr, alpn: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let stream = socket.connect(self.address).await?;
        let config = self.client_config(rustls::ALL_VERSIONS, &[alpn]);
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    pub(crate) async fn connect(&self, alpn: &str) -> TlsStream<TcpStream> {
        let config = self.client_config(rustls::ALL_VERSIONS, &[alpn]);
        self.connect_as(Arc::new(config), "localhost").await.unwrap()
    }

    /// Sends `bytes` on a connection of its own and returns all that comes back until its end.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> String {
        let (mut reader, mut writer) = tokio::io::split(self.connect("http/1.1").await);
        let send = async {
            // The server may stop reading before everything is sent.
            let _ = writer.write_all(bytes).await;
            let _ = writer.flush().await;
        };
        let mut all = Vec::new();
        let receive = async {
            // A connection that is reset ends as well.
            let _ = reader.read_to_end(&mut all).await;
        };
        timeout(PATIENCE, futures::future::join(send, receive)).await.expect("the connection is closed");
        String::from_utf8_lossy(&all).into_owned()
    }

    pub(crate) async fn healthy(&self) {
        let mut client = Client::new(self).await;
        assert_eq!(client.review("healthy").await.unwrap().0, 200);
    }
}

impl Running {
    pub(crate) fn handshakes_failed(&self, cause: &'static str) -> u64 {
        self.metrics.handshake_failures.get_or_create(&PortCause { port: "webhook", cause }).get()
    }

    pub(crate) fn connections_ended(&self, cause: &'static str) -> u64 {
        self.metrics.connections_ended.get_or_create(&PortCause { port: "webhook", cause }).get()
    }
}

/// Waits until `holds`.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never came: {what}"));
}

pub(crate) fn review(uid: &str) -> String {
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"{uid}",
        "kind":{{"group":"","version":"v1","kind":"Pod"}},"operation":"CREATE","object":{{"metadata":{{}}}}}}}}"#
    )
}

pub(crate) fn post(body: &str) -> Vec<u8> {
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A keep-alive connection that never pretends: an answer or the error.
pub(crate) struct Client {
    stream: TlsStream<TcpStream>,
}

impl Client {
    pub(crate) async fn new(peer: &Peer) -> Self {
        Self { stream: peer.connect("http/1.1").await }
    }

    pub(crate) fn over(stream: TlsStream<TcpStream>) -> Self {
        Self { stream }
    }

    /// One review: status, and whether the server asked to reconnect.
    pub(crate) async fn review(&mut self, uid: &str) -> std::io::Result<(u16, bool)> {
        self.stream.write_all(&post(&review(uid))).await?;
        self.stream.flush().await?;
        let mut all = Vec::with_capacity(1024);
        loop {
            if self.stream.read_buf(&mut all).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let text = String::from_utf8_lossy(&all).to_ascii_lowercase();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                assert!(body.contains(&format!("\"uid\":\"{uid}\"")), "{body}");
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return Ok((status, head.contains("connection: close")));
            }
        }
    }
}
