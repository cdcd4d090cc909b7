//! What the API server was asked, by whom: queries over its audit log.
//!
//! In: the log file (JSON lines, blocking mode, all stages) and two marks in it. Out: [`Requests`], one per request,
//! in order of arrival, with filters.
//! Promise: a request is in the log before the API server acts on it (its first line is written on arrival), so
//! whatever was answered before [`Audit::mark`] or [`Audit::settled`] is there. Health probes are not logged.

use std::collections::HashMap;
use std::fmt;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::patience::patience;

/// A position in the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

/// The audit log of one API server.
#[derive(Clone)]
pub struct Audit {
    log: PathBuf,
    /// Where the log of the running API server begins: what an earlier one had not answered, it never will.
    alive_since: Arc<AtomicU64>,
}

/// One request, as far as it went.
#[derive(Debug, Clone)]
pub struct Request {
    /// The user name.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Which token of the user, or which certificate: tells processes with the same user apart. Empty when unknown.
    pub credential: String,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// API group; empty for core.
    pub group: String,
    /// Plural resource name; empty for non-resource requests.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Object name, or empty (list, watch, `generateName`).
    pub name: String,
    /// HTTP status; `None` while the request runs (an open watch has 200).
    pub code: Option<u16>,
    /// Arrival, RFC 3339 with microseconds.
    pub received: String,
    /// When it was answered, or what was logged last of it.
    pub answered: String,
    /// Audit annotations, those of webhooks included.
    pub annotations: HashMap<String, String>,
    /// The body sent; only with [`crate::AuditLevel::RequestResponse`].
    pub request_object: Option<Value>,
    /// The body answered; only with [`crate::AuditLevel::RequestResponse`].
    pub response_object: Option<Value>,
    /// Offset of its first line in the log.
    position: u64,
}

/// Verbs that may change something.
const WRITES: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];

impl Request {
    /// Whether the verb may change something (`dryRun` included).
    #[must_use]
    pub fn is_write(&self) -> bool {
        WRITES.contains(&self.verb.as_str())
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("running".to_owned(), |code| code.to_string());
        write!(f, "{} {} {} -> {code} ({}, {})", self.received, self.verb, self.uri, self.user, self.user_agent)
    }
}

/// Requests in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// Those for which `keep` holds.
    #[must_use]
    pub fn filter(mut self, keep: impl Fn(&Request) -> bool) -> Self {
        self.0.retain(keep);
        self
    }

    /// Those of a user (`system:serviceaccount:<namespace>:<name>` for a ServiceAccount).
    #[must_use]
    pub fn by(self, user: &str) -> Self {
        self.filter(|request| request.user == user)
    }

    /// Those with a verb.
    #[must_use]
    pub fn verb(self, verb: &str) -> Self {
        self.filter(|request| request.verb == verb)
    }

    /// Those for a resource (plural), subresources included.
    #[must_use]
    pub fn resource(self, resource: &str) -> Self {
        self.filter(|request| request.resource == resource)
    }

    /// Those in a namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        self.filter(|request| request.namespace == namespace)
    }

    /// Those that may change something.
    #[must_use]
    pub fn writes(self) -> Self {
        self.filter(Request::is_write)
    }

    /// Those that were carried out: the API server turns a write down that raced another one, and it is made again.
    #[must_use]
    pub fn accepted(self) -> Self {
        self.filter(|request| request.code.is_some_and(|code| (200..300).contains(&code)))
    }
}

impl Deref for Requests {
    type Target = [Request];

    fn deref(&self) -> &[Request] {
        &self.0
    }
}

impl IntoIterator for Requests {
    type Item = Request;
    type IntoIter = std::vec::IntoIter<Request>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// One line per request, for assertion messages.
impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} requests", self.0.len())?;
        self.0.iter().try_for_each(|request| writeln!(f, "  {request}"))
    }
}

