//! An API server in memory, of one collection: as much of lists, watches, versions and bookmarks as followers see.
//!
//! As measured on a real one: a watch from a version that the server has not reached is answered and then silent until
//! its end; a bookmark comes 2 s before the end; where the server was not restarted after a backup was put back, lists
//! and watches go on from its cache for ever, and only reads by name are true.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// What the store holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    revision: u64,
    objects: BTreeMap<String, Value>,
    events: Vec<(u64, Value)>,
}

#[derive(Debug, Default)]
struct Inner {
    truth: State,
    /// What lists and watches are answered from, when that is not the truth.
    cache: Option<State>,
    restarts: u64,
    /// Requests of these methods fail with 500.
    broken: Vec<Method>,
    asked: Vec<(Duration, String)>,
}

/// The server. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Server {
    inner: Arc<Mutex<Inner>>,
    begun: Instant,
    kind: &'static str,
    turned: Arc<watch::Sender<u64>>,
}

impl Server {
    pub(crate) fn new(kind: &'static str) -> Self {
        let inner = Inner { truth: State { revision: 100, ..State::default() }, ..Inner::default() };
        Self { inner: Arc::new(Mutex::new(inner)), begun: Instant::now(), kind, turned: Arc::default() }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Method and path with query of everything asked since the last call, and when.
    pub(crate) fn asked(&self) -> Vec<(Duration, String)> {
        std::mem::take(&mut self.inner.lock().asked)
    }

    pub(crate) fn object(&self, name: &str) -> Option<Value> {
        self.inner.lock().truth.objects.get(name).cloned()
    }

    /// Something else happens in the cluster.
    pub(crate) fn pass(&self, revisions: u64) {
        self.inner.lock().truth.revision += revisions;
        self.turn();
    }

    pub(crate) fn put(&self, name: &str, mut object: Value) -> u64 {
        let mut inner = self.inner.lock();
        let state = &mut inner.truth;
        state.revision += 1;
        object["metadata"]["name"] = json!(name);
        object["metadata"]["uid"] = json!("u");
        object["metadata"]["resourceVersion"] = json!(state.revision.to_string());
        let kind = if state.objects.contains_key(name) { "MODIFIED" } else { "ADDED" };
        state.events.push((state.revision, json!({"type": kind, "object": object.clone()})));
        state.objects.insert(name.to_owned(), object);
        let revision = state.revision;
        drop(inner);
        self.turn();
        revision
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut inner = self.inner.lock();
        let state = &mut inner.truth;
        if let Some(mut gone) = state.objects.remove(name) {
            state.revision += 1;
            gone["metadata"]["resourceVersion"] = json!(state.revision.to_string());
            state.events.push((state.revision, json!({"type": "DELETED", "object": gone})));
        }
        drop(inner);
        self.turn();
    }

    pub(crate) fn backup(&self) -> State {
        self.inner.lock().truth.clone()
    }

    /// Puts a backup back; where the server is not restarted, its cache stays as it was.
    pub(crate) fn restore(&self, backup: State, restarted: bool) {
        let mut inner = self.inner.lock();
        let before = std::mem::replace(&mut inner.truth, backup);
        if restarted {
            inner.cache = None;
            inner.restarts += 1;
        } else {
            inner.cache.get_or_insert(before);
        }
        drop(inner);
        self.turn();
    }

    /// Every watch is cut off, as when the server restarts.
    pub(crate) fn restart(&self) {
        self.inner.lock().restarts += 1;
        self.turn();
    }

    pub(crate) fn breaks(&self, methods: &[Method]) {
        self.inner.lock().broken = methods.to_vec();
    }

    fn turn(&self) {
        self.turned.send_modify(|count| *count += 1);
    }

    async fn answer(&self, request: Request<Body>) -> Response<Answer> {
        let (parts, body) = request.into_parts();
        let asked = format!("{} {}", parts.method, parts.uri);
        self.inner.lock().asked.push((self.begun.elapsed(), asked));
        let query = parts.uri.query().unwrap_or_default();
        let (code, answer) = if self.inner.lock().broken.contains(&parts.method) {
            refuse(500, "InternalError")
        } else if query.contains("watch=true") {
            let value = |key: &str| {
                let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
                pairs.filter(|(name, _)| *name == key).find_map(|(_, value)| value.parse::<u64>().ok())
            };
            let (from, seconds) = (value("resourceVersion").unwrap(), value("timeoutSeconds").unwrap());
            return Response::new(self.watch(from, Duration::from_secs(seconds)));
        } else {
            let sent: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap_or(Value::Null);
            self.decide(&parts.method, name(parts.uri.path()), sent)
        };
        let bytes = Full::new(Bytes::from(answer.to_string()));
        Response::builder().status(code).body(bytes.boxed_unsync()).unwrap()
    }

    fn decide(&self, method: &Method, name: Option<String>, sent: Value) -> (u16, Value) {
        let state = {
            let inner = self.inner.lock();
            if name.is_none() && *method == Method::GET { inner.cache.clone() } else { None }
                .unwrap_or_else(|| inner.truth.clone())
        };
        let name_sent = || sent["metadata"]["name"].as_str().unwrap().to_owned();
        match (method, name) {
            (&Method::GET, None) => {
                let items: Vec<_> = state.objects.values().cloned().collect();
                let metadata = json!({"resourceVersion": state.revision.to_string()});
                (
                    200,
                    json!({"kind": format!("{}List", self.kind), "apiVersion": "v1", "metadata": metadata, "items": items}),
                )
            }
            (&Method::GET, Some(name)) => {
                state.objects.get(&name).map_or_else(|| refuse(404, "NotFound"), |object| (200, object.clone()))
            }
            (&Method::POST, None) if state.objects.contains_key(&name_sent()) => refuse(409, "AlreadyExists"),
            (&Method::POST, None) => {
                let name = name_sent();
                self.put(&name, sent);
                (201, self.object(&name).unwrap())
            }
            (&Method::PUT, Some(name)) => match state.objects.get(&name) {
                None => refuse(404, "NotFound"),
                Some(old) if sent["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"] => {
                    refuse(409, "Conflict")
                }
                Some(_) => {
                    self.put(&name, sent);
                    (200, self.object(&name).unwrap())
                }
            },
            _ => refuse(405, "MethodNotAllowed"),
        }
    }

    fn watch(&self, from: u64, lasts: Duration) -> Answer {
        let (server, turned, begun) = (self.clone(), self.turned.subscribe(), Instant::now());
        let restarts = self.inner.lock().restarts;
        let start = (server, turned, from, false);
        let lines = futures::stream::unfold(start, move |(server, mut turned, mut from, mut marked)| async move {
            loop {
                turned.mark_unchanged();
                let next = {
                    let inner = server.inner.lock();
                    if inner.restarts != restarts {
                        return None;
                    }
                    let state = inner.cache.as_ref().unwrap_or(&inner.truth);
                    // From a version that was not reached nothing comes, and no bookmark either.
                    let behind = from > state.revision || inner.cache.is_some();
                    let event = state.events.iter().find(|(revision, _)| *revision > from).cloned();
                    let bookmark = begun + lasts.saturating_sub(Duration::from_secs(2));
                    if let Some(event) = event {
                        Some(event)
                    } else if !behind && !marked && Instant::now() >= bookmark && lasts > Duration::from_secs(2) {
                        marked = true;
                        let metadata = json!({"resourceVersion": state.revision.to_string()});
                        let object = json!({"kind": server.kind, "apiVersion": "v1", "metadata": metadata});
                        Some((state.revision, json!({"type": "BOOKMARK", "object": object})))
                    } else {
                        None
                    }
                };
                if let Some((revision, event)) = next {
                    from = revision;
                    let frame = Frame::data(Bytes::from(format!("{event}\n")));
                    return Some((Ok::<_, Infallible>(frame), (server, turned, from, marked)));
                }
                let step = if marked { lasts } else { lasts.saturating_sub(Duration::from_secs(2)) };
                let step = if Instant::now() < begun + step { step } else { lasts };
                if Instant::now() >= begun + lasts {
                    return None;
                }
                tokio::select! {
                    _ = turned.changed() => {}
                    () = tokio::time::sleep_until(begun + step) => {}
                }
            }
        });
        StreamBody::new(lines).boxed_unsync()
    }
}

/// The name that a path ends with, after group, version, namespace and collection.
fn name(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let rest = if parts[0] == "api" { &parts[2..] } else { &parts[3..] };
    let rest = if rest.len() > 2 && rest[0] == "namespaces" { &rest[2..] } else { rest };
    rest.get(1).map(|name| (*name).to_owned())
}

fn refuse(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": reason});
    (code, status)
}
