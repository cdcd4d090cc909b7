//! What happens to a stored AgentBuild: B3 to B6, B32, B33, B35 to B37, and the annotations of D-20.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use webhook_tests::{Objects, Request, wait_gone};

use super::{
    annotation, builds, config_map, control_plane, merge, minimal, origin, own, own_template, settled, step_names,
    team, template, with,
};

#[tokio::test]
async fn cases_b3_and_b37_the_same_file_again_changes_nothing_however_it_is_sent() -> Result<()> {
    let ns = team().await?;
    let cp = control_plane().await?;
    let file = minimal("weather").to_string();
    let apply = async || {
        let output = cp.kubectl(cp.admin(), &["-n", ns.name(), "apply", "-f", "-"], &file).await?;
        ensure!(output.success, "{output:?}");
        anyhow::Ok(output.stdout)
    };
    ensure!(apply().await?.contains("created"));
    let first = builds(&ns).get("weather").await?;
    apply().await?;
    let second = builds(&ns).get("weather").await?;
    assert_eq!(
        (second.metadata.generation, &second.data["spec"]),
        (first.metadata.generation, &first.data["spec"]),
        "B3"
    );

    let sent =
        ns.apply_one(&minimal("weather"), false).await?.result.map_err(|status| anyhow::anyhow!(status.message))?;
    assert_eq!(
        (sent.metadata.generation, &sent.data["spec"]),
        (first.metadata.generation, &first.data["spec"]),
        "B37: server-side"
    );
    let again =
        ns.apply_one(&minimal("weather"), false).await?.result.map_err(|status| anyhow::anyhow!(status.message))?;
    assert_eq!(
        (again.metadata.generation, origin(&again)),
        (first.metadata.generation, "template/dev"),
        "B37: server-side again"
    );

    let mut put = minimal("weather");
    put["metadata"]["resourceVersion"] = json!(again.metadata.resource_version);
    let replaced = builds(&ns).replace("weather", &PostParams::default(), &serde_json::from_value(put)?).await?;
    assert_eq!(&replaced.data["spec"], &first.data["spec"], "B37: replaced without steps and annotations");
    assert_eq!((replaced.metadata.generation, origin(&replaced)), (first.metadata.generation, "template/dev"));
    Ok(())
}

