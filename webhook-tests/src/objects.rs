//! Objects as people write them: apply, create, expect a refusal, wait for a state. One handle per identity.
//!
//! Waiting is done on watches with a deadline; when it passes, the error shows the last state that was seen.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use crate::patience::patience;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use futures::TryStreamExt as _;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, NamespaceResourceScope, Status};
use kube::discovery::{ApiCapabilities, Scope};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The field manager of [`Objects::apply`].
pub const FIELD_MANAGER: &str = "webhook-tests";

/// Reads and writes with one identity; namespaced objects without a namespace go to `namespace`.
pub struct Objects {
    client: Client,
    namespace: String,
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>>,
}

/// The answer to a create: the stored object or the refusal, and the `Warning` headers.
#[derive(Debug)]
pub struct Answer {
    /// The object as stored (or as it would be, in a dry run), or the status of the refusal.
    pub result: Result<DynamicObject, Status>,
    /// The texts of the `Warning` headers, in order.
    pub warnings: Vec<String>,
}

impl Objects {
    /// A handle for `client`.
    #[must_use]
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.to_owned(), kinds: Mutex::default() }
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The namespace for objects that name none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A typed view of the namespace.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Server-side apply of every document of a YAML stream, in order; returns what the API server stored.
    ///
    /// # Errors
    /// At the first document that is no object or is refused; the message names it.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<DynamicObject>> {
        let mut stored = Vec::new();
        for object in documents(yaml)? {
            let (api, name) = self.api_of(&object).await?;
            let params = PatchParams::apply(FIELD_MANAGER).force();
            let answer = api.patch(&name, &params, &Patch::Apply(&object)).await;
            stored.push(answer.with_context(|| format!("apply {}", titled(&object)))?);
        }
        Ok(stored)
    }

    /// Creates `object` (JSON) and returns what was stored.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn accepts(&self, object: &Value) -> Result<DynamicObject> {
        let answer = self.create(object, false).await?;
        answer.result.map_err(|status| anyhow!("{} was refused: {}", titled(object), status.message))
    }

    /// Tries to create `object` (JSON) and returns the refusal.
    ///
    /// # Errors
    /// When it is accepted.
    pub async fn rejects(&self, object: &Value) -> Result<Status> {
        match self.create(object, false).await?.result {
            Err(status) => Ok(status),
            Ok(stored) => bail!("{} was accepted: {}", titled(object), Shown(&serde_json::to_value(stored)?)),
        }
    }

    /// Tries the same dry-run create of `object` (JSON) until it is refused in these `words`, and returns the refusal: what refuses hears of its
    /// reason a moment after that was stored. A ResourceQuota, for one, holds for nothing until kube-controller-manager has counted for it.
    ///
    /// # Errors
    /// When it is not refused so within [`patience`]; the message has the last answer.
    pub async fn until_refused(&self, object: &Value, words: &str) -> Result<Status> {
        let begun = tokio::time::Instant::now();
        loop {
            let answer = self.create(object, true).await?.result;
            match answer {
                Err(status) if status.message.contains(words) => return Ok(status),
                other => ensure!(
                    begun.elapsed() < patience(),
                    "{} was never refused with {words:?}; the last answer: {:?}",
                    titled(object),
                    other.err().map(|status| status.message)
                ),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until ResourceQuota `quota`, which has no room for a Pod, is in force: a Pod that comes before stays.
    ///
    /// # Errors
    /// When it is not within [`patience`].
    pub async fn until_full(&self, quota: &str) -> Result<()> {
        let pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one-more"},
            "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}});
        self.until_refused(&pod, &format!("exceeded quota: {quota}")).await.map(drop)
    }

    /// POSTs `object` (JSON; `generateName` is fine) and returns the whole answer.
    ///
    /// # Errors
    /// When the API server cannot be reached or its answer is not readable.
    pub async fn create(&self, object: &Value, dry_run: bool) -> Result<Answer> {
        let (api, _) = self.api_of(object).await?;
        let params = PostParams { dry_run, ..PostParams::default() };
        let request = kube::core::Request::new(api.resource_url()).create(&params, serde_json::to_vec(object)?)?;
        self.answer(request).await
    }

    /// Server-side apply of one object (JSON); returns the whole answer.
    ///
    /// # Errors
    /// When the API server cannot be reached or its answer is not readable.
    pub async fn apply_one(&self, object: &Value, dry_run: bool) -> Result<Answer> {
        let (api, name) = self.api_of(object).await?;
        let params = PatchParams { dry_run, ..PatchParams::apply(FIELD_MANAGER).force() };
        let request = kube::core::Request::new(api.resource_url()).patch(&name, &params, &Patch::Apply(object))?;
        self.answer(request).await
    }

    /// A strategic merge patch of a subresource of an object (JSON: kind and name count); returns the whole answer.
    ///
    /// # Errors
    /// When the API server cannot be reached or its answer is not readable.
    pub async fn patch_part(&self, object: &Value, part: &str, patch: &Value) -> Result<Answer> {
        let (api, name) = self.api_of(object).await?;
        let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
        let request = kube::core::Request::new(api.resource_url()).patch_subresource(part, &name, &params, &patch)?;
        self.answer(request).await
    }

    /// The object of this kind and name, as stored now.
    ///
    /// # Errors
    /// When it does not exist.
    pub async fn get(&self, api_version: &str, kind: &str, name: &str) -> Result<DynamicObject> {
        let wanted = serde_json::json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
        let (api, name) = self.api_of(&wanted).await?;
        api.get(&name).await.with_context(|| format!("get {}", titled(&wanted)))
    }

    /// Deletes an object (JSON: kind and name count); one that does not exist, or whose kind does not, is deleted already.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete(&self, object: &Value) -> Result<()> {
        let Ok((api, name)) = self.api_of(object).await else { return Ok(()) };
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error).with_context(|| format!("delete {}", titled(object))),
        }
    }

    /// A namespace whose ConfigMaps have not been read yet answers 409 and asks to be tried again in a moment: so it is, as people
    /// and the cluster's controllers do. It is tried once more, and no more, after every process says that it has nothing to read:
    /// a refusal that outlives what it waits for comes back.
    async fn answer(&self, request: http::Request<Vec<u8>>) -> Result<Answer> {
        let (begun, mut all_read) = (tokio::time::Instant::now(), false);
        loop {
            let answer = self.answered(request.clone()).await?;
            let pending = answer.result.as_ref().is_err_and(|status| status.message.contains("ConfigPending: "));
            if !pending || all_read || begun.elapsed() > patience() {
                return Ok(answer);
            }
            all_read = crate::drawbridge::reading().await == 0;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn answered(&self, request: http::Request<Vec<u8>>) -> Result<Answer> {
        let response = self.client.send(request.map(kube::client::Body::from)).await?;
        let warnings = response.headers().get_all("warning").iter().map(|value| warning_text(value.as_bytes()));
        let warnings = warnings.collect();
        let accepted = response.status().is_success();
        let code = response.status().as_u16();
        let body = response.into_body().collect_bytes().await?;
        let result = if accepted {
            Ok(serde_json::from_slice(&body)?)
        } else {
            Err(serde_json::from_slice(&body)
                .unwrap_or_else(|_| Status::failure(&String::from_utf8_lossy(&body), "NotAStatus").with_code(code)))
        };
        Ok(Answer { result, warnings })
    }

    async fn api_of(&self, object: &Value) -> Result<(Api<DynamicObject>, String)> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        ensure!(!api_version.is_empty() && !kind.is_empty(), "no apiVersion or kind: {}", Shown(object));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let gvk = GroupVersionKind::gvk(group, version, &kind);
        let known = self.kinds.lock().get(&gvk).cloned();
        let (resource, capabilities) = match known {
            Some(known) => known,
            None => {
                let found = kube::discovery::pinned_kind(&self.client, &gvk).await;
                let found = found.with_context(|| format!("the API server does not serve {api_version} {kind}"))?;
                self.kinds.lock().insert(gvk, found.clone());
                found
            }
        };
        let namespace = text("/metadata/namespace");
        let namespace = if namespace.is_empty() { &self.namespace } else { &namespace };
        let api = match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(self.client.clone(), namespace, &resource),
        };
        Ok((api, text("/metadata/name")))
    }
}

