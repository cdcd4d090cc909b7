//! Custom resources whose definitions come and go while the processes run, on a real API server (docs/cases.md D11).

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::kinds::Kinds;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use webhook_tests::objects::PATIENCE;
use webhook_tests::{
    ControlPlane, Drawbridge, Installation, Installing, Options, TestNamespace, installation, wait_for, wait_gone,
};

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
    tokio::time::timeout(PATIENCE, waiting).await.with_context(|| format!("{what}: not within {PATIENCE:?}"))?
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
    let asked = cp.audit().settled(mark).await?;
    for account in ["webhook", "controllers"] {
        let asked = asked.clone().by(&format!("system:serviceaccount:kagenti-system:drawbridge-{account}"));
        // What is only tried asks whether the policies are in force.
        let forbidden = asked.filter(|request| request.code == Some(403) && !request.uri.contains("dryRun"));
        ensure!(forbidden.is_empty(), "{account}: {forbidden}");
    }
    drop(installation);
    Ok(())
}
