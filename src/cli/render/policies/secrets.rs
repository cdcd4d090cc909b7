//! The rules of `drawbridge-agent-secrets` and `drawbridge-build-secrets`: a Secret is put into a Pod, or sent to a host, only for people
//! who could have it anyway. Whoever may write Agents or AgentBuilds has the operator use Secrets that he may not read himself, and says
//! what is done with them; only the API server knows his rights.
//!
//! In: the tables of [`crate::api::secrets`]. Out: two policies with their bindings. Promises:
//! - **All** names are asked for whenever what runs changes, or whom it talks to: who keeps the reference and changes the image, the command,
//!   the repository or the address has the Secret, too; and whenever an annotation that names one changes. Nothing is asked of a change of
//!   labels, replicas or the status, and nothing of an object that goes.
//! - Nobody is asked who may get all Secrets of the namespace, or make Pods there himself.
//! - Names that the object leaves to the Secret's own consent are left out here; the controllers ask the Secret before each use. A change of
//!   that list is a change of what runs.
//!
//! The API server lets one expression cost 1,000,000 and a question 350,000; three questions in one expression refuse everybody. So each
//! distinct name has an expression of its own, and [`MOST`] of them fit into what a policy may cost. What is over is refused in words.
//! CEL has no functions here that are newer than Kubernetes 1.30.

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, Validation, Variable};
use serde_json::Value;

use super::super::Install;
use super::super::selectors::{self, Reach, condition};
use super::agent_pods::{RIGHTS, RUNS, is_new, may_create};
use super::{judging, variable, written, written_in};
use crate::api::secrets::ANNOTATIONS;
use crate::api::secrets::{
    ENVIRONMENTS, OF_ANNOTATIONS, OF_BEEAI_AGENT, OF_BEEAI_BUILD, OF_BUILD, OF_CONTAINER, OF_KAOS, OF_POD,
    PARAMETER_SUFFIX, PARAMETERS, VARIABLES,
};
use crate::domain::keys;
use crate::store::Kind as StoreKind;

/// Name of the policy that asks for the Secrets of an Agent.
const POLICY_AGENT_SECRETS: &str = "drawbridge-agent-secrets";
/// Name of the policy that asks for the Secrets of an AgentBuild.
const POLICY_BUILD_SECRETS: &str = "drawbridge-build-secrets";
/// Name of the policy that asks for the Secrets of an Agent of `beeai.dev`.
const POLICY_BEEAI_AGENT_SECRETS: &str = "drawbridge-beeai-agent-secrets";
/// Name of the policy that asks for the Secrets of an Agent of `beeai.beeai.dev`.
const POLICY_BEEAI_COMPAT_AGENT_SECRETS: &str = "drawbridge-beeai-compat-agent-secrets";
/// Name of the policy that asks for the Secrets of an AgentBuild of `beeai.dev`.
const POLICY_BEEAI_BUILD_SECRETS: &str = "drawbridge-beeai-build-secrets";
/// Name of the policy that asks for the Secrets of an AgentBuild of `beeai.beeai.dev`.
const POLICY_BEEAI_COMPAT_BUILD_SECRETS: &str = "drawbridge-beeai-compat-build-secrets";
/// Most distinct Secrets that are asked for by name.
const MOST: usize = 24;

/// Members of an AgentBuild's spec that decide what runs.
const BUILDS: [&str; 5] = ["source", "buildOutput", "pipeline", "mode", "buildArgs"];
/// The same of an AgentBuild of BeeAI.
const BEEAI_BUILDS: [&str; 11] = [
    "repoUrl",
    "revision",
    "sourceSubfolder",
    "repoUser",
    "imageRegistry",
    "image",
    "imageTag",
    "env",
    "agent",
    "deployAfterBuild",
    "dockerfile",
];
/// Whoever may create runs makes Pods with them.
const RUN: (&str, &str) = ("tekton.dev", "pipelineruns");

/// One kind and how it is asked about.
struct Kind {
    name: &'static str,
    /// In whose name a Secret consents; `None` where nobody asks it before each use.
    consumer: Option<&'static str>,
    /// Members of its spec that decide what runs, and whom it talks to.
    runs: &'static [&'static str],
    /// Annotations of the object itself that name a Secret.
    annotations: &'static [&'static str],
    /// Any of these rights spares the questions.
    rights: Vec<(&'static str, &'static str)>,
    /// The names, as texts with commas.
    texts: Vec<String>,
    variables: Vec<Variable>,
}

