//! The one place that writes: carries plans out, in order, through the fenced client.
//!
//! In: a plan's operations. Out: what the server made of them, as changes for the world. Promises: nothing is sent that
//! is not in the plan; creation never adopts; a merge names the uid it is meant for; an Event that exists already is
//! not written again. Assumes a client that refuses to write without the Lease.

use http::Request;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Request as Builder;
use kube::core::params::GetParams;
use serde_json::{Value, json};

use super::plan::{Controller, Op, Report};
use crate::api::event::Regarding;
use crate::api::observed::wire::Raw;
use crate::api::observed::{Change, Key, Kind};
use crate::domain::keys;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The object was changed, or made, by somebody else in between.
    #[error("{what}: somebody else wrote in between")]
    Conflict {
        /// The operation.
        what: String,
    },
    /// The server or the way to it failed, or the server refused.
    #[error("{what}")]
    Request {
        /// The operation.
        what: String,
        /// The cause.
        #[source]
        source: Box<kube::Error>,
    },
    /// The request could not be put together.
    #[error("{what}: the request cannot be built")]
    Unbuildable {
        /// The operation.
        what: String,
    },
}

/// What came of one operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Learned {
    /// The object as it is now.
    Change(Change),
    /// A probe was answered: whether Pods come back without our gate.
    Back(bool),
    /// Nothing that is kept.
    Nothing,
}

/// Carries out one operation.
///
/// # Errors
/// When the server refuses, cannot be reached, or somebody else was faster.
pub async fn apply(client: &Client, controller: Controller, op: &Op) -> Result<Learned, ApplyError> {
    let manager = controller.manager();
    match op {
        Op::Create { kind, namespace, body } => {
            let body = typed(*kind, body.clone());
            let request = Builder::new(kind.path(namespace)).create(&create(&manager, false), bytes(&body));
            send(client, *kind, built(op, request)?, op).await
        }
        Op::Merge { kind, key, patch } => {
            let parameters = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
            let request = Builder::new(kind.path(&key.namespace)).patch(&key.name, &parameters, &Patch::Merge(patch));
            send(client, *kind, built(op, request)?, op).await.or_else(|error| absent(error, *kind, key))
        }
        Op::Edit { kind, key, operations } => {
            let operations = serde_json::from_value(operations.clone())
                .map_err(|_| ApplyError::Unbuildable { what: describe(op) })?;
            let parameters = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
            let patch = Patch::<Value>::Json(operations);
            let request = Builder::new(kind.path(&key.namespace)).patch(&key.name, &parameters, &patch);
            let sent = send(client, *kind, built(op, request)?, op).await;
            sent.or_else(|error| absent(untrue(error), *kind, key))
        }
        Op::Delete { kind, key, uid } => {
            let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            let request = Builder::new(kind.path(&key.namespace)).delete(&key.name, &parameters);
            match client.request_text(built(op, request)?).await {
                // The watch tells when it is really gone.
                Ok(_) => Ok(Learned::Nothing),
                Err(error) => absent(failed(op, error), *kind, key),
            }
        }
        Op::Probe { namespace, body } => {
            let body = typed(Kind::Pod, body.clone());
            let request = Builder::new(Kind::Pod.path(namespace)).create(&create(&manager, true), bytes(&body));
            probe(client, built(op, request)?, op).await
        }
        Op::Report(report) => tell(client, &manager, report, op).await,
    }
}

fn create(manager: &str, dry_run: bool) -> PostParams {
    PostParams { dry_run, field_manager: Some(manager.to_owned()) }
}

