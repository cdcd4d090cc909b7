//! Everything that a control plane holds, and bringing it back to that.
//!
//! In: a control plane, and what one like it held at rest. Out: it holds the same again, or an error that says what stays otherwise.
//! Not looked at: status, and what a cluster writes all the time or anew for each control plane (nodes, their Leases, the certificates of its
//! authority).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Event, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::discovery::{ApiResource, Discovery, Scope, verbs};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ControlPlane;

/// Kinds that are the cluster's own business.
const OF_THE_CLUSTER: [&str; 5] = ["APIService", "ComponentStatus", "Event", "IPAddress", "Node"];

/// ConfigMaps that say who signs for a control plane.
const OF_THE_AUTHORITY: [&str; 2] = ["kube-root-ca.crt", "extension-apiserver-authentication"];

/// Kinds by which the API server calls a port.
const CALLED: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// A definition: its finalizer stands for its objects, and is taken off by the API server.
const DEFINITION: &str = "CustomResourceDefinition";

/// Kind of a namespace.
const NAMESPACE: &str = "Namespace";

/// How long it may take until all is as it was.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at everything.
const PAUSE: Duration = Duration::from_millis(200);

/// Requests at a time.
const AT_ONCE: usize = 16;

/// What names an object: group, kind, namespace and name.
type Named = (String, String, String, String);

/// What a control plane holds, as people wrote it: each object's version and content.
#[derive(Debug, Clone, Default)]
pub struct Held(BTreeMap<Named, (String, Value)>);

/// What is known of an object that is there now.
struct Served {
    api: Api<DynamicObject>,
    metadata: ObjectMeta,
}

/// The kinds that can be listed.
type Kinds = Vec<(ApiResource, Scope)>;

impl Held {
    /// Whether both hold the same, whatever its versions are.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let contents =
            |held: &Self| held.0.iter().map(|(name, (_, content))| (name.clone(), content.clone())).collect::<Vec<_>>();
        contents(self) == contents(other)
    }

    fn is_kept(&self, namespace: &str) -> bool {
        let name = (String::new(), NAMESPACE.to_owned(), String::new(), namespace.to_owned());
        self.0.contains_key(&name)
    }

    fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.0.keys().filter(|name| name.1 == NAMESPACE).map(|name| &*name.3)
    }
}

