//! Asks tool servers which tools they offer: `tools/list` of the Model Context Protocol over streamable HTTP. In: a question of the controller
//! of tool discovery. Out: the names, or why there are none.
//!
//! Promises: only the address of a Ready Pod with a network of its own is connected to; a quick try has a second for each answer to begin and two
//! in all, a patient one ten in all, every message of the conversation together; at most [`PAGES`] pages are read; what was answered is read off
//! the threads that wait for sockets, two documents at a time, and nothing of it but names is kept; a session that the server opened is closed again.

mod answer;

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

pub use answer::{Hello, Listed, NoAnswer, is_whole, read};

use super::http::{Addresses, Answered, Http, HttpFault, Method, Patience, Sent};
use crate::controllers::scaffold::lane::{Adapter, AskError, AskFault, Attempt};
use crate::controllers::tool_discovery::question::{NAME, NAMES, PATH, PORT, Tools, ToolsOf};
use crate::domain::printable::printable;
use crate::domain::reason::Reason;

#[cfg(test)]
mod tests;

/// Documents that are read at once: the processors belong to everybody.
const READERS: usize = 2;
/// Pods that are looked for at once: what is answered may be large.
const SEARCHES: usize = 2;
/// Pages of one list.
const PAGES: usize = 8;
/// Bytes of what a server calls its session, or a page of its list.
const TOKEN: usize = 1024;
/// Bytes of a message.
const MESSAGE: usize = 512;
/// The version of the protocol that is proposed; the server's own is used where it names another.
const VERSION: &str = "2025-06-18";

/// A Pod that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// An address in its `status.podIPs`.
    pub address: IpAddr,
    /// It carries our sidecar, which may be who refuses.
    pub injected: bool,
}

/// Finds a Ready Pod of a tool server, the newest first; `None`: there is none.
pub type Pods =
    Arc<dyn Fn(ToolsOf) -> Pin<Box<dyn Future<Output = Result<Option<Pod>, AskError>> + Send>> + Send + Sync>;

/// The adapter.
#[derive(Clone)]
pub struct ToolServers<A> {
    http: Http<A>,
    pods: Pods,
    port: u16,
    readers: Arc<Semaphore>,
    searches: Arc<Semaphore>,
}

/// Why a conversation came to nothing.
enum Failed {
    Http(HttpFault),
    Answer(NoAnswer),
    /// A defect of ours.
    Reader,
}

impl From<HttpFault> for Failed {
    fn from(fault: HttpFault) -> Self {
        Failed::Http(fault)
    }
}

/// One conversation with one server.
struct Conversation<'a, A> {
    servers: &'a ToolServers<A>,
    address: std::net::SocketAddr,
    host: &'a str,
    begun: Instant,
    patience: Patience,
    session: Option<String>,
    version: Option<String>,
}

impl<A: Addresses> ToolServers<A> {
    /// One that connects where `addresses` lets it, to Pods that `pods` finds.
    pub fn new(addresses: A, pods: Pods) -> Self {
        Self {
            http: Http::new(addresses),
            pods,
            port: PORT,
            readers: Arc::new(Semaphore::new(READERS)),
            searches: Arc::new(Semaphore::new(SEARCHES)),
        }
    }

    /// At another port: for tests, whose servers cannot choose theirs.
    #[cfg(test)]
    fn at(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Reads what was answered to the question of that number, off the threads that wait.
    async fn read<R: DeserializeOwned + Send + 'static>(&self, answered: Answered, id: u64) -> Result<R, Failed> {
        // The semaphore is never closed.
        let permit = self.readers.clone().acquire_owned().await;
        let is_stream = answered.is_stream();
        let (body, place) = answered.answer.apart();
        let read = tokio::task::spawn_blocking(move || {
            let read = read(&body, is_stream, id);
            drop((permit, body, place));
            read
        });
        read.await.map_err(|_| Failed::Reader)?.map_err(Failed::Answer)
    }
}

