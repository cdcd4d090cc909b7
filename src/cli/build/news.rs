//! What happens to a build while its lines are followed, from watches of the AgentBuild and of the Pods of runs.
//!
//! Where a watch is not permitted nothing is told: whoever waits has a time after which it looks for itself.

use std::time::Duration;

use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Found, is_under_way};
use crate::cli::survey;
use crate::domain::keys;
use crate::store::Kind;

/// What was told.
#[derive(Debug, Default)]
struct Told {
    /// The build has been judged.
    judged: bool,
}

/// News of one build; nothing comes any more once it is dropped.
pub(super) struct News {
    told: watch::Receiver<Told>,
    _watches: JoinSet<()>,
}

impl News {
    /// Begins to listen.
    pub(super) fn of(found: &Found) -> Self {
        let (sender, told) = watch::channel(Told::default());
        let builds = found.cluster.follow(&found.collection());
        let pods =
            found.cluster.follow_labelled(&survey::collection(Kind::Pod, &found.namespace), keys::LABEL_PIPELINE_RUN);
        let (name, of_pods) = (found.name.clone(), sender.clone());
        let mut watches = JoinSet::new();
        watches.spawn(builds.for_each(move |event| {
            if let Event::Apply(object) | Event::InitApply(object) = event
                && object.metadata.name.as_deref() == Some(&name)
            {
                sender.send_replace(Told { judged: !runs_on(object) });
            }
            std::future::ready(())
        }));
        watches.spawn(pods.for_each(move |event| {
            if !matches!(event, Event::Init | Event::InitDone) {
                of_pods.send_modify(|_| ());
            }
            std::future::ready(())
        }));
        Self { told, _watches: watches }
    }

    /// Waits for news, or for so long.
    pub(super) async fn within(&mut self, longest: Duration) {
        // Nobody tells any more: then the time passes.
        let news = async {
            if self.told.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let _ = tokio::time::timeout(longest, news).await;
    }

    /// Whether the build has been judged, as far as was told.
    pub(super) fn is_judged(&self) -> bool {
        self.told.borrow().judged
    }

    /// Waits until the build has been judged.
    pub(super) async fn judged(&self) {
        if self.told.clone().wait_for(|told| told.judged).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn runs_on(object: DynamicObject) -> bool {
    serde_json::to_value(object).is_ok_and(|object| is_under_way(&object))
}
