//! SPIRE's rotations as they happen: an agent whose signer runs never loses trust, whatever SVID and authority are of the moment; and an
//! authority that has expired counts no longer, though it stays in the bundle.
//!
//! Short in `make test-peers`: two renewals of the SVID. By `make test-cards`: ten minutes, in which authorities change, too.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent_card::AgentCard;
use drawbridge_crypto::{Policy, Signer, Trust, TrustBundle, verify_bytes};
use futures::StreamExt as _;
use kube::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};
use webhook_tests::network::Network;
use webhook_tests::patience::{delay, patience};
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};
use webhook_tests::svid;
use webhook_tests::{ControlPlane, Installation, Installing, Options, TestNamespace, trial};

use super::fleet::{self, ACCOUNT, DOMAIN, Fleet, cards, condition};

/// The user that the agent runs as.
const WEATHER: u32 = 20_001;
const NAME: &str = "healthy-weather";
/// An authority lasts as long as so many SVIDs.
const AUTHORITY: u32 = 6;
/// Between two looks of the signer, and of who publishes the bundle.
const LOOK: Duration = Duration::from_secs(2);

/// Publishes SPIRE's bundle where Drawbridge reads it, as SPIRE's own publisher does.
async fn publish(ns: &TestNamespace, bundle: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spire-bundle"},
        "data": {"bundle.spiffe": bundle}});
    ns.apply_one(&object, false).await?.result.map(drop).map_err(|status| anyhow::anyhow!(status.message))
}

/// How long an SVID lasts: a minute, and longer where nobody would get to signing anew, and to looking at it, in the half of that which is left then.
pub(crate) fn lasting() -> Duration {
    Duration::from_secs((delay() * 120).as_secs())
}

#[allow(clippy::disallowed_methods, reason = "the test's own clock")]
fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Every state of the card that is not Verified, once it was.
pub(crate) fn losses(api: Api<AgentCard>) -> Arc<Mutex<Vec<String>>> {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = seen.clone();
    tokio::spawn(async move {
        let mut was = false;
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
        while let Some(Ok(card)) = events.next().await {
            let card = serde_json::to_value(card).unwrap();
            let is = condition(&card, "Verified") == "True";
            if was && !is {
                told.lock().push(card["status"]["conditions"].to_string());
            }
            was |= is;
        }
    });
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_signs_with_the_svid_of_the_moment_never_loses_trust() -> Result<()> {
    let (renewals, minutes) = (trial::size(2, 12), trial::size(0, 10));
    let cp = ControlPlane::start(Options::default()).await?;
    let svid = lasting();
    let options = SpireOptions { trust_domain: DOMAIN.to_owned(), ca_ttl: svid * AUTHORITY, svid_ttl: svid };
    let spire = Spire::start(options).await?;
    let network = Arc::new(Network::new().await?.with_pods().await?);
    let fleet = Fleet::start(&network).await?;
    let bundles = cp.namespace("bundles").await?;
    let first = spire.bundle(BundleForm::Spiffe)?;
    publish(&bundles, &first).await?;
    // No SVID counts a second longer than it says.
    let platform = format!(
        "cards: {{audit: false, minimumPeriodSeconds: 5, expiredSvidSeconds: 0, trustBundle: {{trustDomain: {DOMAIN}, configMap: {{name: spire-bundle, namespace: {}}}}}}}\n",
        bundles.name()
    );
    let installing = Installing { network: Some(network.clone()), platform, ..Installing::default() };
    let _installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("rotation").await?;
    spire.entitle(&spire.account(ns.name(), ACCOUNT), WEATHER)?;
    let mut current = spire.svid(WEATHER).await?;
    let old = svid::signed(
        &json!({"name": "old", "version": "1"}),
        &Signer::read(current.key.as_bytes(), current.chain.as_bytes())?,
    )?;
    fleet.signed_by(ns.name(), Signer::read(current.key.as_bytes(), current.chain.as_bytes())?);
    fleet::account(&ns).await?;
    fleet::make(&ns, NAME, Duration::from_secs(5)).await?;
    let losses = losses(ns.api());
    cards(&ns, NAME, 1, patience(), |card| condition(card, "Verified") == "True").await?;

    let begun = Instant::now();
    let (mut renewed, mut published, mut authorities) = (0, first.clone(), 1);
    let limit = svid * 3 + svid * 3 / 2 * u32::try_from(minutes.max(renewals))?;
    while renewed < renewals || begun.elapsed() < svid * u32::try_from(minutes)? {
        ensure!(begun.elapsed() < limit, "the SVID was renewed {renewed} times only");
        let bundle = spire.bundle(BundleForm::Spiffe)?;
        if bundle != published {
            publish(&bundles, &bundle).await?;
            let certificates = |text: &str| text.matches("x509-svid").count();
            authorities += usize::from(certificates(&bundle) > certificates(&published));
            published = bundle;
        }
        let next = spire.svid(WEATHER).await?;
        if next.chain != current.chain {
            (renewed, current) = (renewed + 1, next);
            fleet.signed_by(ns.name(), Signer::read(current.key.as_bytes(), current.chain.as_bytes())?);
        }
        sleep(LOOK).await;
    }
    let lost = losses.lock().clone();
    ensure!(lost.is_empty(), "trust was lost: {lost:#?}");
    eprintln!("{renewed} SVIDs and {authorities} authorities in {:.0?}: never lost", begun.elapsed());
    if minutes > 0 {
        ensure!(authorities > 1, "the authority never changed");
        // What signed first: its authority is still published and has expired, whatever is tolerated of an SVID.
        let bundle = TrustBundle::read(published.as_bytes(), None)?;
        let verdict =
            verify_bytes(old.as_bytes(), Trust::Loaded { bundle: &bundle, read_at: now() }, &Policy::default(), now());
        ensure!(verdict.verified().is_none(), "an expired authority counts");
        let told = format!("{verdict:?}");
        let still = first.lines().filter(|line| line.len() > 200).any(|line| published.contains(line.trim()));
        ensure!(still, "the first authority is no longer published, so nothing was tried: {told}");
    }
    Ok(())
}
