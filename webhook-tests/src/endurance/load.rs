//! Enrolled Pods created at a steady rate and deleted after a while, and what became of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::TestNamespace;

/// How long a created Pod stays.
const LIFE: Duration = Duration::from_secs(5);
/// Creations under way at once; a machine that is slower than the rate skips what is beyond.
const AT_ONCE: usize = 32;

/// A Pod that wants to be injected; without a name the API server makes one.
#[must_use]
pub fn pod(name: Option<&str>) -> Value {
    let mut metadata = json!({ "labels": { "app": name.unwrap_or("load"), keys::LABEL_TYPE: "agent" } });
    match name {
        Some(name) => metadata["name"] = name.into(),
        None => metadata["generateName"] = "load-".into(),
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": { "containers": [{ "name": "app", "image": "example.com/app:1" }] } })
}

/// Whether a container of ours is in the Pod.
#[must_use]
pub fn injected(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let all = spec.map_or(&[][..], |spec| &spec.containers).iter().chain(init);
    all.into_iter().any(|container| keys::OUR_CONTAINERS.contains(&container.name.as_str()))
}

/// Whether the Pod waits behind our scheduling gate.
#[must_use]
pub fn gated(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_deref()).unwrap_or_default();
    gates.iter().any(|gate| gate.name == keys::SCHEDULING_GATE)
}

/// What a stored Pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Injected, free to run.
    Protected,
    /// Not injected, behind the gate.
    Gated,
    /// Injected, and behind the gate all the same.
    Stuck,
    /// Not injected, free to run.
    Unprotected,
}

impl Fate {
    fn of(pod: &Pod) -> Self {
        match (injected(pod), gated(pod)) {
            (true, false) => Self::Protected,
            (false, true) => Self::Gated,
            (true, true) => Self::Stuck,
            (false, false) => Self::Unprotected,
        }
    }
}

/// What became of the Pods of a load.
#[derive(Debug, Default)]
pub struct Tally {
    /// Stored Pods by name.
    pub stored: BTreeMap<String, Fate>,
    /// What the API server said to the creations that it refused.
    pub refused: Vec<String>,
    /// Creations that were not tried because [`AT_ONCE`] others were under way.
    pub skipped: usize,
}

impl Tally {
    /// Names of the Pods of one fate.
    #[must_use]
    pub fn with(&self, fate: Fate) -> Vec<&str> {
        self.stored.iter().filter(|(_, its)| **its == fate).map(|(name, _)| name.as_str()).collect()
    }
}

/// A load under way.
pub struct Load {
    tally: Arc<Mutex<Tally>>,
    end: watch::Sender<bool>,
    offering: JoinHandle<Result<()>>,
}

impl Load {
    /// Creates `rate` Pods a second in `ns`, until [`Load::end`].
    #[must_use]
    pub fn start(ns: &TestNamespace, rate: u32) -> Self {
        let (tally, end) = (Arc::default(), watch::Sender::new(false));
        let offering = tokio::spawn(offer(ns.api(), rate, Arc::clone(&tally), end.subscribe()));
        Self { tally, end, offering }
    }

    /// Pods stored so far.
    #[must_use]
    pub fn stored(&self) -> usize {
        self.tally.lock().stored.len()
    }

    /// Waits until every creation is answered and every Pod deleted.
    ///
    /// # Errors
    /// When the API server did not answer a creation at all, or refused a deletion.
    pub async fn end(self) -> Result<Tally> {
        self.end.send_replace(true);
        self.offering.await??;
        Ok(std::mem::take(&mut *self.tally.lock()))
    }
}

async fn offer(pods: Api<Pod>, rate: u32, tally: Arc<Mutex<Tally>>, mut end: watch::Receiver<bool>) -> Result<()> {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut lives = JoinSet::new();
    // A tick that comes late is made up for: the rate is that of an impartial crowd.
    let mut tick = tokio::time::interval(Duration::from_secs(1) / rate);
    for number in 0_usize.. {
        tokio::select! {
            _ = tick.tick() => {}
            _ = end.wait_for(|end| *end) => break,
        }
        while let Some(ended) = lives.try_join_next() {
            ended??;
        }
        match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => {
                let life = live(pods.clone(), format!("load-{number}"), Arc::clone(&tally), end.clone(), slot);
                lives.spawn(life);
            }
            Err(_) => tally.lock().skipped += 1,
        }
    }
    while let Some(ended) = lives.join_next().await {
        ended??;
    }
    Ok(())
}

async fn live(
    pods: Api<Pod>,
    name: String,
    tally: Arc<Mutex<Tally>>,
    mut end: watch::Receiver<bool>,
    slot: OwnedSemaphorePermit,
) -> Result<()> {
    let wanted: Pod = serde_json::from_value(pod(Some(&name)))?;
    let answer = pods.create(&PostParams::default(), &wanted).await;
    drop(slot);
    match answer {
        Ok(stored) => drop(tally.lock().stored.insert(name.clone(), Fate::of(&stored))),
        Err(kube::Error::Api(status)) => {
            tally.lock().refused.push(status.message.clone());
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    // Whichever comes first.
    let _ = tokio::time::timeout(LIFE, end.wait_for(|end| *end)).await;
    pods.delete(&name, &DeleteParams::default().grace_period(0)).await?;
    Ok(())
}
