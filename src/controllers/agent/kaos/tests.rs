//! Agents, ModelAPIs and MCPServers against a namespace in memory: cases of KAOS (docs/cases.md) that plans decide.

use serde_json::{Value, json};

use super::{AGENT_ROW, MCP_SERVER_ROW, MODEL_API_ROW};
use crate::controllers::agent::plan::IN_THE_WAY;
use crate::controllers::agent::tests::bench::{Bench, TEAM, owns};
use crate::controllers::scaffold::fixtures::{OWN, Rowed, s};
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Reach};

mod cases;
mod first;
mod samples;
mod takeover;
mod turns;

const ROWS: [&dyn Rowed; 3] = [&MODEL_API_ROW, &MCP_SERVER_ROW, &AGENT_ROW];
const IMAGES: &str = "  kaosAgent: agent:1\n  kaosLitellm: litellm:1\n  kaosOllama: ollama:1\n  kaosPython: python:1\n";
const ROUTES: &str = "  kaosAgent: agent:1\n  kaosLitellm: litellm:1\nkaos:\n  gateway:\n    enabled: true\n    name: edge\n    namespace: infra\n";
const RUNTIMES: &str = "runtimes:\n  python-string: {image: 'tools:1', paramsEnvVar: MCP_TOOLS_STRING}\n";

fn bench(platform: &str) -> Bench {
    let mut bench = Bench::with(platform);
    runtimes(&mut bench, RUNTIMES);
    bench
}

fn runtimes(bench: &mut Bench, text: &str) {
    let metadata = json!({"name": "kaos-mcp-runtimes", "namespace": OWN, "uid": "runtimes", "resourceVersion": "7"});
    bench.cluster.see(Kind::ConfigMap, json!({"metadata": metadata, "data": {"runtimes.yaml": text}}));
}

fn made(bench: &mut Bench, kind: Kind, name: &str, spec: Value) {
    bench.edit(kind, name, json!({"metadata": {"labels": {"team": "a"}}, "spec": spec}));
}

fn hosted(bench: &mut Bench) {
    made(bench, Kind::ModelApi, "m", json!({"mode": "Hosted", "hostedConfig": {"model": "x"}}));
}

fn agent(bench: &mut Bench, name: &str, more: Value) {
    let mut spec = json!({"modelAPI": "m", "model": "x"});
    json_patch::merge(&mut spec, &more);
    made(bench, Kind::KaosAgent, name, spec);
}

fn converge(bench: &mut Bench) -> Vec<Op> {
    bench.converge_with(&ROWS)
}

fn status(bench: &Bench, kind: Kind, name: &str) -> Value {
    bench.object(kind, name)["status"].clone()
}

fn says(bench: &Bench, kind: Kind, name: &str) -> (String, bool, String) {
    let status = status(bench, kind, name);
    let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    (text("phase"), status["ready"].as_bool().unwrap_or_default(), text("message"))
}

fn is(phase: &str, ready: bool, message: &str) -> (String, bool, String) {
    (phase.to_owned(), ready, message.to_owned())
}

