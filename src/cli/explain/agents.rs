//! The Deployments that controllers make of the Agents of manifests, and what the webhook says to these Agents.

use serde_json::Value;

use crate::admission::verdict::Outcome;
use crate::api::review::Phase;
use crate::cli::offline::agents::{self, Made};
use crate::cli::offline::review;
use crate::cli::validate::refused_by_schema;
use crate::config::snapshot::Snapshot;

/// What a controller makes of an Agent of a manifest.
pub(super) struct OfAgent {
    pub(super) made: Made,
    /// The API server or the webhook refuses the Agent, so that nothing is made of it.
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
        let mut notes = vec![format!("{title}: a controller makes this Deployment of it")];
        if let Some((who, words)) = refusal(object, place, snapshot)? {
            notes.push(format!(
                "{title}: {who} refuses it, so that no Deployment is made of it until that is mended: {words}; all that is wrong with \
                 it: drawbridge validate -f"
            ));
        }
        all.push(OfAgent { made, refused: notes.len() > 1, notes });
    }
    Ok((all, unmade))
}

/// Who refuses an Agent, and why, on one line; the API server asks the schema of its definition before any webhook.
fn refusal(object: &Value, place: &str, snapshot: &Snapshot) -> anyhow::Result<Option<(&'static str, String)>> {
    let by_schema = refused_by_schema(object);
    if !by_schema.is_empty() {
        return Ok(Some(("the API server", by_schema.join("; "))));
    }
    for phase in [Phase::Mutate, Phase::Validate] {
        if let Outcome::Deny(denial) = review::own_kind(object, place, phase, snapshot)?.outcome {
            // A note is one line.
            let words = denial.words().lines().map(str::trim).collect::<Vec<_>>().join(" ");
            return Ok(Some(("the webhook", words)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::cli::io::Io;
    use crate::cli::{Cli, Exit, conclude};

    /// What `explain` or `validate` says about that input.
    fn said(command: &str, input: &str) -> (Exit, String) {
        let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let result = Cli::try_parse_from(["drawbridge", command, "-f", "-"]).unwrap().command.run(&mut io);
        let exit = conclude(result, &mut io);
        (exit, String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap())
    }

    /// What the schema of the definition does not allow is refused before a webhook is asked: no Deployment is made, and `explain` says so.
    #[test]
    fn an_agent_that_its_schema_refuses_is_told_so_in_the_words_of_validate() {
        const KAGENTI: &str = "apiVersion: agent.kagenti.dev/v1alpha1\nkind: Agent\nmetadata: {name: w, labels: {kagenti.io/type: agent}}\nspec: ";
        const BEEAI: &str = "apiVersion: beeai.dev/v1\nkind: Agent\nmetadata: {name: w}\nspec: ";
        const PODS: &str = "podTemplateSpec: {spec: {containers: [{name: agent, ports: [{containerPort: 8000}]}]}}";
        let kagenti = |more: &str| (KAGENTI, format!("{{imageSource: {{image: 'a:1'}}{more}}}"));
        let beeai = |spec: &str| (BEEAI, spec.to_owned());
        for ((agent, spec), wrong) in [
            (kagenti(&format!(", {PODS}")), None),
            (kagenti(&format!(", {PODS}, replicas: two")), Some("spec.replicas: ")),
            (kagenti(&format!(", {PODS}, description: 5")), Some("spec.description: ")),
            (kagenti(""), Some("spec.podTemplateSpec: is required")),
            (beeai("{image: 'a:1'}"), None),
            (beeai("{description: no image}"), Some("spec.image: is required")),
        ] {
            let input = format!("{agent}{spec}\n");
            let (exit, told) = said("explain", &input);
            assert_eq!(exit, if wrong.is_some() { Exit::Findings } else { Exit::Ok }, "{spec}: {told}");
            assert_eq!(told.contains("the API server refuses it"), wrong.is_some(), "{spec}: {told}");
            if let Some(wrong) = wrong {
                let (_, validated) = said("validate", &input);
                assert!(told.contains(wrong) && validated.contains(wrong), "{told}{validated}");
            }
        }
    }

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
