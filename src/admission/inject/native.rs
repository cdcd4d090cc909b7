//! Native sidecars: init containers with `restartPolicy: Always` (design, native sidecars).
//!
//! In: a plan of regular containers. Out: the same containers behind `proxy-init`, ahead of the user's init
//! containers. Only the proxy is waited for, and by a socket: `/readyz` waits for credentials that a later container
//! writes.

use serde_json::json;

use super::plan::InjectionPlan;

/// Makes every sidecar of the plan a native one.
pub(super) fn arrange(plan: &mut InjectionPlan<'_>) {
    plan.init_first = true;
    for mut container in std::mem::take(&mut plan.containers) {
        container.restart_policy = Some("Always");
        container.startup_probe = container
            .listens_on
            .map(|port| json!({"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 60}));
        plan.init.push(container);
    }
}
