//! The trust label on running Pods, and that of quarantine.

pub mod plan;
mod quarantine;
