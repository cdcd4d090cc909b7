//! `drawbridge graph --live` on a real API server: its proxy of Services leads to servers on loopback, as in clusters whose API server reaches Pods
//! through a tunnel (an egress selector): what dials the address of a Pod is connected to the server that plays it. Hostile ones are among them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::Instant;
use webhook_tests::patience::patience;
use webhook_tests::{
    Access, ControlPlane, Kept, Lent, Options, Process, TestNamespace, household, programs, wait_for, wait_served,
};

use super::objects;

/// Who plays the Pod at an address.
type Players = Arc<Mutex<BTreeMap<IpAddr, SocketAddr>>>;
/// What a server writes back to a request: its head, and its body.
type Play = fn(&str, &Value, &mut TcpStream);

/// The tunnel: `CONNECT address:port`, then bytes both ways.
fn tunnel(socket: &Path, players: Players) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let players = players.clone();
            std::thread::spawn(move || drop(carry(stream, &players)));
        }
    });
    Ok(())
}

fn carry(mut stream: UnixStream, players: &Players) -> Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)?;
    let wanted: SocketAddr = head.split(' ').nth(1).context("CONNECT names whom")?.parse()?;
    let player = players.lock().get(&wanted.ip()).copied();
    let Some(Ok(inner)) = player.map(TcpStream::connect) else {
        stream.write_all(b"HTTP/1.1 502 connection refused\r\n\r\n")?;
        return Ok(());
    };
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from, mut to) = (inner.try_clone()?, inner);
    let (mut back, mut forth) = (stream.try_clone()?, stream);
    let down = std::thread::spawn(move || {
        drop(std::io::copy(&mut from, &mut back));
        drop(back.shutdown(std::net::Shutdown::Both));
    });
    drop(std::io::copy(&mut forth, &mut to));
    drop(to.shutdown(std::net::Shutdown::Both));
    drop(down.join());
    Ok(())
}

/// A server that answers every request by `play` and closes.
fn server(play: Play) -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || drop(answer(stream, play)));
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream, play: Play) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let before = head.len();
        ensure!(reader.read_line(&mut head)? > 0, "closed");
        let line = head[before..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    play(&head, &serde_json::from_slice(&body).unwrap_or_default(), reader.get_mut());
    Ok(())
}

fn say(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let text =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    drop(stream.write_all(text.as_bytes()));
}

fn json_of(stream: &mut TcpStream, headers: &str, body: &Value) {
    say(stream, "200 OK", &format!("Content-Type: application/json\r\n{headers}"), &body.to_string());
}

fn is(head: &str, request: &str) -> bool {
    head.starts_with(&format!("{request} HTTP/1.1\r\n"))
}

/// Lists model `fast`; whoever sends a credential is told apart.
fn fast(head: &str, _: &Value, stream: &mut TcpStream) {
    if !is(head, "GET /v1/models") || head.to_ascii_lowercase().contains("authorization:") {
        return say(stream, "400 Bad Request", "", "");
    }
    json_of(stream, "", &json!({"object": "list", "data": [{"id": "fast", "object": "model"}]}));
}

/// An agent with a card.
fn card(head: &str, _: &Value, stream: &mut TcpStream) {
    match is(head, "GET /.well-known/agent") {
        true => json_of(stream, "", &json!({"name": "auditor", "skills": []})),
        false => say(stream, "404 Not Found", "", ""),
    }
}

/// An agent that has no card and lives.
fn health(head: &str, _: &Value, stream: &mut TcpStream) {
    match is(head, "GET /health") {
        true => say(stream, "200 OK", "", "ok"),
        false => say(stream, "404 Not Found", "", "not here"),
    }
}

/// An agent behind a sidecar that wants a token.
fn closed(_: &str, _: &Value, stream: &mut TcpStream) {
    say(stream, "401 Unauthorized", "", "sk-of-somebody");
}

