//! What runs an Agent.

use serde_json::json;

use super::*;
use crate::api::kaos_tools::shape::{Memory, Telemetry};
use crate::workloads::kaos::agent::{Wiring, compose};
use crate::workloads::kaos::compose::{ComposeFault, route};
use crate::workloads::kaos::names::Role;
use crate::workloads::kaos::settings::{Gateway, LogLevel};

fn wiring(peers: &[&str]) -> Wiring {
    Wiring { model_port: 8000, peers: strings(peers) }
}

fn built(agent: &Agent) -> Composed {
    composed(agent, &[], &settings())
}

fn composed(agent: &Agent, peers: &[&str], settings: &Settings) -> Composed {
    compose(&identity("a"), agent, &wiring(peers), settings).unwrap()
}

/// The worked example: the whole environment, in order.
#[test]
fn the_worked_example_has_this_environment_in_this_order() {
    let (mut who, mut clerk) = (identity("clerk"), agent());
    who.owner.namespace = "shop".to_owned();
    clerk.model_api = "llm".to_owned();
    clerk.model = Model::Named("fast".to_owned());
    clerk.mcp_servers = strings(&["stock-db", "calc"]);
    clerk.description = Some("Answers stock questions".to_owned());
    clerk.max_steps = Some(5);
    clerk.memory = Some(Memory {
        enabled: true,
        kind: "local".to_owned(),
        context_limit: 6,
        max_sessions: 10,
        max_session_events: 500,
    });
    clerk.container.env = env(&[json!({"name": "TZ", "value": "UTC"})]);
    let composed = compose(&who, &clerk, &wiring(&["auditor"]), &settings()).unwrap();
    let found = variables(&main(&composed));
    let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(
        found,
        [
            ("AGENT_NAME", "clerk"),
            ("AGENT_DESCRIPTION", "Answers stock questions"),
            ("TZ", "UTC"),
            ("MODEL_API_URL", "http://modelapi-llm.shop.svc.cluster.local:8000"),
            ("MODEL_NAME", "fast"),
            ("AGENTIC_LOOP_MAX_STEPS", "5"),
            ("MEMORY_ENABLED", "true"),
            ("MEMORY_TYPE", "local"),
            ("MEMORY_CONTEXT_LIMIT", "6"),
            ("MEMORY_MAX_SESSIONS", "10"),
            ("MEMORY_MAX_SESSION_EVENTS", "500"),
            ("MCP_SERVERS", "calc,stock-db"),
            ("MCP_SERVER_calc_URL", "http://mcpserver-calc.shop.svc.cluster.local:8000"),
            ("MCP_SERVER_stock-db_URL", "http://mcpserver-stock-db.shop.svc.cluster.local:8000"),
            ("PEER_AGENTS", "auditor"),
            ("PEER_AGENT_AUDITOR_CARD_URL", "http://agent-auditor.shop.svc.cluster.local:8000"),
            ("LOG_LEVEL", "INFO"),
        ]
    );
    let from: Vec<_> = composed.variables.iter().map(|variable| (&*variable.name, &*variable.from)).collect();
    assert!(from.contains(&("TZ", "spec.container.env[0]")) && from.contains(&("MODEL_NAME", "spec.model")));
}

#[test]
fn cases_1_2_6_8_and_regressions_30_31_33_absent_texts_make_no_variable() {
    let container = main(&built(&agent()));
    assert_eq!(variables(&container)[0], ("AGENT_NAME".to_owned(), "a".to_owned()));
    assert_eq!(names(&container), ["AGENT_NAME", "MODEL_API_URL", "MODEL_NAME", "LOG_LEVEL"]);
    let mut said = agent();
    said.description = Some("helps".to_owned());
    said.instructions = Some("line\nline $(AGENT_NAME)".to_owned());
    said.model = Model::Named("smollm2:135m".to_owned());
    let container = main(&built(&said));
    assert_eq!(variable(&container, "AGENT_DESCRIPTION").as_deref(), Some("helps"));
    assert_eq!(variable(&container, "AGENT_INSTRUCTIONS").as_deref(), Some("line\nline $$(AGENT_NAME)"));
    assert_eq!(names(&container)[3..5], ["MODEL_API_URL", "MODEL_NAME"], "case 6");
    assert_eq!(variable(&container, "MODEL_NAME").as_deref(), Some("smollm2:135m"));
}

