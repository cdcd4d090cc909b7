//! Many agents of one namespace that enforces, on a control plane of their own, and what the controllers write there.

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use webhook_tests::{ControlPlane, Installation, Installing, Mark, TestNamespace, wait_for, wait_until};

use super::*;

/// User of the processes that write.
pub(super) const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";
/// Requests of the test at a time.
pub(super) const AT_ONCE: usize = 16;

/// The names of so many agents.
pub(super) fn names(agents: usize) -> impl Iterator<Item = String> {
    (0..agents).map(|number| format!("w-{number}"))
}

/// Installs the product and makes so many agents in one namespace: their Pods run, and each has its policy.
pub(super) async fn start(cp: &ControlPlane, name: &str, agents: usize) -> Result<(Installation, TestNamespace)> {
    let installation = Installation::start(cp, &Installing::default()).await?;
    let ns = cp.namespace_with(name, &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    let made = stream::iter(names(agents)).map(|name| {
        let ns = &ns;
        async move { ns.accepts(&agent(&name)).await.map(drop) }
    });
    made.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let run = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let config = watcher::Config::default;
    wait_until(&ns.api::<Pod>(), config(), |all| all.values().filter(|pod| run(pod)).count() == agents).await?;
    wait_until(&policies(&ns), config(), |all| all.len() == agents + 1).await?;
    Ok((installation, ns))
}

/// What the controllers wrote on Pods and NetworkPolicies since then.
pub(super) async fn written(cp: &ControlPlane, mark: Mark) -> Result<Vec<String>> {
    let requests = cp.audit().settled(mark).await?.by(CONTROLLERS).writes();
    let of = |resource: &str| ["pods", "networkpolicies"].contains(&resource);
    Ok(requests.filter(|request| of(&request.resource)).iter().map(ToString::to_string).collect())
}

/// After a restart everything is looked at again, as an agent shows that is made then, and nothing is written but for that one.
pub(super) async fn a_restart_writes_nothing(
    cp: &ControlPlane,
    installation: &Installation,
    ns: &TestNamespace,
) -> Result<()> {
    let mark = cp.audit().mark()?;
    installation.restart_controllers().await?;
    ns.accepts(&agent("after")).await?;
    wait_for(&policies(ns), "after-signature-policy", |_| true).await?;
    let writes = written(cp, mark).await?;
    ensure!(writes.len() == 1, "at rest nothing is written, restart included: {writes:#?}");
    Ok(())
}
