//! `drawbridge-build-records`: what an AgentBuild's status says of how its image was made is believed, so nobody but us writes it. People who
//! hold all rights on AgentBuilds of a namespace, status included, plant no digest that way. Which image it is is what Agents run, with their
//! Secrets: that nobody but us changes either.
//!
//! It is asked of the objects themselves, too: where a definition that is not ours has no status subresource, the status is a part of the
//! object as any other. Where there is one, the API server has put back the old status, or dropped that of a new object, before it
//! asks (measured), so that who applies an object with a status of another time is not refused.

use k8s_openapi::api::admissionregistration::v1::{NamedRuleWithOperations, Validation};
use serde_json::Value;

use super::super::Install;
use super::super::selectors::condition;
use super::trust::by_us;
use super::{judging, written_in};
use crate::api::agent_kagenti_dev::provenance::MEMBERS;
use crate::domain::keys;

/// Its name.
const NAME: &str = "drawbridge-build-records";
/// The members of a build's status that say which image it made.
const IMAGE: [&str; 3] = ["builtImage", "builtImageTag", "imageDigest"];

/// The policy with its binding.
pub(super) fn policy(install: &Install) -> [Value; 2] {
    let same = |member: &str| format!("object.?status.?{member} == oldObject.?status.?{member}");
    let none = |member: &str| format!("!object.?status.?{member}.hasValue()");
    let records = holds(
        format!(
            "request.operation == 'CREATE' ? {} : {}",
            MEMBERS.map(none).join(" && "),
            MEMBERS.map(same).join(" && ")
        ),
        format!(
            "status.{} of an AgentBuild are written by Drawbridge alone: builds by content believe them. What to do: leave them as they are, \
             and out of a new object; drawbridge build run NAME builds anew and records that",
            MEMBERS.join(", status.")
        ),
    );
    let image = holds(
        format!("request.operation == 'CREATE' || ({})", IMAGE.map(same).join(" && ")),
        format!(
            "status.{} of an AgentBuild are changed by Drawbridge alone: Agents run that image, with their Secrets. What to do: leave them as \
             they are; to run another image, change what is built, or name the image in an Agent of your own",
            IMAGE.join(", status.")
        ),
    );
    let applies = vec![condition("not-by-us", &format!("!({})", by_us(install)))];
    judging(install, NAME, matched(), (applies, Vec::new(), vec![records, image]))
}

fn holds(expression: String, message: String) -> Validation {
    Validation { expression, message: Some(message), reason: Some("Forbidden".to_owned()), message_expression: None }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::FailureMode;

    /// A person with rights on the status of builds gives an Agent no image by it, and may give a new object a status of another time.
    #[test]
    fn which_image_a_build_made_is_changed_by_nobody_but_us() {
        let [policy, binding] = policy(&Install::new(FailureMode::Fail, "somewhere", "drawbridge:test"));
        assert_eq!(binding["spec"]["validationActions"], serde_json::json!(["Deny"]));
        let spec = &policy["spec"];
        let applies = spec["matchConditions"][0]["expression"].as_str().unwrap();
        assert!(applies.starts_with("!(request.userInfo.username == ") && applies.contains("drawbridge-controllers"));
        let validations = spec["validations"].as_array().unwrap();
        assert_eq!(validations.len(), 2);
        let (expression, message) = (validations[1]["expression"].as_str().unwrap(), &validations[1]["message"]);
        assert!(expression.starts_with("request.operation == 'CREATE' || ("), "{expression}");
        for member in IMAGE {
            let same = format!("object.?status.?{member} == oldObject.?status.?{member}");
            assert!(expression.contains(&same) && message.to_string().contains(member), "{expression}");
        }
        let resources = &spec["matchConstraints"]["resourceRules"][0]["resources"];
        assert_eq!(*resources, serde_json::json!(["agentbuilds", "agentbuilds/status"]));
    }
}
