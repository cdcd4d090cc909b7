//! The adapter against servers of its own: what tool servers answer, and what they should not.

use std::net::IpAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::adapters::http::Refused;

/// The tests' own servers.
#[derive(Debug, Clone, Copy)]
struct Here;

impl Addresses for Here {
    fn refuses(&self, address: IpAddr) -> Option<Refused> {
        (!address.is_loopback()).then_some(Refused::Reserved)
    }
}

/// What a server was asked: its head in small letters, and its body.
type Asked = (String, Value);

/// Answers by head and body, and tells what it was asked; "…" says no more and stays.
async fn serve(answer: impl Fn(&str, &Value) -> String + Send + 'static) -> (u16, mpsc::UnboundedReceiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, asked) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
            stream.read_exact(&mut body).await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let said = answer(&head, &body);
            let _ = sender.send((head, body));
            let stays = said.ends_with('…');
            let _ = stream.write_all(said.trim_end_matches('…').as_bytes()).await;
            if stays {
                tokio::spawn(async move { stream.read_u8().await });
            }
        }
    });
    (port, asked)
}

fn json(headers: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn events(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n{body}")
}

fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n")
}

fn result(body: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": body["id"], "result": result})
}

fn hello(body: &Value) -> Value {
    let info = json!({"name": "s", "version": "1"});
    result(body, &json!({"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": info}))
}

/// A server of whose answers only that to `tools/list` is another.
fn usual(head: &str, body: &Value, list: impl Fn(&Value) -> String) -> String {
    match body["method"].as_str() {
        Some("initialize") => json("Mcp-Session-Id: s-1\r\n", &hello(body)),
        Some("notifications/initialized") => status("202 Accepted"),
        Some("tools/list") => list(body),
        _ if head.starts_with("delete ") => status("204 No Content"),
        _ => status("400 Bad Request"),
    }
}

fn question() -> ToolsOf {
    ToolsOf {
        namespace: "n".into(),
        name: "t".into(),
        authority: "mcpserver-t.n.svc.cluster.local:8000".into(),
        deployment: "d".into(),
        generation: 1,
        rolled: true,
    }
}

fn pods(injected: bool) -> Pods {
    Arc::new(move |_| {
        let pod = Pod { name: "t-1".to_owned(), address: [127, 0, 0, 1].into(), injected };
        Box::pin(async move { Ok(Some(pod)) })
    })
}

async fn ask(port: u16, attempt: Attempt) -> Result<Tools, AskError> {
    ToolServers::new(Here, pods(false)).at(port).ask(question(), attempt).await
}

fn named(tools: &Tools) -> Vec<&str> {
    tools.names.iter().map(String::as_str).collect()
}

#[tokio::test]
async fn ruling_18_the_tools_are_listed_and_the_session_is_closed_again() {
    let list = |body: &Value| {
        json("", &result(body, &json!({"tools": [{"name": "echo", "inputSchema": {}}, {"name": "add"}]})))
    };
    let (port, mut asked) = serve(move |head, body| usual(head, body, list)).await;
    let tools = ask(port, Attempt::Patient).await.unwrap();
    assert_eq!((named(&tools), tools.more), (vec!["add", "echo"], false));
    let mut all = Vec::new();
    while let Ok(one) = asked.try_recv() {
        all.push(one);
    }
    let methods: Vec<_> = all.iter().map(|(_, body)| body["method"].as_str().unwrap_or("-")).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list", "-"]);
    for (place, (head, _)) in all.iter().enumerate() {
        assert!(head.contains("host: mcpserver-t.n.svc.cluster.local:8000\r\n"), "{head}");
        assert!(head.split(' ').nth(1) == Some("/mcp"), "{head}");
        assert_eq!(head.contains("mcp-session-id: s-1\r\n"), place > 0, "{head}");
        assert_eq!(head.contains("mcp-protocol-version: 2025-03-26\r\n"), place > 0, "{head}");
    }
    assert!(all[3].0.starts_with("delete "));
}

#[tokio::test]
async fn ruling_18_a_stream_of_events_is_read_though_its_server_never_ends_it() {
    let list = |body: &Value| {
        let said = result(body, &json!({"tools": [{"name": "echo"}]}));
        let other =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "x"}});
        events(&format!(
            ": hello\r\n\r\nevent: message\r\ndata: {other}\r\n\r\nid: 7\r\nevent: message\r\ndata: {said}\r\n\r\n…"
        ))
    };
    let (port, _asked) = serve(move |head, body| usual(head, body, list)).await;
    assert_eq!(named(&ask(port, Attempt::Patient).await.unwrap()), ["echo"]);
}

