//! The rule of `drawbridge-runtime-config`: what runs beside an agent is what was admitted. Of a Pod that has our parts nobody changes or
//! takes away our notes, the type by which it is watched over, or the images of our containers, in whatever order of updates, by the Pod or
//! by its status.
//!
//! Old and new object are asked for the note of what was injected, so that it can neither be taken off first nor be put on later. Not
//! asked: nodes and the controllers of kube-system, whose updates a mutation of somebody else's may change on the way (an image mirror at
//! UPDATE kept Jobs from ever ending: measured); Pods that have ended or are on their way out. Updates of resize and ephemeral containers
//! carry no metadata that the API server would take.

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, NamedRuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::super::selectors::condition;
use super::{Refusal, listed, pods_updated, variable};
use crate::domain::keys;

/// What a Pod says of itself that holds as long as it runs.
const FIXED: [&str; 3] = [keys::ANNOTATION_STATUS, keys::ANNOTATION_RUNTIME_CONFIG, keys::ANNOTATION_CONFIG_HASH];
/// Controllers of kube-system that update Pods or their status.
const CONTROLLERS: [&str; 14] = [
    "cronjob-controller",
    "daemon-set-controller",
    "device-taint-eviction-controller",
    "disruption-controller",
    "generic-garbage-collector",
    "job-controller",
    "namespace-controller",
    "node-controller",
    "pod-garbage-collector",
    "replicaset-controller",
    "replication-controller",
    "resource-claim-controller",
    "statefulset-controller",
    "taint-eviction-controller",
];
/// The same, where they share one account; and the scheduler, which writes conditions.
const COMPONENTS: [&str; 2] = ["system:kube-controller-manager", "system:kube-scheduler"];

/// The API server takes labels and annotations from an update of the status, too.
pub(super) fn matched() -> NamedRuleWithOperations {
    NamedRuleWithOperations { resources: Some(["pods", "pods/status"].map(str::to_owned).to_vec()), ..pods_updated() }
}

/// Pods of which the old or the new object has the type; no other costs anything.
pub(super) fn selected() -> LabelSelector {
    let has_type =
        LabelSelectorRequirement { key: keys::LABEL_TYPE.to_owned(), operator: "Exists".to_owned(), values: None };
    LabelSelector { match_expressions: Some(vec![has_type]), ..LabelSelector::default() }
}

pub(super) fn rule() -> Refusal {
    let label = |of: &str| format!("{of}.metadata.?labels[?'{}']", keys::LABEL_TYPE);
    let annotation = |of: &str, key: &str| format!("{of}.metadata.?annotations[?'{key}']");
    let notes = FIXED.map(|key| format!("{} == {}", annotation("object", key), annotation("oldObject", key)));
    Refusal {
        applies: applies(),
        variables: vec![variable("images", &images("object")), variable("oldImages", &images("oldObject"))],
        holds: format!(
            "{} == {} && {} && variables.images == variables.oldImages",
            label("object"),
            label("oldObject"),
            notes.join(" && "),
        ),
        message: format!(
            "what was injected into a Pod stays while it runs: label {}, annotations {} and the images of the containers {} are fixed \
             when the Pod is created. What to do: change the workload, the namespace's ConfigMap {} or the platform file, and restart \
             the workload",
            keys::LABEL_TYPE,
            FIXED.join(", "),
            keys::OUR_CONTAINERS.join(", "),
            keys::CONFIG_MAP_RUNTIME
        ),
        message_expression: None,
    }
}

fn applies() -> Vec<MatchCondition> {
    let noted = |of: &str| format!("{of}.metadata.?annotations[?'{}'].hasValue()", keys::ANNOTATION_STATUS);
    let configured =
        |of: &str| format!("{of}.metadata.?annotations[?'{}'].hasValue()", keys::ANNOTATION_RUNTIME_CONFIG);
    let accounts = CONTROLLERS.map(|name| format!("system:serviceaccount:kube-system:{name}"));
    let names = accounts.iter().map(String::as_str).chain(COMPONENTS);
    vec![
        condition(
            "has-parts",
            &[noted("oldObject"), noted("object"), configured("oldObject"), configured("object")].join(" || "),
        ),
        condition(
            "still-runs",
            "!has(oldObject.metadata.deletionTimestamp) && !(oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed'])",
        ),
        condition("not-a-node", "!('system:nodes' in request.userInfo.?groups.orValue([]))"),
        condition("not-a-controller", &format!("!(request.userInfo.username in [{}])", listed(names))),
    ]
}

/// Name and image of our containers. Lists of two types cannot be joined, as the API server checks these expressions.
fn images(of: &str) -> String {
    let ours = listed(keys::OUR_CONTAINERS);
    let list = |containers: &str| {
        format!("{of}.spec.{containers}.filter(c, c.name in [{ours}]).map(c, c.name + '=' + c.?image.orValue(''))")
    };
    format!("{} + {}", list("containers"), list("?initContainers.orValue([])"))
}
