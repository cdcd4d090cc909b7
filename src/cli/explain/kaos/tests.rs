//! What `explain` says of objects of KAOS.

use serde_json::{Value, json};

use super::facts::Facts;
use super::told::told;
use super::{Told, printed};
use crate::cli::offline::world::{self, World};
use crate::store::Kind;

fn object(kind: &str, name: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "shop", "uid": "u"},
        "spec": spec, "status": status,
    })
}

fn facts(kind: Kind, object: Value) -> Facts {
    let mut facts =
        Facts { kind: Some(kind), object, operator: "kaos-system".to_owned(), watched: true, ..Facts::default() };
    facts.settings.image_agent = Some("agent:1".to_owned());
    facts.settings.image_litellm = Some("litellm:1".to_owned());
    facts.registry = (
        "kaos-system".to_owned(),
        Some(Some("runtimes: {python-string: {image: 'i:1', paramsEnvVar: MCP_TOOLS_STRING}}".to_owned())),
    );
    facts
}

fn text(told: &Told) -> String {
    let mut out = Vec::new();
    printed(&mut out, told, ["ok   ", "fails", "-    "]).unwrap();
    String::from_utf8(out).unwrap()
}

fn has(said: &str, lines: &[&str]) {
    for line in lines {
        assert!(said.lines().any(|one| one.trim_start() == *line), "{line:?} is missing in\n{said}");
    }
}

