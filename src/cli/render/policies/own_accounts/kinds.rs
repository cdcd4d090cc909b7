//! Our own kinds: people write them, and we put a finalizer on them. To the authorizer our account may read every Secret, so a spec that
//! it wrote would pass every policy that asks for its author's rights.
//!
//! The completing webhook may fill in, under our write, what an AgentBuild of before it leaves open; what stands is never changed.

use super::{Fence, both, holds, listed, rule, same, same_but, variable};
use crate::domain::keys;

/// The one kind that the webhook completes.
const COMPLETED: &str = "(request.resource.resource == 'agentbuilds' && request.resource.group == 'agent.kagenti.dev')";

/// An Agent of BeeAI that a build keeps, by the annotation with the build's uid: its labels anybody may take off, and the build puts them back.
fn is_kept(of: &str) -> String {
    format!(
        "(request.resource.resource == 'agents' && request.resource.group in [{}] && \
         variables.{of}.metadata.?annotations[?'{}'].orValue('') != '')",
        listed([keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT]),
        keys::ANNOTATION_CREATED_BY_UID,
    )
}

/// It carries the label of what builds of BeeAI make.
fn is_labelled(of: &str) -> String {
    format!(
        "variables.{of}.metadata.?labels[?'{}'].orValue('') == '{}'",
        keys::LABEL_APP_MANAGED_BY,
        keys::BEEAI_BUILD_CONTROLLER
    )
}

/// Agents of BeeAI are made for builds alone, and stand by themselves: an Agent survives its build.
pub(super) fn kept() -> Fence {
    let made = holds(
        format!(
            "{} && {} && !has(variables.new.metadata.ownerReferences) && !has(variables.new.metadata.finalizers)",
            is_kept("new"),
            is_labelled("new")
        ),
        "makes no Agent of BeeAI but one that a build keeps",
    );
    let rules = [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT].map(|group| rule(group, &["agents"], &["CREATE"]));
    Fence { variables: both().into(), ..Fence::new(keys::POLICY_OWN_BEEAI_KEPT, rules.into(), vec![made]) }
}

pub(super) fn fence() -> Fence {
    let finalizers = |of: &str| {
        let ours = listed([
            keys::FINALIZER,
            keys::FINALIZER_AGENT,
            keys::FINALIZER_BEEAI,
            keys::FINALIZER_KAOS_AGENT,
            keys::FINALIZER_MODEL_API,
            keys::FINALIZER_MCP_SERVER,
        ]);
        format!("variables.{of}.metadata.?finalizers.orValue([]).filter(f, !(f in [{ours}]))")
    };
    let is_kept = is_kept("old");
    let validations = vec![
        holds(format!("{COMPLETED} || {is_kept} || {}", same("?spec")), "never writes a spec"),
        holds(format!("!({COMPLETED}) || ({})", completed()), "never writes a spec"),
        holds(
            format!("{is_kept} || {}", same_but("labels", &format!("k == '{}'", keys::LABEL_POLICY_PARAMETER))),
            "writes no labels of this kind but the one that policies look for",
        ),
        holds(
            same_but(
                "annotations",
                &format!(
                    "({COMPLETED} && k.startsWith('{}/')) || ({is_kept} && k == '{}')",
                    keys::GROUP_AGENT,
                    keys::ANNOTATION_SECRETS_BY_CONSENT
                ),
            ),
            "writes no annotations of this kind",
        ),
        holds(same("metadata.?ownerReferences"), "writes no owners of this kind"),
        holds(format!("{} == {}", finalizers("new"), finalizers("old")), "writes no finalizer but its own"),
    ];
    let mut variables: Vec<_> = both().into();
    variables
        .extend(["new", "old"].map(|of| variable(&format!("{of}Spec"), format!("variables.{of}.?spec.orValue({{}})"))));
    Fence {
        variables,
        ..Fence::new(
            "drawbridge-own-kinds",
            vec![
                rule(keys::GROUP_AGENT, &["agents", "agentbuilds", "agentruntimes"], &["UPDATE"]),
                rule(keys::GROUP_BEEAI, &["agents", "agentbuilds"], &["UPDATE"]),
                rule(keys::GROUP_BEEAI_COMPAT, &["agents", "agentbuilds"], &["UPDATE"]),
                rule(keys::GROUP_KAOS, &["agents", "modelapis", "mcpservers"], &["UPDATE"]),
            ],
            validations,
        )
    }
}

/// That the spec of an AgentBuild is as before, but for what it left open.
fn completed() -> String {
    let but = |of: &str, left_out: &str| format!("{of}.transformMap(k, v, !(k in [{left_out}]), v)");
    let rest = "'mode', 'source', 'pipeline'";
    let source = |of: &str| but(&format!("variables.{of}Spec.?source.orValue({{}})"), "'sourceRevision'");
    let pipeline = |of: &str| but(&format!("variables.{of}Spec.?pipeline.orValue({{}})"), "'namespace', 'steps'");
    let open = |member: &str, empty: &str| {
        format!(
            "(variables.oldSpec.{member}.orValue({empty}) == {empty} || variables.newSpec.{member} == variables.oldSpec.{member})"
        )
    };
    [
        format!("{} == {}", but("variables.newSpec", rest), but("variables.oldSpec", rest)),
        format!("{} == {}", source("new"), source("old")),
        format!("{} == {}", pipeline("new"), pipeline("old")),
        open("?mode", "''"),
        open("?source.?sourceRevision", "''"),
        open("?pipeline.?namespace", "''"),
        open("?pipeline.?steps", "[]"),
    ]
    .join(" && ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expressions(fence: Fence) -> Vec<String> {
        fence.validations.into_iter().map(|validation| validation.expression).collect()
    }

    /// Whoever takes a label off a kept Agent makes it nobody's whom its build may not write any more; one that is made carries both marks.
    #[test]
    fn a_kept_agent_is_known_by_the_annotation_alone_once_it_is_there() {
        let (changed, made) = (expressions(fence()), expressions(kept()));
        let writes = changed.iter().filter(|one| one.contains(keys::ANNOTATION_CREATED_BY_UID));
        assert_eq!(writes.count(), 3, "its spec, its labels, and which Secrets are left to consent: {changed:?}");
        assert!(!changed.iter().any(|one| one.contains(keys::BEEAI_BUILD_CONTROLLER)), "{changed:?}");
        let marks = [keys::ANNOTATION_CREATED_BY_UID, keys::BEEAI_BUILD_CONTROLLER];
        assert!(made.len() == 1 && marks.iter().all(|mark| made[0].contains(mark)), "{made:?}");
    }
}
