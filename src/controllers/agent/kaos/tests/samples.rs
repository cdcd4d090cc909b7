//! The samples of every spelling as they stand: every field of every file is found again in what was built, and what `migrate kaos` makes of
//! them builds the same objects.

use serde_json::{Value, json};

use super::*;
use crate::api::kaos_tools::migrate::{is_kaos, migrate};
use crate::api::yaml;

const SAMPLES: [(&str, &str); 9] = [
    ("m-simple", include_str!("../../../../../manifests/samples/kaos-m-simple.yaml")),
    ("m-team", include_str!("../../../../../manifests/samples/kaos-m-team.yaml")),
    ("m-hosted", include_str!("../../../../../manifests/samples/kaos-m-hosted.yaml")),
    ("s4-simple", include_str!("../../../../../manifests/samples/kaos-s4-simple.yaml")),
    ("s4-team", include_str!("../../../../../manifests/samples/kaos-s4-team.yaml")),
    ("s4-hosted", include_str!("../../../../../manifests/samples/kaos-s4-hosted.yaml")),
    ("s3-simple", include_str!("../../../../../manifests/samples/kaos-s3-simple.yaml")),
    ("s3-team", include_str!("../../../../../manifests/samples/kaos-s3-team.yaml")),
    ("s3-hosted", include_str!("../../../../../manifests/samples/kaos-s3-hosted.yaml")),
];

const EVERYTHING: &str = "  kaosAgent: agent:1\n  kaosLitellm: litellm:1\n  kaosOllama: ollama:1\n  kaosPython: python:1\nkaos:\n  gateway: {enabled: true, name: edge, namespace: infra}\n";

/// What is built of every object.
const BUILT: [Kind; 4] = [Kind::Deployment, Kind::Service, Kind::ConfigMap, Kind::HttpRoute];

fn documents(text: &str) -> Vec<Value> {
    let all = text.split("\n---\n").map(|text| yaml::parse(text).unwrap().to_json());
    all.filter(is_kaos).collect()
}

fn kind(object: &Value) -> Kind {
    match object["kind"].as_str().unwrap() {
        "Agent" => Kind::KaosAgent,
        "ModelAPI" => Kind::ModelApi,
        _ => Kind::McpServer,
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn prefix(object: &Value) -> &'static str {
    match kind(object) {
        Kind::KaosAgent => "agent-",
        Kind::ModelApi => "modelapi-",
        _ => "mcpserver-",
    }
}

/// The objects, applied and come up; and whether any agent was made before what it names was ready.
fn built(objects: &[Value]) -> (Bench, bool) {
    let mut bench = bench(EVERYTHING);
    for object in objects {
        bench.edit(kind(object), name(object), json!({"metadata": {"labels": {"team": "a"}}, "spec": object["spec"]}));
    }
    converge(&mut bench);
    let (agents, others): (Vec<_>, Vec<_>) = objects.iter().partition(|object| kind(object) == Kind::KaosAgent);
    let called = |object: &Value| format!("{}{}", prefix(object), name(object));
    let early = agents.iter().any(|agent| bench.find(Kind::Deployment, &called(agent)).is_some());
    for object in others.into_iter().chain(agents) {
        bench.rolled_out(&called(object));
        converge(&mut bench);
    }
    for object in objects {
        assert!(
            says(&bench, kind(object), name(object)).1,
            "{}: {:?}",
            name(object),
            says(&bench, kind(object), name(object))
        );
    }
    (bench, early)
}

/// What was built of one object.
struct Made<'a> {
    object: &'a Value,
    bench: &'a Bench,
    early: bool,
}

