//! `drawbridge explain reach A B[:PORT]`: whether one reaches the other, and which rules decide.
//!
//! In: two names and NetworkPolicies, Pods and Namespaces of a cluster or of manifests. Out: for every pair of Pods that policies tell apart both sides with
//! the rules that decide; exit 1 when a pair is cut, 4 when something that decides could not be seen. Nothing is sent: objects are judged, not traffic.

use std::collections::BTreeMap;
use std::io::{Result as Written, Write};

use anyhow::bail;
use serde::Serialize;

use crate::cli::cluster::{self, ClusterArgs};
use crate::cli::io::{self, Io, Tone};
use crate::cli::offline::documents::{self, Piece, Source};
use crate::cli::policy::End;
use crate::cli::policy::population::{Population, Settled};
use crate::cli::policy::target::{self, Found, Wanted};
use crate::cli::{Exit, Format, Unreachable, given};
use crate::policy::matrix::Classes;
use crate::policy::ports::PortSet;
use crate::policy::reach::{Reach, reach};
use crate::policy::report::{BASIS, PathReport, RuleReport, SideReport};
use crate::policy::side::Party;

/// Arguments of `explain reach`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Who sends: NAMESPACE/NAME of a Pod or of a workload, NAMESPACE/KIND/NAME, or an address.
    #[arg(value_name = "FROM")]
    pub from: String,
    /// Who is sent to, likewise or a Service, with a port when one is meant: team1/weather:8080, team1/dns:53/UDP, 10.0.0.1:443.
    #[arg(value_name = "TO[:PORT]")]
    pub to: String,
    /// Manifests instead of a cluster: files, folders, or - for standard input.
    #[arg(short, long, value_name = "PATH", value_parser = given::path, conflicts_with_all = ["kubeconfig", "context"])]
    pub filename: Vec<String>,
    /// Namespace of names without one; default is that of the context, and `default` for manifests.
    #[arg(short, long, value_parser = given::namespace)]
    pub namespace: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Which cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    basis: &'static str,
    from: End,
    to: End,
    /// The port that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<String>,
    /// Every pair that can be judged is reached; absent when one cannot be judged and none is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    reachable: Option<bool>,
    pairs: Vec<Pair>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<String>,
}

/// Pairs of Pods for which the same is said.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Pair {
    from: String,
    to: String,
    /// How many pairs, this one included.
    pairs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reachable: Option<bool>,
    /// Every port that is reached, asked for or not.
    ports: PortSet,
    /// What is to be said without policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<PathReport>,
}

/// Explains.
///
/// # Errors
/// When the arguments, the manifests or the cluster cannot be used.
pub(super) fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let (mut population, mut ends) = (Population::default(), None);
    if args.filename.is_empty() {
        let reading = async {
            let cluster = args.cluster.connect().await?;
            let namespace = args.namespace.as_deref().unwrap_or(&cluster.namespace);
            let wanted = [Wanted::read(&args.from, namespace)?, Wanted::read(&args.to, namespace)?];
            let mut names: Vec<_> = wanted.iter().filter_map(Wanted::namespace).collect();
            names.sort_unstable();
            names.dedup();
            for name in &names {
                population.read(&cluster, name).await?;
            }
            let settled = population.settle();
            let is_there = |one: &Wanted| Ok::<_, anyhow::Error>(target::find(one, &settled, &population)?.is_some());
            if !(is_there(&wanted[0])? && is_there(&wanted[1])?) {
                for name in names {
                    population.read_makers(&cluster, name).await?;
                }
            }
            ends = Some(wanted.clone());
            Ok(())
        };
        cluster::block_on(reading).map_err(|error| match error.downcast::<Unreachable>() {
            Ok(unreachable) => unreachable.or("explain manifests with -f, without a cluster").into(),
            Err(error) => error,
        })?;
    } else {
        let namespace = args.namespace.as_deref().unwrap_or("default");
        let sources = documents::read(&args.filename, io)?;
        for piece in sources.iter().flat_map(Source::pieces) {
            if let Piece::Document(document) = piece? {
                let objects = documents::objects(&document.node);
                objects.iter().for_each(|object| population.observe(&object.value, namespace));
            }
        }
        ends = Some([Wanted::read(&args.from, namespace)?, Wanted::read(&args.to, namespace)?]);
    }
    let Some([from, to]) = ends else { bail!("nobody is named") };
    let answer = answer(&from, &to, population)?;
    let [good, bad, faint] = [Tone::Good, Tone::Bad, Tone::Faint];
    let words = [io.paint(good, "reached"), io.paint(bad, "cut"), io.paint(faint, "not judged")];
    io::print(args.output, &answer, io.out, |out| printed(out, &answer, &words))?;
    Ok(match answer.reachable {
        _ if !answer.unseen.is_empty() => Exit::Partial,
        Some(true) => Exit::Ok,
        Some(false) => Exit::Findings,
        None => Exit::Partial,
    })
}

