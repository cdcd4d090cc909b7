//! Pods that share the node's network or do not run on Linux.

use serde_json::Value;

use crate::admission::inject::decide::Subject;
use crate::admission::inject::pod::{items, text};
use crate::admission::verdict::Denial;
use crate::domain::reason::Reason;

/// Redirection rules would change the node, and the proxy would take the node's ports.
pub(super) fn host_network(subject: &Subject<'_>) -> Option<Denial> {
    (subject.pod.spec("hostNetwork") == Some(&Value::Bool(true))).then(|| {
        Denial::new(
            Reason::HostNetwork,
            422,
            "the Pod uses the node's network, where the sidecars would change the node's own traffic",
            "remove hostNetwork, or opt the Pod out with label kagenti.io/inject: disabled",
        )
        .at("spec.hostNetwork", "true")
    })
}

/// The sidecars exist for Linux only.
pub(super) fn windows(subject: &Subject<'_>) -> Option<Denial> {
    let os = subject.pod.spec("os").map_or("", |os| text(os, "name"));
    let selected = |label| subject.pod.spec("nodeSelector").map_or("", |labels| text(labels, label));
    let affinity = windows_affinity(subject);
    let (field, seen) = [
        ("spec.os.name", os),
        ("spec.nodeSelector[kubernetes.io/os]", selected("kubernetes.io/os")),
        ("spec.nodeSelector[beta.kubernetes.io/os]", selected("beta.kubernetes.io/os")),
    ]
    .into_iter()
    .find(|(_, value)| *value == "windows")
    .or(affinity)?;
    let denial = Denial::new(
        Reason::WindowsPod,
        422,
        "the Pod is for Windows nodes and the sidecars exist for Linux only",
        "opt the Pod out with label kagenti.io/inject: disabled",
    );
    Some(denial.at(field, seen))
}

/// Where node affinity stands that a Pod cannot do without.
const AFFINITY: [&str; 3] = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
/// Labels that tell a node's system.
const SYSTEM_LABELS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

/// Node affinity that only Windows nodes meet. One of the terms has to be met, and of a term every expression; a term without any
/// is met by no node.
fn windows_affinity(subject: &Subject<'_>) -> Option<(&'static str, &'static str)> {
    let [first, rest @ ..] = AFFINITY;
    let required = rest.iter().try_fold(subject.pod.spec(first)?, |value, key| value.get(*key))?;
    let is_some = |term: &&Value| !items(term, "matchExpressions").is_empty() || !items(term, "matchFields").is_empty();
    let mut terms = items(required, "nodeSelectorTerms").iter().filter(is_some).peekable();
    terms.peek()?;
    let asks = |term: &Value| items(term, "matchExpressions").iter().any(asks_for_windows);
    terms.all(asks).then_some((
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        "windows",
    ))
}

/// An expression that no Linux node meets.
fn asks_for_windows(expression: &Value) -> bool {
    let values: Vec<&str> = items(expression, "values").iter().filter_map(Value::as_str).collect();
    SYSTEM_LABELS.contains(&text(expression, "key"))
        && match text(expression, "operator") {
            "In" => !values.is_empty() && values.iter().all(|value| *value == "windows"),
            "NotIn" => values.contains(&"linux"),
            _ => false,
        }
}
