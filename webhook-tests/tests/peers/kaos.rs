//! What is made for a proxy, a tool server and an agent of KAOS, started as it is made: the published LiteLLM with the file, the arguments and the
//! environment of the Deployment, before an upstream that writes down what it is asked; the published FastMCP with the text of the tools; a
//! process that reads an agent's environment.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use drawbridge::api::kaos_tools::read;
use drawbridge::api::owner::Owner;
use drawbridge::workloads::kaos::compose::Composed;
use drawbridge::workloads::kaos::identity::Identity;
use drawbridge::workloads::kaos::registry::Registry;
use drawbridge::workloads::kaos::settings::Settings;
use drawbridge::workloads::kaos::{agent, mcp_server, model_api};
use drawbridge::workloads::workload::render;
use futures::stream::{StreamExt as _, iter};
use parking_lot::Mutex;
use serde_json::{Value, json};
use webhook_tests::container::{Container, Surroundings, ask, environment, python};
use webhook_tests::network::Network;

/// Where the upstream listens.
const UPSTREAM: u16 = 9000;
/// The provider's key.
pub(super) const KEY: &str = "sk-of-the-provider";

/// What the upstream was asked: path, model, Authorization.
pub(super) type Asked = Arc<Mutex<Vec<(String, String, String)>>>;

/// An OpenAI-compatible server on loopback that answers everything and writes down what it is asked; models whose names end in `refuses` it refuses.
pub(super) async fn upstream(network: &Network) -> Asked {
    let asked = Asked::default();
    let told = asked.clone();
    let serve = move || -> anyhow::Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", UPSTREAM))?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let told = told.clone();
                std::thread::spawn(move || answer(stream, &told));
            }
        });
        Ok(())
    };
    network.run(serve).await.unwrap();
    asked
}

fn answer(stream: std::net::TcpStream, told: &Asked) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut length, mut authorization) = (0, String::new());
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).unwrap();
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => value.clone_into(&mut authorization),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let message = json!({"role": "assistant", "content": "hello"});
        let said = json!({
            "id": "1", "object": "chat.completion", "created": 1, "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        })
        .to_string();
        let refuses = model.ends_with("refuses");
        told.lock().push((path, model, authorization));
        let no =
            json!({"error": {"message": "the provider refuses", "type": "server_error", "code": "503"}}).to_string();
        let (status, said) = if refuses { ("503 Service Unavailable", no) } else { ("200 OK", said) };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", said.len());
        let stream = reader.get_mut();
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(said.as_bytes())).is_err() {
            return;
        }
    }
}

pub(super) fn settings() -> Settings {
    let image = |name: &str| Some(format!("example/{name}:1"));
    Settings {
        image_agent: image("agent"),
        image_litellm: image("litellm"),
        image_ollama: image("ollama"),
        image_python: image("python"),
        ..Settings::default()
    }
}

pub(super) fn identity(name: &str) -> Identity {
    Identity {
        owner: Owner { name: name.to_owned(), namespace: "ns".to_owned(), uid: "u".to_owned() },
        ..Identity::default()
    }
}

pub(super) fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "ns"}, "spec": spec})
}

/// The Pod's spec in the Deployment that is made.
pub(super) fn pod(composed: &Composed) -> Value {
    let image = composed.request.image.clone().unwrap_or_default();
    render(&composed.request, &image, false).deployment["spec"]["template"]["spec"].clone()
}

/// Its container that is the operator's.
pub(super) fn container(composed: &Composed) -> Value {
    pod(composed)["containers"][0].clone()
}

/// What the image of LiteLLM and that of the tools bring along.
pub(super) fn image(program: &[&str]) -> Surroundings {
    let folder = python().unwrap();
    let text = |name: &str| std::env::var(name).unwrap_or_default();
    let image_env = [
        ("PATH", text("PATH")),
        ("HOME", "/tmp".to_owned()),
        ("PYTHONPATH", folder.display().to_string()),
        ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
        // There is no network to fetch it from.
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
    ];
    let entrypoint = program.iter().map(|word| word.replace("FOLDER", &folder.display().to_string()));
    Surroundings {
        entrypoint: entrypoint.collect(),
        image_env: image_env.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Surroundings::default()
    }
}

