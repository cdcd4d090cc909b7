//! The few foreign objects that our bindings lack, as far as we write them.

pub mod mutating_policy;
