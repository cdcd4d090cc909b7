//! Trust bundles: whose SVIDs sign agent cards, followed while the process lives.
//!
//! ```text
//! ConfigMap (any namespace, one object, watched) ─┐
//!                                                 ├─► parsed off the workers ─► last good of each ─► joined ─► Arc<Bundles>
//! file (content compared at each look) ───────────┘
//! ```
//!
//! In: the settings, which name the sources and may change. Out: [`Bundles`] on a watch channel, sent when an authority changes. Promises: a source
//! that is gone, unreadable or broken leaves its last good authorities in force until they are older than the platform allows, counted from when the source
//! was last readable and parsed, not from when it last changed; the same content is parsed once; no text of a source is logged.

mod metrics;
mod state;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::config_watch::Settings;
use crate::cluster::watch::Watching;
use crate::cluster::watch::named::{Known, named};
use crate::config::cards::{BundleConfigMap, BundleSources};
use crate::crypto::{Bundles, TrustBundle, TrustDomain, limits};
pub use metrics::BundleMetrics;
use state::{Content, Fault, Origin, State};

/// What this room needs.
pub struct Options {
    /// For the ConfigMap.
    pub client: Client,
    /// Which sources there are.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// How ConfigMaps are watched.
    pub watching: Watching,
    /// Time between two looks at the file.
    pub period: Duration,
    /// The wall clock.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Counters.
    pub metrics: BundleMetrics,
}

/// Follows the sources; made by [`follow`].
pub struct TrustBundles {
    options: Options,
    state: State,
    /// What the stream is of, and the stream.
    followed: Option<Followed>,
    bundles: watch::Sender<Arc<Bundles>>,
}

struct Followed {
    address: BundleConfigMap,
    domain: Option<TrustDomain>,
    known: Known,
    objects: BoxStream<'static, Option<ConfigMap>>,
    heard: u64,
    /// Since when it is silent.
    silent: Duration,
}

/// The authorities in force, and the task that keeps them so.
#[must_use]
pub fn follow(options: Options) -> (watch::Receiver<Arc<Bundles>>, TrustBundles) {
    let (bundles, receiver) = watch::channel(Arc::new(Bundles::default()));
    (receiver, TrustBundles { options, state: State::default(), followed: None, bundles })
}

impl TrustBundles {
    /// Follows the sources for ever.
    pub async fn run(mut self) {
        let mut ticks = interval(self.options.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let sources = self.options.settings.borrow_and_update().platform.cards().bundle;
            self.adopt(&sources);
            self.publish(&sources);
            tokio::select! {
                object = next(self.followed.as_mut()) => self.config_map(&sources, object).await,
                _ = ticks.tick() => {
                    self.alive(&sources);
                    if let Some(path) = sources.file.clone() {
                        let content = content(&path).await;
                        self.take(&sources, Origin::File, content).await;
                    }
                }
                changed = self.options.settings.changed() => {
                    if changed.is_err() {
                        // The files are followed no longer: what they said last holds.
                        std::future::pending::<()>().await;
                    }
                }
            }
        }
    }

