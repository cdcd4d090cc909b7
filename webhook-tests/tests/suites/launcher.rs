//! The launcher of the product's binary: what it says when the product does not start.

use anyhow::Result;
use webhook_tests::{Access, Drawbridge};

#[tokio::test]
async fn a_process_that_ends_instead_of_serving_is_reported_in_its_own_words() -> Result<()> {
    // It ends before it looks whom it would talk to.
    let nobody = Access::existing("/nowhere/kubeconfig".into());
    let replica = Drawbridge::launch(&nobody, &[], |_| vec!["--no-such-flag".to_owned()])?;
    let error = replica.ready().await.map_or_else(|error| format!("{error:#}"), |()| "ready".to_owned());
    assert!(error.contains("ended before it was ready: exit status: 2"), "{error}");
    assert!(error.contains("unexpected argument '--no-such-flag'"), "{error}");
    assert!(replica.pid().is_none());
    // It may be started again, and ends again.
    replica.start_again()?;
    assert_eq!(replica.wait().await?.code(), Some(2));
    assert_eq!(replica.log().matches("unexpected argument").count(), 2);
    Ok(())
}
