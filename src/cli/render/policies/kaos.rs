//! The rules of `drawbridge-kaos-…-powers`: a field of KAOS's kinds that is code, or a power over others, is taken only from people who could
//! run that themselves. The operator makes Deployments for whoever may write these kinds; only the API
//! server knows what he may do himself.
//!
//! In: what is code in each kind ([`ROWS`]), and the table of what a Pod may ask for ([`PRIVILEGES`]). Out: a policy with its binding per
//! kind. It is asked when an object is made and when what runs changes; never of what is being deleted, of finalizers or of the status.

use serde_json::Value;

use super::super::Install;
use super::super::selectors::{self, Reach, condition};
use super::agent_pods::{RIGHTS, asks, field, is_new, may_create};
use super::{Refusal, refusal, variable, written_in};
use crate::api::kaos_tools::VERSION;
use crate::domain::keys;
use crate::workloads::agent::privileges::{PRIVILEGES, Scope};

/// A kind: its plural, the policy's name, the members of its spec that decide what runs, and what of them is code.
struct Row {
    name: &'static str,
    plural: &'static str,
    policy: &'static str,
    runs: &'static [&'static str],
    code: &'static [(&'static str, &'static str)],
}

const IMAGE: (&str, &str) = ("container.image", "object.spec.?container.?image.orValue('') != ''");
const COMMAND: (&str, &str) = ("container.command", "object.spec.?container.?command.hasValue()");
const ARGS: (&str, &str) = ("container.args", "object.spec.?container.?args.hasValue()");
const OF_CONTAINERS: (&str, &str) = (
    "podSpec containers with image, command, args or lifecycle",
    "variables.containers.exists(c, c.?image.hasValue() || c.?command.hasValue() || c.?args.hasValue() || c.?lifecycle.hasValue())",
);

const ROWS: &[Row] = &[
    Row {
        name: "Agent",
        plural: "agents",
        policy: "drawbridge-kaos-agent-powers",
        runs: &["container", "podSpec"],
        code: &[IMAGE, COMMAND, ARGS, OF_CONTAINERS],
    },
    Row {
        name: "ModelAPI",
        plural: "modelapis",
        policy: "drawbridge-kaos-modelapi-powers",
        runs: &["container", "podSpec", "proxyConfig", "mode"],
        code: &[
            IMAGE,
            COMMAND,
            ARGS,
            OF_CONTAINERS,
            // LiteLLM loads Python modules that its configuration names.
            ("proxyConfig.configYaml", "object.spec.?proxyConfig.?configYaml.hasValue()"),
        ],
    },
    Row {
        name: "MCPServer",
        plural: "mcpservers",
        policy: "drawbridge-kaos-mcpserver-powers",
        runs: &["container", "podSpec", "runtime", "params", "config", "serviceAccountName"],
        code: &[
            IMAGE,
            COMMAND,
            ARGS,
            OF_CONTAINERS,
            ("runtime: custom", "object.spec.?runtime.orValue('') == 'custom'"),
            (
                "params of runtime python-string",
                "object.spec.?runtime.orValue('') == 'python-string' && object.spec.?params.orValue('') != ''",
            ),
            ("serviceAccountName", "object.spec.?serviceAccountName.orValue('') != ''"),
            ("config.tools.fromString", "object.spec.?config.?tools.?fromString.orValue('') != ''"),
            ("config.tools.fromPackage", "object.spec.?config.?tools.?fromPackage.orValue('') != ''"),
            ("config.tools.fromSecretKeyRef", "object.spec.?config.?tools.?fromSecretKeyRef.hasValue()"),
            ("config.toolsString", "object.spec.?config.?toolsString.orValue('') != ''"),
            ("config.mcp", "object.spec.?config.?mcp.orValue('') != ''"),
            // The variable by which the runtime is given its tools.
            (
                "variable MCP_TOOLS_STRING",
                "object.spec.?container.?env.orValue([]).exists(e, e.name == 'MCP_TOOLS_STRING') || \
                 object.spec.?config.?env.orValue([]).exists(e, e.name == 'MCP_TOOLS_STRING') || \
                 variables.containers.exists(c, c.?env.orValue([]).exists(e, e.name == 'MCP_TOOLS_STRING'))",
            ),
        ],
    },
];

/// The policies, each followed by its binding.
pub(super) fn objects(install: &Install) -> Vec<Value> {
    let of = |row: &Row| refusal(install, row.policy, written_in((keys::GROUP_KAOS, VERSION), row.plural), rule(row));
    ROWS.iter().flat_map(of).collect()
}

fn rule(row: &Row) -> Refusal {
    let Reach { mut conditions, .. } = selectors::living_objects();
    conditions.push(condition("what-runs-is-new", &is_new(row.runs)));
    let allowed = RIGHTS.map(|(group, resource)| may_create(group, resource));
    let told = format!(
        "is code or a power over others, so it is taken only from people who may create pods or deployments.apps here. What to do: leave it \
         out of the {}, or ask for that right",
        row.name
    );
    Refusal {
        applies: conditions,
        variables: vec![
            variable("pod", "object.spec.?podSpec.orValue({})"),
            variable("containers", "variables.pod.?containers.orValue([]) + variables.pod.?initContainers.orValue([])"),
            variable("asked", &asked(row)),
        ],
        holds: format!("variables.asked.size() == 0 || {}", allowed.join(" || ")),
        message: format!("spec: what runs {told}"),
        message_expression: Some(format!("'spec: ' + variables.asked.join(', ') + ' {told}'")),
    }
}

/// The fields that ask for something, as a list of texts.
fn asked(row: &Row) -> String {
    let code = row.code.iter().map(|(name, asks)| format!("{asks} ? '{name}' : ''"));
    // No annotation of the object that is a power reaches the Pod.
    let of_pod =
        PRIVILEGES.iter().filter(|privilege| privilege.weight.needs_right() && privilege.of != Scope::Annotations);
    let of_pod = of_pod.map(|privilege| format!("{} ? 'podSpec.{}' : ''", asks(privilege), field(privilege)));
    let rows: Vec<_> = code.chain(of_pod).collect();
    format!("[{}].filter(field, field != '')", rows.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::super::super::FailureMode;
    use super::*;

    #[test]
    fn ruling_05_every_field_that_is_code_is_asked_for_and_nothing_that_goes() {
        let rendered = objects(&Install::new(FailureMode::Fail, "kagenti-system", "a/b:1"));
        assert_eq!(rendered.len(), 6, "a policy and a binding per kind");
        for (row, policy) in ROWS.iter().zip(rendered.iter().step_by(2)) {
            let text = policy.to_string();
            for (name, _) in row.code {
                assert!(text.contains(&format!("? '{name}' : ''")), "{name}");
            }
            for member in row.runs {
                assert!(text.contains(&format!("object.spec.?{member} != oldObject.spec.?{member}")), "{member}");
            }
            assert!(text.contains("hostNetwork") && text.contains("deletionTimestamp"), "{text}");
            assert_eq!(policy["spec"]["failurePolicy"], "Fail");
            assert_eq!(policy["spec"]["matchConstraints"]["resourceRules"][0]["resources"][0], row.plural);
        }
    }
}