pub(super) fn objects(install: &Install) -> Vec<Value> {
    let agents = judging(install, POLICY_AGENT_SECRETS, written("agents"), rule(agent()));
    let builds = judging(install, POLICY_BUILD_SECRETS, written("agentbuilds"), rule(agent_build()));
    agents.into_iter().chain(builds).collect()
}

/// Whether a Secret may be used by what BeeAI's kinds of `beeai.dev` ask for.
pub(super) fn beeai(install: &Install) -> [Value; 4] {
    of_beeai(
        install,
        (StoreKind::BeeaiAgent, POLICY_BEEAI_AGENT_SECRETS),
        (StoreKind::BeeaiBuild, POLICY_BEEAI_BUILD_SECRETS),
    )
}

/// The same of the kinds of `beeai.beeai.dev`.
pub(super) fn beeai_compat(install: &Install) -> [Value; 4] {
    of_beeai(
        install,
        (StoreKind::BeeaiCompatAgent, POLICY_BEEAI_COMPAT_AGENT_SECRETS),
        (StoreKind::BeeaiCompatBuild, POLICY_BEEAI_COMPAT_BUILD_SECRETS),
    )
}

fn of_beeai(install: &Install, agents: (StoreKind, &str), builds: (StoreKind, &str)) -> [Value; 4] {
    let of = |(kind, name): (StoreKind, &str), what| {
        judging(install, name, written_in((kind.group(), kind.version()), kind.plural()), rule(what))
    };
    let [agents, agents_bound] = of(agents, beeai_agent());
    let [builds, builds_bound] = of(builds, beeai_build());
    [agents, agents_bound, builds, builds_bound]
}

/// The names that variables give by their literal value, of the list at that path.
fn of_variables(path: &str) -> impl Iterator<Item = String> {
    let list = member("object.spec", path);
    VARIABLES.iter().map(move |name| {
        format!("{list}.orValue([]).filter(e, e.?name.orValue('') == '{name}').map(e, e.?value.orValue('')).join(',')")
    })
}

fn beeai_build() -> Kind {
    let mut texts: Vec<_> = OF_BEEAI_BUILD.iter().map(|path| joined("object.spec", path)).collect();
    texts.extend(ENVIRONMENTS.iter().flat_map(|path| of_variables(path)));
    Kind {
        name: "AgentBuild",
        consumer: Some(keys::USABLE_BY[0]),
        runs: &BEEAI_BUILDS,
        annotations: &[],
        rights: RIGHTS.into_iter().chain([RUN]).collect(),
        texts,
        variables: Vec::new(),
    }
}

fn beeai_agent() -> Kind {
    let mut texts: Vec<_> = OF_BEEAI_AGENT.iter().map(|path| joined("object.spec", path)).collect();
    texts.extend(of_variables("env"));
    Kind {
        name: "Agent",
        consumer: Some(keys::USABLE_BY[1]),
        runs: &["image", "env"],
        annotations: &[],
        rights: RIGHTS.to_vec(),
        texts,
        variables: Vec::new(),
    }
}

/// The kinds of KAOS: the policy's name, and the members of the spec that decide what runs and whom it talks to.
const KAOS: [(StoreKind, &str, &[&str]); 3] = [
    (
        StoreKind::KaosAgent,
        "drawbridge-kaos-agent-secrets",
        &["container", "podSpec", "config", "modelAPI", "mcpServers", "agentNetwork"],
    ),
    (
        StoreKind::ModelApi,
        "drawbridge-kaos-modelapi-secrets",
        &["container", "podSpec", "mode", "models", "proxyConfig", "hostedConfig", "serverConfig", "telemetry"],
    ),
    (
        StoreKind::McpServer,
        "drawbridge-kaos-mcpserver-secrets",
        &["container", "podSpec", "config", "runtime", "params", "type", "serviceAccountName", "telemetry"],
    ),
];

