//! What differs between the kinds of Agent; everything else of this folder serves all of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::claim::{Claim, Claims};
use super::image::{self, Image};
use super::kaos::Look;
use super::status::{self, Verdict};
use super::subject::Subject;
use super::turns::Inherits;
use super::wanted::Wanted;
use crate::api::findings::Findings;
use crate::api::secrets;
use crate::config::{builds, namesakes};
use crate::controllers::agent::note::Compared;
use crate::controllers::scaffold::plan::{Name, Op};
use crate::domain::keys;
use crate::store::Kind;
use crate::workloads::agent::{AgentChange, validate, workload};
use crate::workloads::request::WorkloadRequest;

/// One kind of Agent.
pub(in crate::controllers::agent) struct Face {
    /// The kind.
    pub(in crate::controllers::agent) kind: Kind,
    /// Who reconciles it.
    pub(in crate::controllers::agent) controller: Name,
    /// What stands before its name in the names of its Deployment and its Service.
    pub(in crate::controllers::agent) prefix: &'static str,
    /// What is made for it besides Deployment, Service and ServiceAccount: the kind, and what stands before its name.
    pub(in crate::controllers::agent) others: &'static [(Kind, &'static str)],
    /// What its kind has to know before anything is decided.
    pub(in crate::controllers::agent) look: Option<fn(&Subject<'_>) -> Look>,
    /// Whether the platform has it acted on.
    pub(in crate::controllers::agent) is_served: fn(&builds::Settings) -> bool,
    /// What keeps it until what it made is gone.
    pub(in crate::controllers::agent) finalizer: &'static str,
    /// What is wrong with it, should no webhook have judged it, and what relaxes its lock-down.
    pub(in crate::controllers::agent) judge: fn(&Subject<'_>) -> Findings,
    /// Which image it runs.
    pub(in crate::controllers::agent) image: fn(&Subject<'_>, &Claims<'_>) -> Image,
    /// What it asks of the workload engine, with that image.
    pub(in crate::controllers::agent) request: fn(&Subject<'_>, &str) -> WorkloadRequest,
    /// The Secrets that an object refers to.
    pub(in crate::controllers::agent) secrets: fn(&Value) -> BTreeSet<String>,
    /// Whether what is there is left as it is, however it is.
    pub(in crate::controllers::agent) keeps: fn(&Subject<'_>, &Claims<'_>) -> bool,
    /// Whether what runs it comes from before us and is to roll though nobody has changed the object.
    pub(in crate::controllers::agent) inherits: fn(&Subject<'_>) -> Inherits,
    /// What brings its status up to date.
    pub(in crate::controllers::agent) status: fn(&Subject<'_>, &Verdict<'_>) -> Vec<Op>,
    /// Whether what runs it is left as it is, though something else is wanted.
    pub(in crate::controllers::agent) leaves: fn(&Subject<'_>, &Wanted) -> Left,
    /// Whether what was made for it is left to the garbage collector when it goes.
    pub(in crate::controllers::agent) collected: bool,
    /// What to do about somebody else's Service of its name.
    pub(in crate::controllers::agent) service_remedy: &'static str,
}

/// What becomes of what runs an object, where that is not what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::controllers::agent) enum Leaves {
    /// It is written.
    #[default]
    Written,
    /// It stays as it is.
    AsItIs,
    /// It has to be read first.
    Unread,
}

/// The same, and what was found on the way.
#[derive(Debug, Clone, Default)]
pub(in crate::controllers::agent) struct Left {
    pub(in crate::controllers::agent) how: Leaves,
    /// How it differs; for later plans.
    pub(in crate::controllers::agent) compared: Option<Compared>,
}

/// Agents of `agent.kagenti.dev`.
pub(in crate::controllers::agent) static KAGENTI: Face = Face {
    kind: Kind::Agent,
    controller: super::plan::NAME,
    prefix: namesakes::prefix(Kind::Agent),
    others: &[],
    look: None,
    is_served: |_| true,
    finalizer: keys::FINALIZER_AGENT,
    judge: |subject| {
        let server = subject.cx.facts.snapshot.view.server_version;
        validate(&AgentChange { object: &subject.object, old: None, builds: None, server }, subject.settings())
    },
    image: image::resolve,
    request: |subject, image| workload(&subject.object, Some(image)),
    secrets: secrets::of_agent,
    keeps: |subject, claims| matches!(claims.deployment, Claim::Ours(_)) && subject.is_handed_over(),
    inherits: |_| Inherits::No,
    status: status::update,
    leaves: |_, _| Left::default(),
    collected: false,
    service_remedy: "delete or rename it, or set spec.servicePorts: [] if the Agent needs none",
};
