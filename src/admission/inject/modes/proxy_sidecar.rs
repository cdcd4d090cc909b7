//! Mode proxy-sidecar.

use crate::admission::inject::containers::{authbridge_proxy, registration, spiffe_helper};
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::inject::pod::{PodView, list, text};
use crate::admission::inject::ports::Takeover;
use crate::admission::inject::{agent_env, native, ports, runtime_config};
use crate::admission::verdict::{Denial, Warning};
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// Fills the plan.
pub(super) fn build<'a>(cx: &Context<'a>, plan: &mut InjectionPlan<'a>) -> Result<(), Box<Denial>> {
    let pod = cx.subject.pod;
    let mut layout = ports::takeover(pod)?;
    notice(pod, &layout, plan);
    plan.portless = !layout.declared;
    plan.runtime_config = Some(runtime_config::text(cx, Mode::ProxySidecar, Some(&layout), &[])?);
    let proxy = authbridge_proxy::container(cx, std::mem::take(&mut layout.ports))?;
    let comes_first = cx.effective.native && native::comes_first(pod, &proxy);
    plan.containers.push(proxy);
    plan.edits.append(&mut layout.edits);
    agent_env::proxy(pod, layout.forward, comes_first, plan);
    if cx.effective.spire() {
        plan.containers.push(spiffe_helper::container(cx)?);
    }
    if cx.effective.sidecars.registration.inject {
        plan.containers.push(registration::container(cx)?);
    }
    Ok(())
}

/// The lowest port that everybody may listen on, where nobody says otherwise.
const FIRST_UNPRIVILEGED: u16 = 1024;
/// What says otherwise.
const UNPRIVILEGED_START: &str = "net.ipv4.ip_unprivileged_port_start";

/// Warnings about the layout.
fn notice(pod: PodView<'_>, layout: &Takeover, plan: &mut InjectionPlan<'_>) {
    let port = layout.reverse;
    if !layout.declared {
        let instead = ports::unusable(pod).map_or_else(String::new, |(field, seen)| format!(" ({field} is {seen})"));
        plan.warnings.push(Warning::new(
            Reason::NoDeclaredPort,
            format!(
                "no container declares a TCP port{instead}, so the proxy receives on {port} and nobody behind it does; \
                 declare the agent's port under spec.containers[].ports"
            ),
        ));
    } else if port < unprivileged_from(pod) {
        plan.warnings.push(Warning::new(
            Reason::PrivilegedPort,
            format!(
                "the proxy takes over port {port} and is not root, so it listens there only where the container runtime opens \
                 ports below {FIRST_UNPRIVILEGED} to everybody; declare a higher port, or set sysctl {UNPRIVILEGED_START} to \
                 \"{port}\" under spec.securityContext.sysctls"
            ),
        ));
    }
}

/// The lowest port that everybody in the Pod may listen on, as far as the Pod says.
fn unprivileged_from(pod: PodView<'_>) -> u16 {
    let sysctls = pod.security_context("sysctls").map_or(&[][..], list);
    let start = sysctls.iter().find(|sysctl| text(sysctl, "name") == UNPRIVILEGED_START);
    start.and_then(|sysctl| text(sysctl, "value").parse().ok()).unwrap_or(FIRST_UNPRIVILEGED)
}
