//! The process behind the reviews of builds and agents: F5 and F6.

use std::cell::Cell;
use std::convert::Infallible;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use drawbridge::domain::keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::PostParams;
use kube::core::Status;
use webhook_tests::patience::patience;
use webhook_tests::pki::{Authority, Pair};
use webhook_tests::{
    ControlPlane, Drawbridge, Installation, Installing, Options, TestNamespace, installation, wait_for,
};

use super::scope::agent;
use super::{minimal, origin};

/// Between two looks at what changes without a watch.
const PACE: Duration = Duration::from_millis(50);

/// The process that counts itself as leader.
async fn leader(processes: &[Drawbridge]) -> Result<&Drawbridge> {
    let begun = Instant::now();
    loop {
        for process in processes {
            if process.metrics().await?.sum("leader_election_master_status", &[]) > 0.0 {
                return Ok(process);
            }
        }
        ensure!(begun.elapsed() < patience(), "nobody says that it leads");
        tokio::time::sleep(PACE).await;
    }
}

/// An AgentBuild through both of its webhooks, without being stored: the refusal, if there is one.
async fn review(ns: &TestNamespace) -> Result<Result<(), Status>> {
    let answer = ns.create(&minimal("probe"), true).await?.result;
    if let Ok(stored) = &answer {
        ensure!(origin(stored) == "template/dev", "accepted without having been completed: {stored:?}");
    }
    Ok(answer.map(drop))
}

/// Reviews one after the other; comes back when one was not answered as it should have been.
async fn until_unserved(ns: &TestNamespace, answered: &Cell<u32>) -> Result<Infallible> {
    loop {
        if let Err(refusal) = review(ns).await? {
            bail!("F5: not served after {} answers: {}", answered.get(), refusal.message);
        }
        answered.set(answered.get() + 1);
        tokio::time::sleep(PACE).await;
    }
}

#[tokio::test]
async fn case_f5_a_killed_leader_is_followed_and_reviews_are_answered_throughout() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { webhooks: 2, controllers: 2, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("team").await?;
    ns.accepts(&agent("before")).await?;
    wait_for(&ns.api::<Deployment>(), "before", |_| true).await?;
    let leader = leader(&installation.controllers).await?;

    let answered = Cell::new(0_u32);
    let following = async {
        leader.kill().await;
        // Nobody leads at this moment, and this is answered nevertheless, as are reviews: one of these two began after the kill.
        let before = answered.get();
        ns.accepts(&agent("after")).await?;
        while answered.get() < before + 2 {
            tokio::time::sleep(PACE).await;
        }
        wait_for(&ns.api::<Deployment>(), "after", |_| true).await.context("F5: nobody follows")
    };
    tokio::select! {
        failed = until_unserved(&ns, &answered) => match failed? {},
        followed = following => drop(followed?),
    }
    Ok(())
}

/// Puts a pair where the kubelet puts a mounted Secret: both files at once, by the swap of a link.
fn mount(folder: &Path, generation: &str, pair: &Pair) -> Result<()> {
    let content = folder.join(generation);
    std::fs::create_dir(&content)?;
    std::fs::write(content.join("tls.crt"), &pair.certificate)?;
    std::fs::write(content.join("tls.key"), &pair.key)?;
    symlink(generation, folder.join("..data_tmp"))?;
    std::fs::rename(folder.join("..data_tmp"), folder.join("..data"))?;
    Ok(())
}

/// From now on the API server trusts this authority and no other, as an administrator with certificates of his own says.
async fn trust(cp: &ControlPlane, authority: &Authority) -> Result<()> {
    let (client, bundle) = (cp.client().await?, ByteString(authority.certificate().into_bytes()));
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let mut object = mutating.get(keys::WEBHOOK_CONFIGURATION).await?;
    for hook in object.webhooks.iter_mut().flatten() {
        hook.client_config.ca_bundle = Some(bundle.clone());
    }
    mutating.replace(keys::WEBHOOK_CONFIGURATION, &PostParams::default(), &object).await?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client);
    let mut object = validating.get(keys::WEBHOOK_CONFIGURATION).await?;
    for hook in object.webhooks.iter_mut().flatten() {
        hook.client_config.ca_bundle = Some(bundle.clone());
    }
    validating.replace(keys::WEBHOOK_CONFIGURATION, &PostParams::default(), &object).await?;
    Ok(())
}

/// Waits until the API server's calls end as wanted.
async fn until(ns: &TestNamespace, what: &str, wanted: impl Fn(&Result<(), Status>) -> bool) -> Result<()> {
    let begun = Instant::now();
    loop {
        let answer = review(ns).await?;
        if wanted(&answer) {
            return Ok(());
        }
        ensure!(begun.elapsed() < patience(), "F6: {what}: {answer:?}");
        tokio::time::sleep(PACE).await;
    }
}

/// The judge is the API server, which is told to trust the second authority only while the first one's certificate is
/// still served: what it accepts afterwards was answered with the new certificate.
#[tokio::test]
async fn case_f6_a_certificate_replaced_on_disk_is_used_without_a_restart() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
    let (one, two) = (Authority::new("one")?, Authority::new("two")?);
    let folder = tempfile::tempdir()?;
    mount(folder.path(), "..1", &one.server(&host, &[&host])?)?;
    for name in ["tls.crt", "tls.key"] {
        symlink(Path::new("..data").join(name), folder.path().join(name))?;
    }
    let files = format!("--webhook-cert-path={}", folder.path().display());
    let installing = Installing { flags: vec!["--drain-delay=500ms".to_owned(), files], ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let process = installation.webhooks[0].pid();
    let ns = cp.namespace("team").await?;

    trust(&cp, &one).await?;
    until(&ns, "the first certificate", Result::is_ok).await?;
    trust(&cp, &two).await?;
    let untrusted = |answer: &Result<(), Status>| {
        answer.as_ref().is_err_and(|refusal| refusal.message.contains("certificate signed by unknown authority"))
    };
    until(&ns, "the first certificate under the second authority", untrusted).await?;
    mount(folder.path(), "..2", &two.server(&host, &[&host])?)?;
    until(&ns, "the second certificate", Result::is_ok).await?;
    assert!(process.is_some() && installation.webhooks[0].pid() == process, "F6: another process");
    Ok(())
}
