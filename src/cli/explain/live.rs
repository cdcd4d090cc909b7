//! A question about an object of a cluster: the object, and the facts a webhook replica would have.

use std::rc::Rc;

use anyhow::{Context, bail};
use serde_json::Value;

use super::Question;
use crate::cli::Unseen;
use crate::cli::cluster::watch::Collection;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::given;
use crate::cli::io::shown;
use crate::cli::offline::agents;
use crate::cli::offline::world::{Facts, World};
use crate::cli::scope;
use crate::cli::survey::{self, AGENT_RUNTIME_WORDS, TYPES, Type};
use crate::config::inputs::{AgentRuntimeInput, Target};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;

/// Reads the object and everything its decision depends on; for an AgentRuntime that is the workload it points at.
pub(super) async fn question(
    cluster: &Cluster,
    object: &str,
    namespace: &str,
    facts: &Facts,
) -> anyhow::Result<Question> {
    let (word, name) = named(object)?;
    let mut notes = Vec::new();
    cluster.expect_namespace(namespace, &mut notes).await?;
    let (kind, name) = if AGENT_RUNTIME_WORDS.contains(&word) {
        let target = target(cluster, namespace, name).await?;
        let kind = Type::of_kind(target.kind).context("every target is a type that makes Pods")?;
        (kind, target.name.to_string())
    } else if is_agent(word) {
        let kind = Type::of_kind(WorkloadKind::Deployment).context("a Deployment makes Pods")?;
        made(cluster, (kind, namespace), name, &mut notes).await?;
        (kind, name.to_owned())
    } else {
        (of_word(word)?, name.to_owned())
    };
    let found = existing(cluster, &kind.collection(namespace), &name).await?;
    let mut world = World::new(facts)?;
    survey::facts(cluster, &mut world, namespace, &mut notes).await?;
    let scope = scope::read(cluster, &facts.operator_namespace).await?;
    if !scope.watches(namespace) {
        let reason = Reason::NamespaceNotWatched;
        let watched = scope.words();
        notes.push(format!(
            "{}: {} (watched: {watched}); the decision is what it would be there",
            reason.code(),
            reason.sentence()
        ));
    }
    if found["kind"] == "Pod" {
        notes.extend(recorded(&found));
    }
    Ok(Question { world: Rc::new(world), object: found, namespace: namespace.to_owned(), refused: false, notes })
}

/// The type and the name of an object, where both can mean something; nobody is asked.
pub(super) fn named(object: &str) -> anyhow::Result<(&str, &str)> {
    let is_type = |word: &str| words().any(|known| known == word);
    let shown = shown(object);
    match object.split_once('/') {
        Some((word, "")) if is_type(word) => bail!("{shown} names no object; write {word}/NAME"),
        Some((word, name)) if is_type(word) => match given::name(name) {
            Ok(_) => Ok((word, name)),
            Err(why) => bail!("{shown} names no object: {why}; write {word}/NAME"),
        },
        None if is_type(object) => bail!("{shown} is not TYPE/NAME; write {object}/NAME"),
        _ if is_file(object) => bail!("{shown} is not TYPE/NAME; for manifests write -f {shown}"),
        Some((word, name)) => of_word(word).map(|_| (word, name)),
        None => bail!("{shown} is not TYPE/NAME, such as pod/{shown}"),
    }
}

/// Every word that stands for a type which is explained.
fn words() -> impl Iterator<Item = &'static str> {
    let kinds = agents::KINDS.into_iter().chain(OTHERS).flat_map(|kind| kind.descriptor().words);
    TYPES.iter().flat_map(|known| known.words).chain(AGENT_RUNTIME_WORDS).chain(kinds).copied()
}

/// Types that are explained in another way.
const OTHERS: [Kind; 4] = [Kind::AgentCard, Kind::KaosAgent, Kind::ModelApi, Kind::McpServer];

/// Whether a person means an Agent of which a Deployment of its name is made.
fn is_agent(word: &str) -> bool {
    agents::KINDS.iter().any(|kind| kind.descriptor().words.contains(&word))
}

