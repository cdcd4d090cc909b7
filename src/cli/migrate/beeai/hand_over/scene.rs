//! What stands under one name: both Agents, and what runs them.

use serde_json::Value;

use super::desk::Desk;
use super::mark::Mark;
use super::plan::Direction;
use crate::cli::cluster::Answer;
use crate::cli::survey::{annotation, phase, text};
use crate::domain::keys;
use crate::pipelines::beeai_build::deploy;
use crate::store::Kind;

/// What stands under one name.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The kind of the Agent of BeeAI.
    pub(super) kind: Kind,
    /// The Agent of BeeAI.
    pub(super) old: Option<Value>,
    /// The Agent of `agent.kagenti.dev`.
    pub(super) new: Option<Value>,
    /// The Deployment and the Service.
    pub(super) parts: Vec<(Kind, Option<Value>)>,
    /// What the builds of BeeAI that keep an Agent of this name would do.
    pub(super) keepers: Vec<String>,
    /// What could not be read, and what the API server says to what would be made.
    pub(super) refused: Vec<String>,
}

impl Scene {
    /// Reads it.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub(super) async fn read(
        desk: &impl Desk,
        (namespace, kind, name): (&str, Kind, &str),
        builds: &[Value],
    ) -> anyhow::Result<Self> {
        let mut refused = Vec::new();
        let mut all = Vec::new();
        for of in [kind, Kind::Agent, Kind::Deployment, Kind::Service] {
            let path = format!("{}/{name}", of.path(namespace));
            all.push(match desk.get(&path).await? {
                Answer::Object(mut object) => {
                    object["apiVersion"] = of.api_version().into();
                    object["kind"] = of.as_str().into();
                    Some(object)
                }
                Answer::Absent => None,
                Answer::Refused(code, message) => {
                    refused.push(format!(
                        "{} {name} cannot be read ({code}: {message}). What to do: run this as somebody who may read it",
                        of.as_str()
                    ));
                    None
                }
            });
        }
        let mut all = all.into_iter();
        let mut next = || all.next().flatten();
        let (old, new) = (next(), next());
        let parts = vec![(Kind::Deployment, next()), (Kind::Service, next())];
        let own = builds.iter().filter(|build| group(build) == kind.group() && deploy::target(build) == Some(name));
        let keepers = own.map(keeps).collect();
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned(), kind, old, new, parts, keepers, refused })
    }

    /// Asks the API server what it would say to the Agent that is made on the way there, where one would be.
    ///
    /// # Errors
    /// When the cluster does not answer.
    pub(super) async fn judged(&mut self, desk: &impl Desk, direction: Direction) -> anyhow::Result<()> {
        let Some((path, body)) = direction.makes(self) else { return Ok(()) };
        if let Answer::Refused(code, message) = desk.dry_run(&path, &body).await? {
            self.refused.push(format!(
                "the API server would refuse Agent {} of {} ({code}: {message}). What to do: settle that, and run this again",
                self.name,
                group(&body)
            ));
        }
        Ok(())
    }

    /// The mark of the new Agent.
    pub(super) fn mark(&self) -> Option<Mark> {
        Mark::on(self.new.as_ref()?)
    }
}

/// The API group of an object.
pub(super) fn group(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

/// Its uid; empty for none.
pub(super) fn uid(object: Option<&Value>) -> &str {
    object.map_or("", |object| text(object, "/metadata/uid"))
}

/// Whether it is being deleted.
pub(super) fn leaves(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// Whether somebody holds an Agent still.
pub(super) fn is_paused(agent: &Value) -> bool {
    annotation(agent, keys::ANNOTATION_PAUSED) == Some("true")
}

fn keeps(build: &Value) -> String {
    let name = text(build, "/metadata/name");
    let does = match phase(build) {
        "Succeeded" => "keeps this Agent, and would make it again once it is gone",
        "Building" => "is running, and writes this Agent once it has ended",
        _ => "writes this Agent once it has succeeded",
    };
    format!(
        "AgentBuild {name} {does}. What to do: kubectl -n {} patch agentbuilds.{} {name} --type merge -p \
         '{{\"spec\":{{\"deployAfterBuild\":false}}}}', and build it there from then on (drawbridge migrate beeai --live prints the manifest)",
        text(build, "/metadata/namespace"),
        group(build)
    )
}
