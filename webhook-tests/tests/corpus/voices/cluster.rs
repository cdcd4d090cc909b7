//! The clusters of the cases as an API server shows them to whoever reads: one server on loopback for all of them, each under a path of its own.
//!
//! In: the objects of a case, and one more. Out: a kubeconfig. What is asked for and is not there is an empty list, or 404.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use drawbridge::cli::render::platform::{KEY_GATES, KEY_PLATFORM};
use drawbridge::domain::keys;
use drawbridge::store::Kind;
use serde_json::{Value, json};
use webhook_tests::corpus::fixture::Fixture;
use webhook_tests::pki::Authority;

type Held = Arc<Mutex<HashMap<usize, Arc<Objects>>>>;

/// What one cluster has.
struct Objects {
    version: String,
    objects: Vec<Value>,
}

/// All of them.
pub(super) struct Clusters {
    address: SocketAddr,
    held: Held,
    next: AtomicUsize,
    /// An authority for the kubeconfigs. Nothing here is served with a certificate, and a client that is given none reads all that the machine trusts,
    /// each time.
    authority: String,
}

/// One of them, for as long as it is asked.
pub(super) struct Cluster<'c> {
    of: &'c Clusters,
    number: usize,
    operator: String,
    file: tempfile::NamedTempFile,
}

impl Clusters {
    /// Starts the server, on a thread of its own.
    pub(super) fn start() -> anyhow::Result<Self> {
        let held = Held::default();
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/{number}/{*path}", axum::routing::get(answer)).with_state(Arc::clone(&held));
        std::thread::spawn(move || -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener)?;
                Ok(axum::serve(listener, router).await?)
            })
        });
        let authority = BASE64_STANDARD.encode(Authority::new("nobody")?.certificate());
        Ok(Self { address, held, next: AtomicUsize::new(0), authority })
    }

    /// The cluster of a case, with an object in it and the namespace that it lives in.
    pub(super) fn hold(&self, fixture: &Fixture, (object, namespace): (&Value, &str)) -> anyhow::Result<Cluster<'_>> {
        let text = |key: &str| fixture.cluster[key].as_str().unwrap_or_default().to_owned();
        let operator = text("operatorNamespace");
        let identity = |one: &Value| json!([one["kind"], one["metadata"]["name"], one["metadata"]["namespace"]]);
        let mut objects: Vec<Value> =
            fixture.objects.values().filter(|other| identity(other) != identity(object)).cloned().collect();
        for (name, key, text) in [
            (keys::CONFIG_MAP_PLATFORM, KEY_PLATFORM, &fixture.platform),
            (keys::CONFIG_MAP_GATES, KEY_GATES, &fixture.gates),
        ] {
            objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {key: text},
                "metadata": {"name": name, "namespace": operator}}));
        }
        objects.push(object.clone());
        let is_namespace = |other: &Value| other["kind"] == "Namespace" && other["metadata"]["name"] == namespace;
        if !objects.iter().any(is_namespace) {
            // What is said by its name alone is said of one without labels.
            objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let objects = Arc::new(Objects { version: text("serverVersion"), objects });
        self.held.lock().map_err(|_| anyhow::anyhow!("the clusters are lost"))?.insert(number, objects);
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}/{number}", self.address),
                "certificate-authority-data": self.authority}}]});
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), config.to_string())?;
        Ok(Cluster { of: self, number, operator, file })
    }
}

impl Cluster<'_> {
    /// The file that names it.
    pub(super) fn kubeconfig(&self) -> anyhow::Result<&str> {
        self.file.path().to_str().context("a path that is no text")
    }

    /// The operator's own namespace.
    pub(super) fn operator_namespace(&self) -> &str {
        &self.operator
    }
}

impl Drop for Cluster<'_> {
    fn drop(&mut self) {
        if let Ok(mut held) = self.of.held.lock() {
            held.remove(&self.number);
        }
    }
}

async fn answer(State(held): State<Held>, Path((number, path)): Path<(usize, String)>) -> (StatusCode, String) {
    let cluster = held.lock().ok().and_then(|held| held.get(&number).cloned());
    match cluster.and_then(|cluster| cluster.read(&path)) {
        Some(value) => (StatusCode::OK, value.to_string()),
        None => {
            let status =
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
            (StatusCode::NOT_FOUND, status.to_string())
        }
    }
}

impl Objects {
    /// `version`, a list, or an object by its name.
    fn read(&self, path: &str) -> Option<Value> {
        if path == "version" {
            let (major, minor) = self.version.split_once('.')?;
            return Some(json!({"major": major, "minor": minor}));
        }
        let mut steps = path.split('/');
        let api_version = match steps.next()? {
            "api" => steps.next()?.to_owned(),
            _ => format!("{}/{}", steps.next()?, steps.next()?),
        };
        let rest: Vec<&str> = steps.collect();
        let (namespace, plural, name) = match rest.as_slice() {
            ["namespaces", name] => (None, "namespaces", Some(*name)),
            ["namespaces", namespace, plural] => (Some(*namespace), *plural, None),
            ["namespaces", namespace, plural, name] => (Some(*namespace), *plural, Some(*name)),
            [plural] => (None, *plural, None),
            [plural, name] => (None, *plural, Some(*name)),
            _ => return None,
        };
        let kind = Kind::ALL.iter().find(|kind| kind.plural() == plural && kind.api_version() == api_version)?;
        let is = |object: &&Value| {
            let of = |member: &str| object["metadata"][member].as_str();
            object["kind"] == kind.as_str()
                && object["apiVersion"] == api_version.as_str()
                && namespace.is_none_or(|namespace| of("namespace") == Some(namespace))
                && name.is_none_or(|name| of("name") == Some(name))
        };
        let mut found = self.objects.iter().filter(is);
        if name.is_some() {
            return found.next().cloned();
        }
        let items: Vec<&Value> = found.collect();
        Some(
            json!({"kind": format!("{}List", kind.as_str()), "apiVersion": api_version, "metadata": {}, "items": items}),
        )
    }
}
