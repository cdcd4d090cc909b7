//! Many agents of one namespace that enforces, on a control plane of their own, and what the controllers write there.

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use webhook_tests::{
    ControlPlane, Installation, Installing, Mark, Request, Requests, TestNamespace, wait_for, wait_until,
};

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
    Ok(writes(cp, mark).await?.iter().map(ToString::to_string).collect())
}

async fn writes(cp: &ControlPlane, mark: Mark) -> Result<Requests> {
    let requests = cp.audit().settled(mark).await?.by(CONTROLLERS).writes();
    Ok(requests.filter(|request| ["pods", "networkpolicies"].contains(&&*request.resource)))
}

/// How long after the test's last status of a card label and policy were asked for, and were stored, by the API server's own clock: one line for
/// each.
pub(super) async fn behind_the_status(cp: &ControlPlane, mark: Mark) -> Result<Vec<String>> {
    let time = |text: &str| text.parse::<jiff::Timestamp>().with_context(|| text.to_owned());
    let statuses = cp.audit().settled(mark).await?.writes().resource("agentcards");
    // The test writes as the controllers do, and names no manager of fields.
    let of_test = statuses.filter(|status| !status.uri.contains("fieldManager="));
    let stored = time(&of_test.last().context("a status")?.answered)?;
    let behind = |text: &str| time(text).map(|time| time.duration_since(stored).as_millis());
    let line = |one: &Request| {
        Ok(format!(
            "{} asked for after {} ms, stored after {} ms",
            one.resource,
            behind(&one.received)?,
            behind(&one.answered)?
        ))
    };
    writes(cp, mark).await?.iter().map(line).collect::<Result<_>>()
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
