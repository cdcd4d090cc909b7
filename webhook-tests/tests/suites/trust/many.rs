//! Many agents of one namespace: all flip at once, all go into quarantine and come out, and a restart writes nothing. What it took is printed.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::ResourceExt as _;
use kube::runtime::watcher;
use webhook_tests::{ControlPlane, Installation, Installing, Options, wait_for, wait_gone, wait_until};

use super::quarantine::{HELD, QUARANTINE, command};
use super::rest::written;
use super::*;

/// Requests of the test at a time.
const AT_ONCE: usize = 16;

#[allow(clippy::print_stderr, reason = "what it took is a result, shown with --nocapture")]
async fn with(agents: usize) -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace_with("many", &[(SWITCH, "enforced")]).await?;
    wait_for(&policies(&ns), DENY, |_| true).await?;
    let each = || stream::iter((0..agents).map(|number| format!("w-{number}")));
    let made = each().map(|name| {
        let ns = &ns;
        async move { ns.accepts(&agent(&name)).await.map(drop) }
    });
    made.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let config = watcher::Config::default;
    let run = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    wait_until(&ns.api::<Pod>(), config(), |all| all.values().filter(|pod| run(pod)).count() == agents).await?;
    wait_until(&policies(&ns), config(), |all| all.len() == agents + 1).await?;

    let begun = Instant::now();
    let flipped = each().map(|name| {
        let (cp, ns) = (&cp, &ns);
        async move { card_says(cp, ns, &name, true).await }
    });
    flipped.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    let said = begun.elapsed();
    wait_until(&ns.api::<Pod>(), config(), |all| all.values().all(is_verified)).await?;
    wait_until(&policies(&ns), config(), |all: &std::collections::BTreeMap<String, NetworkPolicy>| {
        all.values().filter(|policy| opens(policy)).count() == agents
    })
    .await?;
    eprintln!("{agents} cards flipped in {said:?}, and {agents} agents were open after {:?}", begun.elapsed());

    let target = format!("namespace/{}", ns.name());
    let begun = Instant::now();
    let args = ["quarantine", &target, "--reason", "all of them", "--timeout", "120s"];
    let (answer, code) = command(&cp, &args).await?;
    ensure!(code == Some(0) && answer["namespaces"][0]["settled"] == agents, "{code:?} {answer:#}");
    eprintln!("quarantine of {agents} agents held after {:?}", begun.elapsed());
    let (answer, code) = command(&cp, &["release", &target, "--timeout", "120s"]).await?;
    ensure!(code == Some(0), "{code:?} {answer:#}");
    wait_gone(&policies(&ns), QUARANTINE).await?;
    wait_until(&ns.api::<Pod>(), config(), |all| {
        all.values().all(|pod| is_verified(pod) && !pod.labels().contains_key(HELD))
    })
    .await?;
    wait_until(&policies(&ns), config(), |all| all.values().filter(|policy| opens(policy)).count() == agents).await?;

    let mark = cp.audit().mark()?;
    let controllers = installation.controllers.first().context("controllers")?;
    controllers.kill().await;
    controllers.start_again()?;
    controllers.ready().await?;
    ns.accepts(&agent("after")).await?;
    wait_for(&policies(&ns), "after-signature-policy", |_| true).await?;
    let writes = written(&cp, mark).await?;
    ensure!(writes.len() == 1, "at rest nothing is written, restart included: {writes:#?}");
    Ok(())
}

#[tokio::test]
async fn forty_agents_flip_at_once_go_into_quarantine_and_come_back() -> Result<()> {
    with(40).await
}

/// The long form: `cargo test --test suites -- --ignored --nocapture five_hundred`.
#[tokio::test]
#[ignore = "some minutes; prints what the short form does not measure"]
async fn five_hundred_agents_flip_at_once_go_into_quarantine_and_come_back() -> Result<()> {
    with(500).await
}
