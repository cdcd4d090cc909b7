//! Kinds that a control plane serves by the definition of those who publish them.
//!
//! In: the script of `peers/` that fetched the definition (`make gateway`, `make network-policy-api`) and the definition's name. Out: the kind is
//! served.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use super::ControlPlane;
use crate::wait_served;

impl ControlPlane {
    /// Applies the definition that `peers/SCRIPT` fetched and waits until the kind is served.
    ///
    /// # Errors
    /// When it was not fetched; the message is the script's own and names the command that does.
    pub async fn define(&self, script: &str, definition: &str) -> Result<()> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script);
        let output =
            Command::new(&script).arg("--where").output().await.with_context(|| script.display().to_string())?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let text = std::fs::read_to_string(String::from_utf8_lossy(&output.stdout).trim())?;
        let objects = self.objects().await?;
        objects.apply(&text).await?;
        wait_served(&objects, definition).await
    }
}