/// A tool server that opens a session and answers by a stream that it never ends.
fn echo(head: &str, body: &Value, stream: &mut TcpStream) {
    let result = |result: Value| json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
    let in_session = head.to_ascii_lowercase().contains("mcp-session-id: s-1");
    match body["method"].as_str() {
        Some("initialize") => {
            let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
            json_of(stream, "Mcp-Session-Id: s-1\r\n", &result(hello));
        }
        Some("notifications/initialized") if in_session => say(stream, "202 Accepted", "", ""),
        Some("tools/list") if in_session => {
            let tools = result(json!({"tools": [{"name": "echo"}, {"name": "add"}]}));
            let text =
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nevent: message\ndata: {tools}\n\n");
            drop(stream.write_all(text.as_bytes()));
            drop(stream.read(&mut [0]));
        }
        _ => say(stream, "400 Bad Request", "", ""),
    }
}

/// A page for people.
fn page(_: &str, _: &Value, stream: &mut TcpStream) {
    say(stream, "200 OK", "Content-Type: text/html\r\n", "<html>sk-of-somebody</html>");
}

/// More than anybody reads.
fn huge(_: &str, _: &Value, stream: &mut TcpStream) {
    drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"data\": [\""));
    while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
}

/// How many answers hang now, and how many did at most at the same time.
static HANGING: Mutex<(usize, usize)> = Mutex::new((0, 0));

fn hangs(answer: impl FnOnce()) {
    {
        let (now, most) = &mut *HANGING.lock();
        *now += 1;
        *most = (*most).max(*now);
    }
    answer();
    HANGING.lock().0 -= 1;
}

/// An answer that never ends.
fn endless(_: &str, _: &Value, stream: &mut TcpStream) {
    drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"));
    hangs(|| {
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(200));
        }
    });
}

/// Nothing at all.
fn mute(_: &str, _: &Value, stream: &mut TcpStream) {
    hangs(|| drop(stream.read(&mut [0])));
}

/// No HTTP.
fn noise(_: &str, _: &Value, stream: &mut TcpStream) {
    drop(stream.write_all(b"\x00\x01\x02 what is this\r\n\r\n"));
}

/// Sends whoever asks elsewhere.
fn elsewhere(_: &str, _: &Value, stream: &mut TcpStream) {
    say(stream, "302 Found", "Location: http://169.254.169.254/\r\n", "");
}

/// A control plane whose API server reaches Pods through a tunnel, and the definitions of KAOS.
struct Stage {
    cp: ControlPlane,
    players: Players,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// The one of all tests here: each has a namespace of its own, and so addresses of its own.
    async fn shared() -> Result<Lent<Self>> {
        static STAGE: Kept<Stage> = Kept::new();
        STAGE.lend(Self::start).await
    }

    async fn start() -> Result<Self> {
        // It goes with this process, also when nobody drops it.
        let folder = tempfile::tempdir_in(&household::folders()?.disk)?;
        let (socket, file) = (folder.path().join("tunnel"), folder.path().join("egress.yaml"));
        let players = Players::default();
        tunnel(&socket, players.clone())?;
        let transport = json!({"uds": {"udsName": socket}});
        let selector = json!({
            "apiVersion": "apiserver.k8s.io/v1beta1", "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": {"proxyProtocol": "HTTPConnect", "transport": transport}}],
        });
        std::fs::write(&file, selector.to_string())?;
        let argument = format!("--egress-selector-config-file={}", file.display());
        let args = BTreeMap::from([(Process::ApiServer, vec![argument])]);
        let cp = ControlPlane::start(Options { args, ..Options::default() }).await?;
        let objects = cp.objects().await?;
        for definition in super::outside::DEFINITIONS {
            for stored in objects.apply(definition).await? {
                wait_served(&objects, &stored.name_any()).await?;
            }
        }
        Ok(Self { cp, players, _folder: folder })
    }

    /// An object of KAOS that is ready, with its Service; and where `play` is given, a Pod that plays it.
    async fn object(
        &self,
        ns: &TestNamespace,
        (kind, name): (&str, &str),
        spec: Value,
        play: Option<Play>,
    ) -> Result<()> {
        let word = kind.to_lowercase();
        let object =
            json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        ns.accepts(&object).await?;
        let status = json!({"status": {"ready": true, "phase": "Ready"}});
        objects(ns, kind).patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        let (called, labels) = (format!("{word}-{name}"), json!({"app": word, word.clone(): name}));
        let ports = json!([{"name": "http", "port": 8000, "targetPort": 8000}]);
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": called}, "spec": {"selector": labels, "ports": ports}});
        ns.accepts(&service).await?;
        let Some(play) = play else { return Ok(()) };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": called, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "example/c:1", "ports": [{"containerPort": 8000}]}]},
        });
        ns.accepts(&pod).await?;
        let has_address = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some());
        let pod = wait_for(&ns.api::<Pod>(), &called, has_address).await?;
        let address = pod.status.and_then(|status| status.pod_ip).context("an address")?;
        self.players.lock().insert(address.parse()?, server(play)?);
        Ok(())
    }

    async fn graph(&self, access: &Access, ns: &TestNamespace, more: &[&str]) -> Result<(Option<i32>, String, String)> {
        let mut command = Command::new(programs::workspace("drawbridge")?);
        command.args(["graph", "--live", "-n", ns.name(), "--kubeconfig"]).arg(access.kubeconfig()).args(more);
        let output = command.output().await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
    }
}

