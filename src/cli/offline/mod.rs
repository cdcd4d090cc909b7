//! The decision without a cluster: manifests stand in for what the watches would have seen.
//!
//! ```text
//! files, folders, stdin ─► source ─► documents ─► world (Snapshot) ─┐
//!                                        │                          ├─► admission::evaluate ─► review
//!                                        └────► workload (Pod) ─────┘
//! ```
//!
//! Promise: the same function decides as in the webhook; what is not in the input is as on a cluster where nobody
//! prepared anything.

pub mod agents;
pub mod documents;
pub mod governed;
pub mod misplaced;
pub mod review;
pub mod runtimes;
mod shipped;
pub mod workload;
pub mod world;

#[cfg(test)]
mod tests;
