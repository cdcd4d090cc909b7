//! The published contract of KAOS's environments, held against processes: every object of every sample is composed, a process is started with the
//! environment of its Deployment, and a published validator of JSON schemas reads what the process finds.

use std::collections::{BTreeMap, BTreeSet};

use drawbridge::api::kaos_tools::read;
use drawbridge::api::kaos_tools::shape::Mode;
use drawbridge::workloads::kaos::compose::Composed;
use drawbridge::workloads::kaos::contract::Place;
use drawbridge::workloads::kaos::registry::Registry;
use drawbridge::workloads::kaos::{agent, mcp_server, model_api};
use futures::stream::{StreamExt as _, iter};
use serde_json::{Value, json};
use webhook_tests::container::{Container, ask};
use webhook_tests::network::Network;
use webhook_tests::objects::documents;

use super::kaos::{container, identity, image, pod, settings};

/// The schema as it is published.
const SCHEMA: &str = include_str!("../../../docs/reference/kaos-environment.json");

const SAMPLES: [(&str, &str); 9] = [
    ("m-simple", include_str!("../../../manifests/samples/kaos-m-simple.yaml")),
    ("m-team", include_str!("../../../manifests/samples/kaos-m-team.yaml")),
    ("m-hosted", include_str!("../../../manifests/samples/kaos-m-hosted.yaml")),
    ("s4-simple", include_str!("../../../manifests/samples/kaos-s4-simple.yaml")),
    ("s4-team", include_str!("../../../manifests/samples/kaos-s4-team.yaml")),
    ("s4-hosted", include_str!("../../../manifests/samples/kaos-s4-hosted.yaml")),
    ("s3-simple", include_str!("../../../manifests/samples/kaos-s3-simple.yaml")),
    ("s3-team", include_str!("../../../manifests/samples/kaos-s3-team.yaml")),
    ("s3-hosted", include_str!("../../../manifests/samples/kaos-s3-hosted.yaml")),
];

/// Validates its own environment, and what is left of it without names that others gave, of which the contract has to know each.
const PROGRAM: &str = "import http.server, json, os
import jsonschema
case = json.load(open('/etc/contract.json'))
whole = dict(os.environ)
rest = {name: value for name, value in whole.items() if name not in case['others']}
closed = dict(case['schema'], additionalProperties=False)
check = lambda schema, env: [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(env)]
jsonschema.Draft202012Validator.check_schema(case['schema'])
answer = json.dumps({'open': check(case['schema'], whole), 'closed': check(closed, rest), 'rest': sorted(rest)}).encode()
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header('Content-Length', str(len(answer))); self.end_headers(); self.wfile.write(answer)
http.server.HTTPServer(('127.0.0.1', 8000), Answer).serve_forever()
";

/// A container, and the names of its variables that a person wrote.
struct Case {
    name: String,
    place: Place,
    container: Value,
    users: BTreeSet<String>,
}

/// What the process answers: complaints about its environment, and about what only the contract can have put there; and the names of that.
struct Answer {
    open: Vec<String>,
    closed: Vec<String>,
    rest: BTreeSet<String>,
}

fn users(composed: &Composed) -> BTreeSet<String> {
    composed.variables.iter().filter(|one| one.row.is_none()).map(|one| one.name.clone()).collect()
}

/// The containers of an object, `all` of whose sample are there.
fn cases(sample: &str, object: &Value, all: &[Value]) -> Vec<Case> {
    let name = object["metadata"]["name"].as_str().unwrap();
    let who = identity(name);
    let named =
        |kind: &str, name: &str| all.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let (place, composed) = match object["kind"].as_str().unwrap() {
        "Agent" => {
            let said = read::agent(object).value;
            let api = named("ModelAPI", &said.model_api).unwrap();
            let model_port = if read::model_api(api).value.mode == Mode::Hosted { 11434 } else { 8000 };
            let is_there = |peer: &&String| named("Agent", peer).is_some_and(|peer| read::agent(peer).value.expose);
            let peers = said.access.iter().filter(is_there).cloned().collect();
            (Place::Agent, agent::compose(&who, &said, &agent::Wiring { model_port, peers }, &settings()).unwrap())
        }
        "ModelAPI" => {
            let said = read::model_api(object).value;
            let place = if said.mode == Mode::Hosted { Place::Hosted } else { Place::Proxy };
            (place, model_api::compose(&who, &said, &settings()).unwrap())
        }
        _ => {
            let said = read::mcp_server(object).value;
            let registry =
                Registry::read("runtimes: {python-string: {image: 'tools:1', paramsEnvVar: MCP_TOOLS_STRING}}");
            (Place::Tools, mcp_server::compose(&who, (&said, false), &registry, &settings()).unwrap())
        }
    };
    let case = |place: Place, container: &Value| Case {
        name: format!("{sample}: {} {name} ({})", object["kind"].as_str().unwrap(), place.name()),
        place,
        container: container.clone(),
        users: users(&composed),
    };
    let mut cases = vec![case(place, &container(&composed))];
    let before = pod(&composed)["initContainers"].as_array().cloned().unwrap_or_default();
    cases.extend(before.iter().map(|container| case(Place::Pull, container)));
    cases
}

