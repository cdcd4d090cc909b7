//! From what an Agent of any API group asks for to what runs: one core for every front end.
//!
//! In: an Agent as JSON, which its front end ([`agent`], [`beeai_agent`]) turns into a [`request::WorkloadRequest`]. Out: Deployment,
//! Service and ServiceAccount as JSON values ([`workload`]); or everything that is wrong with the Agent at once.
//!
//! ```text
//! Agent ─► WorkloadRequest ─► workload ─► Deployment, Service, ServiceAccount
//! ```
//!
//! Promises: pure; equal inputs give equal bytes; members of a Pod template that nobody knows reach the Deployment.

pub mod agent;
pub mod beeai_agent;
pub mod kaos;
pub mod request;
pub mod settings;
pub mod workload;
