//! HTTPRoutes under the definition of Gateway API itself, on a control plane of its own: they are made once it is there, say what a Gateway
//! says of them, and are all that our own account writes of their kind.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::{Installation, Installing, Options, TestNamespace, installation, wait_for};

use super::fence::fenced;
use super::{objects, ready};
use crate::agents::stage::CONTROLLERS;

const ON: &str = "kaos:\n  gateway:\n    enabled: true\n    name: edge\n    namespace: infra\n";
const DEFINITION: &str = "httproutes.gateway.networking.k8s.io";

fn routes(ns: &TestNamespace) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "HTTPRoute");
    Api::namespaced_with(ns.client(), ns.name(), &ApiResource::from_gvk(&kind))
}

/// Condition `RouteAccepted` as `status/reason`.
fn accepted(object: &DynamicObject) -> String {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let found = all.into_iter().find(|one| one["type"] == "RouteAccepted").unwrap_or_default();
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("status"), text("reason"))
}

/// Law 7: somebody's route and ConfigMap of the names of ours, without our labels, so that no watch delivers them. Each is a named conflict; the
/// route stops nothing else, and once they are gone ours are made.
async fn what_is_in_the_way_is_named(ns: &TestNamespace, routes: &Api<DynamicObject>) -> Result<()> {
    let foreign = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "modelapi-o"},
        "spec": {"parentRefs": [{"name": "theirs"}]},
    });
    let foreign: DynamicObject = serde_json::from_value(foreign)?;
    routes.create(&PostParams::default(), &foreign).await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "litellm-config-n"}, "data": {"their": "own"}}))
        .await?;
    for name in ["n", "o"] {
        ns.accepts(&json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": name},
            "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}},
        }))
        .await?;
    }
    let apis = objects(ns, "ModelAPI");
    wait_for(&apis, "o", |api| ready(api) && accepted(api) == "False/NameConflict").await?;
    let named = |api: &DynamicObject| {
        let message = api.data["status"]["message"].as_str().unwrap_or_default();
        message.starts_with("ConfigMap litellm-config-n of this namespace is there without")
    };
    wait_for(&apis, "n", named).await?;
    let config_maps = ns.api::<ConfigMap>();
    let kept = config_maps.get("litellm-config-n").await?.data.unwrap_or_default();
    ensure!(kept.len() == 1 && kept.contains_key("their"), "it is left alone: {kept:?}");
    config_maps.delete("litellm-config-n", &DeleteParams::default()).await?;
    routes.delete("modelapi-o", &DeleteParams::default()).await?;
    wait_for(&apis, "n", ready).await?;
    wait_for(&apis, "o", |api| ready(api) && accepted(api) == "Unknown/RoutePending").await?;
    Ok(())
}

/// Rulings 16 and 27.
#[tokio::test]
async fn rulings_16_and_27_routes_are_made_where_they_are_served_and_fenced_like_all_that_is_made() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { platform: ON.to_owned(), ..Installing::default() };
    let _installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("routes").await?;
    ns.accepts(&json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "m"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}},
    }))
    .await?;
    let apis = objects(&ns, "ModelAPI");
    let absent = |api: &DynamicObject| ready(api) && accepted(api) == "Unknown/GatewayApiAbsent";
    wait_for(&apis, "m", absent).await?;

    cp.define("install-gateway", DEFINITION).await?;
    let routes = routes(&ns);
    let route = wait_for(&routes, "modelapi-m", |_| true).await?;
    let spec = &route.data["spec"];
    let parent = &spec["parentRefs"][0];
    assert_eq!((&parent["name"], &parent["namespace"]), (&json!("edge"), &json!("infra")));
    let rule = &spec["rules"][0];
    assert_eq!(rule["matches"][0]["path"]["value"], json!(format!("/{}/modelapi/m", ns.name())));
    assert_eq!((&rule["backendRefs"][0]["name"], &rule["timeouts"]["request"]), (&json!("modelapi-m"), &json!("120s")));
    let api = wait_for(&apis, "m", |api| accepted(api) == "Unknown/RoutePending").await?;

    // What the Gateway says is what the condition says, and what the API server fills in of a route is not written again.
    let log = cp.audit();
    let mark = log.mark()?;
    for (status, reason, says) in
        [("False", "NotAllowedByListeners", "False/RouteRefused"), ("True", "Accepted", "True/RouteAccepted")]
    {
        let condition = json!({
            "type": "Accepted", "status": status, "reason": reason, "message": "m", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let parents =
            json!([{"parentRef": parent, "controllerName": "example.com/gateway", "conditions": [condition]}]);
        let patch = json!({"status": {"parents": parents}});
        routes.patch_status("modelapi-m", &PatchParams::default(), &Patch::Merge(&patch)).await?;
        wait_for(&apis, "m", |api| accepted(api) == says && ready(api)).await?;
    }
    let written = log.settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    let of_routes = written.filter(|request| request.resource == "httproutes");
    ensure!(of_routes.is_empty(), "{of_routes}");

    let ours = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let kind = ("/apis/gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes");
    fenced(&ours, (ns.name(), &api), kind, ("modelapi-m", ("spec", spec.clone()))).await?;
    what_is_in_the_way_is_named(&ns, &routes).await
}
