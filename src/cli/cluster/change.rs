//! Writing to a cluster: what `uninstall --yes` and `migrate --hand-over --yes` carry out, and the wishes of `build` and `quarantine`.
//!
//! Promises: a deletion names the uid of the object that was looked at, so that one made meanwhile under the same name stays; every
//! other write carries the uid in its body, for the same reason.

use anyhow::Context;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::{Answer, Cluster};

impl Cluster {
    /// Deletes that very object; what it owns is deleted behind it.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub async fn delete(&self, path: &str, uid: &str) -> anyhow::Result<Answer> {
        self.delete_as(path, json!({"uid": uid}), "Background").await
    }

    async fn delete_as(&self, path: &str, preconditions: Value, policy: &str) -> anyhow::Result<Answer> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy, "preconditions": preconditions,
        });
        let request = http::Request::delete(path)
            .header(CONTENT_TYPE, "application/json")
            .body(serde_json::to_vec(&options)?)
            .context("request")?;
        self.send(request).await
    }

    /// Deletes that very object, as it was when it had that version, and nothing that it owns.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub async fn orphan(&self, path: &str, (uid, version): (&str, &str)) -> anyhow::Result<Answer> {
        self.delete_as(path, json!({"uid": uid, "resourceVersion": version}), "Orphan").await
    }

    /// Server-side apply of the whole field set of `manager`: what it owned and `object` does not name goes.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub async fn apply(&self, path: &str, object: &Value, manager: &str) -> anyhow::Result<Answer> {
        let place = format!("{path}?fieldManager={}&force=true", manager.replace('/', "%2F"));
        self.patch(&place, "application/apply-patch+yaml", object).await
    }

    /// Merge patch.
    ///
    /// # Errors
    /// [`crate::cli::Unreachable`] when nobody answers.
    pub async fn merge(&self, path: &str, patch: &Value, manager: &str) -> anyhow::Result<Answer> {
        let place = format!("{path}?fieldManager={}", manager.replace('/', "%2F"));
        self.patch(&place, "application/merge-patch+json", patch).await
    }

    async fn patch(&self, path: &str, content: &str, body: &Value) -> anyhow::Result<Answer> {
        let request = http::Request::patch(path)
            .header(CONTENT_TYPE, content)
            .body(serde_json::to_vec(body)?)
            .context("request")?;
        self.send(request).await
    }
}
