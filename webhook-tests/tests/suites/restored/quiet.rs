//! The short form of `make test-quiet`.

use std::time::Duration;

use anyhow::Result;
use webhook_tests::endurance::quiet::Quiet;

/// Three renewals of every watch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_03_a_quiet_system_only_renews_and_wakes_at_once() -> Result<()> {
    let quiet = Quiet { duration: Duration::from_secs(20), times: 1, period: 6, lease: 60 };
    println!("{}", quiet.run().await?);
    Ok(())
}