impl Stage {
    /// The graph once that came of these edges, or at the end of [`patience`]: endpoints follow Pods a moment later, and whoever plays a Pod may not get to
    /// answering within the time that it is given.
    async fn until_tried(
        &self,
        ns: &TestNamespace,
        wanted: &[(&str, &str, &str)],
    ) -> Result<(Option<i32>, String, String)> {
        let deadline = Instant::now() + patience();
        loop {
            let (code, out, err) = self.graph(self.cp.admin(), ns, &["-o", "json"]).await?;
            let graph: Value = serde_json::from_str(&out).unwrap_or_default();
            let all = wanted.iter().all(|(to, outcome, why)| tried(&graph, to) == (*outcome, *why));
            if all || Instant::now() > deadline {
                return Ok((code, out, err));
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// What came of an edge: outcome, and why.
fn tried<'g>(graph: &'g Value, to: &str) -> (&'g str, &'g str) {
    let edges = graph["edges"].as_array().into_iter().flatten();
    let edge = edges.into_iter().find(|edge| edge["to"]["name"] == to).unwrap_or(&Value::Null);
    let text = |key: &str| edge["tried"][key].as_str().unwrap_or("-");
    (text("outcome"), text("why"))
}

/// What works is said to work, and a person without the right is told which one.
#[tokio::test]
async fn every_edge_is_tried_through_the_api_server_and_a_broken_one_is_explained() -> Result<()> {
    let stage = Stage::shared().await?;
    let ns = stage.cp.namespace("live").await?;
    let proxy = |model: &str| json!({"mode": "Proxy", "proxyConfig": {"models": [model]}});
    let tools = json!({"runtime": "python-string", "params": "def f(): pass"});
    stage.object(&ns, ("ModelAPI", "models"), proxy("fast"), Some(fast)).await?;
    stage.object(&ns, ("MCPServer", "echo"), tools.clone(), Some(echo)).await?;
    let leaf = json!({"modelAPI": "models", "model": "fast"});
    stage.object(&ns, ("Agent", "auditor"), leaf.clone(), Some(card)).await?;
    stage.object(&ns, ("Agent", "plain"), leaf.clone(), Some(health)).await?;
    let clerk = json!({"modelAPI": "models", "model": "fast", "mcpServers": ["echo"], "agentNetwork": {"access": ["auditor", "plain"]}});
    stage.object(&ns, ("Agent", "clerk"), clerk, None).await?;
    let wanted = [
        ("models", "works", "lists fast"),
        ("echo", "works", "lists 2 tools: echo, add"),
        ("auditor", "works", "answers with its card at /.well-known/agent"),
        ("plain", "works", "answers at /health, and has no card at /.well-known/agent"),
    ];
    let (code, out, err) = stage.until_tried(&ns, &wanted).await?;
    let graph: Value = serde_json::from_str(&out).with_context(|| err.clone())?;
    for (to, outcome, why) in wanted {
        assert_eq!(tried(&graph, to), (outcome, why), "{to}: {out}");
    }
    ensure!(code == Some(0), "{code:?} {err}");

    // A person who may read everything and reach nothing.
    let bob = stage.cp.user("bob", &[])?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bob"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-kaos"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    });
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reads-kaos"},
        "rules": [{"apiGroups": ["kaos.tools"], "resources": ["*"], "verbs": ["get", "list"]}],
    });
    let installed = stage.cp.objects().await?;
    installed.apply(&role.to_string()).await?;
    installed.apply(&binding.to_string()).await?;
    let deadline = Instant::now() + patience();
    let (code, out) = loop {
        let (code, out, err) = stage.graph(&bob, &ns, &["-o", "json"]).await?;
        if out.contains("\"tried\"") || Instant::now() > deadline {
            break (code, out + &err);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    ensure!(code == Some(4) && out.contains("you may not get services/proxy here"), "{code:?} {out}");
    ensure!(out.contains("you may not create services/proxy here"), "{out}");
    Ok(())
}

/// Whatever stands at the other end, there is one clear line, soon, and nothing of what was answered.
#[tokio::test]
async fn hostile_answers_give_a_clear_line_within_their_bounds() -> Result<()> {
    let stage = Stage::shared().await?;
    let ns = stage.cp.namespace("hostile").await?;
    let wild = json!({"mode": "Proxy", "proxyConfig": {"models": ["slow"]}});
    let tools = json!({"runtime": "python-string", "params": "def f(): pass"});
    let cases: [(&str, Play, &str, &str); 8] = [
        ("other", fast, "broken", "does not list slow; it lists fast"),
        ("huge", huge, "broken", "the answer of Service modelapi-huge at /v1/models is longer than 1 MiB"),
        ("endless", endless, "broken", "Service modelapi-endless gave no whole answer within 10 s"),
        (
            "mute",
            mute,
            "unknown",
            "nothing came from Service modelapi-mute within 10 s: it hangs, or a NetworkPolicy keeps the API server out",
        ),
        ("page", page, "broken", "what Service modelapi-page answers at /v1/models is not a list of models"),
        ("noise", noise, "broken", "what Service modelapi-noise answers at port 8000 is not HTTP"),
        (
            "elsewhere",
            elsewhere,
            "broken",
            "Service modelapi-elsewhere answers 302 at /v1/models, a redirect, and nobody follows it",
        ),
        (
            "closed",
            closed,
            "unknown",
            "Service modelapi-closed answers 401 at /v1/models: it lives and wants a credential, and none is sent from here",
        ),
    ];
    for (name, play, ..) in cases {
        stage.object(&ns, ("ModelAPI", name), wild.clone(), Some(play)).await?;
        stage.object(&ns, ("Agent", &format!("asks-{name}")), json!({"modelAPI": name, "model": "slow"}), None).await?;
    }
    stage.object(&ns, ("MCPServer", "markup"), tools.clone(), Some(page)).await?;
    stage.object(&ns, ("MCPServer", "nobody"), tools, None).await?;
    let both = json!({"modelAPI": "other", "model": "slow", "mcpServers": ["markup", "nobody"]});
    stage.object(&ns, ("Agent", "uses"), both, None).await?;
    let others = [
        ("markup", "broken", "what Service mcpserver-markup answers at /mcp is not MCP"),
        ("nobody", "broken", "no Pod behind Service mcpserver-nobody is ready"),
    ];
    let wanted: Vec<_> = cases.iter().map(|(name, _, outcome, why)| (*name, *outcome, *why)).chain(others).collect();
    let (code, out, err) = stage.until_tried(&ns, &wanted).await?;
    let out = out + &err;
    let graph: Value = serde_json::from_str(&out).with_context(|| out.clone())?;
    for (name, outcome, why) in wanted {
        assert_eq!(tried(&graph, name), (outcome, why), "{name}");
    }
    ensure!(code == Some(1), "{code:?}");
    ensure!(HANGING.lock().1 >= 2, "nobody is asked while another one's answer is waited for");
    ensure!(!out.contains("sk-of-somebody"), "{out}");
    for (drawing, words) in [("text", "broken: no Pod behind"), ("mermaid", "-.->"), ("dot", "style=dashed, color=red")]
    {
        let (code, out, _) = stage.graph(stage.cp.admin(), &ns, &["-o", drawing]).await?;
        ensure!(code == Some(1) && out.contains(words), "{drawing}: {out}");
    }
    Ok(())
}
