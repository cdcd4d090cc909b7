//! The generic part of every controller: memory, queue, plan, executor, loop. It names none of them.

pub mod answers;
pub mod apply;
mod ask;
pub(super) mod budget;
pub mod check;
pub mod consent;
pub mod controller;
pub mod lane;
pub mod login;
pub mod memory;
pub mod metrics;
pub mod plan;
pub mod queue;
pub mod run;
pub mod runner;
mod server_side;
pub mod signing;
mod waves;

#[cfg(test)]
pub(super) mod fixtures;
#[cfg(test)]
mod tests;