/// What comes of asking for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gets {
    /// The upstream is asked for that model with that key.
    Upstream(&'static str, &'static str),
    /// The proxy answers with that status, and asks nobody.
    Refused(u16),
}

/// One way to write a proxy, and what two models get of it.
struct Shape {
    name: &'static str,
    spec: Value,
    /// Authorization of whoever asks.
    caller: Option<&'static str>,
    gets: [(&'static str, Gets); 2],
}

fn shapes() -> Vec<Shape> {
    const HERE: &str = "http://127.0.0.1:9000/v1";
    let by_secret = json!({"valueFrom": {"secretKeyRef": {"name": "provider", "key": "key"}}});
    let openai = json!([
        {"name": "OPENAI_API_KEY", "valueFrom": {"secretKeyRef": {"name": "provider", "key": "key"}}},
        {"name": "OPENAI_API_BASE", "value": HERE},
    ]);
    let listed = "model_list:\n- model_name: z\n  litellm_params: {model: openai/zz, api_base: os.environ/PROXY_API_BASE, api_key: os.environ/PROXY_API_KEY}\n\
                  general_settings: {master_key: sk-master}\n";
    let proxy = |config: Value| json!({"mode": "Proxy", "proxyConfig": config});
    let shape = |name, spec, gets| Shape { name, spec, caller: None, gets };
    let up = |model| Gets::Upstream(model, KEY);
    vec![
        shape(
            "case 96: listed, with provider, address and key of a Secret",
            proxy(json!({"models": ["a", "b"], "provider": "openai", "apiBase": HERE, "apiKey": by_secret})),
            [("a", up("a")), ("c", Gets::Refused(400))],
        ),
        shape(
            "a wildcard with a provider",
            proxy(json!({"models": ["*"], "provider": "openai", "apiBase": HERE, "apiKey": {"value": KEY}})),
            [("gpt-4o", up("gpt-4o")), ("smollm2:135m", up("smollm2:135m"))],
        ),
        shape(
            "case 98: a wildcard of one provider",
            proxy(json!({"models": ["openai/*"], "apiBase": HERE, "apiKey": by_secret})),
            [("openai/foo", up("foo")), ("azure/foo", Gets::Refused(400))],
        ),
        shape(
            "case 94: an address alone serves names that LiteLLM knows, and says of others that it does not (ruling 4)",
            json!({"mode": "Proxy", "proxyConfig": {"apiBase": HERE, "env": openai}}),
            [("gpt-4o", up("gpt-4o")), ("smollm2:135m", Gets::Refused(400))],
        ),
        shape(
            "S3's command line: whatever is asked for, gpt-3.5-turbo answers",
            json!({"mode": "Proxy", "proxyConfig": {"env": openai}}),
            [("gpt-4o", up("gpt-3.5-turbo")), ("smollm2:135m", up("gpt-3.5-turbo"))],
        ),
        shape(
            "case 95: one model alone",
            json!({"mode": "Proxy", "proxyConfig": {"model": "gpt-4o", "env": openai}}),
            [("gpt-4o", up("gpt-4o")), ("gpt-3.5-turbo", Gets::Refused(400))],
        ),
        Shape {
            name: "case 93: a configuration of one's own, closed by its master key",
            spec: proxy(json!({"configYaml": listed, "apiBase": HERE, "apiKey": by_secret})),
            caller: Some("Bearer sk-master"),
            gets: [("z", up("zz")), ("y", Gets::Refused(400))],
        },
    ]
}

/// As it starts, LiteLLM lists what a provider has, which may come between: that is nobody's question.
fn is_list(path: &str) -> bool {
    path == "/v1/models"
}

async fn holds(shape: Shape) {
    let looked = read::model_api(&object("ModelAPI", "m", shape.spec.clone()));
    assert_eq!(looked.faults, [], "{}", shape.name);
    let composed = model_api::compose(&identity("m"), &looked.value, &settings()).unwrap();
    let mut around = image(&["python3", "FOLDER/bin/litellm"]);
    around.keys = BTreeMap::from([("provider/key".to_owned(), KEY.to_owned())]);
    around.files = BTreeMap::from([("/etc/litellm/config.yaml".to_owned(), composed.config.clone().unwrap())]);
    let network = Network::new().await.unwrap();
    let asked = upstream(&network).await;
    let made = container(&composed);
    let running = Container::start(&network, &made, &around).await.unwrap();
    let probe = &made["readinessProbe"]["httpGet"];
    let port = u16::try_from(probe["port"].as_u64().unwrap()).unwrap();
    running
        .ready(&network, port, probe["path"].as_str())
        .await
        .unwrap_or_else(|error| panic!("{}: {error:#}", shape.name));
    let caller: Vec<_> = shape.caller.map(|value| ("Authorization", value)).into_iter().collect();
    for (model, gets) in shape.gets {
        asked.lock().clear();
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]}).to_string();
        let (status, said) = ask(&network, port, ("POST", "/v1/chat/completions"), &caller, &body).await.unwrap();
        let mut seen = std::mem::take(&mut *asked.lock());
        seen.retain(|(path, ..)| !is_list(path));
        let told = format!("{}, asked for {model}: {status} {said} {seen:?}\n{}", shape.name, running.tail());
        match gets {
            Gets::Upstream(wanted, key) => {
                let wanted = ("/v1/chat/completions".to_owned(), wanted.to_owned(), format!("Bearer {key}"));
                assert!(status == 200 && seen == [wanted], "{told}");
            }
            Gets::Refused(code) => assert!(status == code && seen.is_empty(), "{told}"),
        }
    }
    if shape.caller.is_some() {
        let body = json!({"model": "z", "messages": [{"role": "user", "content": "hi"}]}).to_string();
        let (status, said) = ask(&network, port, ("POST", "/v1/chat/completions"), &[], &body).await.unwrap();
        // A LiteLLM without a database has no one word for it.
        let nobody_was_asked = asked.lock().iter().all(|(path, ..)| is_list(path));
        assert!(status >= 400 && nobody_was_asked, "without the master key: {status} {said}");
    }
}

