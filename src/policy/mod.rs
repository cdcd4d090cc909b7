//! Who reaches whom, by NetworkPolicies.
//!
//! In: NetworkPolicies (`networking.k8s.io/v1`, as the API server stores them), Pods and Namespaces, as JSON. Out: which ports of a Pod
//! another one reaches, and the rule that decides on either side; and the policies that enforcement of trust wants.
//!
//! Promises: pure (no clock, file, environment, network, async); the order of what goes in means nothing; a policy that cannot be read is
//! named and left out, never guessed. What is judged are objects, not traffic: no network plugin is asked whether it has applied them.

pub mod address;
pub mod desired;
pub mod matrix;
pub mod network_policy;
pub mod openings;
pub mod pod;
pub mod ports;
pub mod reach;
pub mod report;
pub mod selector;
pub mod side;
pub mod world;

#[cfg(test)]
mod tests;
