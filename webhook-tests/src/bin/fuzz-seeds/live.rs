//! Answers of Services, in the form of `fuzz/fuzz_targets/live.rs`: who is asked, then each answer with a byte that says how it is given.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::write;

/// Who is asked.
const AGENT: u8 = b'0';
const MODELS: u8 = b'1';
const TOOLS: u8 = b'2';
/// How: 200 with JSON, and what is added to it.
const JSON: u8 = b'@';
const ACCEPTED: u8 = JSON | 1;
const UNAUTHORIZED: u8 = JSON | 3;
const FORBIDDEN: u8 = JSON | 4;
const ABSENT: u8 = JSON | 5;
const UNAVAILABLE: u8 = JSON | 7;
const STREAM: u8 = JSON | 8;
const SESSION: u8 = JSON | 16;
const BREAKS_OFF: u8 = JSON | 32;

/// Every kind of answer once.
pub(super) fn all(folder: &Path) -> Result<()> {
    let status = |code: u16, message: &str| {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}).to_string()
    };
    let result = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let hello = result(1, json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    let tools =
        |id: u64, more: Value| result(id, json!({"tools": [{"name": "echo"}, {"name": "add"}], "nextCursor": more}));
    let event = |text: &str| format!("event: message\r\ndata: {text}\r\n\r\n");
    let models = json!({"object": "list", "data": [{"id": "fast"}, {"id": "openai/*"}, {"id": "smollm2:latest"}]});
    let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}});
    let endpoints = "no endpoints available for service \"http:agent-b:8000\"";
    let silence = "error trying to reach service: dial tcp 10.0.0.1:8000: i/o timeout";
    let text = str::to_owned;
    for (name, who, answers) in [
        ("card", AGENT, vec![(JSON, text(r#"{"name": "b", "url": "http://b:8000"}"#))]),
        ("lives", AGENT, vec![(ABSENT, String::new()), (JSON, text("ok"))]),
        ("not-ready", AGENT, vec![(UNAVAILABLE, status(503, endpoints))]),
        ("unreached", AGENT, vec![(UNAVAILABLE, status(503, silence))]),
        ("no-right", AGENT, vec![(FORBIDDEN, status(403, "cannot get resource \"services/proxy\""))]),
        ("models", MODELS, vec![(JSON, models.to_string())]),
        ("page", MODELS, vec![(JSON, text("<html>\u{1b}[31m</html>"))]),
        ("closed", MODELS, vec![(UNAUTHORIZED, text("{}"))]),
        ("breaks-off", MODELS, vec![(BREAKS_OFF, text("{\"data\": ["))]),
        ("tools", TOOLS, vec![(JSON, hello.clone()), (ACCEPTED, String::new()), (JSON, tools(2, Value::Null))]),
        (
            "pages",
            TOOLS,
            vec![
                (STREAM | SESSION, event(&hello)),
                (ACCEPTED, String::new()),
                (STREAM, event(&tools(2, json!("c")))),
                (STREAM, event(&tools(3, Value::Null))),
            ],
        ),
        ("refused", TOOLS, vec![(JSON, refused.to_string())]),
        ("several", TOOLS, vec![(JSON, format!("[{hello}]")), (ACCEPTED, String::new()), (JSON, text("[]"))]),
        ("no-tools", TOOLS, vec![(ABSENT, text("not found"))]),
    ] {
        let answers: Vec<Vec<u8>> = answers.into_iter().map(|(how, body)| [&[how], body.as_bytes()].concat()).collect();
        write(folder, "live", name, &[&[who], answers.join(&b"%%"[..]).as_slice()].concat())?;
    }
    Ok(())
}