#[test]
fn an_agent_that_waits_says_for_what_and_each_variable_its_field() {
    let spec = json!({
        "modelAPI": "llm", "mcpServers": ["stock", "none"],
        "config": {"instructions": "Help.", "agenticLoop": {"maxSteps": 4}, "env": [{"name": "MODEL_NAME", "value": "fast"}, {"name": "API_KEY", "value": "sk"}]},
        "container": {"env": [{"name": "TEAM", "value": "a"}, {"name": "PEER_AGENTS", "value": "x"}]},
        "agentNetwork": {"access": ["auditor", "hidden", "later"]},
        "podSpec": {"containers": [{"name": "agent", "env": [{"name": "LOG_LEVEL", "value": "DEBUG"}]}]},
    });
    let status = json!({"phase": "Waiting", "message": "MCPServer none not found"});
    let mut facts = facts(Kind::KaosAgent, object("Agent", "clerk", spec, status));
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["slow"]}});
    facts.model_api = Some(("llm".to_owned(), Some(object("ModelAPI", "llm", proxy, json!({"ready": true})))));
    let stock = object(
        "MCPServer",
        "stock",
        json!({}),
        json!({"phase": "Pending", "message": "Deployment ready replicas: 0/1"}),
    );
    facts.mcp_servers = vec![("stock".to_owned(), Some(stock)), ("none".to_owned(), None)];
    let peer = |name: &str, expose: bool| {
        let spec = json!({"modelAPI": "llm", "agentNetwork": {"expose": expose}});
        (name.to_owned(), Some(object("Agent", name, spec, Value::Null)))
    };
    facts.peers = vec![peer("auditor", true), peer("hidden", false), ("later".to_owned(), None)];
    let runtime = json!({"metadata": {"name": "r"}, "spec": {"targetRef": {"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "clerk"}}});
    facts.agent_runtimes = vec![runtime];
    let said = told(&facts);
    let said = text(&said);
    has(
        &said,
        &[
            "Agent.kaos.tools shop/clerk",
            "Waiting: MCPServer none not found",
            "ok    ModelAPI     llm is ready",
            "-     model        asks for fast; the ModelAPI offers slow; one of them is spelled as it was, so it is not checked",
            "fails MCPServer    stock is not ready (Pending: Deployment ready replicas: 0/1); the Deployment is made once it is",
            "what would change it: drawbridge explain mcpserver/stock shows why",
            "fails MCPServer    none does not exist in this namespace; the Deployment is made once it does",
            "ok    peer         auditor exists; peers hold nothing back",
            "fails peer         hidden is not exposed, so it is left out",
            "-     peer         later does not exist; its variables come once it does, and hold nothing back",
            "-     Deployment   agent-clerk does not exist yet",
            "fails enrolment    AgentRuntime r points at the Agent itself, which makes no Pods",
            "what would change it: point spec.targetRef of r at Deployment agent-clerk (apps/v1)",
            "address: http://agent-clerk.shop.svc.cluster.local:8000",
            "made of it: Deployment agent-clerk, Service agent-clerk",
            "old spelling: spec.config.agenticLoop.maxSteps means config.reasoningLoopMaxSteps",
        ],
    );
    let of = |name: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).unwrap_or_default();
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    for (name, wanted) in [
        ("AGENT_NAME", "clerk <- metadata.name"),
        ("AGENT_INSTRUCTIONS", "Help. <- spec.config.instructions"),
        ("API_KEY", "(a literal of 2 characters, which is not shown) <- spec.config.env[1]"),
        ("TEAM", "a <- spec.container.env[0]"),
        ("MODEL_API_URL", "http://modelapi-llm.shop.svc.cluster.local:8000 <- spec.modelAPI"),
        ("MODEL_NAME", "fast <- spec.config.env[0]"),
        ("AGENTIC_LOOP_MAX_STEPS", "4 <- spec.config.agenticLoop.maxSteps"),
        ("MCP_SERVERS", "none,stock <- spec.mcpServers"),
        ("PEER_AGENTS", "auditor <- spec.agentNetwork.access"),
        ("LOG_LEVEL", "DEBUG <- spec.podSpec.containers[name=agent].env"),
    ] {
        assert_eq!(of(name), wanted, "{said}");
    }
    assert!(said.contains("note: variable PEER_AGENTS of yours is not used"), "{said}");
}

#[test]
fn what_runs_says_its_pods_its_route_and_what_is_not_its_own() {
    let status = json!({
        "phase": "Ready", "ready": true, "message": "Deployment ready replicas: 1/1",
        "conditions": [
            {"type": "RouteAccepted", "status": "False", "reason": "RouteRefused", "message": "NotAllowed: no listener"},
            {"type": "ProxyOpen", "status": "True", "reason": "ProxyOpen", "message": "every Pod can spend the key"},
        ],
    });
    let spec = json!({"mode": "Proxy", "proxyConfig": {"models": ["x"], "apiKey": {"value": "sk-secret"}}});
    let mut facts = facts(Kind::ModelApi, object("ModelAPI", "llm", spec, status));
    facts.settings.gateway.enabled = true;
    (facts.route, facts.routes_served) = (Some(Some(json!({}))), true);
    let owner = json!([{"controller": true, "uid": "u"}]);
    facts.deployment = Some(
        json!({"metadata": {"ownerReferences": owner}, "spec": {"replicas": 1, "template": {}}, "status": {"readyReplicas": 1}}),
    );
    facts.service = Some(json!({"metadata": {"ownerReferences": []}}));
    let said = text(&told(&facts));
    has(
        &said,
        &[
            "ok    Deployment   modelapi-llm: 1 of 1 Pods ready; its template is not what is wanted now",
            "fails Service      modelapi-llm is not this object's and is left alone",
            "fails route        /shop/modelapi/llm through Gateway kaos-system/kaos-gateway: NotAllowed: no listener",
            "-     proxy        every Pod can spend the key",
            "made of it: Deployment modelapi-llm, Service modelapi-llm, ConfigMap litellm-config-llm, HTTPRoute modelapi-llm",
        ],
    );
    assert!(!said.contains("sk-secret"), "{said}");
}

/// What the object's own status says must be read here as well: `kubectl describe` shows it.
#[test]
fn what_waits_for_its_turn_or_is_not_followed_says_so() {
    let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "reason": "X", "message": message});
    let says = |kind: Kind, message: &str, conditions: Value| {
        let name = if kind == Kind::ModelApi { "ModelAPI" } else { "Agent" };
        let spec = json!({"mode": "Hosted", "hostedConfig": {"model": "x"}, "modelAPI": "llm"});
        let status = json!({"phase": "Ready", "ready": true, "message": message, "conditions": conditions});
        text(&told(&facts(kind, object(name, "llm", spec, status))))
    };
    let said = says(
        Kind::KaosAgent,
        "Deployment ready replicas: 1/1",
        json!([
            condition("Stalled", "True", "Pods are refused"),
            condition("Reconciling", "True", "Deployment agent-llm waits for its turn"),
            condition("ReferencesPending", "True", "its Pods are made again in their turn"),
            condition("ReferencesUnfollowed", "True", "Secret s and 3 more are not followed"),
        ]),
    );
    has(
        &said,
        &[
            "fails rollout      X: Pods are refused",
            "-     rollout      Deployment agent-llm waits for its turn",
            "-     references   its Pods are made again in their turn",
            "-     references   Secret s and 3 more are not followed",
        ],
    );
    let said = says(
        Kind::ModelApi,
        "the same",
        json!([
            condition("Reconciling", "True", "the same"),
            condition("ReferencesPending", "False", "over"),
            condition("Restricted", "False", "NetworkPolicy modelapi-llm is not this object's"),
        ]),
    );
    has(&said, &["fails restriction  NetworkPolicy modelapi-llm is not this object's"]);
    assert!(!said.contains(" rollout ") && !said.contains(" references "), "{said}");
    let said = says(Kind::ModelApi, "", json!([condition("Restricted", "True", "the policy stays as it is")]));
    has(&said, &["-     restriction  the policy stays as it is"]);
}

