//! What a tool server answers, read; pure.
//!
//! In: a body of at most 1 MiB, JSON or a stream of events, and the number of the question. Out: the result of that question, or why there is
//! none. Promise: any bytes get an answer; nothing is kept but what [`Hello`] and [`Listed`] have.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

/// The result of `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The version of the protocol that the server speaks.
    pub protocol_version: String,
}

/// The result of `tools/list`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// The tools of this page.
    pub tools: Vec<Tool>,
    /// Where the next page begins; absent on the last.
    pub next_cursor: Option<String>,
}

/// A tool, of which only the name is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tool {
    /// What it is called.
    pub name: String,
}

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Nothing in the body answers the question.
    #[error("the answer is not a JSON-RPC response to the request")]
    None,
    /// It answered that it cannot.
    #[error("answered with JSON-RPC error {0}")]
    Error(i64),
    /// It opened a session whose name no header can hold.
    #[error("the MCP session id that the server sent cannot be sent back in a header")]
    Session,
}

/// One message; what is neither ours nor a response is `None` in every member.
#[derive(Deserialize)]
struct Message<R> {
    id: Option<Id>,
    result: Option<R>,
    error: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct Fault {
    code: i64,
}

/// The result of the question of that number.
pub fn read<R: DeserializeOwned>(body: &[u8], is_stream: bool, id: u64) -> Result<R, NoAnswer> {
    if is_stream {
        return events(body).find_map(|data| of_text(data.as_bytes(), id)).unwrap_or(Err(NoAnswer::None));
    }
    of_text(body, id).unwrap_or(Err(NoAnswer::None))
}

/// What one JSON text says to the question; `None` where it is about something else.
fn of_text<R: DeserializeOwned>(text: &[u8], id: u64) -> Option<Result<R, NoAnswer>> {
    let of = |message: Message<R>| match message {
        Message { id: Some(Id::Number(number)), .. } if number != id => None,
        Message { id: Some(Id::Number(_)), result: Some(result), .. } => Some(Ok(result)),
        // An error about a question that could not be read has no number.
        Message { id: Some(Id::Number(_)) | None, error: Some(fault), .. } => Some(Err(NoAnswer::Error(fault.code))),
        _ => None,
    };
    if let Ok(message) = serde_json::from_slice::<Message<R>>(text) {
        return of(message);
    }
    // Several at once, as an earlier version of the protocol had it.
    let several = serde_json::from_slice::<Vec<Message<R>>>(text).ok()?;
    several.into_iter().find_map(of)
}

/// The data of every event.
fn events(body: &[u8]) -> impl Iterator<Item = String> {
    let text = String::from_utf8_lossy(body).replace("\r\n", "\n").replace('\r', "\n");
    let data = |event: &str| {
        let line =
            |line: &str| line.strip_prefix("data:").map(|data| data.strip_prefix(' ').unwrap_or(data).to_owned());
        let lines: Vec<_> = event.lines().filter_map(line).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    text.split("\n\n").filter_map(data).collect::<Vec<_>>().into_iter()
}

/// The stream ends with a whole event that looks like a response; its server may leave the connection open for ever.
///
/// Only the first bytes of the last event are looked at: this runs beside everybody's sockets.
#[must_use]
pub fn is_whole(body: &[u8]) -> bool {
    const LOOKED_AT: usize = 160;
    let Some(event) = body.strip_suffix(b"\n\n").or_else(|| body.strip_suffix(b"\r\n\r\n")) else { return false };
    let is_gap = |at: &usize| event[..*at].ends_with(b"\n\n") || event[..*at].ends_with(b"\r\n\r\n");
    let begins = (0..=event.len()).rev().find(is_gap).unwrap_or(0);
    let head = &event[begins..event.len().min(begins + LOOKED_AT)];
    let has = |word: &[u8]| head.windows(word.len()).any(|part| part == word);
    has(b"data:") && (has(b"\"result\"") || has(b"\"error\"")) && !has(b"\"method\"")
}
