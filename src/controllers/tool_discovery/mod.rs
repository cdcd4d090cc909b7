//! Which tools an MCPServer of KAOS offers, where the platform has it asked (`kaos.toolDiscovery`).
//!
//! In: the MCPServers, and what each of them answers. Out: `status.availableTools`, and in `status.toolDiscovery` why that list is not newer or
//! not whole. Promises: off by default, for it calls tenants' servers; only one that is ready is asked, about once in five minutes and at once
//! when its Pods are others; names are bounded and printable; what was listed last is kept while nobody answers; at rest nothing is written.

pub mod memory;
pub mod plan;
pub mod question;

#[cfg(test)]
mod tests;
