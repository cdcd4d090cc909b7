//! What is missing of the installation itself, so that whatever is said of workloads does not hold: webhook configurations, admission
//! policies and their bindings.
//!
//! In: a cluster. Out: a sentence for each that is gone. A cluster that has nothing of the kind has no installation, which is said once.

use std::collections::BTreeSet;

use crate::cli::cluster::{Answer, Cluster};
use crate::cli::doctor::installed_mode;
use crate::cli::doctor::policies::compat;
use crate::cli::render::{FailureMode, policies, webhooks};
use crate::cli::scope::Scope;
use crate::cli::survey::text;
use crate::config::trust::Trust;
use crate::domain::keys;
use crate::server::guards::Kind as Guard;
use crate::server::guards::watch::APPLY;

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
    let mut gone = Vec::new();
    for kind in Guard::WEBHOOKS {
        match cluster.read(&format!("{ROOT}/{}/{}", kind.plural(), keys::WEBHOOK_CONFIGURATION), notes).await? {
            Answer::Object(_) => there += 1,
            Answer::Absent => gone.push(kind),
            Answer::Refused(..) => {}
        }
    }
    let mut lost = Vec::new();
    let mode = installed_mode(cluster).await?;
    let install = scope.install(mode, operator);
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
