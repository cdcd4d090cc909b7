//! Git over TLS: `git http-backend` behind a server that asks for a name and a password.
//!
//! In: an authority, and what a request that carries a credential gets. Out: a server on a free loopback port, and the `Authorization` header
//! of every request that it was sent. Promise: it ends with its handle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::https::{acceptor, serve};
use crate::pki::Authority;

/// What a server does with a request that carries a credential.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Serves the repositories below a folder, whatever the credential is.
    Serve(PathBuf),
    /// Serves them to that user with that password, and to nobody else.
    ServeTo(PathBuf, (String, String)),
    /// Sends the client to another server, credential or not.
    Redirect(u16),
    /// The same, but asks for the credential first, and sends away whoever brings it.
    RedirectAfter(u16),
}

/// A TLS server on a free port.
#[derive(Debug)]
pub struct Server {
    port: u16,
    /// The `Authorization` header of every request, in order; empty where there was none.
    seen: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Server {
    /// Starts one for `localhost` and `127.0.0.1`, with a certificate of that authority.
    ///
    /// # Errors
    /// Without a port or a certificate.
    pub async fn start(authority: &Authority, behaviour: Behaviour) -> Result<Self> {
        crate::install_crypto();
        let acceptor = acceptor(&authority.server("localhost", &["localhost", "127.0.0.1"])?)?;
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (behaviour, log) = (Arc::new(behaviour), Arc::clone(&seen));
        let answer = move |request| {
            let (behaviour, log) = (Arc::clone(&behaviour), Arc::clone(&log));
            async move { answer(request, &behaviour, &log).await.unwrap_or_else(|error| broken(&error)) }
        };
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, acceptor, answer));
        Ok(Self { port, seen, _serving: serving })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where `agents.git` is, after a scheme or nothing.
    #[must_use]
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}localhost:{}/agents.git", self.port)
    }

    /// The `Authorization` header of every request so far; empty where there was none.
    #[must_use]
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    /// Whether it was told that name and password.
    #[must_use]
    pub fn saw(&self, user: &str, password: &str) -> bool {
        self.seen.lock().contains(&basic(user, password))
    }
}

/// The header that says a name and a password.
#[must_use]
pub fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn broken(error: &anyhow::Error) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(format!("{error:#}")));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

async fn answer(
    request: Request<Incoming>,
    behaviour: &Behaviour,
    log: &Mutex<Vec<String>>,
) -> Result<Response<Full<Bytes>>> {
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let told = header("authorization");
    log.lock().push(told.clone());
    let asks = || {
        Ok(Response::builder().status(401).header("www-authenticate", "Basic realm=\"agents\"").body(Full::default())?)
    };
    let root: &Path = match behaviour {
        Behaviour::RedirectAfter(_) | Behaviour::Serve(_) if told.is_empty() => return asks(),
        Behaviour::ServeTo(_, (user, password)) if told != basic(user, password) => return asks(),
        Behaviour::Redirect(port) | Behaviour::RedirectAfter(port) => {
            let elsewhere = format!("https://localhost:{port}{}", request.uri());
            return Ok(Response::builder().status(302).header("location", elsewhere).body(Full::default())?);
        }
        Behaviour::Serve(root) | Behaviour::ServeTo(root, _) => root,
    };
    let mut environment = BTreeMap::from([
        ("GIT_PROJECT_ROOT", root.display().to_string()),
        ("GIT_HTTP_EXPORT_ALL", "1".to_owned()),
        ("PATH_INFO", request.uri().path().to_owned()),
        ("QUERY_STRING", request.uri().query().unwrap_or_default().to_owned()),
        ("REQUEST_METHOD", request.method().to_string()),
        ("CONTENT_TYPE", header("content-type")),
        ("REMOTE_USER", "somebody".to_owned()),
        ("HTTP_GIT_PROTOCOL", header("git-protocol")),
        ("HTTP_CONTENT_ENCODING", header("content-encoding")),
    ]);
    environment.retain(|_, value| !value.is_empty());
    let body = request.into_body().collect().await?.to_bytes();
    backend(&environment, &body).await
}

/// One CGI call of `git http-backend`.
async fn backend(environment: &BTreeMap<&str, String>, body: &[u8]) -> Result<Response<Full<Bytes>>> {
    let mut command = tokio::process::Command::new("git");
    command.arg("http-backend").envs(environment).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().context("git http-backend")?;
    child.stdin.take().context("a pipe")?.write_all(body).await?;
    let output = child.wait_with_output().await?.stdout;
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").context("a CGI answer has a header")?;
    let mut response = Response::builder();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let (name, value) = line.split_once(": ").context("a line of a CGI header")?;
        response = match name {
            "Status" => response.status(value.get(..3).context("a status")?),
            _ => response.header(name, value),
        };
    }
    Ok(response.body(Full::from(output[end + 4..].to_vec()))?)
}
