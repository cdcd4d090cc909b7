//! Workloads whose Pods were refused until a fact arrived are told to try again (design, waiting Pods).

pub mod plan;

#[cfg(test)]
mod tests;
