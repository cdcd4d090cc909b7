//! The API server by a name: one that stops resolving, and then leads somewhere else.
//!
//! Each process has `/etc/hosts` and `/etc/resolv.conf` of this test's, in a mount namespace of its own, which takes root.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ServiceAccount;
use webhook_tests::endurance::cut::{off, workload};
use webhook_tests::wire::{Fault, Wire};
use webhook_tests::{ControlPlane, Installation, Installing, Options, wait_for};

/// A name that the API server's certificate covers.
const NAME: &str = "kubernetes.default.svc";
const OLD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const NEW: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// In place: the file is mounted elsewhere.
fn resolves(hosts: &Path, address: Option<Ipv4Addr>) -> Result<()> {
    let line = address.map(|address| format!("{address} {NAME}\n")).unwrap_or_default();
    std::fs::write(hosts, format!("127.0.0.1 localhost\n{line}")).context("hosts")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d7_a_name_that_stops_resolving_and_then_leads_elsewhere_is_followed() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let old = Wire::lay(IpAddr::V4(OLD), 0, &cp.server()).await?;
    let port = old.address().port();
    let new = Wire::lay(IpAddr::V4(NEW), port, &cp.server()).await?;
    let folder = tempfile::tempdir()?;
    let (hosts, resolver) = (folder.path().join("hosts"), folder.path().join("resolv.conf"));
    resolves(&hosts, Some(OLD))?;
    // Nobody answers there, at once.
    std::fs::write(&resolver, "nameserver 127.0.0.3\noptions timeout:1 attempts:1\n")?;
    let mounts = format!(
        "mount --bind {} /etc/hosts && mount --bind {} /etc/resolv.conf && exec \"$0\" \"$@\"",
        hosts.display(),
        resolver.display()
    );
    let installing = Installing {
        server: Some(format!("https://{NAME}:{port}")),
        inside: ["unshare", "--mount", "sh", "-c", &mounts].map(str::to_owned).into(),
        ..Installing::default()
    };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("names").await?;
    ns.accepts(&workload("steady")).await?;
    wait_for(&ns.api::<ServiceAccount>(), "steady", |_: &ServiceAccount| true).await?;
    let gone = async || {
        resolves(&hosts, None)?;
        old.befalls(Fault::Reset);
        Ok(())
    };
    off((&cp, &installation), (&ns, "elsewhere"), gone, async || resolves(&hosts, Some(NEW))).await?;
    // And back, without a moment in which it is nowhere: connections that are open say nothing of names.
    let moved = async || {
        resolves(&hosts, Some(OLD))?;
        old.befalls(Fault::None);
        new.befalls(Fault::Reset);
        Ok(())
    };
    off((&cp, &installation), (&ns, "back"), moved, async || Ok(())).await
}
