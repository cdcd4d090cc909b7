//! `drawbridge quarantine` and `drawbridge release`: nobody is let in to an agent or out of it, and no Pod of it is made, until it is released.
//!
//! ```text
//! agent/x, namespace/n, --skill s ─► targets ─► annotation of the Namespace (record, pure) ─► what came of it (holding), read off the cluster
//! ```
//!
//! In: a cluster, and who is meant. Out: the annotation written, and for each namespace how many of the Pods that run are cut off by now, who opens
//! them all the same, and what no policy holds. The annotation is all that is written, and with `--evict` evictions: the controllers and the API
//! server's own policies do the rest, so that the right to change Namespaces in the whole cluster is what is asked for.

mod holding;
mod record;
mod targets;

use std::collections::BTreeMap;
use std::io::{Result as Written, Write};
use std::time::Duration;

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use super::cluster::{self, Answer, Cluster, ClusterArgs};
use super::io::{self, Io, shown};
use super::serve::flags::Span;
use super::survey::text;
use super::{Exit, Format, Unreachable, Unseen, given};
use crate::domain::keys;
use crate::store::Kind;
use record::{Change, Record};
use targets::{Named, Target};

/// Who is meant, and where.
#[derive(Debug, clap::Args)]
struct Whom {
    /// Who: agent/NAME (a workload, or the AgentRuntime or AgentCard of one), or namespace/NAME for every Pod of it.
    #[arg(value_name = "TARGET", value_parser = targets::named, required_unless_present = "skill")]
    targets: Vec<Named>,
    /// Every agent whose AgentCard names that skill, by its id or a tag.
    #[arg(long, value_name = "SKILL", conflicts_with = "targets")]
    skill: Option<String>,
    /// Namespace of the agents; default is that of the context.
    #[arg(short, long, value_parser = given::namespace)]
    namespace: Option<String>,
    /// With --skill: in every namespace.
    #[arg(short = 'A', long, requires = "skill", conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Namespace of the operator.
    #[arg(long, value_name = "NAME", default_value = keys::OPERATOR_NAMESPACE, value_parser = given::namespace)]
    operator_namespace: String,
    /// How long to wait until it holds.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: Span,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
    /// Which cluster.
    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Arguments of `quarantine`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    whom: Whom,
    /// Why; it is kept beside the annotation for whoever finds the agent cut off.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Evict the Pods that run, once they are cut off; without it they are kept as evidence.
    #[arg(long)]
    evict: bool,
}

/// Arguments of `release`.
#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    #[command(flatten)]
    whom: Whom,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    namespaces: Vec<holding::Holding>,
    notes: Vec<String>,
}

/// Longest reason, in bytes.
const REASON: usize = 256;

fn reason(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("say why, in a few words".to_owned()),
        text if text.len() > REASON => {
            Err(format!("at most {REASON} bytes; put the rest into your ticket and name it"))
        }
        text => Ok(text.to_owned()),
    }
}

/// Puts into quarantine.
///
/// # Errors
/// When the cluster does not answer, refuses the change, or nobody of that name is there.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let Args { whom, reason, evict } = args;
    let skill = whom.skill.clone();
    let hold = move |record: &mut Record, change: &Change| record.hold(change, &reason, skill.as_deref());
    carry_out(whom, Verb { holds: true, evict }, hold, io)
}

/// Ends it.
///
/// # Errors
/// When the cluster does not answer or refuses the change.
pub fn release(args: ReleaseArgs, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    carry_out(args.whom, Verb { holds: false, evict: false }, |record, change| record.release(change), io)
}

#[derive(Debug, Clone, Copy)]
struct Verb {
    holds: bool,
    evict: bool,
}

fn carry_out(
    whom: Whom,
    verb: Verb,
    edit: impl Fn(&mut Record, &Change) -> bool,
    io: &mut Io<'_>,
) -> anyhow::Result<Exit> {
    cluster::block_on(async {
        let cluster = whom.cluster.connect().await?;
        Box::pin(on(&cluster, whom, (verb, edit), io)).await
    })
}

