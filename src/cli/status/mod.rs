//! `drawbridge status`: every enrolled workload, what it is, and whether its Pods are what they should be.
//!
//! In: a cluster, read by lists (and workloads, builds, cards and objects of KAOS followed by watches with `--watch`). Out: a row per workload, one per
//! AgentBuild, one per AgentCard, and one per object of KAOS; exit code 1 when one needs a person. Works
//! also while no operator runs: what becomes of a Pod that is made now is decided here, by the webhook's own function.

mod builds;
mod installation;
mod kaos;
mod missing;
mod print;
mod rollout;
mod row;
mod rows;
pub mod shape;
mod terminating;
mod trust;
mod watch;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::card::row::CardRow;
use super::cluster::watch::Collection;
use super::cluster::{self, Cluster, ClusterArgs};
use super::given;
use super::io::{self, Io};
use super::offline::world::{Facts, World};
use super::scope::{self, Scope};
use super::survey::{self, TYPES, text};
use super::{Exit, Format};
use crate::config::misplaced::is_misspelt;
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;
pub use builds::BuildRow;
pub use kaos::KaosRow;
pub use row::{By, Drift, EnrolledBy, Pods, Rollout, RolloutState, Row};
use rows::Seen;
pub use trust::TrustRow;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Namespace; default is that of the context.
    #[arg(short, long, conflicts_with = "all_namespaces", value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// Every namespace.
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Stay, and print a workload, build or card again whenever its row changes; as JSON one row per line, with member `change`.
    #[arg(short, long)]
    pub watch: bool,
    /// Namespace of the operator.
    #[arg(long, value_name = "NAME", default_value = keys::OPERATOR_NAMESPACE, value_parser = given::namespace)]
    pub operator_namespace: String,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What is printed; [`shape::FIELDS`] documents it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What is missing of the installation itself.
    pub installation: Vec<String>,
    /// The workloads, by namespace, kind and name.
    pub workloads: Vec<Row>,
    /// The AgentBuilds, by namespace and name.
    pub builds: Vec<BuildRow>,
    /// The AgentCards, by namespace and name.
    pub cards: Vec<CardRow>,
    /// Agents, ModelAPIs and MCPServers of KAOS, by namespace and kind.
    pub kaos: Vec<KaosRow>,
    /// Namespaces in which something follows from cards, by name.
    pub trust: Vec<TrustRow>,
    /// Namespaces that are being deleted: what is in them is left out.
    pub terminating: Vec<String>,
    /// What could not be read.
    pub notes: Vec<String>,
}

/// Prints the rows.
///
/// # Errors
/// When the cluster does not answer, or its platform file or gates have a fault.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let Args { namespace, all_namespaces, watch, operator_namespace, output, cluster } = args;
    cluster::block_on(async {
        let cluster = if watch { cluster.connect_to_follow().await? } else { cluster.connect().await? };
        let namespace = match (all_namespaces, namespace) {
            (true, _) => String::new(),
            (false, Some(name)) => name,
            (false, None) => cluster.namespace.clone(),
        };
        let mut notes = Vec::new();
        if !namespace.is_empty() {
            cluster.expect_namespace(&namespace, &mut notes).await?;
        }
        if watch {
            return watch::follow(&cluster, &namespace, &operator_namespace, (output, io)).await;
        }
        let mut report = everything(&cluster, &namespace, &operator_namespace).await?;
        report.notes.splice(0..0, notes);
        let failed = !report.installation.is_empty()
            || report.builds.iter().any(|row| row.attention)
            || report.cards.iter().any(|row| row.attention)
            || report.kaos.iter().any(|row| row.attention)
            || report.trust.iter().any(|row| row.attention);
        let (colour, attention) = (io.colour, failed || report.workloads.iter().any(|row| row.attention));
        io::print(output, &report, io.out, |out| print::table(out, &report, colour))?;
        Ok(cluster.seen_all_or_partial(if attention { Exit::Findings } else { Exit::Ok }))
    })
}

/// The rows of a namespace, or with an empty name of all, read by lists.
///
/// # Errors
/// When the cluster does not answer, or its platform file or gates have a fault.
pub async fn everything(cluster: &Cluster, namespace: &str, operator_namespace: &str) -> anyhow::Result<Report> {
    let mut notes = Vec::new();
    let (mut seen, mut unread) = (BTreeMap::<String, Seen>::new(), BTreeSet::new());
    for collection in collections(namespace) {
        let before = notes.len();
        for object in cluster.list(&collection.path(), &mut notes).await? {
            keep(&mut seen, object);
        }
        if notes.len() > before {
            unread.insert(collection.kind);
        }
    }
    seen.values_mut().for_each(|of| of.unread.clone_from(&unread));
    let base = base(cluster, operator_namespace, &mut notes).await?;
    let mut builds = Vec::new();
    for kind in BUILDS {
        let items = cluster.list(&kind.path(namespace), &mut notes).await?;
        // Items of a list may lack their kind.
        builds.extend(items.into_iter().map(|mut item| {
            item["apiVersion"] = kind.api_version().into();
            item
        }));
    }
    let mut builds: Vec<_> = builds.iter().map(|object| BuildRow::of(object, &base.scope)).collect();
    builds.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    let cards = cluster.list(&Kind::AgentCard.path(namespace), &mut notes).await?;
    let mut cards: Vec<_> = cards.iter().map(CardRow::of).collect();
    cards.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    let mut of_kaos = Vec::new();
    for kind in kaos::KINDS {
        let before = notes.len();
        let items = cluster.list(&kind.path(namespace), &mut notes).await?;
        if notes.len() > before {
            unread.insert(kind.as_str());
        }
        of_kaos.extend(items.into_iter().map(|item| (kind, item)));
    }
    let of_kaos: Vec<_> = of_kaos.iter().map(|(kind, object)| (*kind, object)).collect();
    let kaos = kaos::rows_beside(&of_kaos, &unread, &base.scope);
    let trusted = base.world.platform()?.cards().trust;
    let namespaces = if namespace.is_empty() {
        cluster.list(&Kind::Namespace.path(""), &mut notes).await?
    } else {
        cluster.get(&format!("{}/{namespace}", Kind::Namespace.path(""))).await?.object().into_iter().collect()
    };
    let terminating = terminating::names(&namespaces);
    seen.retain(|namespace, _| !terminating.contains(namespace));
    let trust = trust::rows(cluster, (namespace, &namespaces), (&trusted, operator_namespace), &mut notes).await?;
    let of = (&base.scope, operator_namespace);
    let installation = installation::missing(cluster, of, &trusted, &mut notes).await?;
    let report = report(cluster, &seen, &base, notes).await?;
    Ok(terminating::left_out(Report { installation, builds, cards, kaos, trust, ..report }, terminating))
}

