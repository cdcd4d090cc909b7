//! What happens to certificates is told once, as Events, by the holder of the Lease.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use drawbridge::domain::reason::Reason;
use drawbridge::server::certs::authority::content;
use drawbridge::server::certs::authority::mint::SigningAuthority;
use drawbridge::server::certs::authority::plan::Generations;
use drawbridge::server::certs::{Lifetimes, Millis};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::pki::Authority;
use webhook_tests::{wait_for, wait_until};

use super::stage::Stage;
use super::{calm, overwrite};

const DAY: Millis = 86_400_000;
const SECONDS_A_DAY: i64 = 86_400;

impl Stage {
    /// Waits for exactly `count` Events with this reason about the object.
    async fn told(&self, (namespace, uid): (&str, &str), reason: Reason, count: usize) -> Result<Vec<String>> {
        let events: Api<Event> = Api::namespaced(self.ns.client(), namespace);
        let about = watcher::Config::default().fields(&format!("involvedObject.uid={uid},reason={}", reason.code()));
        let told = wait_until(&events, about, |all: &BTreeMap<String, Event>| all.len() >= count).await;
        let told = told.with_context(|| format!("{count} times {}", reason.code()))?;
        ensure!(told.len() == count, "{told:#?}");
        for event in &told {
            ensure!(event.type_.as_deref() == Some("Warning"));
            ensure!(event.reporting_component.as_deref() == Some(keys::MANAGER_CERTIFICATES));
        }
        Ok(told.into_iter().filter_map(|event| event.message).collect())
    }

    async fn uid_of_the_secret(&self) -> Result<String> {
        self.secrets().get(keys::SECRET_AUTHORITY).await?.metadata.uid.context("a uid")
    }

    /// How often somebody asked for an Event to be written.
    async fn said(&self, since: webhook_tests::Mark) -> Result<usize> {
        let asked = self.cp.audit().settled(since).await?.by(self.account.user());
        Ok(asked.verb("create").resource("events").len())
    }

    /// Puts an authority into the Secret that ends in `days`, without our label: it is used, and nobody renews it.
    async fn lend(&self, days: Millis) -> Result<()> {
        let lifetimes = Lifetimes::default();
        #[allow(clippy::disallowed_methods, reason = "the test's own clock")]
        let now = Millis::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed()?.as_millis())?;
        let current = SigningAuthority::found(&lifetimes, now + days * DAY - lifetimes.authority)?;
        let known = self.secrets().get(keys::SECRET_AUTHORITY).await?;
        let generations = Generations { current, next: None, previous: Vec::new() };
        let mut secret = content::write(Some(&known), self.ns.name(), &generations);
        secret.metadata.labels = None;
        self.secrets().replace(keys::SECRET_AUTHORITY, &PostParams::default(), &secret).await?;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c5_an_authority_that_nobody_renews_is_told_of_at_30_7_and_1_days_and_a_bad_one_at_once() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    let from = stage.cp.audit().mark()?;
    let (one, two) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()))?;
    let uid = stage.uid_of_the_secret().await?;
    let secret = (stage.ns.name(), uid.as_str());
    stage.lend(20).await?;
    let told = stage.told(secret, Reason::CertificateExpiring, 1).await?;
    assert!(told[0].contains("certificate authority") && told[0].contains("less than 30 days"), "{told:?}");
    for (days, count, words) in [(14, 2, "less than 7 days"), (19, 3, "less than a day")] {
        stage.ahead.store(days * SECONDS_A_DAY + SECONDS_A_DAY / 2, Ordering::SeqCst);
        let told = stage.told(secret, Reason::CertificateExpiring, count).await?;
        assert!(told.iter().any(|message| message.contains(words)), "{words}: {told:?}");
    }
    stage.ahead.store(0, Ordering::SeqCst);

    let garbage: Secret = serde_json::from_value(json!({
        "metadata": {"name": keys::SECRET_AUTHORITY, "uid": uid}, "stringData": {"ca.crt": "garbage"},
    }))?;
    stage.secrets().patch(keys::SECRET_AUTHORITY, &PatchParams::default(), &Patch::Merge(&garbage)).await?;
    let told = stage.told(secret, Reason::AuthorityRefused, 1).await?;
    assert!(told[0].contains("delete the Secret to get a new authority"), "{told:?}");

    // Both replicas noticed all of it. Who takes over after them notices the last again, and it has been said.
    let three = stage.begin(calm()).await?;
    one.stop().await?;
    two.stop().await?;
    let leases: Api<Lease> = stage.ns.api();
    let before = leases.get(keys::LEASE).await?.metadata.resource_version;
    wait_for(&leases, keys::LEASE, |lease: &Lease| lease.metadata.resource_version != before).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.said(from).await?, 4);
    three.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c6_another_writer_and_a_bundle_that_cannot_be_published_are_told_of_at_the_configuration() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    let from = stage.cp.audit().mark()?;
    let (mut one, _two) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()))?;
    let uid = stage.mutating().get(keys::WEBHOOK_CONFIGURATION).await?.metadata.uid.context("a uid")?;
    let configuration = ("default", uid.as_str());
    overwrite(&stage, &Authority::new("cainjector")?.certificate()).await?;
    let told = stage.told(configuration, Reason::BundleOverwritten, 1).await?;
    assert!(
        told[0].starts_with(
            "cainjector took Drawbridge's certificate authority out of caBundle in entry inject.kagenti.io"
        ),
        "{told:?}"
    );
    one.published().await?;

    // The right to patch is taken away, and an entry comes in that knows nobody.
    let roles: Api<ClusterRole> = Api::all(stage.ns.client());
    let take = json!([{ "op": "replace", "path": "/rules/0/verbs", "value": ["get", "list", "watch"] }]);
    let take = Patch::Json::<()>(serde_json::from_value(take)?);
    roles.patch("certificates", &PatchParams::default(), &take).await?;
    stage.until_it_may_patch(false).await?;
    stage.install(&["inject.kagenti.io", "new.kagenti.io"]).await?;
    let told = stage.told(configuration, Reason::BundleUnpublished, 1).await?;
    assert!(told[0].contains("cannot be written") && told[0].contains("forbidden"), "{told:?}");
    // Each configuration is tried, and told of, for itself.
    let uid = stage.validating().get(keys::WEBHOOK_CONFIGURATION).await?.metadata.uid.context("a uid")?;
    let told = stage.told(("default", uid.as_str()), Reason::BundleUnpublished, 1).await?;
    assert!(told[0].contains("ValidatingWebhookConfiguration") && told[0].contains("forbidden"), "{told:?}");
    assert_eq!(stage.said(from).await?, 3);
    Ok(())
}
