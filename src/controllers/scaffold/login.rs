//! A login of a registry that is made from a token: the one place where the content of a Secret is read and written.
//!
//! In: an [`Login`], which names Secrets and says where the token goes. Out: what the Secret with the login holds, by the names of its keys.
//! Promises: the token is asked for at this moment, goes into that one Secret, and is overwritten in memory; it stands in no operation, no
//! answer that is kept, no message and no log line. A Secret of that name that is somebody else's is never changed; what a build of that name
//! has left to its Agents is the next one's. What is made from the present version of the token, for the present host and user, is not written
//! again.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use kube::api::{Patch, PatchParams};
use kube::core::params::GetParams;
use kube::core::{Request as Builder, Status};
use serde::Deserialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::answers::{SecretFact, SecretSeen};
use super::apply::{ApplyError, Learned, built, bytes, create, describe, failed, typed};
use super::consent::{Demand, Goes, bound, refusal};
use super::plan::Op;
use crate::api::refusal as words;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::decode::wire::Metadata;
use crate::store::{Key, Kind, OwnerReference};

/// Key of the Secret that holds the login.
const DOCKER_CONFIG: &str = ".dockerconfigjson";
/// Type of the Secret that holds the login.
const DOCKER_TYPE: &str = "kubernetes.io/dockerconfigjson";

/// What is to be made of which token.
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    /// The Secret that holds the login.
    pub key: Key,
    /// Its labels.
    pub labels: Value,
    /// Its owners; the first controls it.
    pub owners: Vec<OwnerReference>,
    /// The Secret with the token, in the same namespace.
    pub source: String,
    /// The token's key there.
    pub token: String,
    /// Without the token there is no login, and that is no fault.
    pub optional: bool,
    /// User name that goes with it.
    pub user: String,
    /// What the login is looked up by.
    pub account: String,
    /// Where the token is sent.
    pub goes: Goes,
    /// Its own consent is needed.
    pub demand: Option<Demand>,
}

/// A text that is overwritten once it is not needed any more, and printed by nobody.
#[derive(Deserialize)]
#[serde(from = "String")]
struct Hidden(Zeroizing<String>);

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

/// A Secret with its values.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Whole {
    metadata: Metadata,
    data: Option<BTreeMap<String, Hidden>>,
    #[serde(rename = "type")]
    type_: String,
}

impl Whole {
    /// Which object, and which version of it.
    fn version(&self) -> String {
        let metadata = &self.metadata;
        let version = metadata.resource_version.as_deref().unwrap_or_default();
        format!("{}/{version}", metadata.uid.as_deref().unwrap_or_default())
    }

    /// Whether it is that login, made from that version of the token. The version alone does not say so: host, user and the token's key are the build's,
    /// which may be another meanwhile.
    fn is_current(&self, version: &str, config: &str) -> bool {
        let held = self.data.as_ref().and_then(|data| data.get(DOCKER_CONFIG));
        self.metadata.annotation(keys::ANNOTATION_SOURCE_VERSION) == Some(version)
            && held.is_some_and(|held| held.0.as_str() == config)
    }

    fn owners(&self) -> &[OwnerReference] {
        self.metadata.owner_references.as_deref().unwrap_or_default()
    }

    /// Its owners, and those that the login is to have besides.
    fn owners_with(&self, login: &Login) -> Vec<OwnerReference> {
        let is_new = |owner: &&OwnerReference| !self.owners().iter().any(|known| known.uid == owner.uid);
        self.owners().iter().chain(login.owners.iter().filter(is_new)).cloned().collect()
    }

    fn controller(&self) -> Option<&OwnerReference> {
        self.owners().iter().find(|owner| owner.controller == Some(true))
    }

    /// Whether the build that the login is made for controls it.
    fn is_of(&self, login: &Login) -> bool {
        self.controller().map(|one| &one.uid) == login.owners.first().map(|one| &one.uid)
    }

