//! `make demo WITH=spire`: an enrolled agent's card is found, verified and bound to the identity that it runs as, and no longer once it was
//! tampered with; and what the agent may reach follows it.
//!
//! No container runs: kwok plays the kubelet, and in place of the Pod's container an agent by the published A2A SDK listens at the Pod's
//! address, in a network namespace together with Drawbridge's controllers. SPIRE is the real one, and the key that signs is its.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::{Api, ResourceExt as _};
use webhook_tests::a2a::{Agent, Card, served};
use webhook_tests::network::Network;
use webhook_tests::patience::timeout;
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};
use webhook_tests::{Access, ControlPlane, Installing, wait_for};

use super::{Demo, OPTION_1, drawbridge, kubectl, say, step, tell};

/// Where all of it happens.
const NAMESPACE: &str = "cards";
/// Where SPIRE publishes its bundle.
const SPIRE_NAMESPACE: &str = "spire-system";
/// The trust domain that an installation has by default.
const DOMAIN: &str = "cluster.local";
/// The user that the agent's process asks SPIRE as.
const WEATHER: u32 = 20_001;
/// Where a signed card may stand beside what is served.
const SIGNED: &str = "weather-agent-card-signed";
const CARD: &str = "agentcard/weather-agent-deployment-card";

/// What the demo of cards needs before Drawbridge is installed.
pub(super) struct Stage {
    network: Arc<Network>,
    spire: Spire,
}

impl Stage {
    /// Starts SPIRE, and makes a network in which the addresses of Pods lead somewhere.
    pub(super) async fn set() -> Result<Self> {
        step(
            "starting SPIRE (server and agent), and a network namespace in which the addresses of Pods lead somewhere (root)",
        )?;
        let network = Arc::new(Network::new().await?.with_pods().await?);
        let options = SpireOptions { trust_domain: DOMAIN.to_owned(), ..SpireOptions::default() };
        Ok(Self { network, spire: Spire::start(options).await? })
    }

    /// An installation that believes this SPIRE.
    pub(super) fn installing(&self) -> Installing {
        let platform = format!(
            "cards: {{audit: false, minimumPeriodSeconds: 5, trustBundle: {{configMap: {{name: spire-bundle, namespace: {SPIRE_NAMESPACE}}}}}}}\n"
        );
        Installing { network: Some(self.network.clone()), platform, ..Installing::default() }
    }

    /// The life of a card; the agent runs as long as what is returned.
    pub(super) async fn show(&self, cp: &ControlPlane) -> Result<Agent> {
        let access = cp.admin();
        for namespace in [SPIRE_NAMESPACE, NAMESPACE] {
            kubectl(access, &["create", "namespace", namespace], "").await?;
        }
        let bundle = self.spire.bundle(BundleForm::Spiffe)?;
        let literal = format!("--from-literal=bundle.spiffe={bundle}");
        kubectl(access, &["create", "configmap", "spire-bundle", "-n", SPIRE_NAMESPACE, &literal], "").await?;

        step(
            "an enrolled agent gets an AgentCard by itself; the agent answers at its Pod's address, its card signed with the SVID of the account it runs as",
        )?;
        let sample = OPTION_1.replace("namespace: default", &format!("namespace: {NAMESPACE}"));
        tell(&kubectl(access, &["apply", "-f", "-"], &sample).await?)?;
        let demo = Demo {
            access,
            namespace: NAMESPACE,
            name: "weather-agent",
            pods: Api::namespaced(access.client().await?, NAMESPACE),
        };
        let pod = demo.governed().await?;
        let address = address(&pod)?;
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let id = self.spire.account(NAMESPACE, &account.context("an enrolled Pod has an account of its own")?);
        self.spire.entitle(&id, WEATHER)?;
        let card = Card::new("weather_service").signed(self.spire.svid(WEATHER).await?);
        let agent = Agent::start(&self.network, address, &card).await?;
        say(&format!("  {} answers at {address} and signs as {id}\n", pod.name_any()))?;
        shown(access, "True").await?;

        step(
            "from now on an agent that has not proved who it is reaches only what it needs to prove it; this one has, so it stays open",
        )?;
        tell(&kubectl(access, &["label", "namespace", NAMESPACE, "agent.kagenti.dev/trust=enforced"], "").await?)?;
        reach(access, true).await?;

        step(
            "a signed card may also stand in a ConfigMap, for agents that cannot be asked; one that is tampered with costs no trust, and is told",
        )?;
        let held = served(&self.network, address).await?.replace(&card.description, "Sends your keys elsewhere");
        let literal = format!("--from-literal=agent-card.json={held}");
        kubectl(access, &["create", "configmap", SIGNED, "-n", NAMESPACE, &literal], "").await?;
        drifted(access).await?;
        shown(access, "True").await?;
        kubectl(access, &["delete", "configmap", SIGNED, "-n", NAMESPACE], "").await?;

        step("what is served is tampered with: one word, which the signature covers")?;
        drop(agent);
        let tampered = Card { tamper: Some("Sends your keys elsewhere".to_owned()), ..card.clone() };
        let agent = Agent::start(&self.network, address, &tampered).await?;
        shown(access, "False").await?;
        reach(access, false).await?;
        say(&drawbridge(access, &["explain", CARD, "-n", NAMESPACE]).await?)?;

        step("and repaired: two good looks, one after the other, make it Verified again")?;
        drop(agent);
        let agent = Agent::start(&self.network, address, &card).await?;
        shown(access, "True").await?;
        reach(access, true).await?;
        super::quarantine::show(access, NAMESPACE).await?;
        Ok(agent)
    }
}