/// The kinds of AgentBuild.
const BUILDS: [Kind; 3] = [Kind::AgentBuild, Kind::BeeaiBuild, Kind::BeeaiCompatBuild];

/// What is read: AgentRuntimes, and everything that is or makes Pods.
fn collections(namespace: &str) -> Vec<Collection> {
    let makers = TYPES.iter().map(|known| known.collection(namespace));
    std::iter::once(survey::agent_runtimes(namespace)).chain(makers).collect()
}

/// Puts an object where it belongs, by namespace.
fn keep(seen: &mut BTreeMap<String, Seen>, object: Value) {
    let of = seen.entry(text(&object, "/metadata/namespace").to_owned()).or_default();
    match text(&object, "/kind") {
        survey::AGENT_RUNTIME => of.agent_runtimes.push(object),
        "Pod" => of.pods.push(object),
        // ReplicaSets of Deployments are many and say nothing that their Deployment does not; of a controller that is not read here (a Rollout of
        // Argo) those that have Pods stand for it.
        "ReplicaSet" if survey::belongs_to_another(&object) => {}
        "ReplicaSet" if survey::controller(&object).is_some() && object["spec"]["replicas"] == 0 => {}
        _ => of.workloads.push(object),
    }
}

/// What is the same in every namespace.
struct Base {
    world: World,
    scope: Scope,
}

async fn base(cluster: &Cluster, operator_namespace: &str, notes: &mut Vec<String>) -> anyhow::Result<Base> {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 33),
        spire_driver: false,
        operator_namespace: operator_namespace.to_owned(),
    };
    let mut world = World::new(&facts)?;
    survey::of_the_cluster(cluster, &mut world, notes).await?;
    let scope = scope::read(cluster, operator_namespace).await?;
    notes.extend(scope.is_guessed());
    Ok(Base { world, scope })
}

/// The rows of every namespace that has something enrolled.
async fn report(
    cluster: &Cluster,
    seen: &BTreeMap<String, Seen>,
    base: &Base,
    mut notes: Vec<String>,
) -> anyhow::Result<Report> {
    let mut workloads = Vec::new();
    for (namespace, seen) in seen.iter().filter(|(_, seen)| concerns(seen)) {
        let mut world = base.world.clone();
        survey::of_a_namespace(cluster, &mut world, namespace, &mut notes).await?;
        for object in &seen.agent_runtimes {
            world.observe(object, namespace);
        }
        for object in &seen.workloads {
            match text(object, "/kind") {
                "Job" => world.observe(object, namespace),
                // Its next Job, so that the decision is not about who owns it.
                "CronJob" => world.observe_next_job(namespace, text(object, "/metadata/name")),
                _ => {}
            }
        }
        let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=reason%3DFailedCreate");
        let events =
            if rows::asks_events(seen, namespace) { cluster.list(&path, &mut notes).await? } else { Vec::new() };
        let rows = rows::rows(seen, namespace, &world, &events)?;
        workloads.extend(rows.into_iter().map(|row| rows::placed(row, &base.scope)));
    }
    Ok(Report { workloads, notes, ..Report::default() })
}

/// Something there is enrolled, pointed at, or runs with our parts.
fn concerns(seen: &Seen) -> bool {
    let labelled = |object: &Value| {
        let kind = text(object, "/kind");
        let kind = TYPES.iter().find(|known| known.kind.as_str() == kind).map_or(WorkloadKind::Unknown, |it| it.kind);
        let template = kind.template_path().iter().try_fold(object, |value, key| value.get(*key));
        let itself = WorkloadKind::TARGETS.contains(&kind).then_some(object);
        let misspelt = |place: &Value| {
            let labels = place.pointer("/metadata/labels").and_then(Value::as_object);
            labels.is_some_and(|labels| labels.keys().any(|key| is_misspelt(key)))
        };
        let own = survey::label(object, keys::LABEL_TYPE).is_some() || misspelt(object);
        own || itself
            .into_iter()
            .chain(template)
            .any(|place| survey::label(place, keys::LABEL_TYPE).is_some() || misspelt(place))
    };
    !seen.agent_runtimes.is_empty()
        || seen.workloads.iter().chain(&seen.pods).any(labelled)
        || seen.pods.iter().any(survey::is_injected)
}

#[cfg(test)]
mod tests;
