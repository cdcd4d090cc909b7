//! Questions to the API server, and creations that may be made twice.
//!
//! In: [`Op::Ensure`], [`Op::Try`], [`Op::Look`], [`Op::Template`], [`Op::Find`], [`Op::Consent`]. Out: what the server made of them. Promises: an object of the same name
//! is read before anything is concluded, and never changed; of a Secret only the names of its keys are ever decoded.

use std::collections::BTreeMap;

use kube::Client;
use kube::core::Request as Builder;
use kube::core::params::{GetParams, ListParams};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::answers::{LARGEST, SecretFact, SecretSeen, TemplateFact};
use super::apply::{
    ApplyError, Learned, built, bytes, create, describe, failed, gone, is_absent, learned, refused, typed,
};
use super::check::{Check, Objection};
use super::consent::{Demand, refusal};
use super::plan::Op;
use crate::api::refusal;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::decode::wire::Metadata;
use crate::store::{Change, Key, Kind, OwnerReference, Via};

/// Carries out one of the operations of this file.
pub(super) async fn carry_out(client: &Client, manager: &str, op: &Op) -> Result<Learned, ApplyError> {
    match op {
        Op::Ensure { kind, namespace, body, owner } => {
            make(client, (manager, None), (*kind, namespace, body, owner), op).await
        }
        Op::Try { kind, namespace, body, shape, owner } => {
            make(client, (manager, Some(shape)), (*kind, namespace, body, owner), op).await
        }
        Op::Look { key } => look(client, key, op).await.map(|fact| Learned::Secret(key.clone(), fact)),
        Op::Template { key } => template(client, key, op).await,
        Op::Find { kind, key } => find(client, (*kind, key), op).await,
        Op::Consent { namespace, demands } => consent(client, (namespace, demands), op).await,
        _ => Err(ApplyError::Unbuildable { what: describe(op) }),
    }
}

