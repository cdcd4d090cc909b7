//! Which Pods are ours: one value for webhook and policy, so that they cannot drift apart.

use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::domain::keys;

/// Selectors and conditions of an admission registration.
#[derive(Debug, Clone, PartialEq)]
pub struct Reach {
    /// Namespaces.
    pub namespaces: LabelSelector,
    /// Objects.
    pub objects: LabelSelector,
    /// CEL conditions; all must hold.
    pub conditions: Vec<MatchCondition>,
}

impl Reach {
    /// The same within some namespaces; with none, as it is.
    #[must_use]
    pub fn within(mut self, namespaces: &[String]) -> Self {
        if !namespaces.is_empty() {
            let names = requirement(LABEL_NAMESPACE_NAME, "In", namespaces.iter().map(String::as_str));
            self.namespaces.match_expressions.get_or_insert_default().push(names);
        }
        self
    }
}

pub use crate::domain::keys::LABEL_NAMESPACE_NAME;

/// Enrolled Pods: nothing else in the cluster depends on a replica being there.
#[must_use]
pub fn enrolled_pods(operator_namespace: &str) -> Reach {
    Reach {
        namespaces: LabelSelector {
            match_expressions: Some(vec![
                outside_system(operator_namespace),
                requirement(keys::LABEL_NAMESPACE_ENABLED, "NotIn", ["false"]),
            ]),
            ..LabelSelector::default()
        },
        objects: LabelSelector {
            match_expressions: Some(vec![
                requirement(keys::LABEL_TYPE, "In", ["agent", "tool"]),
                requirement(keys::LABEL_INJECT, "NotIn", [keys::INJECT_DISABLED]),
            ]),
            ..LabelSelector::default()
        },
        conditions: vec![condition(
            "not-a-mirror-pod",
            &format!("!('{}' in object.metadata.?annotations.orValue({{}}))", keys::ANNOTATION_MIRROR),
        )],
    }
}

/// Pods whose template says that their agent was verified.
#[must_use]
pub fn trust_labelled_pods(operator_namespace: &str) -> Reach {
    let carries =
        LabelSelectorRequirement { key: keys::LABEL_VERIFIED.to_owned(), operator: "Exists".to_owned(), values: None };
    Reach {
        namespaces: LabelSelector {
            match_expressions: Some(vec![outside_system(operator_namespace)]),
            ..LabelSelector::default()
        },
        objects: LabelSelector { match_expressions: Some(vec![carries]), ..LabelSelector::default() },
        conditions: Vec::new(),
    }
}

/// A label key that is the type label, or was meant to be: `kagenti/type`, `kagneti.io/type`, `kagenti.io/Types`. Which of these it is, the
/// webhook finds out; here it only has to be asked.
const LIKE_TYPE: &str = "key, key.lowerAscii().matches('^k[a-z]{3,9}([.][a-z]{1,3})?/[typeso]{3,5}$')";

