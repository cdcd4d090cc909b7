//! What Pods that sign their card have for it: made ahead, good for the one ConfigMap, and gone with the annotation. What the operator's own
//! account may make of it by itself, the API server's policies bind.

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, TestNamespace, wait_for, wait_gone};

use super::*;

const SIGNED: &str = "weather-card-signed";
const AWAITS: &str = "agentcard.kagenti.dev/awaits-signature";

/// An injected agent that signs its card.
fn signing(name: &str) -> Value {
    let mut object = agent(name);
    object["spec"]["template"]["metadata"] = json!({
        "labels": {"app": name, "kagenti.io/type": "agent"},
        "annotations": {"agentcard.kagenti.dev/sign": "true"},
    });
    object
}

/// As the account of that name in the namespace.
async fn as_account(cp: &ControlPlane, ns: &TestNamespace, name: &str) -> Result<Client> {
    cp.service_account(ns.name(), name).await?.client().await
}

fn config_map(ns: &TestNamespace, name: &str) -> String {
    format!("/api/v1/namespaces/{}/configmaps/{name}", ns.name())
}

#[tokio::test]
async fn what_signs_its_card_may_write_one_config_map_and_nothing_else() -> Result<()> {
    let cp = webhook_tests::installation::shared().await?;
    let ns = cp.namespace("signing").await?;
    ns.accepts(&signing("weather")).await?;
    let made = wait_for(&ns.api::<ConfigMap>(), SIGNED, |_| true).await?;
    ensure!(made.data.is_none() && made.annotations().contains_key(AWAITS), "{made:?}");
    wait_for(&ns.api::<Role>(), SIGNED, |_| true).await?;
    wait_for(&ns.api::<RoleBinding>(), SIGNED, |_| true).await?;
    let pod = running(&ns, "weather").await?;
    let inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let names: Vec<&str> = inits.map(|container| container.name.as_str()).collect();
    ensure!(names.first() == Some(&"sign-agentcard") && names.contains(&"proxy-init"), "{names:?}");
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
    ensure!(account.as_deref() == Some("weather"), "{account:?}");

    let pods = as_account(cp, &ns, "weather").await?;
    let patch = json!({"metadata": {"annotations": {AWAITS: null}}, "data": {"agent-card.json": "{}"}});
    let (code, said) = request(&pods, "PATCH", config_map(&ns, SIGNED), Some(patch.clone())).await?;
    ensure!(code == 200, "the one that it signs: {code}: {said}");
    let collection = config_map(&ns, "").trim_end_matches('/').to_owned();
    let other = json!({"metadata": {"name": "other"}});
    for (what, method, path, body) in [
        ("another ConfigMap", "PATCH", config_map(&ns, "authbridge-config"), Some(patch)),
        ("a new one", "POST", collection.clone(), Some(other)),
        ("all of them", "GET", collection, None),
        ("taking it away", "DELETE", config_map(&ns, SIGNED), None),
    ] {
        let (code, said) = request(&pods, method, path, body).await?;
        ensure!(code == 403, "{what}: {code}: {said}");
    }
    let signed = ns.api::<ConfigMap>().get(SIGNED).await?;
    ensure!(signed.uid() == made.uid() && !signed.annotations().contains_key(AWAITS), "{signed:?}");

    // Without the annotation it ends, and the account loses the right.
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"agentcard.kagenti.dev/sign": null}}}}});
    ns.api::<Deployment>().patch("weather", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    wait_gone(&ns.api::<ConfigMap>(), SIGNED).await?;
    ensure!(ns.api::<Role>().get_opt(SIGNED).await?.is_none(), "the right goes before what it is on");
    ensure!(ns.api::<RoleBinding>().get_opt(SIGNED).await?.is_none());
    Ok(())
}

