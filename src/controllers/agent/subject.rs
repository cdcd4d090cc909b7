//! One Agent and everything that has its name.

use serde_json::Value;

use super::face::Face;
use super::kaos::Look;
use crate::api::secrets;
use crate::controllers::agent::memory::Context;
use crate::controllers::agent::note::Note;
use crate::controllers::scaffold::consent::{Demand, Goes};
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::Item;
use crate::domain::keys;
use crate::store::objects::WorkloadRef;
use crate::store::{AgentDeploymentSeen, ClaimSeen, CustomSeen, Key, Kind, ServiceAccountSeen, ServiceSeen};
use crate::workloads::settings::Settings;

/// An object that is made beside a workload.
pub(in crate::controllers::agent) struct Other<'a> {
    pub(in crate::controllers::agent) kind: Kind,
    pub(in crate::controllers::agent) key: Key,
    /// Whose it is, with its uid; `None` when there is none.
    pub(in crate::controllers::agent) found: Option<(&'a ClaimSeen, &'a str)>,
}

/// What a plan is about.
pub(in crate::controllers::agent) struct Subject<'a> {
    pub(in crate::controllers::agent) cx: Context<'a>,
    /// Which kind of Agent it is.
    pub(in crate::controllers::agent) face: &'static Face,
    /// `metadata.uid`.
    pub(in crate::controllers::agent) uid: &'a str,
    /// `metadata.resourceVersion`.
    pub(in crate::controllers::agent) version: u64,
    pub(in crate::controllers::agent) seen: &'a CustomSeen,
    /// The Agent as `build` reads it.
    pub(in crate::controllers::agent) object: Value,
    /// Where its Deployment and its Service are.
    pub(in crate::controllers::agent) made: Key,
    /// What its kind had to know.
    pub(in crate::controllers::agent) look: Option<Box<Look>>,
    /// The other objects of its names, whoever's they are, in the order of its face.
    pub(in crate::controllers::agent) others: Vec<Other<'a>>,
    /// The Deployment of its name, whoever's it is.
    pub(in crate::controllers::agent) deployment: Option<WorkloadRef<'a>>,
    /// The Service of its name, whoever's it is, with its uid.
    pub(in crate::controllers::agent) service: Option<(&'a ServiceSeen, &'a str)>,
    /// The ServiceAccount of its name, whoever's it is, with its uid.
    pub(in crate::controllers::agent) account: Option<(&'a ServiceAccountSeen, &'a str)>,
}

impl<'a> Subject<'a> {
    /// The Agent of the item; `None` when there is none any more.
    pub(in crate::controllers::agent) fn of(cx: Context<'a>, face: &'static Face) -> Option<Self> {
        let Key { namespace, name } = cx.key;
        let agent = cx.store.custom(face.kind, namespace, name)?;
        let made = Key::new(namespace, &format!("{}{name}", face.prefix));
        let other = |(kind, prefix): &(Kind, &str)| {
            let key = Key::new(namespace, &format!("{prefix}{name}"));
            let found = cx.store.object(*kind, namespace, &key.name);
            let found = found.and_then(|(_, found)| Some((found.what.claim()?, &*found.uid)));
            Other { kind: *kind, key, found }
        };
        let mut subject = Self {
            cx,
            face,
            uid: agent.uid,
            version: agent.version,
            seen: agent.seen,
            object: agent.seen.object(namespace, name, agent.uid),
            look: None,
            others: face.others.iter().map(other).collect(),
            deployment: cx.store.workload(Kind::Deployment, namespace, &made.name),
            service: cx.store.service(namespace, &made.name).map(|service| (service.seen, service.uid)),
            account: cx.store.service_account(namespace, &made.name).map(|(seen, observed, _)| (seen, &*observed.uid)),
            made,
        };
        subject.look = face.look.map(|look| Box::new(look(&subject)));
        Some(subject)
    }

    /// What is kept of its own Deployment beyond what is kept of any.
    pub(in crate::controllers::agent) fn own_deployment(&self) -> Option<&'a AgentDeploymentSeen> {
        self.deployment.and_then(|deployment| deployment.seen.agent.as_deref())
    }

    /// Somebody who works on what it has made holds it still.
    pub(in crate::controllers::agent) fn is_paused(&self) -> bool {
        self.seen.annotations.get(keys::ANNOTATION_PAUSED).is_some_and(|value| value == "true")
    }

    /// Whether its Deployment was handed over to it while it ran, and it has not been changed since: what runs stays as it is.
    pub(in crate::controllers::agent) fn is_handed_over(&self) -> bool {
        let until = self.seen.annotations.get(keys::ANNOTATION_HANDED_OVER).and_then(|text| text.parse().ok());
        let never_applied = self.own_deployment().is_some_and(|own| own.fields.is_none());
        never_applied && until.is_some_and(|until: i64| self.seen.generation <= until)
    }

    /// Whether its Deployment was handed over to it, however long ago.
    pub(in crate::controllers::agent) fn was_handed_over(&self) -> bool {
        self.seen.annotations.contains_key(keys::ANNOTATION_HANDED_OVER)
    }

    /// What the platform decides about Agents.
    pub(in crate::controllers::agent) fn settings(&self) -> &'a Settings {
        &self.cx.facts.snapshot.builds.settings.workloads
    }

    /// The Secrets that it refers to and leaves to their own consent.
    pub(in crate::controllers::agent) fn demands(&self) -> Vec<Demand> {
        let [_, by] = keys::USABLE_BY;
        let consented = secrets::by_consent(&self.object);
        let named = (self.face.secrets)(&self.object).into_iter().filter(|name| consented.contains(name));
        named.map(|secret| Demand { secret, by, goes: Goes::Anywhere }).collect()
    }

    fn item(&self) -> Item {
        Item { controller: self.face.controller, key: self.cx.key.clone() }
    }

    /// The note of its last plan.
    pub(in crate::controllers::agent) fn note(&self) -> Option<&'a Note> {
        self.cx.note()
    }

    /// Its last write that came to nothing.
    pub(in crate::controllers::agent) fn trouble(&self) -> Option<&'a Trouble> {
        self.cx.memory.trouble(&self.item())
    }
}
