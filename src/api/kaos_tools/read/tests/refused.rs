//! What is wrong, all at once and with its path: cases 109, 114 and 126, and input that really happens.

use serde_json::{Value, json};

use super::{agent, mcp_server, model_api, object, proxy};
use crate::api::findings::Fault;
use crate::api::kaos_tools::read;
use crate::domain::reason::Reason;

fn paths(faults: &[Fault]) -> Vec<&str> {
    faults.iter().map(|fault| &*fault.path).collect()
}

#[test]
fn agents_that_cannot_be_built() {
    let large = "x".repeat(200 * 1024);
    for (spec, wanted) in [
        (json!({"modelAPI": ""}), &["spec.modelAPI"][..]),
        (json!({"mcpServers": ["a", "", "b"]}), &["spec.mcpServers[1]"]),
        (
            json!({"config": {"instructions": large, "description": large}}),
            &["spec.config.description", "spec.config.instructions"],
        ),
        (json!({"container": {"env": [{"name": "A", "value": large}]}}), &["spec.container.env[0].value"]),
        (
            json!({"config": {"env": [{"value": "x"}, {"name": "A=B", "value": "x"}, 3]}}),
            &["spec.config.env[0].name", "spec.config.env[1].name", "spec.config.env[2]"],
        ),
        (json!({"config": {"env": [{"name": "A", "value": 3}]}}), &["spec.config.env[0].value"]),
        (
            json!({"config": {"reasoningLoopMaxSteps": 21, "memory": {"type": "redis", "contextLimit": 0}}}),
            &["spec.config.reasoningLoopMaxSteps", "spec.config.memory.type", "spec.config.memory.contextLimit"],
        ),
        (json!({"gatewayRoute": {"timeout": "1000000s"}}), &["spec.gatewayRoute.timeout"]),
        (
            json!({"podSpec": {"containers": [{"name": "agent", "env": [{"name": "A"}, {"name": "B"}, {"name": "A"}]}]}}),
            &["spec.podSpec.containers[0].env[2].name"],
        ),
        (
            json!({"podSpec": {"containers": [{"image": "x"}], "volumes": [{"name": "v"}, {"name": "v"}]}}),
            &["spec.podSpec.containers[0].name", "spec.podSpec.volumes[1].name"],
        ),
        (json!({"podSpec": [], "config": "x"}), &["spec.config", "spec.podSpec"]),
        (json!({"replicas": -1}), &["spec.replicas"]),
    ] {
        let looked = agent(spec.clone());
        assert_eq!(paths(&looked.faults), wanted, "{}", spec.to_string().get(..200).unwrap_or_default());
    }
    for taken in [
        json!({"podSpec": {"containers": null, "nodeSelector": {"gpu": "true"}}}),
        json!({"podSpec": {"containers": [], "volumes": [{"$patch": "replace"}]}}),
        json!({"podSpec": {"containers": [{"name": "x", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]}]}}),
        json!({"podSpec": {"containers": [{"name": "agent", "resources": {"limits": {"cpu": 1, "memory": 0.5}}}]}}),
        json!({"gatewayRoute": {"timeout": "0s"}, "agentNetwork": {"access": (0..200).map(|n| format!("p{n}")).collect::<Vec<_>>()}}),
        json!({"gatewayRoute": null, "config": null, "mcpServers": null, "podSpec": null}),
    ] {
        assert_eq!(agent(taken.clone()).faults, [], "{taken}");
    }
}

/// The API server takes it, and the kubelet says of each Pod anew that it cannot start it.
#[test]
fn a_variable_with_a_nul_is_refused() {
    let pod = json!({"containers": [{"name": "agent", "env": [{"name": "A", "value": "\u{0}"}]}]});
    let of_agent = agent(json!({"config": {"instructions": "a\u{0}b"}, "podSpec": pod}));
    assert_eq!(paths(&of_agent.faults), ["spec.config.instructions", "spec.podSpec.containers[0].env[0].value"]);
    let of_tools = mcp_server(json!({"runtime": "python-string", "params": "\u{0}"}));
    assert_eq!(paths(&of_tools.faults), ["spec.params"]);
}

#[test]
fn case_126_timeouts_in_gateway_apis_own_form() {
    for (timeout, fits) in [
        ("5m", true),
        ("0s", true),
        ("1h30m5s10ms", true),
        ("99999ms", true),
        ("abc", false),
        ("1.5s", false),
        ("", false),
        ("5", false),
        ("s", false),
        ("1h1h1h1h1h", false),
        ("100000s", false),
        ("5 m", false),
        ("-1s", false),
        ("5é", false),
    ] {
        let looked = agent(json!({"gatewayRoute": {"timeout": timeout}}));
        assert_eq!(looked.faults.is_empty(), fits, "{timeout}");
    }
}

