//! Cases of the page (19.4) and laws, on a cluster in memory that carries plans out.

mod attacked;
pub(super) mod bench;
mod cases;
mod ending;
mod known;
mod laws;
mod mends;
mod prerequisites;
mod provenance;
mod secrets;
