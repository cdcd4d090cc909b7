//! The guards at work: a watch of each kind in, words out.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use futures::future::{join_all, join3};
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
use crate::cluster::keeper::{Keeper, Witness};
use crate::cluster::watch::follow::{Following, Selection, Step};
use crate::cluster::watch::{Trouble, Watching};
use crate::domain::keys;
use crate::server::certs::{Installed, Listener, Notice};
use crate::store::{Change, Kind as StoreKind, Reach, Store, Taken};

/// What puts back what is missing of an installation, or is not as it was rendered: a shipped manifest would have the settings, the names and
/// the image that are shipped.
pub const APPLY: &str = "apply what `drawbridge render` prints for this installation (docs/tasks/upgrade.md says how to take its flags and \
                         settings along)";
/// The same for what comes with the group of the original BeeAI operator.
pub const APPLY_COMPAT: &str =
    "apply what `drawbridge render --beeai-compat` prints with the flags of this installation";

/// The command that puts webhook configurations back, asked for when it is told: settings change while a process runs.
pub type Repair = Box<dyn Fn() -> String + Send + Sync>;

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
    repair: Repair,
    /// Who watches webhook configurations already; without, they are watched here.
    heard_of: Option<watch::Receiver<Installed>>,
    /// Whether the group is served whose policies are looked after as well.
    served: Option<watch::Receiver<bool>>,
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
        (installed, repair): (Vec<(Kind, String)>, Repair),
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
        let (heard_of, served) = (None, None);
        Self { client, watching, listener, metrics, operator, repair, heard_of, served, plan, missed, begun }
    }

    /// Hears of webhook configurations from who watches them, so that nothing is watched twice.
    #[must_use]
    pub fn hearing(self, heard_of: Option<watch::Receiver<Installed>>) -> Self {
        Self { heard_of, ..self }
    }

    /// Looks after these as well, while their group is served.
    #[must_use]
    pub fn with_group(self, group: Vec<(Kind, String)>, served: watch::Receiver<bool>) -> Self {
        let plan = Mutex::new(self.plan.into_inner().with_group(group));
        Self { plan, served: Some(served), ..self }
    }

    /// Never ends, unless there is nothing to look at.
    pub async fn run(self) {
        let kinds = self.plan.lock().kinds();
        if !kinds.is_empty() {
            let kinds = join_all(kinds.into_iter().map(|kind| self.look_after(kind)));
            join3(kinds, self.tell_what_stays_gone(), self.hear_of_the_group()).await;
        }
    }

    async fn tell_what_stays_gone(&self) {
        loop {
            let missed = self.missed.notified();
            let (said, next) = {
                let mut plan = self.plan.lock();
                let said = plan.overdue(self.begun.elapsed());
                said.iter().for_each(|said| self.metrics.set(said.kind(), plan.missing(said.kind())));
                (said, plan.next())
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

    /// Takes in whether the group is served.
    async fn hear_of_the_group(&self) {
        let Some(mut served) = self.served.clone() else { return };
        let mut last = false;
        loop {
            let now = *served.borrow_and_update();
            if now != last {
                last = now;
                let mut plan = self.plan.lock();
                plan.serve(now, self.begun.elapsed());
                if !now {
                    // What was told of it is missed no longer.
                    [Kind::Policy, Kind::Binding]
                        .into_iter()
                        .for_each(|kind| self.metrics.set(kind, plan.missing(kind)));
                }
                self.missed.notify_one();
            }
            if served.changed().await.is_err() {
                // Who told has ended with the process.
                return;
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
        let of = said.kind();
        let remedy = match &said {
            _ if of.is_webhook() => {
                format!("put it back with {}, and find in the audit log who deleted it", (self.repair)())
            }
            Said::Lost(_, name) if self.plan.lock().is_of_group(name) => format!("{APPLY_COMPAT}, {SEARCH}"),
            _ => format!("{APPLY}, {SEARCH}"),
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

/// What to do besides.
const SEARCH: &str = "and find in the audit log who deleted it; drawbridge doctor shows what differs";

/// Whether the API server serves a kind, as whoever watches it knows: not before it was listed.
#[must_use]
pub fn served(keeper: &Keeper, kind: StoreKind) -> watch::Receiver<bool> {
    let (says, of) = watch::channel(false);
    let says = Arc::new(says);
    keeper.join(Box::new(Served { kind, says: says.clone() }));
    keeper.read(|store| take_note(store, kind, &says));
    of
}

/// Who is told of it.
struct Served {
    kind: StoreKind,
    says: Arc<watch::Sender<bool>>,
}

impl Witness for Served {
    fn before(&mut self, _: &Store, _: &Change, _: bool) {}

    fn after(&mut self, _: &Store, _: &Change, _: Taken) {}

    fn reach(&mut self, store: &Store) {
        take_note(store, self.kind, &self.says);
    }
}

/// A kind that may not be read now says nothing new.
fn take_note(store: &Store, kind: StoreKind, says: &watch::Sender<bool>) {
    let now = match store.reach(kind) {
        Reach::Listed => true,
        Reach::Absent => false,
        Reach::Unknown => return,
    };
    says.send_if_modified(|last| std::mem::replace(last, now) != now);
}

#[cfg(test)]
mod tests;
