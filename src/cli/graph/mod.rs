//! `drawbridge graph`: how KAOS's agents, model APIs and tool servers are wired, and what of it is not ready.
//!
//! In: manifests, or a cluster read by lists. Out: text, Mermaid or DOT, or the graph as JSON; exit code 1 when something of it needs a
//! person: a name that nothing has, a fault, an object that is not ready, with `--live` an edge that is broken. Of manifests nobody says whether they
//! are ready.

mod live;
mod print;
mod wiring;

use anyhow::bail;
use clap::ValueEnum;

use super::cluster::{self, Answer, Cluster, ClusterArgs};
use super::io::{Io, shown};
use super::offline::documents::{self, Piece, Source};
use super::{Exit, given};
use crate::store::Kind;
use wiring::Graph;

/// Arguments of `graph`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Manifests in place of a cluster: files, folders, or - for standard input.
    #[arg(short, long, value_name = "PATH", value_parser = given::path, conflicts_with_all = ["all_namespaces", "kubeconfig", "context"])]
    pub filename: Vec<String>,
    /// Namespace; default is that of the context, and for manifests that do not name one, default.
    #[arg(short, long, conflicts_with = "all_namespaces", value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// Every namespace.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Try every edge: ask model APIs for the models, tool servers for their tools, agents for their cards, through the API server's proxy of Services.
    #[arg(long, conflicts_with = "filename")]
    pub live: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Drawing,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// How the graph is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// For people.
    #[default]
    Text,
    /// A flowchart of Mermaid, as Markdown pages show it.
    Mermaid,
    /// A digraph of Graphviz.
    Dot,
    /// For programs.
    Json,
}

/// Draws the graph.
///
/// # Errors
/// When the input cannot be read, or the cluster does not answer.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let mut notes = Vec::new();
    let (graph, cluster) = if args.filename.is_empty() {
        let (graph, cluster) = cluster::block_on(of_cluster(&args, &mut notes))?;
        (graph, Some(cluster))
    } else {
        let sources = documents::read(&args.filename, io)?;
        (of_files(&sources, args.namespace.as_deref().unwrap_or("default"))?, None)
    };
    for note in notes {
        writeln!(io.err, "{}", shown(&note))?;
    }
    match args.output {
        Drawing::Text => print::text(&graph, io)?,
        Drawing::Mermaid => write!(io.out, "{}", print::mermaid(&graph))?,
        Drawing::Dot => write!(io.out, "{}", print::dot(&graph))?,
        Drawing::Json => writeln!(io.out, "{}", serde_json::to_string_pretty(&graph)?)?,
    }
    let exit = if graph.needs_attention() { Exit::Findings } else { Exit::Ok };
    Ok(cluster.map_or(exit, |cluster| cluster.seen_all_or_partial(exit)))
}

async fn of_cluster(args: &Args, notes: &mut Vec<String>) -> anyhow::Result<(Graph, Cluster)> {
    let cluster = args.cluster.connect().await?;
    let namespace = match (args.all_namespaces, &args.namespace) {
        (true, _) => String::new(),
        (false, Some(name)) => name.clone(),
        (false, None) => cluster.namespace.clone(),
    };
    // One that is mistyped would pass for one in which nothing is wrong; the graph asks for no right to see namespaces.
    let path = format!("{}/{namespace}", Kind::Namespace.path(""));
    if !namespace.is_empty() && cluster.get(&path).await? == Answer::Absent {
        bail!("namespace {namespace} does not exist; kubectl get namespaces shows those that do");
    }
    let mut graph = wired(&cluster, &namespace, notes).await?;
    if args.live {
        live::tried(&mut graph, &cluster).await;
    }
    Ok((graph, cluster))
}

/// The graph of a namespace, or with an empty name of all, read by lists.
async fn wired(cluster: &Cluster, namespace: &str, notes: &mut Vec<String>) -> anyhow::Result<Graph> {
    let mut graph = Graph::default();
    for kind in [Kind::ModelApi, Kind::McpServer, Kind::KaosAgent] {
        let before = notes.len();
        for object in cluster.list(&kind.path(namespace), notes).await? {
            graph.take(kind, &object, "", true);
        }
        if notes.len() > before {
            graph.unread.insert(kind.as_str());
        }
    }
    graph.settle();
    Ok(graph)
}

fn of_files(sources: &[Source], namespace: &str) -> anyhow::Result<Graph> {
    let mut graph = Graph::default();
    for piece in sources.iter().flat_map(Source::pieces) {
        let Piece::Document(document) = piece? else { continue };
        for object in documents::objects(&document.node) {
            let text = |key: &str| object.value.get(key).and_then(serde_json::Value::as_str).unwrap_or("");
            let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
            let kind = Kind::of(group, text("kind"));
            if let Some(kind @ (Kind::ModelApi | Kind::McpServer | Kind::KaosAgent)) = kind {
                graph.take(kind, &object.value, namespace, false);
            }
        }
    }
    graph.settle();
    Ok(graph)
}

#[cfg(test)]
mod tests;
