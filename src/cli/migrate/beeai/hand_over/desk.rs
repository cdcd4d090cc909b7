//! Where objects are read and written: a cluster, or in tests one in memory.

use serde_json::Value;

use super::plan::Action;
use crate::cli::cluster::{Answer, Cluster};

/// Field manager of what is written.
const MANAGER: &str = "drawbridge/migrate";

/// Reads and writes.
pub(super) trait Desk {
    /// Reads one object.
    async fn get(&self, path: &str) -> anyhow::Result<Answer>;
    /// What would become of a creation.
    async fn dry_run(&self, path: &str, body: &Value) -> anyhow::Result<Answer>;
    /// Carries one action out.
    async fn act(&self, action: &Action) -> anyhow::Result<Answer>;
}

impl Desk for Cluster {
    async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        Cluster::get(self, path).await
    }

    async fn dry_run(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        Cluster::dry_run(self, path, body).await
    }

    async fn act(&self, action: &Action) -> anyhow::Result<Answer> {
        match action {
            Action::Create { path, body } => self.post(path, body).await,
            Action::Merge { path, patch } => self.merge(path, patch, MANAGER).await,
            Action::Orphan { path, uid, version } => self.orphan(path, (uid, version)).await,
        }
    }
}
