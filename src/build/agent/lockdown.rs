//! What relaxes an agent's lock-down (`spec/agent-and-agentbuild.md` 4.5): a warning, or a refusal with `enforce`.

use serde_json::Value;

use super::{list, pod};
use crate::build::fault::{Fault, Findings, Note};
use crate::build::settings::Lockdown;
use crate::domain::reason::Reason;

/// The capability that may be added.
const ALLOWED_CAPABILITY: &str = "NET_BIND_SERVICE";

/// One field that relaxes the lock-down: where it is looked for, and with which values.
struct Rule {
    /// Pointer below the Pod or a container.
    pointer: &'static str,
    relaxes: fn(&Value) -> bool,
    what: &'static str,
}

const fn rule(pointer: &'static str, relaxes: fn(&Value) -> bool, what: &'static str) -> Rule {
    Rule { pointer, relaxes, what }
}

fn is_true(value: &Value) -> bool {
    value == true
}

fn is_false(value: &Value) -> bool {
    value == false
}

fn is_root(value: &Value) -> bool {
    value.as_i64() == Some(0)
}

fn is_unconfined(value: &Value) -> bool {
    value == "Unconfined"
}

const POD: [Rule; 7] = [
    rule("/hostNetwork", is_true, "shares the node's network"),
    rule("/hostPID", is_true, "sees the node's processes"),
    rule("/hostIPC", is_true, "shares the node's memory"),
    rule("/securityContext/runAsNonRoot", is_false, "lets containers run as root"),
    rule("/securityContext/runAsUser", is_root, "lets containers run as root"),
    rule("/securityContext/seccompProfile/type", is_unconfined, "allows every system call"),
    rule("/securityContext/windowsOptions/hostProcess", is_true, "runs as a process of the node"),
];

const CONTAINER: [Rule; 8] = [
    rule("/securityContext/privileged", is_true, "has all rights on the node"),
    rule("/securityContext/allowPrivilegeEscalation", is_true, "may gain rights"),
    rule("/securityContext/readOnlyRootFilesystem", is_false, "may change its own image"),
    rule("/securityContext/runAsNonRoot", is_false, "may run as root"),
    rule("/securityContext/runAsUser", is_root, "runs as root"),
    rule("/securityContext/seccompProfile/type", is_unconfined, "allows every system call"),
    rule("/securityContext/windowsOptions/hostProcess", is_true, "runs as a process of the node"),
    rule(
        "/securityContext/procMount",
        |value| value.as_str().is_some_and(|kind| !kind.is_empty() && kind != "Default"),
        "sees parts of the node's kernel",
    ),
];

/// Where the lock-down is relaxed, with the field's path and value.
fn relaxations(object: &Value) -> Vec<(String, &'static str, Value)> {
    const AT: &str = "spec.podTemplateSpec.spec";
    let pod = pod(object);
    let mut found = Vec::new();
    let mut apply = |of: &Value, at: &str, rules: &[Rule]| {
        for rule in rules {
            if let Some(value) = of.pointer(rule.pointer).filter(|value| (rule.relaxes)(value)) {
                found.push((format!("{at}{}", rule.pointer.replace('/', ".")), rule.what, value.clone()));
            }
        }
    };
    apply(pod, AT, &POD);
    let kinds = ["containers", "initContainers"];
    let all = kinds.iter().flat_map(|kind| {
        let items = list(pod, &format!("/{kind}"));
        items.iter().enumerate().map(move |(index, container)| (format!("{AT}.{kind}[{index}]"), container))
    });
    let all: Vec<_> = all.collect();
    for (at, container) in &all {
        apply(container, at, &CONTAINER);
    }
    for (at, container) in &all {
        for (index, capability) in list(container, "/securityContext/capabilities/add").iter().enumerate() {
            if capability != ALLOWED_CAPABILITY {
                let path = format!("{at}.securityContext.capabilities.add[{index}]");
                found.push((path, "adds a capability", capability.clone()));
            }
        }
        for (index, port) in list(container, "/ports").iter().enumerate() {
            if let Some(port) = port.get("hostPort").filter(|port| port.as_i64().is_some_and(|port| port != 0)) {
                found.push((format!("{at}.ports[{index}].hostPort"), "takes a port of the node", port.clone()));
            }
        }
    }
    for (index, volume) in list(pod, "/volumes").iter().enumerate() {
        if let Some(path) = volume.get("hostPath").filter(|path| !path.is_null()) {
            let seen = path.get("path").cloned().unwrap_or_default();
            found.push((format!("{AT}.volumes[{index}].hostPath"), "mounts files of the node", seen));
        }
    }
    found
}

pub(super) fn check(object: &Value, lockdown: Lockdown, findings: &mut Findings) {
    for (path, what, seen) in relaxations(object) {
        let seen = seen.as_str().map_or_else(|| seen.to_string(), str::to_owned);
        match lockdown {
            Lockdown::Enforce => {
                let sentence = format!("{what}, which this platform's lock-down does not allow");
                findings.fault(Fault::new(Reason::LockdownViolated, path, sentence, "remove the field").seeing(&seen));
            }
            Lockdown::Default => {
                let text = format!("{what} (seen: {seen}); leave the field out to keep the lock-down");
                findings.note(Note::new(Reason::LockdownRelaxed, path, text));
            }
        }
    }
}
