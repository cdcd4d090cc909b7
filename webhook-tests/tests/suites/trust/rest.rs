//! What is written when nothing changes, and when one thing does; where the API server is; and a namespace that may hold no NetworkPolicy.

use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use webhook_tests::{Options, installation, wait_for, wait_until};

use super::fleet::{self, a_restart_writes_nothing, written};
use super::*;

const AGENTS: usize = 30;

fn slice(name: &str, family: &str, address: &str) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": family,
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}]})
}

fn addresses(policy: &NetworkPolicy) -> Vec<String> {
    let rules = policy.spec.iter().flat_map(|spec| spec.egress.iter().flatten());
    let peers = rules.flat_map(|rule| rule.to.iter().flatten());
    peers.filter_map(|peer| Some(peer.ip_block.as_ref()?.cidr.clone())).collect()
}

#[tokio::test]
async fn at_rest_nothing_is_written_a_flip_is_two_writes_and_addresses_are_followed() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    cp.objects().await?.apply(&slice("kubernetes", "IPv4", "203.0.113.10").to_string()).await?;
    let (installation, ns) = fleet::start(&cp, "rest", AGENTS).await?;
    card_says(&cp, &ns, "w-0", true).await?;
    labelled(&ns, "w-0", true).await?;
    wait_for(&policies(&ns), "w-0-signature-policy", opens).await?;
    a_restart_writes_nothing(&cp, &installation, &ns).await?;

    // One card flips.
    let mark = cp.audit().mark()?;
    let begun = Instant::now();
    card_says(&cp, &ns, "w-1", true).await?;
    wait_for(&policies(&ns), "w-1-signature-policy", opens).await?;
    labelled(&ns, "w-1", true).await?;
    eprintln!("a flip of one of {AGENTS} agents was written and seen in {:?}", begun.elapsed());
    let flip = written(&cp, mark).await?;
    ensure!(flip.len() == 2 && flip.iter().all(|write| write.contains("w-1")), "{flip:#?}");

    // The API server moves, and what another slice says of it counts for nothing.
    let objects = cp.objects().await?;
    objects.apply(&slice("kubernetes-v6", "IPv6", "2001:db8::10").to_string()).await?;
    objects.apply(&slice("kubernetes", "IPv4", "203.0.113.20").to_string()).await?;
    let moved_to = async |address: &str| -> Result<()> {
        for name in [DENY, "w-2-signature-policy"] {
            wait_for(&policies(&ns), name, |policy: &NetworkPolicy| addresses(policy) == [address]).await?;
        }
        Ok(())
    };
    moved_to("203.0.113.20/32").await?;
    // To the other family: as the API server does it, the slice is deleted and made anew.
    let slices: Api<EndpointSlice> = objects.api();
    slices.delete("kubernetes", &DeleteParams::default()).await?;
    objects.apply(&slice("kubernetes", "IPv6", "2001:db8::20").to_string()).await?;
    moved_to("2001:db8::20/128").await?;
    Ok(())
}

/// What cannot be made holds everybody back, and is made once it can be.
#[tokio::test]
async fn g7_where_no_network_policy_may_be_made_no_agent_begins() -> Result<()> {
    let cp = webhook_tests::installation::shared().await?;
    let ns = cp.namespace("quota").await?;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/networkpolicies.networking.k8s.io": "0"}}});
    ns.accepts(&quota).await?;
    let policy = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "one-more"},
        "spec": {"podSelector": {}}});
    ns.until_refused(&policy, "exceeded quota: none").await?;
    let all: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cp.client().await?);
    let label = json!({"metadata": {"labels": {SWITCH: "enforced"}}});
    all.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&label)).await?;
    ns.accepts(&agent("late")).await?;
    let refused = |event: &Event| {
        let told = event.message.as_deref().unwrap_or_default();
        event.reason.as_deref() == Some("FailedCreate") && told.contains("drawbridge-trust-pods")
    };
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(refused)).await?;
    ensure!(ns.api::<Pod>().list(&Default::default()).await?.items.is_empty());
    let room = json!({"spec": {"hard": {"count/networkpolicies.networking.k8s.io": "10"}}});
    let quotas = ns.api::<k8s_openapi::api::core::v1::ResourceQuota>();
    quotas.patch("none", &PatchParams::default(), &Patch::Merge(&room)).await?;
    let pod = running(&ns, "late").await?;
    ensure!(policies(&ns).get(DENY).await?.uid().is_some(), "{} runs behind it", pod.name_any());
    Ok(())
}
