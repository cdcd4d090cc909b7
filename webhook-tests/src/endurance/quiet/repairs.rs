//! What somebody else may do to a quiet system, and how long it takes until it is as it was, or in use.
//!
//! In: a system at rest. Out: [`Repair`]s. What is allowed is a second; where a plain write takes longer than on an idle machine,
//! as many times that as a second is on one.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::domain::keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::system::{SECRET, System, mount, pem_leaf, secret, serving};
use super::until;
use crate::wait_for;

/// How long anything may take that is repaired or taken up.
pub const SOON: Duration = Duration::from_secs(1);
/// So many plain writes fit in that on an idle machine.
const WRITES: u32 = 50;

/// One repair.
#[derive(Debug, Clone)]
pub struct Repair {
    /// Of what.
    pub what: &'static str,
    /// How long it took.
    pub took: Duration,
    /// What a plain write, and reading what it wrote, took before or after it, whichever was slower.
    pub write: Duration,
}

impl Repair {
    /// Whether it came within [`SOON`], as this machine counts at present.
    #[must_use]
    pub fn is_soon(&self) -> bool {
        self.took <= SOON.max(self.write * WRITES)
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(f, "{}: {:.0} ms (a plain write: {:.0} ms)", self.what, millis(self.took), millis(self.write))
    }
}

impl System {
    /// Everything that somebody else may do.
    pub(super) async fn disturbed(&self, round: u32) -> Result<Vec<Repair>> {
        let mut repairs = Vec::new();
        repairs.push(self.timed("an overwritten caBundle", self.overwritten(round)).await?);
        repairs.push(self.timed("a webhook entry that came back without caBundle", self.entry_put_back()).await?);
        repairs.push(self.timed("a deleted CA Secret", self.authority_deleted()).await?);
        repairs.push(self.timed("a Secret of cert-manager", self.secret_changed()).await?);
        repairs.push(self.timed("a mounted certificate", self.files_changed()).await?);
        Ok(repairs)
    }

    /// Times what `disturbance` says: from when it was made until it was repaired.
    async fn timed(&self, what: &'static str, disturbance: impl Future<Output = Result<Duration>>) -> Result<Repair> {
        let before = self.plain_write().await?;
        let took = disturbance.await.context(what)?;
        Ok(Repair { what, took, write: before.max(self.plain_write().await?) })
    }