impl Made<'_> {
    fn deployment(&self) -> Value {
        self.bench.object(Kind::Deployment, &format!("{}{}", prefix(self.object), name(self.object)))
    }

    fn container(&self) -> Value {
        self.deployment()["spec"]["template"]["spec"]["containers"][0].clone()
    }

    fn entry(&self, variable: &str) -> Value {
        let env = self.container()["env"].as_array().cloned().unwrap_or_default();
        env.into_iter().find(|entry| entry["name"] == variable).unwrap_or_default()
    }

    fn value(&self, variable: &str) -> String {
        self.entry(variable)["value"].as_str().unwrap_or_default().to_owned()
    }

    fn service(&self) -> Value {
        let called = format!("{}{}", prefix(self.object), name(self.object));
        self.bench.find(Kind::Service, &called).unwrap_or_default()
    }

    fn config(&self) -> String {
        let found = self.bench.find(Kind::ConfigMap, &format!("litellm-config-{}", name(self.object)));
        found.unwrap_or_default()["data"]["config.yaml"].as_str().unwrap_or_default().to_owned()
    }

    /// The value at a path of the object, whatever it is.
    fn said(&self, path: &str) -> Value {
        self.object.pointer(path).cloned().unwrap_or_default()
    }
}

/// A field, and whether the value there is found again in what was built.
type Field = (&'static str, fn(&Made<'_>, &str, &Value) -> bool);

/// In a list of words that is divided by commas.
fn listed(list: &str, word: &Value) -> bool {
    list.split(',').any(|one| *word == one)
}

/// The entry of a variable that a user wrote, of which `path` is a member, as it stands in the container.
fn entry(made: &Made<'_>, path: &str) -> bool {
    let (list, rest) = path.split_once("/env/").unwrap();
    let written = made.said(&format!("{list}/env/{}", rest.split('/').next().unwrap()));
    made.entry(written["name"].as_str().unwrap()) == written
}

/// Requests and limits below `path` stand in the container.
fn resources(made: &Made<'_>, path: &str, value: &Value) -> bool {
    let (_, inner) = path.split_once("/resources/").unwrap();
    made.container().pointer(&format!("/resources/{inner}")) == Some(value)
}

