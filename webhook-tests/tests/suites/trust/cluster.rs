//! The tier of administrators on a real API server, under the API's own definition: it comes and goes, and no NetworkPolicy of a tenant opens what it denies.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::{Installation, Installing, Options, installation, wait_for, wait_gone};

use super::fleet::a_restart_writes_nothing;
use super::preview::asked;
use super::*;

const DEFINITION: &str = "clusternetworkpolicies.policy.networking.k8s.io";

/// The kind as its publisher defines it.
async fn define(cp: &ControlPlane) -> Result<Api<DynamicObject>> {
    cp.define("install-network-policy-api", DEFINITION).await?;
    let kind = GroupVersionKind::gvk("policy.networking.k8s.io", "v1alpha2", "ClusterNetworkPolicy");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusternetworkpolicies");
    Ok(Api::all_with(cp.client().await?, &resource))
}

/// With a stolen token of the controllers nobody opens anything in that tier, and nobody's policy but ours is touched.
async fn our_account_opens_nothing(cp: &ControlPlane, all: &Api<DynamicObject>, ours: &str) -> Result<()> {
    let account = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let theirs: DynamicObject = serde_json::from_value(policy("of-somebody-else", json!({}), "Deny"))?;
    all.create(&PostParams::default(), &theirs).await?;
    let labels = json!({"app.kubernetes.io/managed-by": "drawbridge", "app.kubernetes.io/part-of": "drawbridge"});
    let marked = {
        let stands = all.get(ours).await?;
        json!(stands.labels())
    };
    let at = "/apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies";
    let one = |name: &str| format!("{at}/{name}");
    let accepts = json!({"spec": {"ingress": [{"action": "Accept", "from": [{"namespaces": {}}]}]}});
    let finalizer = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    let unmarked = json!({"metadata": {"labels": null}});
    for (what, method, path, body) in [
        ("another name", "POST", at.to_owned(), Some(policy("open", marked.clone(), "Deny"))),
        ("no mark", "POST", at.to_owned(), Some(policy("drawbridge-deny-x", labels, "Deny"))),
        ("one that accepts", "POST", at.to_owned(), Some(policy("drawbridge-deny-x", marked, "Accept"))),
        ("ours made to accept", "PATCH", one(ours), Some(accepts)),
        ("ours held", "PATCH", one(ours), Some(finalizer)),
        ("ours without its mark", "PATCH", one(ours), Some(unmarked.clone())),
        ("somebody else's changed", "PATCH", one("of-somebody-else"), Some(unmarked)),
        ("somebody else's deleted", "DELETE", one("of-somebody-else"), None),
    ] {
        let (code, said) = request(&account, method, path, body).await?;
        ensure!(code == 403 && said.contains("drawbridge-own-objects"), "{what}: {code}: {said}");
    }
    all.delete("of-somebody-else", &DeleteParams::default()).await.map(drop).map_err(Into::into)
}

/// A ClusterNetworkPolicy of the Admin tier that does this with all that comes in.
fn policy(name: &str, labels: Value, action: &str) -> Value {
    json!({"apiVersion": "policy.networking.k8s.io/v1alpha2", "kind": "ClusterNetworkPolicy", "metadata": {"name": name, "labels": labels},
        "spec": {"tier": "Admin", "priority": 900, "subject": {"namespaces": {"matchLabels": {"nobody": "here"}}},
            "ingress": [{"action": action, "from": [{"namespaces": {}}]}]}})
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

    our_account_opens_nothing(&cp, &all, &ours).await?;

    // It goes ahead of the deny.
    let namespaces: Api<Namespace> = Api::all(cp.client().await?);
    let off = json!({"metadata": {"labels": {SWITCH: "off"}}});
    namespaces.patch(ns.name(), &PatchParams::default(), &Patch::Merge(&off)).await?;
    wait_gone(&policies(&ns), DENY).await?;
    ensure!(all.get_opt(&ours).await?.is_none(), "the deny went first");
    Ok(())
}
