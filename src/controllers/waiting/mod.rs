//! Workloads whose Pods were refused until a fact arrived are told to try again.

pub mod plan;

#[cfg(test)]
mod tests;
