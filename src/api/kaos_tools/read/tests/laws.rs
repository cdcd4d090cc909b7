//! Laws over objects nobody wrote: any mixture of spellings.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::object;
use crate::api::kaos_tools::migrate::migrate;
use crate::api::kaos_tools::read;

fn env() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec![
        "A",
        "my-var",
        "MODEL_NAME",
        "MCP_TOOLS_STRING",
        "AGENTIC_LOOP_ENABLE_TOOLS",
        "AGENT_DEBUG_MEMORY_ENDPOINTS",
        "",
    ]);
    let values = prop::sample::select(vec!["x", "true", "false", "$(A)", ""]);
    let literal = (names.clone(), values).prop_map(|(name, value)| json!({"name": name, "value": value}));
    let secret = names.prop_map(|name| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}));
    prop::collection::vec(prop_oneof![4 => literal, 1 => secret], 0..4).prop_map(Value::Array)
}

fn one(values: &[Value]) -> BoxedStrategy<Value> {
    prop::sample::select(values.to_vec()).boxed()
}

fn texts() -> BoxedStrategy<Value> {
    one(&[json!("x"), json!("y"), json!(""), json!(null), json!(7), json!("*")])
}

fn any() -> BoxedStrategy<Value> {
    one(&[json!("x"), json!(1), json!([]), json!({}), json!({"unknown": 1}), json!(true)])
}

/// A mapping in which each member may stand or be missing.
fn mapping(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    members
        .into_iter()
        .map(|(name, value)| prop::option::weighted(0.35, value).prop_map(move |value| (name, value)).boxed())
        .collect::<Vec<_>>()
        .prop_map(|members| {
            let there = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(there.collect::<Map<_, _>>())
        })
        .boxed()
}

fn container() -> BoxedStrategy<Value> {
    let resources = one(&[json!({"limits": {"cpu": 1}}), json!({"limits": {"cpu": "2"}})]);
    mapping(vec![("env", env().boxed()), ("image", texts()), ("resources", resources), ("later", any())])
}

fn agents() -> BoxedStrategy<Value> {
    let flag = || one(&[json!(true), json!(false)]);
    let steps = || one(&[json!(3), json!(4)]);
    let agentic =
        mapping(vec![("maxSteps", steps()), ("enableTools", flag()), ("enableDelegation", flag()), ("later", any())]);
    let config = mapping(vec![
        ("env", env().boxed()),
        ("agenticLoop", agentic),
        ("reasoningLoopMaxSteps", steps()),
        ("description", texts()),
        ("memory", one(&[json!({}), json!({"enabled": false})])),
        ("later", any()),
    ]);
    let resources = one(&[json!({"limits": {"cpu": 1}}), json!({})]);
    mapping(vec![
        ("modelAPI", one(&[json!("m")])),
        ("model", texts()),
        ("config", config),
        ("container", container()),
        ("resources", resources),
        ("replicas", one(&[json!(1), json!(2)])),
        ("mcpServers", one(&[json!(["b", "a"])])),
        ("later", any()),
    ])
    .prop_map(|spec| object("Agent", "a", spec))
    .boxed()
}

fn model_apis() -> BoxedStrategy<Value> {
    let yaml = one(&[
        json!("model_list: []"),
        json!({"fromString": "a: 1"}),
        json!({"fromSecretKeyRef": {"name": "s", "key": "k"}}),
        json!("- x"),
    ]);
    let key =
        one(&[json!({"value": "k"}), json!({}), json!({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}})]);
    let proxy = mapping(vec![
        ("models", one(&[json!(["x"]), json!(["*"]), json!([])])),
        ("model", texts()),
        ("apiBase", texts()),
        ("provider", texts()),
        ("env", env().boxed()),
        ("configYaml", yaml),
        ("apiKey", key),
        ("later", any()),
    ]);
    let server = || {
        mapping(vec![("model", texts()), ("env", env().boxed()), ("resources", one(&[json!({"limits": {"cpu": 1}})]))])
    };
    let offers = one(&[
        json!([{"name": "x", "fallbacks": ["y"]}, {"name": "y", "budget": {"limit": "1", "period": "1d"}, "later": 1}]),
        json!([{"name": "x", "fallbacks": ["x"]}]),
        json!([]),
        json!(null),
    ]);
    mapping(vec![
        ("mode", one(&[json!("Proxy"), json!("Hosted")])),
        ("models", offers),
        ("proxyConfig", proxy),
        ("hostedConfig", server()),
        ("serverConfig", server()),
        ("container", container()),
        ("later", any()),
    ])
    .prop_map(|mut spec| {
        if spec.get("mode").is_none() {
            spec["mode"] = json!("Proxy");
        }
        object("ModelAPI", "m", spec)
    })
    .boxed()
}

fn servers() -> BoxedStrategy<Value> {
    let secret = one(&[json!({"name": "s", "key": "k"})]);
    let tools = mapping(vec![
        ("fromString", texts()),
        ("fromPackage", texts()),
        ("fromSecretKeyRef", secret),
        ("later", any()),
    ]);
    let config = mapping(vec![
        ("tools", tools),
        ("toolsString", texts()),
        ("mcp", texts()),
        ("env", env().boxed()),
        ("later", any()),
    ]);
    mapping(vec![
        ("runtime", one(&[json!("python-string"), json!("custom"), json!("kubernetes")])),
        ("params", texts()),
        ("config", config),
        ("type", one(&[json!("python-runtime"), json!("node-runtime")])),
        ("container", container()),
        ("later", any()),
    ])
    .prop_map(|spec| object("MCPServer", "t", spec))
    .boxed()
}

/// Members called `later`, which nobody knows, with what stands there.
fn unknown(value: &Value, at: &str, found: &mut Vec<(String, Value)>) {
    for (key, member) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{key}");
        if key == "later" { found.push((at, member.clone())) } else { unknown(member, &at, found) }
    }
}

fn holds<T: PartialEq + std::fmt::Debug>(object: &Value, look: fn(&Value) -> read::Looked<T>) {
    let old = look(object);
    assert_eq!(old, look(object), "the same twice");
    let new = migrate(object);
    assert_eq!(new.faults, old.faults);
    if !new.faults.is_empty() {
        assert_eq!(new.object, *object);
        return;
    }
    let read = look(&new.object);
    assert_eq!((&read.faults, &read.conflicts), (&vec![], &vec![]), "{object} became {}", new.object);
    assert_eq!(read.value, old.value, "{object} became {}", new.object);
    assert_eq!(migrate(&new.object).object, new.object, "once is enough");
    let (mut before, mut after) = (Vec::new(), Vec::new());
    unknown(object, "", &mut before);
    unknown(&new.object, "", &mut after);
    assert_eq!(before, after, "members that nobody knows stay");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_what_was_migrated_gives_the_same_value(agent in agents(), api in model_apis(), server in servers()) {
        holds(&agent, read::agent);
        holds(&api, read::model_api);
        holds(&server, read::mcp_server);
    }
}
