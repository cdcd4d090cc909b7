//! `drawbridge-build-records`: what an AgentBuild's status says of how its image was made is believed, so nobody but us writes it. People who
//! hold all rights on AgentBuilds of a namespace, status included, plant no digest that way.
//!
//! It is asked of the objects themselves, too: where a definition that is not ours has no status subresource, the status is a part of the
//! object as any other. Where there is one, the API server has put back the old status, or dropped that of a new object, before it
//! asks (measured), so that who applies an object with a status of another time is not refused.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::super::Install;
use super::super::selectors::condition;
use super::trust::by_us;
use super::{Refusal, refusal, written_in};
use crate::api::agent_kagenti_dev::provenance::MEMBERS;
use crate::domain::keys;

/// Its name.
const NAME: &str = "drawbridge-build-records";

/// The policy with its binding.
pub(super) fn policy(install: &Install) -> [Value; 2] {
    let same = |member: &str| format!("object.?status.?{member} == oldObject.?status.?{member}");
    let none = |member: &str| format!("!object.?status.?{member}.hasValue()");
    let rule = Refusal {
        applies: vec![condition("not-by-us", &format!("!({})", by_us(install)))],
        variables: Vec::new(),
        holds: format!(
            "request.operation == 'CREATE' ? {} : {}",
            MEMBERS.map(none).join(" && "),
            MEMBERS.map(same).join(" && ")
        ),
        message: format!(
            "status.{} of an AgentBuild are written by Drawbridge alone: builds by content believe them. What to do: leave them as they are, \
             and out of a new object; drawbridge build run NAME builds anew and records that",
            MEMBERS.join(", status.")
        ),
        message_expression: None,
    };
    refusal(install, NAME, matched(), rule)
}

fn matched() -> NamedRuleWithOperations {
    let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    NamedRuleWithOperations {
        api_groups: texts(&[keys::GROUP_AGENT, keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT]),
        api_versions: texts(&["v1alpha1", "v1"]),
        resources: texts(&["agentbuilds", "agentbuilds/status"]),
        ..written_in((keys::GROUP_AGENT, "v1alpha1"), "agentbuilds")
    }
}
