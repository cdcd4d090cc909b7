//! Agents, kept whole as [`CustomSeen`] has it.

use super::What;
use super::custom::CustomSeen;
use crate::api::agent_kagenti_dev::{self as api, agent};
use crate::store::decode::Whole;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection};

/// Agents.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    words: &["agent", "agents", "agent.agent.kagenti.dev", "agents.agent.kagenti.dev"],
    selections: &[Selection::named_to_all(page::RUNS)],
    ..Descriptor::ours((api::GROUP, api::VERSION), "agents", "Agent", (Decode::Whole(project), agent::crd))
};

fn project(object: Whole) -> Option<What> {
    Some(What::Agent(Box::new(CustomSeen::of(object))))
}
