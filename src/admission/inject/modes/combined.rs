//! Mode envoy-sidecar in one container (gate `combinedSidecar`).

use crate::admission::inject::containers::{combined, proxy_init};
use crate::admission::inject::context::Context;
use crate::admission::inject::open_paths;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::verdict::{Denial, Warning};
use crate::domain::reason::Reason;

/// Fills the plan: nothing without the envoy decision, since the one container is what all of it runs in.
pub(super) fn build<'a>(cx: &Context<'a>, plan: &mut InjectionPlan<'a>) -> Result<(), Box<Denial>> {
    let envoy = cx.effective.sidecars.envoy;
    if envoy.inject {
        plan.init.push(proxy_init::container(cx, &mut plan.warnings)?);
        plan.containers.push(combined::container(cx)?);
        open_paths::fill(cx, plan, false);
    } else {
        plan.warnings.push(Warning::new(
            Reason::CombinedIncomplete,
            format!(
                "gate combinedSidecar is on and envoy-proxy is switched off by {}, so nothing is injected",
                envoy.by.as_str()
            ),
        ));
    }
    Ok(())
}
