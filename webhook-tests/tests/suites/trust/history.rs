//! Every version of Pods and NetworkPolicies of a namespace, in the order in which the API server stored them, and who reached whom after each.
//!
//! In: watches. Out: versions by resourceVersion, and for each the pairs of workloads that reach each other, by the room `policy`.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use drawbridge::policy::network_policy::NetworkPolicy as Policy;
use drawbridge::policy::pod::Pod as Judged;
use drawbridge::policy::reach::reach;
use drawbridge::policy::selector::Labels;
use drawbridge::policy::side::Party;
use drawbridge::policy::world::World;
use futures::TryStreamExt as _;
use kube::ResourceExt as _;
use kube::api::Api;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use webhook_tests::patience::patience;

/// One version: kind, name and content, `None` where it went.
pub(super) type Version = (&'static str, String, Option<Value>);

/// Every version of Pods and NetworkPolicies of a namespace, by resourceVersion.
#[derive(Default)]
pub(super) struct History {
    versions: Mutex<BTreeMap<u64, Version>>,
    news: Notify,
}

impl History {
    pub(super) fn all(&self) -> BTreeMap<u64, Version> {
        self.versions.lock().map(|versions| versions.clone()).unwrap_or_default()
    }

    /// Waits until what was written down is as wanted.
    pub(super) async fn until(&self, wanted: impl Fn(&BTreeMap<u64, Version>) -> bool) -> Result<()> {
        let all = async {
            while !wanted(&self.all()) {
                self.news.notified().await;
            }
        };
        let in_time = tokio::time::timeout(patience(), all).await;
        in_time.with_context(|| format!("not within {:?}; last seen: {:#?}", patience(), self.titles()))
    }

    fn titles(&self) -> Vec<String> {
        let title = |(version, (kind, name, content)): (u64, Version)| {
            format!("{version} {kind} {name}{}", if content.is_none() { " is gone" } else { "" })
        };
        self.all().into_iter().map(title).collect()
    }
}

/// Writes down what a watch shows, as long as the tasks are kept.
pub(super) fn recording<K>(tasks: &mut JoinSet<()>, api: Api<K>, kind: &'static str, history: &Arc<History>)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned + Send + 'static,
{
    let history = history.clone();
    tasks.spawn(async move {
        let mut events = pin!(watcher::watcher(api, watcher::Config::default()));
        while let Ok(Some(event)) = events.try_next().await {
            let (object, stays) = match event {
                Event::Apply(object) | Event::InitApply(object) => (object, true),
                Event::Delete(object) => (object, false),
                Event::Init | Event::InitDone => continue,
            };
            let version = object.resource_version().and_then(|text| text.parse().ok()).unwrap_or_default();
            let content = serde_json::to_value(&object).ok().filter(|_| stays);
            if let Ok(mut versions) = history.versions.lock() {
                versions.insert(version, (kind, object.name_any(), content));
            }
            history.news.notify_one();
        }
    });
}

/// Pairs of workloads that reach each other, after every version.
pub(super) fn matrices(namespace: &str, history: &History) -> Vec<Vec<(String, String)>> {
    let mut objects: BTreeMap<(&str, String), Value> = BTreeMap::new();
    let mut all = Vec::new();
    for (_, (kind, name, content)) in history.all() {
        match content {
            Some(content) => objects.insert((kind, name), content),
            None => objects.remove(&(kind, name)),
        };
        let of =
            |kind: &'static str| objects.iter().filter(move |((one, _), _)| *one == kind).map(|(_, object)| object);
        let pods: Vec<_> = of("Pod").map(Judged::read).collect();
        let policies: Vec<_> = of("NetworkPolicy").filter_map(|object| Policy::read(object, namespace).ok()).collect();
        let world = World::new([(namespace.to_owned(), Labels::default())], pods, policies);
        let mut pairs = Vec::new();
        for from in world.pods() {
            for to in world.pods() {
                let ports = reach(&world, Party::Pod(from), Party::Pod(to)).ports();
                if from.name != to.name && ports.is_some_and(|ports| !ports.is_empty()) {
                    let app = |pod: &Judged| pod.labels.get("app").cloned().unwrap_or_default();
                    pairs.push((app(from), app(to)));
                }
            }
        }
        all.push(pairs);
    }
    all
}
