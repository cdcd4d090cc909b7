//! Whether somebody who calls this replica could trust it: readiness follows, and people are told.
//!
//! In: how far publication is. Out: a condition of readiness. Promises: it fails once an entry has not trusted the
//! certificate being served for [`GRACE`], and holds again at once when all do; a bundle that is put back within that
//! time takes no replica out of service; told at WARN when it fails, and once a minute while it does.

use std::time::Duration;

use tokio::sync::watch;

use super::Publication;
use crate::server::health::Condition;

/// For how long an entry may lack our root: every replica sees it at once, and an overwritten bundle is put back within
/// a second, while one that was unready gets no calls until the next probe.
const GRACE: Duration = Duration::from_secs(5);
const EVERY: Duration = Duration::from_secs(60);

/// Follows `publication` for as long as there is somebody who publishes.
pub async fn covered(mut publication: watch::Receiver<Publication>, condition: Condition) {
    loop {
        let state = publication.borrow_and_update().clone();
        let Publication::Incomplete { .. } = state else {
            condition.holds();
            if publication.changed().await.is_err() {
                return;
            }
            continue;
        };
        let mut wait = GRACE;
        while let Err(_elapsed) = tokio::time::timeout(wait, publication.changed()).await {
            let why = state.to_string();
            tracing::warn!(why, "this replica is not ready: who calls it would not trust it");
            condition.fails(why);
            wait = EVERY;
        }
        if publication.has_changed().is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::health::Readiness;
    use crate::server::testing::lines::Lines;

    #[tokio::test(start_paused = true)]
    async fn mend_03_a_replica_that_nobody_would_trust_is_unready_and_says_so() {
        let lines = Lines::default();
        let _guard = lines.collect();
        let readiness = Readiness::new();
        let (sender, receiver) = watch::channel(Publication::Unknown);
        let task = tokio::spawn(covered(receiver, readiness.condition("trust")));
        let lacks = |entry: &str| Publication::Incomplete { kind: "K", entry: entry.to_owned() };
        let after = |seconds: u64| tokio::time::sleep(Duration::from_secs(seconds));
        for held in [Publication::Published, Publication::NoConfiguration, Publication::ByOthers] {
            sender.send_replace(lacks("a"));
            after(4).await;
            assert!(readiness.ready(), "put back in time");
            sender.send_replace(held);
            after(60).await;
            assert!(readiness.ready());
        }
        assert!(lines.text().is_empty(), "{}", lines.text());
        sender.send_replace(lacks("a"));
        after(6).await;
        assert!(!readiness.ready());
        let why = readiness.checks()[0].obstacle.clone().unwrap();
        assert!(why.contains("entry a"), "{why}");
        after(120).await;
        assert_eq!(lines.text().lines().count(), 3, "once a minute: {}", lines.text());
        sender.send_replace(lacks("b"));
        after(1).await;
        assert!(!readiness.ready(), "it is no better for another reason");
        sender.send_replace(Publication::Published);
        after(1).await;
        assert!(readiness.ready());
        drop(sender);
        task.await.unwrap();
    }
}
