//! One workload: enrolled in one rollout, left alone, and left as it was.

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use webhook_tests::{wait_for, wait_until};

use super::*;

#[tokio::test]
async fn case_001_003_008_009_046_enrolled_in_one_rollout_and_left_as_it_was_whatever_others_applied_meanwhile()
-> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("one").await?;
    let manifest = deployment("web", 3).to_string();
    kubectl(cp, &ns, &["apply", "-f", "-"], &manifest).await?;
    pods(&ns, "web", 3, false).await?;
    let api = ns.api::<Deployment>();
    let original = essence(&api.get("web").await?);

    let mark = cp.audit().mark()?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    let art = rolled(&ns, "weather", 3).await?;
    assert_eq!(art.finalizers(), [keys::FINALIZER]);
    pods(&ns, "web", 3, true).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 2, "the user's, and one for the enrolment");
    let web = api.get("web").await?;
    let hash = hash(&web).unwrap();
    assert_eq!(
        (web.labels()[keys::LABEL_TYPE].as_str(), web.labels()[keys::LABEL_MANAGED_BY].as_str()),
        ("agent", "drawbridge")
    );
    let status = art.status.clone().unwrap();
    assert_eq!((status.config_hash.as_deref(), hash.len()), (Some(hash.as_str()), 64));
    let ready = status.conditions.iter().find(|one| one.type_ == "Ready").unwrap();
    assert!(ready.message.contains("web") && ready.message.contains(&hash[..12]), "{}", ready.message);
    let columns = kubectl(cp, &ns, &["get", "art"], "").await?;
    assert!(columns.contains("agent") && columns.contains("web") && columns.contains("Active"), "case_011: {columns}");

    // Others apply the original: nobody fights.
    kubectl(cp, &ns, &["apply", "-f", "-"], &manifest).await?;
    api.patch("web", &PatchParams::apply("gitops").force(), &Patch::Apply(deployment("web", 3))).await?;
    let mut put = api.get("web").await?;
    put.labels_mut().insert("put".into(), "x".into());
    let mut put = api.replace("web", &PostParams::default(), &put).await?;
    put.labels_mut().remove("put");
    api.replace("web", &PostParams::default(), &put).await?;
    rolled(&ns, "weather", 3).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 2);
    let applied = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("deployments").accepted();
    assert_eq!(applied.len(), 1, "one apply in all:\n{applied}");
    let web = api.get("web").await?;
    let managers: Vec<_> = web.managed_fields().iter().filter_map(|entry| entry.manager.as_deref()).collect();
    assert!(managers.contains(&keys::MANAGER_ENROLMENT) && managers.contains(&"gitops"), "{managers:?}");

    delete_art(&ns, "weather").await?;
    pods(&ns, "web", 3, false).await?;
    assert_eq!(essence(&api.get("web").await?), original);
    assert_eq!(replica_sets(&ns, "web").await?, 2, "back to the user's own ReplicaSet");
    Ok(())
}

#[tokio::test]
async fn case_004_every_kind_is_enrolled_where_it_keeps_its_template() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("kinds").await?;
    let selector = |name: &str| json!({"matchLabels": {"app": name}});
    let mut job = template("timed");
    job["spec"]["restartPolicy"] = json!("Never");
    let spec = |name: &str| json!({"selector": selector(name), "serviceName": name, "template": template(name)});
    let mut daemon = spec("daemon");
    daemon.as_object_mut().unwrap().remove("serviceName");
    for (kind, name, spec) in [
        ("StatefulSet", "set", spec("set")),
        ("DaemonSet", "daemon", daemon),
        ("CronJob", "timed", json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": job}}})),
    ] {
        let api = if kind == "CronJob" { "batch/v1" } else { "apps/v1" };
        ns.accepts(&json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec})).await?;
        ns.accepts(&art(name, kind, name, json!({}))).await?;
    }
    rolled(&ns, "set", 1).await?;
    rolled(&ns, "daemon", 1).await?;
    rolled(&ns, "timed", 0).await?;
    let labels = |template: Value| template["metadata"]["labels"][keys::LABEL_TYPE] == "agent";
    assert!(labels(serde_json::to_value(ns.api::<StatefulSet>().get("set").await?.spec.unwrap().template)?));
    assert!(labels(serde_json::to_value(ns.api::<DaemonSet>().get("daemon").await?.spec.unwrap().template)?));
    let timed = ns.api::<CronJob>().get("timed").await?.spec.unwrap().job_template.spec.unwrap().template;
    assert!(labels(serde_json::to_value(timed)?));
    for name in ["set", "daemon", "timed"] {
        delete_art(&ns, name).await?;
    }
    let plain = |set: &StatefulSet| {
        !set.spec
            .as_ref()
            .unwrap()
            .template
            .metadata
            .as_ref()
            .unwrap()
            .labels
            .as_ref()
            .unwrap()
            .contains_key(keys::LABEL_TYPE)
    };
    wait_for(&ns.api::<StatefulSet>(), "set", plain).await?;
    Ok(())
}

