//! What `validate` says about a kind that is nearly ours, or nearly one that makes Pods: `kubectl` knows none of that name, and every other check
//! passes it over.

use super::{Findings, OfFiles, Placed, Severity};
use crate::api::agent_kagenti_dev;
use crate::cli::offline::documents::Object;
use crate::cli::offline::runtimes;
use crate::cli::offline::workload::UnknownType;
use crate::cli::survey::text;
use crate::cli::yaml::tree::Node;
use crate::domain::suggest::nearest;
use crate::store::Kind;

/// Judges the kind and group of one object.
pub(super) fn check((document, Object { node, value }): &Placed<'_>, findings: &mut Findings) {
    let (version, kind) = (text(value, "/apiVersion"), text(value, "/kind"));
    // A file without one may be no manifest at all: kubectl says of each that it is none.
    let of_workload = UnknownType::of(value).filter(|unknown| !unknown.is_without_version());
    // The version of an AgentRuntime is told with what becomes of it.
    let of_ours = meant(version, kind).filter(|(field, _)| *field == "kind" || !runtimes::is_agent_runtime(value));
    let (field, words) = match (of_workload, of_ours) {
        (Some(unknown), _) => (unknown.field(), unknown.words()),
        (None, Some((field @ "kind", meant))) => {
            let group = version.split_once('/').map_or("", |(group, _)| group);
            let words =
                format!("the API server knows no {kind} of group {group} (seen: {kind:?}); did you mean {meant}?");
            (field, words)
        }
        (None, Some((field, meant))) => {
            (field, format!("the API server knows no {kind} of {version:?}; did you mean {meant}?"))
        }
        (None, None) => return,
    };
    let line =
        node.entries().iter().find(|(key, _)| key.text == field).map_or(node.line, |(key, _): &(_, Node)| key.line);
    findings.add(document, line, Severity::Error, (OfFiles::UnknownKind, format!("{field}: {words}")));
}

/// The field that is wrong, and what was meant.
fn meant(version: &str, kind: &str) -> Option<(&'static str, String)> {
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kinds = Kind::ALL.iter().filter(|kind| kind.group() == agent_kagenti_dev::GROUP);
    let ours: Vec<String> = kinds.map(|kind| kind.as_str().to_owned()).collect();
    let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    let known = Kind::of(agent_kagenti_dev::GROUP, kind);
    if group == agent_kagenti_dev::GROUP {
        let by_case = || ours.iter().find(|known| same(known, kind)).cloned();
        let near = || nearest(kind, ours.iter().map(String::as_str)).map(str::to_owned);
        return known.is_none().then(|| by_case().or_else(near)).flatten().map(|kind| ("kind", kind));
    }
    let is_near = same(group, agent_kagenti_dev::GROUP) || nearest(group, [agent_kagenti_dev::GROUP]).is_some();
    // Nor are there such kinds among those of Kubernetes, whose groups have no dot.
    let is_own = !version.is_empty() && !group.contains('.');
    let is_nearly = is_near || is_own || group == "kagenti.dev" || group.ends_with(".kagenti.dev");
    known.filter(|_| is_nearly).map(|kind| ("apiVersion", kind.api_version()))
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn kinds_and_groups_that_are_nearly_ours() {
        let kind = |kind: &str| Some(("kind", kind.to_owned()));
        let version = Some(("apiVersion", "agent.kagenti.dev/v1alpha1".to_owned()));
        for (seen, wanted) in [
            (("agent.kagenti.dev/v1alpha1", "Agentruntime"), kind("AgentRuntime")),
            (("agent.kagenti.dev/v1alpha1", "agent"), kind("Agent")),
            (("agent.kagenti.dev/v1alpha1", "AgentBuilds"), kind("AgentBuild")),
            (("agents.kagenti.dev/v1alpha1", "AgentRuntime"), version.clone()),
            (("agents.kagenti.dev/v1", "AgentRuntime"), version.clone()),
            (("kagenti.dev/v1alpha1", "AgentBuild"), version.clone()),
            (("v1", "AgentBuild"), version.clone()),
            (("apps/v1", "AgentRuntime"), version.clone()),
            (("agent.kagenti.dev", "Agent"), version),
            (("agent.kagenti.dev/v1alpha1", "AgentCards"), kind("AgentCard")),
            (("agent.kagenti.dev/v1alpha1", "AgentRuntime"), None),
            (("agent.kagenti.dev/v1alpha1", "AgentCard"), None),
            (("kaos.tools/v1alpha1", "Agent"), None),
            (("beeai.dev/v1", "AgentBuild"), None),
            (("apps/v1", "Deployment"), None),
            (("", "Agent"), None),
        ] {
            assert_eq!(meant(seen.0, seen.1), wanted, "{seen:?}");
        }
    }
}
