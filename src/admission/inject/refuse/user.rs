//! Containers that run as the proxy's user, whose traffic the redirection rules exempt.

use serde_json::Value;

use crate::admission::inject::context::Context;
use crate::admission::inject::plan::InjectionPlan;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// Matters only where redirection rules are installed.
pub(super) fn proxy_user(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    if !plan.init.iter().any(|container| container.name == keys::CONTAINER_PROXY_INIT) {
        return None;
    }
    let uid = cx.effective.resolved.proxy.uid.value;
    let of_pod = cx.subject.pod.security_context("runAsUser").and_then(Value::as_i64);
    cx.subject.pod.all_containers().find_map(|(list, index, container)| {
        let own = container.get("securityContext").and_then(|context| context.get("runAsUser")).and_then(Value::as_i64);
        if own.or(of_pod) != Some(uid) {
            return None;
        }
        let field = match own {
            Some(_) => format!("spec.{list}[{index}].securityContext.runAsUser"),
            None => "spec.securityContext.runAsUser".to_owned(),
        };
        let denial = Denial::new(
            Reason::ProxyUidInUse,
            422,
            format!("the container would run as user {uid}, the proxy's own, and its traffic would bypass the proxy"),
            "run the application as another user",
        );
        Some(denial.at(field, uid.to_string()))
    })
}