    fn now(&self) -> i64 {
        let since = (self.options.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }

    /// What is configured now; a source that is still the same keeps what is known of it.
    fn adopt(&mut self, sources: &BundleSources) {
        let unchanged = self.followed.as_ref().is_some_and(|followed| {
            Some(&followed.address) == sources.config_map.as_ref() && followed.domain == sources.trust_domain
        });
        self.state.adopt(sources);
        if unchanged {
            return;
        }
        self.followed = sources.config_map.clone().map(|address| {
            let api = Api::namespaced(self.options.client.clone(), &address.namespace);
            let (known, objects) = named(api, &address.name, "trust bundle", &self.options.watching);
            let domain = sources.trust_domain.clone();
            Followed { address, domain, known, objects, heard: 0, silent: Duration::ZERO }
        });
    }

    /// The ConfigMap as it is now.
    async fn config_map(&mut self, sources: &BundleSources, object: Option<ConfigMap>) {
        let Some(address) = sources.config_map.as_ref() else { return };
        let content = match object {
            None => Err(Fault::NotFound),
            Some(object) => match object.data.and_then(|mut data| data.remove(&address.key)) {
                None => Err(Fault::KeyMissing),
                Some(text) => Ok(text.into_bytes()),
            },
        };
        self.take(sources, Origin::ConfigMap, content).await;
    }

    /// Whether the watch still hears the API server: then what it told last is still so.
    fn alive(&mut self, sources: &BundleSources) {
        let (now, period) = (self.now(), self.options.period);
        let patience = self.options.watching.pace.silence();
        let Some(followed) = self.followed.as_mut().filter(|_| sources.config_map.is_some()) else { return };
        let heard = followed.known.heard();
        if heard != followed.heard {
            (followed.heard, followed.silent) = (heard, Duration::ZERO);
            self.state.unchanged(Origin::ConfigMap, now);
            return;
        }
        followed.silent = followed.silent.saturating_add(period);
        if followed.silent > patience
            && let Some(fault) = self.state.unreadable(Origin::ConfigMap)
        {
            self.tell(Origin::ConfigMap, &fault);
        }
    }

    /// A source was read: its content, or that there is none.
    async fn take(&mut self, sources: &BundleSources, origin: Origin, content: Result<Vec<u8>, Fault>) {
        let now = self.now();
        let told = match content {
            Err(fault) => self.state.failed(origin, fault),
            Ok(text) => match self.state.content(origin, &text, now) {
                Content::Known => None,
                Content::New => {
                    let domain = sources.trust_domain.clone();
                    let read = move || TrustBundle::read(&text, domain.as_ref());
                    match tokio::task::spawn_blocking(read).await {
                        Ok(Ok(bundle)) => {
                            self.state.loaded(origin, bundle, now);
                            None
                        }
                        Ok(Err(fault)) => self.state.failed(origin, Fault::Bundle(fault)),
                        Err(_) => self.state.failed(origin, Fault::Unreadable),
                    }
                }
            },
        };
        if let Some(fault) = told {
            self.tell(origin, &fault);
        }
    }

    fn tell(&self, origin: Origin, fault: &Fault) {
        self.options.metrics.failed(fault);
        let source = origin.as_str();
        tracing::warn!(
            source,
            reason = fault.as_str(),
            "a trust bundle cannot be used; its last good authorities count until they are too old"
        );
    }

    /// What is in force, told to whoever follows when it is something else than before.
    fn publish(&mut self, sources: &BundleSources) {
        let slack = self.options.period.saturating_mul(2);
        let (bundles, fault) = self.state.joined(sources, self.now(), slack);
        if let Some(fault) = fault {
            self.tell(Origin::Joined, &fault);
        }
        self.options.metrics.in_force(&bundles);
        self.bundles.send_if_modified(|before| {
            let same = before.configured() == bundles.configured()
                && before.read_at().is_some() == bundles.read_at().is_some()
                && before.version() == bundles.version();
            if !same {
                tracing::info!(authorities = bundles.version().get(..16), "the trust bundle in force has changed");
            }
            // The same authorities, but another clock of them: who follows need not look, and reads the right one.
            *before = Arc::new(bundles);
            !same
        });
    }
}

async fn next(followed: Option<&mut Followed>) -> Option<ConfigMap> {
    match followed {
        None => std::future::pending().await,
        Some(followed) => match followed.objects.next().await {
            Some(object) => object,
            None => std::future::pending().await,
        },
    }
}

/// The bytes of a file; of one that is larger than anything that is read, one byte more than that.
async fn content(path: &Path) -> Result<Vec<u8>, Fault> {
    let read = async {
        let file = tokio::fs::File::open(path).await?;
        let mut bytes = Vec::new();
        file.take(limits::BUNDLE_BYTES as u64 + 1).read_to_end(&mut bytes).await?;
        Ok::<_, std::io::Error>(bytes)
    };
    read.await.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Fault::NotFound,
        _ => Fault::Unreadable,
    })
}

#[cfg(test)]
mod tests;
