//! What the policies that fence our own accounts let the controllers write for the kinds of KAOS, tried with their own token.

use anyhow::{Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::{wait_for, wait_gone};

use super::{objects, ready};
use crate::agents::stage::shared;

/// What the API server says of a create that it is only asked to try.
async fn tried(client: &Client, path: &str, body: &Value) -> Result<(u16, String)> {
    let request = http::Request::builder()
        .method("POST")
        .uri(format!("{path}?dryRun=All"))
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok((201, String::new())),
        Err(kube::Error::Api(status)) => Ok((status.code, status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Deployments, Services, ConfigMaps and NetworkPolicies are made for an object of KAOS, under the name that is made for it; under another name,
/// for another kind's object or for nobody they are not.
#[tokio::test]
async fn ruling_27_our_own_account_writes_for_kaos_what_has_its_name_and_its_owner() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("kaos-fence").await?;
    ns.accepts(&json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "m"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}},
    }))
    .await?;
    let api = wait_for(&objects(&ns, "ModelAPI"), "m", ready).await?;
    let deployment = json!(ns.api::<Deployment>().get("modelapi-m").await?.spec);
    let service = json!({"selector": {"app": "modelapi"}, "ports": ns.api::<Service>().get("modelapi-m").await?.spec.unwrap().ports});
    let config = json!(ns.api::<ConfigMap>().get("litellm-config-m").await?.data);
    let ours = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let policy = json!({"podSelector": {"matchLabels": {"app": "modelapi"}}, "policyTypes": ["Ingress"]});
    for (group, kind, resource, name, member) in [
        ("/apis/apps/v1", "Deployment", "deployments", "modelapi-m", ("spec", deployment)),
        ("/api/v1", "Service", "services", "modelapi-m", ("spec", service)),
        ("/api/v1", "ConfigMap", "configmaps", "litellm-config-m", ("data", config)),
        ("/apis/networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "modelapi-m", ("spec", policy)),
    ] {
        fenced(&ours, (ns.name(), &api), (group, kind, resource), (name, member)).await?;
    }
    Ok(())
}

/// One kind of object that is made for a ModelAPI `m`: under the name that is made for it and owned by it, it is let through, and not else.
pub(super) async fn fenced(
    ours: &Client,
    (namespace, api): (&str, &DynamicObject),
    (group, kind, resource): (&str, &str, &str),
    (name, member): (&str, (&str, Value)),
) -> Result<()> {
    let path = format!("{group}/namespaces/{namespace}/{resource}");
    let object = |name: &str, owner: Option<(&str, &str)>| {
        let owners: Vec<Value> = owner
            .into_iter()
            .map(|(group, kind)| {
                json!({"apiVersion": group, "kind": kind, "name": "m", "uid": api.metadata.uid, "controller": true})
            })
            .collect();
        let labels = json!({"app.kubernetes.io/managed-by": "drawbridge", "app": "modelapi", "modelapi": "m", "kaos.tools/kind": "modelapi"});
        let mut object = json!({
            "apiVersion": group.trim_start_matches("/apis/").trim_start_matches("/api/"), "kind": kind,
            "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
        });
        object[member.0] = member.1.clone();
        object
    };
    let own = Some(("kaos.tools/v1alpha1", "ModelAPI"));
    let (code, said) = tried(ours, &path, &object(name, own)).await?;
    // One like the operator's own is let through; most of them are there already.
    ensure!(code == 201 || code == 409, "{resource}: {code}: {said}");
    for (what, object) in [
        ("another name", object("modelapi-other", own)),
        ("nobody's", object(name, None)),
        ("of another group", object(name, Some(("example.com/v1", "ModelAPI")))),
    ] {
        let (code, said) = tried(ours, &path, &object).await?;
        ensure!(code == 403 && said.contains("drawbridge-own-"), "{resource}, {what}: {code}: {said}");
    }
    Ok(())
}

/// Policies that ask whether a namespace holds an object of a kind compare each write with one marked object, not with all of them; when that one
/// goes, the next one that has something to make takes its place.
#[tokio::test]
async fn policies_look_at_one_object_of_a_kind_and_at_another_once_that_has_gone() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("kaos-marked").await?;
    let servers = objects(&ns, "MCPServer");
    let selected =
        ListParams::default().labels(&format!("{}={}", keys::LABEL_POLICY_PARAMETER, keys::POLICY_PARAMETER));
    let make = async |name: &str| -> Result<Vec<String>> {
        let spec = json!({"runtime": "python-string", "params": "def f(): pass"});
        let server =
            json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": name}, "spec": spec});
        ns.accepts(&server).await?;
        wait_for(&ns.api::<Deployment>(), &format!("mcpserver-{name}"), |_: &Deployment| true).await?;
        Ok(servers.list(&selected).await?.items.iter().map(|one| one.name_any()).collect())
    };
    for name in ["a", "b", "c"] {
        let marked = make(name).await?;
        ensure!(marked == ["a"], "{marked:?}");
    }
    servers.delete("a", &DeleteParams::default()).await?;
    wait_gone(&servers, "a").await?;
    let marked = make("d").await?;
    ensure!(marked == ["d"], "{marked:?}");
    Ok(())
}
