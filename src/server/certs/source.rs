//! What the sources that follow a Secret have in common.
//!
//! In: the Secret's place, a publisher, the resolver. Out: the ways of both sources: what the webhook configurations
//! hold goes in, the roots that must be trusted go out.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::sync::watch;

use super::bundle::Publisher;
use super::context::Context;
use super::resolver::Resolver;
use super::root::Millis;
use super::trust::{Observed, Trust};
use super::wanted::Wanted;

/// The surroundings of a source.
pub(super) struct Source {
    /// Reads the Secret.
    pub(super) api: Api<Secret>,
    /// Takes what is to be served.
    pub(super) resolver: Arc<Resolver>,
    /// Clock, metrics, notices.
    pub(super) context: Context,
    /// Since when each root is in every bundle.
    pub(super) trust: Trust,
    observed: watch::Receiver<Observed>,
    wanted: watch::Sender<Wanted>,
}

impl Source {
    /// For a Secret of `namespace`, and the publisher that goes with the source.
    pub(super) fn new(
        client: &Client,
        namespace: &str,
        publisher: &Publisher,
        resolver: Arc<Resolver>,
        context: Context,
    ) -> Source {
        Source {
            api: Api::namespaced(client.clone(), namespace),
            resolver,
            context,
            trust: Trust::default(),
            observed: publisher.observed(),
            wanted: publisher.wanted(),
        }
    }

    /// Takes in what the configurations hold; the moment it did.
    pub(super) fn observe(&mut self) -> Millis {
        let now = self.context.now();
        self.trust.observe(&self.observed.borrow_and_update(), now);
        now
    }

    /// The names under which the configurations' entries call; `None` until they have been read.
    pub(super) fn names(&self) -> Option<BTreeSet<String>> {
        let observed = self.observed.borrow();
        observed.synced.then(|| observed.names.clone())
    }

    /// Waits until the configurations hold something else.
    pub(super) async fn changed(&mut self) {
        if self.observed.changed().await.is_err() {
            // The publisher has ended, which is an event of its own.
            std::future::pending::<()>().await;
        }
    }

    /// Tells the publisher, if it is something new.
    pub(super) fn want(&self, wanted: Wanted) {
        self.wanted.send_if_modified(|known| {
            let changed = *known != wanted;
            *known = wanted;
            changed
        });
    }
}
