//! The one place that writes: carries plans out, in order, through the fenced client.
//!
//! In: a plan's operations. Out: what the server made of them, as changes for the store. Promises: nothing is sent that
//! is not in the plan; creation never adopts; a merge names the uid it is meant for; an Event that exists already is
//! not written again, and one that is refused keeps nothing else from being done. Assumes a client that refuses to write without the Lease.

use http::Request;
use kube::Client;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::params::GetParams;
use kube::core::{Request as Builder, Status};
use serde_json::{Value, json};

use super::answers::{SecretFact, TemplateFact};
use super::plan::{NOW, Name, Op, Report};
use super::{ask, login, server_side};
use crate::api::digest::of_bytes;
use crate::api::event::Regarding;
use crate::api::refusal;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::decode::Decoded as _;
use crate::store::decode::change_of;
use crate::store::decode::wire::Raw;
use crate::store::{Change, Key, Kind};

/// Bytes of the longest time: RFC 3339 with nanoseconds and an offset.
const LONGEST_TIME: usize = 35;
/// What else says since when stands in the name of an Event with so many digits of its digest: a name has 253 bytes, and 217 of them may be taken.
const SHORTENED: usize = 16;

/// Why a plan could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The object was changed, or made, by somebody else in between.
    #[error("{what}: somebody else wrote in between")]
    Conflict {
        /// The operation.
        what: String,
    },
    /// The server has not looked up yet what our own policies compare with, and will have in a moment.
    #[error("{what}: the API server has not looked up every definition of the installation yet")]
    Early {
        /// The operation.
        what: String,
    },
    /// A policy of our own has not heard of any object that it compares with.
    #[error("{what}: the API server has not heard yet of what its policies look for in this namespace")]
    Unheard {
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
    /// The server refused what was applied, and trying again does not help.
    #[error("{what}: {}: {brief}", .reason.code())]
    Refused {
        /// The operation.
        what: String,
        /// Which kind of refusal.
        reason: Reason,
        /// What may be logged.
        brief: String,
        /// The server's words, for the object: they may quote it.
        message: String,
    },
    /// The request could not be put together.
    #[error("{what}: the request cannot be built")]
    Unbuildable {
        /// The operation.
        what: String,
    },
}

impl ApplyError {
    /// What may be logged of the server's answer, when there is one.
    #[must_use]
    pub fn brief(&self) -> Option<String> {
        match self {
            ApplyError::Request { source, .. } => Some(refusal::of_error(source)),
            ApplyError::Refused { brief, .. } => Some(brief.clone()),
            ApplyError::Conflict { .. }
            | ApplyError::Early { .. }
            | ApplyError::Unheard { .. }
            | ApplyError::Unbuildable { .. } => None,
        }
    }
}

/// What came of one operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Learned {
    /// The object as it is now.
    Change(Change),
    /// A probe was answered: whether Pods come back without our gate.
    Back(bool),
    /// A Pod was evicted.
    Evicted,
    /// A disruption budget forbids the eviction for now.
    Blocked,
    /// What a Secret holds.
    Secret(Key, SecretFact),
    /// The `spec` of a Deployment.
    Template(Key, TemplateFact),
    /// An object of that shape would be taken in that namespace.
    Taken(String, String),
    /// A status that was written is not kept: of these members of it nothing, or of all where none is named.
    Unkept(Vec<String>),
    /// Nothing that is kept.
    Nothing,
}

