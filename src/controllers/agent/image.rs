//! Which image an Agent runs.
//!
//! In: the Agent, and the AgentBuild of its namespace that it names. Out: the image, or why there is none yet. Promise: a
//! Deployment that runs keeps its image while a build is under way, fails or is deleted; it is the image that this
//! controller put there, not what somebody else may have written since.

use serde_json::Value;

use super::claim::{Claim, Claims};
use super::subject::Subject;
use crate::domain::reason::Reason;
use crate::store::{CustomSeen, Kind, Reach};

/// What is known about the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers::agent) struct Image {
    /// What the Deployment is to run; `None` when nothing can run yet.
    pub(in crate::controllers::agent) runs: Option<String>,
    /// [`Reason::ImageAvailable`], or why the image of the build cannot be used.
    pub(in crate::controllers::agent) reason: Reason,
    /// The facts, and what to do.
    pub(in crate::controllers::agent) message: String,
    /// The build whose image it is.
    pub(in crate::controllers::agent) build: Option<String>,
}

/// The image of an Agent.
pub(in crate::controllers::agent) fn resolve(subject: &Subject<'_>, claims: &Claims<'_>) -> Image {
    let at = |pointer: &str| subject.object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(image) = at("/spec/imageSource/image").or_else(|| at("/spec/image")) {
        let message = format!("the Agent names image {image}");
        return Image { runs: Some(image.to_owned()), reason: Reason::ImageAvailable, message, build: None };
    }
    let Some(name) = subject.seen.build_ref() else {
        let message = "spec.imageSource names neither an image nor an AgentBuild".to_owned();
        return Image { runs: None, reason: Reason::InvalidSpec, message, build: None };
    };
    let store = subject.cx.store;
    let namespace = &subject.cx.key.namespace;
    let build = store.agent_build(namespace, name);
    let absent = || Err(missing(name, store.reach(Kind::AgentBuild)));
    match build.map_or_else(absent, |build| built(namespace, name, build.seen)) {
        Ok(image) => Image {
            message: format!("AgentBuild {name} made image {image}"),
            runs: Some(image),
            reason: Reason::ImageAvailable,
            build: Some(name.to_owned()),
        },
        Err((reason, message)) => {
            let runs = standing(subject, claims);
            let message = match &runs {
                Some(image) => format!("{message}; the Deployment keeps image {image}"),
                None => message,
            };
            Image { runs, reason, message, build: Some(name.to_owned()) }
        }
    }
}

fn missing(name: &str, reach: Reach) -> (Reason, String) {
    let message = match reach {
        Reach::Listed => format!(
            "there is no AgentBuild {name} in this namespace; create it, or correct spec.imageSource.buildRef.name"
        ),
        Reach::Absent => format!(
            "there is no AgentBuild {name}, because the API server does not serve AgentBuilds; install their definition"
        ),
        Reach::Unknown => format!("AgentBuild {name} cannot be read at present; drawbridge doctor shows more"),
    };
    (Reason::BuildNotFound, message)
}

/// The image of a build that exists, or why it cannot be used.
fn built(namespace: &str, name: &str, seen: &CustomSeen) -> Result<String, (Reason, String)> {
    let text = |key: &str| seen.status.get(key).and_then(Value::as_str).unwrap_or_default();
    let (phase, image) = (text("phase"), text("builtImage"));
    match phase {
        "Succeeded" if image.is_empty() => {
            Err((Reason::BuildHasNoImage, format!("AgentBuild {name} succeeded and says no image")))
        }
        "Succeeded" => Ok(image.to_owned()),
        "Building" => Err((Reason::BuildInProgress, format!("AgentBuild {name} is running"))),
        "Failed" => {
            let why = text("message");
            let why = if why.is_empty() { "it gives no reason" } else { why };
            let words = format!(
                "AgentBuild {name} failed: {why}. kubectl -n {namespace} describe agentbuild {name} shows its tasks"
            );
            Err((Reason::BuildFailed, words))
        }
        _ => Err((Reason::BuildPending, format!("AgentBuild {name} has not begun"))),
    }
}

/// The image that the Agent's Deployment was given last.
fn standing(subject: &Subject<'_>, claims: &Claims<'_>) -> Option<String> {
    if !matches!(claims.deployment, Claim::Ours(_)) {
        return None;
    }
    let told = subject.seen.status.get("image").and_then(Value::as_str).filter(|image| !image.is_empty());
    let found = || subject.own_deployment().and_then(|deployment| deployment.image.as_deref());
    told.or_else(found).map(str::to_owned)
}