#[test]
fn cases_5_7_61_62_what_the_user_sets_stands_once_and_where_it_was_written() {
    let reference = json!({"name": "MODEL_NAME", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    for entry in [json!({"name": "MODEL_NAME", "value": "foo"}), reference] {
        let mut by_variable = agent();
        by_variable.model = Model::Variable;
        by_variable.container.env =
            env(&[json!({"name": "A", "value": "1"}), entry.clone(), json!({"name": "B", "value": "2"})]);
        let container = main(&built(&by_variable));
        assert_eq!(names(&container), ["AGENT_NAME", "A", "MODEL_NAME", "B", "MODEL_API_URL", "LOG_LEVEL"]);
        assert_eq!(container["env"][2], entry);
    }
    let mut loud = agent();
    loud.container.env = env(&[json!({"name": "LOG_LEVEL", "value": "DEBUG"})]);
    assert_eq!(variable(&main(&built(&loud)), "LOG_LEVEL").as_deref(), Some("DEBUG"));
    let warning = Settings { log_level: LogLevel::Warning, ..settings() };
    let container = main(&composed(&agent(), &[], &warning));
    assert_eq!(variables(&container).last(), Some(&("LOG_LEVEL".to_owned(), "WARNING".to_owned())));
}

/// What is the operator's alone stays, and the user is told.
#[test]
fn names_that_wire_the_agent_are_nobodys_else() {
    let mut bold = agent();
    bold.mcp_servers = strings(&["t"]);
    let entry = |name: &str| json!({"name": name, "value": "mine"});
    bold.container.env = env(&[entry("MODEL_API_URL"), entry("MCP_SERVERS"), entry("AGENT_NAME"), entry("TZ")]);
    let composed = built(&bold);
    let container = main(&composed);
    assert_eq!(variable(&container, "MODEL_API_URL").as_deref(), Some("http://modelapi-m.ns.svc.cluster.local:8000"));
    assert_eq!(variable(&container, "MCP_SERVERS").as_deref(), Some("t"));
    assert_eq!(variable(&container, "TZ").as_deref(), Some("mine"));
    let ignored: Vec<_> = composed.ignored.iter().map(|one| &*one.name).collect();
    assert_eq!(ignored, ["AGENT_NAME", "MODEL_API_URL", "MCP_SERVERS"]);
}

#[test]
fn cases_9_to_12_and_15_the_loop_as_every_spelling_says_it() {
    let mut old = agent();
    (old.max_steps, old.loop_tools, old.loop_delegation) = (Some(7), Some(false), Some(true));
    old.debug_memory = true;
    let container = main(&built(&old));
    assert_eq!(
        names(&container)[3..7],
        [
            "AGENT_DEBUG_MEMORY_ENDPOINTS",
            "AGENTIC_LOOP_MAX_STEPS",
            "AGENTIC_LOOP_ENABLE_TOOLS",
            "AGENTIC_LOOP_ENABLE_DELEGATION"
        ]
    );
    assert_eq!(variable(&container, "AGENTIC_LOOP_ENABLE_TOOLS").as_deref(), Some("false"));
    old.container.env = env(&[json!({"name": "AGENT_DEBUG_MEMORY_ENDPOINTS", "value": "false"})]);
    assert_eq!(variable(&main(&built(&old)), "AGENT_DEBUG_MEMORY_ENDPOINTS").as_deref(), Some("false"));
}

#[test]
fn cases_13_14_58_to_60_tools_and_peers_in_the_order_of_their_bytes_each_once() {
    let mut wired = agent();
    wired.mcp_servers = strings(&["zeta", "alpha-1", "zeta"]);
    let composed = composed(&wired, &["worker-2", "worker-1", "worker-2"], &settings());
    let found = variables(&main(&composed));
    let of = |prefix: &str| -> Vec<(String, String)> {
        found.iter().filter(|(name, _)| name.starts_with(prefix)).cloned().collect()
    };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(
        of("MCP_"),
        pairs(&[
            ("MCP_SERVERS", "alpha-1,zeta"),
            ("MCP_SERVER_alpha-1_URL", "http://mcpserver-alpha-1.ns.svc.cluster.local:8000"),
            ("MCP_SERVER_zeta_URL", "http://mcpserver-zeta.ns.svc.cluster.local:8000"),
        ])
    );
    assert_eq!(
        of("PEER_"),
        pairs(&[
            ("PEER_AGENTS", "worker-1,worker-2"),
            ("PEER_AGENT_WORKER_1_CARD_URL", "http://agent-worker-1.ns.svc.cluster.local:8000"),
            ("PEER_AGENT_WORKER_2_CARD_URL", "http://agent-worker-2.ns.svc.cluster.local:8000"),
        ])
    );
    let without = names(&main(&built(&agent())));
    assert!(
        !without.iter().any(|name| name.starts_with("MCP_") || name.starts_with("PEER_")),
        "regression 39: {without:?}"
    );
}

#[test]
fn cases_50_to_52_54_63_and_regressions_21_to_27_the_deployment_and_its_service() {
    let made = made(&built(&agent()));
    let labels = json!({"app": "agent", "agent": "a"});
    assert_eq!(made.deployment["metadata"]["name"], "agent-a");
    assert_eq!(made.deployment["spec"]["selector"]["matchLabels"], labels);
    for (key, value) in labels.as_object().unwrap() {
        assert_eq!(&made.deployment["metadata"]["labels"][key], value);
        assert_eq!(&made.deployment["spec"]["template"]["metadata"]["labels"][key], value);
    }
    let owner = &made.deployment["metadata"]["ownerReferences"];
    assert_eq!(
        owner,
        &json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "a", "uid": "u", "controller": true, "blockOwnerDeletion": true}])
    );
    // Whoever scales it is left to; what is made without it has one.
    assert_eq!(made.deployment["spec"].get("replicas"), None, "regression 21");
    let container = &made.deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["name"], &container["imagePullPolicy"], &container["image"]),
        (&json!("agent"), &json!("IfNotPresent"), &json!("example/agent:7"))
    );
    assert_eq!(container["ports"], json!([{"name": "http", "containerPort": 8000, "protocol": "TCP"}]));
    assert_eq!(
        container["livenessProbe"],
        json!({"httpGet": {"path": "/health", "port": 8000, "scheme": "HTTP"}, "initialDelaySeconds": 30, "periodSeconds": 10})
    );
    assert_eq!(
        container["readinessProbe"],
        json!({"httpGet": {"path": "/ready", "port": 8000, "scheme": "HTTP"}, "initialDelaySeconds": 10, "periodSeconds": 5})
    );
    assert_eq!((container.get("command"), container.get("args"), container.get("resources")), (None, None, None));
    let service = made.service.unwrap();
    assert_eq!(service["metadata"]["name"], "agent-a");
    assert_eq!(
        service["spec"],
        json!({"type": "ClusterIP", "selector": labels, "ports": [{"name": "http", "port": 8000, "targetPort": 8000, "protocol": "TCP"}]})
    );
    assert_eq!(made.account, None);
}

