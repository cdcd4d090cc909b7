//! Ways to trust that go round about: what makes workloads, what brings an earlier revision back, what adopts, what says addresses, and a card
//! that changes its mind. As people who hold `edit`, or everything, in one namespace.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PropagationPolicy};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::patience::patience;
use webhook_tests::{TestNamespace, installation, wait_for, wait_until};

use super::*;

const REVISION: &str = "deployment.kubernetes.io/revision";

/// A namespace that enforces, and somebody of that role in it.
async fn stage(name: &str, role: &str) -> Result<(&'static ControlPlane, TestNamespace, Client)> {
    let cp = installation::shared().await?;
    let ns = cp.namespace_with(name, &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    let client = tenant(cp, &ns, role).await?.client();
    Ok((cp, ns, client))
}

/// The verified agent `good`, with its Pod.
async fn good(cp: &ControlPlane, ns: &TestNamespace) -> Result<Pod> {
    ns.accepts(&agent("good")).await?;
    card_says(cp, ns, "good", true).await?;
    let pod = labelled(ns, "good", true).await?;
    wait_for(&policies(ns), "good-signature-policy", opens).await?;
    Ok(pod)
}

async fn post(client: &Client, path: String, object: Value) -> Result<()> {
    let made = request(client, "POST", path.clone(), Some(object)).await?;
    ensure!(made.0 == 200, "{path}: {made:?}");
    Ok(())
}

async fn nobody_is_verified(ns: &TestNamespace) -> Result<()> {
    let all = ns.api::<Pod>().list(&Default::default()).await?;
    let wrong: Vec<_> = all.iter().filter(|pod| is_verified(pod)).map(|pod| pod.name_any()).collect();
    ensure!(wrong.is_empty(), "{wrong:?}");
    Ok(())
}

#[tokio::test]
async fn what_makes_workloads_brings_no_trust_to_their_pods() -> Result<()> {
    let (_, ns, client) = stage("makers", "everything").await?;
    let of = |group: &str, plural: &str| format!("/apis/{group}/namespaces/{}/{plural}", ns.name());
    // A workload that nobody enrolled says it of itself, and an AgentRuntime makes an agent of it.
    let mut plain = agent("plain");
    plain["metadata"]["labels"] = json!({VERIFIED: "true"});
    plain["spec"]["template"]["metadata"]["labels"] =
        json!({"app": "plain", "kagenti.io/inject": "disabled", VERIFIED: "true"});
    post(&client, of("apps/v1", "deployments"), plain).await?;
    let runtime = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime",
        "metadata": {"name": "plain", "labels": {VERIFIED: "true"}},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "plain"}}});
    post(&client, of("agent.kagenti.dev/v1alpha1", "agentruntimes"), runtime).await?;
    // An Agent whose template says it.
    let made = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "made", "labels": {VERIFIED: "true"}},
        "spec": {"imageSource": {"image": "example.com/weather:v1"}, "podTemplateSpec": {
            "metadata": {"labels": {VERIFIED: "true", "kagenti.io/inject": "disabled"}}, "spec": {"containers": [{"name": "agent"}]}}}});
    let answer = request(&client, "POST", of("agent.kagenti.dev/v1alpha1", "agents"), Some(made)).await?;
    let is_made = answer.0 == 200;
    ensure!(is_made || answer.1.contains(VERIFIED), "made, or refused for the label: {answer:?}");
    let enrolled = kube::runtime::watcher::Config::default().labels("app=plain,kagenti.io/type=agent");
    wait_until(&ns.api::<Pod>(), enrolled, |all| !all.is_empty()).await?;
    if is_made {
        wait_until(&ns.api::<Pod>(), kube::runtime::watcher::Config::default(), |all| {
            all.values().any(|pod| pod.metadata.name.as_deref().is_some_and(|name| name.starts_with("made-")))
        })
        .await?;
    }
    nobody_is_verified(&ns).await
}

