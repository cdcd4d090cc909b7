//! What Services answer to `graph --live`. In: a byte that says who is asked (an agent, a model API, a tool server), then answers, divided by `%%`: a
//! byte that says how each is given, and its body. Laws: whatever is answered, the graph is drawn and the edge has one short printable line; the exit
//! code says what the lines say; what one answers says nothing of an edge to another.
#![no_main]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use clap::Parser;
use drawbridge::cli::io::Io;
use drawbridge::cli::{Cli, Exit};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const DIVIDER: &[u8] = b"%%";
/// Longest line about an edge, in bytes: six names of 64 bytes, and what is said of them.
const LONGEST: usize = 1024;

/// Who is asked: the name of the object, and the first part of its Service's.
const ASKED: [(&str, &str); 3] = [("b", "http:agent-b:"), ("m", "http:modelapi-m:"), ("t", "http:mcpserver-t:")];
/// Statuses that are told apart.
const STATUSES: [&str; 8] = [
    "200 OK",
    "202 Accepted",
    "302 Found",
    "401 Unauthorized",
    "403 Forbidden",
    "404 Not Found",
    "405 Method Not Allowed",
    "503 Service Unavailable",
];
/// In the byte before a body: it is a stream of events, it opens a session, it breaks off.
const STREAM: u8 = 8;
const SESSION: u8 = 16;
const BREAKS_OFF: u8 = 32;

/// Who is asked in this run, what is answered, and how often it has been.
#[derive(Default)]
struct Play {
    asked: usize,
    answers: Vec<Vec<u8>>,
    given: usize,
}

static PLAY: Mutex<Play> = Mutex::new(Play { asked: 0, answers: Vec::new(), given: 0 });

/// The kubeconfig of an API server that plays.
static KUBECONFIG: LazyLock<PathBuf> = LazyLock::new(|| {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("the loopback can be listened on");
    let port = listener.local_addr().expect("a bound socket has an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://127.0.0.1:{port}"), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c", "namespace": "team"}}],
    });
    let file = std::env::temp_dir().join(format!("drawbridge-fuzz-live-{}.json", std::process::id()));
    std::fs::write(&file, config.to_string()).expect("a temporary file can be written");
    file
});

/// One connection, to its end.
fn serve(stream: TcpStream) {
    let Ok(mut reader) = stream.try_clone().map(BufReader::new) else { return };
    let mut writer = stream;
    loop {
        let (mut first, mut length) = (String::new(), 0_u64);
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        if std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).is_err() {
            return;
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let answer = answer(path);
        if writer.write_all(&answer.bytes).is_err() || answer.breaks_off {
            // Who asked has gone, or is to see the end.
            drop(writer.shutdown(Shutdown::Both));
            return;
        }
    }
}

struct Answer {
    bytes: Vec<u8>,
    breaks_off: bool,
}

impl Answer {
    fn of(how: u8, body: &[u8]) -> Self {
        let status = STATUSES[usize::from(how) % STATUSES.len()];
        let has = |bit: u8| how & bit == bit;
        let kind = if has(STREAM) { "text/event-stream" } else { "application/json" };
        let session = if has(SESSION) { "Mcp-Session-Id: s\r\n" } else { "" };
        let length = body.len() + usize::from(has(BREAKS_OFF));
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{session}Content-Length: {length}\r\n\r\n");
        Self { bytes: [head.as_bytes(), body].concat(), breaks_off: has(BREAKS_OFF) }
    }
}

fn answer(path: &str) -> Answer {
    let listed = |items: Value| Answer::of(b'@', json!({"metadata": {}, "items": items}).to_string().as_bytes());
    let object = |name: &str, spec: Value| json!({"metadata": {"name": name, "namespace": "team"}, "spec": spec, "status": {"ready": true}});
    let Some(asked) = ASKED.iter().position(|(_, service)| path.contains(service)) else {
        return match path.split('?').next().and_then(|path| path.rsplit('/').next()) {
            Some("modelapis") => {
                listed(json!([object("m", json!({"mode": "Proxy", "proxyConfig": {"models": ["fast"]}}))]))
            }
            Some("mcpservers") => {
                listed(json!([object("t", json!({"runtime": "python-string", "params": "def f(): pass"}))]))
            }
            _ => listed(json!([
                object(
                    "a",
                    json!({"modelAPI": "m", "model": "fast", "mcpServers": ["t"], "agentNetwork": {"access": ["b"]}})
                ),
                object("b", json!({"modelAPI": "m", "model": "fast"})),
            ])),
        };
    };
    let mut play = PLAY.lock().unwrap_or_else(PoisonError::into_inner);
    if asked == play.asked {
        let at = play.given.min(play.answers.len().saturating_sub(1));
        play.given += 1;
        let (how, body) = play.answers.get(at).and_then(|part| part.split_first()).unwrap_or((&b'@', &[]));
        return Answer::of(*how, body);
    }
    drop(play);
    good(asked)
}

/// What is answered where all is well. A tool server's answers are told apart by their numbers, so both are given at once.
fn good(asked: usize) -> Answer {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}});
    let tools = json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "echo"}]}});
    let body = match asked {
        0 => json!({"name": "b"}),
        1 => json!({"data": [{"id": "fast"}]}),
        _ => return Answer::of(b'@' | STREAM, format!("data: {hello}\n\ndata: {tools}\n\n").as_bytes()),
    };
    Answer::of(b'@', body.to_string().as_bytes())
}

fuzz_target!(|data: &[u8]| {
    let Some((who, rest)) = data.split_first() else { return };
    let asked = usize::from(*who) % ASKED.len();
    let kubeconfig = KUBECONFIG.to_str().expect("the temporary folder has a name in text");
    *PLAY.lock().unwrap_or_else(PoisonError::into_inner) = Play { asked, answers: parts(rest), given: 0 };
    let arguments = ["drawbridge", "graph", "--live", "-o", "json", "--kubeconfig", kubeconfig];
    let parsed = Cli::try_parse_from(arguments).expect("the arguments are right");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut io = Io { stdin: &mut std::io::empty(), out: &mut out, err: &mut err, colour: false };
    let exit = parsed.command.run(&mut io).expect("the API server answers");
    let graph: Value = serde_json::from_slice(&out).expect("the graph is JSON");
    let mut outcomes = Vec::new();
    for edge in graph["edges"].as_array().expect("there are edges") {
        let of = |member: &str| edge["tried"][member].as_str().unwrap_or_else(|| panic!("{edge}"));
        let (outcome, why) = (of("outcome"), of("why"));
        assert!(!why.is_empty() && why.len() <= LONGEST && !why.contains(char::is_control), "{why:?}");
        if edge["to"]["name"] != ASKED[asked].0 {
            assert_eq!(outcome, "works", "{edge}");
        }
        outcomes.push(outcome);
    }
    assert_eq!(outcomes.len(), 4, "{graph}");
    let wanted = match () {
        () if outcomes.contains(&"broken") => Exit::Findings,
        () if outcomes.contains(&"unknown") => Exit::Partial,
        () => Exit::Ok,
    };
    assert_eq!(exit, wanted, "{graph}");
});

/// The answers, as far as each is not empty.
fn parts(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(at) = rest.windows(DIVIDER.len()).position(|window| window == DIVIDER) {
        all.push(rest[..at].to_vec());
        rest = &rest[at + DIVIDER.len()..];
    }
    all.push(rest.to_vec());
    all
}