/// The policies for the kinds of KAOS, each followed by its binding.
pub(super) fn kaos(install: &Install) -> Vec<Value> {
    let policies = KAOS.into_iter().flat_map(|(kind, name, runs)| {
        judging(install, name, written_in((kind.group(), kind.version()), kind.plural()), rule(of_kaos(kind, runs)))
    });
    policies.collect()
}

fn of_kaos(kind: StoreKind, runs: &'static [&'static str]) -> Kind {
    let of_kind = OF_KAOS.iter().filter(|(name, _)| *name == kind.as_str()).flat_map(|(_, paths)| *paths);
    let mut texts: Vec<_> = of_kind.map(|path| joined("object.spec", path)).collect();
    texts.extend(OF_POD.iter().map(|path| joined("variables.pod", path)));
    let of_container: Vec<_> = OF_CONTAINER.iter().map(|path| joined("c", path)).collect();
    texts.push(format!("variables.containers.map(c, [{}].join(',')).join(',')", of_container.join(", ")));
    texts.extend(OF_ANNOTATIONS.iter().map(|key| format!("string({})", annotation("object", key))));
    let mut variables = vec![
        variable("pod", "object.spec.?podSpec.orValue({})"),
        variable("containers", "variables.pod.?containers.orValue([]) + variables.pod.?initContainers.orValue([])"),
    ];
    if kind == StoreKind::ModelApi {
        // A text in the oldest spelling.
        let written = "dyn(object.spec.?proxyConfig.?configYaml.orValue(''))";
        variables.push(variable("configYaml", written));
        texts.push(
            "type(variables.configYaml) == string ? '' : string(variables.configYaml.?fromSecretKeyRef.?name.orValue(''))"
                .to_owned(),
        );
    }
    Kind {
        name: kind.as_str(),
        consumer: None,
        runs,
        // Pods get them of the object.
        annotations: OF_ANNOTATIONS,
        rights: RIGHTS.to_vec(),
        texts,
        variables,
    }
}

fn agent() -> Kind {
    let mut texts: Vec<_> = OF_POD.iter().map(|path| joined("variables.pod", path)).collect();
    let of_container: Vec<_> = OF_CONTAINER.iter().map(|path| joined("c", path)).collect();
    texts.push(format!("variables.containers.map(c, [{}].join(',')).join(',')", of_container.join(", ")));
    for place in ANNOTATIONS {
        let members = place.replace('/', ".?");
        let named = |key: &&str| format!("string(object.?{members}[?'{key}'].orValue(''))");
        texts.extend(OF_ANNOTATIONS.iter().map(named));
    }
    Kind {
        name: "Agent",
        consumer: Some(keys::USABLE_BY[1]),
        runs: &RUNS,
        // Those of its spec are among these members, and its own reach no Pod.
        annotations: &[],
        rights: RIGHTS.to_vec(),
        texts,
        variables: vec![
            variable("pod", "object.spec.?podTemplateSpec.?spec.orValue({})"),
            variable("containers", "variables.pod.?containers.orValue([]) + variables.pod.?initContainers.orValue([])"),
        ],
    }
}

fn agent_build() -> Kind {
    let is_named = format!("p.?name.orValue('').lowerAscii().endsWith('{PARAMETER_SUFFIX}')");
    let named = |list: &str| format!("{list}.orValue([]).map(p, {is_named}, string(p.?value.orValue(''))).join(',')");
    let mut texts: Vec<_> = OF_BUILD.iter().map(|path| joined("object.spec", path)).collect();
    texts.extend(PARAMETERS.iter().map(|path| match path.split_once("/*/") {
        Some((steps, list)) => {
            format!("{}.orValue([]).map(s, {}).join(',')", member("object.spec", steps), named(&member("s", list)))
        }
        None => named(&member("object.spec", path)),
    }));
    Kind {
        name: "AgentBuild",
        consumer: Some(keys::USABLE_BY[0]),
        runs: &BUILDS,
        annotations: &[],
        rights: RIGHTS.into_iter().chain([RUN]).collect(),
        texts,
        variables: Vec::new(),
    }
}

/// The annotation of an object; an empty text where it has none.
fn annotation(of: &str, key: &str) -> String {
    format!("{of}.metadata.?annotations[?'{key}'].orValue('')")
}

