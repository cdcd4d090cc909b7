//! Numbered cases of AgentRuntimes (docs/cases.md) that need little of a story, and bad input.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::json;
use tokio::time::Instant;
use webhook_tests::patience::patience;
use webhook_tests::{wait_for, wait_until};

use super::*;

#[tokio::test]
async fn case_005_007_what_the_user_wrote_stays_when_it_begins_and_when_it_ends() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("users").await?;
    let mut web = deployment("web", 1);
    // By hand, on the workload and not on its Pods: that enrols by itself, before the AgentRuntime and after it.
    web["metadata"]["labels"][keys::LABEL_TYPE] = json!("agent");
    web["metadata"]["labels"][keys::LABEL_APP_MANAGED_BY] = json!("Helm");
    ns.accepts(&web).await?;
    pods(&ns, "web", 1, true).await?;
    let original = essence(&ns.api::<Deployment>().get("web").await?);
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let web = ns.api::<Deployment>().get("web").await?;
    let template = web.spec.clone().unwrap().template.metadata.unwrap();
    assert_eq!(template.annotations.unwrap()["team"], "weather");
    assert_eq!(template.labels.unwrap()["app"], "web");
    // Not as the Go operator has it: the marker is a label of ours; somebody's managed-by is never written.
    assert_eq!(
        (&*web.labels()[keys::LABEL_APP_MANAGED_BY], &*web.labels()[keys::LABEL_MANAGED_BY]),
        ("Helm", "drawbridge")
    );
    delete_art(&ns, "weather").await?;
    assert_eq!(essence(&ns.api::<Deployment>().get("web").await?), original, "enrolled by the label, as before");
    pods(&ns, "web", 1, true).await?;
    // What was there before the label comes back with the label's end.
    merge::<Deployment>(&ns, "web", json!({"metadata": {"labels": {keys::LABEL_TYPE: null}}})).await?;
    pods(&ns, "web", 1, false).await?;
    let web = ns.api::<Deployment>().get("web").await?;
    let mut plain = deployment("web", 1);
    plain["metadata"]["labels"][keys::LABEL_APP_MANAGED_BY] = json!("Helm");
    let template = web.spec.as_ref().and_then(|spec| spec.template.metadata.clone());
    assert_eq!(
        (json!(web.labels()), serde_json::to_value(template)?),
        (plain["metadata"]["labels"].clone(), plain["spec"]["template"]["metadata"].clone()),
    );
    Ok(())
}

#[tokio::test]
async fn case_009_010_pods_of_others_are_not_counted_whatever_their_name_and_label() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("count").await?;
    for (name, replicas) in [("a", 1), ("a-b", 2)] {
        ns.accepts(&deployment(name, replicas)).await?;
        ns.accepts(&art(name, "Deployment", name, json!({}))).await?;
    }
    let mut foreign = template("a");
    foreign["apiVersion"] = json!("v1");
    foreign["kind"] = json!("Pod");
    foreign["metadata"]["name"] = json!("foreign");
    foreign["metadata"]["labels"] = json!({"app": "foreign", keys::LABEL_TYPE: "agent"});
    ns.accepts(&foreign).await?;
    pods(&ns, "foreign", 1, true).await?;
    rolled(&ns, "a-b", 2).await?;
    rolled(&ns, "a", 1).await?;
    Ok(())
}

#[tokio::test]
async fn case_017_018_019_one_owner_per_workload_and_an_update_is_no_collision() -> Result<()> {
    let cp = control_plane().await?;
    let (ns, other) = (cp.namespace("owners").await?, cp.namespace("elsewhere").await?);
    ns.accepts(&art("first", "Deployment", "web", json!({}))).await?;
    let message = ns.until_refused(&art("second", "Deployment", "web", json!({})), "Deployment web").await?.message;
    assert!(message.contains("first") && message.contains("Deployment web"), "{message}");
    ns.accepts(&art("second", "StatefulSet", "web", json!({}))).await?;
    other.accepts(&art("second", "Deployment", "web", json!({}))).await?;
    merge::<AgentRuntime>(&ns, "first", json!({"spec": {"authBridgeMode": "envoy-sidecar"}})).await?;
    merge::<AgentRuntime>(&ns, "first", json!({"metadata": {"labels": {"touched": "yes"}}})).await?;
    Ok(())
}