fn answer(from: &Wanted, to: &Wanted, population: Population) -> anyhow::Result<Answer> {
    if from.port.is_some() {
        bail!("a port is that of the one that is sent to; leave it out of the first name");
    }
    let settled = population.settle();
    let found = |wanted: &Wanted| match target::find(wanted, &settled, &population)? {
        Some(found) => Ok(found),
        None if population.unseen.is_empty() => bail!("{}", target::absent(wanted, &settled)),
        None => bail!("{}; {}", target::absent(wanted, &settled), population.unseen.join("; ")),
    };
    let (one, other) = (found(from)?, found(to)?);
    if let (Found::Address(..), Found::Address(..)) = (&one, &other) {
        bail!("two addresses: no policy is about either; name a Pod or a workload");
    }
    let pairs = pairs(&settled, &one, &other);
    let reachable = match () {
        () if pairs.iter().any(|pair| pair.reachable == Some(false)) => Some(false),
        () if pairs.iter().any(|pair| pair.reachable.is_none()) => None,
        () => Some(true),
    };
    let (from, port) = (end(&settled, &one), to.port.as_ref().map(ToString::to_string));
    let to = end(&settled, &other);
    Ok(Answer { basis: BASIS, from, to, port, reachable, pairs, unseen: population.unseen })
}

fn end(settled: &Settled, found: &Found) -> End {
    match found {
        Found::Address(address, _) => {
            End { namespace: None, kind: "Address".to_owned(), name: address.to_string(), pods: 0, template: false }
        }
        Found::Pods { of: (namespace, kind, name), pods } => {
            let there = pods.iter().filter(|(pod, _)| !settled.members[*pod].is_template).count();
            let (namespace, kind, name) = (Some(namespace.clone()), kind.clone(), name.clone());
            End { namespace, kind, name, pods: there, template: there == 0 }
        }
    }
}

/// The two ends of every pair, by their places in the world; `None` is the address.
fn pairs(settled: &Settled, from: &Found, to: &Found) -> Vec<Pair> {
    let ends = |found: &Found| -> Vec<(Option<usize>, Option<PortSet>)> {
        match found {
            Found::Address(_, ports) => vec![(None, ports.clone())],
            Found::Pods { pods, .. } => pods.iter().map(|(pod, ports)| (Some(*pod), ports.clone())).collect(),
        }
    };
    let (senders, targets) = (ends(from), ends(to));
    // A Pod and itself are a pair only where there is no other one.
    let alone = senders.len() == 1 && targets.len() == 1;
    let classes = Classes::of(&settled.world);
    let mut order = Vec::new();
    let mut same = BTreeMap::new();
    for (sender, _) in &senders {
        for (target, ports) in &targets {
            let is_itself = sender.is_some() && sender == target;
            if is_itself && !alone {
                continue;
            }
            let class = |pod: &Option<usize>| pod.map(|pod| classes.class(pod));
            let key = (class(sender), class(target), ports.clone());
            *same.entry(key.clone()).or_insert_with(|| {
                order.push((key, *sender, *target));
                0
            }) += 1;
        }
    }
    let party = |found: &Found, pod: Option<usize>| match (found, pod) {
        (_, Some(pod)) => Some(Party::Pod(&settled.world.pods()[pod])),
        (Found::Address(address, _), None) => Some(Party::Address(*address)),
        (Found::Pods { .. }, None) => None,
    };
    let judged = order.into_iter().filter_map(|(key, sender, target)| {
        let (one, other) = (party(from, sender)?, party(to, target)?);
        let said = reach(&settled.world, one, other);
        let ports = said.ports();
        let reachable = ports.as_ref().map(|ports| match &key.2 {
            Some(wanted) => !wanted.is_empty() && wanted.is_within(ports),
            None => !ports.is_empty(),
        });
        let reason = match &said {
            Reach::Itself => Some("it is one Pod, which reaches itself whatever policies say".to_owned()),
            Reach::NotJudged(why) => Some(why.sentence().to_owned()),
            Reach::Paths(_) => None,
        };
        let title = |party: Party<'_>| match party {
            Party::Pod(pod) => pod.title(),
            Party::Address(address) => address.to_string(),
            Party::Outside(family) => family.as_str().to_owned(),
        };
        Some(Pair {
            from: title(one),
            to: title(other),
            pairs: same.get(&key).copied().unwrap_or(1),
            reachable,
            ports: ports.unwrap_or_default(),
            reason,
            paths: PathReport::all(&settled.world, &said),
        })
    });
    judged.collect()
}

