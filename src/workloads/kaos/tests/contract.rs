//! What is written into environments, and the contract that is published of it, say the same.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::*;
use crate::api::kaos_tools::read;
use crate::api::yaml;
use crate::workloads::kaos::agent::Wiring;
use crate::workloads::kaos::contract::{self, Name, Place, Row, schema};
use crate::workloads::kaos::registry::Registry;
use crate::workloads::kaos::settings::{LogLevel, Telemetry};
use crate::workloads::kaos::{agent, mcp_server, model_api};

const SAMPLES: [&str; 9] = [
    include_str!("../../../../manifests/samples/kaos-m-simple.yaml"),
    include_str!("../../../../manifests/samples/kaos-m-team.yaml"),
    include_str!("../../../../manifests/samples/kaos-m-hosted.yaml"),
    include_str!("../../../../manifests/samples/kaos-s4-simple.yaml"),
    include_str!("../../../../manifests/samples/kaos-s4-team.yaml"),
    include_str!("../../../../manifests/samples/kaos-s4-hosted.yaml"),
    include_str!("../../../../manifests/samples/kaos-s3-simple.yaml"),
    include_str!("../../../../manifests/samples/kaos-s3-team.yaml"),
    include_str!("../../../../manifests/samples/kaos-s3-hosted.yaml"),
];

const REGISTRY: &str = "runtimes:\n  python-string: {image: 'tools:1', paramsEnvVar: MCP_TOOLS_STRING}\n  slack: {image: 'slack:1', paramsEnvVar: SLACK}\n";

