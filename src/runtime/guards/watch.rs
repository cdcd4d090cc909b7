//! The guards at work: two watches in, words out.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt as _;
use futures::future::select;
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::plan::{Kind, Plan, Said};
use crate::api::event::Regarding;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::runtime::certs::{Listener, Notice};

/// Seconds that one watch lasts: it is renewed before the client's read timeout ends it in silence.
const PERIOD: u32 = 25;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Part {
    Policy,
    Binding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    part: Part,
}

/// What is counted; clones share it.
#[derive(Debug, Clone, Default)]
pub struct GuardMetrics {
    missing: Family<Label, Gauge>,
}

impl GuardMetrics {
    /// Registers all of them.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "drawbridge_policies_missing",
            "Admission policies of the manifests, and bindings of policies, that are not there",
            self.missing.clone(),
        );
    }

    fn set(&self, kind: Kind, missing: usize) {
        let part = match kind {
            Kind::Policy => Part::Policy,
            Kind::Binding => Part::Binding,
        };
        self.missing.get_or_create(&Label { part }).set(i64::try_from(missing).unwrap_or(i64::MAX));
    }

    /// One series in every family: what the reference of all families is compared with, since a family without any is not exposed.
    pub fn fill(&self) {
        self.set(Kind::Policy, 0);
    }
}

/// The task that looks. Spawn [`Guards::run`].
pub struct Guards {
    client: Client,
    listener: Listener,
    metrics: GuardMetrics,
    /// The Deployment that Events are told about.
    operator: Regarding,
    plan: Mutex<Plan>,
    begun: Instant,
}

impl Debug for Guards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guards").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Guards {
    /// Over the policies of these names; Events are about the Deployment of the controllers in `namespace`.
    #[must_use]
    pub fn new(
        client: Client,
        (listener, metrics): (Listener, GuardMetrics),
        namespace: &str,
        names: Vec<String>,
    ) -> Self {
        let operator = Regarding {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: namespace.to_owned(),
            name: keys::DEPLOYMENT_CONTROLLERS.to_owned(),
            uid: String::new(),
        };
        let plan = Mutex::new(Plan::new(names));
        Self { client, listener, metrics, operator, plan, begun: Instant::now() }
    }

    /// Never ends.
    pub async fn run(self) {
        let policies = self.follow::<ValidatingAdmissionPolicy>(Kind::Policy);
        let bindings = self.follow::<ValidatingAdmissionPolicyBinding>(Kind::Binding);
        select(pin!(policies), pin!(bindings)).await;
    }

    async fn follow<K>(&self, kind: Kind)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let ours = format!("{}={}", keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
        let config = watcher::Config::default().labels(&ours).timeout(PERIOD);
        let mut events = pin!(watcher(Api::<K>::all(self.client.clone()), config).default_backoff());
        let mut found = BTreeSet::new();
        let mut failing = false;
        // A watcher never ends.
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    failing = false;
                    self.step(kind, event, &mut found);
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(
                            kind = kind.as_str(),
                            %error,
                            "policies cannot be watched (list and watch are needed); the last state is kept"
                        );
                    }
                }
            }
        }
    }

    fn step<K: Resource>(&self, kind: Kind, event: watcher::Event<K>, found: &mut BTreeSet<String>) {
        let now = self.begun.elapsed();
        let mut plan = self.plan.lock();
        let said = match event {
            watcher::Event::Init => {
                found.clear();
                return;
            }
            watcher::Event::InitApply(object) => {
                found.insert(object.name_any());
                return;
            }
            watcher::Event::InitDone => plan.listed(kind, &std::mem::take(found), now),
            watcher::Event::Apply(object) => plan.changed(kind, &object.name_any(), true, now).into_iter().collect(),
            watcher::Event::Delete(object) => plan.changed(kind, &object.name_any(), false, now).into_iter().collect(),
        };
        self.metrics.set(kind, plan.missing(kind));
        drop(plan);
        said.into_iter().for_each(|said| self.tell(said));
    }

    fn tell(&self, said: Said) {
        let reason = Reason::PolicyMissing;
        match said {
            Said::Back(kind, name, after) => {
                let after = format!("{:.1}", after.as_secs_f64());
                tracing::info!(kind = kind.as_str(), name, after, "the policy's object is there again");
            }
            Said::Absent(kind, names) => {
                let message = format!("{} {}: not installed; {REMEDY}", kind.as_str(), names.join(", "));
                tracing::warn!(reason = reason.code(), "{message}");
            }
            Said::Lost(kind, name) => {
                let message =
                    format!("{} {name} is gone, and what it refuses is accepted from now on; {REMEDY}", kind.as_str());
                tracing::warn!(reason = reason.code(), "{message}");
                (self.listener)(&Notice { reason, about: self.operator.clone(), message });
            }
        }
    }
}

/// What to do.
const REMEDY: &str = "apply the install manifests of this version again (drawbridge doctor tells what differs), and find in the audit log who \
                      deleted it";
