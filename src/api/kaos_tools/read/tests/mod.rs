//! What objects mean: cases of KAOS (docs/cases.md) that need no cluster, and rows of the table of old spellings.

mod laws;
mod offers;
mod quickstart;
mod refused;

use serde_json::{Value, json};

use super::{Alias, Looked};
use crate::api::kaos_tools::shape::{Agent, ApiKey, Configuration, KeyRef, McpServer, Mode, Model, ModelApi, Runtime};
use crate::api::kaos_tools::{models, read};
use crate::domain::reason::Reason;

pub(super) fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "ns"}, "spec": spec})
}

pub(super) fn agent(mut spec: Value) -> Looked<Agent> {
    if spec.get("modelAPI").is_none() {
        spec["modelAPI"] = json!("m");
    }
    read::agent(&object("Agent", "a", spec))
}

pub(super) fn model_api(spec: Value) -> Looked<ModelApi> {
    read::model_api(&object("ModelAPI", "m", spec))
}

pub(super) fn proxy(config: Value) -> Looked<ModelApi> {
    model_api(json!({"mode": "Proxy", "proxyConfig": config}))
}

pub(super) fn mcp_server(spec: Value) -> Looked<McpServer> {
    read::mcp_server(&object("MCPServer", "t", spec))
}

pub(super) fn sound<T>(looked: Looked<T>) -> Looked<T> {
    assert_eq!(looked.faults, []);
    assert_eq!(looked.conflicts, []);
    looked
}

fn names(env: &[crate::api::kaos_tools::shape::Variable]) -> Vec<&str> {
    env.iter().map(|variable| variable.name.as_str()).collect()
}

