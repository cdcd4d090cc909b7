//! What another failure mode left behind: `kubectl apply` of other manifests removes nothing.
//!
//! In: the objects that `render` prints for either mode, and what an earlier version wrote. Out: the one command that removes those of mode gate
//! which mode fail does not have.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Seen, Visit, text};
use crate::cli::render::kinds::Kinds;
use crate::cli::render::{self, FailureMode, Install};
use crate::cli::uninstall;
use crate::domain::keys;

/// What puts the gate on Pods: without either, nothing does.
const GATING: [&str; 2] = ["mutatingadmissionpolicy/", "mutatingadmissionpolicybinding/"];

/// What `kubectl delete` needs to know of an object, and its path.
#[derive(Debug, PartialEq)]
struct Leftover {
    path: String,
    /// Such as `mutatingadmissionpolicy/drawbridge-gate`.
    argument: String,
}

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let name = "objects of failure mode gate";
    if visit.mode == FailureMode::Gate {
        visit.ok(name, "belong to the failure mode that is installed");
        return Ok(());
    }
    let checks = visit.checks.len();
    let mut there = Vec::new();
    for leftover in of_gate_only(&visit.operator) {
        if let Seen::Is(_) = visit.read(name, &leftover.path).await? {
            there.push(leftover.argument);
        }
    }
    if !there.is_empty() {
        let remedy = format!("kubectl -n {} delete {}", visit.operator, there.join(" "));
        visit.finding(name, still_there(visit.kinds, &there), remedy);
    } else if visit.checks.len() == checks {
        visit.ok(name, "none is left");
    }
    Ok(())
}

/// Why they should not be there.
fn still_there(kinds: Kinds, there: &[String]) -> &'static str {
    let is_there = |gating: &&str| there.iter().any(|argument| argument.starts_with(*gating));
    if !GATING.iter().all(is_there) {
        "some are still there; they put the gate on no Pod, since its policy or the binding of that is gone"
    } else if kinds.injects() {
        "the webhook refuses, and they are still there: Pods are gated, and nobody frees them"
    } else {
        "this installation injects nothing, and they are still there: Pods are gated, other operators' agents as well, and nobody frees them"
    }
}

/// Objects that only mode gate has; bindings ahead of what they bind.
fn of_gate_only(operator: &str) -> Vec<Leftover> {
    let objects = |failure_mode| {
        let install = Install::new(failure_mode, operator, "");
        render::parts(&install).into_iter().flat_map(|part| part.objects).collect::<Vec<Value>>()
    };
    let fail: BTreeSet<_> = objects(FailureMode::Fail).iter().filter_map(uninstall::path).collect();
    let mut only: Vec<Leftover> = objects(FailureMode::Gate)
        .iter()
        .filter_map(|object| {
            let path = uninstall::path(object).filter(|path| !fail.contains(path))?;
            let argument = format!("{}/{}", text(object, "/kind").to_lowercase(), text(object, "/metadata/name"));
            Some(Leftover { path, argument })
        })
        .collect();
    only.sort_by_key(|leftover| !leftover.argument.contains("binding/"));
    // In which an earlier version kept what the ServiceAccount of that name says today.
    let earlier = format!("/api/v1/namespaces/{operator}/configmaps/{}", keys::GATE);
    only.push(Leftover { path: earlier, argument: format!("configmap/{}", keys::GATE) });
    only
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_leftovers_speaks_of_no_webhook_that_is_not_there() {
        let there: Vec<String> = of_gate_only("own").into_iter().map(|leftover| leftover.argument).collect();
        for kinds in [Kinds::All, Kinds::Kaos, Kinds::Beeai] {
            let said = still_there(kinds, &there);
            assert_eq!(
                (said.contains("webhook"), said.contains("nobody frees them")),
                (kinds.injects(), true),
                "{said}"
            );
        }
    }

    /// A ServiceAccount, or a policy that refuses to take the gate off, gates nobody.
    #[test]
    fn what_puts_the_gate_on_no_pod_is_not_said_to() {
        let all = || of_gate_only("own").into_iter().map(|leftover| leftover.argument);
        for gone in GATING {
            let there: Vec<String> = all().filter(|argument| !argument.starts_with(gone)).collect();
            assert!(!there.is_empty(), "{gone}");
            for kinds in [Kinds::All, Kinds::Kaos, Kinds::Beeai] {
                let said = still_there(kinds, &there);
                assert!(said.contains("still there") && !said.contains("nobody frees them"), "{gone}: {said}");
            }
        }
    }

    #[test]
    fn what_gates_is_left_over_and_nothing_that_both_modes_have() {
        let only: Vec<String> = of_gate_only("own").into_iter().map(|leftover| leftover.argument).collect();
        for argument in [
            "mutatingadmissionpolicybinding/drawbridge-gate",
            "mutatingadmissionpolicy/drawbridge-gate",
            "validatingadmissionpolicy/drawbridge-gate-removal",
            "validatingadmissionpolicybinding/drawbridge-gate-removal",
            "serviceaccount/drawbridge-gate",
            "configmap/drawbridge-gate",
        ] {
            assert!(only.iter().any(|known| known == argument), "{argument} in {only:?}");
        }
        assert!(only[0].contains("binding/") && !only[only.len() - 1].contains("binding/"), "{only:?}");
        assert!(
            only.iter().all(|argument| !argument.starts_with("deployment/") && !argument.contains("runtime-config"))
        );
    }
}