/// The API server takes the sidecar as it is meant: a native one, first of all, that holds up the others until it has signed. A Pod that cannot have it keeps the
/// init container, and who applies it is told.
#[tokio::test]
async fn what_signs_anew_gets_a_native_sidecar_and_the_same_right() -> Result<()> {
    let cp = webhook_tests::installation::shared().await?;
    let ns = cp.namespace("signing-anew").await?;
    let mut object = signing("weather");
    object["spec"]["template"]["metadata"]["annotations"]["agentcard.kagenti.dev/sign"] = json!("sidecar");
    let mut plain = signing("once");
    plain["spec"]["template"]["metadata"]["annotations"] =
        json!({"agentcard.kagenti.dev/sign": "sidecar", "kagenti.io/native-sidecars": "disabled"});
    let told = |answer: webhook_tests::Answer| answer.warnings.join("\n");
    let (anew, once) = (told(ns.apply_one(&object, false).await?), told(ns.apply_one(&plain, false).await?));
    ensure!(!anew.contains("SignsAtStart"), "{anew}");
    ensure!(once.contains("SignsAtStart") && once.contains("nativeSidecars is disabled"), "{once}");

    wait_for(&ns.api::<RoleBinding>(), SIGNED, |_| true).await?;
    let pod = running(&ns, "weather").await?;
    let inits: Vec<_> = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()).collect();
    let signer = inits.first().filter(|first| first.name == "sign-agentcard").expect("it comes first");
    ensure!(signer.restart_policy.as_deref() == Some("Always"), "{signer:?}");
    ensure!(signer.args.iter().flatten().any(|word| word == "--stay") && signer.ports.is_none(), "{signer:?}");
    let probe = signer.startup_probe.as_ref().and_then(|probe| Some((probe.exec.as_ref()?, probe.failure_threshold)));
    let command = probe.and_then(|(exec, _)| exec.command.as_ref()).expect("a program tells that it has signed");
    ensure!(command.iter().any(|word| word == "--has-started"), "{command:?}");
    ensure!(probe.is_some_and(|(_, failures)| failures > Some(30)), "longer than it waits itself: {probe:?}");
    let once = running(&ns, "once").await?;
    let inits = once.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let signer = inits.into_iter().find(|one| one.name == "sign-agentcard").expect("it signs when it starts");
    ensure!(signer.restart_policy.is_none() && signer.startup_probe.is_none(), "{signer:?}");
    Ok(())
}

/// With a stolen token of the controllers nobody gets more than that.
#[tokio::test]
async fn our_own_account_makes_no_other_right() -> Result<()> {
    let cp = webhook_tests::installation::shared().await?;
    let ns = cp.namespace("signing-rights").await?;
    ns.accepts(&signing("weather")).await?;
    wait_for(&ns.api::<ConfigMap>(), SIGNED, |_| true).await?;
    wait_for(&ns.api::<Role>(), SIGNED, |_| true).await?;
    wait_for(&ns.api::<RoleBinding>(), SIGNED, |_| true).await?;
    let deployment = wait_for(&ns.api::<Deployment>(), "weather", |_| true).await?;
    let ours = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let metadata = |name: &str| {
        json!({"name": name, "labels": {"app.kubernetes.io/managed-by": "drawbridge"}, "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "weather", "uid": deployment.uid(), "controller": true}]})
    };
    let rule = |resource: &str, names: Value, verbs: Value| json!([{"apiGroups": [""], "resources": [resource], "resourceNames": names, "verbs": verbs}]);
    let role = |metadata: Value, rules: Value| json!({"metadata": metadata, "rules": rules});
    let good = rule("configmaps", json!([SIGNED]), json!(["get", "patch"]));
    let unowned = json!({"name": SIGNED, "labels": {"app.kubernetes.io/managed-by": "drawbridge"}});
    let at = |resource: &str| format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{resource}", ns.name());
    for (what, object) in [
        ("another name", role(metadata("other"), good.clone())),
        ("no owner", role(unowned, good.clone())),
        ("every ConfigMap", role(metadata(SIGNED), rule("configmaps", json!([]), json!(["get", "patch"])))),
        ("another ConfigMap", role(metadata(SIGNED), rule("configmaps", json!(["x"]), json!(["get", "patch"])))),
        ("Secrets", role(metadata(SIGNED), rule("secrets", json!([SIGNED]), json!(["get"])))),
        ("more verbs", role(metadata(SIGNED), rule("configmaps", json!([SIGNED]), json!(["get", "patch", "delete"])))),
        ("nothing", role(metadata(SIGNED), json!([]))),
    ] {
        let (code, said) = request(&ours, "POST", at("roles"), Some(object)).await?;
        ensure!(code == 403 && said.contains("drawbridge-own-objects"), "{what}: {code}: {said}");
    }
    // One like the operator's own is let through, and is there already.
    let (code, said) = request(&ours, "POST", at("roles"), Some(role(metadata(SIGNED), good))).await?;
    ensure!(code == 409, "{code}: {said}");
    let wider = json!({"rules": rule("configmaps", json!([]), json!(["get", "patch"]))});
    let (code, said) = request(&ours, "PATCH", format!("{}/{SIGNED}", at("roles")), Some(wider)).await?;
    ensure!(code == 403, "widened: {code}: {said}");
    let binding = |kind: &str, role: &str, subject: Value| {
        json!({"metadata": metadata(SIGNED), "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}})
    };
    let account = |namespace: &str| json!({"kind": "ServiceAccount", "name": "weather", "namespace": namespace});
    let user = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"});
    for (what, object) in [
        ("a ClusterRole", binding("ClusterRole", "drawbridge-controllers", account(ns.name()))),
        ("a person", binding("Role", SIGNED, user)),
        ("an account elsewhere", binding("Role", SIGNED, account("default"))),
    ] {
        let (code, said) = request(&ours, "POST", at("rolebindings"), Some(object)).await?;
        ensure!(code == 403 && said.contains("drawbridge-own-objects"), "{what}: {code}: {said}");
    }
    Ok(())
}
