//! What holds for the library as a whole, in one binary: the house ([`architecture`]), what is generated ([`manifests`],
//! [`readme`], [`sentences`]), what remedies may name ([`remedies`]), which fault, mend and case has a test ([`faults`], [`mends`], [`cards`], [`kaos`]), commands on files (`cli_…`), and the server over real sockets ([`server_faults`]).
//!
//! Binaries of their own have what needs a process to itself: `memory` (resident memory) and `server_signals` (signals).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod architecture;
mod beeai;
mod cards;
mod citations;
mod cli_explain;
mod cli_inject;
mod cli_reach;
mod cli_validate_builds;
mod cli_validate_cards;
mod cli_validate_kaos;
mod faults;
mod kaos;
mod manifests;
mod mends;
mod readme;
mod remedies;
mod sentences;
mod server_faults;
