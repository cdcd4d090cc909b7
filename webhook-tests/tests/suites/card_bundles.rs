//! Where the trust bundle comes from, on a real API server: a ConfigMap and a file, in every form that SPIRE publishes; and what counts once a
//! source is gone or broken. The signed cards stand in ConfigMaps, so that no Pod has to be asked.

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::agent_card::AgentCard;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use webhook_tests::svid::{Authority, signed};
use webhook_tests::{Installation, Installing, Options, TestNamespace, household, installation, wait_for};

pub(crate) const DOMAIN: &str = "cluster.local";
pub(crate) const CARD: &str = "w";

/// A ConfigMap with that one text.
pub(crate) async fn put(ns: &TestNamespace, name: &str, key: &str, text: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: text}});
    let answer = ns.apply_one(&object, false).await?;
    answer.result.map(drop).map_err(|status| anyhow::anyhow!(status.message))
}

/// An agent that is never asked, since it has no Pods.
pub(crate) async fn agent(ns: &TestNamespace) -> Result<()> {
    let labels = json!({"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""});
    let template = json!({"metadata": {"labels": {"app": "w", "kagenti.io/type": "agent", "kagenti.io/inject": "disabled"}},
        "spec": {"serviceAccountName": "weather", "containers": [{"name": "agent", "image": "example.com/agent:1"}]}});
    let workload = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "w"}}, "template": template}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"},
        "spec": {"selector": {"app": "w"}, "ports": [{"name": "http", "port": 8000}]}});
    // A person's card, so that its period is short: a card that comes before its authority is judged again within it.
    let card = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentCard", "metadata": {"name": CARD},
        "spec": {"syncPeriod": "5s", "identityBinding": {},
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}}});
    for object in [service, card, workload] {
        ns.accepts(&object).await?;
    }
    Ok(())
}

/// The agent's signed card is this one from now on; waits until it is shown, Verified and Bound.
pub(crate) async fn believed(ns: &TestNamespace, version: &str, by: &Authority) -> Result<()> {
    let card = json!({"name": "Weather", "version": version, "url": "http://w:8000", "skills": [{"id": "echo"}]});
    let signer = by.signer(&format!("/ns/{}/sa/weather", ns.name()))?;
    put(ns, "w-card-signed", "agent-card.json", &signed(&card, &signer)?).await?;
    let holds = |card: &AgentCard| {
        let card = serde_json::to_value(card).unwrap_or_default();
        let is = |type_: &str| {
            let all = card.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
            all.into_iter().any(|one| one["type"] == type_ && one["status"] == "True")
        };
        card.pointer("/status/card/version").is_some_and(|shown| shown == version) && is("Verified") && is("Bound")
    };
    let cards: Api<AgentCard> = ns.api();
    wait_for(&cards, CARD, holds).await.map(drop)
}

#[tokio::test]
async fn cases_106_to_110_every_source_and_form_of_the_bundle_is_followed_and_the_last_good_one_counts() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let (bundles, ns) = (cp.namespace("bundles").await?, cp.namespace("signed").await?);
    let folder = tempfile::tempdir_in(&household::folders()?.disk)?;
    let file = folder.path().join("bundle");
    let platform = format!(
        "cards: {{audit: false, minimumPeriodSeconds: 5, trustBundle: {{trustDomain: {DOMAIN}, file: {}, configMap: {{name: bundle, namespace: {}, key: bundle}}}}}}\n",
        file.display(),
        bundles.name(),
    );
    let _installation = Installation::start(&cp, &Installing { platform, ..Installing::default() }).await?;
    agent(&ns).await?;
    type Form = fn(&Authority) -> String;
    let forms: [(&str, Form); 4] = [
        ("PEM", Authority::pem),
        ("SPIFFE", Authority::spiffe),
        ("JWKS", Authority::jwks),
        ("by trust domain", Authority::by_trust_domain),
    ];
    let mut last = Authority::new(DOMAIN)?;
    for (form, write) in forms {
        last = Authority::new(DOMAIN)?;
        put(&bundles, "bundle", "bundle", &write(&last)).await?;
        believed(&ns, &format!("ConfigMap, {form}"), &last).await?;
    }
    // Broken, then gone: what was read last counts.
    put(&bundles, "bundle", "bundle", "{").await?;
    believed(&ns, "ConfigMap, broken", &last).await?;
    bundles.api::<ConfigMap>().delete("bundle", &DeleteParams::default()).await?;
    believed(&ns, "ConfigMap, gone", &last).await?;

    for (form, write) in forms {
        last = Authority::new(DOMAIN)?;
        std::fs::write(&file, write(&last))?;
        believed(&ns, &format!("file, {form}"), &last).await?;
    }
    std::fs::write(&file, "no bundle")?;
    believed(&ns, "file, broken", &last).await?;
    std::fs::remove_file(&file)?;
    believed(&ns, "file, gone", &last).await
}
