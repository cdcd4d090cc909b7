//! Which namespaces are served: F1 to F4.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{Drawbridge, Installation, Installing, Options, installation, wait_for};

use super::{minimal, origin, step_names, team, with};

pub(super) fn agent(name: &str) -> Value {
    json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": name}, "spec": {
        "imageSource": {"image": "ghcr.io/acme/weather:v1"},
        "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}}}})
}

/// The installation that the tests share is started with an empty `NAMESPACES2WATCH`, before there are these namespaces.
#[tokio::test]
async fn case_f1_without_a_list_every_namespace_is_served() -> Result<()> {
    for ns in [team().await?, team().await?] {
        let stored = ns.accepts(&minimal("weather")).await?;
        assert_eq!((origin(&stored), step_names(&stored).len()), ("template/dev", 5), "{}", ns.name());
        ns.rejects(&with("wrong", json!({"source": {"sourceSubfolder": "../x"}}))).await?;
        ns.accepts(&agent("served")).await?;
        wait_for(&ns.api::<Deployment>(), "served", |_| true).await?;
    }
    Ok(())
}

#[tokio::test]
async fn cases_f2_to_f4_only_listed_namespaces_are_served_with_rights_in_them_alone() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let (one, two, three) = (cp.namespace("team").await?, cp.namespace("team").await?, cp.namespace("team").await?);
    let namespaces = format!(" {} , {},{} ", one.name(), two.name(), one.name());
    let installation = Installation::start(&cp, &Installing { namespaces, ..Installing::default() }).await?;
    for team in [&one, &two] {
        let stored = team.accepts(&minimal("weather")).await?;
        assert_eq!(
            (origin(&stored), step_names(&stored).len()),
            ("template/dev", 5),
            "F3: the template of an unlisted namespace"
        );
        team.rejects(&with("wrong", json!({"source": {"sourceSubfolder": "../x"}}))).await?;
        team.accepts(&agent("served")).await?;
    }
    let unserved = three.accepts(&with("weather", json!({"source": {"sourceSubfolder": "../x"}}))).await?;
    assert_eq!((origin(&unserved), step_names(&unserved).len()), ("", 0), "F2: created freely");
    three.accepts(&agent("unserved")).await?;
    let home = cp.objects().await?;
    let mut at_home = agent("unserved");
    at_home["metadata"]["namespace"] = json!("kagenti-system");
    home.accepts(&at_home).await?;
    for team in [&one, &two] {
        wait_for(&team.api::<Deployment>(), "served", |_| true).await?;
    }
    // Both served ones are there, so whatever else was to come has had its turn.
    for namespace in [three.name(), "kagenti-system"] {
        let deployments: Api<Deployment> = Api::namespaced(cp.client().await?, namespace);
        assert_eq!(deployments.get_opt("unserved").await?, None, "F2, F3: {namespace}");
    }
    for process in installation.webhooks.iter().chain(&installation.controllers) {
        everything_is_read(process).await?;
        // A Role counts a moment after it was made: a first list may be refused, nothing else.
        let log = process.log();
        let forbidden =
            log.lines().find(|line| line.to_lowercase().contains("forbidden") && !line.contains("cannot watch"));
        ensure!(forbidden.is_none(), "F4: {forbidden:?}");
    }
    Ok(())
}

/// Waits until every watch of a kind that this cluster has is complete: no right is missing.
async fn everything_is_read(process: &Drawbridge) -> Result<()> {
    const NOT_SERVED: [&str; 3] = ["Sandbox", "PipelineRun", "TaskRun"];
    let begun = Instant::now();
    loop {
        let metrics = process.metrics().await?;
        let unknown: Vec<String> = metrics
            .select("drawbridge_watches", &[("state", "unknown")])
            .filter(|sample| sample.value > 0.0)
            .flat_map(|sample| sample.labels.iter().filter(|(key, _)| key == "kind").map(|(_, kind)| kind.clone()))
            .filter(|kind| !NOT_SERVED.contains(&kind.as_str()))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        ensure!(begun.elapsed() < patience(), "F4: not read: {unknown:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