/// The interpreter itself: what chooses among several adds variables of its own.
fn interpreter() -> String {
    let program = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let output =
        std::process::Command::new(program).args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts a process with that environment, and asks it what the validator says.
async fn answer(case: &Case) -> Answer {
    let mut container = case.container.clone();
    container["command"] = json!([interpreter(), "-c", PROGRAM]);
    container["args"].take();
    let mut around = image(&[]);
    for entry in container["env"].as_array().into_iter().flatten() {
        if let Some(at) = ["secretKeyRef", "configMapKeyRef"].iter().find_map(|kind| entry["valueFrom"].get(kind)) {
            let key = format!("{}/{}", at["name"].as_str().unwrap(), at["key"].as_str().unwrap());
            around.keys.insert(key, "what is kept there".to_owned());
        }
    }
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    // What the image has, what a person wrote, and what the interpreter adds to itself.
    let image = around.image_env.keys().chain(&case.users).map(String::as_str);
    let others: BTreeSet<_> = image.chain(["LC_CTYPE", "PWD", "SHLVL", "OLDPWD", "_"]).collect();
    let contract = json!({"schema": schema["$defs"][case.place.name()], "others": others});
    around.files = BTreeMap::from([("/etc/contract.json".to_owned(), contract.to_string())]);
    let network = Network::new().await.unwrap();
    let running = Container::start(&network, &container, &around).await.unwrap();
    running.ready(&network, 8000, Some("/")).await.unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
    let (_, said) = ask(&network, 8000, ("GET", "/"), &[], "").await.unwrap();
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{}: {error}: {said}", case.name));
    let texts = |key: &str| -> Vec<String> { serde_json::from_value(said[key].clone()).unwrap() };
    Answer { open: texts("open"), closed: texts("closed"), rest: texts("rest").into_iter().collect() }
}

async fn holds(case: Case) {
    let Answer { open, closed, rest } = answer(&case).await;
    assert!(open.is_empty() && closed.is_empty(), "{}: {open:?} {closed:?}", case.name);
    let written = case.container["env"].as_array().into_iter().flatten().map(|entry| entry["name"].as_str().unwrap());
    let written: BTreeSet<_> = written.filter(|name| !case.users.contains(*name)).map(str::to_owned).collect();
    assert_eq!(rest, written, "{}: what the process finds, and what was written", case.name);
}

fn all() -> Vec<Case> {
    let of = |(sample, text): (&str, &str)| {
        let objects = documents(text).unwrap();
        let ours = |object: &&Value| object["apiVersion"] == "kaos.tools/v1alpha1";
        objects.iter().filter(ours).flat_map(|object| cases(sample, object, &objects)).collect::<Vec<_>>()
    };
    SAMPLES.into_iter().flat_map(of).collect()
}

/// Every spelling, every kind, and the init containers of hosted models.
#[tokio::test]
async fn a_process_finds_the_environment_that_the_published_schema_says_in_every_spelling() {
    let cases = all();
    let places: BTreeSet<_> = cases.iter().map(|case| case.place).collect();
    assert_eq!(places.len(), Place::ALL.len(), "a container that no sample has: {places:?}");
    iter(cases.into_iter().map(holds)).buffer_unordered(2).collect::<Vec<_>>().await;
}

/// What is missing, has another form, or is in nobody's contract, the validator says.
#[tokio::test]
async fn an_environment_that_is_not_the_contract_s_is_told_from_one_that_is() {
    let agent = |name: &str| all().into_iter().find(|case| case.name.starts_with("m-team") && case.name.contains(name));
    let mut case = agent("Agent coordinator").unwrap();
    let env = case.container["env"].as_array_mut().unwrap();
    env.retain(|entry| entry["name"] != "MODEL_NAME");
    for entry in env.iter_mut() {
        match entry["name"].as_str().unwrap() {
            "LOG_LEVEL" => entry["value"] = json!("loud"),
            "PEER_AGENT_FACT_CHECKER_CARD_URL" => entry["value"] = json!("http://elsewhere:8000"),
            _ => {}
        }
    }
    env.push(json!({"name": "NOBODY_KNOWS", "value": "1"}));
    let Answer { open, closed, .. } = answer(&case).await;
    for words in
        ["'MODEL_NAME' is a required property", "'loud' is not one of", "'http://elsewhere:8000' does not match"]
    {
        assert!(open.iter().any(|said| said.contains(words)), "{words} is not among {open:?}");
    }
    assert_eq!(open.len(), 3, "{open:?}");
    assert!(closed.iter().any(|said| said.contains("NOBODY_KNOWS")), "{closed:?}");
}
