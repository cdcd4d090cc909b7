//! Reviews that fill in what a custom resource leaves open: one file per kind. They never refuse what they can read.

mod agent_build;
#[cfg(test)]
mod tests;

pub(super) use agent_build::{explain as explain_agent_build, review as complete_agent_build};
