//! One AgentCard for each workload that says it is an agent and which protocol it speaks.

mod names;
pub mod plan;

#[cfg(test)]
mod tests;

pub use names::card_name;
