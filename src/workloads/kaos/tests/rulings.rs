//! Decisions about labels, ports and services.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::api::kaos_tools::shape::{McpServer, Runtime};
use crate::workloads::kaos::agent::{Wiring, compose};
use crate::workloads::kaos::{mcp_server, model_api};

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn wiring() -> Wiring {
    Wiring { model_port: 8000, peers: Vec::new() }
}

fn built(identity: &Identity, agent: &Agent) -> Composed {
    compose(identity, agent, &wiring(), &settings()).unwrap()
}

/// There is no metadata in `podSpec`, so what enrols an Agent is written on the Agent.
#[test]
fn ruling_22_what_enrols_travels_from_the_object_to_its_pods_and_never_to_the_selector() {
    let mut enrolled = identity("a");
    enrolled.labels = texts(&[("kagenti.io/type", "agent"), ("protocol.kagenti.io/a2a", ""), ("team", "x")]);
    enrolled.annotations = texts(&[
        ("kagenti.io/authbridge-mode", "proxy-sidecar"),
        ("kagenti.io/authbridge-status", "forged"),
        ("note", "x"),
    ]);
    let deployment = made(&built(&enrolled, &agent())).deployment;
    for metadata in [&deployment["metadata"], &deployment["spec"]["template"]["metadata"]] {
        assert_eq!(
            (&metadata["labels"]["kagenti.io/type"], &metadata["labels"]["protocol.kagenti.io/a2a"]),
            (&json!("agent"), &json!(""))
        );
        assert_eq!((metadata["labels"].get("team"), metadata["annotations"].get("note")), (None, None));
        assert_eq!(metadata["annotations"]["kagenti.io/authbridge-mode"], "proxy-sidecar");
        assert_eq!(
            metadata["annotations"].get("kagenti.io/authbridge-status"),
            None,
            "what we note ourselves nobody else may"
        );
    }
    assert_eq!(deployment["spec"]["selector"]["matchLabels"], json!({"app": "agent", "agent": "a"}));
}

/// Which variable tells the process its port is data.
#[test]
fn ruling_24_the_variable_of_the_port_is_said_of_every_kind() {
    let variable = |composed: &Composed| {
        let deployment = made(composed).deployment;
        deployment["spec"]["template"]["metadata"]["annotations"]["kagenti.io/port-variable"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(variable(&built(&identity("a"), &agent())), "AGENT_PORT");
    let mut own = identity("a");
    own.annotations = texts(&[("kagenti.io/port-variable", "LISTEN")]);
    assert_eq!(variable(&built(&own, &agent())), "LISTEN");
    let registry = crate::workloads::kaos::registry::Registry::read(
        "runtimes: {python-string: {image: 'i:1', paramsEnvVar: MCP_TOOLS_STRING}, kubernetes: {image: 'k:1'}}",
    );
    for (runtime, wanted) in [
        (Runtime::Registered("python-string".to_owned()), "MCP_PORT"),
        (Runtime::Registered("kubernetes".to_owned()), "none"),
        (Runtime::Package("p".to_owned()), "none"),
    ] {
        let server = McpServer {
            runtime,
            params: Some("x".to_owned()),
            service_account: None,
            telemetry: None,
            container: Container::default(),
            timeout: None,
            pod_spec: None,
        };
        let composed = mcp_server::compose(&identity("t"), (&server, false), &registry, &settings());
        assert_eq!(variable(&composed.unwrap()), wanted);
    }
    for api in [hosted("x"), proxy(listed(&["a"]))] {
        assert_eq!(variable(&model_api::compose(&identity("m"), &api, &settings()).unwrap()), "none");
    }
}

/// Port 80 is a second one, after the one that tools use.
#[test]
fn ruling_12_a_second_port_of_agents_and_tools_alone() {
    let both = Settings { service_port_80: true, ..settings() };
    let ports = |composed: &Composed| -> Vec<Value> {
        let service = made(composed).service.unwrap();
        service["spec"]["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| json!([port["port"], port["targetPort"]]))
            .collect()
    };
    assert_eq!(
        ports(&compose(&identity("a"), &agent(), &wiring(), &both).unwrap()),
        [json!([8000, 8000]), json!([80, 8000])]
    );
    assert_eq!(ports(&model_api::compose(&identity("m"), &hosted("x"), &both).unwrap()), [json!([11434, 11434])]);
}

#[test]
fn ruling_11_replicas_are_the_objects_or_nobodys() {
    let mut scaled = agent();
    assert_eq!(made(&built(&identity("a"), &scaled)).deployment["spec"].get("replicas"), None);
    scaled.replicas = Some(3);
    assert_eq!(made(&built(&identity("a"), &scaled)).deployment["spec"]["replicas"], 3);
}
