//! What another operator of the same kinds left behind, or still runs: the Go operator keeps its own names for what we have under ours.
//!
//! In: the webhook configurations and the label policy of the cluster, and which kinds are served here. Out: one finding each, with the command that
//! removes it. While its webhooks stand without it, they refuse agents' Pods and every change of an AgentRuntime; while it runs, two operators write the
//! same fields. Where these kinds are left to it (`--kinds`), nothing of it is in the way.

use serde_json::Value;

use super::{Seen, Visit, text};
use crate::api::agent_kagenti_dev;
use crate::cli::render::kinds::Kinds;
use crate::cli::render::{FailureMode, Install, webhooks};
use crate::domain::keys;
use crate::store::{Kind, KindOrigin};

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";
/// The policy by which later Go operators keep everybody but themselves from setting label `kagenti.io/type`.
const LABEL_POLICY: &str = "agent-label-protection";

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    let name = "another operator";
    let checks = visit.checks.len();
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let mut notes = Vec::new();
        let found = visit.cluster.list(&format!("{ROOT}/{kind}s"), &mut notes).await?;
        if !notes.is_empty() {
            visit.unknown(name, notes.join("; "), "run doctor as somebody who may list webhook configurations");
        }
        for configuration in &found {
            let entries = ours_by_other_names(configuration, visit.kinds);
            if !entries.is_empty() {
                let called = text(configuration, "/metadata/name");
                let seen = format!(
                    "{kind} {called} has {}: its webhooks judge objects that Drawbridge serves here, and may refuse them while nobody \
                        answers",
                    entries.join(", ")
                );
                visit.finding(
                    name,
                    seen,
                    format!("stop the operator it belongs to, then: kubectl delete {kind} {called}"),
                );
            }
        }
    }
    let binding = format!("{ROOT}/validatingadmissionpolicybindings/{LABEL_POLICY}");
    if visit.kinds.serves(agent_kagenti_dev::GROUP)
        && let Seen::Is(_) = visit.read(name, &binding).await?
    {
        let seen = format!(
            "policy {LABEL_POLICY} lets only the Go operator set label {}: enrolment is refused, and so is the label in a manifest",
            keys::LABEL_TYPE
        );
        let remedy = format!(
            "kubectl delete validatingadmissionpolicybinding/{LABEL_POLICY} validatingadmissionpolicy/{LABEL_POLICY}"
        );
        visit.finding(name, seen, remedy);
    }
    if visit.checks.len() == checks {
        visit.ok(name, "none has webhooks for the same objects");
    }
    Ok(())
}

/// The entries of a configuration of another name that are for what ours are for where those kinds are served: by their path, or by the kinds they
/// judge.
fn ours_by_other_names(configuration: &Value, served: Kinds) -> Vec<&str> {
    if text(configuration, "/metadata/name") == keys::WEBHOOK_CONFIGURATION {
        return Vec::new();
    }
    let install = Install { kinds: served, ..Install::new(FailureMode::Fail, "", "") };
    let rendered = webhooks::objects(&install);
    let hooks = |object: &'_ Value| object["webhooks"].as_array().cloned().unwrap_or_default();
    let paths: Vec<String> =
        rendered.iter().flat_map(hooks).map(|hook| text(&hook, "/clientConfig/service/path").to_owned()).collect();
    let judges_ours = |hook: &Value| {
        let rules = hook["rules"].as_array().into_iter().flatten();
        let has = |list: &Value, names: &[&str]| {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).any(|one| names.contains(&one))
        };
        let ours = Kind::ALL.iter().filter(|kind| kind.descriptor().origin == KindOrigin::Ours);
        let kinds: Vec<&str> = ours.map(|kind| kind.plural()).chain(["*"]).collect();
        served.serves(agent_kagenti_dev::GROUP)
            && rules
                .into_iter()
                .any(|rule| has(&rule["apiGroups"], &[agent_kagenti_dev::GROUP]) && has(&rule["resources"], &kinds))
    };
    let entries = configuration["webhooks"].as_array().into_iter().flatten();
    let same = |hook: &&Value| {
        let path = text(hook, "/clientConfig/service/path");
        (!path.is_empty() && paths.iter().any(|known| known == path)) || judges_ours(hook)
    };
    entries.filter(same).map(|hook| text(hook, "/name")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn configuration(name: &str, hook: Value) -> Value {
        json!({"metadata": {"name": name}, "webhooks": [hook, {"name": "other", "rules": [
            {"apiGroups": ["agent.kagenti.dev"], "resources": ["others"]}, {"apiGroups": ["*"], "resources": ["*"]}]}]})
    }

    #[test]
    fn entries_for_what_is_ours_are_found_by_path_and_by_kind_whatever_their_names() {
        let by_path = json!({"name": "inject.kagenti.io",
            "clientConfig": {"service": {"name": "kagenti-operator-webhook-service", "path": "/mutate-workloads-authbridge"}}});
        let by_kind = json!({"name": "vagentruntime.kb.io", "clientConfig": {"url": "https://elsewhere"},
            "rules": [{"apiGroups": ["agent.kagenti.dev"], "resources": ["agentruntimes"]}]});
        let by_card = json!({"name": "vcard.example", "rules": [{"apiGroups": ["agent.kagenti.dev"], "resources": ["agentcards"]}]});
        let found =
            [(by_path.clone(), "inject.kagenti.io"), (by_kind, "vagentruntime.kb.io"), (by_card, "vcard.example")];
        for (hook, name) in found {
            assert_eq!(ours_by_other_names(&configuration("kagenti-operator", hook), Kinds::All), [name]);
        }
        assert!(ours_by_other_names(&configuration(keys::WEBHOOK_CONFIGURATION, by_path), Kinds::All).is_empty());
        let theirs = json!({"name": "x", "clientConfig": {"service": {"path": "/mutate"}},
            "rules": [{"apiGroups": [""], "resources": ["pods"]}]});
        assert!(ours_by_other_names(&configuration("istio", theirs), Kinds::All).is_empty());
    }

    /// Its webhooks are deleted by whoever follows the remedy, and it serves what we leave to it.
    #[test]
    fn an_operator_of_kinds_that_are_not_served_here_is_in_nobodys_way() {
        let path = |path: &str| json!({"name": "theirs", "clientConfig": {"service": {"path": path}}});
        let judges =
            json!({"name": "theirs", "rules": [{"apiGroups": ["agent.kagenti.dev"], "resources": ["agentruntimes"]}]});
        for (hook, all, kaos, beeai) in [
            (path(keys::PATH_INJECT), true, false, false),
            (judges, true, false, false),
            (path(keys::PATH_KAOS), true, true, false),
            (path(keys::PATH_BEEAI_AGENT), true, false, true),
        ] {
            for (served, found) in [(Kinds::All, all), (Kinds::Kaos, kaos), (Kinds::Beeai, beeai)] {
                let configuration = configuration("kagenti-operator", hook.clone());
                assert_eq!(!ours_by_other_names(&configuration, served).is_empty(), found, "{served:?}: {hook}");
            }
        }
    }
}
