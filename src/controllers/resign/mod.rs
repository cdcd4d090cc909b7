//! Agents that sign their card when their Pods start are restarted before the signature counts no more.
//!
//! In: how the signature of a card stands, as the controller of AgentCards judged it last, and what stands on its workload. Out: one change of
//! the Pod template, in turn with every other rollout of ours, and an Event. Promises: nothing without `cards.proactiveRestart` and a template
//! that says that it signs; at most one restart for one end of a signature, whichever replica leads; none within the grace after another; a
//! rotation of authorities restarts nobody whose own authority still vouches for it; at rest nothing is written.

mod due;
pub mod memory;
pub mod note;
pub mod plan;

#[cfg(test)]
mod tests;
