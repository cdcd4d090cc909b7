//! The rules of `drawbridge-kaos-…-powers`: a field of KAOS's kinds that is code, or a power over others, is taken only from people who could
//! run that themselves. The operator makes Deployments for whoever may write these kinds; only the API
//! server knows what he may do himself.
//!
//! In: what is code in each kind ([`ROWS`]), and the table of what a Pod may ask for ([`PRIVILEGES`]). Out: a policy with its binding per
//! kind. It is asked when an object is made and when what runs changes; never of what is being deleted, of finalizers or of the status.
//!
//! Code is what a process is started with, by the runtime or by the kubelet, and what takes the place of a file or variable that it is read
//! from: who may fill a ConfigMap would fill it by that. So are the variables that a loader, a shell or an interpreter reads before any program
//! of an image begins ([`VARIABLES`]), whichever of the spellings sets them.

use serde_json::Value;

use super::super::Install;
use super::super::selectors::{self, Reach, condition};
use super::agent_pods::{RIGHTS, asks, field, is_new, may_create};
use super::{Refusal, refusal, variable, written_in};
use crate::api::kaos_tools::VERSION;
use crate::domain::keys;
use crate::workloads::agent::privileges::{PRIVILEGES, Scope};
use crate::workloads::kaos::code::{FUNCTIONS, LISTS, VARIABLES};

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
/// The kubelet runs it in the container, as often as the probe says.
const OF_PROBES: (&str, &str) = (
    "podSpec containers with a probe that executes a command",
    "variables.containers.exists(c, c.?livenessProbe.?exec.hasValue() || c.?readinessProbe.?exec.hasValue() || \
     c.?startupProbe.?exec.hasValue())",
);
/// Whatever variables another object holds, the one that holds tools among them.
const OF_ENV_FROM: (&str, &str) =
    ("podSpec containers with envFrom", "variables.containers.exists(c, c.?envFrom.orValue([]).size() > 0)");
/// Files of a ConfigMap over those of the image.
const OF_MOUNTS: (&str, &str) =
    ("podSpec containers with volumeMounts", "variables.containers.exists(c, c.?volumeMounts.orValue([]).size() > 0)");

const ROWS: &[Row] = &[
    Row {
        name: "Agent",
        plural: "agents",
        policy: "drawbridge-kaos-agent-powers",
        // The environment of the older spelling reaches the container, and the rest of `config` starts nothing.
        runs: &["container", "podSpec", "config.?env"],
        code: &[IMAGE, COMMAND, ARGS, OF_CONTAINERS, OF_PROBES, OF_ENV_FROM, OF_MOUNTS],
    },
    Row {
        name: "ModelAPI",
        plural: "modelapis",
        policy: "drawbridge-kaos-modelapi-powers",
        // Environments of every spelling reach the one container, whatever the mode.
        runs: &["container", "podSpec", "proxyConfig", "mode", "hostedConfig.?env", "serverConfig.?env"],
        code: &[
            IMAGE,
            COMMAND,
            ARGS,
            OF_CONTAINERS,
            OF_PROBES,
            OF_ENV_FROM,
            OF_MOUNTS,
            // LiteLLM loads Python modules that its configuration names.
            ("proxyConfig.configYaml", "object.spec.?proxyConfig.?configYaml.hasValue()"),
            // The same from another source: what a volume of that name says takes the place of ours.
            (
                "podSpec volume litellm-config",
                "variables.pod.?volumes.orValue([]).exists(v, v.?name.orValue('') == 'litellm-config')",
            ),
            // With it LiteLLM reads its configuration from a bucket in place of ours.
            (
                "variable LITELLM_CONFIG_BUCKET_NAME",
                "object.spec.?container.?env.orValue([]).exists(e, e.name == 'LITELLM_CONFIG_BUCKET_NAME') || \
                 object.spec.?proxyConfig.?env.orValue([]).exists(e, e.name == 'LITELLM_CONFIG_BUCKET_NAME') || \
                 object.spec.?hostedConfig.?env.orValue([]).exists(e, e.name == 'LITELLM_CONFIG_BUCKET_NAME') || \
                 object.spec.?serverConfig.?env.orValue([]).exists(e, e.name == 'LITELLM_CONFIG_BUCKET_NAME') || \
                 variables.containers.exists(c, c.?env.orValue([]).exists(e, e.name == 'LITELLM_CONFIG_BUCKET_NAME'))",
            ),
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
            OF_PROBES,
            OF_ENV_FROM,
            OF_MOUNTS,
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
            variable("names", &names(row)),
            variable("asked", &asked(row)),
        ],
        holds: format!("variables.asked.size() == 0 || {}", allowed.join(" || ")),
        message: format!("spec: what runs {told}"),
        message_expression: Some(format!("'spec: ' + variables.asked.join(', ') + ' {told}'")),
    }
}