/// `kubectl rollout undo`: the template of an earlier ReplicaSet, without the hash that names it.
#[tokio::test]
async fn an_undone_rollout_brings_no_trust_back() -> Result<()> {
    let (_, ns, client) = stage("undo", "edit").await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), ns.name());
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), ns.name());
    let mut first = agent("dep");
    first["spec"]["template"]["metadata"]["labels"][VERIFIED] = "true".into();
    post(&client, format!("/apis/apps/v1/namespaces/{}/deployments", ns.name()), first).await?;
    running(&ns, "dep").await?;
    let second = json!({"spec": {"template": {"metadata": {"labels": {VERIFIED: null}, "annotations": {"a": "b"}}}}});
    deployments.patch("dep", &PatchParams::default(), &Patch::Merge(&second)).await?;
    let at = |deployment: &Deployment, revision: &str| {
        let status = deployment.status.as_ref();
        deployment.annotations().get(REVISION).map(String::as_str) == Some(revision)
            && status.and_then(|status| status.observed_generation) == deployment.metadata.generation
            && status.and_then(|status| status.updated_replicas) == Some(1)
            && status.and_then(|status| status.replicas) == Some(1)
    };
    wait_for(&deployments, "dep", |deployment| at(deployment, "2")).await?;
    let all = sets.list(&Default::default()).await?;
    let before =
        all.iter().find(|set| set.annotations().get(REVISION).map(String::as_str) == Some("1")).context("the first")?;
    let mut template = serde_json::to_value(before.spec.as_ref().and_then(|spec| spec.template.as_ref()))?;
    let labels = template["metadata"]["labels"].as_object_mut().context("labels")?;
    labels.remove("pod-template-hash");
    ensure!(labels.contains_key(VERIFIED), "it is what is brought back");
    let undo = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
    let undo = Patch::Json::<()>(serde_json::from_value(undo)?);
    deployments.patch("dep", &PatchParams::default(), &undo).await?;
    wait_for(&deployments, "dep", |deployment| at(deployment, "3")).await?;
    running(&ns, "dep").await?;
    nobody_is_verified(&ns).await
}

/// A ReplicaSet of a verified agent, orphaned, is adopted by a Deployment of another name: its Pods are that one's.
#[tokio::test]
async fn who_adopts_the_pods_of_a_verified_agent_has_not_its_trust() -> Result<()> {
    let (cp, ns, client) = stage("adopt", "edit").await?;
    let pod = good(cp, &ns).await?.name_any();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), ns.name());
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    deployments.delete("good", &orphan).await?;
    let mut heir = agent("heir");
    heir["spec"]["selector"] = json!({"matchLabels": {"app": "good"}});
    heir["spec"]["template"] = template("good");
    post(&client, format!("/apis/apps/v1/namespaces/{}/deployments", ns.name()), heir).await?;
    wait_for(&deployments, "heir", |heir| heir.status.as_ref().and_then(|status| status.ready_replicas) == Some(1))
        .await?;
    wait_for(&ns.api::<Pod>(), &pod, |pod| !is_verified(pod)).await?;
    nobody_is_verified(&ns).await
}

/// A tenant's slice says where the API server is, and that an agent is at its address: no policy opens what it names.
#[tokio::test]
async fn a_slice_of_a_tenant_opens_no_address() -> Result<()> {
    let (_, ns, client) = stage("slices", "everything").await?;
    ns.accepts(&agent("bad")).await?;
    wait_for(&policies(&ns), "bad-signature-policy", |_| true).await?;
    let foreign = "198.51.100.77";
    for (name, service) in [("kubernetes", "kubernetes"), ("bad-x", "bad")] {
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": service}},
            "endpoints": [{"addresses": [foreign], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]});
        post(&client, format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", ns.name()), slice).await?;
    }
    // An agent that comes later has a policy of its own, made by what is known then.
    ns.accepts(&agent("later")).await?;
    wait_for(&policies(&ns), "later-signature-policy", |_| true).await?;
    for policy in policies(&ns).list(&Default::default()).await? {
        let text = serde_json::to_string(&policy.spec)?;
        ensure!(!text.contains(foreign), "{}: {text}", policy.name_any());
    }
    Ok(())
}

/// Somebody who holds everything in namespace `default`, once the API server goes by it.
async fn owner_of_default(cp: &ControlPlane) -> Result<Client> {
    const NAME: &str = "everything-of-default";
    const GROUP: &str = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": {"name": NAME},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let binding = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "RoleBinding", "metadata": {"name": NAME},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": NAME},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": NAME}]});
    let objects = cp.objects().await?;
    objects.apply(&role.to_string()).await?;
    objects.apply(&binding.to_string()).await?;
    let client = cp.user(NAME, &[])?.client().await?;
    let begun = Instant::now();
    while request(&client, "GET", SLICES.to_owned(), None).await?.0 != 200 {
        ensure!(begun.elapsed() < patience(), "{NAME} has no rights");
        sleep(Duration::from_millis(10)).await;
    }
    Ok(client)
}

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

