//! Following collections of a cluster, for `status --watch` and for waiting on a rollout.

use futures::{Stream, StreamExt, TryStreamExt};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};

use super::Cluster;

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
        let api: Api<DynamicObject> = if collection.namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &collection.namespace, &resource)
        };
        let events = watcher(api, config).default_backoff();
        // An error is followed by another try, with back-off.
        events.into_stream().filter_map(|event| std::future::ready(event.ok()))
    }
}