/// Agents, tools and models of others run in every real cluster only if nothing is closed that they do not know of.
#[test]
fn ruling_7_nothing_in_a_template_is_locked_down() {
    let mut every = vec![pod(&built(&agent()))];
    for api in [hosted("smollm2:135m"), proxy(listed(&["a"]))] {
        every.push(pod(&crate::workloads::kaos::model_api::compose(&identity("m"), &api, &settings()).unwrap()));
    }
    for pod in every {
        let text = pod.to_string();
        for member in ["securityContext", "serviceAccountName", "automountServiceAccountToken", "seccompProfile"] {
            assert!(!text.contains(member), "{member}: {text}");
        }
    }
}

#[test]
fn case_53_the_image_is_the_platforms_or_the_objects_own() {
    let none = Settings::default();
    let fault = compose(&identity("a"), &agent(), &wiring(&[]), &none).unwrap_err();
    assert_eq!(fault, ComposeFault::NoImage("images.kaosAgent"));
    assert!(fault.to_string().starts_with("images.kaosAgent is not set"), "{fault}");
    let mut own = agent();
    own.container.image = Some("mine:1".to_owned());
    own.container.command = Some(strings(&["x"]));
    own.container.resources = Some(json!({"limits": {"cpu": "1"}}));
    let container = main(&composed(&own, &[], &none));
    assert_eq!((&container["image"], &container["command"]), (&json!("mine:1"), &json!(["x"])), "8.4 row 35");
    assert_eq!(container["resources"], json!({"limits": {"cpu": "1"}}));
}

