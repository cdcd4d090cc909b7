//! The whole way of a card: a Deployment that says it is an agent, its Pod at an address that the operator can reach, an agent by the published
//! SDK that listens there, an SVID of the real SPIRE that signed its card, and what the AgentCard says of it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use webhook_tests::a2a::{Agent, Card};
use webhook_tests::network::Network;
use webhook_tests::patience::patience;
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};
use webhook_tests::{ControlPlane, Installation, Installing, Options, TestNamespace};

/// The user that the weather agent runs as.
const WEATHER: u32 = 20_001;
/// The user that another agent runs as.
const OTHER: u32 = 20_002;
/// The trust domain that an installation has by default.
pub(crate) const DOMAIN: &str = "cluster.local";
pub(crate) const NAME: &str = "weather-agent";

/// An agent that needs nothing but its own container.
pub(crate) fn agent() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": NAME,
            "labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": "", "app.kubernetes.io/name": NAME},
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME, "kagenti.io/type": "agent", "kagenti.io/inject": "disabled"}},
                "spec": {"serviceAccountName": "weather", "containers": [
                    {"name": "app", "image": "example.com/weather:1", "ports": [{"containerPort": 8000}]},
                ]},
            },
        },
    })
}

pub(crate) fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {"selector": {"app": NAME}, "ports": [{"name": "http", "port": 8080, "targetPort": 8000}]},
    })
}

pub(crate) fn account() -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weather"}})
}

/// The address of the agent's Pod, once it is Ready.
pub(crate) async fn address(ns: &TestNamespace) -> Result<SocketAddr> {
    let ready = |pod: &Pod| {
        let status = pod.status.as_ref()?;
        let is_ready = status.conditions.iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
        let ip: IpAddr = status.pod_ip.as_deref().filter(|_| is_ready)?.parse().ok()?;
        Some(SocketAddr::from((ip, 8000)))
    };
    let deadline = tokio::time::Instant::now() + patience();
    loop {
        let pods = ns.api::<Pod>().list(&Default::default()).await?;
        if let Some(address) = pods.iter().find_map(ready) {
            return Ok(address);
        }
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "no Pod of the agent is Ready");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The AgentCard once `holds`; the last state is the error.
pub(crate) async fn card(ns: &TestNamespace, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    let deadline = tokio::time::Instant::now() + patience();
    loop {
        // Until it is there, there is none.
        let found = ns.get("agent.kagenti.dev/v1alpha1", "AgentCard", &format!("{NAME}-deployment-card")).await;
        let now = found.map_or(Ok(Value::Null), serde_json::to_value)?;
        if holds(&now) {
            return Ok(now);
        }
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "{what}: {now:#}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Status and reason of a condition.
pub(crate) fn condition<'a>(card: &'a Value, type_: &str) -> Option<(&'a str, &'a str)> {
    let list = card.pointer("/status/conditions")?.as_array()?;
    let one = list.iter().find(|one| one["type"] == type_)?;
    Some((one["status"].as_str()?, one["reason"].as_str()?))
}

pub(crate) fn is(card: &Value, type_: &str, status: &str) -> bool {
    condition(card, type_).is_some_and(|(now, _)| now == status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_signed_by_the_identity_its_agent_runs_as_is_verified_and_bound_until_it_is_tampered_with() -> Result<()>
{
    let cp = ControlPlane::start(Options::default()).await?;
    let spire = Spire::start(SpireOptions { trust_domain: DOMAIN.to_owned(), ..SpireOptions::default() }).await?;
    let network = Arc::new(Network::new().await?.with_pods().await?);
    let bundles = cp.namespace("bundles").await?;
    let bundle = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spire-bundle"},
        "data": {"bundle.spiffe": spire.bundle(BundleForm::Spiffe)?}});
    bundles.accepts(&bundle).await?;
    let installing = Installing {
        network: Some(network.clone()),
        platform: format!(
            "cards: {{audit: false, minimumPeriodSeconds: 5, trustBundle: {{trustDomain: {DOMAIN}, configMap: {{name: spire-bundle, namespace: {}}}}}}}\n",
            bundles.name()
        ),
        ..Installing::default()
    };
    let _installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("cards").await?;
    let (weather, other) = (spire.account(ns.name(), "weather"), spire.account(ns.name(), "other"));
    spire.entitle(&weather, WEATHER)?;
    spire.entitle(&other, OTHER)?;
    for object in [account(), service(), agent()] {
        ns.accepts(&object).await?;
    }
    let address = address(&ns).await?;
    let signed = Card::new("Weather").signed(spire.svid(WEATHER).await?);
    let running = Agent::start(&network, address, &signed).await?;
    let good = card(&ns, "verified", |card| is(card, "Synced", "True") && is(card, "Verified", "True")).await?;
    let text = |pointer: &str| good.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(text("/status/card/name"), "Weather");
    assert_eq!(text("/status/protocol"), "a2a");
    assert_eq!(text("/status/skills"), "echo");
    assert_eq!(text("/status/signatureProfile"), "a2a-sdk-1.x");
    assert_eq!(text("/status/signatureSpiffeId"), weather);
    assert!(is(&good, "Bound", "True"), "{good:#}");
    drop(running);

    // What is served says something else than what was signed.
    let tampered = Card { tamper: Some("Sends your keys elsewhere".to_owned()), ..signed.clone() };
    let running = Agent::start(&network, address, &tampered).await?;
    // An agent that takes long to start is another one's story: it may be unreachable first.
    let invalid = |card: &Value| condition(card, "Verified") == Some(("False", "SignatureInvalid"));
    let bad = card(&ns, "tampered with", invalid).await?;
    assert!(!bad.to_string().contains("Sends your keys elsewhere"), "what nobody signed is not published: {bad:#}");
    drop(running);

    // Signed well, by somebody else.
    let foreign = Card::new("Weather").signed(spire.svid(OTHER).await?);
    let _running = Agent::start(&network, address, &foreign).await?;
    let bad = card(&ns, "of another", |card| is(card, "Bound", "False")).await?;
    assert!(is(&bad, "Verified", "False"), "{bad:#}");
    Ok(())
}
