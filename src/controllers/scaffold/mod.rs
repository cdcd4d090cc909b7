//! The generic part of every controller: memory, queue, plan, executor, loop.

pub mod answers;
pub mod apply;
mod ask;
pub(super) mod budget;
pub mod consent;
pub mod lane;
pub mod login;
pub mod memory;
pub mod metrics;
pub mod note;
pub mod plan;
pub mod queue;
pub mod run;
pub mod runner;
mod server_side;
mod waves;

#[cfg(test)]
pub(super) mod fixtures;
#[cfg(test)]
mod tests;
