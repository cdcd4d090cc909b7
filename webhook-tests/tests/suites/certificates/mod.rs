//! Certificates against a real API server: racing replicas, rotation under load, damage, other writers, who may write.
//!
//! The replicas are the real sources and publishers, each with a resolver and a TLS server of its own, under a
//! ServiceAccount with exactly the rights that `server::certs` names. The judge is a client that opens new TLS
//! connections against the bundles it has just read from the API.

mod events;
mod leadership;
mod matrix;
mod mutual;
mod others;
mod refused;
mod stage;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use drawbridge::server::certs::{CertManagerSecret, CertManagerSecretConfig, Lifetimes, Millis, Resolver};
use drawbridge::server::shutdown::Shutdown;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use stage::{Replica, Stage, fingerprints, roots_of};
use webhook_tests::audit::Requests;
use webhook_tests::patience::{delay, patience};
use webhook_tests::pki::Authority;
use webhook_tests::{trial, wait_for};

/// What changed something, but for the keeping of the Lease and the telling of people. A creation that finds the Secret
/// there (409) changes nothing: a replica whose list was older than its neighbour's Secret may still be answered so.
fn writes(requests: &Requests) -> Requests {
    let changed = |code: Option<u16>| code.is_none_or(|code| code < 300);
    requests
        .clone()
        .writes()
        .filter(|request| changed(request.code) && !["leases", "events"].contains(&request.resource.as_str()))
}

/// How long what is published settles before anything depends on it: as short as this machine allows, since an API server acts on a bundle when it
/// hears of it.
fn settle() -> Millis {
    Millis::try_from(delay().as_millis()).expect("it is a few seconds")
}