/// Every field that a sample has, and where it is found again. `N` is any number.
const FIELDS: &[Field] = &[
    // ModelAPIs.
    ("ModelAPI /spec/mode", |made, _, value| match value.as_str() {
        Some("Hosted") => made.service()["spec"]["ports"][0]["port"] == 11434 && made.config().is_empty(),
        _ => made.service()["spec"]["ports"][0]["port"] == 8000 && !made.config().is_empty(),
    }),
    ("ModelAPI /spec/proxyConfig/provider", |made, _, value| {
        made.config().contains(&format!("{}/", value.as_str().unwrap()))
    }),
    ("ModelAPI /spec/proxyConfig/apiBase", |made, _, value| {
        made.config().contains(value.as_str().unwrap()) || *value == made.value("PROXY_API_BASE")
    }),
    ("ModelAPI /spec/proxyConfig/models/N", |made, _, value| made.config().contains(value.as_str().unwrap())),
    ("ModelAPI /spec/proxyConfig/model", |made, _, value| made.config().contains(value.as_str().unwrap())),
    ("ModelAPI /spec/proxyConfig/configYaml", |made, _, value| *value == made.config()),
    ("ModelAPI /spec/proxyConfig/apiKey/valueFrom/secretKeyRef/name", |made, _, value| {
        made.entry("PROXY_API_KEY")["valueFrom"]["secretKeyRef"]["name"] == *value
    }),
    ("ModelAPI /spec/proxyConfig/apiKey/valueFrom/secretKeyRef/key", |made, _, value| {
        made.entry("PROXY_API_KEY")["valueFrom"]["secretKeyRef"]["key"] == *value
    }),
    ("ModelAPI /spec/proxyConfig/env/N/*", |made, path, _| entry(made, path)),
    ("ModelAPI /spec/hostedConfig/env/N/*", |made, path, _| entry(made, path)),
    ("ModelAPI /spec/serverConfig/env/N/*", |made, path, _| entry(made, path)),
    ("ModelAPI /spec/container/env/N/*", |made, path, _| entry(made, path)),
    ("ModelAPI /spec/hostedConfig/model", |made, _, value| pulls(made, value)),
    ("ModelAPI /spec/serverConfig/model", |made, _, value| pulls(made, value)),
    ("ModelAPI /spec/serverConfig/resources/*", resources),
    // MCPServers.
    ("MCPServer /spec/runtime", |made, _, value| *value == "python-string" && made.container()["image"] == "tools:1"),
    ("MCPServer /spec/params", |made, _, value| *value == made.value("MCP_TOOLS_STRING")),
    ("MCPServer /spec/config/tools/fromString", |made, _, value| *value == made.value("MCP_TOOLS_STRING")),
    ("MCPServer /spec/config/toolsString", |made, _, value| *value == made.value("MCP_TOOLS_STRING")),
    ("MCPServer /spec/config/mcp", |made, _, value| installs(made, value)),
    ("MCPServer /spec/config/env/N/*", |made, path, _| entry(made, path)),
    ("MCPServer /spec/resources/*", resources),
    // Follows from the source of the tools: a server of Python is what runs.
    ("MCPServer /spec/type", |made, _, value| {
        *value == "python-runtime" && ["tools:1", "python:1"].iter().any(|image| made.container()["image"] == *image)
    }),
    // Agents.
    ("Agent /spec/modelAPI", |made, _, value| {
        made.value("MODEL_API_URL").starts_with(&format!("http://modelapi-{}.team.svc.", value.as_str().unwrap()))
    }),
    ("Agent /spec/model", |made, _, value| *value == made.value("MODEL_NAME")),
    ("Agent /spec/mcpServers/N", |made, _, value| {
        let url = made.value(&format!("MCP_SERVER_{}_URL", value.as_str().unwrap()));
        listed(&made.value("MCP_SERVERS"), value) && url.contains(value.as_str().unwrap())
    }),
    ("Agent /spec/agentNetwork/access/N", |made, _, value| listed(&made.value("PEER_AGENTS"), value)),
    ("Agent /spec/agentNetwork/expose", |made, _, value| *value == json!(!made.service().is_null())),
    ("Agent /spec/waitForDependencies", |made, _, value| *value == json!(!made.early)),
    ("Agent /spec/config/description", |made, _, value| *value == made.value("AGENT_DESCRIPTION")),
    ("Agent /spec/config/instructions", |made, _, value| *value == made.value("AGENT_INSTRUCTIONS")),
    ("Agent /spec/config/reasoningLoopMaxSteps", |made, _, value| {
        *value.to_string() == made.value("AGENTIC_LOOP_MAX_STEPS")
    }),
    ("Agent /spec/config/agenticLoop/maxSteps", |made, _, value| {
        *value.to_string() == made.value("AGENTIC_LOOP_MAX_STEPS")
    }),
    ("Agent /spec/config/agenticLoop/enableTools", |made, _, value| {
        *value.to_string() == made.value("AGENTIC_LOOP_ENABLE_TOOLS")
    }),
    ("Agent /spec/config/agenticLoop/enableDelegation", |made, _, value| {
        *value.to_string() == made.value("AGENTIC_LOOP_ENABLE_DELEGATION")
    }),
    ("Agent /spec/config/memory/enabled", |made, _, value| *value.to_string() == made.value("MEMORY_ENABLED")),
    ("Agent /spec/config/memory/type", |made, _, value| *value == made.value("MEMORY_TYPE")),
    ("Agent /spec/config/memory/contextLimit", |made, _, value| {
        *value.to_string() == made.value("MEMORY_CONTEXT_LIMIT")
    }),
    ("Agent /spec/config/memory/maxSessions", |made, _, value| *value.to_string() == made.value("MEMORY_MAX_SESSIONS")),
    ("Agent /spec/config/env/N/*", |made, path, _| entry(made, path)),
    ("Agent /spec/container/env/N/*", |made, path, _| entry(made, path)),
    ("Agent /spec/resources/*", resources),
    ("Agent /spec/replicas", |made, _, value| made.deployment()["spec"]["replicas"] == *value),
    ("Agent /spec/gatewayRoute/timeout", |made, _, value| {
        let route = made.bench.object(Kind::HttpRoute, &format!("agent-{}", name(made.object)));
        route["spec"]["rules"][0]["timeouts"]["request"] == *value
    }),
    ("Agent /spec/podSpec/containers/N/name", |made, _, value| made.container()["name"] == *value),
    ("Agent /spec/podSpec/containers/N/resources/*", resources),
];

