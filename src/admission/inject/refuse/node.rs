//! Pods that share the node's network or do not run on Linux.

use serde_json::Value;

use crate::admission::inject::decide::Subject;
use crate::admission::inject::pod::text;
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
    let (field, seen) = [
        ("spec.os.name", os),
        ("spec.nodeSelector[kubernetes.io/os]", selected("kubernetes.io/os")),
        ("spec.nodeSelector[beta.kubernetes.io/os]", selected("beta.kubernetes.io/os")),
    ]
    .into_iter()
    .find(|(_, value)| *value == "windows")?;
    let denial = Denial::new(
        Reason::WindowsPod,
        422,
        "the Pod is for Windows nodes and the sidecars exist for Linux only",
        "opt the Pod out with label kagenti.io/inject: disabled",
    );
    Some(denial.at(field, seen))
}