#[test]
fn cases_05_to_08_the_model_of_every_spelling() {
    let variable = |value: Value| json!({"config": {"env": [value, {"name": "A", "value": "1"}]}});
    let literal = sound(agent(variable(json!({"name": "MODEL_NAME", "value": "foo"}))));
    assert_eq!(literal.value.model, Model::Named("foo".to_owned()));
    assert_eq!(names(&literal.value.container.env), ["A"], "case 5: exactly one");
    assert!(!literal.checks_model() && literal.uses(Alias::ModelVariable));
    let none = sound(agent(json!({})));
    assert_eq!(none.value.model, Model::Named("smollm2:135m".to_owned()), "case 6");
    assert!(!none.checks_model());
    let secret = json!({"name": "MODEL_NAME", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let kept = sound(agent(variable(secret.clone())));
    assert_eq!(kept.value.model, Model::Variable, "case 7: the default is not added");
    assert_eq!(kept.value.container.env[0].entry, secret, "case 7: the reference is kept");
    let said = sound(agent(json!({"model": "openai/gpt-4o"})));
    assert_eq!(said.value.model, Model::Named("openai/gpt-4o".to_owned()), "case 8");
    assert!(said.checks_model());
    // Kubernetes expands it where it stands, and nowhere else.
    let expanded = sound(agent(variable(json!({"name": "MODEL_NAME", "value": "$(PROVIDER)/x"}))));
    assert_eq!(expanded.value.model, Model::Variable);
    // Regressions 31 and 33: the default neither doubles what is there nor is left out; 29 and 34: no config is no crash.
    for (env, wanted) in [(json!([]), "smollm2:135m"), (json!([{"name": "MODEL_NAME", "value": "b"}]), "b")] {
        assert_eq!(sound(agent(json!({"config": {"env": env}}))).value.model, Model::Named(wanted.to_owned()));
    }
}

#[test]
fn cases_09_to_12_the_loop_of_every_spelling() {
    let steps = |spec: Value| sound(agent(spec)).value.max_steps;
    assert_eq!(steps(json!({"config": {"agenticLoop": {"maxSteps": 7}}})), Some(7), "case 9");
    assert_eq!(steps(json!({"config": {"reasoningLoopMaxSteps": 7}})), Some(7), "case 10");
    assert_eq!(steps(json!({})), None, "case 10");
    assert_eq!(steps(json!({"config": {}})), Some(5), "case 10, in code");
    assert_eq!(steps(json!({"config": {"agenticLoop": {"maxSteps": 3}, "reasoningLoopMaxSteps": 3}})), Some(3));
    let both = agent(json!({"config": {"agenticLoop": {"maxSteps": 3}, "reasoningLoopMaxSteps": 4}}));
    assert_eq!((both.value.max_steps, both.conflicts.len()), (Some(4), 1), "the new one wins past the webhook");
    let switches = |spec: Value| {
        let value = sound(agent(spec)).value;
        (value.loop_tools, value.loop_delegation, value.debug_memory)
    };
    assert_eq!(
        switches(json!({"config": {"agenticLoop": {"enableTools": false}}})),
        (Some(false), None, true),
        "case 11"
    );
    assert_eq!(
        switches(json!({"config": {"agenticLoop": {"enableDelegation": true}}})),
        (None, Some(true), true),
        "case 12"
    );
    assert_eq!(switches(json!({})), (None, None, false));
}

/// Case 15, as D6 is ruled: only what the oldest version alone had brings the variable; the user's own counts.
#[test]
fn case_15_debug_endpoints_of_memory() {
    let debug = |spec: Value| sound(agent(spec)).value;
    assert!(debug(json!({"resources": {"limits": {"cpu": "1"}}})).debug_memory);
    assert!(debug(json!({"config": {"agenticLoop": {}}})).debug_memory);
    assert!(!debug(json!({"replicas": 2})).debug_memory, "an autoscaler would roll the agent");
    let own = debug(
        json!({"config": {"agenticLoop": {}, "env": [{"name": "AGENT_DEBUG_MEMORY_ENDPOINTS", "value": "false"}]}}),
    );
    assert!(!own.debug_memory);
    assert_eq!(names(&own.container.env), ["AGENT_DEBUG_MEMORY_ENDPOINTS"], "the user's is the only one");
}

/// Regressions 30 and 38: an empty text is none, another one is kept; 35 to 37: no memory is no crash.
#[test]
fn cases_02_55_to_57_texts_and_memory() {
    let value = sound(agent(json!({"config": {"description": "", "instructions": "a\nb $(X)"}}))).value;
    assert_eq!((value.description, value.instructions.as_deref(), value.memory), (None, Some("a\nb $(X)"), None));
    let memory = |memory: Value| sound(agent(json!({"config": {"memory": memory}}))).value.memory.unwrap();
    let default = memory(json!({}));
    assert_eq!((default.enabled, &*default.kind, default.context_limit), (true, "local", 6), "case 55");
    assert_eq!((default.max_sessions, default.max_session_events), (1000, 500), "case 55");
    assert!(!memory(json!({"enabled": false})).enabled, "case 57");
    assert_eq!(memory(json!({"type": "local", "contextLimit": 12})).context_limit, 12);
}

/// Cases 60, 65, 66, 85 and regressions 16, 17 and 28: what is absent is no crash.
#[test]
fn case_60_names_count_once_and_what_is_absent_has_its_default() {
    let looked = sound(agent(json!({"mcpServers": ["b", "a", "b"], "agentNetwork": {"access": ["p", "p"]}})));
    assert_eq!(
        (&looked.value.mcp_servers[..], &looked.value.access[..]),
        (&["b".to_owned(), "a".to_owned()][..], &["p".to_owned()][..])
    );
    assert!(looked.value.expose && looked.value.waits);
    assert_eq!((looked.value.timeout, looked.value.pod_spec), (None, None));
    let off = sound(agent(json!({"agentNetwork": {"expose": false}, "waitForDependencies": false}))).value;
    assert!(!off.expose && !off.waits);
}

#[test]
fn case_61_environments_are_joined_in_order_and_of_one_name_the_later_wins() {
    let looked = sound(agent(json!({
        "config": {"env": [{"name": "A", "value": "old"}, {"name": "B", "value": "1"}]},
        "container": {"env": [{"name": "A", "value": "new"}, {"name": "my-var.x", "value": "2"}]},
    })));
    assert_eq!(names(&looked.value.container.env), ["B", "A", "my-var.x"]);
    assert_eq!(looked.value.container.env[1].literal(), Some("new"));
    let note = looked.notes.iter().find(|note| note.reason == Reason::ValueShadowed).unwrap();
    assert!(note.path == "spec.config.env[0]" && note.text.contains("spec.container.env[0]"), "{note}");
}

#[test]
fn resources_have_two_spellings_on_every_kind() {
    let limits = json!({"limits": {"cpu": 1}});
    let old = sound(agent(json!({"resources": limits}))).value;
    let new = sound(agent(json!({"container": {"resources": limits}}))).value;
    assert_eq!(old.container, new.container);
    let server = json!({"mode": "Hosted", "serverConfig": {"model": "x", "resources": limits, "env": [{"name": "A", "value": "1"}]}});
    let server = sound(model_api(server)).value;
    assert_eq!((server.hosted.unwrap().model, server.container.resources), ("x".to_owned(), Some(limits.clone())));
    assert_eq!(names(&server.container.env), ["A"]);
    let tools = sound(mcp_server(json!({"runtime": "python-string", "params": "x", "resources": limits}))).value;
    assert_eq!(tools.container.resources, Some(limits));
    let both =
        agent(json!({"resources": {"limits": {"cpu": "2"}}, "container": {"resources": {"limits": {"cpu": "1"}}}}));
    assert_eq!(both.conflicts[0].path, "spec.container.resources");
    assert!(both.conflicts[0].sentence.contains("spec.resources"), "{}", both.conflicts[0]);
}

fn text(looked: &Looked<ModelApi>) -> Value {
    match looked.value.proxy.as_ref().unwrap().configuration.as_ref().unwrap() {
        Configuration::Text(text) => crate::api::yaml::parse(text).unwrap().to_json(),
        Configuration::Secret(_) => panic!("a text"),
    }
}

#[test]
fn cases_93_to_99_the_proxy_of_every_spelling() {
    let verbatim = sound(proxy(json!({"configYaml": {"fromString": "model_list: []"}, "apiBase": "http://b"})));
    assert_eq!(
        verbatim.value.proxy.as_ref().unwrap().configuration,
        Some(Configuration::Text("model_list: []".to_owned())),
        "case 93"
    );
    let wildcard = sound(proxy(json!({"apiBase": "http://b: \"x\""})));
    let entry = json!({"model_name": "*", "litellm_params": {"model": "*", "api_base": "http://b: \"x\""}});
    assert_eq!(text(&wildcard), json!({"model_list": [entry], "litellm_settings": {"drop_params": true}}), "case 94");
    assert!(wildcard.uses(Alias::ProxyWildcard) && !wildcard.checks_model());
    assert_eq!(wildcard.value.offered(), ["*"]);
    let one = sound(proxy(json!({"model": "x", "env": [{"name": "K", "value": "v"}]})));
    let read = one.value.proxy.as_ref().unwrap();
    assert_eq!(
        (&read.models[..], &read.api_base, &read.configuration),
        (&["x".to_owned()][..], &None, &None),
        "case 95"
    );
    for nothing in [json!({}), json!({"env": [{"name": "OPENAI_API_KEY", "value": "k"}]})] {
        let looked = sound(proxy(nothing));
        let entry = json!({"model_name": "*", "litellm_params": {"model": "gpt-3.5-turbo"}});
        assert_eq!(text(&looked)["model_list"], json!([entry]), "the command line of the oldest version");
        assert!(looked.notes.iter().any(|note| note.reason == Reason::DefaultModel));
    }
    let today = json!({"models": ["a", "b"], "provider": "p", "apiBase": "http://b", "apiKey": {"value": "k"}});
    let today = sound(proxy(today)).value.proxy.unwrap();
    assert_eq!((today.provider.as_deref(), today.api_base.as_deref()), (Some("p"), Some("http://b")), "case 96");
    assert_eq!(today.api_key, Some(ApiKey::Literal("k".to_owned())), "case 99");
    let secret = KeyRef { name: "s".to_owned(), key: "k".to_owned(), optional: None };
    let from = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let by_secret = sound(proxy(json!({"models": ["a"], "apiKey": {"valueFrom": from}}))).value.proxy.unwrap();
    assert_eq!(by_secret.api_key, Some(ApiKey::Secret(secret.clone())), "case 99");
    let both = sound(proxy(json!({"models": ["a"], "apiKey": {"value": "k", "valueFrom": from}}))).value.proxy.unwrap();
    assert_eq!(both.api_key, Some(ApiKey::Literal("k".to_owned())), "case 99: the literal");
    let mounted =
        sound(proxy(json!({"configYaml": {"fromSecretKeyRef": {"name": "s", "key": "k"}}}))).value.proxy.unwrap();
    assert_eq!(mounted.configuration, Some(Configuration::Secret(secret)), "case 110");
    // The oldest spelling: a text; with LiteLLM's own merge keys.
    let old = sound(proxy(json!({"configYaml": "a: &a {x: 1}\nb:\n  <<: *a\n"})));
    assert!(old.uses(Alias::ConfigText) && old.checks_model(), "nothing is compared with it, since it says no models");
    assert!(old.value.offered().is_empty());
    // What has a provider or a key is of today, although it names no model.
    let mixed = sound(proxy(json!({"apiBase": "http://b", "apiKey": {"value": "k"}}))).value.proxy.unwrap();
    assert_eq!((&mixed.models[..], mixed.configuration, mixed.api_base.is_some()), (&["*".to_owned()][..], None, true));
}

/// The version that had both took the configuration as it is, whatever the one model was.
#[test]
fn one_model_beside_a_configuration_has_no_part_in_it() {
    let yaml = "model_list:\n- model_name: z\n";
    for written in [json!({"fromString": yaml}), json!(yaml)] {
        let looked = sound(proxy(json!({"model": "gpt-4o", "apiBase": "http://b", "configYaml": written})));
        let own = looked.value.proxy.as_ref().unwrap();
        assert_eq!(read::strangers(own), Vec::<String>::new(), "{written}");
        assert!(own.models.is_empty() && looked.value.offered().is_empty(), "nothing is compared with it");
        let told = looked.notes.iter().find(|note| note.path == "spec.proxyConfig.model").unwrap();
        assert_eq!(told.reason, Reason::FieldUnused);
    }
}

#[test]
fn an_environment_of_the_other_mode_is_the_containers_and_is_said_to_be() {
    let env = json!([{"name": "K", "value": "v"}]);
    let both = json!({"mode": "Hosted", "hostedConfig": {"model": "x"}, "proxyConfig": {"models": ["a"], "env": env}});
    let looked = sound(model_api(both));
    assert_eq!(names(&looked.value.container.env), ["K"]);
    let told = looked.notes.iter().find(|note| note.path == "spec.proxyConfig").unwrap();
    assert!(told.text.contains("but for its env"), "{told}");
}

/// A name with a namespace names nothing, and neither does one that no object of that kind can have.
#[test]
fn names_that_no_object_has_are_told_and_nothing_is_wrong_for_them() {
    let looked = sound(agent(json!({
        "modelAPI": "models/llm", "mcpServers": ["stock", "My_Tool", "a".repeat(54)],
        "agentNetwork": {"access": ["other/clerk", "clerk"]},
    })));
    let told: Vec<_> = looked.notes.iter().map(|note| (note.reason, &*note.path)).collect();
    let paths = ["spec.modelAPI", "spec.mcpServers[1]", "spec.mcpServers[2]", "spec.agentNetwork.access[0]"];
    assert_eq!(told, paths.map(|path| (Reason::FieldInvalid, path)));
    assert!(looked.notes[0].text.contains("\"models/llm\"") && looked.notes[0].text.contains("this namespace"));
    assert_eq!(looked.value.access, ["other/clerk", "clerk"]);
}

/// What is installed is run by its name, so that has to stand first.
#[test]
fn a_package_begins_with_its_name() {
    let looked = |package: &str| sound(mcp_server(json!({"config": {"tools": {"fromPackage": package}}})));
    for (package, is_named) in [
        ("p", true),
        ("mcp.server-x[cli]==1.2", true),
        ("p>=1", true),
        ("p @ https://h/p.whl", true),
        ("@scope/p", false),
        ("mcp/time", false),
        ("https://h/p.whl", false),
        ("git+https://h/p.git", false),
    ] {
        let told = looked(package).notes.iter().any(|note| note.path == "spec.config.tools.fromPackage");
        assert_eq!(told, !is_named, "{package}");
    }
    assert_eq!(looked(" p\n").value.runtime, Runtime::Package("p".to_owned()), "a text of a block ends with a line");
}

#[test]
fn cases_47_48_and_100_which_models_are_offered() {
    for (offered, model, allowed) in [
        (&["*"][..], "any", true),
        (&["openai/*"], "openai/gpt-4o", true),
        (&["openai/*"], "openai", false),
        (&["openai/*"], "azure/gpt", false),
        (&["gpt-*"], "gpt-4", false),
        (&["gpt-*"], "gpt-*", true),
        (&["a", "b"], "b", true),
        (&["a"], "A", false),
        (&["smollm2:135m"], "smollm2:135m", true),
        (&[], "a", false),
    ] {
        assert_eq!(models::allows(offered, model), allowed, "{offered:?} {model}");
    }
    let yaml = "model_list:\n- model_name: z\n- model_name: a\n- {litellm_params: {}}\n";
    let with = |models: Value| {
        let looked = proxy(json!({"models": models, "configYaml": {"fromString": yaml}}));
        read::strangers(looked.value.proxy.as_ref().unwrap())
    };
    assert_eq!(with(json!(["a"])), ["z"], "case 100");
    assert!(with(json!(["*"])).is_empty(), "case 100");
    assert!(
        read::strangers(proxy(json!({"configYaml": yaml})).value.proxy.as_ref().unwrap()).is_empty(),
        "nothing is compared without models"
    );
    let hosted = sound(model_api(json!({"mode": "Hosted", "hostedConfig": {"model": "x; reboot"}})));
    assert_eq!(
        (hosted.value.mode, hosted.value.offered()),
        (Mode::Hosted, vec!["x; reboot"]),
        "cases 48 and 111: it is data"
    );
}

#[test]
fn cases_18_19_and_113_to_119_the_tools_of_every_spelling() {
    let python = || Runtime::Registered("python-string".to_owned());
    for config in [json!({"mcp": "mcp-server-calculator"}), json!({"tools": {"fromPackage": "mcp-server-calculator"}})]
    {
        let value = sound(mcp_server(json!({"type": "python-runtime", "config": config}))).value;
        assert_eq!(
            (value.runtime, value.params),
            (Runtime::Package("mcp-server-calculator".to_owned()), None),
            "case 18"
        );
    }
    for config in [json!({"toolsString": "def f(): $x"}), json!({"tools": {"fromString": "def f(): $x"}})] {
        let value = sound(mcp_server(json!({"type": "python-runtime", "config": config}))).value;
        assert_eq!((value.runtime, value.params.as_deref()), (python(), Some("def f(): $x")), "case 19");
    }
    let secret = json!({"name": "s", "key": "k"});
    let both = sound(mcp_server(json!({"config": {"tools": {"fromString": "x", "fromPackage": "p"}}})));
    assert_eq!((&both.value.runtime, both.value.params.as_deref()), (&python(), Some("x")), "case 113");
    assert!(both.notes.iter().any(|note| note.path == "spec.config.tools.fromPackage"));
    let with_secret =
        json!({"tools": {"fromSecretKeyRef": secret, "fromPackage": "p"}, "env": [{"name": "A", "value": "1"}]});
    let value = sound(mcp_server(json!({"config": with_secret}))).value;
    assert_eq!((value.runtime, value.params), (python(), None), "case 113");
    assert_eq!(names(&value.container.env), ["MCP_TOOLS_STRING", "A"]);
    assert_eq!(
        value.container.env[0].entry["valueFrom"]["secretKeyRef"], secret,
        "case 113: a reference, never copied"
    );
    let value = sound(mcp_server(json!({"runtime": "kubernetes", "serviceAccountName": "sa"}))).value;
    assert_eq!(
        (value.runtime, value.service_account.as_deref()),
        (Runtime::Registered("kubernetes".to_owned()), Some("sa")),
        "case 116"
    );
    let custom = sound(mcp_server(json!({"runtime": "custom", "params": "x"})));
    assert_eq!(custom.value.runtime, Runtime::Custom, "case 118");
    assert!(
        custom.notes.iter().any(|note| note.path == "spec.container.image"),
        "case 118: the controller says so, too"
    );
    let image = json!({"runtime": "slack", "container": {"image": "i", "command": [], "args": ["a"]}});
    let value = sound(mcp_server(image)).value;
    assert_eq!(value.container.image.as_deref(), Some("i"), "case 119");
    assert_eq!((value.container.command, value.container.args), (Some(vec![]), Some(vec!["a".to_owned()])), "case 119");
    let node = sound(mcp_server(json!({"type": "node-runtime", "config": {"mcp": "p"}})));
    assert!(node.notes.iter().any(|note| note.path == "spec.type"), "it was always run as Python");
    // Both spellings: what is equal passes, what differs is refused with both paths.
    sound(mcp_server(json!({"runtime": "python-string", "params": "x", "config": {"toolsString": "x"}})));
    sound(mcp_server(json!({"runtime": "python-string", "config": {"toolsString": "x"}})));
    for (spec, path) in [
        (json!({"runtime": "python-string", "params": "x", "config": {"toolsString": "y"}}), "spec.params"),
        (json!({"runtime": "kubernetes", "config": {"mcp": "y"}}), "spec.runtime"),
        (json!({"config": {"mcp": "y", "tools": {"fromPackage": "z"}}}), "spec.config.tools.fromPackage"),
        (json!({"config": {"toolsString": "y", "tools": {"fromString": "z"}}}), "spec.config.tools.fromString"),
    ] {
        let looked = mcp_server(spec.clone());
        assert_eq!(looked.faults, [], "{spec}");
        assert_eq!(looked.conflicts.iter().map(|fault| &*fault.path).collect::<Vec<_>>(), [path], "{spec}");
        assert_eq!(looked.conflicts[0].reason, Reason::SpellingConflict);
    }
}

/// No message and no `Debug` shows a value of a variable, a key, a tool's text or a configuration.
#[test]
fn nothing_secret_is_printed() {
    const SECRET: &str = "s3cret-value";
    let env = json!([{"name": "A", "value": SECRET}, {"name": "A", "value": SECRET}]);
    let looked = agent(json!({"config": {"env": env}, "podSpec": {"containers": [{"name": "x", "env": env}]}}));
    let of_api = proxy(json!({"apiKey": {"value": SECRET}, "configYaml": format!("- {SECRET}"), "models": ["a"]}));
    let all = format!("{:?} {:?}", looked, of_api);
    assert!(!all.contains(SECRET), "{all}");
}
