//! Containers of the user's that can go around the proxy (spec 11, B30): redirection rules bind those only who may not change them.
//!
//! In: the Pod and its plan. Out: a warning for each such container. They are not refused: what needs that right, such as
//! a network tool, has no other way, and who may grant it is for Pod Security to say.

use serde_json::Value;

use super::context::Context;
use super::plan::InjectionPlan;
use super::pod::{items, text};
use crate::admission::verdict::Warning;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// What lets a container change the network rules of its Pod, as it is written with and without its prefix.
const CAPABILITIES: [&str; 4] = ["NET_ADMIN", "CAP_NET_ADMIN", "ALL", "CAP_ALL"];

/// Matters only where redirection rules are installed.
pub(super) fn warnings(cx: &Context<'_>, plan: &mut InjectionPlan<'_>) {
    if !plan.init.iter().any(|container| container.name == keys::CONTAINER_PROXY_INIT) {
        return;
    }
    for (list, index, container) in cx.subject.pod.all_containers() {
        if let Some((field, right)) = container.get("securityContext").and_then(right) {
            plan.warnings.push(Warning::new(
                Reason::ProxyBypassable,
                format!(
                    "container {}: spec.{list}[{index}].securityContext.{field} {right} lets it take the redirection to the proxy down, \
                     so its traffic need not be checked; leave it out unless the container cannot work without",
                    text(container, "name"),
                ),
            ));
        }
    }
}

/// The field that gives the right, and its value.
fn right(context: &Value) -> Option<(&'static str, &str)> {
    if context.get("privileged") == Some(&Value::Bool(true)) {
        return Some(("privileged", "true"));
    }
    let added = items(context.get("capabilities")?, "add").iter().filter_map(Value::as_str);
    let mut giving = added.filter(|name| CAPABILITIES.iter().any(|known| known.eq_ignore_ascii_case(name)));
    giving.next().map(|name| ("capabilities.add", name))
}