/// What no sample says.
fn rest() -> Vec<Value> {
    let object =
        |kind: &str, spec: Value| json!({"kind": kind, "metadata": {"name": "rest", "namespace": "ns"}, "spec": spec});
    vec![
        object(
            "Agent",
            json!({"modelAPI": "m", "model": "x", "mcpServers": ["t"], "agentNetwork": {"access": ["my-peer"]},
                   "config": {"description": "d", "instructions": "i", "memory": {}, "agenticLoop": {"enableTools": true, "enableDelegation": true}},
                   "container": {"env": [{"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "a=b"}, {"name": "TZ", "value": "UTC"}]}}),
        ),
        object(
            "ModelAPI",
            json!({"mode": "Proxy", "proxyConfig": {"models": ["a"], "apiBase": "http://x", "apiKey": {"value": "k"}}}),
        ),
        object(
            "ModelAPI",
            json!({"mode": "Hosted", "hostedConfig": {"model": "smollm2:135m"}, "container": {"env": [{"name": "X", "value": "1"}]}}),
        ),
        object("MCPServer", json!({"runtime": "slack", "params": "p"})),
        object("MCPServer", json!({"config": {"tools": {"fromSecretKeyRef": {"name": "s", "key": "k"}}}})),
    ]
}

fn objects() -> Vec<Value> {
    let documents =
        SAMPLES.iter().flat_map(|text| text.split("\n---\n")).map(|text| yaml::parse(text).unwrap().to_json());
    let ours = |object: &Value| object["apiVersion"].as_str().is_some_and(|version| version.starts_with("kaos.tools/"));
    documents.filter(ours).chain(rest()).collect()
}

/// Everything that the platform can decide about environments.
fn platforms() -> Vec<Settings> {
    let telemetry = |endpoint: Option<&str>| Telemetry { enabled: true, endpoint: endpoint.map(str::to_owned) };
    let levels = LogLevel::ALL.iter().map(|(_, log_level)| Settings { log_level: *log_level, ..settings() });
    let sent = [telemetry(None), telemetry(Some("http://c:4317"))];
    levels.chain(sent.into_iter().map(|telemetry| Settings { telemetry, ..settings() })).collect()
}

fn composed(object: &Value, settings: &Settings) -> (Place, Composed) {
    let who = identity(object["metadata"]["name"].as_str().unwrap());
    match object["kind"].as_str().unwrap() {
        "Agent" => {
            let agent = read::agent(object).value;
            let wiring = Wiring { model_port: 8000, peers: agent.access.clone() };
            (Place::Agent, agent::compose(&who, &agent, &wiring, settings).unwrap())
        }
        "ModelAPI" => {
            let api = read::model_api(object).value;
            let place = if api.mode == Mode::Proxy { Place::Proxy } else { Place::Hosted };
            (place, model_api::compose(&who, &api, settings).unwrap())
        }
        _ => {
            let server = read::mcp_server(object).value;
            (Place::Tools, mcp_server::compose(&who, (&server, false), &Registry::read(REGISTRY), settings).unwrap())
        }
    }
}

/// The variable that an injected Pod is told its port by is the contract's as well.
fn port_row(place: Place, composed: &Composed) -> Option<&'static Row> {
    let name =
        made(composed).deployment.pointer("/spec/template/metadata/annotations/kagenti.io~1port-variable").cloned()?;
    place.row(name.as_str()?)
}

#[test]
fn every_variable_that_is_written_has_a_row_and_every_row_is_written() {
    let mut written: BTreeMap<Place, BTreeSet<String>> = BTreeMap::new();
    for (object, settings) in objects().iter().flat_map(|object| platforms().into_iter().map(move |one| (object, one)))
    {
        let (place, composed) = composed(object, &settings);
        let seen = written.entry(place).or_default();
        let mut last = 0;
        for variable in &composed.variables {
            let Some(row) = variable.row else { continue };
            let at = place.rows().iter().position(|known| std::ptr::eq(*known, row));
            let at =
                at.unwrap_or_else(|| panic!("{}: {} is not of {}", object["metadata"], variable.name, place.name()));
            assert!(at >= last, "{}: {} is out of order", object["metadata"], variable.name);
            let registered = matches!(row.name, Name::Registered(_));
            assert!(row.name.is(&variable.name) || registered, "{}", variable.name);
            let origins: Vec<_> = row.from.iter().map(|from| from.words(place)).collect();
            assert!(origins.contains(&variable.from), "{}: {} is not among {origins:?}", variable.name, variable.from);
            last = at;
            seen.insert(row.name.shown());
        }
        seen.extend(port_row(place, &composed).map(|row| row.name.shown()));
        // Init containers have the same variables, and one more.
        for container in pod(&composed)["initContainers"].as_array().into_iter().flatten() {
            for name in names(container) {
                let users = composed.variables.iter().any(|one| one.row.is_none() && one.name == name);
                let row = Place::Pull.row(&name);
                assert!(users || row.is_some(), "{name} has no row");
                written.entry(Place::Pull).or_default().extend(row.map(|row| row.name.shown()));
            }
        }
    }
    for place in Place::ALL {
        let rows: BTreeSet<_> = place.rows().iter().map(|row| row.name.shown()).collect();
        assert_eq!(written[&place], rows, "{}: what is written, and what the contract has", place.name());
    }
}

#[test]
fn what_is_always_there_is_in_every_environment() {
    for (object, settings) in objects().iter().flat_map(|object| platforms().into_iter().map(move |one| (object, one)))
    {
        let (place, composed) = composed(object, &settings);
        let said = schema::definition(place);
        let names: BTreeSet<_> = composed.variables.iter().map(|variable| &*variable.name).collect();
        for name in said["required"].as_array().into_iter().flatten() {
            assert!(names.contains(name.as_str().unwrap()), "{}: {name} is missing", object["metadata"]);
        }
    }
}

#[test]
fn the_schema_has_a_definition_for_each_container_with_every_row_of_it() {
    let schema = schema::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for place in Place::ALL {
        let said = &schema["$defs"][place.name()];
        let members = |key: &str| said[key].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(members("properties") + members("patternProperties"), place.rows().len(), "{}", place.name());
    }
    let agent = &schema["$defs"]["agent"];
    assert_eq!(agent["required"], json!(["AGENT_NAME", "MODEL_API_URL", "MODEL_NAME", "LOG_LEVEL"]));
    let url = &agent["patternProperties"]["^MCP_SERVER_[a-z0-9]([-a-z0-9]*[a-z0-9])?_URL$"];
    assert_eq!((&url["x-from"], &url["x-user-may-set"]), (&json!(["spec.mcpServers"]), &json!(false)));
    let sent = |place: &str| schema["$defs"][place]["properties"]["OTEL_SERVICE_NAME"]["x-from"][0].clone();
    assert_eq!((sent("agent"), sent("mcpserver")), (json!("spec.config.telemetry"), json!("spec.telemetry")));
    let levels = |place: &str, name: &str| schema["$defs"][place]["properties"][name]["enum"].clone();
    assert_eq!(levels("agent", "LOG_LEVEL"), json!(["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"]));
    assert_eq!(levels("modelapi-proxy", "LITELLM_LOG"), json!(["DEBUG", "INFO", "WARNING", "ERROR"]));
}

#[test]
fn names_of_objects_stand_in_variables_as_the_runtime_looks_for_them() {
    let of = |row: &Row, name: &str| row.name.of(name);
    assert_eq!(of(&contract::MCP_SERVER_URL, "my-tool"), "MCP_SERVER_my-tool_URL");
    assert_eq!(of(&contract::PEER_AGENT_CARD_URL, "my-peer"), "PEER_AGENT_MY_PEER_CARD_URL");
    assert!(Place::Agent.row("MCP_SERVER_my-tool_URL").is_some() && Place::Agent.row("MCP_SERVER__URL").is_none());
}
