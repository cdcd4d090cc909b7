//! AgentBuilds of BeeAI, of both groups, kept whole as [`CustomSeen`] has it.

use super::What;
use super::custom::CustomSeen;
use crate::api::beeai_dev::{VERSION, agent_build};
use crate::domain::keys;
use crate::store::decode::Whole;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// AgentBuilds of `beeai.dev`.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::all(page::RUNS, UsedBy::Controllers)],
    full: Some("AgentBuild.beeai.dev"),
    ..Descriptor::ours(
        (keys::GROUP_BEEAI, VERSION),
        "agentbuilds",
        "AgentBuild",
        (Decode::Whole(project), agent_build::crd),
    )
};

/// AgentBuilds of `beeai.beeai.dev`.
pub(super) const COMPAT: Descriptor = Descriptor {
    selections: &[Selection::all(page::RUNS, UsedBy::Controllers)],
    full: Some("AgentBuild.beeai.beeai.dev"),
    ..Descriptor::compat(
        (keys::GROUP_BEEAI_COMPAT, VERSION),
        "agentbuilds",
        "AgentBuild",
        (Decode::Whole(project), agent_build::compat_crd),
    )
};

fn project(object: Whole) -> Option<What> {
    Some(What::BeeaiBuild(Box::new(CustomSeen::of_build(object))))
}
