//! From an Agent, a ModelAPI or an MCPServer of `kaos.tools` to what runs it.
//!
//! In: what an object asks for in one shape (`api::kaos_tools::shape`), the platform's settings ([`settings`]), the registry of tool runtimes ([`registry`]).
//! Out: requests of the workload engine ([`compose`]), the configuration of a proxy ([`litellm`]), the spec of a route. Promises: names, labels,
//! ports and environment, order included, are those that the runtime, its command line and its users know; equal inputs give equal bytes.

pub mod agent;
pub mod code;
pub mod compose;
pub mod contract;
pub mod identity;
pub mod litellm;
pub mod mcp_server;
pub mod merge;
pub mod model_api;
pub mod names;
pub mod registry;
pub mod restrict;
pub mod rules;
pub mod settings;
pub mod takeover;
pub mod variables;

#[cfg(test)]
mod tests;
