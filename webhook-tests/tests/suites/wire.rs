//! Connections to the API server that break in ways that no status code tells of.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Result;
use k8s_openapi::api::core::v1::ServiceAccount;
use webhook_tests::endurance::cut::{off, workload};
use webhook_tests::wire::{Fault, Wire};
use webhook_tests::{Installation, Installing, Options, installation, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d7_resets_and_dead_connections_lose_no_object_and_no_review() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let wire = Wire::lay(IpAddr::V4(Ipv4Addr::LOCALHOST), 0, &cp.server()).await?;
    // A connection counts as dead five seconds after a watch should have ended.
    let flags = Installing::default().flags.into_iter().chain(["--watch-period=5s".to_owned()]).collect();
    let server = Some(format!("https://{}", wire.address()));
    let installation = Installation::start(&cp, &Installing { flags, server, ..Installing::default() }).await?;
    let ns = cp.namespace("wire").await?;
    ns.accepts(&workload("steady")).await?;
    wait_for(&ns.api::<ServiceAccount>(), "steady", |_: &ServiceAccount| true).await?;
    for (fault, name) in [(Fault::Reset, "reset"), (Fault::Dead, "dead")] {
        let befalls = |fault: Fault| {
            let wire = &wire;
            async move || {
                wire.befalls(fault);
                anyhow::Ok(())
            }
        };
        off((&cp, &installation), (&ns, name), befalls(fault), befalls(Fault::None)).await?;
    }
    Ok(())
}
