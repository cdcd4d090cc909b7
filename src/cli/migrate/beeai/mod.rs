//! `drawbridge migrate beeai`: manifests of BeeAI in, those of `agent.kagenti.dev` out, and a report of what has no counterpart.
//!
//! ```text
//! files ────────────┐
//! cluster (--live) ─┴─► agent, build (pure) ─► manifests, builds first · report on standard error
//! cluster ─► hand_over (plan; --yes: carried out, step by step; --undo: the other way)
//! ```
//!
//! Promises: nothing is written to a cluster without `--hand-over --yes`; what cannot be said in the other group is named, never dropped in
//! silence; no value of a Secret is read.

mod agent;
mod build;
mod hand_over;
mod live;

#[cfg(test)]
mod tests;

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use crate::cli::cluster::{self, ClusterArgs};
use crate::cli::io::{self, Io, shown, shown_lines};
use crate::cli::offline::documents;
use crate::cli::survey::text;
use crate::cli::yaml::emit;
use crate::cli::{Exit, Format, given};
use crate::domain::keys;

/// Arguments of `migrate beeai`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Manifests: files, folders, or - for standard input.
    #[arg(short, long, value_name = "PATH", value_parser = given::path, conflicts_with_all = ["live", "hand_over", "kubeconfig", "context"])]
    pub filename: Vec<String>,
    /// Read the objects from a cluster, and say in which order to apply what they become.
    #[arg(long)]
    pub live: bool,
    /// Give the running Deployment and Service of each Agent of a namespace to an Agent of agent.kagenti.dev, without restarting a Pod;
    /// without --yes the plan is printed.
    #[arg(long)]
    pub hand_over: bool,
    /// Give back what --hand-over gave: each Agent of BeeAI is made again as it was and gets its Deployment and Service, without restarting a
    /// Pod; without --yes the plan is printed.
    #[arg(long, requires = "hand_over")]
    pub undo: bool,
    /// Carry the plan of --hand-over out, or go on with it where it was interrupted.
    #[arg(long, requires = "hand_over")]
    pub yes: bool,
    /// Only this Agent.
    #[arg(long, value_name = "NAME", requires = "hand_over", value_parser = given::name)]
    pub name: Option<String>,
    /// Namespace: of objects in files that name none, and to be read from a cluster; default is that of the context.
    #[arg(short, long, value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// Format of the report.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// One thing that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Remark {
    /// Such as `AgentBuild team1/weather`.
    pub object: String,
    /// Where in it.
    pub path: String,
    /// What has no counterpart, or means something else, and what to do.
    pub text: String,
}

/// What becomes of some objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Migrated {
    /// The manifests, in the order in which they are applied: builds, then Agents.
    pub manifests: Vec<Value>,
    /// What a person should know.
    pub remarks: Vec<Remark>,
}

/// Runs it.
///
/// # Errors
/// When the input cannot be read, or the cluster does not answer.
pub(super) fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    if args.hand_over {
        return cluster::block_on(async {
            let cluster = args.cluster.connect().await?;
            hand_over::run(&cluster, &args, io).await
        });
    }
    if args.live {
        let (migrated, order, cluster) = cluster::block_on(async {
            let cluster = args.cluster.connect().await?;
            let (migrated, order) = live::read(&cluster, args.namespace.as_deref()).await?;
            Ok((migrated, order, cluster))
        })?;
        print(&migrated, args.output, io)?;
        // Below the order stands a line for each note.
        writeln!(io.err, "{}", shown_lines(&order, ""))?;
        // Whoever deletes what was before by a list that is not whole loses what is not in it.
        return Ok(cluster.seen_all_or_partial(exit(&migrated)));
    }
    if args.filename.is_empty() {
        bail!("name manifests with -f, or read them from a cluster with --live");
    }
    let sources = documents::read(&args.filename, io)?;
    let mut objects = Vec::new();
    for source in &sources {
        for piece in source.pieces() {
            let documents::Piece::Document(document) = piece? else { continue };
            objects.extend(documents::objects(&document.node).into_iter().map(|object| object.value));
        }
    }
    let migrated = all(&objects, args.namespace.as_deref());
    if migrated.manifests.is_empty() {
        writeln!(
            io.err,
            "drawbridge: no Agent and no AgentBuild of {} or {}",
            keys::GROUP_BEEAI,
            keys::GROUP_BEEAI_COMPAT
        )?;
    }
    print(&migrated, args.output, io)?;
    Ok(exit(&migrated))
}