fn typed(kind: Kind, mut body: Value) -> Value {
    body["apiVersion"] = json!(kind.api_version());
    body["kind"] = json!(kind.as_str());
    body
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

fn built<E>(op: &Op, request: Result<Request<Vec<u8>>, E>) -> Result<Request<Vec<u8>>, ApplyError> {
    request.map_err(|_| ApplyError::Unbuildable { what: describe(op) })
}

async fn send(client: &Client, kind: Kind, request: Request<Vec<u8>>, op: &Op) -> Result<Learned, ApplyError> {
    let raw: Raw = client.request(request).await.map_err(|error| failed(op, error))?;
    Ok(Learned::Change(raw.into_change(kind)))
}

/// A Pod that comes back without our gate, and a refusal by our own webhook, both show that it answers. Any other
/// refusal (a quota, another webhook) shows nothing: the next probe is made elsewhere.
async fn probe(client: &Client, request: Request<Vec<u8>>, op: &Op) -> Result<Learned, ApplyError> {
    match client.request::<Raw>(request).await {
        Ok(pod) => Ok(Learned::Back(!pod.into_change(Kind::Pod).now.is_some_and(|now| now.is_gated()))),
        Err(kube::Error::Api(status)) if status.message.contains(&format!("{:?} denied", keys::WEBHOOK_INJECT)) => {
            Ok(Learned::Back(true))
        }
        Err(kube::Error::Api(status)) if (400..429).contains(&status.code) => {
            tracing::info!(probe = describe(op), refusal = status.message, "the probe was refused by somebody else");
            Ok(Learned::Back(false))
        }
        Err(error) => Err(failed(op, error)),
    }
}

/// Writes an Event, unless the very same one exists.
async fn tell(client: &Client, manager: &str, report: &Report, op: &Op) -> Result<Learned, ApplyError> {
    let event = event(manager, report);
    let name = event["metadata"]["name"].as_str().unwrap_or_default();
    let path = Kind::Event.path(&report.about.namespace);
    let known = Builder::new(&path).get(name, &GetParams::default());
    match client.request_text(built(op, known)?).await {
        Ok(_) => return Ok(Learned::Nothing),
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        Err(error) => return Err(failed(op, error)),
    }
    let request = Builder::new(&path).create(&create(manager, false), bytes(&event));
    match client.request_text(built(op, request)?).await.map_err(|error| failed(op, error)) {
        Ok(_) | Err(ApplyError::Conflict { .. }) => Ok(Learned::Nothing),
        Err(error) => Err(error),
    }
}

fn event(manager: &str, report: &Report) -> Value {
    let about = Regarding {
        api_version: report.kind.api_version(),
        kind: report.kind.as_str().to_owned(),
        namespace: report.about.namespace.to_string(),
        name: report.about.name.to_string(),
        uid: report.uid.clone(),
    };
    let moment = format!("{:.0}", jiff::Timestamp::now());
    crate::api::event::warning(manager, &about, (report.reason, &report.message), &moment)
}

fn failed(op: &Op, error: kube::Error) -> ApplyError {
    match error {
        kube::Error::Api(status) if status.code == 409 => ApplyError::Conflict { what: describe(op) },
        error => ApplyError::Request { what: describe(op), source: Box::new(error) },
    }
}

/// 422 is how the API server answers a JSON patch with a test that does not hold: somebody else wrote in between.
fn untrue(error: ApplyError) -> ApplyError {
    match error {
        ApplyError::Request { what, source } if matches!(&*source, kube::Error::Api(status) if status.code == 422) => {
            ApplyError::Conflict { what }
        }
        other => other,
    }
}

/// An object that is not there any more needs nothing.
fn absent(error: ApplyError, kind: Kind, key: &Key) -> Result<Learned, ApplyError> {
    match error {
        ApplyError::Request { source, .. } if matches!(&*source, kube::Error::Api(status) if status.code == 404) => {
            tracing::debug!(kind = kind.as_str(), namespace = &*key.namespace, name = &*key.name, "gone meanwhile");
            Ok(Learned::Nothing)
        }
        other => Err(other),
    }
}

/// What was tried, for people; never the content of an object.
fn describe(op: &Op) -> String {
    let (verb, kind, namespace) = op.asks();
    let name = match op {
        Op::Create { body, .. } | Op::Probe { body, .. } => {
            body.pointer("/metadata/name").or_else(|| body.pointer("/metadata/generateName")).and_then(Value::as_str)
        }
        Op::Merge { key, .. } | Op::Edit { key, .. } | Op::Delete { key, .. } => Some(&*key.name),
        Op::Report(report) => Some(&*report.about.name),
    };
    format!("{verb} {} {namespace}/{}", kind.as_str(), name.unwrap_or_default())
}