/// The Deployment of an Agent must be there; where it is not, the Agent's status says why.
async fn made(
    cluster: &Cluster,
    (kind, namespace): (&Type, &str),
    name: &str,
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    let path = format!("{}/{name}", kind.collection(namespace).path());
    let found = cluster.get(&path).await?;
    if found == Answer::Absent {
        bail!(
            "Deployment {namespace}/{name} does not exist: no Agent of that name is there, or nothing was made of it yet. What to do: \
             kubectl -n {namespace} get agents {name} -o yaml; its conditions say what it waits for"
        );
    }
    if let Answer::Object(deployment) = &found
        && !is_made_of(deployment, name)
    {
        bail!(
            "Deployment {namespace}/{name} exists, and no Agent controls it: it was not made of an Agent of that name. What to do: drawbridge \
             explain -n {namespace} deployment/{name} explains its Pods; where the Agent is there, its conditions say what stands in its way"
        );
    }
    notes.push(format!("Agent {namespace}/{name}: a controller makes Deployment {name} of it"));
    Ok(())
}

/// Whether an Agent of that name controls the Deployment: what somebody else made under the name says nothing about the Agent.
fn is_made_of(deployment: &Value, name: &str) -> bool {
    survey::controller(deployment)
        .is_some_and(|owner| agents::kind_of(owner).is_some() && survey::text(owner, "/name") == name)
}

/// Whether somebody means a file.
fn is_file(object: &str) -> bool {
    let extension = std::path::Path::new(object).extension();
    extension.is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|one| extension.eq_ignore_ascii_case(one)))
}

fn of_word(word: &str) -> anyhow::Result<&'static Type> {
    if let Some(found) = Type::of_word(word) {
        return Ok(found);
    }
    let shown = shown(word);
    if BUILDS.contains(&word.split('.').next().unwrap_or_default()) {
        bail!("{shown}: what an AgentBuild is built of is shown by drawbridge build explain NAME");
    }
    match nearest(word, words()) {
        Some(near) => bail!("{shown} is not a type that makes Pods, nor an AgentRuntime; did you mean {near}?"),
        None => bail!(
            "{shown} is not a type that makes Pods, nor an AgentRuntime, an Agent, an AgentCard or an object of KAOS; drawbridge explain --help \
             names the types"
        ),
    }
}

/// What a person calls an AgentBuild, whatever its group.
const BUILDS: [&str; 2] = ["agentbuild", "agentbuilds"];

/// What an AgentRuntime points at.
async fn target(cluster: &Cluster, namespace: &str, name: &str) -> anyhow::Result<Target> {
    let object = existing(cluster, &survey::agent_runtimes(namespace), name).await?;
    let says = AgentRuntimeInput::of_object(&object);
    says.target.with_context(|| {
        let faults: Vec<_> =
            says.faults.iter().map(|fault| format!("{}: {} ({})", fault.field, fault.message, fault.seen)).collect();
        format!("AgentRuntime {namespace}/{name} points at nothing that can be enrolled: {}", faults.join("; "))
    })
}

/// An object that must be there.
async fn existing(cluster: &Cluster, collection: &Collection, name: &str) -> anyhow::Result<Value> {
    let (kind, namespace) = (collection.kind, &collection.namespace);
    match cluster.get(&format!("{}/{name}", collection.path())).await? {
        Answer::Object(found) => Ok(found),
        Answer::Absent => bail!("{kind} {namespace}/{name} does not exist; name the namespace with -n"),
        Answer::Refused(code, message) => {
            Err(Unseen(format!("{kind} {namespace}/{name} cannot be read ({code}: {message})")).into())
        }
    }
}

