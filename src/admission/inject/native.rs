//! Native sidecars: init containers with `restartPolicy: Always`.
//!
//! In: a plan of regular containers. Out: the same containers behind `proxy-init`, ahead of the user's init
//! containers. Only the proxy is waited for, and by a socket: `/readyz` waits for credentials that a later container
//! writes.
//!
//! The kubelet (1.36) opens host ports for regular containers only. So a proxy that took over the agent's stays a regular one,
//! unless the Pod is to end by itself: then it would never.

use serde_json::{Value, json};

use super::plan::{Container, InjectionPlan};
use super::pod::PodView;

/// Makes every sidecar of the plan a native one.
pub(super) fn arrange(pod: PodView<'_>, plan: &mut InjectionPlan<'_>) {
    plan.init_first = true;
    for mut container in std::mem::take(&mut plan.containers) {
        if !comes_first(pod, &container) {
            plan.containers.push(container);
            continue;
        }
        container.restart_policy = Some("Always");
        container.startup_probe = container
            .listens_on
            .map(|port| json!({"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 60}));
        plan.init.push(container);
    }
}

/// Whether that container of ours starts ahead of the user's init containers, where native sidecars are in force.
pub(super) fn comes_first(pod: PodView<'_>, container: &Container<'_>) -> bool {
    let ends = matches!(pod.spec("restartPolicy").and_then(Value::as_str), Some("Never" | "OnFailure"));
    ends || !has_host_port(container)
}

fn has_host_port(container: &Container<'_>) -> bool {
    container.ports.iter().any(|port| port.host_port.is_some())
}