/// Long enough that nothing rotates by itself, with a short settling time.
fn calm() -> Lifetimes {
    Lifetimes { settle: settle(), ..Lifetimes::new(60_000, 600_000) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_replicas_racing_at_first_start_agree_on_one_authority_and_then_send_nothing() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io", "other.kagenti.io"]).await?;
    let from = stage.cp.audit().mark()?;
    let (one, two, three) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()), stage.replica(calm()))?;
    let current = stage.roots("ca.crt").await?;
    assert_eq!([one.root(), two.root(), three.root()], [current[0]; 3]);
    for bundle in stage.bundles().await? {
        assert_eq!(fingerprints(&bundle), current, "one authority in every entry");
    }
    let asked = stage.cp.audit().settled(from).await?.by(stage.account.user());
    let created = asked.clone().verb("create").resource("secrets");
    assert_eq!(created.iter().filter(|request| request.code == Some(201)).count(), 1, "{created}");
    let patched = asked.clone().filter(|request| request.verb == "patch" && request.code == Some(200));
    assert_eq!(patched.len(), 2, "one patch for each configuration: {patched}");

    let quiet = stage.cp.audit().mark()?;
    two.stop().await?;
    let again = stage.replica(calm()).await?;
    assert_eq!(again.root(), current[0]);
    let judge = stage.judge(&[&one, &three, &again]);
    judge.more(50).await?;
    judge.verdict()?;
    let asked = stage.cp.audit().settled(quiet).await?.by(stage.account.user());
    assert!(writes(&asked).is_empty(), "a restart and steady state write nothing: {asked}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c2_rotating_leaves_and_authorities_fails_no_call() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    // What settles is a thirtieth of an authority's life. Renewal is due at two thirds of life: on a machine that is not slow of leaves after 4 s,
    // of authorities after 10.
    let settle = settle();
    let lifetimes = Lifetimes::new(12 * settle, 30 * settle);
    assert_eq!(lifetimes.settle, settle);
    let (enough, rotations) = (trial::size(3, 12), trial::size(1, 3));
    let (one, two, three) =
        tokio::try_join!(stage.replica(lifetimes), stage.replica(lifetimes), stage.replica(lifetimes))?;
    let judge = stage.judge(&[&one, &two, &three]);
    let mut served = one.resolver.served();
    let (mut leaves, mut authorities) = (0, vec![one.root()]);
    let mut overlaps = 0;
    while leaves < enough || overlaps < rotations {
        tokio::time::timeout(patience(), served.changed()).await.context("leaves go on")??;
        leaves += 1;
        let root = served.borrow_and_update().as_ref().unwrap().roots[0];
        if !authorities.contains(&root) {
            let held = fingerprints(&stage.bundles().await?[0]);
            let old = authorities[authorities.len() - 1];
            ensure!(held.contains(&root) && held.contains(&old), "old and new are published together");
            overlaps += 1;
            authorities.push(root);
        }
    }
    judge.more(50).await?;
    judge.verdict()?;
    ensure!(fingerprints(&stage.bundles().await?[0]).len() < 8, "expired roots are swept out");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_a_deleted_damaged_or_replaced_secret_fails_no_call() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    let (one, two) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()))?;
    let judge = stage.judge(&[&one, &two]);
    let (secrets, name) = (stage.secrets(), keys::SECRET_AUTHORITY);
    let first = one.root();

    // Deleted: the same authority comes back, and its successor takes over with overlap.
    let before = secrets.get(name).await?;
    secrets.delete(name, &DeleteParams::default()).await?;
    let back = wait_for(&secrets, name, |secret: &Secret| secret.metadata.uid != before.metadata.uid).await?;
    assert!([roots_of(&back, "ca.crt"), roots_of(&back, "previous.crt")].concat().contains(&first));
    let promoted = wait_for(&secrets, name, |secret| roots_of(secret, "previous.crt").contains(&first)).await?;
    let second = roots_of(&promoted, "ca.crt")[0];
    assert_ne!(second, first);
    one.serves(second).await?;
    two.serves(second).await?;
    judge.more(20).await?;

    // Damaged: put back as it was.
    for (key, bad) in [("ca.crt", "not a certificate"), ("ca.key", "")] {
        let data = json!({ "data": { key: ByteString(bad.as_bytes().to_vec()) } });
        let damaged = secrets.patch(name, &PatchParams::default(), &Patch::Merge(data)).await?;
        let repaired =
            wait_for(&secrets, name, |s: &Secret| s.metadata.resource_version != damaged.metadata.resource_version);
        assert_eq!(roots_of(&repaired.await?, "ca.crt"), [second], "{key}");
        judge.more(20).await?;
    }

    // Replaced by somebody's good authority: used, once it is trusted.
    let theirs = Authority::new("somebody else")?.pair();
    replace(&secrets, &theirs.certificate, &theirs.key).await?;
    let third = fingerprints(theirs.certificate.as_bytes())[0];
    one.serves(third).await?;
    two.serves(third).await?;
    judge.more(20).await?;

    // Replaced by somebody's bad one: left alone, and serving goes on.
    let refused = replace(&secrets, "garbage", "garbage").await?;
    let mark = stage.cp.audit().mark()?;
    judge.more(100).await?;
    let asked = stage.cp.audit().settled(mark).await?.by(stage.account.user());
    assert!(writes(&asked).is_empty(), "{asked}");
    assert_eq!(secrets.get(name).await?.data, refused.data);
    assert_eq!((one.root(), two.root()), (third, third));
    judge.verdict()?;
    Ok(())
}

/// Puts another content into the Secret, and takes our label away.
async fn replace(secrets: &Api<Secret>, certificate: &str, key: &str) -> Result<Secret> {
    let data = [("ca.crt", certificate), ("ca.key", key)];
    let data = data.map(|(name, text)| (name.to_owned(), ByteString(text.as_bytes().to_vec()))).into();
    let mut known = secrets.get(keys::SECRET_AUTHORITY).await?;
    known.data = Some(data);
    known.metadata.labels = None;
    Ok(secrets.replace(keys::SECRET_AUTHORITY, &PostParams::default(), &known).await?)
}

