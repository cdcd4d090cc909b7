//! From files and cluster objects to one immutable snapshot.
//!
//! ```text
//! platform file ─► schema ─┐
//! gates file    ─► gates  ─┤
//! ConfigMaps    ─► view   ─┴─► layers::resolve ─► Resolved (per namespace) ─► Snapshot
//! ```
//!
//! Bytes and parsed objects go in; validated values with provenance come out. Nothing here reads a file, a clock or
//! the network, and a value that fails to parse never replaces a good one: the caller keeps the last.

pub mod agent_card;
pub mod agent_runtime;
pub mod bounds;
pub mod builds;
pub mod cards;
pub mod content;
pub mod defaults;
pub mod envoy;
pub mod gates;
pub mod gather;
pub mod inputs;
pub mod layers;
pub mod misplaced;
pub mod namesakes;
pub mod namespace;
pub mod reading;
pub mod resolved;
pub mod schema;
pub mod settle;
pub mod snapshot;
pub mod trust;
pub mod view;

pub use crate::domain::otlp;
pub use crate::store::enrolment;