/// Carries out one operation; `news`: an operation of the same plan has changed something, so that what is told of it was not told before.
///
/// # Errors
/// When the server refuses, cannot be reached, or somebody else was faster.
pub async fn apply(client: &Client, controller: Name, op: &Op, news: bool) -> Result<Learned, ApplyError> {
    let manager = controller.manager();
    match op {
        Op::Create { kind, namespace, body } => {
            let body = typed(*kind, body.clone());
            let request = Builder::new(kind.path(namespace)).create(&create(&manager, false), bytes(&body));
            send(client, *kind, built(op, request)?, op).await
        }
        Op::Ensure { .. }
        | Op::Try { .. }
        | Op::Look { .. }
        | Op::Template { .. }
        | Op::Find { .. }
        | Op::Consent { .. } => ask::carry_out(client, &manager, op).await,
        Op::Login(wanted) => login::make(client, &manager, wanted, op).await,
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
        Op::Apply { kind, key, body, check, .. } => {
            if let Some(check) = check {
                ask::checked(client, (*kind, key), check, op).await?;
            }
            server_side::enrol(client, (*kind, key, &typed(*kind, body.clone())), op).await
        }
        Op::Own { kind, key, body } => {
            server_side::own(client, &manager, (*kind, key, &typed(*kind, body.clone())), op).await
        }
        Op::Status { kind, key, patch } => {
            let parameters = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
            let patch = timed(patch.clone());
            let path = kind.path(&key.namespace);
            let request = Builder::new(path).patch_subresource("status", &key.name, &parameters, &Patch::Merge(&patch));
            match send(client, *kind, built(op, request)?, op).await {
                Err(error) if is_absent(&error) => ask::without_status(client, (*kind, key), op).await,
                sent => sent,
            }
        }
        Op::Restate { kind, key, operations } => {
            let operations = serde_json::from_value(restated(operations.clone()))
                .map_err(|_| ApplyError::Unbuildable { what: describe(op) })?;
            let parameters = PatchParams { field_manager: Some(manager), ..PatchParams::default() };
            let patch = Patch::<Value>::Json(operations);
            let request =
                Builder::new(kind.path(&key.namespace)).patch_subresource("status", &key.name, &parameters, &patch);
            match send(client, *kind, built(op, request)?, op).await.map_err(untrue) {
                Err(error) if is_absent(&error) => ask::without_status(client, (*kind, key), op).await,
                sent => sent,
            }
        }
        Op::Evict { key, uid } => evict(client, key, uid, op).await,
        Op::Report(report) => tell(client, &manager, (report, news), op).await,
    }
}

/// Gives conditions that changed, and whatever else asks for it, the present time.
fn timed(mut patch: Value) -> Value {
    let now = format!("{:.0}", jiff::Timestamp::now());
    if let Some(status) = patch.get_mut("status") {
        set_now(status, &now);
    }
    let conditions = patch.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if condition.get("lastTransitionTime").is_none_or(Value::is_null) {
            condition["lastTransitionTime"] = now.as_str().into();
        }
    }
    patch
}

/// The same, for operations on a status, where texts of others stand beside ours: only members that are named for a time get one, and none in a card.
fn restated(mut operations: Value) -> Value {
    let now = format!("{:.0}", jiff::Timestamp::now());
    for operation in operations.as_array_mut().into_iter().flatten() {
        let path = operation.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(value) = operation.get_mut("value") else { continue };
        match path.strip_prefix("/status/") {
            Some(member) => set_time(member, value, &now),
            None if path == "/status" => set_time("status", value, &now),
            None => {}
        }
    }
    operations
}

/// Gives the member of that name, and what is in it, the present time where it asks for it.
fn set_time(name: &str, value: &mut Value, now: &str) {
    match value {
        Value::Null if name == "lastTransitionTime" => *value = now.into(),
        Value::String(text) if name.ends_with("Time") && text == NOW => now.clone_into(text),
        Value::Object(members) if name != "card" => {
            members.iter_mut().for_each(|(name, member)| set_time(name, member, now));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| set_time(name, item, now)),
        _ => {}
    }
}

/// Writes the time in place of [`NOW`].
fn set_now(value: &mut Value, now: &str) {
    match value {
        Value::String(text) if text == NOW => now.clone_into(text),
        Value::Object(members) => members.values_mut().for_each(|member| set_now(member, now)),
        Value::Array(items) => items.iter_mut().for_each(|item| set_now(item, now)),
        _ => {}
    }
}

/// Asks for an eviction. A disruption budget that forbids it for now is no failure: the Pod is asked for again later.
async fn evict(client: &Client, key: &Key, uid: &str, op: &Op) -> Result<Learned, ApplyError> {
    let body = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": &*key.name, "namespace": &*key.namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    });
    let path = format!("{}/{}/eviction", Kind::Pod.path(&key.namespace), key.name);
    let request = Request::post(path).header("content-type", "application/json").body(bytes(&body));
    match client.request_text(built(op, request)?).await {
        Ok(_) => Ok(Learned::Evicted),
        Err(kube::Error::Api(status)) if status.code == 429 => {
            tracing::info!(eviction = describe(op), refusal = refusal::of_status(&status), "not evicted for now");
            Ok(Learned::Blocked)
        }
        Err(error) => absent(failed(op, error), Kind::Pod, key),
    }
}