fn condition(bench: &Bench, kind: Kind, name: &str, type_: &str) -> String {
    let all = status(bench, kind, name)["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|one| one["type"] == type_);
    found.map_or_else(String::new, |one| {
        format!("{}/{}", one["status"].as_str().unwrap_or_default(), one["reason"].as_str().unwrap_or_default())
    })
}

fn variable(bench: &Bench, deployment: &str, name: &str) -> Option<String> {
    let env = bench.container(deployment, 0)["env"].as_array().cloned().unwrap_or_default();
    let found = env.into_iter().find(|entry| entry["name"] == name);
    found.and_then(|entry| entry["value"].as_str().map(str::to_owned))
}

/// A ModelAPI and an Agent, both rolled out.
fn running() -> Bench {
    let mut bench = bench(IMAGES);
    hosted(&mut bench);
    agent(&mut bench, "a", json!({}));
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    converge(&mut bench);
    bench.rolled_out("agent-a");
    converge(&mut bench);
    bench
}

#[test]
fn cases_20_25_26_38_39_and_regressions_1_to_5_18_19_40_an_agent_waits_for_its_model_and_then_comes_up() {
    let mut bench = bench(IMAGES);
    agent(&mut bench, "a", json!({}));
    converge(&mut bench);
    let finalizers = &bench.object(Kind::KaosAgent, "a")["metadata"]["finalizers"];
    assert_eq!(finalizers, &json!(["kaos.tools/agent-finalizer"]));
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Waiting", false, "ModelAPI m not found"));
    hosted(&mut bench);
    converge(&mut bench);
    assert_eq!(says(&bench, Kind::ModelApi, "m"), is("Pending", false, "Deployment ready replicas: 0/1"));
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Waiting", false, "ModelAPI is not ready"));
    assert!(bench.find(Kind::Deployment, "agent-a").is_none());
    bench.rolled_out("modelapi-m");
    let ops = converge(&mut bench);
    assert_eq!(owns(&ops), [Kind::Service, Kind::Deployment]);
    assert_eq!(says(&bench, Kind::ModelApi, "m"), is("Ready", true, "Deployment ready replicas: 1/1"));
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Pending", false, "Deployment ready replicas: 0/1"));
    assert_eq!(
        variable(&bench, "agent-a", "MODEL_API_URL").as_deref(),
        Some("http://modelapi-m.team.svc.cluster.local:11434")
    );
    bench.rolled_out("agent-a");
    assert_eq!(owns(&converge(&mut bench)), [], "nothing rolls a second time");
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Ready", true, "Deployment ready replicas: 1/1"));
    let status = status(&bench, Kind::KaosAgent, "a");
    assert_eq!(status["endpoint"], "http://agent-a.team.svc.cluster.local:8000");
    assert_eq!((&status["linkedResources"]["modelapi"], &status["observedGeneration"]), (&json!("m"), &json!(1)));
    assert_eq!(status["deployment"]["readyReplicas"], 1);
    assert_eq!(status["deployment"]["conditions"][0]["type"], "Available", "case 43");
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "Ready"), "True/DeploymentReady");
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "DependenciesReady"), "True/DependenciesReady");
    assert_eq!(converge(&mut bench), [], "case 22");
}

#[test]
fn cases_27_to_31_and_regression_3_tool_servers_hold_back_creation_in_the_order_of_the_list() {
    let mut bench = bench(IMAGES);
    hosted(&mut bench);
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    agent(&mut bench, "a", json!({"mcpServers": ["b", "t"]}));
    converge(&mut bench);
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Waiting", false, "MCPServer b not found"));
    for name in ["b", "t"] {
        made(&mut bench, Kind::McpServer, name, json!({"runtime": "python-string", "params": "def f(): pass"}));
    }
    converge(&mut bench);
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Waiting", false, "MCPServer b is not ready"));
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"waitForDependencies": false}}));
    converge(&mut bench);
    assert_eq!(variable(&bench, "agent-a", "MCP_SERVERS").as_deref(), Some("b,t"), "case 30");
    for name in ["mcpserver-b", "mcpserver-t", "agent-a"] {
        bench.rolled_out(name);
    }
    assert_eq!(owns(&converge(&mut bench)), []);
    assert_eq!(status(&bench, Kind::McpServer, "t")["endpoint"], "http://mcpserver-t.team.svc.cluster.local:8000");
}

