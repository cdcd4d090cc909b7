//! Whether AgentBuilds can be built: Tekton is served in the version that is asked for, and the templates are there.

use super::{Seen, Visit, text};
use crate::domain::keys;
use crate::server::guards::watch::APPLY;
use crate::store::Kind;

pub(super) async fn check(visit: &mut Visit) -> anyhow::Result<()> {
    if !visit.kinds.builds() {
        return Ok(());
    }
    let name = "Tekton Pipelines";
    let mut notes = Vec::new();
    let mut builds = Vec::new();
    for kind in [Kind::AgentBuild, Kind::BeeaiBuild, Kind::BeeaiCompatBuild] {
        if visit.kinds.serves(kind.group()) {
            builds.extend(visit.list(kind, "", &mut notes).await?);
        }
    }
    let kind = Kind::PipelineRun;
    let group = format!("/apis/{}", kind.group());
    let found = match visit.read(name, &group).await? {
        Seen::Is(found) => found,
        Seen::Hidden => return Ok(()),
        Seen::Absent => {
            let seen = format!("the API server does not serve {}", kind.group());
            if let Some(note) = notes.into_iter().next() {
                let remedy = "run doctor as somebody who may list AgentBuilds";
                visit.unknown(name, format!("{seen}, and whether that matters is not known: {note}"), remedy);
            } else if builds.is_empty() {
                visit.ok(name, format!("{seen}, and there are no AgentBuilds"));
            } else {
                let seen = format!("{seen}; {} AgentBuilds wait for it", builds.len());
                visit.finding(name, seen, "install Tekton Pipelines; the builds that wait start by themselves");
            }
            return Ok(());
        }
    };
    let versions = found["versions"].as_array().into_iter().flatten();
    let served: Vec<&str> = versions.map(|one| text(one, "/version")).collect();
    if served.contains(&kind.version()) {
        visit.ok(name, format!("{} is served", kind.api_version()));
    } else {
        let seen = format!("{} is served as {} only", kind.group(), served.join(", "));
        visit.finding(name, seen, format!("upgrade Tekton Pipelines to a release that serves {}", kind.api_version()));
    }
    templates(visit).await
}

/// The templates of the operator's own namespace.
async fn templates(visit: &mut Visit) -> anyhow::Result<()> {
    let name = "pipeline templates";
    let path = Kind::ConfigMap.path(&visit.operator);
    let mut notes = Vec::new();
    let maps = visit.cluster.list(&path, &mut notes).await?;
    if let Some(note) = notes.into_iter().next() {
        visit.unknown(name, note, "run doctor as somebody who may list ConfigMaps there");
        return Ok(());
    }
    let modes: Vec<&str> =
        maps.iter().filter_map(|map| text(map, "/metadata/name").strip_prefix(keys::PREFIX_TEMPLATE)).collect();
    if modes.is_empty() {
        visit.finding(name, format!("none in namespace {}", visit.operator), APPLY);
    } else {
        visit.ok(name, format!("for modes {}", modes.join(", ")));
    }
    Ok(())
}
