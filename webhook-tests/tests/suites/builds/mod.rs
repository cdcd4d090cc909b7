//! AgentBuilds on a real API server, under the rendered permissions: a build's life, kills around every write of it, and
//! Tekton's definitions coming and going. Tekton itself is played: its definitions without a schema, statuses written by
//! the test; the suite `tekton` runs the real one.

pub(crate) mod commands;
mod content;
mod flood;
mod foreign;
mod kills;
mod life;
mod logs;
mod mends;
mod proxy;
pub(crate) mod stage;
