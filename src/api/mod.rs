//! Wire types: our custom resources, the admission review envelope, Events, and the few foreign objects that our bindings
//! lack.

pub mod agent_kagenti_dev;
pub mod beeai_dev;
pub mod digest;
pub mod event;
pub mod findings;
pub mod foreign;
pub mod json;
pub mod kaos_tools;
pub mod owner;
pub mod place;
pub mod refusal;
pub mod review;
pub mod routes;
pub mod secrets;
pub mod syntax;
pub mod yaml;