impl ControlPlane {
    /// What it holds, once that does not change any more.
    ///
    /// # Errors
    /// When something cannot be listed, or never comes to rest.
    pub async fn held(&self) -> Result<Held> {
        let (client, begun) = (self.client().await?, Instant::now());
        let mut last = Held::default();
        loop {
            let listed: Vec<_> = kinds(&client).await?.into_iter().map(|kind| whole(&client, kind)).collect();
            let listed: Vec<_> = stream::iter(listed).buffer_unordered(AT_ONCE).try_collect().await?;
            let mut now = Held(listed.into_iter().flatten().collect());
            let kept: Vec<String> = now.namespaces().map(str::to_owned).collect();
            now.0.retain(|name, _| !(is_of_the_authority(name) && kept.contains(&name.2)));
            if now.is_same(&last) {
                return Ok(now);
            }
            ensure!(begun.elapsed() < PATIENCE, "what the control plane holds does not come to rest");
            last = now;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Deletes what is too much, writes anew what was changed or deleted, and waits until nothing differs from `wanted`.
    ///
    /// # Errors
    /// When something stays otherwise, a definition was changed, or a node is not as it was.
    pub async fn back_to(&self, wanted: &Held) -> Result<()> {
        let (client, begun) = (self.client().await?, Instant::now());
        let kinds = kinds(&client).await?;
        // Versions that were looked at, and say what is wanted.
        let mut right = BTreeMap::new();
        let mut only: Option<BTreeSet<String>> = None;
        loop {
            let now = everything(&client, &kinds, only.as_ref()).await?;
            let differing = differing(&now, wanted, &mut right, only.as_ref()).await?;
            if differing.is_empty() {
                // What was in between is asked of all kinds: something may have been made in a namespace while it went.
                if only.take().is_none() {
                    break;
                }
                continue;
            }
            // Policies that look up objects of a kind look for the kind itself twice a minute, and refuse everything until they have found it.
            let definition = differing.iter().find(|name| name.1 == DEFINITION && wanted.0.contains_key(*name));
            ensure!(definition.is_none(), "a definition was changed: {definition:?}");
            // Nothing else is written before the API server calls nobody any more: by now the ports may be another test's.
            let calls: Vec<_> = differing.iter().filter(|name| CALLED.contains(&&*name.1)).collect();
            let mended = if calls.is_empty() { differing.iter().collect() } else { calls };
            let steps: Vec<_> = mended.iter().map(|name| mend(&client, name, &now, wanted)).collect();
            let mut tried: Vec<Result<()>> = stream::iter(steps).buffer_unordered(AT_ONCE).collect().await;
            for name in mended.iter().filter(|name| name.1 == NAMESPACE && !wanted.is_kept(&name.3)) {
                tried.push(end_namespace(&client, &name.3, &now).await);
            }
            let refused = tried.iter().filter_map(|tried| tried.as_ref().err());
            ensure!(
                begun.elapsed() < PATIENCE,
                "{} objects stay otherwise: {:?}; refused: {:?}",
                differing.len(),
                differing.iter().take(5).collect::<Vec<_>>(),
                refused.take(3).collect::<Vec<_>>(),
            );
            only = Some(differing.into_iter().map(|name| name.1).collect());
            tokio::time::sleep(PAUSE).await;
        }
        forget_events(&client, wanted).await?;
        for node in Api::<Node>::all(client).list(&ListParams::default()).await? {
            let spec = node.spec.unwrap_or_default();
            let is_open = spec.taints.unwrap_or_default().is_empty() && spec.unschedulable != Some(true);
            ensure!(is_open, "a node takes no Pods");
        }
        Ok(())
    }
}

/// The kinds that count.
async fn kinds(client: &Client) -> Result<Kinds> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let all = discovery.groups().flat_map(kube::discovery::ApiGroup::resources_by_stability);
    let listed =
        all.filter(|(kind, can)| can.supports_operation(verbs::LIST) && !OF_THE_CLUSTER.contains(&&*kind.kind));
    Ok(listed.map(|(kind, can)| (kind, can.scope)).collect())
}

/// Every object that counts, whole.
async fn whole(client: &Client, (kind, scope): (ApiResource, Scope)) -> Result<Vec<(Named, (String, Value))>> {
    let found = match Api::<DynamicObject>::all_with(client.clone(), &kind).list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        found => found.with_context(|| format!("{} ({scope:?})", kind.plural))?,
    };
    let mut objects = Vec::new();
    for object in found {
        let (name, version) =
            (named(&kind, &object.metadata), object.metadata.resource_version.clone().unwrap_or_default());
        if !is_of_the_cluster(&name) {
            objects.push((name, (version, content(&json!(kind.api_version), &json!(kind.kind), &object)?)));
        }
    }
    Ok(objects)
}

/// Every object that counts, by its metadata; `only` of such kinds.
async fn everything(
    client: &Client,
    kinds: &Kinds,
    only: Option<&BTreeSet<String>>,
) -> Result<BTreeMap<Named, Served>> {
    let asked = kinds.iter().filter(|(kind, _)| only.is_none_or(|only| only.contains(&kind.kind)));
    let lists: Vec<_> = asked.map(|(kind, scope)| list(client, kind, scope)).collect();
    let lists: Vec<_> = stream::iter(lists).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(lists.into_iter().flatten().collect())
}

async fn list(client: &Client, kind: &ApiResource, scope: &Scope) -> Result<Vec<(Named, Served)>> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    let found = match all.list_metadata(&ListParams::default()).await {
        // Its definition went meanwhile.
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        found => found.with_context(|| kind.plural.clone())?,
    };
    let served = found.items.into_iter().map(|object| {
        let name = named(kind, &object.metadata);
        let api = match scope {
            Scope::Cluster => all.clone(),
            Scope::Namespaced => Api::namespaced_with(client.clone(), &name.2, kind),
        };
        (name, Served { api, metadata: object.metadata })
    });
    Ok(served.filter(|(name, _)| !is_of_the_cluster(name)).collect())
}

fn named(kind: &ApiResource, metadata: &ObjectMeta) -> Named {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (kind.group.clone(), kind.kind.clone(), text(&metadata.namespace), text(&metadata.name))
}

