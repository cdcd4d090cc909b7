//! Pod Security levels that would reject what we add (Kubernetes' Pod Security Standards).
//!
//! Only our own parts are judged: what the user's Pod breaks by itself, the API server says. Every volume type we use
//! (configMap, csi, downwardAPI, emptyDir, projected) and fsGroup pass every level.

use crate::admission::inject::context::Context;
use crate::admission::inject::plan::{Container, InjectionPlan};
use crate::admission::verdict::Denial;
use crate::config::view::PodSecurity;
use crate::domain::reason::Reason;

/// Capabilities that `baseline` lets a container add.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// One rule: the level it belongs to, what it says, and whether a container breaks it.
struct Rule {
    level: PodSecurity,
    says: &'static str,
    broken: fn(&Container<'_>) -> bool,
}

const RULES: &[Rule] = &[
    Rule {
        level: PodSecurity::Baseline,
        says: "adds capabilities beyond the default set",
        broken: |c| c.security_context.capabilities.add.iter().any(|name| !BASELINE_CAPABILITIES.contains(name)),
    },
    Rule {
        level: PodSecurity::Baseline,
        says: "is privileged",
        broken: |c| c.security_context.privileged == Some(true),
    },
    Rule {
        level: PodSecurity::Restricted,
        says: "runs as root",
        broken: |c| !c.security_context.run_as_non_root || c.security_context.run_as_user == Some(0),
    },
    Rule {
        level: PodSecurity::Restricted,
        says: "may gain privileges",
        broken: |c| c.security_context.allow_privilege_escalation != Some(false),
    },
    Rule {
        level: PodSecurity::Restricted,
        says: "adds capabilities",
        broken: |c| c.security_context.capabilities.add.iter().any(|name| *name != "NET_BIND_SERVICE"),
    },
];

/// The first container of ours that the namespace would reject.
pub(super) fn level(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Option<Denial> {
    let enforced = cx.subject.view().pod_security;
    let (container, rule) = plan.all_containers().find_map(|container| {
        RULES.iter().find(|rule| rule.level <= enforced && (rule.broken)(container)).map(|rule| (container, rule))
    })?;
    let level = match enforced {
        PodSecurity::Privileged => "privileged",
        PodSecurity::Baseline => "baseline",
        PodSecurity::Restricted => "restricted",
    };
    let denial = Denial::new(
        Reason::PodSecurityForbids,
        403,
        format!("namespace {} enforces {level}, and sidecar {} {}", cx.subject.namespace, container.name, rule.says),
        "use mode proxy-sidecar (annotation kagenti.io/authbridge-mode), which passes restricted, or label the \
         namespace pod-security.kubernetes.io/enforce: privileged",
    );
    Some(denial.at("namespace label pod-security.kubernetes.io/enforce", level))
}
