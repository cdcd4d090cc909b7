//! Failure mode gate: which types the policy gates, and what becomes of Pods that waited behind the gate.

pub mod memory;
pub mod plan;

#[cfg(test)]
mod tests;
