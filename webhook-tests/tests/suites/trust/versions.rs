//! Two versions of the operator side by side, as while it is updated: nothing goes to and fro between them.
//!
//! The older one is played: under the operator's own account and a field manager of its own it writes policies of another shape, without a label
//! that came later, and labels Pods by other rules, while the Lease is its.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, Options, TestNamespace, installation, wait_for};

use super::fleet::{self, a_restart_writes_nothing, written};
use super::*;

/// Field manager of the older one.
const OLDER: &str = "drawbridge-older";
/// A label that it does not know.
const LATER: &str = "kagenti.dev/policy-type";

/// The Lease says that this one holds it.
async fn led_by(cp: &ControlPlane, holder: &str, seconds: u32) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, "kagenti-system");
    let patch = json!({"spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds}});
    leases.patch("drawbridge-controllers", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    Ok(())
}

/// The older one, in one namespace.
struct Older {
    policies: Api<NetworkPolicy>,
    pods: Api<Pod>,
}

impl Older {
    async fn new(cp: &ControlPlane, ns: &TestNamespace) -> Result<Self> {
        let client = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
        Ok(Self { policies: Api::namespaced(client.clone(), ns.name()), pods: Api::namespaced(client, ns.name()) })
    }

    fn params() -> PatchParams {
        PatchParams { field_manager: Some(OLDER.to_owned()), ..PatchParams::default() }
    }

    /// The policy of an agent, as it has it.
    async fn opens(&self, workload: &str) -> Result<()> {
        let shape = json!({"metadata": {"labels": {LATER: null}}, "spec": {"ingress": [{}], "egress": [{}]}});
        let name = format!("{workload}-signature-policy");
        self.policies.patch(&name, &Self::params(), &Patch::Merge(&shape)).await.context(name)?;
        Ok(())
    }

    async fn labels(&self, pod: &Pod) -> Result<()> {
        let label = json!({"metadata": {"labels": {VERIFIED: "true"}}});
        self.pods.patch(&pod.name_any(), &Self::params(), &Patch::Merge(&label)).await?;
        Ok(())
    }
}

/// Labels and `spec`: what a version writes.
fn shape(policy: &NetworkPolicy) -> Result<Value> {
    Ok(json!({"labels": policy.labels(), "spec": serde_json::to_value(&policy.spec)?}))
}

#[tokio::test]
async fn nothing_goes_to_and_fro_between_two_versions_of_the_operator() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let (installation, ns) = fleet::start(&cp, "versions", 3).await?;
    card_says(&cp, &ns, "w-0", true).await?;
    labelled(&ns, "w-0", true).await?;
    let open = wait_for(&policies(&ns), "w-0-signature-policy", opens).await?;
    let closed = policies(&ns).get("w-1-signature-policy").await?;
    ensure!(open.labels().contains_key(LATER) && closed.labels().contains_key(LATER));
    let wanted = [("w-0", shape(&open)?), ("w-1", shape(&closed)?)];

    // The older one leads when the newer one starts.
    let controllers = installation.controllers.first().context("controllers")?;
    controllers.kill().await;
    led_by(&cp, "older", 3600).await?;
    let mark = cp.audit().mark()?;
    controllers.start_again()?;
    controllers.ready().await?;
    let older = Older::new(&cp, &ns).await?;
    for (workload, _) in &wanted {
        older.opens(workload).await?;
    }
    older.labels(&running(&ns, "w-1").await?).await?;

    // It gives the Lease back, and what it wrote is mended.
    led_by(&cp, "", 1).await?;
    labelled(&ns, "w-1", false).await?;
    for (workload, wanted) in &wanted {
        let is_mended = |policy: &NetworkPolicy| shape(policy).is_ok_and(|shape| shape == *wanted);
        wait_for(&policies(&ns), &format!("{workload}-signature-policy"), is_mended).await?;
    }
    // One write of it was on its way still.
    older.opens("w-0").await?;
    let is_mended = |policy: &NetworkPolicy| shape(policy).is_ok_and(|shape| shape == wanted[0].1);
    wait_for(&policies(&ns), "w-0-signature-policy", is_mended).await?;

    // Each once, and nothing while the older one led: then there would be more.
    let all = written(&cp, mark).await?;
    let (theirs, ours): (Vec<_>, Vec<_>) = all.into_iter().partition(|write| write.contains(OLDER));
    let of = |what: &str| ours.iter().filter(|write| write.contains(what)).count();
    ensure!(theirs.len() == 4, "{theirs:#?}");
    let each = [of("/w-0-signature-policy"), of("/w-1-signature-policy"), of("/pods/w-1-")];
    ensure!(ours.len() == 4 && each == [2, 1, 1], "each is mended once: {ours:#?}");
    a_restart_writes_nothing(&cp, &installation, &ns).await
}