#[test]
fn cases_33_to_37_and_45_peers_never_hold_back_and_are_found_when_they_come() {
    let mut bench = bench(IMAGES);
    hosted(&mut bench);
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    converge(&mut bench);
    agent(&mut bench, "a", json!({"agentNetwork": {"access": ["b", "p"]}}));
    agent(&mut bench, "b", json!({"agentNetwork": {"access": ["a", "b"]}}));
    converge(&mut bench);
    assert_eq!(
        variable(&bench, "agent-a", "PEER_AGENTS").as_deref(),
        Some("b"),
        "case 36, and 33 of the one that is not there"
    );
    assert_eq!(variable(&bench, "agent-b", "PEER_AGENTS").as_deref(), Some("a,b"));
    agent(&mut bench, "p", json!({}));
    let key = Key::new(TEAM, "p");
    let touched = bench.cluster.touched(AGENT_ROW, Kind::KaosAgent, &key);
    assert!(touched.contains(&Key::new(TEAM, "a")) && !touched.contains(&Key::new(TEAM, "b")), "{touched:?}");
    converge(&mut bench);
    assert_eq!(variable(&bench, "agent-a", "PEER_AGENTS").as_deref(), Some("b,p"), "case 37");
    bench.edit(Kind::KaosAgent, "p", json!({"spec": {"agentNetwork": {"expose": false}}}));
    converge(&mut bench);
    assert_eq!(variable(&bench, "agent-a", "PEER_AGENTS").as_deref(), Some("b"), "who is not exposed cannot be called");
}

#[test]
fn cases_46_and_49_a_model_that_is_not_offered_is_refused_until_it_is() {
    let mut bench = bench(IMAGES);
    made(&mut bench, Kind::ModelApi, "m", json!({"mode": "Proxy", "proxyConfig": {"models": ["x"]}}));
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    agent(&mut bench, "a", json!({"model": "y"}));
    converge(&mut bench);
    let text = "model \"y\" not supported by ModelAPI \"m\" (supported: [x])";
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Failed", false, text));
    assert!(bench.find(Kind::Deployment, "agent-a").is_none());
    bench.edit(Kind::ModelApi, "m", json!({"spec": {"proxyConfig": {"models": ["x", "y"]}}}));
    converge(&mut bench);
    assert!(bench.find(Kind::Deployment, "agent-a").is_some());
}

/// Its Service stands: who calls it is not told that there is none.
#[test]
fn case_41_an_agent_that_cannot_be_made_anew_is_reached_where_it_was() {
    let endpoint = "http://agent-a.team.svc.cluster.local:8000";
    for spec in [json!({"model": "other"}), json!({"gatewayRoute": {"timeout": "soon"}})] {
        let mut bench = running();
        bench.edit(Kind::KaosAgent, "a", json!({"spec": spec}));
        converge(&mut bench);
        let (phase, ready, message) = says(&bench, Kind::KaosAgent, "a");
        assert_eq!((&*phase, ready), ("Failed", false), "{message}");
        assert_eq!(status(&bench, Kind::KaosAgent, "a")["endpoint"], endpoint, "{spec}");
        bench.remove(Kind::Service, "agent-a");
        converge(&mut bench);
        assert_eq!(status(&bench, Kind::KaosAgent, "a").get("endpoint"), None, "{spec}");
    }
}

/// A dependency that flickers is not written; one that stays away is, and what runs goes on.
#[test]
fn case_41_and_ruling_9_what_is_said_of_a_dependency_has_held_for_a_while() {
    let mut bench = running();
    let flap = |bench: &mut Bench, ready: bool| bench.edit(Kind::ModelApi, "m", json!({"status": {"ready": ready}}));
    let key = Key::new(TEAM, "m");
    for round in 0..100 {
        flap(&mut bench, round % 2 == 1);
        let touched = bench.cluster.touched(AGENT_ROW, Kind::ModelApi, &key);
        if touched.is_empty() {
            continue;
        }
        for touched in touched {
            assert_eq!((&*touched.name, round), ("a", 0), "an Agent that runs is looked at once");
        }
        assert_eq!(bench.converge_with(&[&AGENT_ROW]), [], "{round}");
    }
    flap(&mut bench, false);
    assert_eq!(bench.converge_with(&[&AGENT_ROW]), []);
    bench.now += s(5);
    assert_eq!(owns(&bench.converge_with(&[&AGENT_ROW])), []);
    assert_eq!(condition(&bench, Kind::KaosAgent, "a", "DependenciesReady"), "False/DependencyNotReady");
    assert_eq!(says(&bench, Kind::KaosAgent, "a"), is("Ready", true, "Deployment ready replicas: 1/1"));
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"config": {"description": "d"}}}));
    assert_eq!(
        owns(&bench.converge_with(&[&AGENT_ROW])),
        [Kind::Deployment],
        "what is edited reaches the Deployment all the same"
    );
    bench.remove(Kind::ModelApi, "m");
    bench.now += s(5);
    assert_eq!(owns(&bench.converge_with(&[&AGENT_ROW])), []);
    assert_eq!(
        variable(&bench, "agent-a", "MODEL_API_URL").as_deref(),
        Some("http://modelapi-m.team.svc.cluster.local:11434")
    );
}

