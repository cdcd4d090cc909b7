//! `drawbridge explain`: the decision about a workload as a tree, and what would change it.
//!
//! In: manifests, or the name of an object of a cluster, and any number of `--what-if`. Out: per workload each gate, each resolved field with
//! the layer that set it and what it shadowed, the parts, and a summary of the patch. The engine answers; a live Pod is asked
//! about as it was before us, because that is what its controller sends again.

mod agents;
mod card;
pub mod environment;
mod kaos;
mod live;
mod print;
mod reach;
mod what_if;

use std::rc::Rc;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use super::cluster::{self, ClusterArgs, Unusable};
use super::given;
use super::io::{self, Io};
use super::offline::documents::{self, Piece, Source};
use super::offline::workload::{self, Subject};
use super::offline::world::{Facts, World};
use super::offline::{governed, misplaced, review};
use super::survey;
use super::{Exit, Format, Unreachable};
use crate::admission::explanation::Explanation;
use crate::admission::inject;
use crate::admission::verdict::Verdict;
use crate::config::enrolment::{self, Asks};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;
use what_if::Change;

/// Arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    /// Another question.
    #[command(subcommand)]
    pub about: Option<About>,
    /// An object of the cluster, such as pod/weather-agent-7d4f8b9c5-x2x9k, deployment/weather-agent, agent/weather-agent,
    /// agentruntime/weather-agent, agentcard/weather-agent-deployment-card, or of KAOS agent.kaos.tools/simple, modelapi/models or mcpserver/tools.
    #[arg(value_name = "TYPE/NAME", required_unless_present = "filename", conflicts_with = "filename")]
    pub object: Option<String>,
    /// Manifests instead of a cluster: files, folders, or - for standard input.
    #[arg(short, long, value_name = "PATH", value_parser = given::path, conflicts_with_all = ["kubeconfig", "context"])]
    pub filename: Vec<String>,
    /// Namespace; default is that of the context, and `default` for manifests.
    #[arg(short, long, value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// Show what would change with this label, annotation, gate, platform key or field of the AgentRuntime; can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub what_if: Vec<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Facts about the cluster, for manifests.
    #[command(flatten)]
    pub facts: Facts,
}

/// Questions that are not about one workload's injection.
#[derive(Debug, clap::Subcommand)]
pub enum About {
    /// Say whether one Pod, workload or address reaches another one, and which NetworkPolicies decide; exit code 1 when it does not.
    Reach(reach::Args),
    /// Print the environment that containers of Agents, ModelAPIs and MCPServers of KAOS find, as a JSON schema: for those who build images.
    Environment(environment::Args),
}

/// The answer about one workload.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// The tree.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The patch: operations by kind, and the paths they touch.
    pub patch: PatchSummary,
    /// The API server or the webhook refuses what the workload is made of; the notes say why.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// What was found on the live object, and what could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What `--what-if` would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<what_if::Difference>,
}

/// A patch in a few words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PatchSummary {
    /// How many operations of each kind.
    pub operations: std::collections::BTreeMap<String, usize>,
    /// The paths, in order.
    pub paths: Vec<String>,
}

impl PatchSummary {
    fn of(verdict: &Verdict) -> anyhow::Result<Self> {
        let mut summary = Self::default();
        for operation in verdict.operations() {
            let value = serde_json::to_value(&operation).context("patch")?;
            let text = |key: &str| value[key].as_str().unwrap_or("").to_owned();
            *summary.operations.entry(text("op")).or_default() += 1;
            summary.paths.push(text("path"));
        }
        Ok(summary)
    }
}

/// One workload to explain, and the world it lives in, which those of one input share until one of them is answered.
struct Question {
    world: Rc<World>,
    object: Value,
    namespace: String,
    /// What it is made of is refused.
    refused: bool,
    notes: Vec<String>,
}