#[tokio::test]
async fn case_039_namespace_config_maps_come_with_the_enrolment_and_are_their_editors() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("maps").await?;
    let maps = ns.api::<ConfigMap>();
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    let copy = wait_for(&maps, keys::CONFIG_MAP_AUTHBRIDGE, |_| true).await?;
    // Not as the Go operator has it: `drawbridge` is written.
    assert_eq!(copy.labels()[keys::LABEL_APP_MANAGED_BY], "drawbridge");
    assert!(copy.owner_references().is_empty());
    rolled(&ns, "weather", 1).await?;
    let mark = cp.audit().mark()?;
    merge::<ConfigMap>(&ns, keys::CONFIG_MAP_AUTHBRIDGE, json!({"data": {"ISSUER": "https://edited.example.com"}}))
        .await?;
    // The edit is configuration, and reaches the Pods.
    wait_for(&ns.api::<Deployment>(), "web", |web| web.annotations().contains_key("kagenti.io/rolled-for")).await?;
    rolled(&ns, "weather", 1).await?;
    delete_art(&ns, "weather").await?;
    let written = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("configmaps");
    assert!(written.is_empty(), "{written}");
    assert_eq!(maps.get(keys::CONFIG_MAP_AUTHBRIDGE).await?.data.unwrap()["ISSUER"], "https://edited.example.com");
    Ok(())
}

#[tokio::test]
async fn case_040_config_maps_that_are_forbidden_are_named_and_the_rest_goes_on() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("quota").await?;
    // Room for none at all: what Kubernetes itself puts into a new namespace may be counted or not.
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/configmaps": "0"}}});
    ns.accepts(&quota).await?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "one-more-"}});
    ns.until_refused(&map, "exceeded quota: none").await?;
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    let art = says(&ns, "weather", "ConfigResolved", "True/ConfigWarning").await?;
    let status = art.status.unwrap();
    let said = &status.conditions.iter().find(|one| one.type_ == "ConfigResolved").unwrap().message;
    assert!(said.contains(keys::CONFIG_MAP_AUTHBRIDGE) && said.contains("exceeded quota"), "{said}");
    let told = |event: &Event| event.reason.as_deref() == Some("ConfigWarning");
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(told)).await?;
    let art = says(&ns, "weather", "Ready", "True/Configured").await?;
    assert_eq!(serde_json::to_value(art.status.unwrap().phase)?, "Active");
    Ok(())
}

#[tokio::test]
async fn case_048_a_workload_that_cannot_be_written_keeps_the_finalizer_until_it_can() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("kept").await?;
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let name = ns.name();
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
                "resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments"]}]},
            "matchConditions": [{"name": "ours", "expression": format!("request.userInfo.username == '{USER}'")}],
            "validations": [{"expression": "false", "message": "frozen for a test", "reason": "Forbidden"}]}});
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    ns.accepts(&policy).await?;
    ns.accepts(&binding).await?;
    let deadline = Instant::now() + patience();
    let controllers = cp.service_account(keys::OPERATOR_NAMESPACE, "drawbridge-controllers").await?.client().await?;
    let frozen = async || {
        let api: Api<Deployment> = Api::namespaced(controllers.clone(), name);
        let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
        // A key of ours: what else this account may not write is refused before anybody asks this policy.
        let tried = json!({"metadata": {"annotations": {"kagenti.io/tried": "yes"}}});
        api.patch("web", &parameters, &Patch::Merge(tried))
            .await
            .is_err_and(|error| error.to_string().contains("frozen for a test"))
    };
    while !frozen().await {
        ensure!(Instant::now() < deadline, "the policy is never in force");
    }
    ns.api::<AgentRuntime>().delete("weather", &DeleteParams::default()).await?;
    let mark = cp.audit().mark()?;
    let refused =
        |requests: &Requests| requests.iter().any(|one| one.resource == "deployments" && one.code == Some(403));
    while !refused(&writes(cp.audit().since(mark)?).in_namespace(name)) {
        ensure!(Instant::now() < deadline + patience(), "the un-enrolment is never tried");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let art = ns.api::<AgentRuntime>().get("weather").await?;
    assert_eq!(art.finalizers(), [keys::FINALIZER]);
    assert!(hash(&ns.api::<Deployment>().get("web").await?).is_some(), "still enrolled");
    for kind in ["validatingadmissionpolicybinding", "validatingadmissionpolicy"] {
        let output = cp.kubectl(cp.admin(), &["delete", kind, name], "").await?;
        ensure!(output.success, "{output:?}");
    }
    while frozen().await {
        ensure!(Instant::now() < deadline + 2 * patience(), "the policy stays in force");
    }
    // A change is tried sooner than the same again.
    merge::<Deployment>(&ns, "web", json!({"metadata": {"annotations": {"touched": "yes"}}})).await?;
    wait_gone(&ns.api::<AgentRuntime>(), "weather").await.context("the un-enrolment is never tried again")?;
    assert!(hash(&ns.api::<Deployment>().get("web").await?).is_none());
    Ok(())
}

