//! Which object of KAOS asks, and what its metadata says of its workload.

use std::collections::BTreeMap;

use crate::api::owner::Owner;

/// The object that asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Which.
    pub owner: Owner,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<String, String>,
}

impl Identity {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.owner.name
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.owner.namespace
    }
}