/// Explains.
///
/// # Errors
/// When input, cluster or a `--what-if` cannot be used.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let Args { about, object, filename, namespace, what_if, output, cluster, facts } = args;
    match about {
        Some(About::Reach(args)) => return reach::run(args, io),
        Some(About::Environment(args)) => return environment::run(&args, io),
        None => {}
    }
    // A word that means nothing, and a name that nothing can have, is told without a cluster.
    let named = object.as_deref().map(live::named).transpose()?;
    if let Some((word, name)) = named
        && Kind::AgentCard.descriptor().words.contains(&word)
    {
        if !what_if.is_empty() {
            bail!("--what-if is about Pods that are injected; explain the workload of the card with it");
        }
        return card::explain((name, namespace.as_deref()), &cluster, output, io);
    }
    if let Some((kind, name)) = named.and_then(|(word, name)| Some((kaos::kind_of_word(word)?, name))) {
        if !what_if.is_empty() {
            bail!("--what-if is about Pods that are injected; explain the Deployment that is made of it with it");
        }
        return kaos::explain((kind, name), (namespace.as_deref(), &facts.operator_namespace), &cluster, output, io);
    }
    let changes = what_if.iter().map(|text| Change::parse(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let (mut of_kaos, mut left_out) = (Vec::new(), Vec::new());
    let (questions, reached) = match object {
        Some(object) => {
            let reading = async {
                let cluster = cluster.connect().await?;
                let namespace = namespace.unwrap_or_else(|| cluster.namespace.clone());
                let question = live::question(&cluster, &object, &namespace, &facts).await?;
                Ok((vec![question], Some(cluster)))
            };
            cluster::block_on(reading).map_err(or_manifests)?
        }
        None => {
            let Offline { questions, of_kaos: told, left_out: without } =
                offline(&filename, namespace.as_deref().unwrap_or("default"), &facts, io)?;
            (of_kaos, left_out) = (told, without);
            (questions, None)
        }
    };
    if questions.is_empty() && of_kaos.is_empty() {
        if let Some(why) = left_out.first() {
            bail!("{why}");
        }
        bail!(
            "no Pod and nothing that makes Pods in the input; explain reads Pods, Deployments, StatefulSets, DaemonSets, ReplicaSets, \
             ReplicationControllers, Jobs, CronJobs and Sandboxes, Agents of kagenti and BeeAI, and Agents, ModelAPIs and MCPServers of kaos.tools"
        );
    }
    // Whoever reads of the others would take it for the whole answer.
    for why in &left_out {
        writeln!(io.err, "drawbridge: {}", io::shown(why))?;
    }
    let told = questions.into_iter().map(|question| answer(question, &changes)).collect::<anyhow::Result<Vec<_>>>()?;
    let denied = told.iter().any(|told| told.refused || told.explanation.denial.is_some())
        || of_kaos.iter().any(kaos::Told::has_findings);
    let painter = print::Painter { colour: io.colour };
    let marks = kaos::marks(io);
    let all: Vec<_> = told.iter().map(Answer::Workload).chain(of_kaos.iter().map(Answer::Kaos)).collect();
    let text = |out: &mut dyn std::io::Write| {
        all.iter().try_for_each(|one| match one {
            Answer::Workload(told) => painter.tree(out, told),
            Answer::Kaos(told) => kaos::tree(out, told, &marks),
        })
    };
    io::print(output, &all, io.out, text)?;
    let exit = if denied { Exit::Findings } else { Exit::Ok };
    Ok(reached.map_or(exit, |cluster| cluster.seen_all_or_partial(exit)))
}

/// The error of a cluster that was not asked, or did not answer, with the other way that there is.
fn or_manifests(error: anyhow::Error) -> anyhow::Error {
    let way = "explain manifests with -f, without a cluster";
    match error.downcast::<Unreachable>() {
        Ok(unreachable) => unreachable.or(way).into(),
        Err(error) => match error.downcast::<Unusable>() {
            Ok(unusable) => unusable.or(way).into(),
            Err(error) => error,
        },
    }
}

/// What is said of one object.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'t> {
    Workload(&'t Told),
    Kaos(&'t kaos::Told),
}

/// What manifests ask about.
struct Offline {
    questions: Vec<Question>,
    of_kaos: Vec<kaos::Told>,
    /// Why nothing is said of an object that is meant to make Pods: no API server knows its type, or no Deployment is made of an Agent.
    left_out: Vec<String>,
}

fn offline(paths: &[String], namespace: &str, facts: &Facts, io: &mut Io<'_>) -> anyhow::Result<Offline> {
    let sources = documents::read(paths, io)?;
    let mut world = World::new(facts)?;
    let (mut objects, mut left_out) = (Vec::new(), Vec::new());
    for piece in sources.iter().flat_map(Source::pieces) {
        if let Piece::Document(document) = piece? {
            let place = || format!("{}:{}", document.file, document.line(&document.node));
            left_out.extend(documents::no_object(&document.node).map(|words| format!("{}: {words}", place())));
            objects.extend(documents::objects(&document.node).into_iter().map(|object| object.value));
        }
    }
    objects.iter().for_each(|object| world.observe(object, namespace));
    // What is read once is there in every copy.
    let snapshot = world.snapshot()?;
    let platform = world.platform()?;
    let of_kaos = kaos::of_manifests(&objects, namespace, (platform.kaos(), &facts.operator_namespace), &snapshot)?;
    let (made, unmade) = agents::of_agents(&objects, namespace, &snapshot)?;
    left_out.extend(unmade);
    left_out.extend(objects.iter().filter_map(|object| workload::unread(object, namespace)));
    made.iter().filter_map(|made| made.made.account.as_ref()).for_each(|account| world.observe(account, namespace));
    let world = Rc::new(world);
    let asks = |object, refused, notes| Question {
        world: Rc::clone(&world),
        object,
        namespace: namespace.to_owned(),
        refused,
        notes,
    };
    let subjects = objects.into_iter().filter(|object| Subject::of(object, namespace).is_some());
    let mut questions: Vec<_> = subjects.map(|object| asks(object, false, Vec::new())).collect();
    questions.extend(made.into_iter().map(|of| asks(of.made.deployment, of.refused, of.notes)));
    Ok(Offline { questions, of_kaos, left_out })
}

fn answer(question: Question, changes: &[Change]) -> anyhow::Result<Told> {
    let Question { world, object, namespace, refused, mut notes } = question;
    let mut world = Rc::unwrap_or_clone(world);
    let Answered { verdict, explanation, made, pod } = answered(&mut world, &object, &namespace)?;
    notes.extend(of_its_agent_runtime(&world, &object, &namespace)?);
    notes.extend(made);
    notes.push(format!("platform file: {}; feature gates: {}", world.platform.name, world.gates.name));
    let what_if = if changes.is_empty() {
        None
    } else {
        let mut object = object;
        for change in changes {
            change.apply(&mut world, &mut object, &namespace)?;
        }
        let tried = || changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let changed = answered(&mut world, &object, &namespace).with_context(tried)?;
        Some(what_if::Difference::between((&explanation, &pod), (&changed.explanation, &changed.pod))?)
    };
    Ok(Told { patch: PatchSummary::of(&verdict)?, explanation, refused, notes, what_if })
}

/// What the AgentRuntime that points at the workload has to do with its label, or why it has nothing to do with it.
fn of_its_agent_runtime(world: &World, object: &Value, namespace: &str) -> anyhow::Result<Option<String>> {
    let Some(subject) = Subject::of(object, namespace).filter(|_| object["kind"] != WorkloadKind::Pod.as_str()) else {
        return Ok(None);
    };
    let snapshot = world.snapshot()?;
    let Some(governor) = governed::governor(&subject, &snapshot) else {
        let misplaced =
            || misplaced::of(object, &subject).map(|told| format!("{}: {}", told.reason.code(), told.message));
        let asked = of_its_label(object, &subject, &snapshot);
        return Ok(match governed::asks(object, &subject, &snapshot) {
            Some(Asks::Enrolment(_) | Asks::Pending(_)) => asked,
            _ => misplaced().or(asked),
        });
    };
    let (name, code) = (&governor.name, Reason::LabelConflict.code());
    let of = |place: &Value, key: &str| survey::label(place, key).map(str::to_owned);
    // With our marker the label is ours, too, and about to follow the AgentRuntime.
    let ours = of(object, keys::LABEL_MANAGED_BY).as_deref() == Some(keys::MANAGED_BY_DRAWBRIDGE);
    let bare = subject.template(object).is_none_or(|template| of(template, keys::LABEL_TYPE).is_none());
    Ok(match (governed::conflict(object, &subject, &snapshot).filter(|_| !ours), governor.says.agent_type) {
        (Some(conflict), _) => Some(format!("{code}: AgentRuntime {name} has no effect: {conflict}")),
        (None, Some(given)) if bare => Some(format!(
            "AgentRuntime {name} governs it, and gives its Pods label {}={}",
            keys::LABEL_TYPE,
            given.as_str()
        )),
        (None, _) => None,
    })
}

/// What the label on the workload itself has to do with its Pods.
fn of_its_label(object: &Value, subject: &Subject, snapshot: &Snapshot) -> Option<String> {
    let (kind, namespace, name) = (subject.kind(), &subject.namespace, &subject.workload.name);
    let label = keys::LABEL_TYPE;
    Some(match governed::asks(object, subject, snapshot)? {
        Asks::Enrolment(agent_type) => {
            format!("label {label} on the {kind} itself enrols it, and gives its Pods {label}={}", agent_type.as_str())
        }
        Asks::Pending(agent_type) => {
            let code = Reason::EnrolmentPending.code();
            format!("{code}: {}", enrolment::pending(kind, namespace, name, agent_type))
        }
        Asks::Unknown => {
            let value = survey::label(object, label).unwrap_or_default();
            format!("{}: {}", Reason::UnknownValue.code(), enrolment::unknown(kind, value))
        }
        Asks::Nothing => format!(
            "label {label} on the {kind} itself is for discovery alone here (platform key enrolment.byWorkloadLabel is false)"
        ),
    })
}

/// What the engine says about one workload.
struct Answered {
    verdict: Verdict,
    explanation: Explanation,
    /// What a controller makes first.
    made: Option<String>,
    /// The Pod afterwards.
    pod: Value,
}

fn answered(world: &mut World, object: &Value, namespace: &str) -> anyhow::Result<Answered> {
    let subject = Subject::of(object, namespace).context("not a Pod and nothing that makes Pods")?;
    world.know_namespace(&subject.namespace);
    let governed = governed::with_type(object, &subject, &world.snapshot()?).into_owned();
    let object = &governed;
    let made = review::prepare(world, &subject, object)?
        .map(|name| format!("a controller makes ServiceAccount {}/{name} before the Pods", subject.namespace));
    let sent = subject.pod(object);
    let mut pod = sent.clone();
    let snapshot = world.snapshot()?;
    let undo = inject::taken_back(&pod, review::is_sent(&subject, &sent), &subject.namespace, &snapshot);
    json_patch::patch(&mut pod, &undo).context("what was injected cannot be taken out")?;
    let (verdict, mut explanation) = review::explain_as_sent(&subject, (&pod, &sent), &snapshot)?;
    explanation.subject = subject.title();
    json_patch::patch(&mut pod, &verdict.operations()).context("the patch does not apply")?;
    Ok(Answered { verdict, explanation, made, pod })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use crate::cli::io::Io;
    use crate::cli::{Cli, Exit, conclude};
    use crate::domain::keys;

    /// What is said of the only object of the input.
    fn explained(object: &Value) -> Value {
        let text = object.to_string();
        let (mut stdin, mut out, mut err) = (text.as_bytes(), Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let words = ["drawbridge", "explain", "-o", "json", "-n", "team1", "-f", "-"];
        let result = Cli::try_parse_from(words).unwrap().command.run(&mut io);
        assert_eq!(conclude(result, &mut io), Exit::Ok, "{}", String::from_utf8_lossy(&err));
        serde_json::from_slice::<Value>(&out).unwrap()[0].clone()
    }

    /// Whoever sends a status annotation without a container of ours has nothing taken back for it, as a template or as a Pod; of what was injected
    /// beforehand everything of ours goes.
    #[test]
    fn a_forged_annotation_is_explained_as_the_webhook_takes_it() {
        let claim = json!({"version": 1, "edits": [
            {"edit": "port", "container": "agent", "index": 0, "from": 9000, "to": 8000, "moved": {}}]});
        let marks = |status: Option<&str>| {
            let mut annotations = json!({keys::ANNOTATION_MODE: "proxy-sidecar"});
            if let Some(status) = status {
                annotations[keys::ANNOTATION_STATUS] = json!(status);
            }
            json!({"name": "weather", "labels": {keys::LABEL_TYPE: "agent"}, "annotations": annotations})
        };
        let spec = json!({"containers": [{"name": "agent", "image": "a:1", "ports": [{"containerPort": 8000}]}]});
        let of_pod = |status| json!({"apiVersion": "v1", "kind": "Pod", "metadata": marks(status), "spec": spec});
        let of_deployment = |status| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "weather"},
                "spec": {"template": {"metadata": marks(status), "spec": spec}}})
        };
        let claim = claim.to_string();
        for (plain, forged) in
            [(of_pod(None), of_pod(Some(claim.as_str()))), (of_deployment(None), of_deployment(Some(claim.as_str())))]
        {
            let (plain, forged) = (explained(&plain), explained(&forged));
            assert!(plain["edits"].to_string().contains("agent: port 8000 moved to 8001"), "{plain}");
            assert_eq!((&forged["edits"], &forged["parts"]), (&plain["edits"], &plain["parts"]));
        }
    }

    /// What was said of such input was that it has nothing which makes Pods, and what can be explained is a Deployment.
    #[test]
    fn what_is_no_workload_for_its_version_or_its_template_is_told_with_the_reason() {
        const OTHER: &str =
            "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: a, image: a:1}]}\n";
        for (head, says) in [
            (
                "apiVersion: v1\nkind: Deployment",
                "Deployment default/w: apiVersion: the API server knows no Deployment of v1;",
            ),
            ("kind: Deployment", "Deployment default/w: apiVersion: is missing; write apiVersion: apps/v1"),
            ("apiVersion: apps/v1\nkind: Deployment", "Deployment default/w: spec.template is missing or no mapping"),
            (
                "- apiVersion: v1\n- kind: Pod\n---",
                "-:1: an object is expected and a list was found; write each of its",
            ),
        ] {
            for (other, wanted) in [("", Exit::Usage), (OTHER, Exit::Ok)] {
                let input = format!("{head}\nmetadata: {{name: w}}\n{other}");
                let (mut stdin, mut out, mut err) = (input.as_bytes(), Vec::new(), Vec::new());
                let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
                let ran = Cli::try_parse_from(["drawbridge", "explain", "-f", "-"]).unwrap().command.run(&mut io);
                assert_eq!(conclude(ran, &mut io), wanted, "{input}");
                let err = String::from_utf8(err).unwrap();
                assert!(err.contains(says), "{says}: {err}");
            }
        }
    }

    /// A cluster whose settings somebody means to be judged by would be named and never asked.
    #[test]
    fn manifests_and_a_cluster_are_not_explained_at_once() {
        for words in [
            &["explain", "-f", "a.yaml", "--context", "c"][..],
            &["explain", "-f", "a.yaml", "--kubeconfig", "k"],
            &["explain", "reach", "a/b", "c/d", "-f", "a.yaml", "--context", "c"],
            &["migrate", "beeai", "-f", "a.yaml", "--context", "c"],
            &["graph", "-f", "a.yaml", "--context", "c"],
        ] {
            let parsed = Cli::try_parse_from(std::iter::once("drawbridge").chain(words.iter().copied()));
            let kind = parsed.map(|_| ()).map_err(|error| error.kind());
            assert_eq!(kind, Err(clap::error::ErrorKind::ArgumentConflict), "{words:?}");
        }
    }
}
