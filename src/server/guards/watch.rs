//! The guards at work: a watch of each kind in, words out.

use std::collections::BTreeSet;
use std::fmt::Debug;

use futures::future::{join, join_all};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::plan::{Kind, Plan, Said};
use crate::api::event::Regarding;
use crate::cluster::watch::follow::{Following, Selection, Step};
use crate::cluster::watch::{Trouble, Watching};
use crate::domain::keys;
use crate::server::certs::{Installed, Listener, Notice};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Part {
    Policy,
    Binding,
    MutatingPolicy,
    MutatingBinding,
    MutatingWebhook,
    ValidatingWebhook,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    part: Part,
}

/// What is counted; clones share it.
#[derive(Debug, Clone, Default)]
pub struct GuardMetrics {
    missing: Family<Label, Gauge>,
    webhooks: Family<Label, Gauge>,
}

impl GuardMetrics {
    /// Registers all of them.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "drawbridge_policies_missing",
            "Admission policies of the manifests, and bindings of policies, that do not exist",
            self.missing.clone(),
        );
        registry.register(
            "drawbridge_webhook_configurations_missing",
            "1 while a webhook configuration of the manifests does not exist, so that the API server does not ask Drawbridge",
            self.webhooks.clone(),
        );
    }

    fn set(&self, kind: Kind, missing: usize) {
        let part = match kind {
            Kind::Policy => Part::Policy,
            Kind::Binding => Part::Binding,
            Kind::MutatingPolicy => Part::MutatingPolicy,
            Kind::MutatingBinding => Part::MutatingBinding,
            Kind::MutatingWebhook => Part::MutatingWebhook,
            Kind::ValidatingWebhook => Part::ValidatingWebhook,
        };
        let family = if kind.is_webhook() { &self.webhooks } else { &self.missing };
        family.get_or_create(&Label { part }).set(i64::try_from(missing).unwrap_or(i64::MAX));
    }

    /// One series in every family: what the reference of all families is compared with, since a family without any is not exposed.
    pub fn fill(&self) {
        Kind::ALL.into_iter().for_each(|kind| self.set(kind, 0));
    }
}

/// The task that looks. Spawn [`Guards::run`].
pub struct Guards {
    client: Client,
    watching: Watching,
    listener: Listener,
    metrics: GuardMetrics,
    /// The Deployment that Events are told about.
    operator: Regarding,
    /// The command that puts webhook configurations back.
    repair: String,
    /// Who watches webhook configurations already; without, they are watched here.
    heard_of: Option<watch::Receiver<Installed>>,
    plan: Mutex<Plan>,
    /// Something is missing since now.
    missed: Notify,
    begun: Instant,
}

