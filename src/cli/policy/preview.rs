//! `drawbridge policy preview`: what would be cut, and opened, before the label of a Namespace is changed, or policies are applied.
//!
//! In: a cluster, and the level of trust that a namespace would have, or policies of files. Out: for each agent and each peer the ports that are reached now
//! and would not be, or the other way round, with the rules that would decide; exit 1 when something would be cut, 4 when something that decides
//! could not be seen. Nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Result as Written, Write};

use anyhow::bail;
use serde::Serialize;
use serde_json::{Value, json};

use super::End;
use super::left::left;
use super::population::{Population, Settled, cluster_policies};
use super::rehearsal::{Rehearsal, platform};
use crate::api::place::mapping;
use crate::cli::cluster::{self, Cluster, ClusterArgs};
use crate::cli::io::{self, Io, Tone};
use crate::cli::offline::documents::{self, Piece, Source};
use crate::cli::offline::world::{Facts, World as Settings};
use crate::cli::survey::{self, TYPES, text};
use crate::cli::{Exit, Format, given};
use crate::config::trust::VerifiedPeers;
use crate::domain::keys;
use crate::domain::trust::TrustLevel;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::policy::matrix::{Difference, Differences, Group};
use crate::policy::ports::PortSet;
use crate::policy::reach::reach;
use crate::policy::report::{BASIS, PathReport};
use crate::policy::side::Party;
use crate::policy::world::World;
use crate::store::Kind;

/// Where the slices of the API server are.
const API_SERVER: &str =
    "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name=kubernetes";
/// Peers of one namespace for which the same is said, from which on the table names the namespace alone.
const MANY: usize = 4;

/// Arguments of `policy preview`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Namespace; default is that of the context.
    #[arg(short, long, value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// The level of trust that the namespace would have (its label agent.kagenti.dev/trust): off, audit, enforced or enforced-all.
    #[arg(long, value_name = "LEVEL", default_value = "enforced", value_parser = level)]
    pub trust: TrustLevel,
    /// What cards.verifiedPeers of the platform file would be, if another than it is: namespace, enabled, all or declared.
    #[arg(long, value_name = "PEERS", value_parser = peers)]
    pub verified_peers: Option<VerifiedPeers>,
    /// Instead of a level: NetworkPolicies and ClusterNetworkPolicies that would be applied, as files, folders, or - for standard input.
    #[arg(long, value_name = "PATH", value_parser = given::path, conflicts_with_all = ["trust", "verified_peers"])]
    pub apply: Vec<String>,
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

fn level(text: &str) -> Result<TrustLevel, String> {
    TrustLevel::named(text).ok_or_else(|| {
        let known: Vec<_> = TrustLevel::ALL.iter().map(|level| level.as_str()).collect();
        format!("a level is one of {}", known.join(", "))
    })
}

fn peers(text: &str) -> Result<VerifiedPeers, String> {
    VerifiedPeers::named(text)
        .ok_or_else(|| format!("one of {} is expected", VerifiedPeers::ALL.map(VerifiedPeers::as_str).join(", ")))
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Preview {
    pub(super) basis: &'static str,
    pub(super) namespace: String,
    /// What would be done.
    pub(super) change: String,
    /// The workloads that are looked at.
    pub(super) agents: Vec<Agent>,
    /// Where something would be cut or opened.
    pub(super) changes: Vec<Change>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unseen: Vec<String>,
}

/// A workload that is looked at.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Agent {
    #[serde(flatten)]
    pub(super) end: End,
    /// Pods that would carry the trust label.
    pub(super) verified_pods: usize,
    /// Pods that nothing is said about: on the node's network, or ended.
    pub(super) unjudged_pods: usize,
    /// What a person should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// What would differ from one end to another.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Change {
    pub(super) from: End,
    pub(super) to: End,
    /// Ports that are reached now and would not be.
    pub(super) cut: PortSet,
    /// Ports that are not reached now and would be.
    pub(super) opened: PortSet,
    /// Ports that every pair reaches now and would go on to.
    pub(super) kept: PortSet,
    /// Pairs of Pods, and those of them for which something would be cut.
    pub(super) pairs: usize,
    pub(super) pairs_cut: usize,
    /// Why, of one pair.
    pub(super) after: Vec<PathReport>,
}

/// Objects as they are, with their kinds, in the order in which they were read.
pub(super) type Objects = Vec<(Option<Kind>, Value)>;