fn member(of: &str, path: &str) -> String {
    format!("{of}.?{}", path.replace('/', ".?"))
}

/// What stands at `path` below `of`, as one text with commas.
fn joined(of: &str, path: &str) -> String {
    below(of, path, 0)
}

fn below(of: &str, path: &str, depth: usize) -> String {
    match path.split_once("/*/") {
        // Lists hold one type, as the API server checks them.
        None => format!("string({}.orValue(''))", member(of, path)),
        Some((list, rest)) => {
            let item = format!("i{depth}");
            format!("{}.orValue([]).map({item}, {}).join(',')", member(of, list), below(&item, rest, depth + 1))
        }
    }
}

type Rule = (Vec<MatchCondition>, Vec<Variable>, Vec<Validation>);

fn rule(kind: Kind) -> Rule {
    let Reach { mut conditions, .. } = selectors::living_objects();
    let listed = |of: &str| annotation(of, keys::ANNOTATION_SECRETS_BY_CONSENT);
    let annotations = kind.annotations.iter().copied().chain([keys::ANNOTATION_SECRETS_BY_CONSENT]);
    let changed =
        annotations.map(|key| format!(" || {} != {}", annotation("object", key), annotation("oldObject", key)));
    let is_new = format!("{}{}", is_new(kind.runs), changed.collect::<String>());
    conditions.push(condition("what-runs-is-new", &is_new));
    let all = "authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()";
    conditions.push(condition("may-not-get-all-secrets", &format!("!{all}")));
    let rights = kind.rights.iter().map(|(group, resource)| {
        condition(&format!("may-not-create-{resource}"), &format!("!{}", may_create(group, resource)))
    });
    conditions.extend(rights);
    let mut variables = kind.variables;
    let consented = match kind.consumer {
        Some(_) => format!("{}.split(',').map(n, n.trim())", listed("object")),
        None => "['']".to_owned(),
    };
    variables.push(variable("consented", &consented));
    let texts = kind.texts.join(",\n");
    variables.push(variable(
        "left0",
        &format!("[{texts}].join(',').split(',').filter(n, n != '' && !(n in variables.consented))"),
    ));
    for number in 0..MOST {
        let rest = format!("variables.left{number}.filter(n, n != variables.left{number}[0])");
        let rest = format!("variables.left{number}.size() == 0 ? [] : {rest}");
        variables.push(variable(&format!("left{}", number + 1), &rest));
    }
    let rights: Vec<_> = kind.rights.iter().map(|(group, resource)| dotted(resource, group)).collect();
    let by_consent = kind.consumer.map_or_else(String::new, |consumer| {
        format!(
            ", or let the Secret's owner annotate it with {}: {consumer} and list it in annotation {} of the {}",
            keys::ANNOTATION_USABLE_BY,
            keys::ANNOTATION_SECRETS_BY_CONSENT,
            kind.name
        )
    });
    let told = format!(
        "an {} may refer to it only if whoever writes it may get that Secret, all Secrets, or create {} in this namespace. What to do: ask for \
         one of these rights{by_consent}",
        kind.name,
        rights.join(" or "),
    );
    let mut validations: Vec<_> = (0..MOST).map(|number| one(number, &told)).collect();
    let message = format!(
        "the {} refers to more than {MOST} Secrets, and only so many are asked for by name. What to do: put their contents together, or ask for \
         the right to get all Secrets of this namespace",
        kind.name
    );
    validations.push(forbidden(format!("variables.left{MOST}.size() == 0"), message, None));
    (conditions, variables, validations)
}