#[tokio::test]
async fn ruling_18_pages_are_followed_as_far_as_they_are_read() {
    let list = |endless: bool| {
        move |body: &Value| {
            let page = body["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().unwrap());
            let next = (endless || page < 2).then(|| (page + 1).to_string());
            json("", &result(body, &json!({"tools": [{"name": format!("t{page}")}], "nextCursor": next})))
        }
    };
    let (port, _asked) = serve(move |head, body| usual(head, body, list(false))).await;
    let tools = ask(port, Attempt::Patient).await.unwrap();
    assert_eq!((named(&tools), tools.more), (vec!["t0", "t1", "t2"], false));
    let (port, _asked) = serve(move |head, body| usual(head, body, list(true))).await;
    let tools = ask(port, Attempt::Patient).await.unwrap();
    assert_eq!((tools.names.len(), tools.more), (PAGES, true), "a list without an end has one");
}

#[tokio::test]
async fn ruling_18_names_are_printable_and_bounded() {
    let list = |body: &Value| {
        let long = "x".repeat(5000);
        json("", &result(body, &json!({"tools": [{"name": "a\u{1b}[2J\u{202e}b\nc"}, {"name": long}, {"name": ""}]})))
    };
    let (port, _asked) = serve(move |head, body| usual(head, body, list)).await;
    let tools = ask(port, Attempt::Patient).await.unwrap();
    assert_eq!(tools.names.len(), 2);
    for name in &tools.names {
        assert!(name.len() <= NAME && !name.chars().any(char::is_control) && !name.contains('\u{202e}'), "{name:?}");
    }
}

/// What a server does with every message, and what is told of it.
#[tokio::test(start_paused = true)]
async fn ruling_18_what_is_no_answer_is_told_in_words_of_a_closed_list() {
    let big = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", 2 << 20);
    let deep = "[".repeat(100_000);
    let table: Vec<(String, AskFault, &str)> = vec![
        (status("404 Not Found"), AskFault::Refused, "HTTP status 404: no tools are served"),
        (status("401 Unauthorized"), AskFault::Refused, "HTTP status 401"),
        ("HTTP/1.1 500 No\r\nContent-Length: 8\r\n\r\n10:00:01".to_owned(), AskFault::Refused, "HTTP status 500"),
        (status("307 Elsewhere"), AskFault::Refused, "redirect"),
        (big, AskFault::Unusable, "larger than"),
        (json("", &json!("text")), AskFault::Unusable, "not a JSON-RPC response"),
        (json("", &json!({"jsonrpc": "2.0", "id": 99, "result": {}})), AskFault::Unusable, "not a JSON-RPC response"),
        (
            json("", &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600}})),
            AskFault::Unusable,
            "error -32600",
        ),
        (json("", &json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601}})), AskFault::Unusable, "error -32601"),
        (json("Mcp-Session-Id: a b\r\n", &json!({})), AskFault::Unusable, "session"),
        (events("data: nothing\n\n"), AskFault::Unusable, "not a JSON-RPC response"),
        (events(&format!("data: {deep}\n\n")), AskFault::Unusable, "not a JSON-RPC response"),
        (status("202 Accepted"), AskFault::Unusable, "not a JSON-RPC response"),
        ("…".to_owned(), AskFault::TimedOut, "in time"),
    ];
    for (answer, fault, words) in table {
        let shown: String = answer.chars().take(90).collect();
        let (port, _asked) = serve(move |_, _| answer.clone()).await;
        let error = ask(port, Attempt::Patient).await.unwrap_err();
        assert_eq!((error.fault, error.reason), (fault, Reason::ToolsNotListed), "{shown}: {error}");
        assert!(
            error.message.starts_with("Pod t-1, /mcp at port 8000: ") && error.message.contains(words),
            "{shown}: {error}"
        );
        assert!(error.message.len() <= MESSAGE && !error.message.contains("10:00"), "{error}");
    }
    let (port, _asked) = serve(|_, _| "…".to_owned()).await;
    assert_eq!(ask(port, Attempt::Quick).await.unwrap_err().fault, AskFault::Slow, "it is asked again among the slow");
}

#[tokio::test]
async fn ruling_18_who_cannot_be_asked_is_told_so() {
    let nobody: Pods = Arc::new(|_| Box::pin(async { Ok(None) }));
    let error = ToolServers::new(Here, nobody).ask(question(), Attempt::Quick).await.unwrap_err();
    assert!(error.message.contains("none of its Pods is Ready"), "{error}");
    let (port, _asked) = serve(|_, _| status("401 Unauthorized")).await;
    let error = ToolServers::new(Here, pods(true)).at(port).ask(question(), Attempt::Quick).await.unwrap_err();
    assert!(error.message.contains("its sidecar lets nobody in without a token"), "{error}");
    // The binary connects to no address that a Pod cannot have.
    let servers = ToolServers::new(crate::adapters::http::PodAddresses, pods(false)).at(port);
    let error = servers.ask(question(), Attempt::Quick).await.unwrap_err();
    assert!(error.message.contains("loopback"), "{error}");
}

#[test]
fn a_stream_is_whole_with_a_response_and_not_before() {
    for (body, whole) in [
        ("", false),
        ("data: {\"id\":1,\"result\":{}}", false),
        ("data: {\"id\":1,\"result\":{}}\n\n", true),
        ("data: {\"id\":1,\"error\":{}}\r\n\r\n", true),
        (": ping\n\n", false),
        ("data: {\"method\":\"x\",\"params\":{\"error\":1}}\n\n", false),
        ("data: {\"id\":1,\"result\":{}}\n\n: ping\n\n", false),
        (": ping\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n", true),
        ("\n\n", false),
    ] {
        assert_eq!(is_whole(body.as_bytes()), whole, "{body:?}");
    }
}

#[test]
fn several_messages_at_once_are_searched_for_the_answer() {
    let body =
        br#"[{"method":"x"},{"id":2,"result":{"protocolVersion":"a"}},{"id":"3","result":{"protocolVersion":"b"}}]"#;
    assert_eq!(read::<Hello>(body, false, 2).map(|hello| hello.protocol_version), Ok("a".to_owned()));
    assert_eq!(read::<Hello>(body, false, 3), Err(NoAnswer::None), "a text is not the number");
    assert_eq!(read::<Listed>(b"{\"id\":2,\"result\":{}}", false, 2), Err(NoAnswer::None), "no list in it");
}
