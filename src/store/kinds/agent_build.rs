//! AgentBuilds, kept whole as [`CustomSeen`] has it.

use super::What;
use super::custom::CustomSeen;
use crate::api::agent_kagenti_dev::{self as api, agent_build};
use crate::store::decode::Whole;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// AgentBuilds.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::all(page::RUNS, UsedBy::Every)],
    ..Descriptor::ours(
        (api::GROUP, api::VERSION),
        "agentbuilds",
        "AgentBuild",
        (Decode::Whole(project), agent_build::crd),
    )
};

fn project(object: Whole) -> Option<What> {
    Some(What::AgentBuild(Box::new(CustomSeen::of_build(object))))
}
