//! What `validate` says about a kind that is nearly ours: `kubectl` knows none of that name, and every other check passes it over.

use super::{Findings, OfFiles, Placed, Severity};
use crate::api::agent_kagenti_dev;
use crate::cli::offline::documents::Object;
use crate::cli::survey::text;
use crate::cli::yaml::tree::Node;
use crate::domain::suggest::nearest;
use crate::store::Kind;

/// Judges the kind and group of one object.
pub(super) fn check((document, Object { node, value }): &Placed<'_>, findings: &mut Findings) {
    let (version, kind) = (text(value, "/apiVersion"), text(value, "/kind"));
    let (group, of_group) = version.split_once('/').unwrap_or(("", version));
    if let Some((field, meant)) = meant(group, kind) {
        let seen = if field == "kind" { kind.to_owned() } else { version.to_owned() };
        let meant = if field == "kind" { meant } else { format!("{meant}/{of_group}") };
        let line =
            node.entries().iter().find(|(key, _)| key.text == field).map_or(node.line, |(key, _): &(_, Node)| key.line);
        let sentence =
            format!("{field}: the API server knows no {kind} of group {group} (seen: {seen:?}); did you mean {meant}?");
        findings.add(document, line, Severity::Error, (OfFiles::UnknownKind, sentence));
    }
}

/// The field that is wrong, and what was meant.
fn meant(group: &str, kind: &str) -> Option<(&'static str, String)> {
    let kinds = Kind::ALL.iter().filter(|kind| kind.group() == agent_kagenti_dev::GROUP);
    let ours: Vec<String> = kinds.map(|kind| kind.as_str().to_owned()).collect();
    let is_ours = ours.iter().any(|known| known == kind);
    let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    if group == agent_kagenti_dev::GROUP {
        let by_case = || ours.iter().find(|known| same(known, kind)).cloned();
        let near = || nearest(kind, ours.iter().map(String::as_str)).map(str::to_owned);
        return (!is_ours).then(|| by_case().or_else(near)).flatten().map(|kind| ("kind", kind));
    }
    let is_near = same(group, agent_kagenti_dev::GROUP) || nearest(group, [agent_kagenti_dev::GROUP]).is_some();
    let is_nearly = is_near || group == "kagenti.dev" || group.ends_with(".kagenti.dev");
    (is_ours && is_nearly).then(|| ("apiVersion", agent_kagenti_dev::GROUP.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn kinds_and_groups_that_are_nearly_ours() {
        let kind = |kind: &str| Some(("kind", kind.to_owned()));
        let group = Some(("apiVersion", "agent.kagenti.dev".to_owned()));
        for (seen, wanted) in [
            (("agent.kagenti.dev", "Agentruntime"), kind("AgentRuntime")),
            (("agent.kagenti.dev", "agent"), kind("Agent")),
            (("agent.kagenti.dev", "AgentBuilds"), kind("AgentBuild")),
            (("agents.kagenti.dev", "AgentRuntime"), group.clone()),
            (("kagenti.dev", "AgentBuild"), group),
            (("agent.kagenti.dev", "AgentCards"), kind("AgentCard")),
            (("agent.kagenti.dev", "AgentRuntime"), None),
            (("agent.kagenti.dev", "AgentCard"), None),
            (("kaos.tools", "Agent"), None),
            (("beeai.dev", "AgentBuild"), None),
            (("apps", "Deployment"), None),
        ] {
            assert_eq!(meant(seen.0, seen.1), wanted, "{seen:?}");
        }
    }
}
