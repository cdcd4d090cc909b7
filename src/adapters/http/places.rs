//! The places of large bodies: so many in all, and a part of them for what comes out of one namespace.
//!
//! In: a body that is larger than [`super::SMALL`], of whoever answers as that host. Out: its place, which whoever keeps the body keeps. Promise: servers of one
//! namespace that begin large bodies and do not come to an end wait for each other, and leave places to those of all others.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::LARGE;

/// Of [`LARGE`], for one namespace.
pub(super) const SHARE: usize = LARGE / 4;

/// The place of one body.
#[derive(Debug)]
pub struct Place {
    _own: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

/// All places. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Places {
    all: Arc<Semaphore>,
    own: Arc<Mutex<HashMap<Box<str>, Arc<Semaphore>>>>,
}

impl Places {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(LARGE)), own: Arc::default() }
    }

    /// A place for what that host answers. The semaphores are never closed.
    pub(super) async fn take(&self, host: &str) -> Option<Place> {
        let own = self.own(whose(host)).acquire_owned().await.ok()?;
        let all = self.all.clone().acquire_owned().await.ok()?;
        Some(Place { _own: own, _all: all })
    }

    fn own(&self, whose: &str) -> Arc<Semaphore> {
        let mut known = self.own.lock();
        // Whoever has a place or waits for one has the semaphore as well.
        known.retain(|_, own| Arc::strong_count(own) > 1);
        known.entry(whose.into()).or_insert_with(|| Arc::new(Semaphore::new(SHARE))).clone()
    }

    #[cfg(test)]
    pub(super) fn available_permits(&self) -> usize {
        self.all.available_permits()
    }

    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.own.lock().len()
    }
}

/// The namespace in a name inside the cluster (`service.namespace.svc.domain:port`); a host that has none is one by itself.
fn whose(host: &str) -> &str {
    let mut labels = host.split('.');
    match (labels.next(), labels.next(), labels.next()) {
        (_, Some(namespace), Some("svc")) => namespace,
        _ => host,
    }
}