/// What the live Pod says about its own injection.
fn recorded(pod: &Value) -> Vec<String> {
    let annotation =
        |key: &str| pod.pointer("/metadata/annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
    let parts = if survey::is_injected(pod) { "the sidecars" } else { "no sidecars" };
    let mut notes =
        vec![format!("the live Pod carries {parts}; the decision is for a Pod made now from the same template")];
    if let Some(hash) = annotation(keys::ANNOTATION_CONFIG_HASH) {
        notes.push(format!("the live Pod was made with configuration {hash}"));
    }
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).into_iter().flatten();
    if gates.filter_map(|gate| gate["name"].as_str()).any(|name| name == keys::SCHEDULING_GATE) {
        notes.push(format!(
            "the live Pod waits behind {}: it was created while no webhook answered; delete it if nothing controls it",
            keys::SCHEDULING_GATE
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::is_made_of;
    use crate::cli::io::Io;
    use crate::cli::{Cli, Exit, conclude};

    #[test]
    fn a_deployment_of_somebody_else_is_not_told_of_as_an_agents() {
        let owned = |api: &str, kind: &str, name: &str, controls: bool| {
            let owner = json!({"apiVersion": api, "kind": kind, "name": name, "uid": "u", "controller": controls});
            json!({"metadata": {"name": "weather", "ownerReferences": [owner]}})
        };
        for (api, kind, name, controls, wanted) in [
            ("agent.kagenti.dev/v1alpha1", "Agent", "weather", true, true),
            ("beeai.dev/v1", "Agent", "weather", true, true),
            ("beeai.beeai.dev/v1", "Agent", "weather", true, true),
            ("agent.kagenti.dev/v1alpha1", "Agent", "weather", false, false),
            ("agent.kagenti.dev/v1alpha1", "Agent", "other", true, false),
            ("kaos.tools/v1alpha1", "Agent", "weather", true, false),
            ("example.com/v1", "Agent", "weather", true, false),
        ] {
            assert_eq!(
                is_made_of(&owned(api, kind, name, controls), "weather"),
                wanted,
                "{api} {kind} {name} {controls}"
            );
        }
        for alone in [json!({"metadata": {"name": "weather"}}), Value::Null] {
            assert!(!is_made_of(&alone, "weather"), "{alone}");
        }
    }

    /// The kubeconfig is not there: whoever looked for it would say so.
    #[test]
    fn a_word_that_means_nothing_is_told_without_a_cluster() {
        for (object, words) in [
            ("foo/x", "foo is not a type that makes Pods, nor an AgentRuntime"),
            ("deploymnt/x", "did you mean deployment?"),
            ("service/x", "drawbridge explain --help names the types"),
            ("agentcrad/x", "did you mean agentcard?"),
            ("mcpservr/x", "did you mean mcpserver?"),
            ("agentbuild/x", "is shown by drawbridge build explain NAME"),
            ("agentbuilds.beeai.dev/x", "is shown by drawbridge build explain NAME"),
            ("agentcard/", "agentcard/ names no object; write agentcard/NAME"),
            ("modelapi/", "modelapi/ names no object; write modelapi/NAME"),
            ("agent.kaos.tools/A b", "names no object: a name is a DNS subdomain"),
            ("pod/a/b", "names no object: a name is a DNS subdomain"),
            ("deployment/x?watch=1", "write deployment/NAME"),
            ("pod", "pod is not TYPE/NAME; write pod/NAME"),
            ("agentcard", "write agentcard/NAME"),
            ("pod/", "write pod/NAME"),
            ("agent", "agent is not TYPE/NAME; write agent/NAME"),
            ("agent.beeai.dev/chat", "no usable kubeconfig: /nowhere/at-all: "),
            ("ok.yaml", "for manifests write -f ok.yaml"),
            ("./manifests/ok.yaml", "for manifests write -f ./manifests/ok.yaml"),
            ("weather", "weather is not TYPE/NAME, such as pod/weather"),
            ("pod/ok.yaml", "no usable kubeconfig: /nowhere/at-all: "),
        ] {
            let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
            let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
            let words_given = ["drawbridge", "explain", object, "--kubeconfig", "/nowhere/at-all"];
            let result = Cli::try_parse_from(words_given).unwrap().command.run(&mut io);
            assert_eq!(conclude(result, &mut io), Exit::Usage, "{object}");
            let err = String::from_utf8(err).unwrap();
            assert!(err.contains(words), "{object}: {err}");
            let asks = ["pod/ok.yaml", "agent.beeai.dev/chat"].contains(&object);
            assert_eq!(err.contains("kubeconfig"), asks, "{object}: {err}");
        }
    }
}
