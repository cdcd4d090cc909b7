//! The Deployments that controllers make of the Agents of manifests, and what the webhook says to these Agents.

use serde_json::Value;

use crate::admission::verdict::Outcome;
use crate::api::review::Phase;
use crate::cli::offline::agents::{self, Made};
use crate::cli::offline::review;
use crate::config::snapshot::Snapshot;

/// What a controller makes of an Agent of a manifest.
pub(super) struct OfAgent {
    pub(super) made: Made,
    /// The webhook refuses the Agent, so that nothing is made of it.
    pub(super) refused: bool,
    pub(super) notes: Vec<String>,
}

/// The Deployments that controllers make of the Agents, where the input does not have them itself; and why there is none of the others.
pub(super) fn of_agents(
    objects: &[Value],
    namespace: &str,
    snapshot: &Snapshot,
) -> anyhow::Result<(Vec<OfAgent>, Vec<String>)> {
    let (mut all, mut unmade) = (Vec::new(), Vec::new());
    let settings = &snapshot.builds.settings.workloads;
    let deployments = agents::deployments(objects, namespace);
    for object in objects {
        let Some(kind) = agents::kind_of(object) else { continue };
        let (place, name) = agents::place(object, namespace);
        if deployments.contains(&(place.to_owned(), name.to_owned())) {
            continue;
        }
        let title = format!("Agent {place}/{name}");
        let Some(made) = agents::made(object, namespace, settings) else {
            unmade.push(if name.is_empty() {
                format!("{title} of {}: it has no name, so that no Deployment can be made of it; give it metadata.name", kind.group())
            } else {
                format!(
                    "{title} of {}: no Deployment is made of it, since platform key beeai.enabled is false; ask whoever runs Drawbridge to \
                     set it to true",
                    kind.group()
                )
            });
            continue;
        };
        let mut denial = None;
        for phase in [Phase::Mutate, Phase::Validate] {
            if let Outcome::Deny(denied) = review::own_kind(object, place, phase, snapshot)?.outcome {
                denial = denial.or(Some(denied));
            }
        }
        let mut notes = vec![format!("{title}: a controller makes this Deployment of it")];
        if let Some(denial) = denial {
            // A note is one line.
            let words = denial.words().lines().map(str::trim).collect::<Vec<_>>().join(" ");
            notes.push(format!(
                "{title}: the webhook refuses it, so that no Deployment is made of it until that is mended: {}; all that is wrong with \
                 it: drawbridge validate -f",
                words
            ));
        }
        all.push(OfAgent { made, refused: notes.len() > 1, notes });
    }
    Ok((all, unmade))
}
