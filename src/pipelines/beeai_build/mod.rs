//! The front end for AgentBuild of `beeai.dev/v1` and `beeai.beeai.dev/v1`.
//!
//! In: the raw object of a review or of a watch, its group, and what the platform's ConfigMaps hold. Out: a [`BuildRequest`] ([`read`]),
//! which login its push has ([`login`]), the Agent that it keeps ([`deploy`]), and everything that is wrong with it ([`validate`]).
//! Promises: no value of a credential's variable is repeated; a Secret is only named; the template is the operator's own and stands
//! nowhere in the object.
//!
//! [`BuildRequest`]: super::request::BuildRequest

pub mod deploy;
mod env;
pub mod login;
mod read;
mod validate;

#[cfg(test)]
mod tests;

pub use env::{Credential, REGISTRY_TOKEN, SOURCE_TOKENS};
pub use read::{front, read, template};
pub use validate::{leave_entries, validate, without_template};

use serde_json::Value;

/// The mode of the operator's template for these builds.
pub const TEMPLATE: &str = "beeai";

/// A text of the spec; absent and anything else are empty.
fn text<'v>(object: &'v Value, member: &str) -> &'v str {
    object.get("spec").and_then(|spec| spec.get(member)).and_then(Value::as_str).unwrap_or("")
}

/// Whether a member of the spec is true.
fn flag(object: &Value, member: &str) -> bool {
    object.get("spec").and_then(|spec| spec.get(member)).and_then(Value::as_bool).unwrap_or(false)
}

fn name(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("")
}