/// One line; what manifests and a cluster say in it stays on it.
fn line(out: &mut dyn Write, text: std::fmt::Arguments<'_>) -> Written<()> {
    writeln!(out, "{}", io::shown(&text.to_string()))
}

/// `words` are those for reached, cut and not judged.
fn printed(out: &mut dyn Write, answer: &Answer, words: &[String; 3]) -> Written<()> {
    let word = |reachable: Option<bool>| match reachable {
        Some(true) => &words[0],
        Some(false) => &words[1],
        None => &words[2],
    };
    let port = answer.port.as_ref().map(|port| format!(":{port}")).unwrap_or_default();
    line(out, format_args!("{} to {}{port}: {} ({})", answer.from, answer.to, word(answer.reachable), answer.basis))?;
    for one in [&answer.from, &answer.to].into_iter().filter(|one| one.template) {
        line(out, format_args!("├─ {one} has no Pods: what its template would make is judged, without addresses"))?;
    }
    for pair in &answer.pairs {
        let more = match pair.pairs {
            1 => String::new(),
            pairs => format!(" and {} more pairs alike", pairs - 1),
        };
        line(out, format_args!("├─ {} to {}{more}: {}, {}", pair.from, pair.to, word(pair.reachable), pair.ports))?;
        if let Some(reason) = &pair.reason {
            line(out, format_args!("│  └─ {reason}"))?;
        }
        for path in &pair.paths {
            if let Some(family) = path.family.filter(|_| pair.paths.len() > 1) {
                line(out, format_args!("│  ├─ over {family}: {}", path.ports))?;
            }
            for (side, whose) in [(&path.egress, &pair.from), (&path.ingress, &pair.to)] {
                if let Some(side) = side {
                    side_printed(out, side, whose)?;
                }
            }
        }
    }
    for unseen in &answer.unseen {
        line(out, format_args!("├─ not seen: {unseen}"))?;
    }
    let network = "network plugins differ in hostNetwork Pods and in blocks of addresses that hold Pods or nodes";
    line(
        out,
        format_args!(
            "└─ judged are NetworkPolicies (networking.k8s.io) and ClusterNetworkPolicies (policy.networking.k8s.io) alone; {network}"
        ),
    )
}

fn side_printed(out: &mut dyn Write, side: &SideReport, whose: &str) -> Written<()> {
    let direction = side.direction.as_str();
    for one in &side.cluster {
        let place = format!("ClusterNetworkPolicy {} rule {}", one.policy, one.rule);
        line(out, format_args!("│  ├─ {direction} of {whose}: {place} {} {}", one.decides, one.ports))?;
    }
    if side.isolated_by.is_empty() {
        return line(out, format_args!("│  ├─ {direction} of {whose}: every port, no policy isolates it"));
    }
    line(
        out,
        format_args!("│  ├─ {direction} of {whose}: {}, isolated by {}", side.ports, side.isolated_by.join(", ")),
    )?;
    let rule = |rule: &RuleReport| format!("{} rule {}", rule.policy, rule.rule);
    let by = |rule: &RuleReport| rule.declared.as_ref().map(|by| format!(" (declared by {by})")).unwrap_or_default();
    for one in &side.rules {
        line(out, format_args!("│  │  ├─ {} lets through {}: {}{}", rule(one), one.ports, one.why, by(one)))?;
    }
    for one in &side.other_rules {
        line(out, format_args!("│  │  ├─ {} {}{}", rule(one), one.why, by(one)))?;
    }
    if side.other_rules_left_out > 0 {
        line(out, format_args!("│  │  ├─ and {} more rules that do not apply", side.other_rules_left_out))?;
    }
    if side.rules.is_empty() && side.other_rules.is_empty() {
        line(out, format_args!("│  │  └─ none of these has a rule for {direction}"))?;
    }
    for policy in &side.undeclared {
        line(out, format_args!("│  │  └─ {policy} opens only what is declared, and nothing declares this"))?;
    }
    Ok(())
}
