//! What is missing of the installation itself, so that whatever is said of workloads does not hold: webhook configurations, a replica that
//! answers, admission policies and their bindings.
//!
//! In: a cluster. Out: a sentence for each that is gone. A cluster that has nothing of the kind has no installation, which is said once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::cli::cluster::{Answer, Cluster};
use crate::cli::doctor::policies::compat;
use crate::cli::doctor::{install, installed_mode, served};
use crate::cli::render::rbac::Role;
use crate::cli::render::{FailureMode, policies, webhooks};
use crate::cli::scope::Scope;
use crate::cli::survey::text;
use crate::config::trust::Trust;
use crate::domain::keys;
use crate::server::guards::Kind as Guard;
use crate::server::guards::watch::APPLY;
use crate::store::Kind;

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";

/// What is missing, the worst first; what may not be read is noted. `scope` tells what was installed in namespace `operator`, and `trust` what
/// its platform file says.
///
/// # Errors
/// [`crate::cli::Unreachable`] when nobody answers.
pub(super) async fn missing(
    cluster: &Cluster,
    (scope, operator): (&Scope, &str),
    trust: &Trust,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<String>> {
    let (mut found, mut there) = (Vec::new(), 0);
    let (mut gone, mut entries) = (Vec::new(), Vec::new());
    for kind in Guard::WEBHOOKS {
        match cluster.read(&format!("{ROOT}/{}/{}", kind.plural(), keys::WEBHOOK_CONFIGURATION), notes).await? {
            Answer::Object(configuration) => {
                there += 1;
                entries.extend(configuration["webhooks"].as_array().into_iter().flatten().cloned());
            }
            Answer::Absent => gone.push(kind),
            Answer::Refused(..) => {}
        }
    }
    let mut lost = Vec::new();
    let install = scope.install(installed_mode(cluster).await?, operator);
    let mode = install.mode();
    let mut installed = policies::installed(mode);
    installed.extend(policies::named(&compat(cluster, &install).await?));
    let looked_for = |kind: &Guard| !kind.is_webhook() && (mode == FailureMode::Gate || !kind.is_mutating());
    for kind in Guard::ALL.into_iter().filter(looked_for) {
        let ours = format!("{}%3D{}", keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
        let before = notes.len();
        let all = cluster.list(&format!("{ROOT}/{}?labelSelector={ours}", kind.plural()), notes).await?;
        if notes.len() > before {
            continue;
        }
        let names: BTreeSet<&str> = all.iter().map(|object| text(object, "/metadata/name")).collect();
        there += names.len();
        let wanted = installed.iter().filter(|(of, _)| *of == kind);
        lost.extend(wanted.filter(|(_, name)| !names.contains(name.as_str())));
    }
    if there == 0 && !gone.is_empty() {
        notes.push(
            "Drawbridge is not installed in this cluster: neither its webhook configurations nor its policies exist"
                .to_owned(),
        );
        return Ok(found);
    }
    let repair = webhooks::repair(&install, Some(trust));
    found.extend(gone.into_iter().map(|kind| {
        let (kind, name, effect) = (kind.as_str(), keys::WEBHOOK_CONFIGURATION, kind.effect());
        format!("{kind} {name} is gone, so that {effect}. What to do: put it back with {repair}")
    }));
    found.extend(unanswered(cluster, &entries, notes).await?);
    for (is_mutating, effect) in [(true, Guard::MutatingPolicy.effect()), (false, "what they refuse is accepted")] {
        let of = lost.iter().filter(|(kind, _)| kind.is_mutating() == is_mutating);
        let names: Vec<String> = of.map(|(kind, name)| format!("{} {name}", kind.as_str())).collect();
        if !names.is_empty() {
            found.push(format!(
                "these are gone, so that {effect}: {}. What to do: {APPLY}; drawbridge doctor shows what differs",
                names.join(", ")
            ));
        }
    }
    Ok(found)
}

/// Namespace and name of the Services that entries lead to, with these entries. What is called by a URL has none.
fn called(entries: &[Value]) -> BTreeMap<(&str, &str), Vec<&Value>> {
    let mut services: BTreeMap<_, Vec<&Value>> = BTreeMap::new();
    for entry in entries {
        let (namespace, name) =
            (text(entry, "/clientConfig/service/namespace"), text(entry, "/clientConfig/service/name"));
        if !name.is_empty() {
            services.entry((namespace, name)).or_default().push(entry);
        }
    }
    services
}

/// For each Service that entries lead to and that leads nowhere: what follows, and what to do. One that leads out of the cluster, or may not be read,
/// tells nothing.
async fn unanswered(cluster: &Cluster, entries: &[Value], notes: &mut Vec<String>) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for (place, entries) in called(entries) {
        let (namespace, name) = place;
        match cluster.read(&format!("{}/{name}", Kind::Service.path(namespace)), notes).await? {
            Answer::Object(service) if text(&service, "/spec/type") != "ExternalName" => {
                let before = notes.len();
                if served::addresses(cluster, place, notes).await?.is_empty() && notes.len() == before {
                    let remedy = install::look_at(namespace, Role::Webhook.name());
                    found.push(nobody(place, ("has no ready address", &remedy), &entries));
                }
            }
            Answer::Absent => found.push(nobody(place, ("does not exist", APPLY), &entries)),
            Answer::Object(_) | Answer::Refused(..) => {}
        }
    }
    Ok(found)
}

/// That no replica answers behind a Service, and what becomes of what its entries are asked about.
fn nobody((namespace, name): (&str, &str), (seen, remedy): (&str, &str), entries: &[&Value]) -> String {
    let refuses = |entry: &&&Value| text(entry, "/failurePolicy") == "Fail";
    let mut effects = Vec::new();
    if let Some(injects) = entries.iter().find(|entry| text(entry, "/name") == keys::WEBHOOK_INJECT) {
        effects.push(if refuses(&injects) {
            "new Pods of enrolled workloads are refused".to_owned()
        } else {
            format!(
                "new Pods of enrolled workloads wait behind scheduling gate {} (where policy {} is not in force, they run without sidecars)",
                keys::SCHEDULING_GATE,
                keys::GATE
            )
        });
    }
    let rules = entries.iter().filter(refuses).flat_map(|entry| entry["rules"].as_array().into_iter().flatten());
    let resources = rules.flat_map(|rule| rule["resources"].as_array().into_iter().flatten()).filter_map(Value::as_str);
    let judged: BTreeSet<&str> = resources.filter(|resource| *resource != "pods").collect();
    if !judged.is_empty() {
        let judged: Vec<_> = judged.into_iter().collect();
        effects.push(format!("{} can be neither created nor changed", judged.join(", ")));
    }
    if effects.is_empty() {
        effects.push("what is applied is not judged".to_owned());
    }
    format!(
        "Service {namespace}/{name} {seen}, so that the API server reaches no replica of the webhook: {}. What to do: {remedy}",
        effects.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::render::Install;

    /// The entries of an installation, as the manifests have them.
    fn rendered(mode: FailureMode) -> Vec<Value> {
        let all = webhooks::objects(&Install::new(mode, "own", ""));
        all.iter().flat_map(|one| one["webhooks"].as_array().cloned().unwrap_or_default()).collect()
    }

    #[test]
    fn that_no_replica_answers_is_said_with_what_becomes_of_pods() {
        let place = ("own", keys::SERVICE_WEBHOOK);
        for (mode, pods) in [
            (FailureMode::Fail, "new Pods of enrolled workloads are refused; "),
            (FailureMode::Gate, "new Pods of enrolled workloads wait behind scheduling gate drawbridge/injection"),
        ] {
            let entries = rendered(mode);
            let services = called(&entries);
            assert_eq!(services.keys().copied().collect::<Vec<_>>(), [place], "every entry leads to the one Service");
            assert_eq!(services[&place].len(), entries.len());
            let remedy = install::look_at("own", Role::Webhook.name());
            let said = nobody(place, ("has no ready address", &remedy), &services[&place]);
            for words in [
                "Service own/drawbridge-webhook has no ready address",
                pods,
                "agentbuilds, agentcards, agents, mcpservers, modelapis can be neither created nor changed",
                "What to do: kubectl -n own describe deployment drawbridge-webhook; kubectl -n own logs deployment/drawbridge-webhook",
            ] {
                assert!(said.contains(words), "{words:?}: {said}");
            }
        }
    }

    #[test]
    fn entries_that_lead_to_no_service_and_those_that_only_advise_refuse_nothing() {
        let entry = |client: Value| {
            json!({"name": "explain.kagenti.io", "failurePolicy": "Ignore", "clientConfig": client,
            "rules": [{"resources": ["deployments"]}]})
        };
        let by_url = [entry(json!({"url": "https://10.0.0.1/explain"}))];
        assert!(called(&by_url).is_empty());
        let advises = [entry(json!({"service": {"namespace": "own", "name": "w"}}))];
        let said = nobody(("own", "w"), ("does not exist", APPLY), &called(&advises)[&("own", "w")]);
        assert!(
            said.contains("what is applied is not judged. What to do: ") && !said.contains("deployments"),
            "{said}"
        );
    }
}