#[tokio::test]
async fn cases_b4_and_b32_a_missing_template_stands_in_the_way_of_no_label_and_no_deletion() -> Result<()> {
    let ns = team().await?;
    own_template(&ns).await?;
    let mut object = own(&ns, "weather", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    let stored = ns.accepts(&object).await?;
    assert_eq!(step_names(&stored), ["only"]);
    Objects::delete(&ns, &template("dev", "")).await?;
    settled(&ns, &own(&ns, "probe", json!({})), |answer| {
        answer.as_ref().is_err_and(|message| message.contains("TemplateMissing"))
    })
    .await?;
    let labelled = merge(&ns, "weather", json!({"metadata": {"labels": {"team": "a"}}})).await.context("B4")?;
    assert_eq!(
        (&labelled.data["spec"], labelled.metadata.generation),
        (&stored.data["spec"], stored.metadata.generation)
    );
    assert_eq!(origin(&labelled), "template/dev");
    builds(&ns).delete("weather", &DeleteParams::default()).await?;
    merge(&ns, "weather", json!({"metadata": {"finalizers": null}})).await.context("B32")?;
    wait_gone(&builds(&ns), "weather").await?;
    Ok(())
}

#[tokio::test]
async fn cases_b5_and_b6_another_mode_brings_its_steps_and_an_edited_step_is_the_users() -> Result<()> {
    let ns = team().await?;
    ns.accepts(&minimal("weather")).await?;
    let moved = merge(&ns, "weather", json!({"spec": {"mode": "buildpack-dev"}})).await?;
    assert_eq!(
        (step_names(&moved).len(), origin(&moved)),
        (3, "template/buildpack-dev"),
        "B5: {:?}",
        step_names(&moved)
    );
    let patch: json_patch::Patch =
        serde_json::from_value(json!([{"op": "add", "path": "/spec/pipeline/steps/1/enabled", "value": false}]))?;
    let edited = builds(&ns).patch("weather", &PatchParams::default(), &Patch::<()>::Json(patch)).await?;
    assert_eq!(edited.data["spec"]["pipeline"]["steps"][1]["enabled"], false, "B6");
    assert_eq!(origin(&edited), "user", "B6");
    let kept = merge(&ns, "weather", json!({"spec": {"mode": "dev"}})).await?;
    assert_eq!((step_names(&kept).len(), origin(&kept)), (3, "user"), "the user's steps stay");
    let emptied = merge(&ns, "weather", json!({"spec": {"pipeline": {"steps": null}}})).await?;
    assert_eq!(
        (step_names(&emptied).len(), origin(&emptied)),
        (5, "template/dev"),
        "without steps the template's come back"
    );
    Ok(())
}

/// Another pipeline.namespace is another template.
#[tokio::test]
async fn another_pipeline_namespace_brings_the_steps_from_there_and_records_what_they_are() -> Result<()> {
    let ns = team().await?;
    own_template(&ns).await?;
    let first = ns.accepts(&minimal("weather")).await?;
    assert_eq!(annotation(&first, keys::ANNOTATION_STEP_HASHES), "", "the platform's own steps are not pinned");
    let moved = merge(&ns, "weather", json!({"spec": {"pipeline": {"namespace": ns.name()}}})).await?;
    assert_eq!(step_names(&moved), ["only"]);
    let hashes = annotation(&moved, keys::ANNOTATION_STEP_HASHES);
    let hashes: serde_json::Value = serde_json::from_str(hashes).context("step hashes")?;
    assert_eq!(hashes["own-step"].as_str().map(str::len), Some(64), "{hashes}");
    Ok(())
}

/// B33 is overridden: nothing is looked up, so nothing can time out.
#[tokio::test]
async fn case_b33_a_review_asks_the_api_server_nothing() -> Result<()> {
    let ns = team().await?;
    let cp = control_plane().await?;
    let audit = cp.audit();
    let mark = audit.mark()?;
    for name in ["a", "b", "c"] {
        ns.accepts(&minimal(name)).await?;
        ns.rejects(&with("wrong", json!({"source": {"sourceSubfolder": "../x"}}))).await?;
    }
    let asked = audit.settled(mark).await?.by("system:serviceaccount:kagenti-system:drawbridge-webhook");
    // By itself the webhook follows kinds of all namespaces and what stands in its own, and looks after the certificates of its configurations: at
    // any time, so in this moment, too. A review is about this namespace, or asks of the whole cluster for one object or one right.
    let of_a_review = |request: &Request| {
        let follows = matches!(&*request.verb, "list" | "watch") || request.resource.is_empty();
        let upkeep = request.resource.ends_with("webhookconfigurations");
        request.namespace == ns.name() || (request.namespace.is_empty() && !follows && !upkeep)
    };
    let asked = asked.filter(of_a_review);
    ensure!(asked.is_empty(), "{asked:?}");
    Ok(())
}

/// B35 and D-20 are overridden: any string counts once, and the webhook removes neither annotation.
#[tokio::test]
async fn cases_b35_and_d20_a_wish_counts_once_and_stays_on_the_object() -> Result<()> {
    let ns = team().await?;
    own_template(&ns).await?;
    let first = ns.accepts(&own(&ns, "weather", json!({}))).await?;
    let changed = r#"{"name": "own", "steps": [{"name": "first", "configMap": "own-step"}, {"name": "only", "configMap": "own-step"}]}"#;
    ns.apply(&template("dev", changed).to_string()).await?;
    settled(&ns, &own(&ns, "probe", json!({})), |answer| {
        answer.as_ref().is_ok_and(|object| step_names(object).len() == 2)
    })
    .await?;
    let wish = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    let stays = merge(&ns, "weather", wish("other", "x")).await?;
    assert_eq!(step_names(&stays), ["only"], "nobody asked");
    let fresh = merge(&ns, "weather", wish(keys::ANNOTATION_REFRESH_TEMPLATE, "true")).await?;
    assert_eq!(step_names(&fresh), ["first", "only"], "B35");
    assert_eq!(annotation(&fresh, keys::ANNOTATION_REFRESH_TEMPLATE), "true", "B35: never removed");
    assert_eq!(annotation(&fresh, keys::ANNOTATION_REFRESH_HANDLED), "true");
    let (before, after) = (
        annotation(&first, keys::ANNOTATION_PIPELINE_TEMPLATE),
        annotation(&fresh, keys::ANNOTATION_PIPELINE_TEMPLATE),
    );
    assert_ne!(before, after, "B35: the hash is new");
    ns.apply(&template("dev", super::TEMPLATE).to_string()).await?;
    settled(&ns, &own(&ns, "probe", json!({})), |answer| {
        answer.as_ref().is_ok_and(|object| step_names(object).len() == 1)
    })
    .await?;
    let left = merge(&ns, "weather", wish("other", "y")).await?;
    assert_eq!(step_names(&left), ["first", "only"], "the annotation left in a manifest acts once");
    let again = merge(&ns, "weather", wish(keys::ANNOTATION_REFRESH_TEMPLATE, "once more")).await?;
    assert_eq!(step_names(&again), ["only"], "another string is another wish");
    let cancelled = merge(&ns, "weather", wish("agent.kagenti.dev/cancel", "please")).await?;
    assert_eq!(annotation(&cancelled, "agent.kagenti.dev/cancel"), "please", "D-20: any string, never removed here");
    assert_eq!(&cancelled.data["spec"], &again.data["spec"]);
    Ok(())
}

#[tokio::test]
async fn case_b36_false_stays_false_through_a_metadata_patch() -> Result<()> {
    let ns = team().await?;
    ns.accepts(&with("weather", json!({"cleanupAfterBuild": false}))).await?;
    let held = merge(&ns, "weather", json!({"metadata": {"finalizers": ["agent.kagenti.dev/finalizer"]}})).await?;
    assert_eq!(held.data["spec"]["cleanupAfterBuild"], false);
    let read = builds(&ns).get("weather").await?;
    assert_eq!((&read.data["spec"]["cleanupAfterBuild"], read.metadata.generation), (&json!(false), Some(1)));
    Ok(())
}

/// What the webhook alone writes is computed anew, whatever a user writes into it.
#[tokio::test]
async fn annotations_of_the_webhook_cannot_be_edited() -> Result<()> {
    let ns = team().await?;
    let first = ns.accepts(&minimal("weather")).await?;
    let edits = json!({"metadata": {"annotations": {
        keys::ANNOTATION_PIPELINE_ORIGIN: "template/prod",
        keys::ANNOTATION_PIPELINE_TEMPLATE: null,
        keys::ANNOTATION_STEP_HASHES: "{}",
    }}});
    let after = merge(&ns, "weather", edits).await?;
    for key in [keys::ANNOTATION_PIPELINE_ORIGIN, keys::ANNOTATION_PIPELINE_TEMPLATE, keys::ANNOTATION_STEP_HASHES] {
        assert_eq!(annotation(&after, key), annotation(&first, key), "{key}");
    }
    Ok(())
}

/// A step ConfigMap counts while it carries the label; one of the operator's namespace needs none.
#[tokio::test]
async fn a_step_without_its_label_is_no_step() -> Result<()> {
    let ns = team().await?;
    own_template(&ns).await?;
    let says = |holds: bool| {
        move |answer: &Result<kube::api::DynamicObject, String>| {
            answer
                .as_ref()
                .is_ok_and(|object| annotation(object, keys::ANNOTATION_STEP_HASHES).contains("own-step") == holds)
        }
    };
    let plain = config_map("own-step", json!({}), keys::KEY_TASK_SPEC, super::TASK);
    Objects::delete(&ns, &plain).await?;
    ns.accepts(&plain).await?;
    settled(&ns, &own(&ns, "probe", json!({})), says(false)).await?;
    let labelled = json!({"metadata": {"labels": {keys::LABEL_STEP: keys::LABEL_STEP_VALUE}}});
    let maps = ns.api::<k8s_openapi::api::core::v1::ConfigMap>();
    maps.patch("own-step", &PatchParams::default(), &Patch::Merge(labelled)).await?;
    settled(&ns, &own(&ns, "probe", json!({})), says(true)).await?;
    Ok(())
}