/// Workloads whose author wants to hear what will happen to their Pods: those that carry the type label, or one that was meant to be it, themselves or on
/// their template, made by a person rather than by a controller, when the template or the label is new; and Namespaces that carry it, where
/// it enrols nothing, or whose own switch is new, whatever its value: whether that switches anything, the webhook finds out.
#[must_use]
pub fn labelled_workloads(operator_namespace: &str) -> Reach {
    let template = "(request.kind.kind == 'CronJob' ? OBJECT.spec.jobTemplate.spec.template : OBJECT.spec.template)";
    let of = |object: &str| template.replace("OBJECT", object);
    let is_workload = "request.kind.kind != 'Namespace'";
    let is_namespace = "request.kind.kind == 'Namespace'";
    let switch = |object: &str| format!("{object}.metadata.?labels[?'{}']", keys::LABEL_NAMESPACE_ENABLED);
    let labels = |object: &str| format!("{object}.metadata.?labels.orValue({{}})");
    let own = |object: &str| format!("{object}.metadata.?labels[?'{}']", keys::LABEL_TYPE);
    let alike = |object: &str| format!("{}.filter({LIKE_TYPE})", labels(object));
    Reach {
        namespaces: LabelSelector {
            match_expressions: Some(vec![outside_system(operator_namespace)]),
            ..LabelSelector::default()
        },
        objects: LabelSelector::default(),
        conditions: vec![
            condition(
                "labelled",
                &format!(
                    "{}.exists({LIKE_TYPE}) || ({is_namespace} && {}.hasValue()) || \
                     ({is_workload} && {}.?metadata.?labels.orValue({{}}).exists({LIKE_TYPE}))",
                    labels("object"),
                    switch("object"),
                    of("object")
                ),
            ),
            condition(
                "made-by-a-person",
                "!object.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false))",
            ),
            condition(
                "template-or-label-is-new",
                &format!(
                    "request.operation == 'CREATE' || {} != {} || {} != {} || ({is_namespace} && {} != {}) || ({is_workload} && {} != {})",
                    own("object"),
                    own("oldObject"),
                    alike("object"),
                    alike("oldObject"),
                    switch("object"),
                    switch("oldObject"),
                    of("object"),
                    of("oldObject"),
                ),
            ),
        ],
    }
}

/// Custom resources that are not being deleted: nothing may hold up their finalizers.
#[must_use]
pub fn living_objects() -> Reach {
    Reach {
        namespaces: LabelSelector::default(),
        objects: LabelSelector::default(),
        conditions: vec![condition("not-being-deleted", "!has(object.metadata.deletionTimestamp)")],
    }
}

/// Neither a namespace of Kubernetes itself nor our own.
pub(super) fn outside_system(operator_namespace: &str) -> LabelSelectorRequirement {
    let names = keys::SYSTEM_NAMESPACES.into_iter().chain([operator_namespace]);
    requirement(LABEL_NAMESPACE_NAME, "NotIn", names)
}

/// One expression of a selector.
pub(super) fn requirement<'a>(
    key: &str,
    operator: &str,
    values: impl IntoIterator<Item = &'a str>,
) -> LabelSelectorRequirement {
    LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: Some(values.into_iter().map(str::to_owned).collect()),
    }
}

/// A named CEL expression.
#[must_use]
pub fn condition(name: &str, expression: &str) -> MatchCondition {
    MatchCondition { name: name.to_owned(), expression: expression.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(name: &str) -> String {
        let Reach { conditions, .. } = labelled_workloads("kagenti-system");
        let found = conditions.into_iter().find(|one| one.name == name);
        found.unwrap_or_else(|| panic!("{name}")).expression
    }

    /// `kubectl label namespace team1 kagenti-enabled=False` switches nothing, and whoever writes it hears so only if the webhook is asked.
    #[test]
    fn a_namespace_is_reviewed_when_its_switch_is_new_and_for_no_other_reason_than_its_labels() {
        let switch = |object: &str| format!("{object}.metadata.?labels[?'kagenti-enabled']");
        let of_namespace = "request.kind.kind == 'Namespace'";
        let (labelled, is_new) = (expression("labelled"), expression("template-or-label-is-new"));
        let has_it = format!(" || ({of_namespace} && {}.hasValue())", switch("object"));
        assert!(labelled.contains(&has_it), "{labelled}");
        let differs = format!(" || ({of_namespace} && {} != {})", switch("object"), switch("oldObject"));
        assert!(is_new.contains(&differs), "{is_new}");
        assert!(is_new.starts_with("request.operation == 'CREATE' || "), "there is no old object: {is_new}");
        // Of a workload the label says nothing, and no value is judged here: what switches is written once, with what is said of the rest.
        for expression in [labelled, is_new] {
            assert_eq!(expression.matches(of_namespace).count(), 1, "{expression}");
            assert!(!expression.contains("'true'") && !expression.contains("'false'"), "{expression}");
        }
    }
}
