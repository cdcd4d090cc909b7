//! The one door to the API server.
//!
//! [`client`] makes the clients for reading, [`watch`] is the one way of listing and watching, [`keeper`] the one way in for what is learned, and [`lease`] holds the leader's
//! Lease and the client for writing, whose fence closes before the Lease ends.

pub mod client;
pub mod keeper;
pub mod lease;
pub mod watch;
