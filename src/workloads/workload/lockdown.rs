//! What the lock-down sets where the user set nothing: field by field, in every
//! container and init container. Nothing is set that the API server would refuse beside what the user did set.

use serde_json::{Map, Value, json};

use super::set_if_open;
use crate::workloads::request::LockdownProfile;

/// User and group of Pods that name none.
const USER: i64 = 1000;

/// Closes what is open.
pub(super) fn close(pod: &mut Map<String, Value>, profile: LockdownProfile, openshift: bool) {
    if pod.get("os").and_then(|os| os.get("name")).and_then(Value::as_str) == Some("windows") {
        // None of these fields may stand in a Windows Pod.
        return;
    }
    let restricted = profile == LockdownProfile::Restricted;
    if let Some(context) = context_mut(pod) {
        if restricted {
            set_if_open(context, "runAsNonRoot", json!(true));
        }
        set_if_open(context, "seccompProfile", json!({"type": "RuntimeDefault"}));
        if !openshift {
            if restricted {
                set_if_open(context, "runAsUser", json!(USER));
            }
            set_if_open(context, "fsGroup", json!(USER));
        }
    }
    for kind in ["containers", "initContainers"] {
        let containers = pod.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            if let Some(context) = context_mut(container) {
                container_context(context, restricted);
            }
        }
    }
}

/// The security context, made when it is absent; `None` when it is no object, which the API server refuses.
fn context_mut(of: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    set_if_open(of, "securityContext", json!({}));
    of.get_mut("securityContext")?.as_object_mut()
}

fn container_context(context: &mut Map<String, Value>, restricted: bool) {
    set_if_open(context, "privileged", json!(false));
    if !needs_escalation(context) {
        set_if_open(context, "allowPrivilegeEscalation", json!(false));
    }
    if restricted {
        set_if_open(context, "readOnlyRootFilesystem", json!(true));
    }
    set_if_open(context, "capabilities", json!({}));
    if let Some(capabilities) = context.get_mut("capabilities").and_then(Value::as_object_mut) {
        set_if_open(capabilities, "drop", json!(["ALL"]));
    }
}

/// What the API server does not accept together with `allowPrivilegeEscalation: false`.
fn needs_escalation(context: &Map<String, Value>) -> bool {
    let added = context.get("capabilities").and_then(|all| all.get("add")).and_then(Value::as_array);
    context.get("privileged") == Some(&Value::Bool(true))
        || added.into_iter().flatten().any(|one| one == "SYS_ADMIN" || one == "CAP_SYS_ADMIN")
}