fn exit(migrated: &Migrated) -> Exit {
    if migrated.remarks.is_empty() { Exit::Ok } else { Exit::Findings }
}

/// Whether an object is of a kind of BeeAI, by its kind.
fn kind_of(object: &Value) -> Option<&str> {
    let group = text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
    let ours = [keys::GROUP_BEEAI, keys::GROUP_BEEAI_COMPAT].contains(&group);
    Some(text(object, "/kind")).filter(|kind| ours && ["Agent", "AgentBuild"].contains(kind))
}

/// What becomes of these objects; an Agent that one of the builds keeps follows from the build.
fn all(objects: &[Value], namespace: Option<&str>) -> Migrated {
    let mut migrated = Migrated::default();
    let mut agents = Vec::new();
    let builds: Vec<_> = objects.iter().filter(|object| kind_of(object) == Some("AgentBuild")).collect();
    for build in &builds {
        let (manifest, agent) = build::of(build, &mut migrated.remarks);
        migrated.manifests.push(manifest);
        agents.extend(agent);
    }
    let is_kept = |object: &Value| {
        let uid = object.pointer("/metadata/annotations").and_then(|all| all.get(keys::ANNOTATION_CREATED_BY_UID));
        let uid = uid.and_then(Value::as_str).filter(|uid| !uid.is_empty());
        uid.is_some_and(|uid| builds.iter().any(|build| text(build, "/metadata/uid") == uid))
    };
    for object in objects.iter().filter(|object| kind_of(object) == Some("Agent") && !is_kept(object)) {
        agents.push(agent::of(object, &mut migrated.remarks));
    }
    migrated.manifests.extend(agents);
    for manifest in &mut migrated.manifests {
        if let Some(namespace) = namespace.filter(|_| text(manifest, "/metadata/namespace").is_empty()) {
            manifest["metadata"]["namespace"] = namespace.into();
        }
    }
    migrated
}

/// The manifests as a stream, and the report on standard error.
fn print(migrated: &Migrated, output: Format, io: &mut Io<'_>) -> anyhow::Result<()> {
    for manifest in &migrated.manifests {
        write!(io.out, "---\n{}", emit::document(manifest, None))?;
    }
    io::print(output, &migrated.remarks, io.err, |out| {
        let line = |one: &Remark| shown(&format!("{}: {}: {}", one.object, one.path, one.text));
        migrated.remarks.iter().try_for_each(|one| writeln!(out, "{}", line(one)))
    })
}

/// `Kind namespace/name`, as reports name objects.
fn title(object: &Value) -> String {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let place = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    format!("{} {place}", text(object, "/kind"))
}

/// The metadata of what an object becomes: without what the API server writes, and without what only the group of before reads.
fn metadata(object: &Value) -> Value {
    let mut metadata = serde_json::Map::new();
    metadata.insert("name".to_owned(), text(object, "/metadata/name").into());
    let namespace = text(object, "/metadata/namespace");
    if !namespace.is_empty() {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    for member in ["labels", "annotations"] {
        let all = object.pointer(&format!("/metadata/{member}")).and_then(Value::as_object).into_iter().flatten();
        let kept = all.filter(|(key, _)| {
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            ![keys::GROUP_BEEAI, "kubectl.kubernetes.io"].contains(&domain)
        });
        let kept: serde_json::Map<_, _> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !kept.is_empty() {
            metadata.insert(member.to_owned(), Value::Object(kept));
        }
    }
    Value::Object(metadata)
}
