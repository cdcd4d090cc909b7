//! A login of a registry that is made from a token: the one place where the content of a Secret is read and written.
//!
//! In: an [`Login`], which names Secrets and says where the token goes. Out: what the Secret with the login holds, by the names of its keys.
//! Promises: the token is asked for at this moment, goes into that one Secret, and is overwritten in memory; it stands in no operation, no
//! answer that is kept, no message and no log line. A Secret of that name that is somebody else's is never changed. What is made from the
//! present version of the token, for the present host and user, is not written again.

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

    fn seen(&self) -> SecretSeen {
        let annotation = |key: &str| self.metadata.annotation(key).map(str::to_owned);
        SecretSeen {
            hosts: annotation(keys::ANNOTATION_GIT_HOSTS),
            registries: annotation(keys::ANNOTATION_REGISTRY_HOSTS),
            usable_by: annotation(keys::ANNOTATION_USABLE_BY),
            type_: self.type_.clone(),
            keys: self.data.iter().flatten().map(|(key, _)| key.clone()).collect(),
            owners: self.metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect(),
        }
    }
}

/// Makes the login, or brings it up to date.
pub(super) async fn make(client: &Client, manager: &str, login: &Login, op: &Op) -> Result<Learned, ApplyError> {
    let source = read(client, &Key::new(&login.key.namespace, &login.source), op).await?;
    let nothing = || Learned::Secret(login.key.clone(), SecretFact::Absent);
    let Some(source) = source else {
        if login.optional {
            return Ok(nothing());
        }
        return Err(said(op, Reason::PrerequisitesMissing, format!("Secret {} does not exist", login.source)));
    };
    let seen = SecretFact::Is(source.seen());
    let refused = login.demand.as_ref().and_then(|demand| refusal(&seen, demand));
    if let Some(words) = refused.or_else(|| bound(&login.source, &source.seen(), &login.goes)) {
        return Err(said(op, Reason::SecretNotUsable, words));
    }
    let version = source.version();
    let Some(token) = source.data.as_ref().and_then(|data| data.get(&login.token)) else {
        if login.optional {
            return Ok(nothing());
        }
        let words = format!("Secret {} has no key {}", login.source, login.token);
        return Err(said(op, Reason::PrerequisitesMissing, words));
    };
    match read(client, &login.key, op).await? {
        None => made(client, manager, (login, token, &version), op).await,
        Some(standing) => kept(client, manager, (login, token, &version), standing, op).await,
    }
}

async fn made(
    client: &Client,
    manager: &str,
    (login, token, version): (&Login, &Hidden, &str),
    op: &Op,
) -> Result<Learned, ApplyError> {
    let Some(config) = config(login, token) else { return Err(unreadable(login, op)) };
    let body = json!({
        "metadata": {
            "name": &*login.key.name, "namespace": &*login.key.namespace, "labels": login.labels,
            "annotations": {keys::ANNOTATION_SOURCE_VERSION: version}, "ownerReferences": login.owners,
        },
        "type": DOCKER_TYPE,
        "data": {DOCKER_CONFIG: config.as_str()},
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
    (login, token, version): (&Login, &Hidden, &str),
    standing: Whole,
    op: &Op,
) -> Result<Learned, ApplyError> {
    let controller = standing.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let owner = login.owners.first();
    if controller.map(|one| &one.uid) != owner.map(|one| &one.uid) {
        // What was made for a build of this name that is gone goes by itself.
        let goes = controller.zip(owner).is_some_and(|(one, other)| {
            (&one.api_version, &one.kind, &one.name) == (&other.api_version, &other.kind, &other.name)
        });
        if goes {
            return Err(ApplyError::Conflict { what: describe(op) });
        }
        let words = format!("Secret {} exists and is not controlled by this build", login.key.name);
        return Err(said(op, Reason::NameConflict, words));
    }
    let mut owners: Vec<OwnerReference> = standing.metadata.owner_references.clone().unwrap_or_default();
    let before = owners.len();
    for owner in &login.owners {
        if !owners.iter().any(|known| known.uid == owner.uid) {
            owners.push(owner.clone());
        }
    }
    let uids = owners.iter().map(|owner| owner.uid.clone()).collect();
    let Some(config) = config(login, token) else { return Err(unreadable(login, op)) };
    if standing.is_current(version, &config) && owners.len() == before {
        return Ok(learned(login, uids));
    }
    if standing.type_ != DOCKER_TYPE {
        let words = format!(
            "Secret {} of this build has type {:?}; delete it, and it is made anew",
            login.key.name, standing.type_
        );
        return Err(said(op, Reason::NameConflict, words));
    }
    let patch = json!({
        "metadata": {
            "uid": standing.metadata.uid, "resourceVersion": standing.metadata.resource_version,
            "labels": login.labels, "annotations": {keys::ANNOTATION_SOURCE_VERSION: version}, "ownerReferences": owners,
        },
        "data": {DOCKER_CONFIG: config.as_str()},
    });
    let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
    let path = Kind::Secret.path(&login.key.namespace);
    let request = Builder::new(path).patch(&login.key.name, &parameters, &Patch::Merge(&patch));
    match client.request_text(built(op, request)?).await {
        Ok(_) => Ok(learned(login, uids)),
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
    use super::*;

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