#[test]
fn cases_67_to_69_73_75_88_and_102_what_is_ours_stays_as_it_is_and_what_is_not_is_left_alone() {
    let mut bench = running();
    bench.edit(Kind::Deployment, "agent-a", json!({"spec": {"replicas": 3}}));
    assert_eq!(owns(&converge(&mut bench)), [], "case 73");
    assert_eq!(says(&bench, Kind::KaosAgent, "a").2, "Deployment ready replicas: 1/3");
    bench.remove(Kind::Service, "agent-a");
    assert_eq!(owns(&converge(&mut bench)), [Kind::Service], "case 68");
    bench.edit(Kind::KaosAgent, "a", json!({"spec": {"agentNetwork": {"expose": false}}}));
    converge(&mut bench);
    assert!(bench.find(Kind::Service, "agent-a").is_none(), "case 67");
    assert_eq!(status(&bench, Kind::KaosAgent, "a").get("endpoint"), None);
    bench.edit(Kind::Deployment, "agent-z", json!({"spec": {"template": {"spec": {"containers": [{"name": "x"}]}}}}));
    agent(&mut bench, "z", json!({}));
    converge(&mut bench);
    let (phase, ready, message) = says(&bench, Kind::KaosAgent, "z");
    assert_eq!((&*phase, ready), ("Failed", false), "case 88: {message}");
    assert!(message.contains("Deployment agent-z") && message.contains("is left alone"), "{message}");
    assert_eq!(condition(&bench, Kind::KaosAgent, "z", "Ready"), "False/NameConflict");
}

#[test]
fn cases_89_105_and_109_a_proxy_its_configuration_and_another_mode() {
    let mut bench = bench(IMAGES);
    made(&mut bench, Kind::ModelApi, "m", json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    let ops = converge(&mut bench);
    assert_eq!(owns(&ops), [Kind::ConfigMap, Kind::Service, Kind::Deployment], "what Pods mount is there before them");
    let text = bench.object(Kind::ConfigMap, "litellm-config-m")["data"]["config.yaml"].as_str().unwrap().to_owned();
    assert!(text.contains("model_name: \"*\""), "{text}");
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "ProxyOpen"), "True/ProxyOpen");
    bench.edit(
        Kind::ModelApi,
        "m",
        json!({"spec": {"mode": "Hosted", "proxyConfig": null, "hostedConfig": {"model": "x"}}}),
    );
    converge(&mut bench);
    assert!(bench.find(Kind::ConfigMap, "litellm-config-m").is_none());
    assert_eq!(bench.object(Kind::Service, "modelapi-m")["spec"]["ports"][0]["port"], 11434);
    assert_eq!(status(&bench, Kind::ModelApi, "m")["endpoint"], "http://modelapi-m.team.svc.cluster.local:11434");
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "ProxyOpen"), "");
    made(&mut bench, Kind::ModelApi, "n", json!({"mode": "Hosted"}));
    converge(&mut bench);
    assert_eq!(says(&bench, Kind::ModelApi, "n").0, "Failed", "case 109");
    assert!(bench.find(Kind::Deployment, "modelapi-n").is_none());
}

