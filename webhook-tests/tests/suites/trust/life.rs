//! A namespace that begins to enforce, agents that are verified and are not, and back.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use webhook_tests::{ControlPlane, TestNamespace, installation, wait_for, wait_gone};

use super::*;

async fn switch(cp: &ControlPlane, ns: &TestNamespace, level: &str) -> Result<()> {
    let all: Api<Namespace> = Api::all(cp.client().await?);
    let patch = json!({"metadata": {"labels": {SWITCH: level}}});
    all.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test]
async fn cases_126_to_134_a_verified_agent_is_open_and_another_is_not_and_no_pod_is_made_anew() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace("trust").await?;
    ns.accepts(&agent("good")).await?;
    ns.accepts(&agent("bad")).await?;
    let (good, bad) = (running(&ns, "good").await?, running(&ns, "bad").await?);
    card_says(cp, &ns, "good", true).await?;
    switch(cp, &ns, "audit").await?;
    labelled(&ns, "good", true).await?;
    ensure!(policies(&ns).list(&Default::default()).await?.items.is_empty(), "in audit nobody is cut");

    switch(cp, &ns, "enforced").await?;
    let deny = wait_for(&policies(&ns), DENY, |_| true).await?;
    let open = wait_for(&policies(&ns), "good-signature-policy", opens).await?;
    let closed = wait_for(&policies(&ns), "bad-signature-policy", |policy| !opens(policy)).await?;
    ensure!(deny.owner_references().is_empty() && open.owner_references().len() == 1);
    let version =
        |object: &k8s_openapi::api::networking::v1::NetworkPolicy| object.resource_version().unwrap_or_default();
    let number = |text: String| text.parse::<u64>().unwrap_or_default();
    ensure!(number(version(&open)) < number(version(&deny)), "who is verified is opened before anybody is cut");
    ensure!(closed.labels()["kagenti.dev/agentcard"] == "bad-deployment-card");

    card_says(cp, &ns, "good", false).await?;
    let flipped = wait_for(&policies(&ns), "good-signature-policy", |policy| !opens(policy)).await?;
    ensure!(flipped.uid() == open.uid(), "the same object");
    labelled(&ns, "good", false).await?;
    card_says(cp, &ns, "good", true).await?;
    wait_for(&policies(&ns), "good-signature-policy", opens).await?;
    labelled(&ns, "good", true).await?;

    // A card that is deleted comes back, unverified: nothing is open meanwhile.
    ns.api::<AgentCard>().delete("good-deployment-card", &DeleteParams::default()).await?;
    labelled(&ns, "good", false).await?;
    wait_for(&policies(&ns), "good-signature-policy", |policy| !opens(policy)).await?;
    wait_for(&policies(&ns), DENY, |now| now.uid() == deny.uid()).await?;

    switch(cp, &ns, "off").await?;
    for name in [DENY, "good-signature-policy", "bad-signature-policy"] {
        wait_gone(&policies(&ns), name).await?;
    }
    for (workload, before) in [("good", good), ("bad", bad)] {
        let now: Pod = running(&ns, workload).await?;
        ensure!(now.uid() == before.uid() && !is_verified(&now), "{workload}: nothing rolled");
    }
    Ok(())
}

/// A policy that a person made under the name that ours would have is theirs; and what the Go operator made is taken over where it is.
#[tokio::test]
async fn cases_133_and_139_a_foreign_policy_stays_and_the_go_operators_is_taken_over() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace("takeover").await?;
    for name in ["mine", "old"] {
        ns.accepts(&agent(name)).await?;
        wait_for(&ns.api::<AgentCard>(), &format!("{name}-deployment-card"), |_| true).await?;
    }
    let policy = |name: &str, labels: serde_json::Value, owners: serde_json::Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
            "spec": {"podSelector": {"matchLabels": {"app": "x"}}, "policyTypes": ["Ingress"]}})
    };
    let theirs = ns.accepts(&policy("mine-signature-policy", json!({"team": "a"}), json!([]))).await?;
    let card = ns.api::<AgentCard>().get("old-deployment-card").await?;
    let owner = json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard", "name": card.name_any(), "uid": card.uid(),
        "controller": true, "blockOwnerDeletion": true}]);
    let marks = json!({"managed-by": "kagenti-operator", "kagenti.dev/agentcard": card.name_any()});
    let old = ns.accepts(&policy("old-signature-policy", marks, owner)).await?;
    switch(cp, &ns, "enforced").await?;
    let ours = |policy: &k8s_openapi::api::networking::v1::NetworkPolicy| policy.labels()["managed-by"] == "drawbridge";
    let taken = wait_for(&policies(&ns), "old-signature-policy", ours).await?;
    ensure!(taken.uid() == old.uid() && taken.owner_references().len() == 1);
    ensure!(taken.managed_fields().iter().all(|entry| entry.manager.as_deref() != Some("unknown")));
    wait_for(&policies(&ns), DENY, |_| true).await?;
    let now = policies(&ns).get("mine-signature-policy").await?;
    ensure!(now.resource_version() == theirs.resource_version(), "as its maker left it");
    Ok(())
}
