//! The steps and templates of builds, as ConfigMaps of the operator's namespace.

use serde_json::Value;

use super::{Install, metadata, settings};
use crate::pipelines::catalogue;

/// Every ConfigMap of the catalogue, with the images and settings of the installation.
#[must_use]
pub fn objects(install: &Install) -> Vec<Value> {
    catalogue::config_maps(&install.namespace, &install.values)
        .into_iter()
        .map(|text| {
            let mut metadata = metadata(&text.name, Some(&text.namespace));
            metadata.labels.get_or_insert_default().extend(text.labels);
            settings(metadata, text.data)
        })
        .collect()
}
