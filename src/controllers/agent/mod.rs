//! What an Agent asks for, kept running: one Deployment, one Service, one ServiceAccount of its name.
//!
//! ```text
//! Agent ─► subject (everything of its name) ─► image ─► wanted ─► applied? claim · drift ─► one apply each
//!                                                │                                           │
//!                                                └──────────────► status ◄───────────────────┘
//! ```
//!
//! The objects are `pipelines::workload`'s; here it is decided when they are written. An object of the Agent's name that is
//! somebody else's is never touched. What runs an Agent is an ordinary workload to injection and enrolment: `enrol` gives
//! a new Deployment what enrolment would write on it a moment later, so that its Pods are made once. All is pure.
//!
//! Other groups have Agents, too: what differs between them is a [`face::Face`], and the rest is here once.

pub mod beeai;
mod claim;
mod drift;
mod enrol;
mod face;
mod image;
pub mod kaos;
mod mark;
pub mod memory;
pub mod note;
pub mod plan;
mod status;
mod subject;
mod turns;
mod wanted;

#[cfg(test)]
mod tests;
