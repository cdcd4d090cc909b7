//! What the ConfigMaps of an agent namespace hold, or will hold once a controller has been there.
//!
//! In: a namespace's ConfigMaps, the platform and its templates. Out: for each fixed name the content in force. Promise: a ConfigMap
//! that a controller makes or brings up to date counts with the content it will have, so that neither a Pod's rendering nor the
//! configuration hash depends on whether the controller has been there yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::reading::Known;
use super::resolved::Resolved;
use super::schema::Platform;
pub use crate::domain::digest::of_data as digest;

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

/// The content in force of the ConfigMap `name`: the namespace's own, unless it is missing or ours to bring up to date. The data of
/// the namespace's own is what was read of it, and the digest always that of the present content, which is what a Pod mounts.
pub(super) fn in_force(
    name: &str,
    platform: &Platform,
    config_maps: &BTreeMap<Arc<str>, Known>,
    resolved: &Resolved,
) -> Option<Content> {
    match config_maps.get(name) {
        Some(known) if !known.kept => Some(own(known)),
        known => platform.namespace_config_map(name, resolved).or_else(|| known.map(own)),
    }
}

fn own(known: &Known) -> Content {
    let data = known.read.as_ref().map(|read| Arc::clone(&read.values)).unwrap_or_default();
    Content { data, digest: Arc::clone(&known.digest) }
}