/// Previews.
///
/// # Errors
/// When the arguments or the cluster cannot be used.
pub(super) fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let given = applied(&args.apply, io)?;
    let preview = cluster::block_on(async {
        let cluster = args.cluster.connect().await?;
        let namespace = args.namespace.clone().unwrap_or_else(|| cluster.namespace.clone());
        let mut unseen = Vec::new();
        let (mut objects, served) = read(&cluster, &namespace, &mut unseen).await?;
        if !objects
            .iter()
            .any(|(kind, object)| *kind == Some(Kind::Namespace) && text(object, "/metadata/name") == namespace)
        {
            bail!("Namespace {namespace} does not exist, or may not be read; {}", unseen.join("; "));
        }
        let mut notes = Vec::new();
        let (after, change) = if given.is_empty() {
            let facts = Facts {
                platform_file: None,
                feature_gates_path: None,
                server_version: (1, 33),
                spire_driver: false,
                operator_namespace: args.operator_namespace.clone(),
            };
            let mut settings = Settings::new(&facts)?;
            survey::facts(&cluster, &mut settings, &namespace, &mut unseen).await?;
            if platform(&settings, args.verified_peers)?.cards().trust.verified_peers == VerifiedPeers::Declared {
                objects.extend(declarations(&cluster, &namespace, &mut unseen).await?);
            }
            let besides = args.verified_peers.map(|peers| format!(" and cards.verifiedPeers is {}", peers.as_str()));
            let change =
                format!("trust of namespace {namespace} is {}{}", args.trust.as_str(), besides.unwrap_or_default());
            if args.trust == TrustLevel::Enforced {
                let here = objects.iter().map(|(_, object)| object);
                notes.extend(left(here.filter(|object| text(object, "/metadata/namespace") == namespace)));
            }
            (rehearsed(&settings, &objects, (&namespace, args.trust, args.verified_peers), served, &mut notes)?, change)
        } else {
            let mut after = objects.clone();
            after.extend(with(&given, &namespace, served)?);
            notes.extend(beyond(&given, &namespace));
            (after, words(&given))
        };
        let agents_only = given.is_empty() && args.trust != TrustLevel::EnforcedAll;
        let mut preview = compared(&namespace, &objects, &after, agents_only);
        preview.change = change;
        preview.notes = notes;
        preview.unseen.splice(0..0, unseen);
        Ok(preview)
    })?;
    let tones = [io.paint(Tone::Bad, "cut"), io.paint(Tone::Warn, "opened")];
    io::print(args.output, &preview, io.out, |out| printed(out, &preview, &tones))?;
    Ok(match preview.changes.iter().any(|change| !change.cut.is_empty()) {
        _ if !preview.unseen.is_empty() => Exit::Partial,
        true => Exit::Findings,
        false => Exit::Ok,
    })
}

/// The kinds of policies that are judged.
const JUDGED: [Kind; 2] = [Kind::NetworkPolicy, Kind::ClusterNetworkPolicy];

/// A policy of a file, with its kind.
pub(super) type Given = (Kind, Value);

/// The policies of files.
fn applied(paths: &[String], io: &mut Io<'_>) -> anyhow::Result<Vec<Given>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let sources = documents::read(paths, io)?;
    for piece in sources.iter().flat_map(Source::pieces) {
        if let Piece::Document(document) = piece? {
            for object in documents::objects(&document.node) {
                found.extend(policy(object.value)?);
            }
        }
    }
    if found.is_empty() {
        bail!("no NetworkPolicy and no ClusterNetworkPolicy in {}", paths.join(", "));
    }
    Ok(found)
}

/// The object, if it is a policy. One of another kind or API decides as well: passed over, it would pass for one that cuts nothing.
///
/// # Errors
/// When it is a policy that nobody judges here.
fn policy(object: Value) -> anyhow::Result<Option<Given>> {
    let (version, name) = (text(&object, "/apiVersion"), text(&object, "/kind"));
    if !name.ends_with("NetworkPolicy") {
        return Ok(None);
    }
    let Some(kind) = JUDGED.into_iter().find(|kind| kind.as_str() == name && kind.api_version() == version) else {
        let judged = JUDGED.map(|kind| format!("{} of {}", kind.as_str(), kind.api_version()));
        bail!(
            "{name} {} is of {version:?}, and only {} are judged; write it as one of these, or leave it out of what is previewed",
            text(&object, "/metadata/name"),
            judged.join(" and ")
        );
    };
    Ok(Some((kind, object)))
}

