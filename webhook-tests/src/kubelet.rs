//! The part of a kubelet that kwok does not play: what containers write, line by line, for as long as a test says.
//!
//! kwok answers for logs, too, but from files that are named before it starts, and a log that is followed there fails at
//! the end of its file instead of waiting for the container's end. So the nodes of a control plane are given the address of
//! this server, which the API server asks in place of a kubelet: `GET /containerLogs/<namespace>/<pod>/<container>`.
//! In: lines and ends. Out: what a kubelet answers, followed or not; a container that has not written anything yet is
//! waiting to start.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures::{Stream, StreamExt as _};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::{ControlPlane, background, https};

/// What a container has written.
#[derive(Debug, Clone, Default)]
struct Written {
    /// With their ends.
    lines: Vec<Vec<u8>>,
    ended: bool,
    /// How often those who follow were cut off.
    cuts: usize,
    /// It cannot be read.
    broken: bool,
}

/// By path: `<namespace>/<pod>/<container>`.
type Containers = Arc<Mutex<BTreeMap<String, watch::Sender<Written>>>>;

/// A server that answers for the logs of all nodes; stops when dropped.
pub struct Kubelet {
    containers: Containers,
    serving: JoinHandle<()>,
}

impl Kubelet {
    /// Serves, and makes the nodes of `cp` name this server as their kubelet.
    ///
    /// # Errors
    /// When there is no port, or the nodes cannot be written.
    pub async fn start(cp: &ControlPlane) -> Result<Self> {
        let tls = cp.serving_certificate("kubelet")?;
        let containers = Containers::default();
        let answering = Arc::clone(&containers);
        let starting = async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let address = listener.local_addr()?;
            let acceptor = https::acceptor(&tls)?;
            let answering = move |request| std::future::ready(answer(&request, &answering));
            Ok((address, tokio::spawn(https::serve(listener, acceptor, answering))))
        };
        let (address, serving) = background::run(starting).await?;
        let nodes: Api<Node> = Api::all(cp.client().await?);
        // By name, which comes before the address, nobody is found.
        let status = json!({ "status": {
            "addresses": [{ "type": "InternalIP", "address": address.ip().to_string() }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": address.port() } },
        }});
        for node in nodes.list(&ListParams::default()).await? {
            let name = node.metadata.name.context("a node has a name")?;
            nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        }
        Ok(Self { containers, serving })
    }

    fn change(&self, container: &str, change: impl FnOnce(&mut Written)) {
        self.containers.lock().entry(container.to_owned()).or_default().send_modify(change);
    }

    /// A container (`<namespace>/<pod>/<container>`) writes lines.
    pub fn writes(&self, container: &str, lines: impl AsRef<[u8]>) {
        let lines = lines.as_ref().split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec);
        self.change(container, |written| written.lines.extend(lines));
    }

    /// Whoever follows it comes to an end although it writes on, as when a kubelet is started anew.
    pub fn cuts(&self, container: &str) {
        self.change(container, |written| written.cuts += 1);
    }

    /// It ends: whoever follows it comes to an end, too.
    pub fn ends(&self, container: &str) {
        self.change(container, |written| written.ended = true);
    }

    /// Its lines cannot be read from now on.
    pub fn breaks(&self, container: &str) {
        self.change(container, |written| written.broken = true);
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn answer(request: &Request<Incoming>, containers: &Containers) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    let refusal = |code, text: String| {
        let mut response = Response::new(Full::from(text).boxed_unsync());
        *response.status_mut() = code;
        response
    };
    let Some(container) = request.uri().path().strip_prefix("/containerLogs/") else {
        return refusal(StatusCode::NOT_FOUND, "404 page not found".to_owned());
    };
    let Some(written) = containers.lock().get(container).map(watch::Sender::subscribe) else {
        let text = format!("container {container} is waiting to start: ContainerCreating");
        return refusal(StatusCode::BAD_REQUEST, text);
    };
    if written.borrow().broken {
        return refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("failed to open the log of {container}"));
    }
    let asked = Asked::of(request.uri().query().unwrap_or_default());
    Response::new(StreamBody::new(stream(written, asked).map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync())
}

/// What the API server passes on of a request for lines.
#[derive(Clone, Copy)]
struct Asked {
    follow: bool,
    timestamps: bool,
    since: Timestamp,
}

impl Asked {
    fn of(query: &str) -> Self {
        let value = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value.replace("%3A", ":")).unwrap_or_default()
        };
        let since = value("sinceTime").parse().unwrap_or(Timestamp::MIN);
        Self { follow: value("follow") == "true", timestamps: value("timestamps") == "true", since }
    }
}

/// When a line was written: two at a time, and a few times a second.
fn time(number: usize) -> Timestamp {
    let pair = i64::try_from(number / 2).unwrap_or(i64::MAX);
    Timestamp::UNIX_EPOCH + SignedDuration::from_millis(pair.saturating_mul(300))
}

/// What is there, and what comes until the container ends.
fn stream(written: watch::Receiver<Written>, asked: Asked) -> impl Stream<Item = Bytes> + Send {
    let cuts = written.borrow().cuts;
    futures::stream::unfold((written, 0), move |(mut written, mut at)| async move {
        loop {
            let now = written.borrow_and_update().clone();
            if asked.follow && now.cuts != cuts {
                return None;
            }
            while let Some(line) = now.lines.get(at) {
                let time = time(at);
                at += 1;
                if time >= asked.since {
                    let prefix = if asked.timestamps { format!("{time:.9} ") } else { String::new() };
                    return Some((Bytes::from([prefix.as_bytes(), line].concat()), (written, at)));
                }
            }
            if !asked.follow || now.ended || written.changed().await.is_err() {
                return None;
            }
        }
    })
}
