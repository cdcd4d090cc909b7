//! Agents that prove over TLS who they are: both sides have their SVIDs of the real SPIRE, and whom the agent proves to be decides, whatever it serves.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use http::Response;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use webhook_tests::network::Network;
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};
use webhook_tests::{ControlPlane, Installation, Installing, Options, https};

use super::cards_cluster::{DOMAIN, account, address, agent, card, condition, is, service};

/// The user that the weather agent runs as.
const WEATHER: u32 = 20_011;
/// The user that another agent runs as.
const OTHER: u32 = 20_012;
/// Where the agent proves who it is.
const PORT: u16 = 9443;

/// An agent with the SVID of that user serves a card without a signature, to whom SPIRE vouches for.
async fn serves(network: &Network, address: SocketAddr, spire: &Spire, user: u32) -> Result<JoinSet<()>> {
    let svid = spire.svid(user).await?;
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(spire.bundle(BundleForm::Pem)?.as_bytes()) {
        roots.add(authority.ok().context("an authority")?)?;
    }
    let chain = CertificateDer::pem_slice_iter(svid.chain.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(svid.key.as_bytes());
    let config = rustls::ServerConfig::builder()
        .with_client_cert_verifier(WebPkiClientVerifier::builder(roots.into()).build()?)
        .with_single_cert(chain.ok().context("a chain")?, key.ok().context("a key")?)?;
    let listener = network.run(move || Ok(std::net::TcpListener::bind(address)?)).await?;
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let card = json!({"name": "Weather", "version": "1.0.0", "skills": [{"id": "echo"}], "protocolVersion": "0.3.0"});
    let mut tasks = JoinSet::new();
    tasks.spawn(https::serve(listener, TlsAcceptor::from(Arc::new(config)), move |_| {
        let answer = Response::new(card.to_string());
        async move { answer }
    }));
    Ok(tasks)
}

/// Case 153 and its opposite.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_proves_over_tls_who_it_is_is_verified_until_somebody_else_answers_for_it() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let spire = Spire::start(SpireOptions { trust_domain: DOMAIN.to_owned(), ..SpireOptions::default() }).await?;
    let network = Arc::new(Network::new().await?.with_pods().await?);
    // The controllers run as the user of this test.
    spire.entitle(&spire.account("kagenti-system", "drawbridge-controllers"), 0)?;
    let socket = spire.socket();
    let platform = format!(
        "cards: {{audit: false, minimumPeriodSeconds: 5, proof: {{enabled: true, socket: 'unix://{}'}}}}\n",
        socket.display()
    );
    let installing = Installing { network: Some(network.clone()), platform, ..Installing::default() };
    let _installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("proof").await?;
    let (weather, other) = (spire.account(ns.name(), "weather"), spire.account(ns.name(), "other"));
    spire.entitle(&weather, WEATHER)?;
    spire.entitle(&other, OTHER)?;
    let mut service = service();
    service["spec"]["ports"] = json!([{"name": "http", "port": 8080, "targetPort": 8000},
        {"name": "agent-tls", "port": 8443, "targetPort": PORT}]);
    for object in [account(), service, agent()] {
        ns.accepts(&object).await?;
    }
    let mut address = address(&ns).await?;
    address.set_port(PORT);

    let mut running = serves(&network, address, &spire, WEATHER).await?;
    let good = card(&ns, "proved", |card| is(card, "Verified", "True")).await?;
    let text = |card: &Value, name: &str| card["status"][name].as_str().unwrap_or_default().to_owned();
    ensure!(condition(&good, "Verified") == Some(("True", "mTLSVerified")), "{good:#}");
    ensure!(text(&good, "attestedAgentSpiffeId") == weather && text(&good, "trustedAccount") == "weather", "{good:#}");
    ensure!(good["status"]["card"]["name"] == "Weather" && text(&good, "skills") == "echo", "{good:#}");
    running.shutdown().await;

    let _running = serves(&network, address, &spire, OTHER).await?;
    let bad = card(&ns, "somebody else", |card| is(card, "Verified", "False")).await?;
    ensure!(condition(&bad, "Verified") == Some(("False", "NotBound")), "{bad:#}");
    ensure!(text(&bad, "attestedAgentSpiffeId") == other && text(&bad, "trustedAccount").is_empty(), "{bad:#}");
    Ok(())
}
