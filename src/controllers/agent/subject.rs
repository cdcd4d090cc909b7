//! One Agent and everything that has its name.

use serde_json::Value;

use crate::build::secrets;
use crate::build::settings::Settings;
use crate::controllers::scaffold::consent::{Demand, Goes};
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::note::Note;
use crate::controllers::scaffold::plan::{Context, Controller, Item};
use crate::controllers::scaffold::world::WorkloadRef;
use crate::domain::keys;
use crate::store::{AgentDeploymentSeen, CustomSeen, Key, Kind, ServiceAccountSeen, ServiceSeen};

/// What a plan is about.
pub(super) struct Subject<'a> {
    pub(super) cx: Context<'a>,
    /// `metadata.uid`.
    pub(super) uid: &'a str,
    /// `metadata.resourceVersion`.
    pub(super) version: u64,
    pub(super) seen: &'a CustomSeen,
    /// The Agent as `build` reads it.
    pub(super) object: Value,
    /// The Deployment of its name, whoever's it is.
    pub(super) deployment: Option<WorkloadRef<'a>>,
    /// The Service of its name, whoever's it is, with its uid.
    pub(super) service: Option<(&'a ServiceSeen, &'a str)>,
    /// The ServiceAccount of its name, whoever's it is, with its uid.
    pub(super) account: Option<(&'a ServiceAccountSeen, &'a str)>,
}

impl<'a> Subject<'a> {
    /// The Agent of the item; `None` when there is none any more.
    pub(super) fn of(cx: Context<'a>) -> Option<Self> {
        let Key { namespace, name } = cx.key;
        let agent = cx.world.agent(namespace, name)?;
        Some(Self {
            cx,
            uid: agent.uid,
            version: agent.version,
            seen: agent.seen,
            object: agent.seen.object(namespace, name, agent.uid),
            deployment: cx.world.workload(Kind::Deployment, namespace, name),
            service: cx.world.service(namespace, name).map(|service| (service.seen, service.uid)),
            account: cx.world.service_account(namespace, name).map(|(seen, observed, _)| (seen, &*observed.uid)),
        })
    }

    /// What is kept of its own Deployment beyond what is kept of any.
    pub(super) fn own_deployment(&self) -> Option<&'a AgentDeploymentSeen> {
        self.deployment.and_then(|deployment| deployment.seen.agent.as_deref())
    }

    /// What the platform decides about Agents.
    pub(super) fn settings(&self) -> &'a Settings {
        &self.cx.facts.snapshot.builds.settings
    }

    /// The Secrets that it refers to and leaves to their own consent.
    pub(super) fn demands(&self) -> Vec<Demand> {
        let [_, by] = keys::USABLE_BY;
        let consented = secrets::by_consent(&self.object);
        let named = secrets::of_agent(&self.object).into_iter().filter(|name| consented.contains(name));
        named.map(|secret| Demand { secret, by, goes: Goes::Anywhere }).collect()
    }

    fn item(&self) -> Item {
        Item { controller: Controller::Agent, key: self.cx.key.clone() }
    }

    /// The note of its last plan.
    pub(super) fn note(&self) -> Option<&'a Note> {
        self.cx.world.memory.of(&self.item())
    }

    /// Its last write that came to nothing.
    pub(super) fn trouble(&self) -> Option<&'a Trouble> {
        self.cx.world.memory.trouble(&self.item())
    }
}
