//! Following collections of a cluster, for `status --watch` and for waiting on a rollout.
//!
//! Promise: an object is read of a list and of an event as the rest of the program reads it ([`nesting`]), so that one that is nested too deep, which
//! anybody may write where a definition takes everything, keeps nobody from seeing the others.

use std::borrow::Cow;

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::DynamicResourceScope;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

use super::Cluster;
use crate::store::decode::nesting;

/// One collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// API group, empty for core.
    pub group: &'static str,
    /// API version without the group.
    pub version: &'static str,
    /// The kind of its objects.
    pub kind: &'static str,
    /// Plural, as in paths.
    pub plural: &'static str,
    /// One namespace; all of them when empty.
    pub namespace: String,
}

impl Collection {
    /// Path of the collection.
    #[must_use]
    pub fn path(&self) -> String {
        let root = if self.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", self.group) };
        if self.namespace.is_empty() {
            format!("{root}/{}/{}", self.version, self.plural)
        } else {
            format!("{root}/{}/namespaces/{}/{}", self.version, self.namespace, self.plural)
        }
    }

    /// `group/version`, or the version alone for core.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl Cluster {
    /// The changes of a collection, beginning with what is there; interrupted watches are taken up again.
    pub fn follow(&self, collection: &Collection) -> impl Stream<Item = watcher::Event<DynamicObject>> + Send + use<> {
        self.follow_as(collection, watcher::Config::default())
    }

    /// [`Cluster::follow`], of those objects only that have a label.
    pub fn follow_labelled(
        &self,
        collection: &Collection,
        label: &str,
    ) -> impl Stream<Item = watcher::Event<DynamicObject>> + Send + use<> {
        self.follow_as(collection, watcher::Config::default().labels(label))
    }

    fn follow_as(
        &self,
        collection: &Collection,
        config: watcher::Config,
    ) -> impl Stream<Item = watcher::Event<DynamicObject>> + Send + use<> {
        let resource = ApiResource {
            group: collection.group.to_owned(),
            version: collection.version.to_owned(),
            api_version: collection.api_version(),
            kind: collection.kind.to_owned(),
            plural: collection.plural.to_owned(),
        };
        let api: Api<Whole> = if collection.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &collection.namespace, &resource)
        };
        let events = watcher(api, config).default_backoff();
        // An error is followed by another try, with back-off.
        events.into_stream().filter_map(|event| std::future::ready(event.ok().map(object_of)))
    }
}

/// An object that is decoded from its whole text, which the client library hands to nobody.
#[derive(Debug, Clone)]
struct Whole(DynamicObject);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        nesting::read(text.get()).map(Self).map_err(D::Error::custom)
    }
}

impl Resource for Whole {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(resource)
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(resource)
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(resource)
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(resource)
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(resource)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

fn object_of(event: Event<Whole>) -> Event<DynamicObject> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(Whole(object)) => Event::InitApply(object),
        Event::InitDone => Event::InitDone,
        Event::Apply(Whole(object)) => Event::Apply(object),
        Event::Delete(Whole(object)) => Event::Delete(object),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kube::{Client, Config};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// An API server that gives these answers, one a connection.
    async fn cluster(answers: Vec<String>) -> Cluster {
        // The client has TLS, whatever it is asked by.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            for body in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        let client = Client::try_from(Config::new(server.parse().unwrap())).unwrap();
        Cluster { client, server, namespace: "team".to_owned(), partial: Arc::default() }
    }

    fn agent(name: &str, version: u64, levels: usize) -> String {
        let more = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"team","resourceVersion":"{version}"}},"spec":{{"image":"{name}:1","more":{more}}}}}"#
        )
    }

    fn agents(items: &[String]) -> String {
        format!(
            r#"{{"kind":"AgentList","apiVersion":"agent.kagenti.dev/v1alpha1","metadata":{{"resourceVersion":"5"}},"items":[{}]}}"#,
            items.join(",")
        )
    }

    /// Levels of an object that no decoder goes through.
    const DEEP: usize = 5_000;

    #[tokio::test]
    async fn one_object_that_is_too_deep_is_read_and_so_are_the_others_of_its_list() {
        let answers = vec![agent("deep", 3, DEEP), agents(&[agent("deep", 3, DEEP), agent("plain", 4, 1)])];
        let cluster = cluster(answers).await;
        let one = cluster.get("/apis/agent.kagenti.dev/v1alpha1/namespaces/team/agents/deep").await.unwrap();
        assert_eq!(one.object().unwrap()["spec"]["image"], "deep:1");
        let mut notes = Vec::new();
        let all = cluster.list("/apis/agent.kagenti.dev/v1alpha1/agents", &mut notes).await.unwrap();
        let images: Vec<_> = all.iter().map(|one| one["spec"]["image"].as_str().unwrap()).collect();
        assert_eq!((images, notes), (vec!["deep:1", "plain:1"], Vec::new()));
    }

    #[tokio::test]
    async fn what_is_followed_goes_on_beside_an_object_that_is_too_deep() {
        let lines = format!(
            "{{\"type\":\"MODIFIED\",\"object\":{}}}\n{{\"type\":\"DELETED\",\"object\":{}}}\n",
            agent("plain", 6, DEEP),
            agent("deep", 7, DEEP),
        );
        let cluster = cluster(vec![agents(&[agent("deep", 3, DEEP), agent("plain", 4, 1)]), lines]).await;
        let collection = Collection {
            group: "agent.kagenti.dev",
            version: "v1alpha1",
            kind: "Agent",
            plural: "agents",
            namespace: String::new(),
        };
        let events = cluster.follow(&collection).take(6).map(|event| match event {
            Event::Init => "begins".to_owned(),
            Event::InitDone => "listed".to_owned(),
            Event::InitApply(object) => format!("lists {}", object.data["spec"]["image"]),
            Event::Apply(object) => format!("changes {}", object.data["spec"]["image"]),
            Event::Delete(object) => format!("deletes {}", object.data["spec"]["image"]),
        });
        let said: Vec<String> = events.collect().await;
        assert_eq!(
            said,
            ["begins", "lists \"deep:1\"", "lists \"plain:1\"", "listed", "changes \"plain:1\"", "deletes \"deep:1\""]
        );
    }
}
