//! Agents against a namespace in memory that keeps owners of fields the way an API server does.

mod adverse;
pub(in crate::controllers::agent) mod bench;
mod enrolled;
mod fields;
mod images;
mod marked;
mod objects;
mod readiness;
mod secrets;
mod taken;
