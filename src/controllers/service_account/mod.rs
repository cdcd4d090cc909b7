//! Dedicated ServiceAccounts, made ahead of the Pods that ask for them.

pub mod plan;

#[cfg(test)]
mod tests;