/// Writes, waits and prints. Where the cluster is lost in the middle, what is written by then is printed first: it holds all the same.
async fn on(
    cluster: &Cluster,
    whom: Whom,
    (verb, edit): (Verb, impl Fn(&mut Record, &Change) -> bool),
    io: &mut Io<'_>,
) -> anyhow::Result<Exit> {
    let Whom { targets, skill, namespace, all_namespaces, operator_namespace, timeout, output, .. } = whom;
    let namespace = namespace.unwrap_or_else(|| cluster.namespace.clone());
    let mut notes = Vec::new();
    let place = if all_namespaces { "" } else { namespace.as_str() };
    let target = skill.map_or(Target::Named(targets), Target::Skill);
    let mut changes = if verb.holds {
        targets::resolve(cluster, &target, place, &mut notes).await?
    } else {
        targets::recorded(cluster, &target, place, &mut notes).await?
    };
    if changes.is_empty() {
        return Err(nobody(verb.holds, &notes));
    }
    let left_out = left_out(&mut changes, &operator_namespace);
    if let Some(words) = left_out.first().filter(|_| matches!(target, Target::Named(_)) || changes.is_empty()) {
        bail!("{words}");
    }
    let mut failed = !left_out.is_empty();
    notes.extend(left_out);
    let mut report = Report { namespaces: Vec::new(), notes };
    let (mut written, mut broken) = (Vec::new(), None);
    for (at, (namespace, change)) in changes.iter().enumerate() {
        match write(cluster, namespace, |record| edit(record, change)).await {
            Ok(true) => written.push((namespace.as_str(), change)),
            Ok(false) => {
                report.notes.push(if verb.holds {
                    format!("{namespace}: {change} was in quarantine before")
                } else {
                    format!("{namespace}: {change} was not in quarantine")
                });
                written.push((namespace.as_str(), change));
            }
            // Nobody elsewhere is left open for it.
            Err(error) if changes.len() > 1 && !error.is::<Unreachable>() => {
                report.notes.push(format!("{error:#}"));
                failed = true;
            }
            Err(error) if written.is_empty() => return Err(error),
            Err(error) => {
                let unknown = |(namespace, change): (&String, &Change)| {
                    format!("{namespace}: {change} is not known to be written")
                };
                report.notes.extend(changes.iter().skip(at).map(unknown));
                broken = Some(error);
                break;
            }
        }
    }
    if written.is_empty() {
        bail!("{}", report.notes.join("\n"));
    }
    for of in written {
        if broken.is_none() {
            match held_by(cluster, of, (verb, timeout.0), &mut report.notes).await {
                Ok(holding) => {
                    report.namespaces.push(holding);
                    continue;
                }
                Err(error) => broken = Some(error),
            }
        }
        let (namespace, change) = of;
        report.notes.push(format!("{namespace}: {change} is written; what came of it is not known"));
    }
    io::print(output, &report, io.out, |out| table(out, &report))?;
    if let Some(error) = broken {
        return Err(error);
    }
    let clean = !failed && report.namespaces.iter().all(holding::Holding::is_complete);
    Ok(cluster.seen_all_or_partial(if clean { Exit::Ok } else { Exit::Findings }))
}

/// What came of it in one namespace, once it is written there.
async fn held_by(
    cluster: &Cluster,
    of: (&str, &Change),
    (verb, patience): (Verb, Duration),
    notes: &mut Vec<String>,
) -> anyhow::Result<holding::Holding> {
    let mut holding = holding::wait(cluster, of, verb, patience, notes).await?;
    if verb.evict {
        holding.evict(cluster, notes).await?;
    }
    Ok(holding)
}

/// That nobody is meant; where something could not be read, nobody knows.
fn nobody(holds: bool, unread: &[String]) -> anyhow::Error {
    if !unread.is_empty() {
        return Unseen(unread.join("; ")).into();
    }
    let what = if holds { "no AgentCard names that skill" } else { "nobody is in quarantine for that skill" };
    anyhow::anyhow!("{what}; drawbridge card list -A shows the skills, drawbridge status -A who is in quarantine")
}

/// Takes out the namespaces of which nobody is put into quarantine; why, of each.
fn left_out(changes: &mut BTreeMap<String, Change>, operator_namespace: &str) -> Vec<String> {
    let is_own = |name: &str| name == operator_namespace || keys::SYSTEM_NAMESPACES.contains(&name);
    let (own, others): (BTreeMap<_, _>, _) = std::mem::take(changes).into_iter().partition(|(name, _)| is_own(name));
    *changes = others;
    let words = |namespace: String| {
        format!("namespace {namespace} is the cluster's or the operator's own, and nobody of it is put into quarantine")
    };
    own.into_keys().map(words).collect()
}

