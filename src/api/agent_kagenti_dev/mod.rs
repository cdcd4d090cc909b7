//! Custom resources of group `agent.kagenti.dev`, derived from Rust types.
//!
//! Out: a `crd` per kind, which `drawbridge render` prints under `manifests/crds` and puts first into `install.yaml`. Promise: the schemas
//! are those of the reference plus what a test lists; no field is `nullable`, so that the API server drops an
//! explicit null instead of handing it to us.

pub mod agent;
pub mod agent_build;
pub mod agent_card;
pub mod agent_runtime;
pub mod provenance;

#[cfg(test)]
mod tests;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

pub use agent_runtime::AgentRuntime;

/// The API group.
pub const GROUP: &str = "agent.kagenti.dev";

/// Its version.
pub const VERSION: &str = "v1alpha1";

/// `Option` becomes `nullable: true` (and a null among an enumeration's values) in the derived schema; the reference has neither.
pub(in crate::api) fn without_nullable(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|validation| validation.open_api_v3_schema.as_mut()) {
            strip(schema);
        }
    }
    crd
}

fn strip(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|value| !value.0.is_null());
    }
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(strip);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => strip(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(strip),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        strip(values);
    }
}
