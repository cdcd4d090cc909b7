//! Custom resources whose definitions come and go while the processes run, on a real API server (docs/cases.md D11).

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::kinds::Kinds;
use drawbridge::cli::render::{FailureMode, Install};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::watcher;
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Drawbridge, Installation, Installing, Mark, Options, Request, TestNamespace, installation, wait_for,
    wait_gone, wait_until,
};

use crate::builds::stage::{api, define, tekton};
use crate::doctor::{IMAGE, deployed, finds_with, healthy_with};

const SANDBOXES: &str = "sandboxes.agents.x-k8s.io";
const AGENT_RUNTIMES: &str = "agentruntimes.agent.kagenti.dev";

fn sandboxes() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "sandboxes", "singular": "sandbox", "kind": "Sandbox", "listKind": "SandboxList"});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": SANDBOXES},
        "spec": {"group": "agents.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version]}})
}

fn template(name: &str, labels: Value) -> Value {
    let mut all = json!({"app": name});
    all.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
    json!({"metadata": {"labels": all}, "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}})
}

/// Tries again while `holds` does not; what is waited for has no watch of its own.
async fn until<F: Future<Output = Result<bool>>>(what: &str, mut holds: impl FnMut() -> F) -> Result<()> {
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let waiting = async {
        loop {
            tick.tick().await;
            if holds().await? {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(patience(), waiting).await.with_context(|| format!("{what}: not within {:?}", patience()))?
}

async fn watches(process: &Drawbridge, kind: &str, state: &str) -> Result<()> {
    until(&format!("{kind} is {state}"), || async {
        Ok(process.metrics().await?.sum("drawbridge_watches", &[("kind", kind), ("state", state)]) > 0.5)
    })
    .await
}

/// Creates an object of a kind that was defined a moment ago.
async fn create(ns: &TestNamespace, object: &Value) -> Result<()> {
    until(&format!("{} can be created", object["kind"]), || async { Ok(ns.apply(&object.to_string()).await.is_ok()) })
        .await
}

async fn remove(cp: &ControlPlane, definition: &str) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(cp.client().await?);
    definitions.delete(definition, &DeleteParams::default()).await?;
    wait_gone(&definitions, definition).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_come_and_go_without_a_restart() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let (controllers, webhook) = (&installation.controllers[0], &installation.webhooks[0]);
    let pids = (controllers.pid(), webhook.pid());
    let ns = cp.namespace("kinds").await?;
    let accounts: Api<ServiceAccount> = ns.api();
    let deployments: Api<Deployment> = ns.api();

    watches(controllers, "Sandbox", "absent").await?;
    cp.objects().await?.apply(&sandboxes().to_string()).await?;
    let labelled = template("box", json!({"kagenti.io/type": "agent"}));
    create(
        &ns,
        &json!({"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "metadata": {"name": "box"},
        "spec": {"podTemplate": labelled}}),
    )
    .await?;
    let made = wait_for(&accounts, "box", |_| true).await?;
    ensure!(made.metadata.owner_references.unwrap_or_default()[0].kind == "Sandbox");
    watches(controllers, "Sandbox", "listed").await?;
    remove(&cp, SANDBOXES).await?;
    watches(controllers, "Sandbox", "absent").await?;
    let spoken =
        controllers.log().lines().filter(|line| line.contains("Sandbox") && line.contains("cannot watch")).count();
    ensure!(spoken == 0, "a definition that is missing is no error: {}", controllers.log());

    let plain = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("web", json!({}))}});
    let runtime = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": "web"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let labelled = |deployment: &Deployment| {
        let template = deployment.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
        let labels = template.and_then(|metadata| metadata.labels.as_ref());
        labels.is_some_and(|labels| labels.contains_key("kagenti.io/type"))
    };
    ns.apply(&plain.to_string()).await?;
    create(&ns, &runtime).await?;
    wait_for(&deployments, "web", labelled).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(cp.client().await?);
    let mut definition = serde_json::to_value(definitions.get(AGENT_RUNTIMES).await?)?;
    // The objects go with their definition, and the finalizer lets them.
    remove(&cp, AGENT_RUNTIMES).await?;
    wait_for(&deployments, "web", |deployment| !labelled(deployment)).await?;
    watches(webhook, "AgentRuntime", "absent").await?;
    webhook.ready().await?;
    definition["metadata"] = json!({"name": AGENT_RUNTIMES});
    definition["apiVersion"] = json!("apiextensions.k8s.io/v1");
    definition["kind"] = json!("CustomResourceDefinition");
    definition.as_object_mut().unwrap().remove("status");
    cp.objects().await?.apply(&definition.to_string()).await?;
    create(&ns, &runtime).await?;
    wait_for(&deployments, "web", labelled).await?;
    ensure!(pids == (controllers.pid(), webhook.pid()), "nobody was restarted");
    Ok(())
}

