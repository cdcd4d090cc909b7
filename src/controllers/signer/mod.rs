//! What the Pods of a workload that sign their card need for publishing it, made ahead of them: the ConfigMap, and the right to write that one.

pub mod plan;

#[cfg(test)]
mod tests;
