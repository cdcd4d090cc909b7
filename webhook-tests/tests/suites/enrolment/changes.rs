//! A change of configuration rolls exactly the workloads whose injected result it changes, once.

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::{wait_for, wait_until};

use super::*;

fn defaults(name: &str, text: &str) -> ConfigMap {
    let object =
        json!({"metadata": {"name": name, "labels": {keys::LABEL_DEFAULTS: "true"}}, "data": {"config.yaml": text}});
    serde_json::from_value(object).unwrap()
}

async fn hash_other_than(ns: &TestNamespace, name: &str, old: Option<&String>) -> Result<String> {
    let web = wait_for(&ns.api::<Deployment>(), name, |web| hash(web).as_ref() != old && hash(web).is_some()).await?;
    Ok(hash(&web).unwrap())
}

#[tokio::test]
async fn case_029_030_031_every_field_of_an_agent_runtime_that_reaches_the_pods_is_one_rollout() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("fields").await?;
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let sets = replica_sets(&ns, "web").await?;
    let mut old = hash(&ns.api::<Deployment>().get("web").await?);
    // The mode counts by decision; so does what becomes OTEL_* variables.
    for (round, spec) in [
        json!({"authBridgeMode": "proxy-sidecar"}),
        json!({"trace": {"endpoint": "http://otel:4318", "protocol": "http", "sampling": {"rate": 0}}}),
    ]
    .into_iter()
    .enumerate()
    {
        merge::<AgentRuntime>(&ns, "weather", json!({"spec": spec})).await?;
        old = Some(hash_other_than(&ns, "web", old.as_ref()).await?);
        rolled(&ns, "weather", 1).await?;
        assert_eq!(replica_sets(&ns, "web").await?, sets + round + 1);
    }
    let art = ns.api::<AgentRuntime>().get("weather").await?;
    let effective = art.status.unwrap().effective.unwrap();
    assert_eq!(effective.mode.as_deref(), Some("proxy-sidecar"));
    assert!(
        effective.values.iter().any(|value| value.field == "mode" && value.from == "AgentRuntime weather"),
        "{effective:?}"
    );
    let running = pods(&ns, "web", 1, true).await?;
    let env = running[0]
        .spec
        .as_ref()
        .unwrap()
        .containers
        .iter()
        .find(|one| one.name == "agent")
        .unwrap()
        .env
        .clone()
        .unwrap();
    assert!(env.iter().any(|one| one.name == "OTEL_EXPORTER_OTLP_ENDPOINT"), "{env:?}");
    Ok(())
}

#[tokio::test]
async fn case_034_035_036_namespace_defaults_roll_their_namespace_and_their_end_brings_the_hash_back() -> Result<()> {
    let cp = control_plane().await?;
    let (ns, other) = (cp.namespace("defaults").await?, cp.namespace("neighbour").await?);
    for ns in [&ns, &other] {
        ns.accepts(&deployment("web", 1)).await?;
        ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
        rolled(ns, "weather", 1).await?;
    }
    let first = hash(&ns.api::<Deployment>().get("web").await?);
    let neighbours = hash(&other.api::<Deployment>().get("web").await?);
    assert_eq!(first, neighbours, "case_032");
    let maps = ns.api::<ConfigMap>();
    // A key that reaches no Pod of this mode changes nothing.
    maps.create(&PostParams::default(), &defaults("a-defaults", "resources: {authbridge: {limits: {cpu: '1'}}}\n"))
        .await?;
    maps.create(&PostParams::default(), &defaults("b-defaults", "trace: {endpoint: 'http://otel:4318'}\n")).await?;
    hash_other_than(&ns, "web", first.as_ref()).await?;
    rolled(&ns, "weather", 1).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 3, "two ConfigMaps, one of them with an effect: one rollout");
    // Not as the Go operator has it: several are merged in name order, so there is nothing to warn of.
    assert_eq!(condition(&ns.api::<AgentRuntime>().get("weather").await?, "ConfigResolved"), "True/ConfigResolved");
    maps.delete("b-defaults", &DeleteParams::default()).await?;
    wait_for(&ns.api::<Deployment>(), "web", |web| hash(web) == first).await?;
    rolled(&ns, "weather", 1).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 3, "back to the ReplicaSet of that configuration");
    assert_eq!(hash(&other.api::<Deployment>().get("web").await?), neighbours);
    assert_eq!(replica_sets(&other, "web").await?, 2);
    Ok(())
}

