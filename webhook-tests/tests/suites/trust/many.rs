//! Many agents of one namespace: one flips alone, all flip at once, all go into quarantine and come out, and a restart writes nothing. What it took is printed.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use webhook_tests::{Options, TestNamespace, installation, trial, wait_for, wait_gone, wait_until};

use super::fleet::{self, AT_ONCE, a_restart_writes_nothing, names, written};
use super::quarantine::{HELD, QUARANTINE, command};
use super::*;

/// Waits until that many policies open their agent.
async fn open(ns: &TestNamespace, agents: usize) -> Result<()> {
    let config = watcher::Config::default();
    wait_until(&policies(ns), config, |all| all.values().filter(|policy| opens(policy)).count() == agents).await?;
    Ok(())
}

/// What it took is a result; `--nocapture` shows it.
#[allow(clippy::print_stderr, reason = "figures of the trial")]
fn told(agents: usize, what: &str, begun: Instant) {
    eprintln!("{agents} agents: {what} after {:?}", begun.elapsed());
}

#[tokio::test]
async fn many_agents_flip_at_once_go_into_quarantine_and_come_back() -> Result<()> {
    let agents = trial::size(40, 500);
    let cp = installation::plane(Options::default()).await?;
    let (installation, ns) = fleet::start(&cp, "many", agents).await?;
    let config = watcher::Config::default;

    // One of them alone: its policy and its Pod are written, and nothing else.
    let mark = cp.audit().mark()?;
    card_says(&cp, &ns, "w-0", true).await?;
    let begun = Instant::now();
    wait_for(&policies(&ns), "w-0-signature-policy", opens).await?;
    labelled(&ns, "w-0", true).await?;
    told(agents, "one card had flipped, and its policy and label were seen", begun);
    let flip = written(&cp, mark).await?;
    ensure!(flip.len() == 2 && flip.iter().all(|write| write.contains("w-0")), "{flip:#?}");
    for line in fleet::behind_the_status(&cp, mark).await? {
        eprintln!("{agents} agents: {line}");
    }

    let begun = Instant::now();
    let flipped = stream::iter(names(agents)).map(|name| {
        let (cp, ns) = (&cp, &ns);
        async move { card_says(cp, ns, &name, true).await }
    });
    flipped.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    told(agents, "every card had been flipped", begun);
    wait_until(&ns.api::<Pod>(), config(), |all| all.values().all(is_verified)).await?;
    open(&ns, agents).await?;
    told(agents, "every agent was open", begun);

    let everyone = format!("namespace/{}", ns.name());
    for (target, settled) in [(&["agent/w-0", "-n", ns.name()][..], 1), (&[&everyone[..]][..], agents)] {
        let begun = Instant::now();
        let args = [&["quarantine"][..], target, &["--reason", "a trial"][..]].concat();
        let (answer, code) = command(&cp, &args).await?;
        ensure!(code == Some(0) && answer["namespaces"][0]["settled"] == settled, "{code:?} {answer:#}");
        told(agents, &format!("quarantine of {settled} held"), begun);
        let (answer, code) = command(&cp, &[&["release"][..], target].concat()).await?;
        ensure!(code == Some(0), "{code:?} {answer:#}");
        wait_gone(&policies(&ns), QUARANTINE).await?;
    }
    wait_until(&ns.api::<Pod>(), config(), |all| {
        all.values().all(|pod| is_verified(pod) && !pod.labels().contains_key(HELD))
    })
    .await?;
    open(&ns, agents).await?;
    a_restart_writes_nothing(&cp, &installation, &ns).await
}
