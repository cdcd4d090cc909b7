//! Duplicates, another target, a namespace that goes, what the Go operator left: nothing hangs, nothing stays behind.

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use webhook_tests::patience::patience;
use webhook_tests::{wait_for, wait_gone};

use super::*;

/// Two AgentRuntimes on one workload, as a race past the validating webhook makes them; the one that governs first.
async fn duplicates(ns: &TestNamespace) -> Result<[String; 2]> {
    let begun = tokio::time::Instant::now();
    let mut round = 0;
    loop {
        let names = [format!("a{round}"), format!("b{round}")];
        let made = names.iter().map(|name| async {
            ns.create(
                &art(name, "Deployment", "web", json!({"metadata": {"labels": {"round": round.to_string()}}})),
                false,
            )
            .await
        });
        let made = futures::future::try_join_all(made).await?;
        let made: Vec<_> = made.into_iter().filter_map(|answer| answer.result.ok()).collect();
        if let [one, other] = &made[..] {
            let age = |object: &kube::core::DynamicObject| {
                (object.metadata.creation_timestamp.clone(), object.metadata.uid.clone())
            };
            let first = usize::from(age(other) < age(one));
            let name = |object: &kube::core::DynamicObject| object.metadata.name.clone().unwrap_or_default();
            return Ok([name(&made[first]), name(&made[1 - first])]);
        }
        for object in made {
            delete_art(ns, &object.metadata.name.unwrap_or_default()).await?;
        }
        round += 1;
        ensure!(begun.elapsed() < patience(), "the validating webhook was faster {round} times");
    }
}

#[tokio::test]
async fn case_021_the_oldest_governs_and_the_next_takes_over() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("twice").await?;
    ns.accepts(&deployment("web", 1)).await?;
    let [first, second] = duplicates(&ns).await?;
    rolled(&ns, &first, 1).await?;
    let loser = says(&ns, &second, "Ready", "False/DuplicateTarget").await?;
    assert_eq!(condition(&loser, "Stalled"), "True/DuplicateTarget");
    let mark = cp.audit().mark()?;
    merge::<Deployment>(&ns, "web", json!({"metadata": {"labels": {"touch": "1"}}})).await?;
    let changed: AgentRuntime = merge(&ns, &second, json!({"spec": {"authBridgeMode": "proxy-sidecar"}})).await?;
    wait_for(&ns.api::<AgentRuntime>(), &second, |art| {
        let seen = art.status.as_ref().and_then(|status| status.observed_generation);
        seen == changed.metadata.generation && condition(art, "Ready") == "False/DuplicateTarget"
    })
    .await?;
    let made = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).accepted();
    let others = made.clone().filter(|request| request.name != second);
    assert_eq!((others.len(), made.len()), (0, 1), "the younger one's status, and nothing flaps: {made}");
    merge::<AgentRuntime>(&ns, &second, json!({"spec": {"authBridgeMode": null}})).await?;
    delete_art(&ns, &first).await?;
    rolled(&ns, &second, 1).await?;
    assert!(replica_sets(&ns, "web").await? <= 2, "taken over in place");
    delete_art(&ns, &second).await
}

#[tokio::test]
async fn case_026_another_target_is_enrolled_and_the_old_one_is_as_it_was() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("moves").await?;
    for name in ["one", "two"] {
        ns.accepts(&deployment(name, 1)).await?;
        pods(&ns, name, 1, false).await?;
    }
    let before = essence(&ns.api::<Deployment>().get("one").await?);
    ns.accepts(&art("weather", "Deployment", "one", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    merge::<AgentRuntime>(&ns, "weather", json!({"spec": {"targetRef": {"name": "two"}}})).await?;
    rolled(&ns, "weather", 1).await?;
    pods(&ns, "two", 1, true).await?;
    pods(&ns, "one", 1, false).await?;
    assert_eq!(essence(&ns.api::<Deployment>().get("one").await?), before);
    delete_art(&ns, "weather").await
}

#[tokio::test]
async fn a_namespace_with_agent_runtimes_ends_without_a_rollout() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("ends").await?;
    for number in 0..3 {
        let name = format!("web-{number}");
        ns.accepts(&deployment(&name, 1)).await?;
        ns.accepts(&art(&name, "Deployment", &name, json!({}))).await?;
    }
    for number in 0..3 {
        rolled(&ns, &format!("web-{number}"), 1).await?;
    }
    let mark = cp.audit().mark()?;
    ns.delete().await?;
    wait_gone(&Api::<Namespace>::all(cp.client().await?), ns.name()).await?;
    let patched = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("deployments");
    assert_eq!(patched.len(), 0, "{patched}");
    Ok(())
}

#[tokio::test]
async fn what_the_go_operator_enrolled_is_taken_over_in_place_and_can_be_undone() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("adopted").await?;
    ns.accepts(&deployment("web", 1)).await?;
    let api = ns.api::<Deployment>();
    let original = essence(&api.get("web").await?);
    // What its full updates leave: the same keys, another hash, field manager `manager`.
    let theirs = json!({
        "metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_UPSTREAM}},
        "spec": {"template": {"metadata": {
            "labels": {keys::LABEL_TYPE: "agent"},
            "annotations": {keys::ANNOTATION_CONFIG_HASH: "57de3ab75a7e36a3c4c47bcbffb87948375167db5b7022552820c708ce312550"}}}},
    });
    let parameters = PatchParams { field_manager: Some(keys::MANAGER_UPSTREAM.into()), ..PatchParams::default() };
    api.patch("web", &parameters, &Patch::Merge(theirs)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({"metadata": {"finalizers": [keys::FINALIZER]}}))).await?;
    // It is ours as it stands; when it rolls to our hash depends on the fleet.
    wait_for(&api, "web", |web| web.labels().contains_key(keys::LABEL_MANAGED_BY)).await?;
    let told = |art: &AgentRuntime| ["False/RolloutPending", "True/Configured"].contains(&&*condition(art, "Ready"));
    wait_for(&ns.api::<AgentRuntime>(), "weather", told).await?;
    delete_art(&ns, "weather").await?;
    wait_for(&api, "web", |web| hash(web).is_none()).await?;
    assert_eq!(essence(&api.get("web").await?), original);
    Ok(())
}

#[tokio::test]
async fn case_023_and_bad_targets_are_named_and_their_deletion_ends() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("bad").await?;
    // DaemonSet is a target; a Pod is refused by the schema, and so is an empty name.
    let pod = json!({"spec": {"targetRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}});
    ns.rejects(&art("pod", "Deployment", "p", pod)).await?;
    ns.rejects(&art("empty", "Deployment", "", json!({}))).await?;
    let long = "a".repeat(253);
    ns.accepts(&art(&long, "Deployment", &long, json!({}))).await?;
    says(&ns, &long, "Ready", "False/TargetNotFound").await?;
    ns.accepts(&art("boxed", "Sandbox", "box", json!({}))).await?;
    wait_for(&ns.api::<AgentRuntime>(), "boxed", |art| condition(art, "Ready").starts_with("False/Target")).await?;
    for name in [&*long, "boxed"] {
        delete_art(&ns, name).await?;
    }
    Ok(())
}