fn dotted(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

/// The name at this position of the distinct ones.
fn one(number: usize, told: &str) -> Validation {
    let name = format!("variables.left{number}[0]");
    let asked = format!(
        "authorizer.group('').resource('secrets').namespace(request.namespace).name({name}).check('get').allowed()"
    );
    forbidden(
        format!("variables.left{number}.size() == 0 || {asked}"),
        format!("Secret number {} of those it refers to: {told}", number + 1),
        Some(format!("'Secret ' + {name} + ': {}'", told.replace('\'', "\\'"))),
    )
}

fn forbidden(expression: String, message: String, message_expression: Option<String>) -> Validation {
    Validation { expression, message: Some(message), message_expression, reason: Some("Forbidden".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::super::super::FailureMode;
    use super::*;
    use crate::api::kaos_tools;

    /// Members of KAOS's kinds by which no Secret gets anywhere: how many Pods there are, when, with how much of a node, through which route they are
    /// reached, and what their model is called.
    const APART: [&str; 5] = ["gatewayRoute", "model", "replicas", "resources", "waitForDependencies"];

    #[test]
    fn ruling_05_whatever_reaches_a_pod_of_kaos_or_its_configuration_asks_for_all_secrets_again() {
        let crds = [kaos_tools::agent::crd(), kaos_tools::model_api::crd(), kaos_tools::mcp_server::crd()];
        let rendered = kaos(&Install::new(FailureMode::Fail, "kagenti-system", "a/b:1"));
        assert_eq!(rendered.len(), 2 * KAOS.len(), "a policy and a binding per kind");
        for (((_, name, runs), crd), policy) in KAOS.iter().zip(&crds).zip(rendered.iter().step_by(2)) {
            assert_eq!(policy["metadata"]["name"], *name);
            let crd = serde_json::to_value(crd).unwrap();
            let members = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
            let members: Vec<_> = members.as_object().unwrap().keys().map(String::as_str).collect();
            assert!(runs.iter().all(|member| members.contains(member)), "{name}: {runs:?} of {members:?}");
            let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
            let is_new = conditions.iter().find(|one| one["name"] == "what-runs-is-new").unwrap();
            let is_new = is_new["expression"].as_str().unwrap();
            for member in members {
                let asks = is_new.contains(&format!("object.spec.?{member} != oldObject.spec.?{member}"));
                assert_ne!(asks, APART.contains(&member), "{name}: {member}: {is_new}");
            }
            for key in OF_ANNOTATIONS {
                let of = |object: &str| format!("{object}.metadata.?annotations[?'{key}'].orValue('')");
                assert!(is_new.contains(&format!("{} != {}", of("object"), of("oldObject"))), "{name}: {is_new}");
            }
        }
    }

    #[test]
    fn mend_06_each_name_has_an_expression_of_its_own_and_all_are_asked_for_when_what_runs_changes() {
        let rendered = objects(&Install::new(FailureMode::Fail, "kagenti-system", "a/b:1"));
        assert_eq!(rendered.len(), 4, "two policies with a binding each");
        for (policy, runs) in [(&rendered[0], &RUNS[..]), (&rendered[2], &BUILDS)] {
            let spec = &policy["spec"];
            assert_eq!(spec["failurePolicy"], "Fail", "with Ignore, what costs too much is taken");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let validations = spec["validations"].as_array().unwrap();
            let asks: Vec<_> = validations.iter().map(|one| text(&one["expression"])).collect();
            assert_eq!(asks.len(), MOST + 1);
            for (number, asked) in asks.iter().enumerate().take(MOST) {
                assert_eq!(asked.matches("authorizer").count(), 1, "{asked}");
                assert!(asked.contains(&format!("variables.left{number}[0]")), "{asked}");
                assert!(text(&validations[number]["messageExpression"]).contains(&format!("left{number}[0]")));
            }
            assert!(!asks[MOST].contains("authorizer"));
            let conditions = spec["matchConditions"].as_array().unwrap();
            let of = |name: &str| {
                let found = conditions.iter().find(|one| one["name"] == name);
                text(&found.unwrap_or_else(|| panic!("{name}"))["expression"])
            };
            let is_new = of("what-runs-is-new");
            for member in runs {
                assert!(is_new.contains(&format!("object.spec.?{member} != oldObject.spec.?{member}")), "{is_new}");
            }
            let consent = format!(".metadata.?annotations[?'{}']", keys::ANNOTATION_SECRETS_BY_CONSENT);
            assert_eq!(is_new.matches(&consent).count(), 2, "the list of consent is a part of it: {is_new}");
            for right in ["may-not-get-all-secrets", "may-not-create-pods", "may-not-create-deployments"] {
                assert!(of(right).starts_with("!authorizer"), "{right}");
            }
            let all = spec.to_string();
            assert!(!all.contains(".flatten(") && !all.contains(".distinct("), "newer than the oldest server");
        }
    }
}
