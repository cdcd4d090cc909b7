//! The NetworkPolicies that cut off agents, and those that open one of them.

mod facts;
mod kaos;
pub mod memory;
mod names;
mod overridden;
pub mod plan;
mod quarantine;
mod stuck;
mod unread;
