//! Which namespaces cut off agents, told to the policy of the API server that makes their Pods wait until then.

pub mod memory;
pub mod plan;

#[cfg(test)]
mod tests;