    /// Whether it is the login of a build that is gone, kept by the Agents that pull with it and by nobody else: the build of that name takes it
    /// over, of the group of these Agents.
    fn is_left_over(&self, login: &Login) -> bool {
        let group = login.owners.first().map(OwnerReference::group);
        let keeps = |owner: &OwnerReference| {
            owner.kind == "Agent" && owner.controller != Some(true) && Some(owner.group()) == group
        };
        let ours = self.metadata.label(keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE)
            && self.metadata.annotation(keys::ANNOTATION_SOURCE_VERSION).is_some();
        self.type_ == DOCKER_TYPE && ours && !self.owners().is_empty() && self.owners().iter().all(keeps)
    }

    fn seen(&self) -> SecretSeen {
        let annotation = |key: &str| self.metadata.annotation(key).map(str::to_owned);
        SecretSeen {
            hosts: annotation(keys::ANNOTATION_GIT_HOSTS),
            registries: annotation(keys::ANNOTATION_REGISTRY_HOSTS),
            usable_by: annotation(keys::ANNOTATION_USABLE_BY),
            type_: self.type_.clone(),
            keys: self.data.iter().flatten().map(|(key, _)| key.clone()).collect(),
            owners: self.owners().iter().map(|owner| owner.uid.clone()).collect(),
        }
    }
}

/// What the Secret is to hold, and of which version of the token that was made.
struct Content {
    config: Zeroizing<String>,
    version: String,
}

/// Makes the login, or brings it up to date. Where the token is none, or may not be used, what stands of it still gets its owners: it goes with
/// the last of them, and not before.
pub(super) async fn make(client: &Client, manager: &str, login: &Login, op: &Op) -> Result<Learned, ApplyError> {
    let content = match content(client, login, op).await {
        Ok(Some(content)) => content,
        Ok(None) => return Ok(Learned::Secret(login.key.clone(), SecretFact::Absent)),
        Err(refusal @ ApplyError::Refused { .. }) => {
            return match owned(client, manager, login, op).await {
                Ok(()) | Err(ApplyError::Refused { .. }) => Err(refusal),
                Err(error) => Err(error),
            };
        }
        Err(error) => return Err(error),
    };
    match read(client, &login.key, op).await? {
        None => made(client, manager, (login, &content), op).await,
        Some(standing) => kept(client, manager, (login, &content), standing, op).await,
    }
}

/// The token at this moment, as container tools read it; `None` where there is none, and need be none.
async fn content(client: &Client, login: &Login, op: &Op) -> Result<Option<Content>, ApplyError> {
    let source = read(client, &Key::new(&login.key.namespace, &login.source), op).await?;
    let token = source.as_ref().and_then(|source| source.data.as_ref()?.get(&login.token));
    if token.is_none() && login.optional {
        return Ok(None);
    }
    let Some(source) = &source else {
        return Err(said(op, Reason::PrerequisitesMissing, format!("Secret {} does not exist", login.source)));
    };
    let seen = SecretFact::Is(source.seen());
    let refused = login.demand.as_ref().and_then(|demand| refusal(&seen, demand));
    if let Some(words) = refused.or_else(|| bound(&login.source, &source.seen(), &login.goes)) {
        return Err(said(op, Reason::SecretNotUsable, words));
    }
    let Some(token) = token else {
        let words = format!("Secret {} has no key {}", login.source, login.token);
        return Err(said(op, Reason::PrerequisitesMissing, words));
    };
    let Some(config) = config(login, token) else { return Err(unreadable(login, op)) };
    Ok(Some(Content { config, version: source.version() }))
}

async fn made(
    client: &Client,
    manager: &str,
    (login, content): (&Login, &Content),
    op: &Op,
) -> Result<Learned, ApplyError> {
    let body = json!({
        "metadata": {
            "name": &*login.key.name, "namespace": &*login.key.namespace, "labels": login.labels,
            "annotations": {keys::ANNOTATION_SOURCE_VERSION: content.version}, "ownerReferences": login.owners,
        },
        "type": DOCKER_TYPE,
        "data": {DOCKER_CONFIG: content.config.as_str()},
    });
    let body = typed(Kind::Secret, body);
    let path = Kind::Secret.path(&login.key.namespace);
    let request = Builder::new(path).create(&create(manager, false), bytes(&body));
    match client.request_text(built(op, request)?).await {
        Ok(_) => Ok(learned(login, login.owners.iter().map(|owner| owner.uid.clone()).collect())),
        Err(error) => Err(refused(op, error)),
    }
}