#[test]
fn cases_117_and_121_runtimes_come_from_the_registry_and_follow_it() {
    let mut bench = bench(IMAGES);
    made(&mut bench, Kind::McpServer, "t", json!({"runtime": "nope"}));
    converge(&mut bench);
    let (phase, _, message) = says(&bench, Kind::McpServer, "t");
    assert_eq!(
        (&*phase, &*message),
        ("Failed", "Failed to construct Deployment: unknown runtime: nope (not found in registry)")
    );
    bench.edit(Kind::McpServer, "t", json!({"spec": {"runtime": "python-string"}}));
    converge(&mut bench);
    assert_eq!(bench.container("mcpserver-t", 0)["image"], "tools:1");
    runtimes(&mut bench, &RUNTIMES.replace("tools:1", "tools:2"));
    let touched = bench.cluster.touched(MCP_SERVER_ROW, Kind::ConfigMap, &Key::new(OWN, "kaos-mcp-runtimes"));
    assert_eq!(touched, [Key::new(TEAM, "t")]);
    let of_a_tenant = bench.cluster.touched(MCP_SERVER_ROW, Kind::ConfigMap, &Key::new(TEAM, "kaos-mcp-runtimes"));
    assert_eq!(of_a_tenant, []);
    converge(&mut bench);
    assert_eq!(bench.container("mcpserver-t", 0)["image"], "tools:2");
}

#[test]
fn cases_122_to_124_127_and_128_routes_come_with_gateway_api() {
    let mut bench = bench(ROUTES);
    bench.cluster.store.set_reach(Kind::HttpRoute, Reach::Absent);
    made(&mut bench, Kind::ModelApi, "m", json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    converge(&mut bench);
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "Unknown/GatewayApiAbsent");
    assert!(says(&bench, Kind::ModelApi, "m").1, "ready is not affected");
    bench.cluster.store.set_reach(Kind::HttpRoute, Reach::Listed);
    assert_eq!(owns(&converge(&mut bench)), [Kind::HttpRoute]);
    let route = bench.object(Kind::HttpRoute, "modelapi-m");
    assert_eq!(route["spec"]["parentRefs"], json!([{"name": "edge", "namespace": "infra"}]));
    assert_eq!(route["spec"]["rules"][0]["matches"][0]["path"]["value"], "/team/modelapi/m");
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "Unknown/RoutePending");
    let parent = |status: &str, reason: &str| json!({"status": {"parents": [{"conditions": [{"type": "Accepted", "status": status, "reason": reason, "message": "m"}]}]}});
    bench.edit(Kind::HttpRoute, "modelapi-m", parent("False", "NotAllowedByListeners"));
    converge(&mut bench);
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "False/RouteRefused");
    assert!(says(&bench, Kind::ModelApi, "m").1);
    bench.edit(Kind::HttpRoute, "modelapi-m", parent("True", "Accepted"));
    converge(&mut bench);
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "True/RouteAccepted");
    bench.remove(Kind::HttpRoute, "modelapi-m");
    assert_eq!(owns(&converge(&mut bench)), [Kind::HttpRoute], "case 127");
    assert_eq!(converge(&mut bench), []);
}

/// A right that is missing for a while, or an authorizer that is, says nothing of what is wanted: what leads there stays.
#[test]
fn case_127_a_route_stays_while_routes_cannot_be_read() {
    let mut bench = bench(ROUTES);
    made(&mut bench, Kind::ModelApi, "m", json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    converge(&mut bench);
    let route = bench.object(Kind::HttpRoute, "modelapi-m");
    bench.cluster.store.set_reach(Kind::HttpRoute, Reach::Unknown);
    let ops = converge(&mut bench);
    assert!(!ops.iter().any(|op| matches!(op, Op::Delete { .. })), "{ops:?}");
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "Unknown/GatewayApiAbsent");
    bench.cluster.store.set_reach(Kind::HttpRoute, Reach::Listed);
    assert_eq!(owns(&converge(&mut bench)), []);
    assert_eq!(bench.object(Kind::HttpRoute, "modelapi-m"), route);
    // One that is wanted no more goes.
    bench.cluster.configure(&ROUTES.replace("enabled: true", "enabled: false"));
    converge(&mut bench);
    assert!(bench.find(Kind::HttpRoute, "modelapi-m").is_none());
}