/// The policies as they would be stored; `served`: the API server knows ClusterNetworkPolicies.
///
/// # Errors
/// When it would not take one.
pub(super) fn with(given: &[Given], namespace: &str, served: bool) -> anyhow::Result<Objects> {
    let of_cluster = given.iter().find(|(kind, _)| *kind == Kind::ClusterNetworkPolicy);
    if let Some((kind, policy)) = of_cluster.filter(|_| !served) {
        bail!(
            "{} {} cannot be applied to this cluster, which does not serve {}; install the definitions of that API, or leave it out of what is \
             previewed",
            kind.as_str(),
            text(policy, "/metadata/name"),
            kind.api_version()
        );
    }
    let stored = |(kind, policy): &Given| {
        let policy = if kind.is_namespaced() { placed(policy, namespace) } else { policy.clone() };
        (Some(*kind), policy)
    };
    Ok(given.iter().map(stored).collect())
}

/// What of the policies is looked at in part alone.
fn beyond(given: &[Given], namespace: &str) -> Option<String> {
    given.iter().any(|(kind, _)| *kind == Kind::ClusterNetworkPolicy).then(|| {
        format!(
            "a ClusterNetworkPolicy may be about Pods of other namespaces, too; this is what changes for those of {namespace}: preview it with -n \
             for each of the others"
        )
    })
}

/// What would be done, in words.
fn words(given: &[Given]) -> String {
    let count = |wanted: Kind| given.iter().filter(|(kind, _)| *kind == wanted).count();
    let counts = [(Kind::NetworkPolicy, "NetworkPolicies"), (Kind::ClusterNetworkPolicy, "ClusterNetworkPolicies")]
        .map(|(kind, plural)| (count(kind), plural));
    let said: Vec<_> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, plural)| format!("{count} {plural}")).collect();
    format!("{} are applied", said.join(" and "))
}

pub(super) fn placed(policy: &Value, namespace: &str) -> Value {
    let mut policy = policy.clone();
    // Metadata that are no mapping are told of where the policy is read.
    if text(&policy, "/metadata/namespace").is_empty()
        && let Some(metadata) = mapping(&mut policy, ["metadata"])
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    policy
}

/// Everything that decides, and whether ClusterNetworkPolicies are served: Pods, policies and Namespaces of the whole cluster, what makes Pods in the one namespace, and what the controllers look at.
async fn read(cluster: &Cluster, namespace: &str, unseen: &mut Vec<String>) -> anyhow::Result<(Objects, bool)> {
    let mut paths = vec![
        (Kind::Namespace, Kind::Namespace.path("")),
        (Kind::Pod, Kind::Pod.path("")),
        (Kind::NetworkPolicy, Kind::NetworkPolicy.path("")),
        (Kind::Service, Kind::Service.path("")),
        (Kind::EndpointSlice, API_SERVER.to_owned()),
        (Kind::AgentCard, Kind::AgentCard.path(namespace)),
    ];
    let makers = TYPES.iter().filter(|known| known.kind != WorkloadKind::Pod);
    paths.extend(
        makers.filter_map(|known| Kind::of_workload(known.kind).map(|kind| (kind, known.collection(namespace).path()))),
    );
    let mut objects = Vec::new();
    for (kind, path) in paths {
        let found = cluster.list(&path, unseen).await?;
        objects.extend(found.into_iter().map(|object| (Some(kind), object)));
    }
    let cluster_wide = cluster_policies(cluster, unseen).await?;
    let served = cluster_wide.is_some();
    let tier = cluster_wide.into_iter().flatten();
    objects.extend(tier.map(|object| (Some(Kind::ClusterNetworkPolicy), object)));
    Ok((objects, served))
}

/// What names whom agents call, and who calls them: routes of every namespace, and what of this one has links.
async fn declarations(cluster: &Cluster, namespace: &str, unseen: &mut Vec<String>) -> anyhow::Result<Objects> {
    let routes = format!("{}?fieldSelector=metadata.name%3D{}", Kind::ConfigMap.path(""), keys::CONFIG_MAP_ROUTES);
    let mut objects = Vec::new();
    for (kind, path) in [
        (Kind::ConfigMap, routes),
        (Kind::AgentRuntime, Kind::AgentRuntime.path(namespace)),
        (Kind::KaosAgent, Kind::KaosAgent.path(namespace)),
    ] {
        let found = cluster.list(&path, unseen).await?;
        objects.extend(found.into_iter().map(|object| (Some(kind), object)));
    }
    Ok(objects)
}