async fn overwrite(stage: &Stage, bundle: &str) -> Result<()> {
    let patch = json!([{ "op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": ByteString(bundle.as_bytes().to_vec()) }]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    let params = PatchParams { field_manager: Some("cainjector".to_owned()), ..PatchParams::default() };
    stage.mutating().patch(keys::WEBHOOK_CONFIGURATION, &params, &patch).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c6_another_writer_is_answered_once_a_minute_and_an_installer_may_rename_entries() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io", "old.kagenti.io"]).await?;
    let (mut one, two) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()))?;
    let ours = one.root();
    let theirs = Authority::new("cainjector")?.certificate();
    let holds = |object: &MutatingWebhookConfiguration| {
        let hooks = object.webhooks.as_deref().unwrap_or_default();
        let bundle = hooks[0].client_config.ca_bundle.clone().unwrap_or_default();
        fingerprints(&bundle.0).contains(&ours)
    };

    // The first time at once, and what they put in stays.
    overwrite(&stage, &theirs).await?;
    let repaired = wait_for(&stage.mutating(), keys::WEBHOOK_CONFIGURATION, holds).await?;
    let bundle = repaired.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap();
    assert_eq!(fingerprints(&bundle.0), [ours, fingerprints(theirs.as_bytes())[0]]);
    one.published().await?;

    // The second time within a minute: it waits for the minute, whoever's turn it is.
    let mark = stage.cp.audit().mark()?;
    overwrite(&stage, &theirs).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = stage.cp.audit().settled(mark).await?.by(stage.account.user());
    assert!(writes(&asked).is_empty(), "{asked}");
    stage.ahead.store(61, Ordering::SeqCst);
    wait_for(&stage.mutating(), keys::WEBHOOK_CONFIGURATION, holds).await?;
    let asked = stage.cp.audit().settled(mark).await?.by(stage.account.user());
    assert_eq!(writes(&asked).filter(|request| request.code == Some(200)).len(), 1, "{asked}");

    // An installer renames one entry, drops nothing else, and is not blocked by what we wrote.
    stage.install(&["inject.kagenti.io", "new.kagenti.io"]).await?;
    let mutating = stage.mutating();
    let renamed = wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, |object| {
        let hooks = object.webhooks.as_deref().unwrap_or_default();
        let trusted = |client: &Option<ByteString>| client.as_ref().is_some_and(|b| fingerprints(&b.0).contains(&ours));
        hooks.iter().all(|hook| trusted(&hook.client_config.ca_bundle))
    });
    let names: Vec<String> = renamed.await?.webhooks.unwrap().into_iter().map(|hook| hook.name).collect();
    assert_eq!(names, ["inject.kagenti.io", "new.kagenti.io"]);

    // A configuration that is deleted and installed again is complete at once.
    stage.remove_configurations().await?;
    stage.install(&["inject.kagenti.io"]).await?;
    wait_for(&stage.mutating(), keys::WEBHOOK_CONFIGURATION, holds).await?;
    assert_eq!(two.root(), ours);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_s_secret_rotates_with_its_authority_without_a_failed_call() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    let host = stage.host();
    let issue = async |authority: &Authority| -> Result<()> {
        let pair = authority.server("webhook", &[&host])?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "provided" }, "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate() },
        });
        stage.ns.apply(&secret.to_string()).await.map(drop)
    };
    let (old, new) = (Authority::new("old")?, Authority::new("new")?);
    issue(&old).await?;
    let start = async || -> Result<Replica> {
        let config = CertManagerSecretConfig {
            namespace: stage.ns.name().to_owned(),
            name: "provided".to_owned(),
            service: keys::SERVICE_WEBHOOK.to_owned(),
            settle: settle(),
        };
        let (resolver, shutdown) = (Resolver::new(), Shutdown::new());
        let client = stage.account.client().await?;
        let (source, publisher) =
            CertManagerSecret::new(&client, config, Arc::clone(&resolver), stage.context(Arc::new(|_| ())));
        let (writer, candidacy) = stage.election(&shutdown).await?;
        let source = tokio::spawn(source.run(shutdown.clone()));
        stage
            .ready(stage.running((resolver, shutdown), vec![source, candidacy], publisher.writing(writer)).await?)
            .await
    };
    let (one, two) = tokio::try_join!(start(), start())?;
    let judge = stage.judge(&[&one, &two]);
    let before = one.resolver.served().borrow().clone().unwrap().fingerprint;
    issue(&old).await?;
    let mut served = one.resolver.served();
    let renewed = served.wait_for(|served| served.as_ref().is_some_and(|served| served.fingerprint != before));
    drop(tokio::time::timeout(patience(), renewed).await.context("the new leaf is served")??);
    judge.more(20).await?;
    issue(&new).await?;
    let root = fingerprints(new.certificate().as_bytes())[0];
    one.serves(root).await?;
    two.serves(root).await?;
    judge.more(20).await?;
    stage.secrets().delete("provided", &DeleteParams::default()).await?;
    judge.more(50).await?;
    judge.verdict()?;
    Ok(())
}