async fn kept(
    client: &Client,
    manager: &str,
    (login, content): (&Login, &Content),
    standing: Whole,
    op: &Op,
) -> Result<Learned, ApplyError> {
    if !standing.is_of(login) && !standing.is_left_over(login) {
        // What was made for a build of this name that is gone goes by itself, or is left to its Agents in a moment.
        let goes = standing.controller().zip(login.owners.first()).is_some_and(|(one, other)| {
            (&one.api_version, &one.kind, &one.name) == (&other.api_version, &other.kind, &other.name)
        });
        if goes {
            return Err(ApplyError::Conflict { what: describe(op) });
        }
        let words = format!("Secret {} exists and is not controlled by this build", login.key.name);
        return Err(said(op, Reason::NameConflict, words));
    }
    let owners = standing.owners_with(login);
    let uids = owners.iter().map(|owner| owner.uid.clone()).collect();
    if standing.is_current(&content.version, &content.config) && owners.len() == standing.owners().len() {
        return Ok(learned(login, uids));
    }
    if standing.type_ != DOCKER_TYPE {
        let words = format!(
            "Secret {} of this build has type {:?}; delete it, and it is made anew",
            login.key.name, standing.type_
        );
        return Err(said(op, Reason::NameConflict, words));
    }
    let metadata = json!({
        "uid": standing.metadata.uid, "resourceVersion": standing.metadata.resource_version,
        "labels": login.labels, "annotations": {keys::ANNOTATION_SOURCE_VERSION: content.version}, "ownerReferences": owners,
    });
    let patch = json!({"metadata": metadata, "data": {DOCKER_CONFIG: content.config.as_str()}});
    patched(client, manager, (login, &patch), op).await?;
    Ok(learned(login, uids))
}

/// Gives the login that stands its owners, where the build controls it, and changes nothing else of it.
async fn owned(client: &Client, manager: &str, login: &Login, op: &Op) -> Result<(), ApplyError> {
    let standing = read(client, &login.key, op).await?.filter(|standing| standing.is_of(login));
    let Some(standing) = standing else { return Ok(()) };
    let owners = standing.owners_with(login);
    if owners.len() == standing.owners().len() {
        return Ok(());
    }
    let (uid, version) = (&standing.metadata.uid, &standing.metadata.resource_version);
    let patch = json!({"metadata": {"uid": uid, "resourceVersion": version, "ownerReferences": owners}});
    patched(client, manager, (login, &patch), op).await
}

async fn patched(client: &Client, manager: &str, (login, patch): (&Login, &Value), op: &Op) -> Result<(), ApplyError> {
    let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let path = Kind::Secret.path(&login.key.namespace);
    let request = Builder::new(path).patch(&login.key.name, &parameters, &Patch::Merge(patch));
    match client.request_text(built(op, request)?).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(op, error)),
    }
}

fn learned(login: &Login, owners: std::collections::BTreeSet<String>) -> Learned {
    let keys = [DOCKER_CONFIG.to_owned()].into();
    let seen = SecretSeen { type_: DOCKER_TYPE.to_owned(), keys, owners, ..SecretSeen::default() };
    Learned::Secret(login.key.clone(), SecretFact::Is(seen))
}

/// The login as container tools read it, in base64, once more.
fn config(login: &Login, token: &Hidden) -> Option<Zeroizing<String>> {
    let token = Zeroizing::new(STANDARD.decode(token.0.as_bytes()).ok()?);
    let text = std::str::from_utf8(&token).ok()?.trim_end_matches(['\r', '\n']);
    let pair = Zeroizing::new(format!("{}:{text}", login.user));
    let auth = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
    // The account is a host and the code of base64 has no quote in it: both stand in JSON as they are.
    let config =
        Zeroizing::new(format!("{{\"auths\":{{{}:{{\"auth\":\"{}\"}}}}}}", json!(login.account), auth.as_str()));
    Some(Zeroizing::new(STANDARD.encode(config.as_bytes())))
}

fn unreadable(login: &Login, op: &Op) -> ApplyError {
    said(op, Reason::PrerequisitesMissing, format!("key {} of Secret {} holds no text", login.token, login.source))
}