pub(super) fn create(manager: &str, dry_run: bool) -> PostParams {
    PostParams { dry_run, field_manager: Some(manager.to_owned()) }
}

pub(super) fn typed(kind: Kind, mut body: Value) -> Value {
    body["apiVersion"] = json!(kind.api_version());
    body["kind"] = json!(kind.as_str());
    body
}

pub(super) fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

pub(super) fn built<E>(op: &Op, request: Result<Request<Vec<u8>>, E>) -> Result<Request<Vec<u8>>, ApplyError> {
    request.map_err(|_| ApplyError::Unbuildable { what: describe(op) })
}

async fn send(client: &Client, kind: Kind, request: Request<Vec<u8>>, op: &Op) -> Result<Learned, ApplyError> {
    let text = client.request_text(request).await.map_err(|error| failed(op, error))?;
    learned(kind, &text, op)
}

/// What the server's answer says about the object.
pub(super) fn learned(kind: Kind, text: &str, op: &Op) -> Result<Learned, ApplyError> {
    let change = change_of(kind, text);
    change.map(Learned::Change).map_err(|source| failed(op, kube::Error::SerdeError(source)))
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
            let refusal = refusal::of_status(&status);
            tracing::info!(probe = describe(op), refusal, "the probe was refused by somebody else");
            Ok(Learned::Back(false))
        }
        Err(error) => Err(failed(op, error)),
    }
}

/// Writes an Event, unless the very same one exists: that is looked for first where it may be, so that at rest nothing is written.
async fn tell(client: &Client, manager: &str, (report, news): (&Report, bool), op: &Op) -> Result<Learned, ApplyError> {
    let event = event(manager, report);
    let name = event["metadata"]["name"].as_str().unwrap_or_default();
    let path = Kind::Event.path(&report.about.namespace);
    if !news {
        let known = Builder::new(&path).get(name, &GetParams::default());
        match client.request_text(built(op, known)?).await {
            Ok(_) => return Ok(Learned::Nothing),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return untold(failed(op, error)),
        }
    }
    let request = Builder::new(&path).create(&create(manager, false), bytes(&event));
    match client.request_text(built(op, request)?).await.map_err(|error| failed(op, error)) {
        Ok(_) | Err(ApplyError::Conflict { .. }) => Ok(Learned::Nothing),
        Err(error) => untold(error),
    }
}

/// What a namespace does not take (a quota of Events that is full, a policy against them, a right that is missing, a namespace that goes) is told
/// to nobody: what else there is to be done, for this object and for others, does not wait for it.
fn untold(error: ApplyError) -> Result<Learned, ApplyError> {
    match error {
        ApplyError::Request { what, source } if is_refusal(&source) => {
            tracing::warn!(
                event = what,
                refusal = refusal::of_error(&source),
                "the Event was refused, and nobody is told"
            );
            Ok(Learned::Nothing)
        }
        other => Err(other),
    }
}

/// Whether the answer stays the same however often it is asked for. Webhooks refuse with 400 unless they say otherwise.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 400 | 403 | 404 | 422))
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
    let mut event = crate::api::event::warning(manager, &about, (report.reason, &report.message), &moment);
    // The end of another state is another Event, and the same one however often it is tried.
    let since: String = if report.since.len() <= LONGEST_TIME {
        report.since.chars().filter(char::is_ascii_digit).collect()
    } else {
        of_bytes(report.since.as_bytes()).chars().take(SHORTENED).collect()
    };
    if let Some(name) = event["metadata"]["name"].as_str().filter(|_| !since.is_empty()) {
        event["metadata"]["name"] = format!("{name}.{since}").into();
    }
    event
}

pub(super) fn refused(op: &Op, reason: Reason, status: &Status) -> ApplyError {
    let brief = refusal::of_status(status);
    ApplyError::Refused { what: describe(op), reason, brief, message: status.message.clone() }
}

pub(super) fn failed(op: &Op, error: kube::Error) -> ApplyError {
    match error {
        kube::Error::Api(status) if status.code == 409 => ApplyError::Conflict { what: describe(op) },
        kube::Error::Api(status) if refusal::is_early(&status) => ApplyError::Early { what: describe(op) },
        kube::Error::Api(status) if refusal::is_unheard(&status) => ApplyError::Unheard { what: describe(op) },
        error => ApplyError::Request { what: describe(op), source: Box::new(error) },
    }
}