    /// The median of five.
    async fn plain_write(&self) -> Result<Duration> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        let mut times = Vec::new();
        for number in 0..5 {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "quiet-write"},
                "data": {"number": number.to_string()}});
            let begun = Instant::now();
            api.patch("quiet-write", &PatchParams::apply("quiet").force(), &Patch::Apply(map)).await?;
            api.get("quiet-write").await?;
            times.push(begun.elapsed());
        }
        times.sort();
        Ok(times[2])
    }

    /// A writer that comes again is answered once a minute, so each round has another configuration.
    async fn overwritten(&self, round: u32) -> Result<Duration> {
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let stranger = STANDARD.encode(self.authority.certificate());
        let overwrite = json!([{ "op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": stranger }]);
        let began = if round.is_multiple_of(2) {
            overwritten(&mutating, overwrite).await?
        } else {
            overwritten(&validating, overwrite).await?
        };
        self.bundles_hold_our_root().await?;
        Ok(began.elapsed())
    }

    /// Takes the last entry out of the mutating configuration and puts it back, as a person has it who knows no caBundle.
    async fn entry_put_back(&self) -> Result<Duration> {
        let began = self.entry_taken_out_and_put_back().await?;
        self.bundles_hold_our_root().await?;
        Ok(began.elapsed())
    }

    async fn authority_deleted(&self) -> Result<Duration> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), keys::OPERATOR_NAMESPACE);
        let uid = secrets.get(keys::SECRET_AUTHORITY).await?.metadata.uid;
        secrets.delete(keys::SECRET_AUTHORITY, &DeleteParams::default()).await?;
        let began = Instant::now();
        wait_for(&secrets, keys::SECRET_AUTHORITY, |secret: &Secret| secret.metadata.uid != uid).await?;
        Ok(began.elapsed())
    }

    async fn secret_changed(&self) -> Result<Duration> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), keys::OPERATOR_NAMESPACE);
        let pair = serving(&self.authority)?;
        secrets.patch(SECRET, &PatchParams::default(), &Patch::Merge(secret(&pair))).await?;
        let began = Instant::now();
        self.serves(self.others[0].webhook(), &pem_leaf(&pair)?).await?;
        Ok(began.elapsed())
    }

    async fn files_changed(&self) -> Result<Duration> {
        let pair = serving(&self.authority)?;
        mount(self.files.path(), &pair)?;
        let began = Instant::now();
        self.serves(self.others[1].webhook(), &pem_leaf(&pair)?).await?;
        Ok(began.elapsed())
    }

    async fn entry_taken_out_and_put_back(&self) -> Result<Instant> {
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let stored = serde_json::to_value(api.get(keys::WEBHOOK_CONFIGURATION).await?)?;
        let entries = stored["webhooks"].as_array().context("no entries")?;
        let last = entries.len().checked_sub(1).context("no entry")?;
        let mut entry = entries[last].clone();
        entry["clientConfig"].as_object_mut().context("no client")?.remove("caBundle");
        let path = format!("/webhooks/{last}");
        let patch =
            |operations: Value| Ok::<_, serde_json::Error>(Patch::<()>::Json(serde_json::from_value(operations)?));
        let taken_out = patch(json!([{ "op": "remove", "path": path }]))?;
        api.patch(keys::WEBHOOK_CONFIGURATION, &PatchParams::default(), &taken_out).await?;
        let back = patch(json!([{ "op": "add", "path": path, "value": entry }]))?;
        api.patch(keys::WEBHOOK_CONFIGURATION, &PatchParams::default(), &back).await?;
        Ok(Instant::now())
    }

    /// Waits until every entry holds every root of the Secret.
    async fn bundles_hold_our_root(&self) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), keys::OPERATOR_NAMESPACE);
        let secret = secrets.get(keys::SECRET_AUTHORITY).await?;
        let root = secret.data.as_ref().and_then(|data| data.get("ca.crt")).context("no ca.crt")?.0.clone();
        let roots = drawbridge::server::certs::read_bundle(&root).certificates;
        let roots = &roots;
        until(|| async move {
            let bundles = bundles(&self.client).await?;
            let held = bundles.iter().map(|bundle| drawbridge::server::certs::read_bundle(bundle).certificates);
            Ok(held.into_iter().all(|held| roots.iter().all(|root| held.contains(root))))
        })
        .await
    }
}

/// The caBundle of every entry of both configurations.
///
/// # Errors
/// When they cannot be read.
pub async fn bundles(client: &Client) -> Result<Vec<Vec<u8>>> {
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone()).get(keys::WEBHOOK_CONFIGURATION).await?;
    let validating =
        Api::<ValidatingWebhookConfiguration>::all(client.clone()).get(keys::WEBHOOK_CONFIGURATION).await?;
    let mutating = mutating.webhooks.unwrap_or_default().into_iter().map(|hook| hook.client_config);
    let validating = validating.webhooks.unwrap_or_default().into_iter().map(|hook| hook.client_config);
    let bundle = |bundle: Option<ByteString>| bundle.map(|bundle| bundle.0).unwrap_or_default();
    Ok(mutating.chain(validating).map(|client| bundle(client.ca_bundle)).collect())
}

async fn overwritten<K>(api: &Api<K>, operations: Value) -> Result<Instant>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + fmt::Debug,
{
    let patch = Patch::<()>::Json(serde_json::from_value(operations)?);
    api.patch(keys::WEBHOOK_CONFIGURATION, &PatchParams::default(), &patch).await?;
    Ok(Instant::now())
}
