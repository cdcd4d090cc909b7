//! The NetworkPolicies that cut off agents, and those that open one of them.

mod cluster;
mod declared;
mod facts;
mod kaos;
pub mod memory;
mod names;
mod opening;
mod overridden;
pub mod plan;
mod quarantine;
mod stuck;
mod unread;