#[tokio::test]
async fn case_052_changes_that_mean_nothing_to_us_write_nothing_and_make_no_events() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("quiet").await?;
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let mark = cp.audit().mark()?;
    for number in 0..300 {
        let label = json!({"metadata": {"labels": {"kagenti.io/turn": number.to_string()}}});
        merge::<Deployment>(&ns, "web", label.clone()).await?;
        merge::<AgentRuntime>(&ns, "weather", label).await?;
    }
    let generation =
        merge::<AgentRuntime>(&ns, "weather", json!({"spec": {"authBridgeMode": "envoy-sidecar"}})).await?;
    let generation = generation.metadata.generation;
    let seen = |art: &AgentRuntime| art.status.as_ref().and_then(|status| status.observed_generation) == generation;
    wait_for(&ns.api::<AgentRuntime>(), "weather", seen).await?;
    let made = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).accepted();
    assert!(made.len() <= 1, "one status for the last change, which says what was in force already: {made}");
    assert!(made.resource("events").is_empty());
    Ok(())
}

#[tokio::test]
async fn a_manifest_that_is_replaced_whole_is_enrolled_again_and_leaves_nothing_behind() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("replaced").await?;
    let manifest = deployment("web", 1);
    ns.accepts(&manifest).await?;
    pods(&ns, "web", 1, false).await?;
    let original = essence(&ns.api::<Deployment>().get("web").await?);
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let before = ns.api::<Deployment>().get("web").await?;
    kubectl(cp, &ns, &["replace", "-f", "-"], &manifest.to_string()).await?;
    let again = |web: &Deployment| hash(web) == hash(&before) && web.metadata.generation > before.metadata.generation;
    wait_for(&ns.api::<Deployment>(), "web", again).await?;
    rolled(&ns, "weather", 1).await?;
    pods(&ns, "web", 1, true).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 2, "both templates are known");
    delete_art(&ns, "weather").await?;
    pods(&ns, "web", 1, false).await?;
    assert_eq!(essence(&ns.api::<Deployment>().get("web").await?), original);
    Ok(())
}

#[tokio::test]
async fn a_target_that_is_being_deleted_is_named_and_its_successor_is_enrolled() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("going").await?;
    let api = ns.api::<Deployment>();
    let mut web = deployment("web", 1);
    web["metadata"]["finalizers"] = json!(["example.com/hold"]);
    ns.accepts(&web).await?;
    api.delete("web", &DeleteParams::default()).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    let art = says(&ns, "weather", "Ready", "False/TargetNotFound").await?;
    let status = art.status.unwrap();
    assert!(status.conditions.iter().any(|one| one.message.contains("being deleted")), "{:?}", status.conditions);
    assert_eq!(hash(&api.get("web").await?), None, "nothing is written on it");
    merge::<Deployment>(&ns, "web", json!({"metadata": {"finalizers": null}})).await?;
    wait_gone(&api, "web").await?;
    ns.accepts(&deployment("web", 1)).await?;
    rolled(&ns, "weather", 1).await?;
    Ok(())
}

#[tokio::test]
async fn d18_names_at_their_limits_are_enrolled_like_any_other() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("names").await?;
    // As long as the ReplicaSet's suffix allows, and an AgentRuntime of 253 characters.
    let (long, longest) = (format!("a.{}", "b".repeat(236)), "c".repeat(253));
    let mut web = deployment(&long, 1);
    for pointer in ["/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        *web.pointer_mut(pointer).unwrap() = json!({"app": "long"});
    }
    ns.accepts(&web).await?;
    ns.accepts(&art(&longest, "Deployment", &long, json!({}))).await?;
    rolled(&ns, &longest, 1).await?;
    let pods = ns.api::<Pod>().list(&ListParams::default().labels("app=long")).await?.items;
    let injected = |pod: &&Pod| pod.annotations().contains_key(keys::ANNOTATION_STATUS);
    assert!(pods.iter().any(|pod| injected(&pod)), "{pods:?}");
    delete_art(&ns, &longest).await
}
