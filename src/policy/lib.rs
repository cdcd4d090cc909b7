//! Who reaches whom: NetworkPolicies, Pods and Namespaces, judged as the documentation of Kubernetes says that they are to be enforced.
//!
//! The crates of the house stand under their own names here, so that a path reads the same in every crate.

pub use drawbridge_api::api;
pub use drawbridge_domain::domain;

#[path = "mod.rs"]
pub mod policy;
