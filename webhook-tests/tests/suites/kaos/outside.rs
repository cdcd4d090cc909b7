//! The controllers outside of the cluster, by a person's kubeconfig, where nothing but the definitions is installed; and the Lease of the operator
//! that was here before.

use std::time::Duration;

use anyhow::{Result, ensure};
use drawbridge::cli::render::platform;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;
use webhook_tests::patience::patience;
use webhook_tests::{ControlPlane, Drawbridge, Options, wait_for, wait_served};

use super::{objects, ready};

pub(super) const DEFINITIONS: [&str; 3] = [
    include_str!("../../../../manifests/crds/agents.kaos.tools.yaml"),
    include_str!("../../../../manifests/crds/modelapis.kaos.tools.yaml"),
    include_str!("../../../../manifests/crds/mcpservers.kaos.tools.yaml"),
];

/// Waits until the process leads and has nothing to do.
async fn at_rest(process: &Drawbridge) -> Result<()> {
    let deadline = Instant::now() + patience();
    loop {
        let metrics = process.metrics().await?;
        let leads = metrics.sum("leader_election_master_status", &[]) > 0.0;
        if leads && metrics.sum("drawbridge_controller_ready_items", &[]) == 0.0 {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "it never leads");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn rulings_20_and_28_controllers_outside_of_the_cluster_wait_for_the_lease_of_the_operator_before() -> Result<()>
{
    let cp = ControlPlane::start(Options::default()).await?;
    let installed = cp.objects().await?;
    for definition in DEFINITIONS {
        for stored in installed.apply(definition).await? {
            wait_served(&installed, &stored.name_any()).await?;
        }
    }
    for name in [keys::OPERATOR_NAMESPACE, "kaos-system"] {
        installed
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string())
            .await?;
    }
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": keys::LEASE_KAOS_BEFORE, "namespace": "kaos-system"},
        "spec": {"holderIdentity": "kaos-operator-1", "leaseDurationSeconds": 600, "renewTime": "2026-01-01T00:00:00.000000Z"},
    });
    installed.apply(&lease.to_string()).await?;
    let ns = cp.namespace("outside").await?;
    let api = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "m"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}},
    });
    ns.accepts(&api).await?;

    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("config.yaml"), platform::platform_file())?;
    std::fs::write(file("gates.yaml"), "{}\n")?;
    let kubeconfig = cp.admin().kubeconfig().display().to_string();
    let process = Drawbridge::launch(cp.admin(), &[("POD_NAMESPACE", keys::OPERATOR_NAMESPACE)], |ports| {
        vec![
            "serve".to_owned(),
            "--roles=controllers".to_owned(),
            format!("--kubeconfig={kubeconfig}"),
            format!("--webhook-bind-address={}", ports.webhook.address()),
            format!("--health-probe-bind-address={}", ports.health.address()),
            format!("--metrics-bind-address={}", ports.metrics.address()),
            format!("--config-path={}", file("config.yaml")),
            format!("--feature-gates-path={}", file("gates.yaml")),
        ]
    })?;
    process.ready().await?;
    at_rest(&process).await?;
    let apis: Api<DynamicObject> = objects(&ns, "ModelAPI");
    let untouched = apis.get("m").await?;
    ensure!(untouched.metadata.finalizers.is_none() && untouched.data.get("status").is_none(), "{untouched:?}");

    let leases: Api<Lease> = Api::namespaced(cp.client().await?, "kaos-system");
    let released = json!({"spec": {"holderIdentity": ""}});
    leases.patch(keys::LEASE_KAOS_BEFORE, &PatchParams::default(), &Patch::Merge(&released)).await?;
    wait_for(&apis, "m", ready).await?;
    ns.api::<Deployment>().get("modelapi-m").await?;
    Ok(())
}
