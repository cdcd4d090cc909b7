//! Stands between one process and the API server, counts its writes in one namespace, and lets one of them end there.
//!
//! Out: a kubeconfig that leads here. Everything is passed on as it is, with the credentials of the identity that the proxy
//! was started for. A write that is to end here is either never passed on, or passed on and never answered.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use webhook_tests::{Access, household};

/// On which side of the API server a write ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Which write ends here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The first of its kind, as [`kind`] tells it.
    First(String),
    /// That number, from 1.
    Number(usize),
}

#[derive(Debug, Default)]
struct Watched {
    namespace: String,
    /// The write that ends here.
    ends: Option<(End, Side)>,
    writes: Vec<String>,
    runs: usize,
}

pub(crate) struct Proxy {
    kubeconfig: PathBuf,
    shared: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
}

struct Shared {
    client: kube::Client,
    watched: Mutex<Watched>,
    tripped: Notify,
}

impl Proxy {
    pub(crate) async fn start(access: &Access) -> Result<Self> {
        let shared =
            Arc::new(Shared { client: access.client().await?, watched: Mutex::default(), tripped: Notify::new() });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = format!("http://{}", listener.local_addr()?);
        let kubeconfig = household::folders()?.disk.join("through-the-proxy.kubeconfig");
        let document = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": server}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        });
        std::fs::write(&kubeconfig, document.to_string())?;
        let router = axum::Router::new().fallback(pass).with_state(shared.clone());
        let serving = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                panic!("the proxy: {error}");
            }
        });
        Ok(Self { kubeconfig, shared, serving })
    }

    pub(crate) fn kubeconfig(&self) -> String {
        self.kubeconfig.display().to_string()
    }

    /// From now on the writes in `namespace` are counted, and that one ends here.
    pub(crate) fn watch(&self, namespace: &str, ends: Option<(End, Side)>) {
        *self.shared.watched.lock() = Watched { namespace: namespace.to_owned(), ends, ..Watched::default() };
    }

    /// Waits until a write has ended here.
    pub(crate) async fn tripped(&self) {
        self.shared.tripped.notified().await;
    }

    /// The writes so far, and how many of them made a PipelineRun.
    pub(crate) fn seen(&self) -> (Vec<String>, usize) {
        let watched = self.shared.watched.lock();
        (watched.writes.clone(), watched.runs)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    /// Counts a request that is a write of the build; tells whether it ends here.
    fn count(&self, request: &Request) -> Option<Side> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let is_write = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(request.method());
        let mut watched = self.watched.lock();
        let there = path.contains(&format!("/namespaces/{}/", watched.namespace));
        if !is_write || !there || query.contains("dryRun") {
            return None;
        }
        watched.writes.push(format!("{} {path}", request.method()));
        let (number, kind) = (watched.writes.len(), kind(request.method().as_str(), path));
        let ends = |end: &End| match end {
            End::First(first) => *first == kind,
            End::Number(ending) => *ending == number,
        };
        watched.ends.take_if(|(end, _)| ends(end)).map(|(_, side)| side)
    }
}

/// What is done to which kind of object, or to which part of it: `PATCH agentbuilds/status`.
pub(crate) fn kind(method: &str, path: &str) -> String {
    let mut behind = path.split('/').skip_while(|part| *part != "namespaces").skip(2);
    let (plural, part) = (behind.next().unwrap_or_default(), behind.nth(1));
    format!("{method} {plural}{}", part.map(|part| format!("/{part}")).unwrap_or_default())
}

async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let ends = shared.count(&request);
    if ends == Some(Side::Before) {
        shared.tripped.notify_one();
        return std::future::pending().await;
    }
    let makes_run = request.method() == Method::POST && request.uri().path().ends_with("/pipelineruns");
    let makes_run = makes_run && !request.uri().query().unwrap_or_default().contains("dryRun");
    match forward(&shared, request).await {
        Ok(response) => {
            if makes_run && response.status() == StatusCode::CREATED {
                shared.watched.lock().runs += 1;
            }
            if ends == Some(Side::After) {
                shared.tripped.notify_one();
                return std::future::pending().await;
            }
            response
        }
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}

async fn forward(shared: &Shared, request: Request) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await?;
    let path = parts.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut onward = http::Request::builder().method(parts.method).uri(path);
    for (name, value) in &parts.headers {
        if ![http::header::HOST, http::header::AUTHORIZATION, http::header::CONTENT_LENGTH].contains(name) {
            onward = onward.header(name, value);
        }
    }
    let response = shared.client.send(onward.body(kube::client::Body::from(body.to_vec()))?).await?;
    Ok(response.map(Body::new))
}