#[test]
fn cases_101_and_109_model_apis_that_cannot_be_built() {
    let bomb = format!(
        "a0: &a0 [x]\n{}",
        (1..40).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(", "))).collect::<String>()
    );
    for (spec, wanted) in [
        (json!({"mode": "Proxy"}), "spec.proxyConfig"),
        (json!({"mode": "Hosted"}), "spec.hostedConfig.model"),
        (json!({"mode": "Hosted", "hostedConfig": {"model": ""}}), "spec.hostedConfig.model"),
        (json!({"mode": "Cloud", "proxyConfig": {}}), "spec.mode"),
        (json!({"proxyConfig": {}}), "spec.mode"),
        (json!({"mode": "Proxy", "proxyConfig": {"provider": "openai"}}), "spec.proxyConfig.models"),
        (json!({"mode": "Proxy", "proxyConfig": {"models": ["a", ""]}}), "spec.proxyConfig.models[1]"),
        (
            json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": "a: [b"}}),
            "spec.proxyConfig.configYaml",
        ),
        (
            json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": {"fromString": "- a"}}}),
            "spec.proxyConfig.configYaml.fromString",
        ),
        (
            json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": {"fromString": "7"}}}),
            "spec.proxyConfig.configYaml.fromString",
        ),
        (json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": bomb}}), "spec.proxyConfig.configYaml"),
        (
            json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": ["a"]}}),
            "spec.proxyConfig.configYaml",
        ),
        (json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": 7}}), "spec.proxyConfig.configYaml"),
        (
            json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "configYaml": {"model_list": []}}}),
            "spec.proxyConfig.configYaml.model_list",
        ),
    ] {
        let looked = model_api(spec.clone());
        assert_eq!(paths(&looked.faults), [wanted], "{}", spec.to_string().get(..200).unwrap_or_default());
    }
    // Two earlier versions understood it differently: refused, and why.
    let both = proxy(json!({"apiBase": "http://b", "model": "x"}));
    assert_eq!(paths(&both.faults), ["spec.proxyConfig.model"]);
    assert!(both.faults[0].sentence.contains("understood differently"), "{}", both.faults[0]);
    assert!(
        proxy(json!({"apiBase": "http://b", "model": "x", "models": ["x"]})).faults.is_empty(),
        "equal values pass"
    );
    let differs = proxy(json!({"model": "x", "models": ["y"]}));
    assert_eq!((differs.faults.len(), &*differs.conflicts[0].path), (0, "spec.proxyConfig.models"));
    // Names of models are data, whatever they look like.
    let odd = proxy(json!({"models": ["a\n  b: c", "\"", "*", "yes"]}));
    assert_eq!(odd.value.offered(), ["a\n  b: c", "\"", "*", "yes"]);
}

#[test]
fn case_114_tool_servers_that_cannot_be_built() {
    for (spec, wanted) in [
        (json!({}), "spec.runtime"),
        (json!({"type": "python-runtime", "config": {}}), "spec.runtime"),
        (json!({"config": {"mcp": ""}}), "spec.runtime"),
        (json!({"config": {"mcp": "--index-url=x"}}), "spec.config.mcp"),
        (json!({"runtime": "python-string", "params": "x".repeat(200 * 1024)}), "spec.params"),
        (json!({"config": {"tools": {"fromSecretKeyRef": {"name": "s"}}}}), "spec.config.tools.fromSecretKeyRef.key"),
        (json!({"runtime": "x", "type": "go-runtime"}), "spec.type"),
    ] {
        let looked = mcp_server(spec.clone());
        assert_eq!(paths(&looked.faults), [wanted], "{}", spec.to_string().get(..200).unwrap_or_default());
    }
}

#[test]
fn case_140_names_have_room_for_their_prefix() {
    let fits = |kind: &str, name: &str| {
        let faults = match kind {
            "Agent" => read::agent(&object(kind, name, json!({"modelAPI": "m"}))).faults,
            "ModelAPI" => read::model_api(&object(kind, name, json!({"mode": "Proxy", "proxyConfig": {}}))).faults,
            _ => read::mcp_server(&object(kind, name, json!({"runtime": "x"}))).faults,
        };
        assert!(faults.iter().all(|fault| fault.path == "metadata.name"), "{faults:?}");
        faults.is_empty()
    };
    for (kind, most) in [("Agent", 57), ("ModelAPI", 54), ("MCPServer", 53)] {
        assert!(fits(kind, &"a".repeat(most)) && !fits(kind, &"a".repeat(most + 1)), "{kind}");
        assert!(fits(kind, "1a-b") && !fits(kind, "a.b") && !fits(kind, "a-") && !fits(kind, ""), "{kind}");
    }
}

#[test]
fn everything_is_said_at_once_and_any_json_gets_an_answer() {
    let looked = agent(
        json!({"modelAPI": "", "mcpServers": [""], "gatewayRoute": {"timeout": "x"}, "model": "a", "config": {"env": [{"name": "MODEL_NAME", "value": "b"}]}}),
    );
    assert_eq!(looked.faults.len(), 3);
    assert_eq!(looked.conflicts[0].reason, Reason::SpellingConflict);
    for odd in [
        json!(null),
        json!([]),
        json!("x"),
        json!({"spec": []}),
        json!({"metadata": 3, "spec": {"podSpec": {"containers": {"a": 1}}}}),
    ] {
        for faults in [read::agent(&odd).faults, read::model_api(&odd).faults, read::mcp_server(&odd).faults] {
            assert!(!faults.is_empty(), "{odd}");
        }
    }
    let _: Value = json!({});
}
