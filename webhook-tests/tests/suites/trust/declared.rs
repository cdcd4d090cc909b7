//! Where only what is declared is open: agents, their Services and routes on a real API server, while the value changes under traffic, and a neighbour
//! who names an agent.

use std::sync::Arc;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::json;
use tokio::task::JoinSet;
use webhook_tests::{Installation, Installing, Options, installation, wait_for, wait_until};

use super::fleet::a_restart_writes_nothing;
use super::history::{History, matrices, recording};
use super::preview::asked;
use super::*;

const DECLARED: &str = "agent.kagenti.dev/declared";
const AGENTS: [&str; 3] = ["clerk", "weather", "other"];

/// Whether a policy opens what is declared.
fn by_declaration(policy: &NetworkPolicy) -> bool {
    opens(policy) && policy.annotations().contains_key(DECLARED)
}

fn policy_of(agent: &str) -> String {
    format!("{agent}-signature-policy")
}

/// The routes of a namespace, as somebody of it writes them.
async fn routes(ns: &Objects, text: &str) -> Result<()> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "authproxy-routes"}, "data": {"routes.yaml": text}});
    let by_people = PatchParams::apply("people").force();
    ns.api::<ConfigMap>().patch("authproxy-routes", &by_people, &Patch::Apply(&map)).await?;
    Ok(())
}

/// An agent with a Service, verified.
async fn verified(cp: &ControlPlane, ns: &TestNamespace, name: &str) -> Result<()> {
    ns.accepts(&agent(name)).await?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "a2a", "port": 8000, "targetPort": 8080}]}});
    ns.accepts(&service).await?;
    wait_for(&ns.api::<Service>(), name, |_| true).await?;
    running(ns, name).await?;
    card_says(cp, ns, name, true).await?;
    labelled(ns, name, true).await?;
    wait_for(&policies(ns), &policy_of(name), opens).await?;
    Ok(())
}

#[tokio::test]
async fn what_agents_declare_is_open_and_nothing_else_and_another_value_cuts_nobody_who_is_named() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace_with("declared", &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    for name in AGENTS {
        verified(&cp, &ns, name).await?;
    }
    routes(&ns, "- {host: weather, target_audience: weather}\n- {host: '*.example.com'}\n").await?;
    let (history, mut tasks) = (Arc::new(History::default()), JoinSet::new());
    recording(&mut tasks, ns.api::<Pod>(), "Pod", &history);
    recording(&mut tasks, policies(&ns), "NetworkPolicy", &history);
    history.until(|all| AGENTS.iter().all(|name| all.values().any(|(_, seen, _)| *seen == policy_of(name)))).await?;
    let begun = matrices(ns.name(), &history).len();

    // The value changes, and each agent's policy with it.
    let file = installation.settings().join("config.yaml");
    let before = std::fs::read_to_string(&file)?;
    std::fs::write(&file, format!("{before}cards: {{verifiedPeers: declared}}\n"))?;
    for name in AGENTS {
        wait_for(&policies(&ns), &policy_of(name), by_declaration).await?;
    }
    let end = |name: &str| format!("{}/deployment/{name}", ns.name());
    let (clerk, weather, other) = (end("clerk"), format!("{}:8080", end("weather")), end("other"));
    let (answer, code) = asked(&cp, &["explain", "reach", &clerk, &weather]).await?;
    ensure!(code == Some(0), "it is named: {code:?} {answer:#}");
    let by = "route weather in ConfigMap authproxy-routes";
    ensure!(answer.to_string().matches(by).count() >= 2, "both ends say by what: {answer:#}");
    let (answer, code) = asked(&cp, &["explain", "reach", &clerk, &format!("{}:9999", end("weather"))]).await?;
    ensure!(code == Some(1), "another port: {answer:#}");
    let (answer, code) = asked(&cp, &["explain", "reach", &clerk, &other]).await?;
    ensure!(code == Some(1) && answer.to_string().contains("undeclared"), "nobody names it: {code:?} {answer:#}");
    let told = |all: &std::collections::BTreeMap<_, Event>| {
        all.values().any(|event| {
            let words = event.message.as_deref().unwrap_or_default();
            event.reason.as_deref() == Some("DeclaredNotOpened") && words.contains("*.example.com is a pattern")
        })
    };
    wait_until(&ns.api::<Event>(), watcher::Config::default(), told).await?;

    // At rest, and after a restart, nothing is written.
    a_restart_writes_nothing(&cp, &installation, &ns).await?;

    neighbour(&cp, &ns).await?;

    // And back.
    std::fs::write(&file, before)?;
    for name in AGENTS {
        let opened = |policy: &NetworkPolicy| opens(policy) && !by_declaration(policy);
        wait_for(&policies(&ns), &policy_of(name), opened).await?;
    }
    let (answer, code) = asked(&cp, &["explain", "reach", &clerk, &other]).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");
    history
        .until(|all| {
            let last = all.values().rfind(|(_, name, _)| *name == policy_of("weather"));
            let says = |object: &Value| object["metadata"]["annotations"].get(DECLARED).is_some();
            last.is_some_and(|(_, _, content)| content.as_ref().is_some_and(|object| !says(object)))
        })
        .await?;
    let wanted = ("clerk".to_owned(), "weather".to_owned());
    for (at, matrix) in matrices(ns.name(), &history).iter().enumerate().skip(begun) {
        ensure!(matrix.contains(&wanted), "after write {at} {wanted:?} is cut: {matrix:?}");
    }
    Ok(())
}