impl Audit {
    pub(crate) fn new(log: PathBuf, alive_since: Arc<AtomicU64>) -> Self {
        Self { log, alive_since }
    }

    /// The whole log as text, for searches.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn text(&self) -> Result<String> {
        std::fs::read_to_string(&self.log).with_context(|| self.log.display().to_string())
    }

    /// Now: everything answered so far lies before it.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn mark(&self) -> Result<Mark> {
        let said = || self.log.display().to_string();
        let file = std::fs::File::open(&self.log).with_context(said)?;
        let length = file.metadata().with_context(said)?.len();
        Ok(Mark(begun_line(&file, length).with_context(said)?))
    }

    /// The requests that arrived after `mark`, as the log says now; some may be running.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn since(&self, mark: Mark) -> Result<Requests> {
        self.between(mark, Mark(u64::MAX))
    }

    /// The requests that arrived after `from` and before `to`.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn between(&self, from: Mark, to: Mark) -> Result<Requests> {
        let mut file = std::fs::File::open(&self.log).with_context(|| self.log.display().to_string())?;
        file.seek(SeekFrom::Start(from.0))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Requests(collect(&bytes, from.0, to.0)?))
    }

    /// The requests that arrived after `mark` and before this call, once each of them is answered (an open watch counts
    /// as answered, and so does what was lost with an API server that was killed).
    ///
    /// # Errors
    /// When a request is still running after [`patience`]; the message lists those.
    pub async fn settled(&self, mark: Mark) -> Result<Requests> {
        let now = self.mark()?;
        let deadline = tokio::time::Instant::now() + patience();
        loop {
            let requests = self.between(mark, now)?;
            let alive_since = self.alive_since.load(Ordering::Acquire);
            let runs = |request: &Request| request.code.is_none() && request.position >= alive_since;
            if !requests.iter().any(runs) {
                return Ok(requests);
            }
            if tokio::time::Instant::now() > deadline {
                bail!("still running: {}", requests.filter(runs));
            }
            // The log is written by another process; there is nothing to wait on but the file.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Where the line begins that ends at `end` or later. The file grows while an event is written, so its end need not be a
/// line's; and what is not written whole is not answered.
fn begun_line(mut file: &std::fs::File, mut end: u64) -> std::io::Result<u64> {
    const CHUNK: u64 = 64 * 1024;
    let mut chunk = Vec::new();
    while end > 0 {
        let begin = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(begin))?;
        chunk.clear();
        file.take(end - begin).read_to_end(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "auditID")]
    id: String,
    stage: String,
    #[serde(rename = "requestURI")]
    uri: String,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<ResponseStatus>,
    request_received_timestamp: String,
    #[serde(default)]
    stage_timestamp: String,
    #[serde(default)]
    annotations: HashMap<String, String>,
    request_object: Option<Value>,
    response_object: Option<Value>,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: HashMap<String, Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    namespace: String,
    name: String,
    api_group: String,
    subresource: String,
}

#[derive(Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

/// Merges the lines of each request; `bytes` begin at offset `from` of the log. Requests whose first line is not in
/// `bytes`, or begins at `to` or later, are left out.
fn collect(bytes: &[u8], from: u64, to: u64) -> Result<Vec<Request>> {
    let mut requests: Vec<Request> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut next = from;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let position = next;
        next += line.len() as u64;
        if line.last() != Some(&b'\n') {
            break;
        }
        let line = read(line)?;
        if line.stage == "RequestReceived" && position < to {
            places.insert(line.id.clone(), requests.len());
            requests.push(request(line, position));
        } else if let Some(place) = places.get(&line.id) {
            let earlier = &mut requests[*place];
            let code = earlier.code;
            *earlier = request(line, earlier.position);
            earlier.code = earlier.code.or(code);
        }
    }
    Ok(requests)
}