/// 422 is how the API server answers a JSON patch with a test that does not hold: somebody else wrote in between.
fn untrue(error: ApplyError) -> ApplyError {
    match error {
        ApplyError::Request { what, source } if matches!(&*source, kube::Error::Api(status) if is_untrue(status)) => {
            ApplyError::Conflict { what }
        }
        other => other,
    }
}

/// Of a patch that does not fit the API server names no object. Whoever refuses the one that comes of it does: validation and policies, whose words
/// are not to be lost.
fn is_untrue(status: &Status) -> bool {
    status.code == 422 && status.details.as_ref().is_none_or(|details| details.name.is_empty())
}

/// An object that is not there any more needs nothing.
pub(super) fn absent(error: ApplyError, kind: Kind, key: &Key) -> Result<Learned, ApplyError> {
    if is_absent(&error) { Ok(gone(kind, key)) } else { Err(error) }
}

pub(super) fn is_absent(error: &ApplyError) -> bool {
    let ApplyError::Request { source, .. } = error else { return false };
    matches!(&**source, kube::Error::Api(status) if status.code == 404)
}

pub(super) fn gone(kind: Kind, key: &Key) -> Learned {
    tracing::debug!(kind = kind.label(), namespace = &*key.namespace, name = &*key.name, "gone meanwhile");
    Learned::Nothing
}

/// Whether what is left of a plan rests on the status that was written before: what is made under a name that the status claims is made
/// once, and by a status that does not hold the claim it would be made again and again. What of the status is not kept then.
#[must_use]
pub fn unkept(op: &Op, learned: &Learned, rest: &[Op]) -> Option<Vec<String>> {
    if !rest.iter().any(|op| matches!(op, Op::Ensure { .. })) {
        return None;
    }
    match (op, learned) {
        (_, Learned::Unkept(members)) => Some(members.clone()),
        (Op::Status { patch, .. }, Learned::Change(change)) => {
            let seen = change.now.as_ref()?.what.custom().filter(|seen| seen.over.is_none())?;
            let written = patch.get("status").and_then(Value::as_object)?;
            // Texts and numbers say whose turn it is; a definition that drops a record is only an older one.
            let is_plain = |value: &Value| value.is_string() || value.is_number();
            let lost =
                written.iter().filter(|(name, value)| is_plain(value) && seen.status.get(name.as_str()).is_none());
            let lost: Vec<String> = lost.map(|(name, _)| name.clone()).collect();
            Some(lost).filter(|lost| !lost.is_empty())
        }
        _ => None,
    }
}