/// An agent of another namespace names one of this one: what its namespace writes is not enough.
async fn neighbour(cp: &ControlPlane, ns: &TestNamespace) -> Result<()> {
    let others = cp.namespace_with("neighbour", &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&others), DENY, |_| true).await?;
    verified(cp, &others, "caller").await?;
    let theirs = tenant(cp, &others, "edit").await?;
    routes(&theirs, &format!("- {{host: weather.{}.svc.cluster.local:8000}}\n", ns.name())).await?;
    let leads = |policy: &NetworkPolicy| {
        let spec = serde_json::to_string(&policy.spec).unwrap_or_default();
        by_declaration(policy) && spec.contains("\"app\":\"weather\"") && spec.contains(ns.name())
    };
    wait_for(&policies(&others), &policy_of("caller"), leads).await?;
    let (caller, weather) =
        (format!("{}/deployment/caller", others.name()), format!("{}/deployment/weather:8080", ns.name()));
    let reach = ["explain", "reach", &caller, &weather];
    let (answer, code) = asked(cp, &reach).await?;
    ensure!(code == Some(1), "who writes routes in his namespace opens none of another: {answer:#}");

    let namespaces: Api<Namespace> = Api::all(cp.client().await?);
    let enabled = json!({"metadata": {"labels": {"kagenti-enabled": "true"}}});
    // Nor does the label of that namespace, by whoever may do everything there and nothing elsewhere.
    let owner = tenant(cp, &others, "everything").await?.client();
    let path = format!("/api/v1/namespaces/{}", others.name());
    let by_owner = request(&owner, "PATCH", path, Some(enabled.clone())).await?;
    refused(&by_owner, "the label by the namespace's owner", "drawbridge-trust-switch")?;
    namespaces.patch(others.name(), &PatchParams::default(), &Patch::Merge(&enabled)).await?;
    let named = |policy: &NetworkPolicy| {
        let says = policy.annotations().get(DECLARED);
        says.is_some_and(|says| says.contains(&format!("of namespace {}", others.name())))
    };
    wait_for(&policies(ns), &policy_of("weather"), named).await?;
    let (answer, code) = asked(cp, &reach).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");

    // Only while it is verified.
    card_says(cp, &others, "caller", false).await?;
    labelled(&others, "caller", false).await?;
    let (answer, code) = asked(cp, &reach).await?;
    ensure!(code == Some(1), "{code:?} {answer:#}");
    Ok(())
}