/// Changes the record of a namespace, as it stands; whether anything was to be changed.
async fn write(cluster: &Cluster, namespace: &str, edit: impl Fn(&mut Record) -> bool) -> anyhow::Result<bool> {
    const TRIES: u32 = 8;
    let path = format!("{}/{namespace}", Kind::Namespace.path(""));
    for attempt in 0..TRIES {
        let stored = match cluster.get(&path).await? {
            Answer::Object(object) => object,
            Answer::Absent => bail!("namespace {namespace} does not exist; kubectl get namespaces shows those that do"),
            Answer::Refused(code, message) => bail!(
                "namespace {namespace} cannot be read ({code}): {message}. What to do: let somebody do it who may read and patch namespaces in the \
                 whole cluster"
            ),
        };
        let mut record = Record::of(&stored);
        if !edit(&mut record) {
            return Ok(false);
        }
        match cluster
            .merge(&path, &record.patch(text(&stored, "/metadata/resourceVersion")), "drawbridge/quarantine")
            .await?
        {
            Answer::Object(_) => return Ok(true),
            // Somebody else was faster: what he wrote is read again.
            Answer::Refused(409, _) => tokio::time::sleep(Duration::from_millis(20 << attempt)).await,
            Answer::Absent => bail!("namespace {namespace} is gone"),
            Answer::Refused(code, message) => bail!(
                "namespace {namespace} was not changed ({code}): {message}. What to do: let somebody do it who may patch namespaces in the whole cluster"
            ),
        }
    }
    bail!("namespace {namespace} is changed by somebody else all the time; try again")
}

fn table(out: &mut dyn Write, report: &Report) -> Written<()> {
    report.namespaces.iter().try_for_each(|one| one.table(out))?;
    report.notes.iter().try_for_each(|note| writeln!(out, "note: {}", shown(note)))
}

/// Who of a Namespace is in quarantine, by its annotation, in words.
#[must_use]
pub(in crate::cli) fn held(namespace: &Value) -> Vec<String> {
    Record::of(namespace).words()
}

/// Whom that Namespace holds; the operator's and the cluster's own hold nobody.
#[must_use]
pub(in crate::cli) fn holds_any(namespace: &Value, own: &str) -> bool {
    let name = text(namespace, "/metadata/name");
    name != own && !keys::SYSTEM_NAMESPACES.contains(&name) && !held(namespace).is_empty()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser as _;
    use serde_json::{Value, json};

    use super::{Change, Record, Verb, left_out, nobody, on};
    use crate::cli::cluster::fake;
    use crate::cli::io::Io;
    use crate::cli::{Cli, Command, Unreachable, Unseen};

    /// Who was in quarantine by then was not printed.
    #[tokio::test]
    async fn what_is_written_is_printed_though_the_cluster_is_lost_in_the_middle() {
        let cluster = fake::cluster(|path| match path {
            "/api/v1/namespaces/a" => (200, json!({"metadata": {"name": "a", "resourceVersion": "1"}})),
            "/api/v1/namespaces/b" => {
                let says = json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "X", "code": 401});
                (401, says)
            }
            _ => fake::absent(),
        })
        .await;
        let words = ["drawbridge", "quarantine", "namespace/a", "namespace/b", "--reason", "r", "-o", "json"];
        let Command::Quarantine(args) = Cli::try_parse_from(words).unwrap().command else { unreachable!("it is one") };
        let (mut stdin, mut out, mut err) = (&b""[..], Vec::new(), Vec::new());
        let mut io = Io { stdin: &mut stdin, out: &mut out, err: &mut err, colour: false };
        let verb = Verb { holds: true, evict: false };
        let hold = |record: &mut Record, change: &Change| record.hold(change, "r", None);
        let ended = Box::pin(on(&cluster, args.whom, (verb, hold), &mut io)).await;
        assert!(ended.is_err_and(|error| error.is::<Unreachable>()));
        let report: Value = serde_json::from_slice(&out).unwrap();
        let says = [
            "b: the namespace is not known to be written",
            "a: the namespace is written; what came of it is not known",
        ];
        assert_eq!(report["notes"], json!(says));
    }

    /// Whoever holds an incident must not read that nobody has the skill where cards could not be read.
    #[test]
    fn that_nobody_has_the_skill_is_said_only_where_everything_was_read() {
        let unread = nobody(true, &["/apis/x could not be read (403: no)".to_owned()]);
        assert!(unread.is::<Unseen>() && unread.to_string().contains("403"), "{unread}");
        for (holds, says) in [(true, "no AgentCard names that skill"), (false, "nobody is in quarantine")] {
            let error = nobody(holds, &[]);
            assert!(!error.is::<Unseen>() && error.to_string().starts_with(says), "{error}");
        }
    }

    /// Agents of other namespaces that have the skill are not left open because one of these has it, too.
    #[test]
    fn the_operators_own_namespace_and_the_clusters_are_left_out_and_named() {
        let change = || Change { everybody: true, ..Change::default() };
        let names = ["a", "kagenti-system", "kube-system", "z"];
        let mut changes: BTreeMap<_, _> = names.into_iter().map(|name| (name.to_owned(), change())).collect();
        let told = left_out(&mut changes, "kagenti-system");
        assert_eq!(changes.into_keys().collect::<Vec<_>>(), ["a", "z"]);
        assert_eq!(told.len(), 2);
        assert!(
            told[0].starts_with("namespace kagenti-system is ") && told[1].starts_with("namespace kube-system is ")
        );
    }
}
