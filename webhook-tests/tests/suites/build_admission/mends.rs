//! What becomes of a template's steps in mode custom, and what is said first of a step that is none.

use anyhow::{Context as _, Result, ensure};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{accepted, builds, minimal, origin, team, with};

/// `kubectl apply` and `kubectl patch` carry the stored steps along; a replaced object has none.
#[tokio::test]
async fn mend_13_leaving_a_template_for_mode_custom_says_what_becomes_of_its_steps() -> Result<()> {
    let ns = team().await?;
    let stored = ns.accepts(&minimal("weather")).await?;
    assert_eq!(origin(&stored), "template/dev");
    // As a replaced object, without depending on what the controllers write on it meanwhile.
    let bare = json!({"spec": {"mode": "custom", "pipeline": {"steps": null}}});
    let replaced = builds(&ns).patch("weather", &PatchParams::default(), &Patch::Merge(bare)).await;
    let refusal = replaced.err().context("without steps it is accepted")?.to_string();
    for part in ["spec.pipeline.steps must be given in mode custom", "in mode dev do not stay by themselves"] {
        ensure!(refusal.contains(part), "{part}: {refusal}");
    }
    let cp = super::control_plane().await?;
    let change = r#"{"spec": {"mode": "custom"}}"#;
    let patch = ["-n", ns.name(), "patch", "agentbuild", "weather", "--type=merge", "-p", change];
    let told = cp.kubectl(cp.admin(), &patch, "").await?;
    ensure!(
        told.success && told.stderr.contains("StepsKept: spec.pipeline.steps: are those that template"),
        "{told:?}"
    );
    let now = builds(&ns).get("weather").await?;
    assert_eq!(
        (origin(&now), &now.data["spec"]["pipeline"]["steps"]),
        ("user", &stored.data["spec"]["pipeline"]["steps"])
    );
    // And back, as the warning says.
    let back = json!({"spec": {"mode": "dev", "pipeline": {"steps": null}}});
    let back = builds(&ns).patch("weather", &PatchParams::default(), &Patch::Merge(back)).await?;
    assert_eq!(
        (origin(&back), &back.data["spec"]["pipeline"]["steps"]),
        ("template/dev", &stored.data["spec"]["pipeline"]["steps"])
    );
    Ok(())
}

#[tokio::test]
async fn mend_12_a_step_without_its_label_is_told_to_lack_it() -> Result<()> {
    let ns = team().await?;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bare-step"},
        "data": {"task-spec.yaml": "steps: [{name: run, image: example.com/step:1}]"},
    });
    ns.accepts(&map).await?;
    let steps = json!([{"name": "a", "configMap": "bare-step"}]);
    let build = with("bare", json!({"mode": "custom", "pipeline": {"namespace": ns.name(), "steps": steps}}));
    let (_, warnings) = accepted(&ns, "12", &build).await?;
    let says = format!("kubectl -n {} label configmap bare-step kagenti.operator.dev/tekton=step", ns.name());
    ensure!(
        warnings
            .iter()
            .any(|text| text.contains("lacks label kagenti.operator.dev/tekton=step") && text.contains(&says)),
        "{warnings:?}"
    );
    Ok(())
}

#[tokio::test]
async fn mend_12_an_image_with_capitals_is_refused_in_those_words() -> Result<()> {
    let ns = team().await?;
    let build = with("capitals", json!({"buildOutput": {"image": "Weather-Service"}}));
    super::refused(&ns, "12", &build, &["spec.buildOutput.image has capital letters", "Weather-Service"]).await?;
    let agent = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "capitals"},
        "spec": {"imageSource": {"image": "ghcr.io/Acme/weather:v1"}, "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}}},
    });
    super::refused(&ns, "12", &agent, &["spec.imageSource.image has capital letters", "ghcr.io/Acme/weather:v1"])
        .await?;
    Ok(())
}