#[tokio::test]
async fn case_038_config_maps_that_cannot_be_read_are_named_and_roll_nothing() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("unreadable").await?;
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let before = hash(&ns.api::<Deployment>().get("web").await?);
    let maps = ns.api::<ConfigMap>();
    for (number, text) in
        ["- a list\n".to_owned(), "a: [\n".to_owned(), format!("x: {}", "y".repeat(900_000))].iter().enumerate()
    {
        maps.create(&PostParams::default(), &defaults(&format!("bad-{number}"), text)).await?;
    }
    says(&ns, "weather", "ConfigResolved", "False/NamespaceConfigUnreadable").await?;
    assert_eq!(condition(&ns.api::<AgentRuntime>().get("weather").await?, "Ready"), "True/Configured");
    assert_eq!((hash(&ns.api::<Deployment>().get("web").await?), replica_sets(&ns, "web").await?), (before, 2));
    Ok(())
}

#[tokio::test]
async fn case_041_a_label_alone_makes_one_replica_set_and_a_change_one_more() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("labelled").await?;
    let mut web = deployment("web", 2);
    web["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE] = json!("agent");
    ns.accepts(&web).await?;
    pods(&ns, "web", 2, true).await?;
    let plain = ns.api::<Deployment>().get("web").await?;
    assert_eq!((hash(&plain), replica_sets(&ns, "web").await?), (None, 1));
    let maps = ns.api::<ConfigMap>();
    maps.create(&PostParams::default(), &defaults("team", "trace: {endpoint: 'http://otel:4318'}\n")).await?;
    let wanted = hash_other_than(&ns, "web", None).await?;
    let current = |pod: &Pod| pod.annotations().get(keys::ANNOTATION_CONFIG_HASH) == Some(&wanted);
    let selected = watcher::Config::default().labels("app=web");
    wait_until(&ns.api::<Pod>(), selected, |all| all.len() == 2 && all.values().all(current)).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 2);
    let web = ns.api::<Deployment>().get("web").await?;
    assert!(!web.labels().contains_key(keys::LABEL_MANAGED_BY) && !web.labels().contains_key(keys::LABEL_TYPE));
    // It becomes an AgentRuntime's, and its user's again: the user's own label stays.
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 2).await?;
    delete_art(&ns, "weather").await?;
    let after = ns.api::<Deployment>().get("web").await?;
    let labels = after.spec.unwrap().template.metadata.unwrap().labels.unwrap();
    assert_eq!(labels.get(keys::LABEL_TYPE).map(String::as_str), Some("agent"));
    pods(&ns, "web", 2, true).await?;
    Ok(())
}

#[tokio::test]
async fn paused_workloads_are_written_and_say_why_no_pod_was_replaced() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("paused").await?;
    ns.accepts(&deployment("web", 1)).await?;
    pods(&ns, "web", 1, false).await?;
    merge::<Deployment>(&ns, "web", json!({"spec": {"paused": true}})).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    let art = says(&ns, "weather", "RolloutProgressing", "False/RolloutPaused").await?;
    assert_eq!(condition(&art, "Ready"), "True/Configured");
    says(&ns, "weather", "PodsCurrent", "False/UnprotectedPods").await?;
    merge::<Deployment>(&ns, "web", json!({"spec": {"paused": false}})).await?;
    rolled(&ns, "weather", 1).await?;
    Ok(())
}