#[test]
fn tools_say_their_runtime_and_a_wrong_one_what_there_is() {
    let served = facts(
        Kind::McpServer,
        object("MCPServer", "t", json!({"config": {"tools": {"fromString": "def f(): pass"}}}), Value::Null),
    );
    let said = text(&told(&served));
    assert!(
        said.contains("python-string runs image i:1 (ConfigMap kaos-mcp-runtimes in namespace kaos-system"),
        "{said}"
    );
    assert!(said.contains("MCP_TOOLS_STRING  def f(): pass  <- spec.config.tools.fromString"), "{said}");
    let unknown = facts(Kind::McpServer, object("MCPServer", "t", json!({"runtime": "nope"}), Value::Null));
    let said = text(&told(&unknown));
    assert!(said.contains("name one of python-string, or add it to ConfigMap kaos-mcp-runtimes"), "{said}");
    let mut elsewhere =
        facts(Kind::McpServer, object("MCPServer", "t", json!({"runtime": "nope", "params": 5}), Value::Null));
    elsewhere.watched = false;
    let said = text(&told(&elsewhere));
    assert!(said.contains("does not watch namespace shop") && said.contains("spec.params must be a string"), "{said}");
}

#[test]
fn ruling_18_a_tool_server_says_which_tools_it_offers_where_it_is_asked() {
    let status = json!({"phase": "Ready", "ready": true, "availableTools": ["add", "echo"],
        "toolDiscovery": {"reason": "ToolsNotListed", "message": "Pod t-1: answered with HTTP status 500"}});
    let mut facts = facts(Kind::McpServer, object("MCPServer", "t", json!({"runtime": "python-string"}), status));
    assert!(text(&told(&facts)).contains("not asked for: kaos.toolDiscovery"));
    facts.settings.tool_discovery = true;
    let said = text(&told(&facts));
    assert!(said.contains("add, echo") && said.contains("answered with HTTP status 500"), "{said}");
    facts.object["status"]["availableTools"] = json!([]);
    let said = text(&told(&facts));
    assert!(said.lines().any(|line| line.contains(" tools ") && line.ends_with(" none")), "{said}");
}

/// What is said of the objects of KAOS among these, which stand in namespace shop unless they say another.
fn of_files(objects: &[Value]) -> Vec<Told> {
    let settings = facts(Kind::KaosAgent, Value::Null).settings;
    let given = world::Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 36),
        spire_driver: false,
        operator_namespace: "kaos-system".to_owned(),
    };
    let mut world = World::new(&given).unwrap();
    objects.iter().for_each(|object| world.observe(object, "shop"));
    let snapshot = world.snapshot().unwrap();
    super::of_manifests(objects, "shop", (&settings, "kaos-system"), &snapshot).unwrap()
}

#[test]
fn manifests_are_explained_without_a_cluster_and_what_they_name_is_looked_for_among_them() {
    let manifest = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let objects = [
        manifest("Agent", "clerk", json!({"modelAPI": "llm", "model": "fast", "mcpServers": ["stock", "none"]})),
        manifest("ModelAPI", "llm", json!({"mode": "Proxy", "proxyConfig": {"models": ["fast"]}})),
        manifest("MCPServer", "stock", json!({"runtime": "python-string", "params": "def f(): pass"})),
        json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "agent-clerk"}}),
    ];
    let all = of_files(&objects);
    assert_eq!(all.len(), 3, "those of other groups are not KAOS's");
    let said = text(&all[0]);
    has(
        &said,
        &[
            "Agent.kaos.tools shop/clerk",
            "ok    ModelAPI     llm is among the manifests",
            "ok    MCPServer    stock is among the manifests",
            "-     MCPServer    none is not among the manifests; nothing is made before it exists",
            "ok    model        asks for fast; the ModelAPI offers fast",
            "address: http://agent-clerk.shop.svc.cluster.local:8000",
        ],
    );
    let named = "note: NameConflict: metadata.name: Deployment agent-clerk of namespace shop is wanted by Agent agent-clerk of agent.kagenti.dev/v1alpha1";
    assert!(said.contains(named) && said.contains("MCP_SERVER_stock_URL"), "{said}");
    let said = text(&all[2]);
    assert!(
        said.contains("python-string runs image ") && !said.contains("Deployment   "),
        "the registry that is installed: {said}"
    );
    assert!(all.iter().all(|told| !told.has_findings()));
}