/// The first operation of the next plan about ModelAPI `m` that applies an object of that kind, and the item.
fn applies(bench: &Bench, kind: Kind) -> (Op, Item) {
    let item = Item { controller: MODEL_API_ROW.controller, key: Key::new(TEAM, "m") };
    let ops = bench.cluster.plan_at(MODEL_API_ROW, &item.key, bench.now).ops;
    let found = ops.into_iter().find(|op| matches!(op, Op::Own { kind: its, .. } if *its == kind));
    (found.unwrap(), item)
}

fn is_route(op: &Op) -> bool {
    matches!(op, Op::Own { kind: Kind::HttpRoute, .. })
}

#[test]
fn case_128_and_ruling_16_a_route_that_cannot_be_written_holds_up_no_word_about_the_rest_and_is_tried_again() {
    let mut bench = bench(ROUTES);
    made(&mut bench, Kind::ModelApi, "m", json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    let failed = (0..8).filter(|_| bench.round_that_fails(&MODEL_API_ROW, is_route)).count();
    assert!(failed >= 5, "{failed}");
    assert_eq!(says(&bench, Kind::ModelApi, "m"), is("Pending", false, "Deployment ready replicas: 0/1"));
    bench.rolled_out("modelapi-m");
    assert!(bench.round_that_fails(&MODEL_API_ROW, is_route), "it is tried again");
    assert_eq!(says(&bench, Kind::ModelApi, "m"), is("Ready", true, "Deployment ready replicas: 1/1"));
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "False/RouteRefused");
    bench.edit(Kind::Deployment, "modelapi-m", json!({"status": {"readyReplicas": 0, "availableReplicas": 0}}));
    assert!(bench.round_that_fails(&MODEL_API_ROW, is_route));
    assert!(!says(&bench, Kind::ModelApi, "m").1, "nor does it stay ready without Pods");
    bench.rolled_out("modelapi-m");
    assert_eq!(owns(&converge(&mut bench)), [Kind::HttpRoute]);
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "Unknown/RoutePending");

    // One that is refused waits: nobody tells once the cause is removed.
    bench.remove(Kind::HttpRoute, "modelapi-m");
    let (op, item) = applies(&bench, Kind::HttpRoute);
    let refusal = (op, Some(Reason::NotPermitted), "a policy refuses it".to_owned());
    bench.cluster.memory.failure(&item, bench.now, refusal);
    assert_eq!(owns(&converge(&mut bench)), []);
    assert_eq!(condition(&bench, Kind::ModelApi, "m", "RouteAccepted"), "False/RouteRefused");
    assert!(says(&bench, Kind::ModelApi, "m").1);
    bench.now += s(299);
    assert_eq!(owns(&converge(&mut bench)), []);
    let again = bench.cluster.plan_at(MODEL_API_ROW, &item.key, bench.now).again;
    assert_eq!(again, Some(s(1)));
    bench.now += s(1);
    assert_eq!(owns(&converge(&mut bench)), [Kind::HttpRoute]);
}

