//! Wire types: the admission review envelope and the few foreign objects that our bindings lack.

pub mod foreign;
pub mod observed;
pub mod review;