fn is_of_the_cluster(name: &Named) -> bool {
    name.1 == "Lease" && name.2.starts_with("kube-")
}

fn is_of_the_authority(name: &Named) -> bool {
    name.1 == "ConfigMap" && OF_THE_AUTHORITY.contains(&&*name.3)
}

/// The names of what is too much, missing or changed.
async fn differing(
    now: &BTreeMap<Named, Served>,
    wanted: &Held,
    right: &mut BTreeMap<Named, String>,
    only: Option<&BTreeSet<String>>,
) -> Result<Vec<Named>> {
    let mut differing = Vec::new();
    for (name, served) in now.iter().filter(|(name, _)| !(is_of_the_authority(name) && wanted.is_kept(&name.2))) {
        let version = served.metadata.resource_version.clone().unwrap_or_default();
        match wanted.0.get(name) {
            Some(_) if served.metadata.deletion_timestamp.is_some() => differing.push(name.clone()),
            Some((own, _)) if *own == version || right.get(name) == Some(&version) => {}
            Some((_, wanted)) => {
                let object = served.api.get_opt(&name.3).await?;
                match object {
                    Some(object) if content(&wanted["apiVersion"], &wanted["kind"], &object)? == *wanted => {
                        right.insert(name.clone(), version);
                    }
                    _ => differing.push(name.clone()),
                }
            }
            None => differing.push(name.clone()),
        }
    }
    let missing =
        wanted.0.keys().filter(|name| !now.contains_key(*name) && only.is_none_or(|only| only.contains(&name.1)));
    differing.extend(missing.cloned());
    Ok(differing)
}

/// One request, or two, towards `wanted`; what has to wait for something else is tried again at the next look.
async fn mend(client: &Client, name: &Named, now: &BTreeMap<Named, Served>, wanted: &Held) -> Result<()> {
    match (now.get(name), wanted.0.get(name)) {
        (Some(served), None) => {
            let has_finalizers = served.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
            if has_finalizers && name.1 != DEFINITION {
                let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                served.api.patch(&name.3, &PatchParams::default(), &none).await?;
            }
            match served.api.delete(&name.3, &DeleteParams::background().grace_period(0)).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                other => drop(other?),
            }
        }
        (Some(served), Some((_, content))) => {
            let mut object = content.clone();
            object["metadata"]["resourceVersion"] = json!(served.metadata.resource_version);
            served.api.replace(&name.3, &PostParams::default(), &serde_json::from_value(object)?).await?;
        }
        (None, Some((_, content))) => {
            crate::Objects::new(client.clone(), &name.2).create(content, false).await?.result?;
        }
        (None, None) => {}
    }
    Ok(())
}

/// Ends a namespace that is being deleted, once nothing is left in it: the cluster's own controller does so five seconds later.
async fn end_namespace(client: &Client, namespace: &str, now: &BTreeMap<Named, Served>) -> Result<()> {
    let own = now.get(&(String::new(), NAMESPACE.to_owned(), String::new(), namespace.to_owned()));
    let is_ending = own.is_some_and(|own| own.metadata.deletion_timestamp.is_some());
    if !is_ending || now.keys().any(|name| name.2 == namespace) {
        return Ok(());
    }
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    events.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let body =
        json!({"apiVersion": "v1", "kind": NAMESPACE, "metadata": {"name": namespace}, "spec": {"finalizers": []}});
    let path = format!("/api/v1/namespaces/{namespace}/finalize");
    let request =
        http::Request::put(path).header("content-type", "application/json").body(body.to_string().into_bytes())?;
    client.request::<Value>(request).await?;
    Ok(())
}

/// Takes away the Events of the namespaces that stay.
async fn forget_events(client: &Client, wanted: &Held) -> Result<()> {
    for namespace in wanted.namespaces() {
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        events.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    }
    Ok(())
}

/// The object without what the API server writes into it.
fn content(api_version: &Value, kind: &Value, object: &DynamicObject) -> Result<Value> {
    let mut content = serde_json::to_value(object)?;
    content["apiVersion"] = api_version.clone();
    content["kind"] = kind.clone();
    if let Some(members) = content.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = content["metadata"].as_object_mut() {
        for own in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"] {
            metadata.remove(own);
        }
    }
    Ok(content)
}
