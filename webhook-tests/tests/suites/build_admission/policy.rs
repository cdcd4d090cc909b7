//! B34: steps of one's own are taken from people who could run them themselves. The API server's policy
//! asks for the requester's rights; tried with people who have and who lack them, the garbage collector, and labels.

use anyhow::Result;
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};
use webhook_tests::{Objects, TestNamespace, wait_gone};

use super::people::{self, rule};
use super::{annotation, builds, minimal, origin, own, own_template, settled, step, team, with};

/// Somebody who may write AgentBuilds of the namespace, and perhaps create PipelineRuns.
async fn person(ns: &TestNamespace, name: &str, may_run: bool) -> Result<Objects> {
    let builds = rule("agent.kagenti.dev", "agentbuilds", &["get", "create", "update", "patch", "delete"]);
    if may_run {
        let runs = rule("tekton.dev", "pipelineruns", &["create"]);
        return people::person(ns, name, &[builds, runs], &custom("probe")).await;
    }
    people::person(ns, name, &[builds], &minimal("probe")).await
}

fn custom(name: &str) -> Value {
    with(name, json!({"pipeline": {"steps": [{"name": "clone", "configMap": "github-clone-step"}]}}))
}

async fn patched(objects: &Objects, name: &str, patch: Value) -> kube::Result<DynamicObject> {
    people::patched(objects, "AgentBuild", name, patch).await
}

fn refused_by_policy(answer: kube::Result<DynamicObject>) -> Result<()> {
    people::refused_by("drawbridge-custom-steps", answer).map(drop)
}

async fn refused(objects: &Objects, object: &Value) -> Result<()> {
    refused_by_policy(people::tried(objects, object).await?)
}

#[tokio::test]
async fn case_b34_template_steps_are_for_everybody_and_own_steps_for_who_could_run_them() -> Result<()> {
    let ns = team().await?;
    let (lacks, has) = (person(&ns, "lacks", false).await?, person(&ns, "has", true).await?);
    lacks.accepts(&minimal("template")).await?;
    refused(&lacks, &custom("own")).await?;
    let stored = has.accepts(&custom("own")).await?;
    assert_eq!(origin(&stored), "user");
    let mut claims = custom("claims");
    claims["metadata"]["annotations"] = json!({"agent.kagenti.dev/pipeline-origin": "template/dev"});
    refused(&lacks, &claims).await?;

    let edit = json!({"spec": {"pipeline": {"steps": [{"name": "other", "configMap": "github-clone-step"}]}}});
    refused_by_policy(patched(&lacks, "template", edit.clone()).await)?;
    refused_by_policy(patched(&lacks, "own", edit.clone()).await)?;
    let parameters = json!({"spec": {"pipeline": {"parameters": [{"name": "a", "value": "b"}]}}});
    refused_by_policy(patched(&lacks, "own", parameters).await)?;
    refused_by_policy(patched(&lacks, "own", json!({"spec": {"mode": "custom"}})).await)?;
    patched(&has, "own", edit).await?;
    Ok(())
}

#[tokio::test]
async fn labels_revisions_and_deletion_need_no_more_right_than_before() -> Result<()> {
    let ns = team().await?;
    let lacks = person(&ns, "lacks", false).await?;
    ns.accepts(&custom("own")).await?;
    patched(&lacks, "own", json!({"metadata": {"labels": {"team": "a"}}})).await?;
    patched(&lacks, "own", json!({"spec": {"source": {"sourceRevision": "v2"}}})).await?;
    people::api(&lacks, "AgentBuild").delete("own", &DeleteParams::default()).await?;
    wait_gone(&builds(&ns), "own").await?;
    Ok(())
}

#[tokio::test]
async fn the_garbage_collector_ends_a_foreground_deletion() -> Result<()> {
    let ns = team().await?;
    let stored = ns.accepts(&custom("own")).await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dependent", "ownerReferences": [
        {"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild", "name": "own", "uid": stored.metadata.uid,
            "blockOwnerDeletion": true}]}}))
        .await?;
    builds(&ns).delete("own", &DeleteParams::foreground()).await?;
    wait_gone(&builds(&ns), "own").await?;
    wait_gone(&ns.api::<ConfigMap>(), "dependent").await?;
    Ok(())
}

/// A template and steps that a tenant may write are the tenant's own steps, whatever the origin says.
#[tokio::test]
async fn a_template_of_ones_own_namespace_is_no_way_round() -> Result<()> {
    let ns = team().await?;
    own_template(&ns).await?;
    let (lacks, has) = (person(&ns, "lacks", false).await?, person(&ns, "has", true).await?);
    refused(&lacks, &own(&ns, "weather", json!({}))).await?;
    lacks.accepts(&minimal("weather")).await?;
    refused_by_policy(patched(&lacks, "weather", json!({"spec": {"pipeline": {"namespace": ns.name()}}})).await)?;
    let stored = has.accepts(&own(&ns, "mine", json!({}))).await?;
    assert_eq!(origin(&stored), "template/dev");
    patched(&lacks, "mine", json!({"metadata": {"annotations": {"team": "a"}}})).await?;
    Ok(())
}

/// Steps that have changed since the review are brought by whoever accepts them, not by whoever brought them first.
#[tokio::test]
async fn accepting_steps_that_have_changed_takes_the_right_to_run_them() -> Result<()> {
    let ns = team().await?;
    own_template(&ns).await?;
    let (lacks, has) = (person(&ns, "lacks", false).await?, person(&ns, "has", true).await?);
    let wish = |value: &str| json!({"metadata": {"annotations": {keys::ANNOTATION_REFRESH_TEMPLATE: value}}});
    let mine = json!({"mode": "custom", "pipeline": {"steps": [{"name": "mine", "configMap": "own-step"}]}});
    let first = has.accepts(&own(&ns, "mine", mine)).await?;
    patched(&lacks, "mine", wish("nothing has changed")).await?;
    let reviewed = annotation(&first, keys::ANNOTATION_STEP_HASHES).to_owned();
    ns.apply(&step("own-step", &super::TASK.replace("true", "id")).to_string()).await?;
    settled(&ns, &own(&ns, "probe", json!({})), |answer| {
        answer.as_ref().is_ok_and(|object| annotation(object, keys::ANNOTATION_STEP_HASHES) != reviewed)
    })
    .await?;
    refused_by_policy(patched(&lacks, "mine", wish("mine now")).await)?;
    let accepted = patched(&has, "mine", wish("mine now")).await?;
    assert_ne!(annotation(&accepted, keys::ANNOTATION_STEP_HASHES), reviewed);
    Ok(())
}
