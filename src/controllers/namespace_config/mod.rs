//! The ConfigMaps that injected Pods refer to, in every namespace with an enrolled workload.

pub mod memory;
pub mod plan;

#[cfg(test)]
mod tests;