async fn read(client: &Client, key: &Key, op: &Op) -> Result<Option<Whole>, ApplyError> {
    let request = Builder::new(Kind::Secret.path(&key.namespace)).get(&key.name, &GetParams::default());
    match client.request_text(built(op, request)?).await {
        Ok(text) => {
            let text = Zeroizing::new(text);
            // What the decoder says of a text it does not take may repeat a part of it.
            let whole = serde_json::from_str(&text).map_err(|_| ApplyError::Unbuildable { what: describe(op) })?;
            Ok(Some(whole))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Err(said(op, Reason::NotPermitted, format!("Secret {} may not be read by Drawbridge", key.name)))
        }
        Err(error) => Err(failed(op, error)),
    }
}

/// What the server says of a write that it refuses. It may quote what was sent, but for values of a Secret, which it never does; only its
/// words about quotas, rights and admission are passed on.
fn refused(op: &Op, error: kube::Error) -> ApplyError {
    let kube::Error::Api(status) = error else { return failed(op, error) };
    let of = |reason| {
        let message = told(&status);
        ApplyError::Refused { what: describe(op), reason, brief: words::of_status(&status), message }
    };
    match status.code {
        401 | 403
            if status.message.contains("cannot create resource")
                || status.message.contains("cannot patch resource") =>
        {
            of(Reason::NotPermitted)
        }
        403 if status.message.contains("being terminated") => failed(op, kube::Error::Api(status)),
        _ if words::is_of_the_moment(&status) => failed(op, kube::Error::Api(status)),
        400 | 403 | 422 => of(Reason::LoginRefused),
        _ => failed(op, kube::Error::Api(status)),
    }
}

/// The server's words where it forbids; of an object that it finds wrong they may repeat a part, and are left out.
fn told(status: &Status) -> String {
    match status.code {
        401 | 403 => status.message.clone(),
        _ => words::of_status(status),
    }
}

