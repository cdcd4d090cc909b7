//! The tier of administrators on a real API server, under the API's own definition: it comes and goes, and no NetworkPolicy of a tenant opens what it denies.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use tokio::process::Command;
use webhook_tests::{Installation, Installing, Options, installation, wait_for, wait_gone};

use super::fleet::a_restart_writes_nothing;
use super::preview::asked;
use super::*;

const DEFINITION: &str = "clusternetworkpolicies.policy.networking.k8s.io";

/// The API's own definition, as `make network-policy-api` fetched it.
async fn define(cp: &ControlPlane) -> Result<Api<DynamicObject>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-network-policy-api");
    let output = Command::new(&script).arg("--where").output().await.with_context(|| script.display().to_string())?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let definition = std::fs::read_to_string(String::from_utf8_lossy(&output.stdout).trim())?;
    cp.objects().await?.apply(&definition).await?;
    let established = |one: &CustomResourceDefinition| {
        let conditions = one.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|one| one.type_ == "Established" && one.status == "True")
    };
    wait_for(&Api::all(cp.client().await?), DEFINITION, established).await?;
    let kind = GroupVersionKind::gvk("policy.networking.k8s.io", "v1alpha2", "ClusterNetworkPolicy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusternetworkpolicies");
    Ok(Api::all_with(cp.client().await?, &resource))
}

#[tokio::test]
async fn no_network_policy_of_a_tenant_opens_what_is_denied_in_the_tier_of_administrators() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace_with("tier", &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    for name in ["good", "bad"] {
        ns.accepts(&agent(name)).await?;
        running(&ns, name).await?;
    }
    let mut outsider = bare("outsider");
    outsider["metadata"]["labels"] = json!({"app": "outsider"});
    ns.accepts(&outsider).await?;
    running(&ns, "outsider").await?;
    card_says(&cp, &ns, "good", true).await?;
    labelled(&ns, "good", true).await?;
    wait_for(&policies(&ns), "good-signature-policy", opens).await?;

    // Whoever may edit the namespace opens everything: NetworkPolicies add up.
    let edit = tenant(&cp, &ns, "edit").await?;
    let opens_all = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "everything"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{}], "egress": [{}]}});
    edit.accepts(&opens_all).await?;
    let end = |name: &str| format!("{}/{name}", ns.name());
    let reach = |from: &str, to: &str| ["explain".to_owned(), "reach".to_owned(), end(from), end(to)];
    let code = async |from: &str, to: &str| {
        let arguments = reach(from, to);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        anyhow::Ok(asked(&cp, &arguments).await?)
    };
    ensure!(code("outsider", "bad").await?.1 == Some(0), "without the tier it is open");

    // The definition arrives.
    let all = define(&cp).await?;
    let ours = format!("drawbridge-deny-{}", ns.name());
    let stands = wait_for(&all, &ours, |_| true).await?;
    ensure!(stands.owner_references().iter().any(|owner| owner.kind == "Namespace" && owner.name == ns.name()));
    for (from, to) in [("outsider", "bad"), ("bad", "outsider")] {
        let (answer, code) = code(from, to).await?;
        ensure!(code == Some(1) && answer.to_string().contains(&ours), "{from} to {to}: {code:?} {answer:#}");
    }
    let (answer, now) = code("outsider", "good").await?;
    ensure!(now == Some(0), "who is verified is not meant: {answer:#}");
    a_restart_writes_nothing(&cp, &installation, &ns).await?;
    ensure!(wait_for(&all, &ours, |_| true).await?.resource_version() == stands.resource_version(), "nor of these");

    // It goes ahead of the deny.
    let namespaces: Api<Namespace> = Api::all(cp.client().await?);
    let off = json!({"metadata": {"labels": {SWITCH: "off"}}});
    namespaces.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&off)).await?;
    wait_gone(&policies(&ns), DENY).await?;
    ensure!(all.get_opt(&ours).await?.is_none(), "the deny went first");
    Ok(())
}
