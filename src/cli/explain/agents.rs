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
            let named_later = object.pointer("/metadata/generateName").is_some_and(Value::is_string);
            unmade.push(if name.is_empty() && named_later {
                format!(
                    "{title} of {}: the API server makes its name (metadata.generateName), and its Deployment has that name, which nobody \
                     knows here; give it metadata.name to have it explained",
                    kind.group()
                )
            } else if name.is_empty() {
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::io::Io;
    use crate::cli::{Cli, Exit, conclude};

    #[test]
    fn an_agent_of_which_nothing_is_made_is_told_of_beside_what_is_explained() {
        const OTHER: &str =
            "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: a, image: a:1}]}\n";
        for (metadata, other, exit, says) in [
            ("{}", OTHER, Exit::Ok, "Agent default/ of agent.kagenti.dev: it has no name"),
            ("{generateName: w-}", OTHER, Exit::Ok, "the API server makes its name (metadata.generateName)"),
            ("{generateName: w-}", "", Exit::Usage, "the API server makes its name (metadata.generateName)"),
        ] {
            let input = format!(
                "apiVersion: agent.kagenti.dev/v1alpha1\nkind: Agent\nmetadata: {metadata}\nspec: {{imageSource: {{image: agent:1}}}}\n---\n{other}"
            );
            let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
            let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
            let result = Cli::try_parse_from(["drawbridge", "explain", "-f", "-"]).unwrap().command.run(&mut io);
            assert_eq!(conclude(result, &mut io), exit, "{metadata}");
            let (out, err) = (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap());
            assert_eq!(out.contains("Pod default/other"), !other.is_empty(), "{out}");
            assert!(err.contains(says), "{err}");
        }
    }
}
