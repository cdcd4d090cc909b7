//! `drawbridge-trust-quarantine`: who is in quarantine gets no new Pod, by the API server's own hand: it reads the annotation of the Namespace, and
//! whose a Pod is off its owner's name. `drawbridge-trust-quarantined`: a running Pod in quarantine stays in it: nobody but us takes its label
//! off, or the one by which we watch it.
//!
//! Promise: a Pod is refused when its workload is named, never because one is named that is called alike; a ReplicaSet's or a Job's name is read
//! without what its maker has put behind it.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::Value;

use super::super::super::selectors::{LABEL_NAMESPACE_NAME, condition, outside_system, requirement};
use super::super::super::{Install, object};
use super::super::{Refusal, pods, refusal, variable};
use super::by_us;
use crate::domain::keys;
use crate::domain::quarantine::EVERYBODY;
use crate::domain::reason::Reason;

/// Name of the policy for new Pods.
const NEW: &str = "drawbridge-trust-quarantine";
/// Name of the policy for those that run.
const RUNNING: &str = "drawbridge-trust-quarantined";

/// New Pods.
pub(super) fn new_pods(install: &Install) -> [Value; 2] {
    let said = format!("namespaceObject.metadata.?annotations[?'{}'].orValue('')", keys::ANNOTATION_QUARANTINE);
    let first = "variables.owners[0].name";
    let hash = "object.metadata.?labels[?'pod-template-hash'].orValue('')";
    // Nothing is cut off a name that was not put behind it by who made the object.
    let owner = format!(
        "variables.owners.size() == 0 ? object.metadata.?name.orValue('') : (variables.owners[0].kind == 'ReplicaSet' && {hash} != '' && \
         {first}.endsWith('-' + {hash}) ? {first}.substring(0, {first}.size() - {hash}.size() - 1) : {first})"
    );
    let scheduled = "variables.owners.size() > 0 && variables.owners[0].kind == 'Job' && variables.owner.matches('-[0-9]{8,}$') ? \
                     variables.owner.substring(0, variables.owner.lastIndexOf('-')) : variables.owner";
    let rule = Refusal {
        // A match condition sees no Namespace (measured: "no such key: metadata", which refuses every Pod), so all of it stands in the rule.
        applies: Vec::new(),
        variables: vec![
            variable("said", &said),
            variable("held", "variables.said.split(',').map(w, w.trim())"),
            variable("owners", "object.metadata.?ownerReferences.orValue([]).filter(o, o.?controller.orValue(false))"),
            variable("owner", &owner),
            variable("scheduled", scheduled),
        ],
        holds: format!(
            "variables.said == '' || !('{EVERYBODY}' in variables.held || variables.owner in variables.held || variables.scheduled in variables.held)"
        ),
        message: format!(
            "{}: annotation {} of this Namespace names whom the Pod belongs to, so none is made. What to do: nothing, if that is meant; whoever may \
             patch namespaces in the whole cluster ends it with drawbridge release",
            Reason::Quarantined.code(),
            keys::ANNOTATION_QUARANTINE
        ),
        message_expression: None,
    };
    let mut both = refusal(install, NEW, pods("CREATE"), rule);
    let mut namespaces = vec![outside_system(&install.namespace)];
    if !install.namespaces.is_empty() {
        namespaces.push(requirement(LABEL_NAMESPACE_NAME, "In", install.namespaces.iter().map(String::as_str)));
    }
    both[0]["spec"]["matchConstraints"]["namespaceSelector"] = selector(namespaces);
    both
}

/// Running Pods.
pub(super) fn running_pods(install: &Install) -> [Value; 2] {
    let same = |key: &str| {
        let label = |of: &str| format!("{of}.metadata.?labels[?'{key}']");
        format!("{} == {}", label("object"), label("oldObject"))
    };
    let rule = Refusal {
        applies: vec![condition("not-by-us", &format!("!({})", by_us(install)))],
        variables: Vec::new(),
        holds: format!(
            "request.operation == 'UPDATE' && {} && {}",
            same(keys::LABEL_QUARANTINED),
            same(keys::LABEL_TYPE)
        ),
        message: format!(
            "label {} says that a Pod is in quarantine, and only Drawbridge puts it on a Pod and takes it off; while a Pod has it, its label {} stays. \
             What to do: leave it out; whoever may patch namespaces in the whole cluster ends a quarantine with drawbridge release",
            keys::LABEL_QUARANTINED,
            keys::LABEL_TYPE
        ),
        message_expression: None,
    };
    let mut both = refusal(install, RUNNING, matched(), rule);
    let carries = LabelSelectorRequirement {
        key: keys::LABEL_QUARANTINED.to_owned(),
        operator: "Exists".to_owned(),
        values: None,
    };
    both[0]["spec"]["matchConstraints"]["objectSelector"] = selector(vec![carries]);
    both
}

fn selector(expressions: Vec<LabelSelectorRequirement>) -> Value {
    object(&LabelSelector { match_expressions: Some(expressions), ..LabelSelector::default() })
}

/// The API server takes labels from an update of the status, too.
fn matched() -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        operations: Some(["CREATE", "UPDATE"].map(str::to_owned).into()),
        resources: Some(["pods", "pods/status"].map(str::to_owned).into()),
        ..pods("CREATE")
    }
}