/// The objects as they would be; `peers`: under another value of `cards.verifiedPeers`, `served`: ClusterNetworkPolicies are.
pub(super) fn rehearsed(
    settings: &Settings,
    objects: &Objects,
    (namespace, level, peers): (&str, TrustLevel, Option<VerifiedPeers>),
    served: bool,
    notes: &mut Vec<String>,
) -> anyhow::Result<Objects> {
    let mut rehearsal = Rehearsal::new(settings, peers)?;
    if served {
        rehearsal.serves(Kind::ClusterNetworkPolicy);
    }
    for (kind, object) in objects {
        let Some(kind) = *kind else { continue };
        // Who is elsewhere is no concern of the plans about this namespace.
        let elsewhere = text(object, "/metadata/namespace") != namespace;
        if elsewhere && matches!(kind, Kind::Pod | Kind::NetworkPolicy) {
            continue;
        }
        let mut object = object.clone();
        if kind == Kind::Namespace && text(&object, "/metadata/name") == namespace {
            object["metadata"]["labels"][keys::LABEL_TRUST] = json!(level.as_str());
        }
        rehearsal.observe(kind, object)?;
    }
    rehearsal.play(namespace)?;
    notes.append(&mut rehearsal.reports);
    let mut after: Objects = Vec::new();
    for (kind, object) in objects {
        let is_policy = *kind == Some(Kind::NetworkPolicy) && text(object, "/metadata/namespace") == namespace;
        if is_policy || *kind == Some(Kind::ClusterNetworkPolicy) {
            continue;
        }
        let now = kind
            .and_then(|kind| rehearsal.get(kind, text(object, "/metadata/namespace"), text(object, "/metadata/name")));
        after.push((*kind, now.unwrap_or(object).clone()));
    }
    for (kind, place) in [(Kind::NetworkPolicy, namespace), (Kind::ClusterNetworkPolicy, "")] {
        after.extend(rehearsal.of(kind, place).map(|policy| (Some(kind), policy.clone())));
    }
    Ok(after)
}

fn population(objects: &Objects) -> Population {
    let mut population = Population::default();
    objects.iter().for_each(|(_, object)| population.observe(object, ""));
    population
}

/// Whether an agent's Pods are what a workload makes.
fn is_agent(world: &World, pod: usize) -> bool {
    world.pods()[pod].labels.get(keys::LABEL_TYPE).is_some_and(|value| value == "agent")
}

pub(super) fn compared(namespace: &str, before: &Objects, after: &Objects, agents_only: bool) -> Preview {
    let (population_before, population_after) = (population(before), population(after));
    let (was, is) = (population_before.settle(), population_after.settle());
    let mut number: BTreeMap<(&str, &Workload), usize> = BTreeMap::new();
    let mut groups: Vec<End> = Vec::new();
    let mut group = Vec::with_capacity(was.members.len());
    let mut of_interest = BTreeSet::new();
    for (at, (pod, member)) in was.world.pods().iter().zip(&was.members).enumerate() {
        let own = *number.entry((&pod.namespace, &member.workload)).or_insert_with(|| {
            groups.push(End {
                namespace: Some(pod.namespace.clone()),
                kind: member.workload.kind.as_str().to_owned(),
                name: member.workload.name.clone(),
                pods: 0,
                template: member.is_template,
            });
            groups.len() - 1
        });
        groups[own].pods += usize::from(!member.is_template);
        group.push(own);
        if pod.namespace == namespace && (!agents_only || is_agent(&was.world, at)) {
            of_interest.insert(own);
        }
    }
    let differences = Differences::between(&was.world, &is.world, &group, &of_interest);
    let end = |of: Group| match of {
        Group::Pods(own) => groups[own].clone(),
        Group::Block(at) => addresses("Addresses", format!("addresses {}", differences.blocks[at])),
        Group::Outside(family) => {
            addresses("Outside", format!("other {} addresses outside of the cluster", family.as_str()))
        }
    };
    let mut changes: Vec<Change> = Vec::new();
    for ((from, to), difference) in &differences.of {
        if difference.cut.is_empty() && difference.opened.is_empty() {
            continue;
        }
        let Difference { cut, opened, kept, pairs, pairs_cut, .. } = difference.clone();
        let after = paths(&is, &differences, (*from, *to), difference.sample);
        changes.push(Change { from: end(*from), to: end(*to), cut, opened, kept, pairs, pairs_cut, after });
    }
    let agents = of_interest.iter().map(|&own| agent(&groups[own], &is, &group, own, &differences));
    Preview {
        basis: BASIS,
        namespace: namespace.to_owned(),
        change: String::new(),
        agents: agents.collect(),
        changes,
        notes: Vec::new(),
        unseen: population_after.unseen,
    }
}