/// Of somebody's object without our labels nothing is seen but that it is there when ours is to be made.
#[test]
fn cases_88_and_128_an_object_that_is_in_the_way_unseen_is_a_named_conflict() {
    let said = |bench: &Bench, type_: &str| {
        let ops = bench.cluster.plan_at(MODEL_API_ROW, &Key::new(TEAM, "m"), bench.now).ops;
        let patch = ops.iter().find_map(|op| match op {
            Op::Status { patch, .. } => Some(patch["status"]["conditions"].clone()),
            _ => None,
        });
        let all = patch.unwrap_or_default().as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
        let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    };
    let conflicts = |bench: &mut Bench, kind: Kind, times: u32| {
        let (op, item) = applies(bench, kind);
        for _ in 0..times {
            let words = "somebody else wrote in between".to_owned();
            bench.cluster.memory.conflict(&item, bench.now, (op.clone(), words));
        }
    };
    let mut bench = bench(ROUTES);
    made(&mut bench, Kind::ModelApi, "m", json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    bench.round(&MODEL_API_ROW);
    conflicts(&mut bench, Kind::ConfigMap, IN_THE_WAY - 1);
    assert_ne!(said(&bench, "Ready").0, "NameConflict", "one that was just made may not be seen yet");
    conflicts(&mut bench, Kind::ConfigMap, 1);
    let (reason, message) = said(&bench, "Ready");
    assert_eq!(reason, "NameConflict");
    assert!(message.starts_with("ConfigMap litellm-config-m of this namespace is there without"), "{message}");
    assert!(message.contains("app=modelapi") && message.contains("delete or rename it"), "{message}");
    // It is tried again, since nobody tells when it goes.
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    converge(&mut bench);
    assert!(says(&bench, Kind::ModelApi, "m").1);
    bench.remove(Kind::HttpRoute, "modelapi-m");
    conflicts(&mut bench, Kind::HttpRoute, IN_THE_WAY);
    let (reason, message) = said(&bench, "RouteAccepted");
    assert_eq!(reason, "NameConflict");
    assert!(message.starts_with("HTTPRoute modelapi-m of this namespace is there without"), "{message}");
    assert_ne!(said(&bench, "Ready").0, "NameConflict", "what is served does not depend on it");
}

#[test]
fn cases_134_and_135_what_goes_waits_for_nothing_and_only_our_finalizer_is_taken() {
    for (kind, name) in [(Kind::KaosAgent, "a"), (Kind::ModelApi, "m")] {
        let mut bench = running();
        let finalizers = bench.object(kind, name)["metadata"]["finalizers"].clone();
        assert_eq!(finalizers.as_array().map(Vec::len), Some(1));
        bench.edit(kind, name, json!({"metadata": {"deletionTimestamp": "2026-05-01T00:00:00Z"}}));
        let ops = bench.converge_with(&ROWS);
        assert!(matches!(&ops[..], [Op::Edit { .. }, ..]), "{ops:#?}");
        assert!(!ops.iter().any(|op| matches!(op, Op::Delete { .. })), "what it owns is the garbage collector's");
        assert!(bench.find(kind, name).is_none());
    }
}

/// Eight Agents that run image `agent:1`.
fn fleet() -> Bench {
    let mut bench = bench(IMAGES);
    hosted(&mut bench);
    converge(&mut bench);
    bench.rolled_out("modelapi-m");
    for number in 0..8 {
        agent(&mut bench, &format!("a{number}"), json!({}));
    }
    converge(&mut bench);
    come_up(&mut bench, 0..8);
    converge(&mut bench);
    bench
}

fn come_up(bench: &mut Bench, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| bench.rolled_out(&format!("agent-a{number}")));
}

/// Their rollouts exceed their deadline.
fn fail(bench: &mut Bench, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let name = format!("agent-a{number}");
        let generation = bench.object(Kind::Deployment, &name)["metadata"]["generation"].clone();
        let late = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
        let status = json!({"observedGeneration": generation, "updatedReplicas": 1, "replicas": 2, "conditions": late});
        bench.edit(Kind::Deployment, &name, json!({"status": status}));
    }
}

/// The platform's image is another.
fn image(bench: &mut Bench, image: &str) {
    bench.cluster.configure(&IMAGES.replace("agent:1", image));
}

/// How many of them have it.
fn with(bench: &Bench, image: &str) -> usize {
    (0..8).filter(|number| bench.container(&format!("agent-a{number}"), 0)["image"] == image).count()
}

/// Another one leads, which looks at all before it rolls any.
fn another_leads(bench: &mut Bench) {
    bench.cluster.forget();
    let before = with(bench, "agent:1");
    converge(bench);
    assert_eq!(with(bench, "agent:1"), before, "nobody rolls before it is known who does");
    bench.cluster.memory.surveyed = true;
}

/// A change of the platform's image concerns all, and rolls a few at a time; what a user changes waits for nobody.
#[test]
fn ruling_10_a_change_for_all_rolls_five_at_a_time() {
    let mut bench = fleet();
    image(&mut bench, "agent:2");
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 5);
    bench.edit(Kind::KaosAgent, "a7", json!({"spec": {"config": {"description": "d"}}}));
    converge(&mut bench);
    assert_eq!((with(&bench, "agent:2"), bench.container("agent-a7", 0)["image"].clone()), (6, json!("agent:2")));
    come_up(&mut bench, 0..8);
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 8);
}