/// The documents of a YAML stream as JSON; empty ones are left out.
///
/// # Errors
/// When the text is not YAML.
pub fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).context("not a YAML stream")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}

/// JSON, indented, in an error message.
struct Shown<'a>(&'a Value);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string_pretty(self.0).unwrap_or_default())
    }
}

fn titled(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    format!("{} {}", text("/kind"), text("/metadata/name"))
}

/// The text of `299 - "text"`; a header of another shape as it is.
fn warning_text(header: &[u8]) -> String {
    let header = String::from_utf8_lossy(header);
    let quoted = header.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"'));
    quoted.map_or_else(|| header.to_string(), |(text, _)| text.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Waits until the object `name` exists and `holds`; returns it.
///
/// # Errors
/// After [`patience`]; the message shows the last state.
pub async fn wait_for<K>(api: &Api<K>, name: &str, holds: impl Fn(&K) -> bool) -> Result<K>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut seen = wait_until(api, config, |all| all.values().next().is_some_and(&holds)).await?;
    seen.pop().with_context(|| format!("{name} was seen and lost"))
}

/// Waits until no object `name` exists.
///
/// # Errors
/// After [`patience`]; the message shows the last state.
pub async fn wait_gone<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    wait_until(api, config, BTreeMap::is_empty).await.map(drop)
}