/// The names of all variables of an object; each stands among them as it is, whatever else does.
fn names(row: &Row) -> String {
    const JOINED: &str = "orValue([]).map(e, e.?name.orValue('')).join(',')";
    let lists = LISTS.iter().filter(|(kind, _)| *kind == row.name).flat_map(|(_, lists)| *lists);
    let lists = lists.map(|list| format!("object.spec.?{}.{JOINED}", list.replace('/', ".?")));
    let of_pod = format!("variables.containers.map(c, c.?env.{JOINED}).join(',')");
    let all: Vec<_> = lists.chain([of_pod]).collect();
    format!("[{}].join(',').split(',')", all.join(",\n"))
}

/// The fields that ask for something, as a list of texts.
fn asked(row: &Row) -> String {
    let code = row.code.iter().map(|(name, asks)| format!("{asks} ? '{name}' : ''"));
    // No annotation of the object that is a power reaches the Pod.
    let of_pod =
        PRIVILEGES.iter().filter(|privilege| privilege.weight.needs_right() && privilege.of != Scope::Annotations);
    let of_pod = of_pod.map(|privilege| format!("{} ? 'podSpec.{}' : ''", asks(privilege), field(privilege)));
    let rows: Vec<_> = code.chain(of_pod).collect();
    let known = VARIABLES.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    format!(
        "[{}].filter(field, field != '') + \
         variables.names.filter(n, n in [{known}] || n.startsWith('{FUNCTIONS}')).map(n, 'variable ' + n)",
        rows.join(",\n")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::FailureMode;
    use super::*;
    use crate::api::kaos_tools::read;
    use crate::workloads::kaos::identity::Identity;
    use crate::workloads::kaos::model_api;
    use crate::workloads::kaos::settings::Settings;

    /// Whoever fills the volume that LiteLLM's configuration is in writes the configuration.
    #[test]
    fn ruling_05_volumes_of_a_proxy_are_asked_for_by_the_names_that_they_have() {
        let api = json!({"metadata": {"name": "m"}, "spec": {"mode": "Proxy", "proxyConfig": {"models": ["a"]}}});
        let settings = Settings { image_litellm: Some("i".to_owned()), ..Settings::default() };
        let made = model_api::compose(&Identity::default(), &read::model_api(&api).value, &settings).unwrap();
        let volumes = made.request.pod_template["spec"]["volumes"].as_array().unwrap();
        let row = ROWS.iter().find(|row| row.name == "ModelAPI").unwrap();
        let rule = asked(row);
        assert!(!volumes.is_empty());
        for volume in volumes {
            let name = volume["name"].as_str().unwrap();
            assert!(rule.contains(&format!("v.?name.orValue('') == '{name}'")), "{name}: {rule}");
        }
    }

    /// What starts a process in a container, and what its files and variables are filled from, is asked for in every kind.
    #[test]
    fn ruling_05_every_way_into_a_container_is_asked_for_in_every_kind() {
        for row in ROWS {
            let rule = asked(row);
            let probes = ["livenessProbe.?exec", "readinessProbe.?exec", "startupProbe.?exec"];
            for way in ["image", "command", "args", "lifecycle"].into_iter().chain(probes) {
                assert!(rule.contains(&format!("c.?{way}.hasValue()")), "{}: {way}", row.name);
            }
            for way in ["envFrom", "volumeMounts"] {
                assert!(rule.contains(&format!("c.?{way}.orValue([]).size() > 0")), "{}: {way}", row.name);
            }
        }
    }

    /// A variable that an interpreter reads is a command by another way, in every spelling and in every container.
    #[test]
    fn ruling_05_every_variable_that_is_code_is_asked_for_wherever_it_stands() {
        for row in ROWS {
            let (rule, names) = (asked(row), names(row));
            for name in VARIABLES {
                assert!(rule.contains(&format!("'{name}'")), "{}: {name}", row.name);
            }
            assert!(rule.contains("n.startsWith('BASH_FUNC_')") && rule.contains("variables.names"), "{rule}");
            assert!(names.contains("variables.containers.map(c, c.?env."), "{names}");
            let (_, lists) = LISTS.iter().find(|(kind, _)| *kind == row.name).unwrap();
            for list in *lists {
                let path = list.replace('/', ".?");
                assert!(names.contains(&format!("object.spec.?{path}.orValue([])")), "{}: {list}", row.name);
                // A change of it is asked about, too.
                let is_new = |member: &&str| path == **member || path.starts_with(&format!("{member}.?"));
                assert!(row.runs.iter().any(is_new), "{}: {list}", row.name);
            }
        }
    }

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
