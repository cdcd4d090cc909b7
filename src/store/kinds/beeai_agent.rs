//! Agents of BeeAI, of both groups, kept whole as [`CustomSeen`] has it.

use super::What;
use super::custom::CustomSeen;
use crate::api::beeai_dev::{VERSION, agent};
use crate::domain::keys;
use crate::store::decode::Whole;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection};

/// Agents of `beeai.dev`.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::named_to_all(page::RUNS)],
    full: Some("Agent.beeai.dev"),
    words: &["agent.beeai.dev", "agents.beeai.dev"],
    ..Descriptor::ours((keys::GROUP_BEEAI, VERSION), "agents", "Agent", (Decode::Whole(project), agent::crd))
};

/// Agents of `beeai.beeai.dev`.
pub(super) const COMPAT: Descriptor = Descriptor {
    selections: &[Selection::named_to_all(page::RUNS)],
    full: Some("Agent.beeai.beeai.dev"),
    words: &["agent.beeai.beeai.dev", "agents.beeai.beeai.dev"],
    ..Descriptor::compat(
        (keys::GROUP_BEEAI_COMPAT, VERSION),
        "agents",
        "Agent",
        (Decode::Whole(project), agent::compat_crd),
    )
};

fn project(object: Whole) -> Option<What> {
    Some(What::BeeaiAgent(Box::new(CustomSeen::of(object))))
}
