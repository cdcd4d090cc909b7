//! A tool server's `tools/list`, asked through the API server's proxy.

use http::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Door;
use super::judge::{NoTools, Reply};
use crate::adapters::tools::{Hello, Listed, is_whole, read};

/// Where agents ask.
pub(super) const PATH: &str = "/mcp";
/// The version of the protocol that is proposed.
const VERSION: &str = "2025-06-18";
/// Pages of one list.
const PAGES: usize = 8;
/// Names that are kept.
const NAMES: usize = 128;
/// Bytes of what a server calls its session, or a page of its list.
const TOKEN: usize = 1024;

/// A stream of events whose answer is there; other bodies are read to their end.
pub(super) fn is_enough(headers: &HeaderMap, body: &[u8]) -> bool {
    is_stream(headers) && is_whole(body)
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

/// A conversation with one server.
struct Conversation<'c> {
    door: &'c Door<'c>,
    session: Option<String>,
    version: Option<String>,
}

impl Conversation<'_> {
    async fn send(&self, method: &Method, body: &str) -> Reply {
        let mut headers = vec![("accept", "application/json, text/event-stream")];
        headers.extend(self.session.as_deref().map(|session| ("mcp-session-id", session)));
        headers.extend(self.version.as_deref().map(|version| ("mcp-protocol-version", version)));
        self.door.send(method, PATH, &headers, body).await
    }

    async fn post(&self, message: &Value) -> Result<Reply, NoTools> {
        let reply = self.send(&Method::POST, &message.to_string()).await;
        let is_fine = reply.said.as_ref().is_ok_and(|said| (200..300).contains(&said.status));
        if is_fine { Ok(reply) } else { Err(NoTools::Reply(reply)) }
    }

    async fn ask<R: DeserializeOwned>(&self, message: &Value, id: u64) -> Result<(R, HeaderMap), NoTools> {
        let reply = self.post(message).await?;
        match &reply.said {
            Ok(said) if said.end == crate::cli::cluster::through::End::Whole => {
                let result = read(&said.body, is_stream(&said.headers), id).map_err(NoTools::Answer)?;
                Ok((result, said.headers.clone()))
            }
            _ => Err(NoTools::Reply(reply)),
        }
    }

    async fn tools(&mut self) -> Result<(Vec<String>, bool), NoTools> {
        let client = json!({"name": "drawbridge", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let (hello, headers): (Hello, _) = self.ask(&hello, 1).await?;
        let session = headers.get("mcp-session-id").and_then(|session| session.to_str().ok());
        self.session = session.filter(|session| is_token(session)).map(str::to_owned);
        self.version = Some(hello.protocol_version).filter(|version| is_token(version));
        self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        let (mut names, mut cursor) = (Vec::new(), None::<String>);
        for id in (2..).take(PAGES) {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params});
            let (listed, _): (Listed, _) = self.ask(&list, id).await?;
            names.extend(listed.tools.into_iter().map(|tool| tool.name).filter(|name| !name.is_empty()));
            cursor = listed.next_cursor.filter(|cursor| !cursor.is_empty());
            match &cursor {
                None => return Ok((names, false)),
                Some(cursor) if cursor.len() > TOKEN || names.len() > NAMES => break,
                Some(_) => {}
            }
        }
        names.truncate(NAMES);
        Ok((names, true))
    }
}

/// What may be said back to the server in a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The names of its tools, and whether there are more.
pub(super) async fn list(door: &Door<'_>) -> Result<(Vec<String>, bool), NoTools> {
    let mut conversation = Conversation { door, session: None, version: None };
    let listed = conversation.tools().await;
    if conversation.session.is_some() {
        // Who does not let sessions be closed forgets them by itself.
        drop(conversation.send(&Method::DELETE, "").await);
    }
    listed
}