fn said(op: &Op, reason: Reason, message: String) -> ApplyError {
    ApplyError::Refused { what: describe(op), reason, brief: message.clone(), message }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http_body_util::BodyExt as _;
    use kube::client::Body;
    use parking_lot::Mutex;

    use super::*;

    type Secrets = Arc<Mutex<BTreeMap<String, Value>>>;

    /// An API server that has these Secrets.
    fn served(secrets: &[&Value]) -> (Secrets, Client) {
        let named = secrets.iter().map(|one| (one["metadata"]["name"].as_str().unwrap().to_owned(), (*one).clone()));
        let stored: Secrets = Arc::new(Mutex::new(named.collect()));
        let known = stored.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let known = known.clone();
            async move {
                let (parts, body) = request.into_parts();
                let sent = body.collect().await.unwrap().to_bytes();
                let name = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
                let mut known = known.lock();
                if let (&http::Method::PATCH, Some(secret)) = (&parts.method, known.get_mut(&name)) {
                    let patch = serde_json::from_slice(&sent).unwrap();
                    json_patch::merge(secret, &patch);
                }
                let missing =
                    json!({"kind": "Status", "status": "Failure", "code": 404, "message": "m", "reason": "NotFound"});
                let (code, answer) = known.get(&name).map_or((404, missing), |secret| (200, secret.clone()));
                let bytes = Body::from(answer.to_string().into_bytes());
                Ok::<_, Infallible>(http::Response::builder().status(code).body(bytes).unwrap())
            }
        });
        (stored, Client::new(service, "default"))
    }

    fn owner((api_version, kind, uid): (&str, &str, &str), controller: Option<bool>) -> OwnerReference {
        OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: "weather".into(),
            uid: uid.into(),
            controller,
            block_owner_deletion: None,
        }
    }

    fn of_the_build() -> OwnerReference {
        owner(("beeai.dev/v1", "AgentBuild", "bu"), Some(true))
    }

    fn of_the_agent() -> OwnerReference {
        owner(("beeai.dev/v1", "Agent", "au"), None)
    }

    fn uids(secret: &Value) -> Vec<&str> {
        let owners = secret["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        owners.map(|owner| owner["uid"].as_str().unwrap()).collect()
    }

    /// The Secret goes with the last of its owners: an Agent that pulls with it is one of them, whatever became of the token meanwhile.
    #[tokio::test]
    async fn a_login_gets_its_owners_though_its_token_is_gone_or_may_not_be_used() {
        let token = |name: &str, key: &str| json!({"metadata": {"name": name}, "data": {key: "dA=="}});
        for (source, reason) in [
            (token("another", "token"), Reason::PrerequisitesMissing),
            (token("git", "another"), Reason::PrerequisitesMissing),
            (json!({"metadata": {"name": "git"}, "data": {"token": "/w=="}}), Reason::PrerequisitesMissing),
            (
                json!({"metadata": {"name": "git", "annotations": {keys::ANNOTATION_REGISTRY_HOSTS: "quay.io"}}, "data": {"token": "dA=="}}),
                Reason::SecretNotUsable,
            ),
        ] {
            let metadata = json!({"name": "weather-docker", "uid": "su", "resourceVersion": "7", "ownerReferences": [of_the_build()]});
            let standing = json!({"metadata": metadata, "type": DOCKER_TYPE, "data": {DOCKER_CONFIG: "eA=="}});
            let (stored, client) = served(&[&standing, &source]);
            let login = Login { owners: vec![of_the_build(), of_the_agent()], ..login("ghcr.io") };
            let op = Op::Login(Box::new(login.clone()));
            for _ in 0..2 {
                let refused = make(&client, "drawbridge/test", &login, &op).await.unwrap_err();
                assert!(matches!(&refused, ApplyError::Refused { reason: why, .. } if *why == reason), "{refused}");
            }
            let after = stored.lock()["weather-docker"].clone();
            assert_eq!((uids(&after), &after["data"]), (vec!["bu", "au"], &standing["data"]));
            // Of a Secret that is not the build's nothing is changed.
            let mut theirs = standing.clone();
            theirs["metadata"]["ownerReferences"] = json!([]);
            let (stored, client) = served(&[&theirs, &source]);
            make(&client, "drawbridge/test", &login, &op).await.unwrap_err();
            assert_eq!(stored.lock()["weather-docker"], theirs);
        }
    }

    /// What is left of a build that is gone belongs to its Agents; the build that comes under its name pushes with it again. Whatever else has
    /// the name is somebody else's.
    #[tokio::test]
    async fn the_login_that_a_build_left_to_its_agents_is_the_next_ones_and_nothing_else_is() {
        let metadata = json!({
            "name": "weather-docker", "uid": "su", "resourceVersion": "7", "ownerReferences": [of_the_agent()],
            "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE}, "annotations": {keys::ANNOTATION_SOURCE_VERSION: "old/1"},
        });
        let left = json!({"metadata": metadata, "type": DOCKER_TYPE, "data": {DOCKER_CONFIG: "eA=="}});
        let owners = |owners: Value| json!({"metadata": {"ownerReferences": owners}});
        let source =
            json!({"metadata": {"name": "git", "uid": "u", "resourceVersion": "2"}, "data": {"token": "dA=="}});
        for (change, taken) in [
            (json!({}), true),
            (json!({"metadata": {"labels": null}}), false),
            (json!({"metadata": {"annotations": null}}), false),
            (json!({"type": "Opaque"}), false),
            (owners(json!(null)), false),
            (owners(json!([owner(("beeai.beeai.dev/v1", "Agent", "au"), None)])), false),
            (owners(json!([owner(("beeai.dev/v1", "Agent", "au"), Some(true))])), false),
            (owners(json!([of_the_agent(), owner(("v1", "ConfigMap", "c"), None)])), false),
        ] {
            let mut standing = left.clone();
            json_patch::merge(&mut standing, &change);
            let (stored, client) = served(&[&standing, &source]);
            let login = Login { owners: vec![of_the_build()], ..login("ghcr.io") };
            let op = Op::Login(Box::new(login.clone()));
            let answer = make(&client, "drawbridge/test", &login, &op).await;
            let after = stored.lock()["weather-docker"].clone();
            if taken {
                assert!(matches!(answer, Ok(Learned::Secret(..))), "{answer:?}");
                assert_eq!(
                    (uids(&after), &after["metadata"]["ownerReferences"][1]["controller"]),
                    (vec!["au", "bu"], &json!(true))
                );
                assert_eq!(after["metadata"]["annotations"][keys::ANNOTATION_SOURCE_VERSION], "u/2");
            } else {
                assert!(
                    matches!(answer, Err(ApplyError::Refused { reason: Reason::NameConflict, .. })),
                    "{change}: {answer:?}"
                );
                assert_eq!(after, standing, "{change}");
            }
        }
    }

    /// Without the token, or its key, a login that may be missing is none, whatever its Secret lets be done with it.
    #[tokio::test]
    async fn an_optional_token_that_is_missing_asks_for_no_consent() {
        let demand = Demand { secret: "git".into(), by: keys::USABLE_BY[0], goes: Goes::Anywhere };
        let login = Login { optional: true, demand: Some(demand), ..login("ghcr.io") };
        let op = Op::Login(Box::new(login.clone()));
        let other = json!({"metadata": {"name": "git"}, "data": {"another": "dA=="}});
        for secrets in [vec![], vec![&other]] {
            let (_, client) = served(&secrets);
            let answer = make(&client, "drawbridge/test", &login, &op).await;
            assert!(matches!(answer, Ok(Learned::Secret(_, SecretFact::Absent))), "{answer:?}");
        }
    }

    fn login(account: &str) -> Login {
        Login {
            key: Key::new("team", "weather-docker"),
            labels: json!({}),
            owners: Vec::new(),
            source: "git".into(),
            token: "token".into(),
            optional: false,
            user: "octo".into(),
            account: account.into(),
            goes: Goes::Registries(vec!["ghcr.io".into()]),
            demand: None,
        }
    }

    fn decoded(text: &str) -> String {
        String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
    }

    /// Z22: one entry, the field `auth` alone, and the token without the end of line that files have.
    #[test]
    fn case_z22_the_login_is_one_entry_of_one_host() {
        let token = Hidden(Zeroizing::new(STANDARD.encode("canary\n")));
        let config = config(&login("ghcr.io"), &token).unwrap();
        let config: Value = serde_json::from_str(&decoded(&config)).unwrap();
        let auth = STANDARD.encode("octo:canary");
        assert_eq!(config, json!({"auths": {"ghcr.io": {"auth": auth}}}));
        let odd = super::config(&login("a\"b"), &token).unwrap();
        let odd: Value = serde_json::from_str(&decoded(&odd)).unwrap();
        assert!(odd["auths"]["a\"b"]["auth"].is_string());
        assert!(super::config(&login("x"), &Hidden(Zeroizing::new("%".into()))).is_none());
        let bytes = Hidden(Zeroizing::new(STANDARD.encode([0xff, 0xfe])));
        assert!(super::config(&login("x"), &bytes).is_none());
    }

    /// Another host, user or key of the same Secret is another login, whatever version of the token it was made from.
    #[test]
    fn a_login_is_made_anew_when_the_build_names_another_host_user_or_token() {
        let token = |text: &str| Hidden(Zeroizing::new(STANDARD.encode(text)));
        let made = config(&login("ghcr.io"), &token("one")).unwrap();
        let standing = |version: &str| {
            let annotations = json!({"beeai.dev/source-version": version});
            let whole = json!({"metadata": {"annotations": annotations}, "data": {DOCKER_CONFIG: made.as_str()}});
            serde_json::from_value::<Whole>(whole).unwrap()
        };
        assert!(standing("u/7").is_current("u/7", &made));
        assert!(!standing("u/6").is_current("u/7", &made));
        let other = Login { user: "other".into(), ..login("ghcr.io") };
        for (login, text) in [(login("quay.io"), "one"), (other, "one"), (login("ghcr.io"), "two")] {
            let wanted = config(&login, &token(text)).unwrap();
            assert!(!standing("u/7").is_current("u/7", &wanted), "{} {} {text}", login.account, login.user);
        }
    }

    #[test]
    fn of_a_secret_only_its_marks_are_kept() {
        let text = r#"{"type": "Opaque", "metadata": {"name": "s", "uid": "u", "resourceVersion": "7"}, "data": {"token": "Y2FuYXJ5"}}"#;
        let whole: Whole = serde_json::from_str(text).unwrap();
        assert_eq!(whole.version(), "u/7");
        assert!(!format!("{:?}", whole.seen()).contains("Y2FuYXJ5"));
        let op = Op::Login(Box::new(login("ghcr.io")));
        assert!(!format!("{op:?}").contains("canary"));
    }
}
