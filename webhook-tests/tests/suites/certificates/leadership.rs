//! Only the holder of the Lease writes, judged by the audit log of whole processes under the rendered rights.

use std::time::Duration;

use anyhow::{Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use webhook_tests::audit::{Request, Requests};
use webhook_tests::patience::{delay, patience};
use webhook_tests::{ControlPlane, Drawbridge, Installation, Installing, Options, installation, wait_for};

pub(super) const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";
const WEBHOOK: &str = "system:serviceaccount:kagenti-system:drawbridge-webhook";

/// Writes of certificates that were accepted or refused: the Secret's changes and the publishing.
fn kept(request: &Request) -> bool {
    let publishing = request.verb == "patch" && request.resource.ends_with("webhookconfigurations");
    publishing || (request.verb == "update" && request.resource == "secrets")
}

/// Goes through the log in order: every such write must come from the process whose hold on the Lease was confirmed
/// last. Returns how many there were, by holder in order.
fn all_by_the_holder(requests: &Requests) -> Result<Vec<usize>> {
    let mut holders: Vec<(String, usize)> = Vec::new();
    for request in requests.iter().filter(|request| request.user == CONTROLLERS) {
        ensure!(!request.credential.is_empty(), "processes cannot be told apart: {request}");
        let confirmed =
            request.resource == "leases" && request.is_write() && request.code.is_some_and(|code| code < 300);
        if confirmed && holders.last().is_none_or(|(holder, _)| *holder != request.credential) {
            holders.push((request.credential.clone(), 0));
        }
        if kept(request) {
            match holders.last_mut() {
                Some((holder, count)) if *holder == request.credential => *count += 1,
                _ => anyhow::bail!("not by the holder of the Lease: {request}\n{requests}"),
            }
        }
    }
    Ok(holders.into_iter().map(|(_, count)| count).collect())
}

async fn holder(cp: &ControlPlane, not: &str) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let name = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
    let held = wait_for(&leases, keys::LEASE, |lease| !name(lease).is_empty() && name(lease) != not).await?;
    Ok(name(&held))
}

/// The process that counts itself as leader, once one does: it hears that it holds the Lease after the Lease says so.
async fn leader(processes: &[Drawbridge]) -> Result<&Drawbridge> {
    let begun = tokio::time::Instant::now();
    loop {
        for process in processes {
            if process.metrics().await?.sum("leader_election_master_status", &[]) > 0.0 {
                return Ok(process);
            }
        }
        ensure!(begun.elapsed() < patience(), "nobody says that it leads");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Takes the roots out of the injecting webhook's entry, as another writer would.
pub(super) async fn empty(mutating: &Api<MutatingWebhookConfiguration>) -> Result<()> {
    let patch = json!([{ "op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "" }]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    mutating.patch(keys::WEBHOOK_CONFIGURATION, &PatchParams::default(), &patch).await?;
    Ok(())
}

pub(super) fn published(object: &MutatingWebhookConfiguration) -> bool {
    let bundles = object.webhooks.iter().flatten().map(|hook| &hook.client_config.ca_bundle);
    bundles.into_iter().all(|bundle| bundle.as_ref().is_some_and(|ByteString(bundle)| !bundle.is_empty()))
}

/// A Lease of 8 s, and an authority that is renewed well after that, or longer on a machine where nobody would get to renewing them in time.
fn lifetimes() -> Vec<String> {
    let times = [("lease-duration", 16_u32), ("cert-lifetime", 20), ("ca-lifetime", 60)];
    let flags = times.map(|(flag, delays)| format!("--{flag}={}s", (delay() * delays).as_secs()));
    ["--drain-delay=0s".to_owned()].into_iter().chain(flags).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d4_only_the_holder_of_the_lease_writes_and_a_frozen_one_stays_silent() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let from = cp.audit().mark()?;
    let installing = Installing { controllers: 2, flags: lifetimes(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
    let secrets: Api<Secret> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    let has =
        |key: &'static str| move |secret: &Secret| secret.data.as_ref().is_some_and(|data| data.contains_key(key));

    // The leader publishes what somebody took out; the other process sees the same and leaves it.
    let first = holder(&cp, "").await?;
    let frozen = leader(&installation.controllers).await?;
    empty(&mutating).await?;
    wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, published).await?;

    // Frozen past its Lease, while its authority comes due: the other process rotates.
    wait_for(&secrets, keys::SECRET_AUTHORITY, |secret| !has("next.crt")(secret)).await?;
    frozen.pause();
    holder(&cp, &first).await?;
    wait_for(&secrets, keys::SECRET_AUTHORITY, has("previous.crt")).await?;
    let resumed = cp.audit().mark()?;
    frozen.resume();
    // It wakes up to a Secret that it would repair and a bundle that it would complete.
    empty(&mutating).await?;
    let damage = json!({ "data": { "ca.crt": ByteString(b"damaged".to_vec()) } });
    let damaged = secrets.patch(keys::SECRET_AUTHORITY, &PatchParams::default(), &Patch::Merge(damage)).await?;
    let repaired = |secret: &Secret| secret.metadata.resource_version != damaged.metadata.resource_version;
    wait_for(&secrets, keys::SECRET_AUTHORITY, repaired).await?;
    wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, published).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = cp.audit().settled(resumed).await?;
    let requests = cp.audit().settled(from).await?;
    let by_holder = all_by_the_holder(&requests)?;
    ensure!(by_holder.len() == 2 && by_holder.iter().all(|writes| *writes >= 2), "{by_holder:?}");
    ensure!(after.iter().any(kept), "somebody wrote meanwhile: {after}");

    // The webhook reads, and creation of the authority is the one write outside of the fence.
    let written = requests.clone().by(WEBHOOK).writes();
    ensure!(written.is_empty(), "role webhook: {written}");
    let created = requests.by(CONTROLLERS).verb("create").resource("secrets");
    ensure!(created.iter().filter(|request| request.code == Some(201)).count() == 1, "{created}");
    Ok(())
}
