//! `drawbridge-trust-label`: who carries the trust label is said by us. On a running Pod nobody else puts it or takes it off, through its
//! status neither; no new Pod has it, whoever makes it: the webhook takes away what a template says, and the controller puts it on the Pod of
//! a verified agent a moment later, when it is known whose it is.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::Value;

use super::super::super::{Install, object};
use super::super::{Refusal, pods, refusal};
use super::by_us;
use crate::domain::keys;

/// Its name.
const NAME: &str = "drawbridge-trust-label";
pub(super) fn policy(install: &Install) -> [Value; 2] {
    let value = |of: &str, key: &str| format!("{of}.metadata.?labels[?'{key}']");
    let kept = format!(
        "{} == {} || {}",
        value("object", keys::LABEL_VERIFIED),
        value("oldObject", keys::LABEL_VERIFIED),
        by_us(install)
    );
    let rule = Refusal {
        applies: Vec::new(),
        variables: Vec::new(),
        holds: format!("request.operation == 'UPDATE' && ({kept})"),
        message: format!(
            "label {} says that an agent's card was verified, and only Drawbridge says so. What to do: leave it out; an agent gets it once its \
             AgentCard is Verified (drawbridge explain agentcard/NAME)",
            keys::LABEL_VERIFIED
        ),
        message_expression: None,
    };
    let mut both = refusal(install, NAME, matched(), rule);
    both[0]["spec"]["matchConstraints"]["objectSelector"] = object(&labelled());
    both
}

/// The API server takes labels from an update of the status, too.
fn matched() -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        operations: Some(["CREATE", "UPDATE"].map(str::to_owned).into()),
        resources: Some(["pods", "pods/status"].map(str::to_owned).into()),
        ..pods("CREATE")
    }
}

/// The old object or the new one carries it; no other Pod costs anything.
fn labelled() -> LabelSelector {
    let carries =
        LabelSelectorRequirement { key: keys::LABEL_VERIFIED.to_owned(), operator: "Exists".to_owned(), values: None };
    LabelSelector { match_expressions: Some(vec![carries]), ..LabelSelector::default() }
}
