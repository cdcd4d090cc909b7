//! Who reaches whom after every single write, by the room `policy`: a namespace that begins to enforce and ends it, and cards that are deleted.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::task::JoinSet;
use webhook_tests::{TestNamespace, installation, wait_for, wait_gone};

use super::history::{History, matrices, recording};
use super::*;

/// Waits until a change that comes after everything else was written down.
async fn caught_up(ns: &TestNamespace, history: &History, round: &str) -> Result<()> {
    let marker = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": format!("marker-{round}")},
        "spec": {"podSelector": {"matchLabels": {"no": "body"}}}});
    ns.accepts(&marker).await?;
    let mark = json!({"metadata": {"annotations": {"round": round}}});
    ns.api::<Pod>().patch("outsider", &PatchParams::default(), &Patch::Merge(&mark)).await?;
    let all = history.until(|versions| {
        let policy = versions.values().any(|(_, name, _)| *name == format!("marker-{round}"));
        let pod = versions.values().any(|(_, name, content)| {
            name == "outsider"
                && content.as_ref().is_some_and(|content| content["metadata"]["annotations"]["round"] == round)
        });
        policy && pod
    });
    all.await.context("the watches show everything")
}

async fn switch(ns: &TestNamespace, cp: &webhook_tests::ControlPlane, level: &str) -> Result<()> {
    let all: Api<Namespace> = Api::all(cp.client().await?);
    let patch = json!({"metadata": {"labels": {SWITCH: level}}});
    all.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

#[tokio::test]
async fn who_is_verified_before_and_after_is_reached_after_every_write_in_between() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace("steady").await?;
    for name in ["good", "peer", "bad"] {
        ns.accepts(&agent(name)).await?;
    }
    let mut outsider = bare("outsider");
    outsider["metadata"]["labels"] = json!({"app": "outsider"});
    ns.accepts(&outsider).await?;
    for name in ["good", "peer", "bad"] {
        running(&ns, name).await?;
    }
    let before: Vec<_> = uids(&ns).await?;
    for name in ["good", "peer"] {
        card_says(cp, &ns, name, true).await?;
    }
    let (history, mut tasks) = (Arc::new(History::default()), JoinSet::new());
    recording(&mut tasks, ns.api::<Pod>(), "Pod", &history);
    recording(&mut tasks, policies(&ns), "NetworkPolicy", &history);
    caught_up(&ns, &history, "0").await?;
    let begun = matrices(ns.name(), &history).len();

    switch(&ns, cp, "audit").await?;
    for name in ["good", "peer"] {
        labelled(&ns, name, true).await?;
    }
    switch(&ns, cp, "enforced").await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    wait_for(&policies(&ns), "bad-signature-policy", |_| true).await?;
    caught_up(&ns, &history, "1").await?;
    let enforced = matrices(ns.name(), &history);
    let last = enforced.last().context("a matrix")?;
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    ensure!(!last.contains(&pair("outsider", "good")) && !last.contains(&pair("bad", "good")), "{last:?}");

    switch(&ns, cp, "audit").await?;
    wait_gone(&policies(&ns), DENY).await?;
    switch(&ns, cp, "off").await?;
    for name in ["good-signature-policy", "peer-signature-policy", "bad-signature-policy"] {
        wait_gone(&policies(&ns), name).await?;
    }
    labelled(&ns, "good", false).await?;
    caught_up(&ns, &history, "2").await?;
    for (at, matrix) in matrices(ns.name(), &history).iter().enumerate().skip(begun) {
        for wanted in [pair("good", "peer"), pair("peer", "good")] {
            ensure!(matrix.contains(&wanted), "after write {at} {wanted:?} is cut: {matrix:?}");
        }
    }
    ensure!(uids(&ns).await? == before, "nothing rolled");
    Ok(())
}

async fn uids(ns: &TestNamespace) -> Result<Vec<Option<String>>> {
    let pods = ns.api::<Pod>().list(&Default::default()).await?;
    let mut all: Vec<_> = pods.iter().map(|pod| pod.uid()).collect();
    all.sort();
    Ok(all)
}

#[tokio::test]
async fn after_a_card_and_every_card_is_deleted_nobody_is_reached_who_was_not_before() -> Result<()> {
    let cp = installation::shared().await?;
    let ns = cp.namespace_with("subset", &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    for name in ["good", "peer", "bad"] {
        ns.accepts(&agent(name)).await?;
    }
    let mut outsider = bare("outsider");
    outsider["metadata"]["labels"] = json!({"app": "outsider"});
    ns.accepts(&outsider).await?;
    for name in ["good", "peer"] {
        card_says(cp, &ns, name, true).await?;
        labelled(&ns, name, true).await?;
        wait_for(&policies(&ns), &format!("{name}-signature-policy"), opens).await?;
    }
    running(&ns, "bad").await?;
    wait_for(&policies(&ns), "bad-signature-policy", |_| true).await?;
    let (history, mut tasks) = (Arc::new(History::default()), JoinSet::new());
    recording(&mut tasks, ns.api::<Pod>(), "Pod", &history);
    recording(&mut tasks, policies(&ns), "NetworkPolicy", &history);
    caught_up(&ns, &history, "0").await?;
    let all = matrices(ns.name(), &history);
    let (begun, before) = (all.len(), all.last().cloned().context("a matrix")?);
    ensure!(before.contains(&("good".to_owned(), "peer".to_owned())), "{before:?}");

    let cards = ns.api::<AgentCard>();
    cards.delete("good-deployment-card", &DeleteParams::default()).await?;
    labelled(&ns, "good", false).await?;
    cards.delete_collection(&DeleteParams::default(), &Default::default()).await?;
    labelled(&ns, "peer", false).await?;
    for name in ["good", "peer"] {
        wait_for(&policies(&ns), &format!("{name}-signature-policy"), |policy| !opens(policy)).await?;
    }
    caught_up(&ns, &history, "1").await?;
    for (at, matrix) in matrices(ns.name(), &history).iter().enumerate().skip(begun) {
        let more: Vec<_> = matrix.iter().filter(|pair| !before.contains(pair)).collect();
        ensure!(more.is_empty(), "after write {at} somebody is reached who was not: {more:?}");
    }
    Ok(())
}
