//! How many instructions a review takes, and composing a run: what is counted ([`cases`]), against which numbers ([`gate`]), and
//! the reviews and snapshots that counts and benchmarks are made of ([`fixture`]).

pub mod cases;
pub mod fixture;
pub mod gate;
