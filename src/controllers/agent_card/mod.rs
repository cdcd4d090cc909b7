//! What an agent says of itself, read from one of its Pods and shown in the status of its AgentCard.
//!
//! In: the card, its workload, Service and Pods, and what a Pod answered ([`question`]). Out: who is asked next, the status, and Events about what
//! changed. Promises: an answer is asked for from the address of a Ready Pod that belongs to the workload by uid, and of no other; a plan
//! parses nothing that a tenant wrote; the last good card stays when there is no other; equal answers write nothing.

pub mod judge;
pub mod memory;
pub mod metrics;
pub mod note;
pub mod plan;
pub mod published;
pub mod question;
mod sharing;
mod signed;
mod status;
mod subject;
mod trust;
mod turn;

pub use question::{CardQuestion, Fetch, Fetched, Read};

#[cfg(test)]
mod tests;