/// Two models for every shape of a proxy.
#[tokio::test]
async fn every_shape_of_a_proxy_asks_its_provider_for_what_it_should_with_the_key_or_refuses() {
    // Two at a time: each takes some 16 s of processor time to start, and 330 MiB.
    iter(shapes().into_iter().map(holds)).buffer_unordered(2).collect::<Vec<_>>().await;
}

/// The published tool server with the environment that an MCPServer of that spec gives it, once it listens.
pub(super) async fn tool_server(network: &Network, spec: &Value) -> anyhow::Result<Container> {
    let looked = read::mcp_server(&object("MCPServer", "t", spec.clone()));
    let registry = Registry::read("runtimes: {python-string: {image: 'tools:1', paramsEnvVar: MCP_TOOLS_STRING}}");
    let composed = mcp_server::compose(&identity("t"), (&looked.value, false), &registry, &settings()).unwrap();
    let tools = format!("{}/peers/tools.py", env!("CARGO_MANIFEST_DIR"));
    let around = image(&["python3", &tools]);
    let running = Container::start(network, &container(&composed), &around).await?;
    running.ready(network, 8000, None).await?;
    Ok(running)
}

/// The text of the tools reaches the tool server as it was written, and its functions are tools.
#[tokio::test]
async fn the_tools_that_are_written_as_text_are_listed_by_the_published_tool_server() {
    let text = "def echo(text: str) -> str:\n    \"\"\"Says $(AGENT_NAME) $$ back.\"\"\"\n    return text\n";
    let network = Network::new().await.unwrap();
    let running = tool_server(&network, &json!({"runtime": "python-string", "params": text})).await.unwrap();
    let accept = ("Accept", "application/json, text/event-stream");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let session = session(&network, &hello.to_string(), accept).await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}).to_string();
    let headers = [accept, ("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", "2025-06-18")];
    let started = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    ask(&network, 8000, ("POST", "/mcp"), &headers, &started).await.unwrap();
    let (status, said) = ask(&network, 8000, ("POST", "/mcp"), &headers, &list).await.unwrap();
    assert!(status == 200 && said.contains("\"echo\""), "{status} {said}\n{}", running.tail());
    assert!(said.contains("Says $(AGENT_NAME) $$ back."), "the text is as it was written: {said}");
}

