//! The front end for AgentBuild of `agent.kagenti.dev/v1alpha1`.
//!
//! In: the raw object of a review or of a watch, and what ConfigMaps hold. Out: a [`BuildRequest`] ([`read`]), the
//! operations that complete the object ([`complete`]), and everything that is wrong with it ([`validate`]). All work
//! on raw JSON, so that members nobody knows stay as they are.
//!
//! Completing never refuses: what cannot be completed is left out, the schema lists its faults, and validating lists
//! the rest, the missing template included.
//!
//! [`BuildRequest`]: super::request::BuildRequest

mod complete;
mod drift;
mod left;
mod read;
mod validate;

pub use complete::{complete, unrefreshed};
pub use drift::drift;
pub use read::{Origin, read};
pub use validate::validate;

use serde_json::Value;

pub use crate::api::agent_kagenti_dev::agent_build::MODES;

use crate::domain::keys;

/// The mode of a build that names none.
pub const DEFAULT_MODE: &str = "dev";
/// The mode whose steps are always the user's.
pub const CUSTOM: &str = "custom";
/// The revision of a build that names none.
pub const DEFAULT_REVISION: &str = "main";

/// Whether a mode's pipeline pushes a candidate, tests it and promotes it.
#[must_use]
pub fn is_gated(mode: &str) -> bool {
    matches!(mode, "preprod" | "prod")
}

/// One review of an AgentBuild.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Namespace of the request.
    pub namespace: &'a str,
    /// The object as it would be stored.
    pub object: &'a Value,
    /// The stored object; `None` when it is created.
    pub old: Option<&'a Value>,
}

impl Change<'_> {
    /// Whether the object is on its way out: then nothing may stand in its way.
    #[must_use]
    pub fn is_deleting(&self) -> bool {
        at(self.object, "/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }
}

/// What stands at a JSON pointer of plain names through objects: a review asks some thirty times, and [`Value::pointer`] makes
/// a text of each name.
fn at<'v>(object: &'v Value, pointer: &str) -> Option<&'v Value> {
    pointer.split('/').skip(1).try_fold(object, |value, name| value.as_object()?.get(name))
}

/// A text at such a pointer; absent, null and anything else are empty.
fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    at(object, pointer).and_then(Value::as_str).unwrap_or("")
}

/// The value of an annotation.
fn annotation<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// The mode, with its default.
fn mode(object: &Value) -> &str {
    Some(text(object, "/spec/mode")).filter(|mode| !mode.is_empty()).unwrap_or(DEFAULT_MODE)
}

/// The steps as written; absent, null and empty are nothing.
fn steps(object: &Value) -> Option<&Value> {
    at(object, "/spec/pipeline/steps")
        .filter(|steps| steps.as_array().is_none_or(|list| !list.is_empty()) && !steps.is_null())
}

/// Name of the template ConfigMap of a mode.
fn template_name(mode: &str) -> String {
    format!("{}{mode}", keys::PREFIX_TEMPLATE)
}

#[cfg(test)]
mod tests;