/// A slice in `default`, of the API server's Service or of none.
fn of_default(name: &str, address: &str, labels: Value) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": 443, "protocol": "TCP"}]})
}

/// The policies of every namespace name the API server's addresses, which stand in `default`: who has rights there alone writes none of them.
#[tokio::test]
async fn who_holds_everything_in_default_says_not_where_the_api_server_is() -> Result<()> {
    let (cp, ns, _) = stage("addresses", "edit").await?;
    ns.accepts(&agent("bad")).await?;
    wait_for(&policies(&ns), "bad-signature-policy", |_| true).await?;
    let owner = owner_of_default(cp).await?;
    let (foreign, words) = ("198.51.100.78", "drawbridge-trust-addresses");
    let service = json!({"kubernetes.io/service-name": "kubernetes"});
    for name in ["kubernetes", "x-addresses"] {
        let made = of_default(name, foreign, service.clone());
        let made = request(&owner, "POST", SLICES.to_owned(), Some(made)).await?;
        refused(&made, &format!("slice {name}"), words)?;
    }
    // One of no Service is his own; it becomes one of that Service as little.
    let own = format!("{SLICES}/own-addresses");
    post(&owner, SLICES.to_owned(), of_default("own-addresses", foreign, json!({}))).await?;
    let labelled = json!({"metadata": {"labels": service}});
    refused(&request(&owner, "PATCH", own.clone(), Some(labelled)).await?, "a label that comes later", words)?;
    // The API server takes the ports of its slice from its Endpoints.
    let endpoints = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name},
            "subsets": [{"addresses": [{"ip": foreign}], "ports": [{"name": "https", "port": 2379}]}]})
    };
    let path = "/api/v1/namespaces/default/endpoints";
    let made = request(&owner, "POST", path.to_owned(), Some(endpoints("kubernetes"))).await?;
    refused(&made, "Endpoints kubernetes", words)?;
    post(&owner, path.to_owned(), endpoints("own-addresses")).await?;

    // Who may write slices in the whole cluster may write one; of another name than the API server's it says nothing.
    let objects = cp.objects().await?;
    objects.apply(&of_default("x-addresses", foreign, service).to_string()).await?;
    let changed = of_default("x-addresses", foreign, json!({"kubernetes.io/service-name": "kubernetes", "a": "b"}));
    let all = format!("{SLICES}/x-addresses");
    refused(&request(&owner, "PATCH", all.clone(), Some(changed)).await?, "another one's slice", words)?;
    refused(&request(&owner, "DELETE", all.clone(), None).await?, "its deletion", words)?;
    // An agent that comes later has a policy of its own, made by what is known then.
    ns.accepts(&agent("later")).await?;
    wait_for(&policies(&ns), "later-signature-policy", |_| true).await?;
    for policy in policies(&ns).list(&Default::default()).await? {
        let text = serde_json::to_string(&policy.spec)?;
        ensure!(!text.contains(foreign), "{}: {text}", policy.name_any());
    }
    let admin = cp.client().await?;
    for path in [all, own, format!("{path}/own-addresses")] {
        request(&admin, "DELETE", path, None).await?;
    }
    Ok(())
}

/// However often a card changes its mind, what holds in the end is what it said last, and no Pod is made anew.
#[tokio::test]
async fn a_card_that_flaps_ends_as_it_said_last_and_rolls_nothing() -> Result<()> {
    let (cp, ns, _) = stage("flaps", "edit").await?;
    let before = good(cp, &ns).await?;
    let generation = ns.api::<Deployment>().get("good").await?.metadata.generation;
    for _ in 0..5 {
        card_says(cp, &ns, "good", false).await?;
        card_says(cp, &ns, "good", true).await?;
    }
    card_says(cp, &ns, "good", false).await?;
    labelled(&ns, "good", false).await?;
    wait_for(&policies(&ns), "good-signature-policy", |policy| !opens(policy)).await?;
    let after = running(&ns, "good").await?;
    ensure!(after.uid() == before.uid(), "the same Pod");
    ensure!(ns.api::<Deployment>().get("good").await?.metadata.generation == generation, "nothing was rolled");
    Ok(())
}
