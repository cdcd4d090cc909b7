//! What is missing of the installation itself, so that whatever is said of workloads does not hold: webhook configurations, admission
//! policies and their bindings.
//!
//! In: a cluster. Out: a sentence for each that is gone. A cluster that has nothing of the kind has no installation, which is said once.

use std::collections::BTreeSet;

use crate::cli::cluster::{Answer, Cluster};
use crate::cli::render::{FailureMode, policies, webhooks};
use crate::cli::survey::text;
use crate::domain::keys;
use crate::server::guards::Kind as Guard;

const ROOT: &str = "/apis/admissionregistration.k8s.io/v1";

/// What is missing, the worst first; what may not be read is noted.
///
/// # Errors
/// [`crate::cli::Unreachable`] when nobody answers.
pub(super) async fn missing(
    cluster: &Cluster,
    some_namespaces: bool,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let (mut there, mut mode) = (0, FailureMode::Fail);
    let mut gone = Vec::new();
    for kind in Guard::WEBHOOKS {
        match cluster.read(&format!("{ROOT}/{}/{}", kind.plural(), keys::WEBHOOK_CONFIGURATION), notes).await? {
            Answer::Object(object) => {
                there += 1;
                let hooks = object["webhooks"].as_array().into_iter().flatten();
                let ignores = |hook: &serde_json::Value| {
                    hook["name"] == keys::WEBHOOK_INJECT && text(hook, "/failurePolicy") == "Ignore"
                };
                mode = if hooks.into_iter().any(ignores) { FailureMode::Gate } else { mode };
            }
            Answer::Absent => gone.push(kind),
            Answer::Refused(..) => {}
        }
    }
    let mut lost = Vec::new();
    let installed = policies::installed(mode);
    for kind in [Guard::Policy, Guard::Binding] {
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
    let repair = webhooks::repair(mode, some_namespaces);
    found.extend(gone.into_iter().map(|kind| {
        let (kind, name, effect) = (kind.as_str(), keys::WEBHOOK_CONFIGURATION, kind.effect());
        format!("{kind} {name} is gone, so that {effect}. What to do: put it back with {repair}")
    }));
    if !lost.is_empty() {
        let names: Vec<String> = lost.iter().map(|(kind, name)| format!("{} {name}", kind.as_str())).collect();
        found.push(format!(
            "these are gone, so that what they refuse is accepted: {}. What to do: apply the install manifests of the installed version again; \
             drawbridge doctor shows what differs",
            names.join(", ")
        ));
    }
    Ok(found)
}