impl Debug for Guards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guards").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Guards {
    /// Over these objects; Events are about the Deployment of the controllers in `namespace`; `repair` is the command that puts webhook
    /// configurations back.
    #[must_use]
    pub fn new(
        (client, watching): (Client, Watching),
        (listener, metrics): (Listener, GuardMetrics),
        namespace: &str,
        (installed, repair): (Vec<(Kind, String)>, String),
    ) -> Self {
        let operator = Regarding {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: namespace.to_owned(),
            name: keys::DEPLOYMENT_CONTROLLERS.to_owned(),
            uid: String::new(),
        };
        let plan = Mutex::new(Plan::new(installed));
        let (missed, begun) = (Notify::new(), Instant::now());
        Self { client, watching, listener, metrics, operator, repair, heard_of: None, plan, missed, begun }
    }

    /// Hears of webhook configurations from who watches them, so that nothing is watched twice.
    #[must_use]
    pub fn hearing(self, heard_of: Option<watch::Receiver<Installed>>) -> Self {
        Self { heard_of, ..self }
    }

    /// Never ends, unless there is nothing to look at.
    pub async fn run(self) {
        let kinds = self.plan.lock().kinds();
        if !kinds.is_empty() {
            join(join_all(kinds.into_iter().map(|kind| self.look_after(kind))), self.tell_what_stays_gone()).await;
        }
    }

    async fn tell_what_stays_gone(&self) {
        loop {
            let missed = self.missed.notified();
            let (said, next) = {
                let mut plan = self.plan.lock();
                (plan.overdue(self.begun.elapsed()), plan.next())
            };
            said.into_iter().for_each(|said| self.tell(said));
            match next {
                Some(next) => tokio::select! {
                    () = tokio::time::sleep_until(self.begun + next) => {}
                    () = missed => {}
                },
                None => missed.await,
            }
        }
    }

    async fn look_after(&self, kind: Kind) {
        match (kind, &self.heard_of) {
            (Kind::MutatingWebhook, Some(of)) => self.hear(kind, of.clone(), |known| known.mutating).await,
            (Kind::ValidatingWebhook, Some(of)) => self.hear(kind, of.clone(), |known| known.validating).await,
            _ => self.follow(kind).await,
        }
    }

    /// Takes in whether the configuration of that kind is there.
    async fn hear(&self, kind: Kind, mut of: watch::Receiver<Installed>, one: fn(&Installed) -> Option<bool>) {
        let mut last = None;
        loop {
            let now = one(&of.borrow_and_update());
            if let (Some(is_there), true) = (now, now != last) {
                let name = keys::WEBHOOK_CONFIGURATION;
                self.take_in(kind, |plan, at| match last {
                    None => plan.listed(kind, &is_there.then(|| name.to_owned()).into_iter().collect(), at),
                    Some(_) => plan.changed(kind, name, is_there, at).into_iter().collect(),
                });
                last = now;
            }
            if of.changed().await.is_err() {
                // Who watched has ended with the process.
                return;
            }
        }
    }

    async fn follow(&self, kind: Kind) {
        let resource = ApiResource {
            group: "admissionregistration.k8s.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "admissionregistration.k8s.io/v1".to_owned(),
            kind: kind.as_str().to_owned(),
            plural: kind.plural().to_owned(),
        };
        // Webhook configurations are ours to read by their name alone.
        let (ours, selection) = if kind.is_webhook() {
            let ours = format!("metadata.name={}", keys::WEBHOOK_CONFIGURATION);
            (ours.clone(), Selection { fields: Some(ours), careful: true, ..Selection::default() })
        } else {
            let ours = format!("{}={}", keys::LABEL_APP_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
            (ours.clone(), Selection { labels: Some(ours), careful: true, ..Selection::default() })
        };
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        let mut following = Following::new(api, kind.as_str(), selection, self.watching.clone());
        let mut trouble = Trouble::new(kind.as_str(), &ours);
        let mut found = BTreeSet::new();
        loop {
            match following.next().await {
                Ok(step) => {
                    trouble.works();
                    self.step(kind, step, &mut found);
                }
                Err(error) => {
                    found.clear();
                    tokio::time::sleep(trouble.failed(&error)).await;
                }
            }
        }
    }

    fn step(&self, kind: Kind, step: Step<DynamicObject>, found: &mut BTreeSet<String>) {
        match step {
            Step::Page { items, .. } => found.extend(items.iter().map(ResourceExt::name_any)),
            Step::Listed => self.take_in(kind, |plan, now| plan.listed(kind, &std::mem::take(found), now)),
            Step::Changed(object) => {
                self.take_in(kind, |plan, now| plan.changed(kind, &object.name_any(), true, now).into_iter().collect());
            }
            Step::Deleted(object) => {
                self.take_in(kind, |plan, now| {
                    plan.changed(kind, &object.name_any(), false, now).into_iter().collect()
                });
            }
            Step::Begun | Step::Alive | Step::Renewed => {}
        }
    }

    /// Counts what is missing by now, and tells what is to be told.
    fn take_in(&self, kind: Kind, news: impl FnOnce(&mut Plan, std::time::Duration) -> Vec<Said>) {
        let mut plan = self.plan.lock();
        let said = news(&mut plan, self.begun.elapsed());
        self.metrics.set(kind, plan.missing(kind));
        if plan.next().is_some() {
            self.missed.notify_one();
        }
        drop(plan);
        said.into_iter().for_each(|said| self.tell(said));
    }

    fn tell(&self, said: Said) {
        let of = match &said {
            Said::Back(kind, ..) | Said::Replaced(kind, ..) | Said::Absent(kind, _) | Said::Lost(kind, _) => *kind,
        };
        let remedy = if of.is_webhook() {
            format!("put it back with {}, and find in the audit log who deleted it", self.repair)
        } else {
            REMEDY.to_owned()
        };
        let message = match said {
            Said::Back(kind, name, after) => {
                let after = format!("{:.1}", after.as_secs_f64());
                tracing::info!(kind = kind.as_str(), name, after, "exists again");
                return;
            }
            Said::Replaced(kind, name, after) => {
                let after = format!("{:.1}", after.as_secs_f64());
                tracing::info!(kind = kind.as_str(), name, after, "was gone for a moment");
                return;
            }
            Said::Absent(kind, names) => {
                let (kind, effect) = (kind.as_str(), kind.effect());
                format!("{kind} {}: not installed, so that {effect}; {remedy}", names.join(", "))
            }
            Said::Lost(kind, name) => {
                format!("{} {name} is gone, so that {} from now on; {remedy}", kind.as_str(), kind.effect())
            }
        };
        let (reason, about) = (of.reason(), self.operator.clone());
        tracing::warn!(reason = reason.code(), "{message}");
        (self.listener)(&Notice { teller: keys::MANAGER_POLICIES, reason, about, message });
    }
}

/// What to do.
const REMEDY: &str = "apply the install manifests of this version again (drawbridge doctor shows what differs), and find in the audit \
                      log who deleted it";

#[cfg(test)]
mod tests;