async fn make(
    client: &Client,
    (manager, tried): (&str, Option<&String>),
    (kind, namespace, body, owner): (Kind, &str, &Value, &str),
    op: &Op,
) -> Result<Learned, ApplyError> {
    let body = typed(kind, body.clone());
    let request = Builder::new(kind.path(namespace)).create(&create(manager, tried.is_some()), bytes(&body));
    let status = match client.request_text(built(op, request)?).await {
        Ok(text) => match tried {
            Some(shape) => return Ok(Learned::Taken(namespace.to_owned(), shape.clone())),
            None => return learned(kind, &text, op),
        },
        Err(kube::Error::Api(status)) => status,
        Err(error) => return Err(failed(op, error)),
    };
    let refused = |reason| refused(op, reason, &status);
    match status.code {
        409 if status.reason == "AlreadyExists" => {
            let name = body.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            existing(client, (kind, &Key::new(namespace, name), (owner, &body)), op).await
        }
        401 | 403 if status.message.contains("cannot create resource") => Err(refused(Reason::NotPermitted)),
        // A namespace that is being deleted needs nothing, and soon says so itself.
        403 if status.message.contains("being terminated") => Err(failed(op, kube::Error::Api(status))),
        _ if refusal::is_of_the_moment(&status) => Err(failed(op, kube::Error::Api(status))),
        400 | 403 | 422 => Err(refused(Reason::RunRefused)),
        _ => Err(failed(op, kube::Error::Api(status))),
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Owned {
    metadata: Metadata,
}

/// What has the name already: ours, somebody else's, or on its way out.
async fn existing(
    client: &Client,
    (kind, key, (owner, body)): (Kind, &Key, (&str, &Value)),
    op: &Op,
) -> Result<Learned, ApplyError> {
    let request = Builder::new(kind.path(&key.namespace)).get(&key.name, &GetParams::default());
    let text = client.request_text(built(op, request)?).await.map_err(|error| failed(op, error))?;
    let found: Owned = serde_json::from_str(&text).map_err(|source| failed(op, kube::Error::SerdeError(source)))?;
    let controller = found.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    match controller {
        Some(controller) if controller.uid == owner && found.metadata.deletion_timestamp.is_none() => {
            known(kind, (&text, &found.metadata), op)
        }
        // What was made for an object of this name that is gone goes by itself; so does what is being deleted.
        Some(controller) if is_of_that_name(controller, body) => Err(ApplyError::Conflict { what: describe(op) }),
        _ => {
            let message = format!("{} {} exists and is not controlled by this build", kind.as_str(), key.name);
            let brief = message.clone();
            Err(ApplyError::Refused { what: describe(op), reason: Reason::NameConflict, brief, message })
        }
    }
}

/// An object that was read. Lists and events of a watch that does not show it say nothing of it, however new they are.
fn known(kind: Kind, (text, metadata): (&str, &Metadata), op: &Op) -> Result<Learned, ApplyError> {
    let learned = learned(kind, text, op)?;
    Ok(match learned {
        Learned::Change(change) if !is_shown(kind, metadata) => Learned::Change(Change { via: Via::File, ..change }),
        other => other,
    })
}

/// Whether a watch may show an object with these labels. A selector that is more than a key is taken to select it.
fn is_shown(kind: Kind, metadata: &Metadata) -> bool {
    let is_key = |selector: &str| !selector.contains(['=', '!', ',', ' ']);
    let shows = |selector: &str| !is_key(selector) || metadata.label(selector).is_some();
    kind.descriptor().selections.iter().any(|selection| selection.labels.is_none_or(shows))
}

/// A list of one name, which the controllers' rights allow of every kind that they watch.
#[derive(Deserialize)]
struct Listed {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    items: Vec<Box<RawValue>>,
}

async fn named(client: &Client, (kind, key): (Kind, &Key), op: &Op) -> Result<Listed, ApplyError> {
    let of_name = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let request = Builder::new(kind.path(&key.namespace)).list(&of_name);
    let text = client.request_text(built(op, request)?).await.map_err(|error| failed(op, error))?;
    serde_json::from_str(&text).map_err(|source| failed(op, kube::Error::SerdeError(source)))
}

/// The object of that name, whatever watches show; or that there was none when the list was made.
async fn find(client: &Client, (kind, key): (Kind, &Key), op: &Op) -> Result<Learned, ApplyError> {
    let Listed { metadata, items } = named(client, (kind, key), op).await?;
    match items.first() {
        Some(text) => {
            let found: Owned =
                serde_json::from_str(text.get()).map_err(|source| failed(op, kube::Error::SerdeError(source)))?;
            known(kind, (text.get(), &found.metadata), op)
        }
        None => {
            let version = metadata.resource_version.and_then(|version| version.parse().ok()).unwrap_or_default();
            Ok(Learned::Change(Change { kind, key: key.clone(), version, via: Via::Answer, now: None }))
        }
    }
}

/// Reads an object whole and has it checked. One that is not there, or cannot be read as JSON, passes: what is written then says more about it.
pub(super) async fn checked(
    client: &Client,
    (kind, key): (Kind, &Key),
    check: &Check,
    op: &Op,
) -> Result<(), ApplyError> {
    let items = match named(client, (kind, key), op).await {
        Ok(listed) => listed.items,
        Err(error) if is_absent(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    let object = items.first().and_then(|text| serde_json::from_str::<Value>(text.get()).ok());
    match object.and_then(|object| check.objection(&object)) {
        None => Ok(()),
        Some(Objection { reason, brief, message }) => {
            Err(ApplyError::Refused { what: describe(op), reason, brief, message })
        }
    }
}

/// What a status comes to whose write was answered 404. The API server says in the very same words that an object is gone, and that its
/// definition has no subresource `status`: so the object itself is asked for.
pub(super) async fn without_status(client: &Client, (kind, key): (Kind, &Key), op: &Op) -> Result<Learned, ApplyError> {
    let items = match named(client, (kind, key), op).await {
        Ok(listed) => listed.items,
        // Nor is its kind served any more.
        Err(error) if is_absent(&error) => Vec::new(),
        Err(error) => return Err(error),
    };
    let meant = match op {
        Op::Status { patch, .. } => patch.pointer("/metadata/uid"),
        Op::Restate { operations, .. } => operations.pointer("/0/value"),
        _ => None,
    };
    let meant = meant.and_then(Value::as_str);
    let is_it = |text: &RawValue| {
        let found: Owned = serde_json::from_str(text.get()).unwrap_or_default();
        meant.is_none() || found.metadata.uid.as_deref() == meant
    };
    if !items.iter().any(|text| is_it(text)) {
        return Ok(gone(kind, key));
    }
    let definition = format!("{}.{}", kind.plural(), kind.group());
    tracing::warn!(
        write = describe(op),
        definition,
        "the installed definition has no subresource status, so nothing is kept of what is found out about its objects; drawbridge doctor \
         names what it lacks"
    );
    Ok(Learned::Unkept(Vec::new()))
}

/// Whether an owner is, by kind and name, the one that controls `body`: of another uid it is gone.
fn is_of_that_name(owner: &OwnerReference, body: &Value) -> bool {
    let owners = body.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let is = |one: &Value, member: &str, value: &str| one.get(member).and_then(Value::as_str) == Some(value);
    owners.filter(|one| one["controller"] == true).any(|one| {
        is(one, "apiVersion", &owner.api_version) && is(one, "kind", &owner.kind) && is(one, "name", &owner.name)
    })
}

/// A Secret without its values.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Keys {
    metadata: Metadata,
    data: Option<BTreeMap<String, IgnoredAny>>,
    #[serde(rename = "type")]
    type_: String,
}

/// Every Secret is read at this moment, and must consent to its use.
async fn consent(client: &Client, (namespace, demands): (&str, &[Demand]), op: &Op) -> Result<Learned, ApplyError> {
    let mut refusals = Vec::new();
    for demand in demands {
        let fact = look(client, &Key::new(namespace, &demand.secret), op).await?;
        refusals.extend(refusal(&fact, demand));
    }
    if refusals.is_empty() {
        return Ok(Learned::Nothing);
    }
    let message = refusals.join("; ");
    let brief = message.clone();
    Err(ApplyError::Refused { what: describe(op), reason: Reason::SecretNotUsable, brief, message })
}

/// A Deployment's spec, as the API server has it.
#[derive(Deserialize)]
struct Whole {
    metadata: Metadata,
    spec: Box<RawValue>,
}

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    items: Vec<Whole>,
}

/// Asked as a list of that one name, which is what the controllers' rights allow.
async fn template(client: &Client, key: &Key, op: &Op) -> Result<Learned, ApplyError> {
    let named = ListParams::default().fields(&format!("metadata.name={}", key.name));
    let request = Builder::new(Kind::Deployment.path(&key.namespace)).list(&named);
    let text = client.request_text(built(op, request)?).await.map_err(|error| failed(op, error))?;
    // What the decoder says of a text it does not take may repeat a part of it.
    let found: Found = serde_json::from_str(&text).map_err(|_| ApplyError::Unbuildable { what: describe(op) })?;
    let Some(found) = found.items.into_iter().next() else { return Ok(Learned::Nothing) };
    Ok(Learned::Template(key.clone(), template_fact(&found)))
}

fn template_fact(found: &Whole) -> TemplateFact {
    let text = found.spec.get();
    let kept = Some(text).filter(|text| text.len() <= LARGEST);
    TemplateFact {
        uid: found.metadata.uid.clone().unwrap_or_default(),
        generation: found.metadata.generation.unwrap_or_default(),
        spec: kept.map(Into::into),
    }
}

async fn look(client: &Client, key: &Key, op: &Op) -> Result<SecretFact, ApplyError> {
    let request = Builder::new(Kind::Secret.path(&key.namespace)).get(&key.name, &GetParams::default());
    Ok(match client.request_text(built(op, request)?).await {
        // What the decoder says of a text it does not take may repeat a part of it.
        Ok(text) => fact(&text).ok_or_else(|| ApplyError::Unbuildable { what: describe(op) })?,
        Err(kube::Error::Api(status)) if status.code == 404 => SecretFact::Absent,
        Err(kube::Error::Api(status)) if status.code == 403 => SecretFact::Forbidden,
        Err(error) => return Err(failed(op, error)),
    })
}

fn fact(text: &str) -> Option<SecretFact> {
    let secret: Keys = serde_json::from_str(text).ok()?;
    let annotation = |key: &str| secret.metadata.annotation(key).map(str::to_owned);
    Some(SecretFact::Is(SecretSeen {
        hosts: annotation(keys::ANNOTATION_GIT_HOSTS),
        registries: annotation(keys::ANNOTATION_REGISTRY_HOSTS),
        usable_by: annotation(keys::ANNOTATION_USABLE_BY),
        owners: secret.metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect(),
        type_: secret.type_,
        keys: secret.data.into_iter().flatten().map(|(key, _)| key).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_of_a_deployment_is_its_spec_bounded_and_never_printed() {
        let of = |spec: &str| {
            let text = format!(r#"{{"metadata": {{"uid": "u", "generation": 3}}, "spec": {spec}}}"#);
            template_fact(&serde_json::from_str(&text).unwrap())
        };
        let fact = of(r#"{"template": {"spec": {"containers": [{"env": [{"name": "K", "value": "canary"}]}]}}}"#);
        assert_eq!((&*fact.uid, fact.generation), ("u", 3));
        assert!(fact.spec.as_deref().is_some_and(|spec| spec.contains("canary")));
        assert!(!format!("{fact:?}").contains("canary"));
        let large = of(&format!("{{\"a\": \"{}\"}}", "x".repeat(LARGEST)));
        assert_eq!(large.spec, None);
    }

    /// G2, G10: no value of a Secret gets any further than the connection.
    #[test]
    fn of_a_secret_only_the_names_of_its_keys_are_kept() {
        let text = r#"{"type": "Opaque", "metadata": {"name": "s", "annotations":
            {"agent.kagenti.dev/git-hosts": "github.com", "agent.kagenti.dev/usable-by": "builds", "kubectl.kubernetes.io/last-applied-configuration": "canary"}},
            "data": {"token": "Y2FuYXJ5", "user": "Y2FuYXJ5"}}"#;
        let fact = fact(text).unwrap();
        let keys = ["token", "user"].map(str::to_owned).into();
        let seen = SecretSeen {
            type_: "Opaque".into(),
            keys,
            hosts: Some("github.com".into()),
            usable_by: Some("builds".into()),
            ..SecretSeen::default()
        };
        assert_eq!(fact, SecretFact::Is(seen));
        assert!(!format!("{fact:?}").contains("Y2FuYXJ5") && !format!("{fact:?}").contains("canary"));
        assert_eq!(super::fact("{\"data\": \"Y2FuYXJ5\"}"), None);
        assert!(matches!(super::fact("{\"data\": null}"), Some(SecretFact::Is(seen)) if seen.keys.is_empty()));
    }
}
