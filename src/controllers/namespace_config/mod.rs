//! The ConfigMaps that injected Pods refer to, in every namespace with an enrolled workload (design, ConfigMap row).

pub mod plan;

#[cfg(test)]
mod tests;
