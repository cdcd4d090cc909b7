//! A backup of everything that a control plane holds, and putting it back.
//!
//! In: a running control plane. Out: a copy of etcd's folder, and a control plane that holds what that says. The versions
//! of objects go back with it: the same numbers are given again, to other things.

use std::path::Path;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::{ControlPlane, Process};
use crate::household;

/// A copy of what etcd holds; it vanishes when dropped.
#[derive(Debug)]
pub struct Backup(TempDir);

impl Backup {
    /// Makes `store` an etcd's folder that holds this.
    pub(super) fn begin(&self, store: &Path) -> Result<()> {
        copy(self.0.path(), store)
    }
}

impl ControlPlane {
    /// Copies what etcd holds; it is away meanwhile.
    ///
    /// # Errors
    /// When etcd does not end or come back, or the files cannot be copied.
    pub async fn backup(&self) -> Result<Backup> {
        let folder = tempfile::Builder::new().prefix("backup-").tempdir_in(&household::folders()?.memory)?;
        self.stop(Process::Etcd).await?;
        let copied = copy(self.layout.store(), folder.path());
        self.start_again(Process::Etcd).await?;
        copied.map(|()| Backup(folder))
    }

    /// Puts a backup back. An API server that is not restarted goes on answering lists and watches from its cache, for
    /// ever.
    ///
    /// # Errors
    /// When a process does not end or come back, or the files cannot be copied.
    pub async fn restore(&self, backup: &Backup, restart_api_server: bool) -> Result<()> {
        if restart_api_server {
            self.stop(Process::ApiServer).await?;
        }
        self.kill(Process::Etcd).await;
        let store = self.layout.store();
        for entry in std::fs::read_dir(store)? {
            std::fs::remove_dir_all(entry?.path())?;
        }
        backup.begin(store)?;
        self.start_again(Process::Etcd).await?;
        if restart_api_server {
            self.start_again(Process::ApiServer).await?;
        }
        Ok(())
    }
}

/// Copies everything below `from`.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in std::fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target).with_context(|| target.display().to_string())?;
        }
    }
    Ok(())
}