/// Says hello, and tells the session that the server opened.
async fn session(network: &Network, hello: &str, accept: (&str, &str)) -> String {
    let text = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n{}: {}\r\nContent-Length: {}\r\n\r\n{hello}",
        accept.0,
        accept.1,
        hello.len()
    );
    let answer = network.run(move || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", 8000))?;
        stream.write_all(text.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    let answer = answer.await.unwrap();
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let session = answer.lines().filter_map(header).find(|(name, _)| name == "mcp-session-id");
    session.unwrap_or_else(|| panic!("no session: {answer}")).1
}

/// What a real process reads of an agent's environment, names with hyphens and texts with `$` included.
#[tokio::test]
async fn a_process_reads_the_environment_of_an_agent_as_the_runtime_contract_has_it() {
    let spec = json!({
        "modelAPI": "m", "model": "x", "mcpServers": ["my-tool"], "agentNetwork": {"access": ["my-peer"]},
        "config": {"instructions": "Say $(HOME), $$ and\n\"more\".", "description": "d"},
        "container": {"env": [{"name": "A-b.c", "value": "1"}, {"name": "REFERS", "value": "$(AGENT_NAME)"}]},
    });
    let looked = read::agent(&object("Agent", "my-agent", spec));
    let wiring = agent::Wiring { model_port: 8000, peers: vec!["my-peer".to_owned()] };
    let composed = agent::compose(&identity("my-agent"), &looked.value, &wiring, &settings()).unwrap();
    let made = container(&composed);
    let mut around = image(&[]);
    let program = "import json, os, http.server\n\
        class H(http.server.BaseHTTPRequestHandler):\n\
        \x20   def do_GET(self):\n\
        \x20       body = json.dumps(dict(os.environ)).encode()\n\
        \x20       self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)\n\
        http.server.HTTPServer(('127.0.0.1', int(os.environ.get('AGENT_PORT', '8000'))), H).serve_forever()\n";
    around.entrypoint = ["python3", "-c", program].map(str::to_owned).into();
    let network = Network::new().await.unwrap();
    let running = Container::start(&network, &made, &around).await.unwrap();
    running.ready(&network, 8000, made["readinessProbe"]["httpGet"]["path"].as_str()).await.unwrap();
    let (_, body) = ask(&network, 8000, ("GET", "/"), &[], "").await.unwrap();
    let read: Value = serde_json::from_str(&body).unwrap();
    for (name, wanted) in [
        ("AGENT_NAME", "my-agent"),
        ("AGENT_INSTRUCTIONS", "Say $(HOME), $$ and\n\"more\"."),
        ("MODEL_API_URL", "http://modelapi-m.ns.svc.cluster.local:8000"),
        ("MODEL_NAME", "x"),
        ("MCP_SERVERS", "my-tool"),
        ("MCP_SERVER_my-tool_URL", "http://mcpserver-my-tool.ns.svc.cluster.local:8000"),
        ("PEER_AGENTS", "my-peer"),
        ("PEER_AGENT_MY_PEER_CARD_URL", "http://agent-my-peer.ns.svc.cluster.local:8000"),
        ("A-b.c", "1"),
        ("REFERS", "my-agent"),
        ("LOG_LEVEL", "INFO"),
    ] {
        assert_eq!(read[name], wanted, "{name}");
    }
    let env = environment(&made, &around).unwrap();
    for entry in made["env"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        assert_eq!(read[name], env[name].as_str(), "{name}");
    }
}