/// The model is pulled before the server is ready.
fn pulls(made: &Made<'_>, model: &Value) -> bool {
    let init = made.deployment()["spec"]["template"]["spec"]["initContainers"].as_array().cloned().unwrap_or_default();
    let pull = init.into_iter().find(|one| one["name"] == "pull-model").unwrap_or_default();
    pull["args"].as_array().is_some_and(|args| args.contains(model))
}

/// The package is an argument of what is run.
fn installs(made: &Made<'_>, package: &Value) -> bool {
    let container = made.container();
    let words = ["command", "args"].into_iter().filter_map(|key| container[key].as_array()).flatten();
    words.into_iter().any(|word| word == package)
}

/// Every leaf below `value`, as pointer.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| leaves(member, &format!("{at}/{key}"), found))
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| leaves(item, &format!("{at}/{index}"), found));
        }
        _ => found.push(at.to_owned()),
    }
}

/// Whether a path is that of a field.
fn is_of(field: &str, path: &str) -> bool {
    let open = field.strip_suffix("/*");
    let (wanted, said): (Vec<_>, Vec<_>) = (open.unwrap_or(field).split('/').collect(), path.split('/').collect());
    let long_enough = if open.is_some() { said.len() > wanted.len() } else { said.len() == wanted.len() };
    let same = |(wanted, said): (&&str, &&str)| {
        wanted == said || (*wanted == "N" && said.bytes().all(|byte| byte.is_ascii_digit()))
    };
    long_enough && wanted.iter().zip(&said).all(same)
}

#[test]
fn every_field_of_every_sample_is_found_again_in_what_was_built() {
    let mut used = std::collections::BTreeSet::new();
    for (sample, text) in SAMPLES {
        let objects = documents(text);
        let (bench, early) = built(&objects);
        for object in &objects {
            let made = Made { object, bench: &bench, early };
            let mut found = Vec::new();
            leaves(&object["spec"], "/spec", &mut found);
            for path in found {
                let said = format!("{} {path}", object["kind"].as_str().unwrap());
                let field = FIELDS.iter().find(|(field, _)| is_of(field, &said));
                let (field, holds) =
                    field.unwrap_or_else(|| panic!("{sample}: nobody says where {said} is found again"));
                let value = object.pointer(&path).unwrap();
                assert!(
                    holds(&made, &path, value),
                    "{sample}: {} {said}: {value} is not in what was built",
                    name(object)
                );
                used.insert(*field);
            }
        }
    }
    let unused: Vec<_> = FIELDS.iter().filter(|(field, _)| !used.contains(field)).map(|(field, _)| field).collect();
    assert!(unused.is_empty(), "no sample has {unused:?}");
}

#[test]
fn what_migrate_makes_of_every_sample_builds_the_same_objects() {
    for (sample, text) in SAMPLES {
        let old = documents(text);
        let new: Vec<_> = old.iter().map(|object| migrate(object).object).collect();
        assert!(sample.starts_with("m-") || old != new, "{sample}: nothing was migrated");
        let ((before, early), (after, late)) = (built(&old), built(&new));
        assert_eq!(early, late, "{sample}");
        for object in &old {
            let made = format!("{}{}", prefix(object), name(object));
            let route = if kind(object) == Kind::McpServer { format!("mcp-{}", name(object)) } else { made.clone() };
            for kind in BUILT {
                let called = match kind {
                    Kind::ConfigMap => format!("litellm-config-{}", name(object)),
                    Kind::HttpRoute => route.clone(),
                    _ => made.clone(),
                };
                let of = |bench: &Bench| {
                    bench.find(kind, &called).map(|object| {
                        (object["spec"].clone(), object["data"].clone(), object["metadata"]["labels"].clone())
                    })
                };
                assert_eq!(of(&before), of(&after), "{sample}: {} {called}", kind.as_str());
                assert!(kind != Kind::Deployment || of(&before).is_some(), "{sample}: {called}");
            }
        }
    }
}
