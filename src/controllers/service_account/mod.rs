//! Dedicated ServiceAccounts, made ahead of the Pods that ask for them (design, ServiceAccount row).

pub mod plan;

#[cfg(test)]
mod tests;
