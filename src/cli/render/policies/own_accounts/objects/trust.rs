//! What is made of trust: rights of those that publish their signed card, and what cuts agents off and opens them.
//!
//! Rows as in [`super`], and by its words.

use super::{Row, labelled, marked, of_its_api, plain, untouched};
use crate::domain::keys;

/// It is of the signer of a workload: that one controls it, and it has the name of its signed card.
pub(super) fn of_its_signer(of: &str) -> String {
    format!(
        "variables.{of}.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) && \
         o.kind in ['Deployment', 'StatefulSet', 'DaemonSet', 'Sandbox'] && variables.{of}.metadata.?name.orValue('') == o.name + '{}')",
        keys::SUFFIX_SIGNED_CARD
    )
}

/// One that is made for it, and is what `is` says.
pub(super) fn made_for_signer(of: &str, is: &str) -> String {
    format!("{} && {} && !has(variables.{of}.metadata.finalizers) && {is}", of_its_signer(of), marked(of))
}

/// What the Role of a signer gives: writing the one ConfigMap of its name.
fn one_config_map(of: &str) -> String {
    format!(
        "variables.{of}.?rules.orValue([]).size() == 1 && variables.{of}.rules.all(r, r.?apiGroups.orValue([]) == [''] && \
         r.?resources.orValue([]) == ['configmaps'] && r.?resourceNames.orValue([]) == [variables.{of}.metadata.name] && \
         r.verbs == ['get', 'patch'])"
    )
}

/// To whom the RoleBinding of a signer gives it: one account of the namespace.
fn one_account(of: &str) -> String {
    format!(
        "variables.{of}.roleRef.kind == 'Role' && variables.{of}.roleRef.name == variables.{of}.metadata.name && \
         variables.{of}.?subjects.orValue([]).size() == 1 && variables.{of}.subjects.all(s, s.kind == 'ServiceAccount' && \
         s.?namespace.orValue('') == request.namespace)"
    )
}

pub(super) fn roles() -> Row {
    right(
        "roles",
        one_config_map,
        "makes no Role but the one by which the Pods of a workload publish its signed card, on that ConfigMap alone",
    )
}

pub(super) fn role_bindings() -> Row {
    right(
        "rolebindings",
        one_account,
        "binds no Role but that one, and it to the account of the workload's namespace that signs",
    )
}

fn right(resource: &'static str, gives: fn(&str) -> String, what: &'static str) -> Row {
    Row {
        group: "rbac.authorization.k8s.io",
        resource,
        made: made_for_signer("new", &gives("new")),
        changed: format!(
            "{} && {} && {} && {}",
            of_its_signer("old"),
            marked("old"),
            gives("new"),
            untouched(&["labels", "annotations", "ownerReferences", "finalizers"])
        ),
        deleted: format!("{} && {}", of_its_signer("old"), marked("old")),
        what,
    }
}

/// What cuts off agents, and what opens one of them; or the Go operator's, which is taken over.
pub(super) fn network_policies() -> Row {
    let name = |of: &str| format!("variables.{of}.metadata.?name.orValue('')");
    let ours = |of: &str| {
        format!(
            "{} && {} && ({name} in ['{}', '{}'] || {name}.endsWith('{}'))",
            marked(of),
            labelled(of, keys::LABEL_POLICY_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE),
            keys::DEFAULT_DENY,
            keys::QUARANTINE_POLICY,
            keys::SUFFIX_SIGNATURE_POLICY,
            name = name(of)
        )
    };
    let theirs = format!(
        "({} && {}.endsWith('{}'))",
        labelled("old", keys::LABEL_POLICY_MANAGED_BY, keys::MANAGED_BY_UPSTREAM),
        name("old"),
        keys::SUFFIX_SIGNATURE_POLICY
    );
    Row {
        group: "networking.k8s.io",
        resource: "networkpolicies",
        made: format!(
            "({} && !has(variables.new.metadata.finalizers)) || ({} && {} && {})",
            ours("new"),
            of_its_api("new"),
            marked("new"),
            plain("new")
        ),
        changed: format!(
            "(({} || {theirs}) && {} || {} && {}) && {}",
            ours("old"),
            ours("new"),
            of_its_api("old"),
            of_its_api("new"),
            untouched(&["finalizers"])
        ),
        deleted: format!("{} || {theirs} || {}", ours("old"), of_its_api("old")),
        what: "writes no NetworkPolicy but those that cut off and open agents, under their names and with its label, and that of a ModelAPI",
    }
}

/// The same in the tier of administrators, under names of their own.
pub(super) fn cluster_network_policies() -> Row {
    let ours = |of: &str| {
        let name = format!("variables.{of}.metadata.?name.orValue('')");
        format!(
            "{} && {} && ({name}.startsWith('{}') || {name}.startsWith('{}'))",
            marked(of),
            labelled(of, keys::LABEL_POLICY_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE),
            keys::PREFIX_CLUSTER_DENY,
            keys::PREFIX_CLUSTER_QUARANTINE
        )
    };
    // Nothing of ours lets anything through that NetworkPolicies do not.
    let opens_nothing = ["ingress", "egress"]
        .map(|direction| format!("variables.new.spec.?{direction}.orValue([]).all(r, r.action != 'Accept')"))
        .join(" && ");
    Row {
        group: "policy.networking.k8s.io",
        resource: "clusternetworkpolicies",
        made: format!("{} && {opens_nothing} && {}", ours("new"), plain("new")),
        changed: format!("{} && {} && {opens_nothing} && {}", ours("old"), ours("new"), untouched(&["finalizers"])),
        deleted: ours("old"),
        what: "writes no ClusterNetworkPolicy but those that stand beside NetworkPolicies which cut off agents, and none that accepts anything",
    }
}