/// One event. An API server that was killed while it wrote leaves half a line, to which the next event is appended.
fn read(line: &[u8]) -> Result<Line> {
    const BEGINNING: &[u8] = br#"{"kind":"Event""#;
    let last = line.windows(BEGINNING.len()).rposition(|window| window == BEGINNING).unwrap_or_default();
    let whole = serde_json::from_slice(line);
    whole.or_else(|_| serde_json::from_slice(&line[last..])).context("a line of the audit log is not an audit event")
}

fn request(line: Line, position: u64) -> Request {
    let object = line.object_ref.unwrap_or_default();
    let credential = line.user.extra.get("authentication.kubernetes.io/credential-id").map(|ids| ids.concat());
    Request {
        user: line.user.username,
        groups: line.user.groups,
        credential: credential.unwrap_or_default(),
        user_agent: line.user_agent,
        verb: line.verb,
        uri: line.uri,
        group: object.api_group,
        resource: object.resource,
        subresource: object.subresource,
        namespace: object.namespace,
        name: object.name,
        code: line.response_status.and_then(|status| status.code),
        received: line.request_received_timestamp,
        answered: line.stage_timestamp,
        annotations: line.annotations,
        request_object: line.request_object,
        response_object: line.response_object,
        position,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(id: &str, stage: &str, code: Option<u16>) -> String {
        let status = code.map_or(String::new(), |code| format!(r#","responseStatus":{{"code":{code}}}"#));
        format!(
            r#"{{"kind":"Event","auditID":"{id}","stage":"{stage}","requestURI":"/api/v1/pods","verb":"list","user":{{"username":"u"}},"objectRef":{{"resource":"pods"}},"requestReceivedTimestamp":"t"{status}}}"#
        ) + "\n"
    }

    #[test]
    fn lines_of_one_request_are_one_entry_in_order_of_arrival() {
        let log = line("b", "RequestReceived", None)
            + &line("a", "RequestReceived", None)
            + &line("a", "ResponseComplete", Some(200))
            + &line("b", "ResponseComplete", Some(409));
        let codes: Vec<_> = collect(log.as_bytes(), 0, u64::MAX).unwrap().into_iter().map(|r| r.code).collect();
        assert_eq!(codes, [Some(409), Some(200)]);
    }

    #[test]
    fn what_arrived_before_the_first_or_after_the_second_mark_does_not_count() {
        let first = line("old", "ResponseComplete", Some(200)) + &line("in", "RequestReceived", None);
        let rest = line("late", "RequestReceived", None) + &line("in", "ResponseComplete", Some(201));
        let requests = collect((first.clone() + &rest).as_bytes(), 0, first.len() as u64).unwrap();
        assert_eq!(requests.iter().map(|r| r.code).collect::<Vec<_>>(), [Some(201)]);
    }

    /// Also in a line that is longer than what is read at once.
    #[test]
    fn a_mark_is_where_a_line_begins() {
        let folder = tempfile::tempdir().unwrap();
        let audit = Audit::new(folder.path().join("audit.log"), Arc::default());
        for (text, mark) in [
            (String::new(), 0),
            ("half".to_owned(), 0),
            ("one\n".to_owned(), 4),
            (format!("one\n{}", "x".repeat(200_000)), 4),
            (format!("one\n{}\n", "x".repeat(200_000)), 200_005),
        ] {
            std::fs::write(folder.path().join("audit.log"), &text).unwrap();
            assert_eq!(audit.mark().unwrap(), Mark(mark), "{} bytes", text.len());
        }
    }

    #[test]
    fn a_half_written_last_line_is_not_read_yet() {
        let log = line("a", "RequestReceived", None) + "{\"auditID\":\"b\"";
        assert_eq!(collect(log.as_bytes(), 0, u64::MAX).unwrap().len(), 1);
    }

    #[test]
    fn an_event_after_a_half_written_line_is_read() {
        let log = "{\"kind\":\"Event\",\"audi".to_owned() + &line("a", "RequestReceived", None);
        assert_eq!(collect(log.as_bytes(), 0, u64::MAX).unwrap().len(), 1);
    }
}
