//! Custom resources of BeeAI, derived from Rust types: group `beeai.dev`, and `beeai.beeai.dev`, which the original operator served.
//!
//! Out: a definition per kind and group. An object belongs to the group it was created in: the definitions are two of one shape, and
//! neither is a conversion of the other. Promise: no field is `nullable`, so that the API server drops an explicit null instead of handing
//! it to us.

pub mod agent;
pub mod agent_build;

#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::domain::keys;

/// Their version, in both groups.
pub const VERSION: &str = "v1";
/// Their category: `kubectl get beeai` shows every kind of both groups.
pub const CATEGORY: &str = "beeai";

/// The same definition in the group of the original operator. It has no short names: with both groups served, one would mean two kinds.
fn compat(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    keys::GROUP_BEEAI_COMPAT.clone_into(&mut crd.spec.group);
    crd.metadata.name = Some(format!("{}.{}", crd.spec.names.plural, keys::GROUP_BEEAI_COMPAT));
    crd.spec.names.short_names = None;
    crd
}
