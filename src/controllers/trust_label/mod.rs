//! The trust label on running Pods.

pub mod plan;