fn addresses(kind: &str, name: String) -> End {
    End { namespace: None, kind: kind.to_owned(), name, pods: 0, template: false }
}

fn agent(end: &End, is: &Settled, group: &[usize], own: usize, differences: &Differences) -> Agent {
    let pods = group.iter().enumerate().filter(|&(_, &of)| of == own).map(|(at, _)| at);
    let verified = |at: &usize| {
        let label = is.world.pods()[*at].labels.get(keys::LABEL_VERIFIED);
        label.is_some_and(|value| value == keys::VERIFIED)
    };
    let never = ["Job", "CronJob", "Pod", "ReplicaSet", "Unknown"];
    Agent {
        verified_pods: pods.filter(verified).count(),
        unjudged_pods: differences.unjudged.get(&own).copied().unwrap_or_default(),
        note: never
            .contains(&end.kind.as_str())
            .then(|| format!("no AgentCard proves who a {} is: it stays cut off", end.kind)),
        end: end.clone(),
    }
}

/// Why a pair of the first group and the second is as it would be.
fn paths(
    is: &Settled,
    differences: &Differences,
    (from, to): (Group, Group),
    sample: (Option<usize>, Option<usize>),
) -> Vec<PathReport> {
    let party = |group: Group, pod: Option<usize>| match (group, pod) {
        (Group::Pods(_), Some(pod)) => Some(Party::Pod(&is.world.pods()[pod])),
        (Group::Pods(_), None) => None,
        (Group::Block(at), _) => crate::policy::matrix::first_of(&differences.blocks[at]).map(Party::Address),
        (Group::Outside(family), _) => Some(Party::Outside(family)),
    };
    match (party(from, sample.0), party(to, sample.1)) {
        (Some(one), Some(other)) => PathReport::all(&is.world, &reach(&is.world, one, other)),
        _ => Vec::new(),
    }
}

/// The policies that would isolate where something is cut.
fn because(change: &Change) -> String {
    let sides = change.after.iter().flat_map(|path| [&path.egress, &path.ingress]).flatten();
    let closed = sides.filter(|side| !change.cut.is_within(&side.ports));
    let names: BTreeSet<&str> = closed.flat_map(|side| side.isolated_by.iter().map(String::as_str)).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" (isolated by {})", names.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// `tones` are the words for cut and opened.
pub(super) fn printed(out: &mut dyn Write, preview: &Preview, tones: &[String; 2]) -> Written<()> {
    writeln!(out, "If {}, in namespace {} ({}):", preview.change, preview.namespace, preview.basis)?;
    for agent in &preview.agents {
        let Agent { end, verified_pods, unjudged_pods, note } = agent;
        let judged = match unjudged_pods {
            0 => String::new(),
            some => format!(", {some} of them not judged"),
        };
        let note = note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
        writeln!(out, "  {end}: {} Pods{judged}, {verified_pods} verified{note}", end.pods)?;
    }
    let is_ours = |end: &End| preview.agents.iter().any(|agent| agent.end == *end);
    // What is said of many peers of one namespace is said once.
    let mut lines: BTreeMap<(String, bool, Option<&str>, String), Vec<String>> = BTreeMap::new();
    for change in &preview.changes {
        let sends = is_ours(&change.from);
        let (own, peer) = if sends { (&change.from, &change.to) } else { (&change.to, &change.from) };
        let mut says = Vec::new();
        if !change.cut.is_empty() {
            says.push(format!("{} {}{}", tones[0], change.cut, because(change)));
        }
        if !change.opened.is_empty() {
            says.push(format!("{} {}", tones[1], change.opened));
        }
        let key = (own.to_string(), sends, peer.namespace.as_deref(), says.join("; "));
        lines.entry(key).or_default().push(peer.to_string());
    }
    for ((own, sends, namespace, says), peers) in &lines {
        let way = if *sends { "to" } else { "from" };
        match namespace {
            Some(namespace) if peers.len() >= MANY => {
                writeln!(out, "  {own} {way} {} workloads of namespace {namespace}: {says}", peers.len())?;
            }
            _ => peers.iter().try_for_each(|peer| writeln!(out, "  {own} {way} {peer}: {says}"))?,
        }
    }
    if preview.changes.is_empty() {
        writeln!(out, "  nothing would be cut, and nothing opened")?;
    }
    preview.notes.iter().try_for_each(|note| writeln!(out, "  note: {note}"))?;
    preview.unseen.iter().try_for_each(|unseen| writeln!(out, "  not seen: {unseen}"))
}
