//! What the ConfigMaps of an agent namespace hold, or will hold once a controller has been there.
//!
//! In: a namespace's ConfigMaps, the platform and its templates. Out: for each fixed name the content in force. Promise: a ConfigMap
//! that a controller makes or brings up to date counts with the content it will have, so that neither a Pod's rendering nor the
//! configuration hash depends on whether the controller has been there yet (design, configuration hash).

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::inputs::{ConfigMapInput, NamespaceInputs};
use super::resolved::Resolved;
use super::schema::Platform;

/// The data of one ConfigMap with its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// `data`; shared between namespaces that set nothing themselves.
    pub data: Arc<BTreeMap<String, String>>,
    /// [`digest`] of it.
    pub digest: Arc<str>,
}

impl Content {
    /// That data.
    #[must_use]
    pub fn of(data: BTreeMap<String, String>) -> Self {
        let digest = digest(&data).into();
        Self { data: Arc::new(data), digest }
    }
}

/// The content in force of the ConfigMap `name`: the namespace's own, unless it is missing or ours to bring up to date.
pub(super) fn in_force(
    name: &str,
    platform: &Platform,
    inputs: &NamespaceInputs,
    resolved: &Resolved,
) -> Option<Content> {
    let own = |config_map: &ConfigMapInput| Content::of(config_map.data.clone());
    match inputs.config_maps.get(name) {
        Some(config_map) if !config_map.kept => Some(own(config_map)),
        known => platform.namespace_config_map(name, resolved).or_else(|| known.map(own)),
    }
}

/// SHA-256, in hex, of a ConfigMap's data; lengths are counted in, so that no two data sets read the same.
#[must_use]
pub fn digest(data: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for part in data.iter().flat_map(|(key, value)| [key, value]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