/// (namespace of the ConfigMap, its data, what is said of a runtime that it alone lists)
#[test]
fn the_registry_among_the_manifests_is_that_of_the_operators_namespace() {
    let server = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": "stock"},
        "spec": {"runtime": "mine"}});
    let map = |version: &str, namespace: Option<&str>, data: &Value| {
        let mut map = json!({"apiVersion": version, "kind": "ConfigMap", "metadata": {"name": "kaos-mcp-runtimes"}, "data": data});
        if let Some(namespace) = namespace {
            map["metadata"]["namespace"] = json!(namespace);
        }
        map
    };
    let lists = |image: &str| json!({"runtimes.yaml": format!("runtimes: {{mine: {{image: '{image}'}}}}")});
    let (mine, other) = (lists("m:1"), lists("m:2"));
    for (maps, says) in [
        (vec![map("v1", Some("kaos-system"), &mine)], "mine runs image m:1 "),
        (vec![map("v1", Some("kaos-system"), &other), map("v1", Some("kaos-system"), &mine)], "mine runs image m:1 "),
        (vec![map("v1", Some("shop"), &other), map("v1", Some("kaos-system"), &mine)], "mine runs image m:1 "),
        (vec![map("v1", Some("shop"), &mine)], "mine is not listed"),
        (vec![map("v1", None, &mine)], "mine is not listed"),
        (vec![map("example.com/v1", Some("kaos-system"), &mine)], "mine is not listed"),
        (vec![map("v1", Some("kaos-system"), &json!({}))], "runtimes.yaml key not found in ConfigMap"),
        (
            vec![map("v1", Some("kaos-system"), &json!({"runtimes.yaml": "runtimes: {mine: {}}"}))],
            "mine names no image",
        ),
    ] {
        let objects: Vec<Value> = std::iter::once(server.clone()).chain(maps).collect();
        let said = text(&of_files(&objects)[0]);
        assert!(said.contains(says), "{objects:?}: {said}");
    }
}

#[test]
fn an_agent_runtime_among_the_manifests_is_named_where_it_points_at_what_is_made() {
    let agent = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "clerk"},
        "spec": {"modelAPI": "llm", "model": "fast"}});
    let enrolment = |group: &str, namespace: &str, [version, kind, name]: [&str; 3]| {
        let runtime = json!({"apiVersion": format!("{group}/v1alpha1"), "kind": "AgentRuntime",
            "metadata": {"name": "r", "namespace": namespace},
            "spec": {"type": "agent", "targetRef": {"apiVersion": version, "kind": kind, "name": name}}});
        let all = of_files(&[agent.clone(), runtime]);
        assert_eq!(all.len(), 1, "an AgentRuntime is not KAOS's");
        let said = text(&all[0]);
        let line = said.lines().map(str::trim_start).find(|line| line.contains(" enrolment "));
        (line.map(str::to_owned), all[0].has_findings())
    };
    let (ours, deployment) = ("agent.kagenti.dev", ["apps/v1", "Deployment", "agent-clerk"]);
    let line = "ok    enrolment    AgentRuntime r; drawbridge explain deployment/agent-clerk shows what its Pods get"
        .to_owned();
    assert_eq!(enrolment(ours, "shop", deployment), (Some(line), false));
    let line = "fails enrolment    AgentRuntime r points at the Agent itself, which makes no Pods".to_owned();
    assert_eq!(enrolment(ours, "shop", ["kaos.tools/v1alpha1", "Agent", "clerk"]), (Some(line), true));
    for (what, said) in [
        ("another Deployment", enrolment(ours, "shop", ["apps/v1", "Deployment", "agent-other"])),
        ("another namespace", enrolment(ours, "elsewhere", deployment)),
        ("another group", enrolment("example.org", "shop", deployment)),
    ] {
        assert_eq!(said, (None, false), "{what}");
    }
}