/// What was tried, for people; never the content of an object.
pub(super) fn describe(op: &Op) -> String {
    let (verb, kind, namespace) = op.asks();
    let verb = op.subresource().map_or_else(|| verb.to_owned(), |subresource| format!("{verb} {subresource} of"));
    let name = match op {
        Op::Create { body, .. } | Op::Probe { body, .. } | Op::Ensure { body, .. } | Op::Try { body, .. } => {
            body.pointer("/metadata/name").or_else(|| body.pointer("/metadata/generateName")).and_then(Value::as_str)
        }
        Op::Login(login) => Some(&*login.key.name),
        Op::Look { key }
        | Op::Template { key }
        | Op::Find { key, .. }
        | Op::Merge { key, .. }
        | Op::Delete { key, .. }
        | Op::Apply { key, .. }
        | Op::Own { key, .. }
        | Op::Edit { key, .. }
        | Op::Status { key, .. }
        | Op::Restate { key, .. }
        | Op::Evict { key, .. } => Some(&*key.name),
        Op::Report(report) => Some(&*report.about.name),
        Op::Consent { demands, .. } => demands.first().map(|demand| &*demand.secret),
    };
    format!("{verb} {} {namespace}/{}", kind.label(), name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever an agent calls itself, it is no time.
    #[test]
    fn a_status_gets_its_times_and_no_text_of_others_becomes_one() {
        let status = json!({
            "lastSyncTime": NOW, "skills": NOW, "card": {"name": NOW, "capabilities": {"xTime": NOW}},
            "bindingStatus": {"lastEvaluationTime": NOW, "message": NOW},
            "conditions": [{"type": "Synced", "message": NOW, "lastTransitionTime": null}, {"lastTransitionTime": "then"}],
        });
        let members = status.as_object().unwrap().clone();
        let whole = json!([{"op": "test", "path": "/metadata/uid", "value": NOW}, {"op": "add", "path": "/status", "value": status}]);
        let whole = restated(whole);
        assert_eq!(whole[0]["value"], NOW);
        let status = &whole[1]["value"];
        let is_time = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("20") && text.ends_with('Z'));
        assert!(
            is_time(&status["lastSyncTime"]) && is_time(&status["bindingStatus"]["lastEvaluationTime"]),
            "{status}"
        );
        assert!(is_time(&status["conditions"][0]["lastTransitionTime"]), "{status}");
        assert_eq!(status["conditions"][1]["lastTransitionTime"], "then");
        for other in
            ["/skills", "/card/name", "/card/capabilities/xTime", "/bindingStatus/message", "/conditions/0/message"]
        {
            assert_eq!(status.pointer(other).unwrap(), NOW, "{other}");
        }
        for (member, is) in [("lastSyncTime", true), ("skills", false)] {
            let one = restated(json!([{"op": "add", "path": format!("/status/{member}"), "value": members[member]}]));
            assert_eq!(is_time(&one[0]["value"]), is, "{member}");
        }
    }

    /// What a schema or a policy refuses is no accident of the moment: its words get to whoever can do something about it.
    #[test]
    fn a_patch_that_does_not_fit_is_told_from_one_that_is_refused() {
        let answered = |details: Value, message: &str| {
            let status =
                json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": message, "details": details});
            let status: Status = serde_json::from_value(status).unwrap();
            let source = Box::new(kube::Error::Api(Box::new(status)));
            untrue(ApplyError::Request { what: "patch".to_owned(), source })
        };
        let sentence = "the server rejected our request due to an error in our request";
        for details in
            [json!({}), json!({"causes": [{"reason": "UnexpectedServerResponse", "message": "testing value failed"}]})]
        {
            assert!(matches!(answered(details, sentence), ApplyError::Conflict { .. }));
        }
        let named = json!({"name": "weather", "group": "beeai.dev", "kind": "agents"});
        for message in
            ["Agent.beeai.dev \"weather\" is invalid: spec.port", "ValidatingAdmissionPolicy 'p' denied request: no"]
        {
            let error = answered(named.clone(), message);
            let words = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            assert!(matches!(error, ApplyError::Request { .. }) && words.contains(message), "{words}");
        }
    }

    #[test]
    fn the_end_of_another_state_is_another_event() {
        let name = |since: &str| {
            let report = Report {
                kind: Kind::AgentRuntime,
                about: Key::new("n", "art"),
                uid: "u".into(),
                reason: Reason::TargetNotFound,
                message: "m".into(),
                since: since.into(),
            };
            event("drawbridge/x", &report)["metadata"]["name"].as_str().unwrap().to_owned()
        };
        let (first, later) = (name(""), name("2026-05-01T10:20:30Z"));
        assert!(later.starts_with(&first) && later.ends_with(".20260501102030"), "{later}");
        assert_eq!(later, name("2026-05-01T10:20:30Z"), "however often it is tried");
    }

    /// The API server takes no longer name than 253 bytes, and who is told by such an Event would never be.
    #[test]
    fn the_name_of_an_event_fits_whatever_it_is_about_and_since_when() {
        let longest = "2026-05-01T10:20:30.123456789+00:00";
        let digests = [of_bytes(b"one"), of_bytes(b"other"), "9".repeat(64), "9".repeat(4096)];
        for about in [1, 63, 199, 200, 253].map(|length| "a".repeat(length)) {
            let name = |since: &str| {
                let report = Report {
                    kind: Kind::NetworkPolicy,
                    about: Key::new("n", &about),
                    uid: "u".into(),
                    reason: Reason::DeclaredNotOpened,
                    message: "m".into(),
                    since: since.into(),
                };
                event("drawbridge/x", &report)["metadata"]["name"].as_str().unwrap().to_owned()
            };
            let all = digests.iter().map(String::as_str).chain(["", longest, "2026-05-01T10:20:30Z"]);
            let names: Vec<_> = all.clone().map(name).collect();
            let mut told = names.clone();
            told.sort_unstable();
            told.dedup();
            assert_eq!(told.len(), names.len(), "each its own: {names:?}");
            for (since, known) in all.zip(&names) {
                assert!(known.len() <= 253, "{} {known}", known.len());
                assert!(known.ends_with(|end: char| end.is_ascii_alphanumeric()), "{known}");
                assert_eq!(*known, name(since), "however often it is tried");
            }
        }
    }
}
