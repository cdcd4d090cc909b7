//! Ways around the proxy that a Pod brings: redirection rules bind those only who can neither change them nor pass for the
//! proxy, and nothing is redirected where no proxy is.
//!
//! In: the Pod and its plan. Out: a warning for each such way. They are not refused: what needs such a right, a network tool or a
//! debugger, has no other way, and who may grant it is for Pod Security to say.

use serde_json::Value;

use super::context::Context;
use super::decide::{DecidedBy, Subject};
use super::effective::Effective;
use super::plan::InjectionPlan;
use super::pod::{PodView, items, text};
use crate::admission::verdict::Warning;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

const CHANGES_RULES: &str = "lets it take the redirection to the proxy down";
const BECOMES_PROXY: &str = "lets it become the proxy's user, whose traffic is not redirected";
/// How each of [`keys::CAPABILITIES_AROUND_PROXY`] leads around the redirection.
const CAPABILITIES: [&str; keys::CAPABILITIES_AROUND_PROXY.len()] = [
    CHANGES_RULES,
    CHANGES_RULES,
    BECOMES_PROXY,
    "lets it enter the namespaces of the sidecars and change what they see",
    "lets it load programs that send its traffic around the redirection",
    "lets it act through the proxy's process",
];
/// Switches of the Pod that bring its containers to the proxy's processes, and how.
const SHARED: [(&str, &str); 3] = [
    (
        "shareProcessNamespace",
        "shows every container the processes of the sidecars, and through them their files and credentials",
    ),
    ("hostPID", "shows every container the node's processes, those of the sidecars and their credentials among them"),
    ("hostIPC", "shares memory with the node's processes, where nothing is redirected or checked"),
];

/// What there is to say about a finished plan.
pub(super) fn warnings(cx: &Context<'_>, plan: &mut InjectionPlan<'_>) {
    let pod = cx.subject.pod;
    if plan.init.iter().any(|container| container.name == keys::CONTAINER_PROXY_INIT) {
        let uid = cx.effective.resolved.proxy.uid.value;
        for (list, index, container) in pod.all_containers() {
            rights(pod, (list, index, container), uid, &mut plan.warnings);
        }
    }
    if plan.all_containers().any(|container| container.listens_on.is_some()) {
        plan.warnings.extend(SHARED.into_iter().filter(|(field, _)| pod.spec(field) == Some(&Value::Bool(true))).map(
            |(field, lets)| {
                let text = format!("spec.{field} {lets}; leave it out unless the Pod cannot work without");
                Warning::new(Reason::ProxyBypassable, text)
            },
        ));
    }
    if cx.effective.credentials.is_none() {
        plan.warnings.extend(pod.all_containers().filter_map(|(_, _, container)| shares_data(container)));
    }
}

/// The rights of one container.
fn rights(pod: PodView<'_>, (list, index, container): (&str, usize, &Value), uid: i64, warnings: &mut Vec<Warning>) {
    let name = text(container, "name");
    let mut warn = |field: &str, right: &str, lets: &str| {
        warnings.push(Warning::new(
            Reason::ProxyBypassable,
            format!(
                "container {name}: {field} {right} {lets}, so its traffic need not be checked; leave it out unless the container \
                 cannot work without"
            ),
        ));
    };
    let context = container.get("securityContext").unwrap_or(&Value::Null);
    let own = |member: &str| format!("spec.{list}[{index}].securityContext.{member}");
    if context.get("privileged") == Some(&Value::Bool(true)) {
        return warn(&own("privileged"), "true", CHANGES_RULES);
    }
    let capabilities = context.get("capabilities").unwrap_or(&Value::Null);
    let added: Vec<&str> = items(capabilities, "add").iter().filter_map(Value::as_str).collect();
    for (known, lets) in keys::CAPABILITIES_AROUND_PROXY.into_iter().zip(CAPABILITIES) {
        if let Some(seen) = added.iter().find(|seen| is_capability(seen, known)) {
            warn(&own("capabilities.add"), seen, lets);
        }
    }
    let keeps_setuid = !items(capabilities, "drop")
        .iter()
        .filter_map(Value::as_str)
        .any(|seen| is_capability(seen, "ALL") || is_capability(seen, "SETUID"));
    let user = context.get("runAsUser").and_then(Value::as_i64);
    let of_pod = pod.security_context("runAsUser").and_then(Value::as_i64);
    if user.or(of_pod) == Some(0) && keeps_setuid {
        let field = if user.is_some() { own("runAsUser") } else { "spec.securityContext.runAsUser".to_owned() };
        let lets = format!(
            "with the default capabilities, SETUID among them, lets it become user {uid}, the proxy's, whose traffic is not redirected"
        );
        warn(&field, "0", &lets);
    }
}

/// A capability as it is written, with and without its prefix, in any case.
fn is_capability(seen: &str, known: &str) -> bool {
    let bare = seen.get(..4).filter(|prefix| prefix.eq_ignore_ascii_case("CAP_")).map_or(seen, |_| &seen[4..]);
    bare.eq_ignore_ascii_case(known)
}

/// A container that mounts what the sidecars share.
fn shares_data(container: &Value) -> Option<Warning> {
    let mounts = |mount: &Value| text(mount, "name") == keys::VOLUME_SHARED;
    items(container, "volumeMounts").iter().any(mounts).then(|| {
        Warning::new(
            Reason::SharedDataMounted,
            format!(
                "container {} mounts {}, where the sidecars keep the client's id and secret, so it can read them and put others in \
                 their place; remove the mount unless the container needs them",
                text(container, "name"),
                keys::VOLUME_SHARED
            ),
        )
    })
}

/// The proxy is left out by a label, and with it everything.
pub(super) fn left_out(effective: &Effective<'_>) -> Option<Warning> {
    let envoy = effective.sidecars.envoy;
    (!envoy.inject && envoy.by == DecidedBy::WorkloadLabel).then(|| {
        Warning::new(
            Reason::NotIntercepted,
            format!(
                "label {}: false leaves the proxy out, so traffic of this Pod is not intercepted, and nothing else is left to add; take \
                 the label off, or say {}: {} if that is meant",
                keys::LABEL_ENVOY_PROXY,
                keys::LABEL_INJECT,
                keys::INJECT_DISABLED
            ),
        )
    })
}

/// Mode waypoint where neither the Pod nor its namespace is sent through a waypoint.
pub(super) fn unseen_waypoint(subject: &Subject<'_>, mode: Mode) -> Option<Warning> {
    let is_named = |value: Option<&str>| value.is_some_and(|name| !matches!(name, "" | "none"));
    let own = subject.pod.label(keys::LABEL_USE_WAYPOINT);
    let of_namespace = subject.view().waypoint.as_deref();
    (mode == Mode::Waypoint && !is_named(own.or(of_namespace))).then(|| {
        Warning::new(
            Reason::NotIntercepted,
            format!(
                "mode waypoint adds nothing to the Pod, and neither the Pod nor namespace {} names a waypoint in label {}, so \
                 nothing is seen that would intercept its traffic; set the label, or choose another mode",
                subject.namespace,
                keys::LABEL_USE_WAYPOINT
            ),
        )
    })
}
