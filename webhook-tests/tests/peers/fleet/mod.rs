//! Many agents in one place: a server that answers at the address of every Pod, and who signs what it serves.
//!
//! In: a network in which the addresses of Pods lead somewhere, who signs. Out: the workloads to make, cards that differ in their signature at every
//! answer, and how often each agent was asked. The name of an agent says how it behaves ([`Manner`]). The published SDK is for
//! correctness; this is for numbers.

mod manner;

use std::collections::HashMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent_card::AgentCard;
use drawbridge_crypto::Signer;
use kube::api::{Api, ListParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};
use webhook_tests::TestNamespace;
use webhook_tests::network::Network;
use webhook_tests::svid;

pub(crate) use manner::Manner;

/// The ServiceAccount that every agent runs as, so that one SVID signs for all of them.
pub(crate) const ACCOUNT: &str = "weather";
/// The trust domain that an installation has by default.
pub(crate) const DOMAIN: &str = "cluster.local";
/// Where agents listen.
const PORT: u16 = 8000;
/// Between two looks at objects of which there are many.
const LOOK: Duration = Duration::from_millis(200);

/// Who signs, and how often each agent was asked.
struct Shared {
    /// By namespace.
    signers: Mutex<HashMap<String, Arc<Signer>>>,
    asked: Mutex<HashMap<String, usize>>,
}

/// The agents; they answer as long as this lives.
pub(crate) struct Fleet {
    shared: Arc<Shared>,
    end: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Fleet {
    /// Answers at every address within `network`.
    pub(crate) async fn start(network: &Network) -> Result<Self> {
        let listener = network.run(|| Ok(TcpListener::bind(("0.0.0.0", PORT))?)).await?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared { signers: Mutex::default(), asked: Mutex::default() });
        let (end, ended) = tokio::sync::oneshot::channel();
        let serving = shared.clone();
        std::thread::Builder::new().name("fleet".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let accepting = async {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::spawn(answer(stream, serving.clone()));
                    }
                };
                tokio::select! { () = accepting => {} _ = ended => {} }
                Ok::<_, std::io::Error>(())
            })
        })?;
        Ok(Self { shared, end: Some(end) })
    }

    /// From now on that one signs in a namespace.
    pub(crate) fn signed_by(&self, namespace: &str, signer: Signer) {
        self.shared.signers.lock().insert(namespace.to_owned(), Arc::new(signer));
    }

    /// How often each agent was asked, by its name in the cluster (`workload.namespace`).
    pub(crate) fn asked(&self) -> HashMap<String, usize> {
        self.shared.asked.lock().clone()
    }

    /// Waits until every agent of a namespace whose name begins so was asked `more` times again.
    pub(crate) async fn asked_again(
        &self,
        prefix: &str,
        namespace: &str,
        more: usize,
        patience: Duration,
    ) -> Result<()> {
        let is_one = |name: &str| name.starts_with(prefix) && name.ends_with(&format!(".{namespace}"));
        let before = self.asked();
        let deadline = Instant::now() + patience;
        loop {
            let now = self.asked();
            let waiting: Vec<_> = now
                .iter()
                .filter(|(name, count)| is_one(name) && **count < before.get(*name).copied().unwrap_or_default() + more)
                .collect();
            if waiting.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{} were not asked {more} times: {:?}", waiting.len(), waiting.first());
            sleep(LOOK).await;
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop(self.end.take());
    }
}

/// One question: who is meant says the header Host.
async fn answer(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8192 {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let named: Vec<&str> = host.split('.').take(2).collect();
    let (name, namespace) = (named.join("."), named.last().copied().unwrap_or_default());
    let signer = shared.signers.lock().get(namespace).cloned();
    *shared.asked.lock().entry(name.clone()).or_default() += 1;
    Manner::of(&name).answer(stream, signer.as_deref().map(|signer| signed(&name, signer)).unwrap_or_default()).await;
}

/// A card with a signature of its own: ECDSA takes another number every time.
fn signed(name: &str, signer: &Signer) -> String {
    let card = json!({"name": name, "description": "What the weather is & will be", "version": "1.0.0",
        "capabilities": {"streaming": false}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "get_weather", "name": "Weather", "description": "Says it", "tags": ["weather"]}]});
    svid::signed(&card, signer).unwrap()
}

/// Makes workload, Service and card of an agent; the card is a person's, so that its period is the test's.
pub(crate) async fn make(ns: &TestNamespace, name: &str, period: Duration) -> Result<()> {
    let labels = json!({"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""});
    let workload = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name, "kagenti.io/type": "agent", "kagenti.io/inject": "disabled"}},
            "spec": {"serviceAccountName": ACCOUNT, "containers": [
                {"name": "agent", "image": "example.com/agent:1", "ports": [{"containerPort": PORT}]}]}}},
    });
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": PORT}]}});
    let card = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard", "metadata": {"name": name},
        "spec": {"syncPeriod": format!("{}s", period.as_secs()), "identityBinding": {},
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}});
    for object in [service, card, workload] {
        ns.accepts(&object).await.with_context(|| name.to_owned())?;
    }
    Ok(())
}

/// The account of all agents of a namespace.
pub(crate) async fn account(ns: &TestNamespace) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
    ns.accepts(&account).await.map(drop)
}

/// Waits until `holds` is true of every AgentCard of a namespace whose name begins so; of all together within `patience`.
pub(crate) async fn cards(
    ns: &TestNamespace,
    prefix: &str,
    count: usize,
    patience: Duration,
    holds: impl Fn(&Value) -> bool,
) -> Result<()> {
    let (deadline, api): (_, Api<AgentCard>) = (Instant::now() + patience, ns.api());
    loop {
        let listed = api.list(&ListParams::default()).await?;
        let listed = listed.items.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        let named = |card: &&Value| card["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix));
        let of_prefix: Vec<_> = listed.iter().filter(named).collect();
        let missing = of_prefix.iter().find(|card| !holds(card));
        if of_prefix.len() == count && missing.is_none() {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{} of {count} cards, among them {missing:?}", of_prefix.len());
        sleep(LOOK).await;
    }
}

/// Status of a condition of a card.
pub(crate) fn condition<'a>(card: &'a Value, type_: &str) -> &'a str {
    let list = card.pointer("/status/conditions").and_then(Value::as_array);
    let one = list.into_iter().flatten().find(|one| one["type"] == type_);
    one.and_then(|one| one["status"].as_str()).unwrap_or_default()
}
