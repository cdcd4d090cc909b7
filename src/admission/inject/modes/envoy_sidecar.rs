//! Mode envoy-sidecar with separate containers.

use crate::admission::inject::containers::{envoy, proxy_init, registration, spiffe_helper};
use crate::admission::inject::context::Context;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::inject::{open_paths, runtime_config};
use crate::admission::verdict::{Denial, Warning};
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// Fills the plan.
pub(super) fn build<'a>(cx: &Context<'a>, plan: &mut InjectionPlan<'a>) -> Result<(), Box<Denial>> {
    let sidecars = &cx.effective.sidecars;
    if sidecars.proxy_init.inject {
        plan.init.push(proxy_init::container(cx, &mut plan.warnings)?);
    }
    if sidecars.envoy.inject {
        plan.containers.push(envoy::container(cx)?);
        if sidecars.proxy_init.inject {
            open_paths::fill(cx, plan, true);
        }
        plan.runtime_config = Some(runtime_config::text(cx, Mode::EnvoySidecar, None, &plan.open)?);
    }
    if sidecars.spiffe.inject {
        plan.containers.push(spiffe_helper::container(cx)?);
    }
    if sidecars.registration.inject {
        plan.containers.push(registration::container(cx)?);
    }
    if !sidecars.envoy.inject && !plan.is_empty() {
        plan.warnings.push(Warning::new(
            Reason::NotIntercepted,
            format!(
                "envoy-proxy is switched off by {}, so traffic of this Pod is not intercepted; label {}: {} leaves out \
                 the rest, too",
                sidecars.envoy.by.as_str(),
                keys::LABEL_INJECT,
                keys::INJECT_DISABLED
            ),
        ));
    }
    Ok(())
}
