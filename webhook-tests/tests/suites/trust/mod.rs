//! Trust on a real API server: what people who hold `edit`, or everything, in their namespace can do about what cuts off and opens agents;
//! and that nothing of it needs the operator to be there.

mod astray;
mod attacks;
mod cluster;
mod dead;
mod declared;
mod fleet;
mod history;
mod life;
mod many;
mod preview;
mod quarantine;
mod rest;
mod rotation;
mod signing;
mod steady;
mod versions;
mod ways_in;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent_card::AgentCard;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, Objects, TestNamespace, wait_for};

const VERIFIED: &str = "agent.kagenti.dev/signature-verified";
pub(super) const SWITCH: &str = "agent.kagenti.dev/trust";
const DENY: &str = "drawbridge-default-deny";

/// A Deployment of one Pod that says it is an agent; nothing is injected.
pub(super) fn agent(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name),
        },
    })
}

fn template(name: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name, "kagenti.io/type": "agent", "kagenti.io/inject": "disabled"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [{"name": "agent", "image": "example.com/agent:1"}]},
    })
}

/// A Pod of its own that says it is an agent.
fn bare(name: &str) -> Value {
    let mut pod = template(name);
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod
}

fn policies(ns: &Objects) -> Api<NetworkPolicy> {
    ns.api()
}

fn is_verified(pod: &Pod) -> bool {
    pod.labels().get(VERIFIED).map(String::as_str) == Some("true")
}

/// As the card's controller writes it once a signature was good.
async fn card_says(cp: &ControlPlane, ns: &Objects, workload: &str, verified: bool) -> Result<()> {
    let name = format!("{workload}-deployment-card");
    let card = wait_for(&ns.api::<AgentCard>(), &name, |_| true).await?;
    let deployment = ns.api::<k8s_openapi::api::apps::v1::Deployment>().get(workload).await?;
    let (status, account) = if verified { ("True", json!("default")) } else { ("False", Value::Null) };
    let condition = json!({"type": "Verified", "status": status, "reason": "SignatureVerified", "message": "as the test says",
        "observedGeneration": card.metadata.generation, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch =
        json!({"status": {"targetUID": deployment.uid(), "trustedAccount": account, "conditions": [condition]}});
    let ours = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let cards: Api<AgentCard> = Api::namespaced(ours, ns.namespace());
    cards.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// Somebody who holds the ClusterRole of that name in the namespace alone.
async fn tenant(cp: &ControlPlane, ns: &TestNamespace, role: &str) -> Result<Objects> {
    let user = format!("{role}-of-{}", ns.name());
    let access = if role == "everything" {
        cp.person(ns, &user, &[json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})]).await?
    } else {
        cp.member(ns, &user, role).await?
    };
    Ok(Objects::new(access.client().await?, ns.name()))
}

/// One request, as it is; the answer's code and words.
async fn request(client: &Client, method: &str, path: String, body: Option<Value>) -> Result<(u16, String)> {
    let content = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let bytes = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = http::Request::builder().method(method).uri(path).header("content-type", content).body(bytes)?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok((200, String::new())),
        Err(kube::Error::Api(status)) => Ok((status.code, status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Waits for the Pod of a workload that runs.
pub(super) async fn running(ns: &Objects, workload: &str) -> Result<Pod> {
    let selector = kube::runtime::watcher::Config::default().labels(&format!("app={workload}"));
    let is_up = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
    };
    let pods = webhook_tests::wait_until(&ns.api::<Pod>(), selector, |all| all.values().any(is_up)).await?;
    pods.into_iter().find(is_up).context("a Pod that runs")
}

/// Waits until the running Pod of a workload carries the label, or does not.
async fn labelled(ns: &Objects, workload: &str, wanted: bool) -> Result<Pod> {
    let pod = running(ns, workload).await?;
    wait_for(&ns.api::<Pod>(), &pod.name_any(), |pod| is_verified(pod) == wanted).await
}

/// Whether the agent's policy opens it.
fn opens(policy: &NetworkPolicy) -> bool {
    let selector = policy.spec.as_ref().and_then(|spec| spec.pod_selector.as_ref());
    selector.and_then(|selector| selector.match_labels.as_ref()).is_some_and(|labels| labels.contains_key(VERIFIED))
}

/// The answer is a refusal in these words.
fn refused((code, message): &(u16, String), what: &str, words: &str) -> Result<()> {
    ensure!(*code >= 400 && message.contains(words), "{what} was to be refused by {words}: {code} {message}");
    Ok(())
}
