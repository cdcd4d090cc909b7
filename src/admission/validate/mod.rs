//! Reviews of custom resources that never change them: one file per kind, each reading the object as its controller does.

mod agent;
mod agent_build;
mod agent_card;
mod agent_runtime;
mod beeai_agent;
mod beeai_build;
mod kaos;
mod known;

#[cfg(test)]
mod tests;

pub(super) use agent::{explain as explain_agent, review as review_agent};
pub(super) use agent_build::{explain as explain_agent_build, review as review_agent_build};
pub(super) use agent_card::{explain as explain_agent_card, review as review_agent_card};
pub(super) use agent_runtime::{explain as explain_agent_runtime, review as review_agent_runtime};
pub(super) use beeai_agent::{explain as explain_beeai_agent, review as review_beeai_agent};
pub(super) use beeai_build::{explain as explain_beeai_build, review as review_beeai_build};
pub(super) use kaos::{explain as explain_kaos, review as review_kaos};