/// The marks of their turns stand on the Deployments: the budget and the halt outlive whoever leads.
#[test]
fn ruling_10_whoever_leads_next_knows_who_rolls_and_what_failed() {
    let mut bench = fleet();
    image(&mut bench, "agent:2");
    converge(&mut bench);
    another_leads(&mut bench);
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 5, "those that roll keep their places");
    come_up(&mut bench, 0..1);
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 6);
    // What somebody takes away and is put back is still of that turn.
    let other = json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent:2", "imagePullPolicy": "Always"}]}}}});
    bench.edit(Kind::Deployment, "agent-a1", other);
    converge(&mut bench);
    another_leads(&mut bench);
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 6);
    fail(&mut bench, 1..3);
    come_up(&mut bench, 3..6);
    another_leads(&mut bench);
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 6, "two that failed end it for the next one as well");
    // What its user changes waits for nobody, and is no part of it any more.
    bench.edit(Kind::KaosAgent, "a1", json!({"spec": {"config": {"description": "d"}}}));
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 8);
    fail(&mut bench, 1..2);
    another_leads(&mut bench);
    converge(&mut bench);
    assert_eq!(bench.cluster.memory.failed(), 1, "what its user rolled has failed for its user alone");
}

/// Whose rollout it is cannot be told from a Deployment's status.
#[test]
fn ruling_10_what_users_break_and_pods_that_end_later_take_nobodys_place() {
    let mut bench = fleet();
    for number in 0..6 {
        let described = json!({"spec": {"config": {"description": format!("d{number}")}}});
        bench.edit(Kind::KaosAgent, &format!("a{number}"), described);
    }
    converge(&mut bench);
    fail(&mut bench, 0..3);
    another_leads(&mut bench);
    image(&mut bench, "agent:2");
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:2"), 5, "neither three that failed nor three that roll are the platform's");
    come_up(&mut bench, 0..8);
    converge(&mut bench);
    come_up(&mut bench, 0..8);
    converge(&mut bench);
    // All have rolled; then Pods end.
    for number in 0..6 {
        let ended = json!([{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]);
        let status = json!({"readyReplicas": 0, "availableReplicas": 0, "conditions": ended});
        bench.edit(Kind::Deployment, &format!("agent-a{number}"), json!({"status": status}));
    }
    another_leads(&mut bench);
    image(&mut bench, "agent:3");
    converge(&mut bench);
    assert_eq!(with(&bench, "agent:3"), 5);
}

#[test]
fn ruling_10_what_is_held_still_or_has_no_pods_is_written_and_takes_no_place() {
    let mut bench = fleet();
    bench.edit(Kind::Deployment, "agent-a6", json!({"spec": {"replicas": 0}}));
    bench.edit(Kind::Deployment, "agent-a7", json!({"spec": {"paused": true}}));
    converge(&mut bench);
    image(&mut bench, "agent:2");
    converge(&mut bench);
    let others = ["agent-a6", "agent-a7"].map(|name| bench.container(name, 0)["image"].clone());
    assert_eq!((with(&bench, "agent:2"), others), (7, [json!("agent:2"), json!("agent:2")]));
    assert_eq!(bench.cluster.memory.rolling(), 5);
}

/// The next change is what mends those that failed, and so does not wait for them.
#[test]
fn ruling_10_a_wave_that_halted_goes_on_with_the_next_change() {
    let mut bench = fleet();
    image(&mut bench, "agent:2");
    converge(&mut bench);
    fail(&mut bench, 0..2);
    come_up(&mut bench, 2..5);
    converge(&mut bench);
    assert_eq!((with(&bench, "agent:2"), bench.cluster.memory.failed()), (5, 2));
    image(&mut bench, "agent:3");
    converge(&mut bench);
    assert_eq!((with(&bench, "agent:3"), bench.cluster.memory.failed()), (5, 0));
    for _ in 0..2 {
        come_up(&mut bench, 0..8);
        converge(&mut bench);
    }
    assert_eq!(with(&bench, "agent:3"), 8);
}