/// Waits until the card is Verified or not, and prints what kubectl and Drawbridge say of it.
async fn shown(access: &Access, verified: &str) -> Result<()> {
    let wanted = format!("--for=condition=Verified={verified}");
    kubectl(access, &["wait", "--for=create", CARD, "-n", NAMESPACE, &timeout()], "").await?;
    kubectl(access, &["wait", &wanted, CARD, "-n", NAMESPACE, &timeout()], "").await?;
    say("  kubectl get agentcards\n")?;
    tell(&kubectl(access, &["get", "agentcards", "-n", NAMESPACE], "").await?)?;
    say("  drawbridge card list\n")?;
    tell(&drawbridge(access, &["card", "list", "-n", NAMESPACE]).await?)
}

/// Waits until drift is told, and prints in which words.
async fn drifted(access: &Access) -> Result<()> {
    kubectl(access, &["wait", "--for=condition=CardDrift", CARD, "-n", NAMESPACE, &timeout()], "").await?;
    let words = r#"jsonpath={range .status.conditions[?(@.type=="CardDrift")]}{.reason}: {.message}{"\n"}{end}"#;
    say("  condition CardDrift\n")?;
    tell(&kubectl(access, &["get", CARD, "-n", NAMESPACE, "-o", words], "").await?)
}

/// Waits until the agent's NetworkPolicy opens it or not, and prints the policies.
async fn reach(access: &Access, open: bool) -> Result<()> {
    let policies: Api<NetworkPolicy> = Api::namespaced(access.client().await?, NAMESPACE);
    let opens = |policy: &NetworkPolicy| {
        let selector = policy.spec.as_ref().and_then(|spec| spec.pod_selector.as_ref());
        let labels = selector.and_then(|selector| selector.match_labels.as_ref());
        labels.is_some_and(|labels| labels.contains_key("agent.kagenti.dev/signature-verified"))
    };
    wait_for(&policies, "drawbridge-default-deny", |_| true).await?;
    wait_for(&policies, "weather-agent-signature-policy", |policy| opens(policy) == open).await?;
    say(&format!("  the agent is {}; kubectl get networkpolicies\n", if open { "open" } else { "cut off" }))?;
    let columns = r#"jsonpath={range .items[*]}{.metadata.name}{"\n    "}{.spec}{"\n"}{end}"#;
    tell(&kubectl(access, &["get", "networkpolicies", "-n", NAMESPACE, "-o", columns], "").await?)
}

fn address(pod: &Pod) -> Result<SocketAddr> {
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).context("a running Pod has an address")?;
    Ok(SocketAddr::from((ip.parse::<IpAddr>()?, 8000)))
}
