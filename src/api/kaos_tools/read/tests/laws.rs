//! Laws over objects nobody wrote: any mixture of spellings, and lists of any length.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{agent, mcp_server, model_api, object, proxy, sound};
use crate::api::findings::{Fault, KEPT, Note, count};
use crate::api::kaos_tools::migrate::migrate;
use crate::api::kaos_tools::{MOST_ITEMS, read};

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

fn found<T>(looked: read::Looked<T>) -> (Vec<Fault>, Vec<Note>) {
    (looked.faults, looked.notes)
}

/// A list that a tenant writes is as long as he likes, and everybody waits while it is read: past the bound nothing is, in whatever list.
#[test]
fn of_a_list_that_is_too_long_no_more_is_read_and_its_length_is_a_fault() {
    const ITEMS: usize = 30_000;
    let names = |count: usize| json!((0..count).map(|number| format!("n{number}")).collect::<Vec<_>>());
    let twins = |count: usize| json!(vec!["a"; count]);
    let env = |count: usize| json!(vec![json!({"name": "A", "value": "1"}); count]);
    let pod = |list: &str, items: Value| found(agent(json!({ "podSpec": { list: items } })));
    let main = |list: &str, items: Value| pod("containers", json!([{ "name": "agent", list: items }]));
    for (path, (faults, notes)) in [
        ("spec.mcpServers", found(agent(json!({"mcpServers": twins(ITEMS)})))),
        ("spec.mcpServers", found(agent(json!({"mcpServers": names(ITEMS)})))),
        ("spec.agentNetwork.access", found(agent(json!({"agentNetwork": {"access": twins(ITEMS)}})))),
        ("spec.container.args", found(agent(json!({"container": {"args": twins(ITEMS)}})))),
        ("spec.container.env", found(agent(json!({"container": {"env": env(ITEMS)}})))),
        ("spec.config.env", found(mcp_server(json!({"runtime": "x", "config": {"env": env(ITEMS)}})))),
        ("spec.proxyConfig.models", found(proxy(json!({"models": twins(ITEMS)})))),
        ("spec.proxyConfig.models", found(proxy(json!({"models": names(ITEMS)})))),
        ("spec.proxyConfig.env", found(proxy(json!({"models": ["a"], "env": env(ITEMS)})))),
        ("spec.podSpec.containers[0].env", main("env", env(ITEMS))),
        ("spec.podSpec.containers[0].$setElementOrder/env", main("$setElementOrder/env", env(ITEMS))),
        ("spec.podSpec.schedulingGates", pod("schedulingGates", env(ITEMS))),
        ("spec.podSpec.affinity.any", pod("affinity", json!({"any": names(ITEMS)}))),
    ] {
        let told = faults.iter().find(|fault| fault.path == path);
        let told = told.unwrap_or_else(|| panic!("{path}: {:?}", faults.first()));
        assert_eq!(told.sentence, format!("has {ITEMS} items; {MOST_ITEMS} are the most"), "{path}");
        assert!(faults.len() <= KEPT + 1 && notes.len() <= KEPT + 1, "{path}: {} {}", faults.len(), notes.len());
        // What is not read is not found either.
        assert!(count(&faults) <= MOST_ITEMS + 1, "{path}: {}", count(&faults));
    }
    assert_eq!(agent(json!({"mcpServers": names(ITEMS)})).value.mcp_servers.len(), MOST_ITEMS);
    let most = sound(agent(json!({"mcpServers": names(MOST_ITEMS), "container": {"env": env(MOST_ITEMS)}})));
    assert_eq!((most.value.mcp_servers.len(), most.value.container.env.len()), (MOST_ITEMS, 1));
    // As many twins as there may be: the first are named, and the others counted.
    let last = most.notes.last().unwrap();
    assert_eq!((most.notes.len(), last.others), (KEPT + 1, MOST_ITEMS - 1 - KEPT), "{last}");
}

/// To look for the name that was meant costs more than to read: it is done while people read what is said.
#[test]
fn what_was_meant_is_looked_for_as_long_as_somebody_reads_it() {
    let fallbacks: Vec<_> = (0..90).map(|number| format!("model-{number}x")).collect();
    let models: Vec<_> =
        (0..90).map(|number| json!({"name": format!("model-{number}"), "fallbacks": fallbacks})).collect();
    let looked = model_api(json!({"mode": "Proxy", "proxyConfig": {}, "models": models}));
    assert_eq!((looked.faults.len(), count(&looked.faults)), (KEPT + 1, 90 * 90));
    let hints = looked.faults.iter().filter(|fault| fault.sentence.contains("did you mean")).count();
    assert_eq!(hints, 20);
    assert!(looked.faults[0].sentence.ends_with("did you mean model-0?"), "{}", looked.faults[0]);
}