#[tokio::test]
async fn case_006_and_028_a_tool_is_active_and_another_type_is_one_rollout() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("types").await?;
    ns.accepts(&deployment("web", 1)).await?;
    pods(&ns, "web", 1, false).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({"spec": {"type": "tool"}}))).await?;
    rolled(&ns, "weather", 1).await?;
    let web = ns.api::<Deployment>().get("web").await?;
    assert_eq!((web.labels()[keys::LABEL_TYPE].as_str(), hash(&web).as_deref()), ("tool", Some(keys::HASH_OF_NOTHING)));
    merge::<AgentRuntime>(&ns, "weather", json!({"spec": {"type": "agent"}})).await?;
    rolled(&ns, "weather", 1).await?;
    pods(&ns, "web", 1, true).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 3);
    Ok(())
}

#[tokio::test]
async fn case_022_024_047_a_target_that_comes_and_goes() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("comes").await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    let art = says(&ns, "weather", "TargetResolved", "False/TargetNotFound").await?;
    assert_eq!(condition(&art, "Ready"), "False/TargetNotFound");
    let reason = |event: &Event| event.reason.as_deref() == Some("TargetNotFound");
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(reason)).await?;
    ns.accepts(&deployment("web", 1)).await?;
    rolled(&ns, "weather", 1).await?;
    ns.api::<Deployment>().delete("web", &DeleteParams::foreground()).await?;
    let art = says(&ns, "weather", "Ready", "False/TargetNotFound").await?;
    assert_eq!(art.status.unwrap().configured_pods, None);
    let told = ns.api::<Event>().list(&ListParams::default()).await?.items.iter().filter(|event| reason(event)).count();
    assert!(told <= 3, "on change only: {told}");
    delete_art(&ns, "weather").await
}

#[tokio::test]
async fn case_027_a_label_that_a_person_takes_off_comes_back() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("restored").await?;
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let off = json!({"metadata": {"labels": {keys::LABEL_TYPE: null}}, "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}});
    merge::<Deployment>(&ns, "web", off).await?;
    let back = |web: &Deployment| web.labels().contains_key(keys::LABEL_TYPE);
    wait_for(&ns.api::<Deployment>(), "web", back).await?;
    rolled(&ns, "weather", 1).await?;
    Ok(())
}

#[tokio::test]
async fn a_foreign_type_label_and_a_selector_that_forbids_ours_are_named_and_nothing_is_forced() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("conflicts").await?;
    let mut labelled = deployment("labelled", 1);
    labelled["metadata"]["labels"][keys::LABEL_TYPE] = json!("tool");
    let mut fixed = deployment("fixed", 1);
    fixed["spec"]["selector"]["matchExpressions"] = json!([{"key": keys::LABEL_TYPE, "operator": "DoesNotExist"}]);
    let mut before = Vec::new();
    for (name, object) in [("labelled", labelled), ("fixed", fixed)] {
        ns.accepts(&object).await?;
        before.push(essence(&ns.api::<Deployment>().get(name).await?));
        ns.accepts(&art(name, "Deployment", name, json!({}))).await?;
    }
    says(&ns, "labelled", "Ready", "False/LabelConflict").await?;
    let art = says(&ns, "fixed", "Ready", "False/ImmutableSelector").await?;
    assert_eq!(condition(&art, "Stalled"), "True/ImmutableSelector");
    for (name, before) in ["labelled", "fixed"].into_iter().zip(before) {
        delete_art(&ns, name).await?;
        assert_eq!(essence(&ns.api::<Deployment>().get(name).await?), before);
    }
    Ok(())
}

#[tokio::test]
async fn case_050_what_others_write_at_the_same_time_survives() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("busy").await?;
    ns.accepts(&deployment("web", 1)).await?;
    let writer = async {
        for number in 0..40 {
            merge::<Deployment>(&ns, "web", json!({"metadata": {"annotations": {"count": number.to_string()}}}))
                .await?;
        }
        anyhow::Ok(())
    };
    let enrolling = async {
        ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
        rolled(&ns, "weather", 1).await
    };
    let (written, enrolled) = tokio::join!(writer, enrolling);
    written?;
    enrolled?;
    let web = ns.api::<Deployment>().get("web").await?;
    assert_eq!((web.annotations()["count"].as_str(), replica_sets(&ns, "web").await? <= 2), ("39", true));
    Ok(())
}
