//! Many AgentRuntimes (100, a thousand in `make test-long`) that point at one workload: one governs, the others are told, nobody fights.

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::{Installation, Installing, Options, installation, trial, wait_for, wait_until};

use super::*;

/// Objects that the test makes at once.
const HANDS: usize = 16;

#[tokio::test]
async fn a_crowd_of_agent_runtimes_on_one_workload_has_one_winner_and_one_write() -> Result<()> {
    let crowd = trial::size(100, 1_000);
    let cp = installation::plane(Options::default()).await?;
    // Nobody answers at the validating webhook, which lets them all pass.
    let _installation = Installation::start(&cp, &Installing { webhooks: 0, ..Installing::default() }).await?;
    let ns = cp.namespace("crowd").await?;
    ns.accepts(&deployment("web", 0)).await?;
    let first = ns.accepts(&art("first", "Deployment", "web", json!({}))).await?;
    says(&ns, "first", "Ready", "True/Configured").await?;
    // Creation times have whole seconds, and in the same second the uid decides: the crowd comes in a later one, told by
    // objects that nobody looks at.
    let born = first.metadata.creation_timestamp.clone();
    let mut turn = 0;
    loop {
        let tick = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("tick-{turn}")}});
        if ns.accepts(&tick).await?.metadata.creation_timestamp > born {
            break;
        }
        turn += 1;
    }
    let mark = cp.audit().mark()?;
    let made = futures::stream::iter(1..crowd).map(|number| {
        let (ns, object) = (&ns, art(&format!("art-{number:04}"), "Deployment", "web", json!({})));
        async move { ns.accepts(&object).await.map(drop) }
    });
    made.buffer_unordered(HANDS).try_collect::<()>().await?;
    let told = |art: &AgentRuntime| condition(art, "Ready") == "False/DuplicateTarget";
    let (api, mut before) = (ns.api::<AgentRuntime>(), 0);
    while before < crowd - 1 {
        let all = wait_until(&api, watcher::Config::default(), |all| {
            all.values().filter(|art| told(art)).count() >= (before + 50).min(crowd - 1)
        });
        before = all.await?.iter().filter(|art| told(art)).count();
    }
    let made = writes(cp.audit().settled(mark).await?).in_namespace(ns.name());
    assert!(made.clone().resource("deployments").is_empty(), "{}", made.resource("deployments"));
    let statuses = made.resource("agentruntimes").filter(|one| one.code == Some(200));
    assert!(statuses.len() <= crowd, "one status each: {}", statuses.len());
    assert!(!statuses.iter().any(|one| one.name == "first"), "the winner's does not change");

    // The winner goes: the next one takes over, in place.
    let mark = cp.audit().mark()?;
    ns.api::<AgentRuntime>().delete("first", &DeleteParams::default()).await?;
    let governed = |all: &std::collections::BTreeMap<String, AgentRuntime>| {
        all.values().filter(|art| condition(art, "Ready") == "True/Configured").count() == 1
            && !all.keys().any(|name| name.ends_with("/first"))
    };
    wait_until(&ns.api::<AgentRuntime>(), watcher::Config::default(), governed).await?;
    let made = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("deployments");
    assert!(made.is_empty(), "{made}");

    // All go: the workload is its user's again.
    ns.api::<AgentRuntime>().delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    wait_until(&ns.api::<AgentRuntime>(), watcher::Config::default(), std::collections::BTreeMap::is_empty).await?;
    wait_for(&ns.api::<Deployment>(), "web", |web| hash(web).is_none() && web.labels().len() == 1).await?;
    Ok(())
}