/// `render --kinds`: without the definitions and the rights of the other kinds the processes are ready, serve their own, and ask for nothing that
/// they have no right on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_of_kaos_alone_is_ready_and_asks_for_nothing_else() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let mark = cp.audit().mark()?;
    let installing = Installing { kinds: Kinds::Kaos, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("kaos-alone").await?;
    let spec = json!({"runtime": "python-string", "params": "def f(): pass"});
    let server =
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": "tools"}, "spec": spec});
    create(&ns, &server).await?;
    wait_for(&ns.api::<Deployment>(), "mcpserver-tools", |_: &Deployment| true).await?;
    // The webhook judges as well: both spellings of one thing are a conflict.
    let both = json!({"runtime": "python-string", "params": "x", "config": {"tools": {"fromString": "y"}}});
    let both =
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": "both"}, "spec": both});
    let refused = ns.rejects(&both).await?;
    ensure!(refused.message.contains(keys::WEBHOOK_KAOS), "{}", refused.message);
    asks_for_nothing_else(&cp, mark, &[]).await?;
    in_order(&cp, Kinds::Kaos).await?;
    drop(installation);
    Ok(())
}

/// The same of BeeAI: Agents and builds, with what builds need.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installation_of_beeai_alone_is_ready_and_asks_for_nothing_else() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let objects = cp.objects().await?;
    for definition in tekton() {
        define(&objects, &definition).await?;
    }
    let mark = cp.audit().mark()?;
    let installing = Installing { kinds: Kinds::Beeai, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("beeai-alone").await?;
    let of = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "beeai.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    create(&ns, &of("Agent", "weather", json!({"image": "example.com/weather:v1"}))).await?;
    wait_for(&ns.api::<Deployment>(), "weather", |_: &Deployment| true).await?;
    wait_for(&ns.api::<Service>(), "weather", |_: &Service| true).await?;
    let source = json!({"repoUrl": "github.com/acme/weather.git", "revision": "main", "imageRegistry": "registry.example.com",
        "image": "weather", "imageTag": "v1"});
    create(&ns, &of("AgentBuild", "weather", source.clone())).await?;
    let runs = api(&ns, "tekton.dev/v1", "PipelineRun");
    wait_until(&runs, watcher::Config::default(), |runs| runs.len() == 1).await.context("the build is run")?;
    // The webhook judges both.
    let port = json!({"image": "example.com/weather:v1", "env": [{"name": "PORT", "value": "canary"}]});
    let refused = ns.rejects(&of("Agent", "faulty", port)).await?;
    ensure!(refused.message.contains(keys::WEBHOOK_BEEAI_AGENT), "{}", refused.message);
    let mut token = source;
    token["env"] = json!([{"name": "GITHUB_TOKEN", "value": "canary"}]);
    let refused = ns.rejects(&of("AgentBuild", "faulty", token)).await?;
    ensure!(refused.message.contains(keys::WEBHOOK_BEEAI_BUILD), "{}", refused.message);
    // Whether the group of the original operator is served is asked again and again: its rights come with its definitions.
    asks_for_nothing_else(&cp, mark, &[keys::GROUP_BEEAI_COMPAT]).await?;
    in_order(&cp, Kinds::Beeai).await?;

    // What is missing of it is found, and nothing that it does not have.
    let definition = "agentbuilds.beeai.dev";
    remove(&cp, definition).await?;
    finds_with(&cp, &["-n", "default"], (&format!("CustomResourceDefinition {definition}"), "does not exist")).await?;
    drop(installation);
    Ok(())
}

/// No right was missing for anything that was asked since, but of these groups.
async fn asks_for_nothing_else(cp: &ControlPlane, mark: Mark, but: &[&str]) -> Result<()> {
    let asked = cp.audit().settled(mark).await?;
    for account in ["webhook", "controllers"] {
        let asked = asked.clone().by(&format!("system:serviceaccount:kagenti-system:drawbridge-{account}"));
        // What is only tried asks whether the policies are in force.
        let is_refused = |request: &Request| {
            request.code == Some(403) && !request.uri.contains("dryRun") && !but.contains(&request.group.as_str())
        };
        let forbidden = asked.filter(is_refused);
        ensure!(forbidden.is_empty(), "{account}: {forbidden}");
    }
    Ok(())
}

/// `doctor` finds nothing, and asks for nothing of kinds that are left out.
async fn in_order(cp: &ControlPlane, kinds: Kinds) -> Result<()> {
    let install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, IMAGE);
    deployed(cp, Install { kinds, ..install }).await?;
    let visit = healthy_with(cp, &["-n", "default"]).await?;
    let names = visit.names();
    let definitions = names.iter().filter_map(|name| name.strip_prefix("CustomResourceDefinition "));
    let mut definitions: Vec<&str> = definitions.collect();
    definitions.sort_unstable();
    let wanted: &[&str] = match kinds {
        Kinds::Kaos => &["agents.kaos.tools", "mcpservers.kaos.tools", "modelapis.kaos.tools"],
        _ => &["agentbuilds.beeai.dev", "agents.beeai.dev"],
    };
    ensure!(definitions == wanted, "{definitions:?}");
    let builds = names.iter().filter(|name| ["Tekton Pipelines", "pipeline templates"].contains(name)).count();
    ensure!(builds == if kinds == Kinds::Kaos { 0 } else { 2 }, "{names:#?}");
    ensure!(!names.iter().any(|name| name.starts_with("an enrolled Pod")), "nothing is injected here: {names:#?}");
    Ok(())
}