/// Waits until the whole set that matches `config` `holds` (keys are `namespace/name`); returns it in key order.
///
/// # Errors
/// After [`patience`]; the message shows the last state.
pub async fn wait_until<K>(
    api: &Api<K>,
    config: watcher::Config,
    holds: impl Fn(&BTreeMap<String, K>) -> bool,
) -> Result<Vec<K>>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug + Send + 'static,
{
    let mut all = BTreeMap::new();
    let watching = async {
        let mut events = pin!(watcher(api.clone(), config).default_backoff());
        let mut complete = false;
        loop {
            match events.try_next().await {
                Ok(Some(watcher::Event::Init)) => {
                    complete = false;
                    all.clear();
                }
                Ok(Some(watcher::Event::InitApply(object) | watcher::Event::Apply(object))) => {
                    all.insert(key(&object), object);
                }
                Ok(Some(watcher::Event::Delete(object))) => {
                    all.remove(&key(&object));
                }
                Ok(Some(watcher::Event::InitDone)) => complete = true,
                // The watch is tried again by its own backoff, until the deadline.
                Err(_) => {}
                Ok(None) => return,
            }
            if complete && holds(&all) {
                return;
            }
        }
    };
    let in_time = tokio::time::timeout(patience(), watching).await.is_ok();
    if in_time {
        return Ok(all.into_values().collect());
    }
    let last = all.into_values().map(|mut object| {
        object.managed_fields_mut().clear();
        serde_json::to_value(object)
    });
    let last: Value = last.collect::<Result<_, _>>()?;
    bail!("not within {:?}: {}; last seen: {}", patience(), api.resource_url(), Shown(&last))
}

fn key<K: Resource>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_header_yields_its_text() {
        assert_eq!(warning_text(br#"299 - "port \"8080\" moved""#), r#"port "8080" moved"#);
        assert_eq!(warning_text(b"odd"), "odd");
    }

    #[test]
    fn a_stream_yields_its_documents_without_the_empty_ones() {
        assert_eq!(documents("a: 1\n---\n---\nb: 2\n").unwrap().len(), 2);
        assert!(documents("a: [").is_err());
    }
}