impl<A: Addresses> Conversation<'_, A> {
    /// What is left of the time.
    fn left(&self) -> Patience {
        let whole = self.patience.whole.saturating_sub(self.begun.elapsed());
        Patience { head: self.patience.head.min(whole), whole }
    }

    async fn send(&self, method: Method, body: &str, patience: Patience) -> Result<Answered, HttpFault> {
        let mut headers = Vec::new();
        headers.extend(self.session.as_deref().map(|session| ("mcp-session-id", session)));
        headers.extend(self.version.as_deref().map(|version| ("mcp-protocol-version", version)));
        let sent = Sent {
            method,
            address: self.address,
            host: self.host,
            path: PATH,
            accept: "application/json, text/event-stream",
            headers: &headers,
            body,
            whole: Some(is_whole),
        };
        self.servers.http.send(sent, patience).await
    }

    async fn post(&self, message: &Value) -> Result<Answered, HttpFault> {
        self.send(Method::Post, &message.to_string(), self.left()).await
    }

    /// Says hello, and takes the session that the server opens.
    async fn greet(&mut self) -> Result<(), Failed> {
        let client = json!({"name": "drawbridge", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let answered = self.post(&hello).await?;
        self.session = match answered.header("mcp-session-id") {
            None => None,
            Some(session) if is_token(session) => Some(session.to_owned()),
            Some(_) => return Err(Failed::Answer(NoAnswer::Session)),
        };
        let hello: Hello = self.servers.read(answered, 1).await?;
        self.version = Some(hello.protocol_version).filter(|version| is_token(version));
        self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(())
    }

    /// Every page of the list, as far as it is read.
    async fn tools(&self) -> Result<Tools, Failed> {
        let (mut names, mut cursor) = (Vec::new(), None::<String>);
        for page in 0..PAGES {
            let id = u64::try_from(page).unwrap_or_default() + 2;
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params});
            let listed: Listed = self.servers.read(self.post(&list).await?, id).await?;
            names.extend(listed.tools.into_iter().map(|tool| printable(&tool.name, NAME)));
            cursor = listed.next_cursor.filter(|cursor| !cursor.is_empty());
            match &cursor {
                None => return Ok(Tools::of(names, false)),
                Some(cursor) if cursor.len() > TOKEN || names.len() > NAMES => break,
                Some(_) => {}
            }
        }
        Ok(Tools::of(names, true))
    }

    async fn hold(&mut self) -> Result<Tools, Failed> {
        let tools = match self.greet().await {
            Ok(()) => self.tools().await,
            Err(failed) => Err(failed),
        };
        if self.session.is_some() {
            // Who does not let sessions be closed forgets them by itself.
            let second = Duration::from_secs(1);
            drop(self.send(Method::Delete, "", Patience { head: second, whole: second }).await);
        }
        tools
    }
}

/// What may be said back to the server in a header.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= TOKEN && text.bytes().all(|byte| byte.is_ascii_graphic())
}

impl<A: Addresses> Adapter<ToolsOf> for ToolServers<A> {
    async fn ask(&self, question: ToolsOf, attempt: Attempt) -> Result<Tools, AskError> {
        let found = {
            let _turn = self.searches.acquire().await;
            (self.pods)(question.clone()).await?
        };
        let Some(pod) = found else {
            let message = "none of its Pods is Ready with a network of its own";
            return Err(error(AskFault::Unreachable, message));
        };
        let patience = match attempt {
            Attempt::Quick => Patience { head: Duration::from_secs(1), whole: Duration::from_secs(2) },
            Attempt::Patient => Patience { head: Duration::from_secs(10), whole: Duration::from_secs(10) },
        };
        let mut conversation = Conversation {
            servers: self,
            address: (pod.address, self.port).into(),
            host: &question.authority,
            begun: Instant::now(),
            patience,
            session: None,
            version: None,
        };
        let held = Box::pin(conversation.hold()).await;
        held.map_err(|failed| told(&failed, &pod, attempt))
    }
}

/// What people are told: words of a closed list, since what a server says besides may be other words each time.
fn told(failed: &Failed, pod: &Pod, attempt: Attempt) -> AskError {
    let (fault, words) = match failed {
        Failed::Reader => (AskFault::Unusable, "its answer could not be read: a defect in Drawbridge".to_owned()),
        Failed::Answer(no_answer) => (AskFault::Unusable, no_answer.to_string()),
        Failed::Http(fault) => (kind(fault, attempt), said(fault, pod.injected)),
    };
    error(fault, &format!("Pod {}, {PATH} at port {PORT}: {words}", pod.name))
}

fn kind(fault: &HttpFault, attempt: Attempt) -> AskFault {
    match fault {
        HttpFault::AddressRefused(_) => AskFault::Refused,
        HttpFault::Connect(_) | HttpFault::Cut => AskFault::Unreachable,
        HttpFault::Timeout(_) if attempt == Attempt::Quick => AskFault::Slow,
        HttpFault::Timeout(_) => AskFault::TimedOut,
        HttpFault::NotFound | HttpFault::Redirect(_) | HttpFault::Status { .. } => AskFault::Refused,
        HttpFault::Closed | HttpFault::SpeaksTls => AskFault::Refused,
        HttpFault::TooLarge(_) | HttpFault::Encoded | HttpFault::Malformed => AskFault::Unusable,
    }
}

fn said(fault: &HttpFault, injected: bool) -> String {
    match fault {
        HttpFault::NotFound => format!("answered with HTTP status 404: no tools are served over HTTP at {PATH}"),
        HttpFault::Status { code: code @ (401 | 403), .. } if injected => {
            format!(
                "answered with HTTP status {code}: its sidecar lets nobody in without a token, and Drawbridge has none"
            )
        }
        HttpFault::Status { code, .. } => format!("answered with HTTP status {code}"),
        fault => fault.to_string(),
    }
}

fn error(fault: AskFault, message: &str) -> AskError {
    AskError { fault, reason: Reason::ToolsNotListed, message: printable(message, MESSAGE).into() }
}
