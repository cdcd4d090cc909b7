//! Mode proxy-sidecar (`spec/authbridge-webhook.md` 5.9).

use crate::admission::inject::containers::{authbridge_proxy, registration, spiffe_helper};
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::inject::{agent_env, ports, runtime_config};
use crate::admission::verdict::{Denial, Warning};
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// Fills the plan.
pub(super) fn build<'a>(cx: &Context<'a>, plan: &mut InjectionPlan<'a>) -> Result<(), Box<Denial>> {
    let pod = cx.subject.pod;
    let mut layout = ports::takeover(pod)?;
    if !layout.declared {
        plan.warnings.push(Warning::new(
            Reason::NoDeclaredPort,
            format!(
                "no container declares a port, so the proxy receives on {} and nobody behind it does; declare the \
                 agent's port under spec.containers[].ports",
                layout.reverse
            ),
        ));
    }
    plan.runtime_config = Some(runtime_config::text(cx, Mode::ProxySidecar, Some(&layout))?);
    plan.containers.push(authbridge_proxy::container(cx, std::mem::take(&mut layout.ports))?);
    plan.edits.append(&mut layout.edits);
    agent_env::proxy(pod, layout.forward, plan);
    if cx.effective.spire() {
        plan.containers.push(spiffe_helper::container(cx)?);
    }
    if cx.effective.sidecars.registration.inject {
        plan.containers.push(registration::container(cx)?);
    }
    Ok(())
}
