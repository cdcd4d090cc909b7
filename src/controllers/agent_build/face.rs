//! What differs between the kinds of AgentBuild; everything else of this folder serves all of them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::status::State;
use super::subject::Subject;
use super::{clean_up, prerequisites};
use crate::api::findings::{Fault, Findings};
use crate::api::secrets;
use crate::config::builds::{Builds, Settings};
use crate::controllers::agent_build::memory::Plan;
use crate::controllers::conditions::Condition;
use crate::controllers::scaffold::plan::Name;
use crate::domain::keys;
use crate::pipelines::agent_build::read;
use crate::pipelines::request::{BuildRequest, FrontEnd, KAGENTI as KAGENTI_FRONT};
use crate::store::Kind;

/// One kind of AgentBuild.
pub(in crate::controllers::agent_build) struct Face {
    /// The kind.
    pub(in crate::controllers::agent_build) kind: Kind,
    /// Who reconciles it.
    pub(in crate::controllers::agent_build) controller: Name,
    /// Whether the platform has it acted on.
    pub(in crate::controllers::agent_build) is_served: fn(&Settings) -> bool,
    /// What keeps it until what it made is gone.
    pub(in crate::controllers::agent_build) finalizer: &'static str,
    /// The words of its runs.
    pub(in crate::controllers::agent_build) front: &'static FrontEnd,
    /// The words of its status.
    pub(in crate::controllers::agent_build) words: Words,
    /// `spec.cleanupAfterBuild` where it says nothing.
    pub(in crate::controllers::agent_build) cleans_up: bool,
    /// What it asks of the engine, first attempt.
    pub(in crate::controllers::agent_build) read: fn(&Value, &str, &Builds) -> BuildRequest,
    /// What is wrong with it, should no webhook have judged it, and with what the platform holds for it.
    pub(in crate::controllers::agent_build) judge: fn(&Subject<'_>) -> Vec<Fault>,
    /// Takes out of what composition finds what `judge` names at its own places.
    pub(in crate::controllers::agent_build) leave: fn(&FrontEnd, &mut Findings),
    /// The Secrets that an object refers to.
    pub(in crate::controllers::agent_build) secrets: fn(&Value) -> BTreeSet<String>,
    /// The result of a build that ended before us, which is taken over as it is.
    pub(in crate::controllers::agent_build) inherits: fn(&Subject<'_>) -> Option<State>,
    /// Condition `Ready` of a build that has made its image, where more than the image is wanted.
    pub(in crate::controllers::agent_build) ready: fn(&Subject<'_>, &State) -> Option<Condition>,
    /// What to do about a build that is judged.
    pub(in crate::controllers::agent_build) settled: fn(&Subject<'_>) -> Plan,
}

/// The words that one kind's status has of its own.
pub(in crate::controllers::agent_build) struct Words {
    /// The member that holds the phase.
    pub(in crate::controllers::agent_build) phase: &'static str,
    /// The phase of a build that has made its image.
    pub(in crate::controllers::agent_build) succeeded: &'static str,
    /// The member that says when the last attempt began.
    pub(in crate::controllers::agent_build) began: &'static str,
    /// What names the credentials of the repository.
    pub(in crate::controllers::agent_build) git_secret: &'static str,
    /// What names the credentials of the registry.
    pub(in crate::controllers::agent_build) registry_secret: &'static str,
    /// How a build gets more time.
    pub(in crate::controllers::agent_build) more_time: &'static str,
}

/// AgentBuilds of `agent.kagenti.dev`.
pub(in crate::controllers::agent_build) static KAGENTI: Face = Face {
    kind: Kind::AgentBuild,
    controller: super::plan::NAME,
    is_served: |_| true,
    finalizer: keys::FINALIZER_AGENT,
    front: &KAGENTI_FRONT,
    words: Words {
        phase: "phase",
        succeeded: "Succeeded",
        began: "lastBuildTime",
        git_secret: "sourceCredentials",
        registry_secret: "imageRepoCredentials",
        more_time: "raise parameter pipeline-timeout",
    },
    cleans_up: true,
    read: |object, namespace, builds| read(object, namespace, &builds.view, 1).0,
    judge: |subject| prerequisites::template(subject).into_iter().chain(prerequisites::judged(subject)).collect(),
    leave: |_, _| (),
    secrets: secrets::of_build,
    inherits: |_| None,
    ready: |_, _| None,
    settled: clean_up::plan,
};