#[test]
fn cases_55_to_57_and_regressions_35_to_38_memory() {
    let mut said = agent();
    let memory = Memory {
        enabled: false,
        kind: "local".to_owned(),
        context_limit: 6,
        max_sessions: 1000,
        max_session_events: 500,
    };
    said.memory = Some(memory);
    let found: Vec<_> =
        variables(&main(&built(&said))).into_iter().filter(|(name, _)| name.starts_with("MEMORY")).collect();
    let wanted = [
        ("MEMORY_ENABLED", "false"),
        ("MEMORY_TYPE", "local"),
        ("MEMORY_CONTEXT_LIMIT", "6"),
        ("MEMORY_MAX_SESSIONS", "1000"),
        ("MEMORY_MAX_SESSION_EVENTS", "500"),
    ];
    assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(!names(&main(&built(&agent()))).iter().any(|name| name.starts_with("MEMORY")));
}

#[test]
fn case_66_who_is_not_exposed_has_no_service() {
    let mut hidden = agent();
    hidden.expose = false;
    assert_eq!(made(&built(&hidden)).service, None);
}

#[test]
fn cases_70_to_72_the_hash_follows_the_pods_spec_and_nothing_else() {
    let hash = |agent: &Agent| {
        let made = made(&built(agent));
        made.deployment["spec"]["template"]["metadata"]["annotations"]["kaos.tools/pod-spec-hash"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut other = agent();
    other.instructions = Some("other".to_owned());
    assert_ne!(hash(&agent()), hash(&other));
    other = agent();
    other.replicas = Some(3);
    assert_eq!((hash(&agent()), hash(&agent()).len()), (hash(&other), 16));
}

#[test]
fn cases_77_to_85_a_pod_spec_adds_and_never_replaces_what_it_does_not_name() {
    let plain = main(&built(&agent()));
    let with = |patch: Value| {
        let mut patched = agent();
        patched.pod_spec = Some(Raw(patch));
        pod(&built(&patched))
    };
    let selected = with(json!({"containers": [], "nodeSelector": {"gpu": "true"}}));
    assert_eq!(
        (&selected["nodeSelector"], &selected["containers"]),
        (&json!({"gpu": "true"}), &json!([plain])),
        "case 77"
    );
    let resources = with(json!({"containers": [{"name": "agent", "resources": {"limits": {"cpu": 1}}}]}));
    let mut wanted = plain.clone();
    wanted["resources"] = json!({"limits": {"cpu": 1}});
    assert_eq!(resources["containers"], json!([wanted]), "cases 78 and 87");
    let renamed = with(json!({"containers": [{"name": "agent", "env": [{"name": "MODEL_NAME", "value": "z"}]}]}));
    assert_eq!(variable(&renamed["containers"][0], "MODEL_NAME").as_deref(), Some("z"), "case 79");
    let slow = with(json!({"containers": [{"name": "agent", "livenessProbe": {"initialDelaySeconds": 60}}]}));
    let mut wanted = plain.clone();
    wanted["livenessProbe"]["initialDelaySeconds"] = json!(60);
    assert_eq!(slow["containers"][0], wanted, "case 81");
    let command = with(json!({"containers": [{"name": "agent", "command": ["x"]}]}));
    assert_eq!(command["containers"][0]["command"], json!(["x"]), "case 82");
    let tolerant = with(json!({"tolerations": [{"operator": "Exists"}]}));
    assert_eq!(tolerant["tolerations"], json!([{"operator": "Exists"}]), "case 84");
}

#[test]
fn case_80_kubectl_means_the_agent_where_there_are_others() {
    let mut patched = agent();
    patched.pod_spec = Some(Raw(json!({"containers": [{"name": "sidecar", "image": "s"}]})));
    let template = made(&built(&patched)).deployment["spec"]["template"].clone();
    assert_eq!(template["spec"]["containers"][0]["name"], "agent");
    assert_eq!(template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"], "agent");
    let alone = made(&built(&agent())).deployment["spec"]["template"].clone();
    assert_eq!(alone["metadata"]["annotations"].get("kubectl.kubernetes.io/default-container"), None);
}

#[test]
fn case_86_what_cannot_be_merged_says_where() {
    let mut patched = agent();
    patched.pod_spec = Some(Raw(json!({"containers": [{"image": "s"}]})));
    let fault = compose(&identity("a"), &patched, &wiring(&[]), &settings()).unwrap_err().to_string();
    assert!(fault.starts_with("spec.podSpec.containers: has an item without name"), "{fault}");
}

#[test]
fn cases_123_to_125_and_regressions_16_and_17_the_route() {
    let gateway = Gateway { enabled: true, name: "edge".to_owned(), ..Gateway::clone(&settings().gateway) };
    let mut clerk = identity("clerk");
    clerk.owner.namespace = "shop".to_owned();
    let of = |role: Role, port: u16| route(role, &clerk, (port, None), (&gateway, "infra"));
    assert_eq!(
        of(Role::Agent, 8000),
        json!({
            "parentRefs": [{"name": "edge", "namespace": "infra"}],
            "rules": [{
                "matches": [{"path": {"type": "PathPrefix", "value": "/shop/agent/clerk"}}],
                "filters": [{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}],
                "backendRefs": [{"name": "agent-clerk", "port": 8000}],
                "timeouts": {"request": "300s"},
            }],
        })
    );
    assert_eq!(
        of(Role::ModelApi, 11434)["rules"][0]["backendRefs"],
        json!([{"name": "modelapi-clerk", "port": 11434}])
    );
    assert_eq!(of(Role::ModelApi, 8000)["rules"][0]["timeouts"], json!({"request": "120s"}));
    let tools = of(Role::McpServer, 8000)["rules"][0].clone();
    assert_eq!(tools["matches"][0]["path"]["value"], "/shop/mcp/clerk");
    assert_eq!(tools["timeouts"], json!({"request": "60s"}));
    for (timeout, wanted) in [("5m", Some(json!({"request": "5m"}))), ("0s", None)] {
        let made = route(Role::Agent, &clerk, (8000, Some(timeout)), (&gateway, "infra"));
        assert_eq!(made["rules"][0].get("timeouts").cloned(), wanted);
    }
}

#[test]
fn cases_130_to_133_telemetry_of_an_agent() {
    let global = Settings {
        telemetry: crate::workloads::kaos::settings::Telemetry {
            enabled: true,
            endpoint: Some("http://g:4317".to_owned()),
        },
        ..settings()
    };
    let container = main(&composed(&agent(), &[], &global));
    let otel: Vec<_> = variables(&container).into_iter().filter(|(name, _)| name.starts_with("OTEL")).collect();
    let wanted = [
        ("OTEL_SDK_DISABLED", "false"),
        ("OTEL_SERVICE_NAME", "a"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://g:4317"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=ns,kaos.resource.name=a"),
        ("OTEL_PYTHON_FASTAPI_EXCLUDED_URLS", "/health,/ready"),
    ];
    assert_eq!(otel, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(names(&container).last().map(String::as_str), Some("LOG_LEVEL"));
    let mut off = agent();
    off.telemetry = Some(Telemetry { enabled: false, endpoint: Some("http://c".to_owned()) });
    assert!(!names(&main(&composed(&off, &[], &global))).iter().any(|name| name.starts_with("OTEL")));
}
