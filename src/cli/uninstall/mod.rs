//! `drawbridge uninstall`: takes everything of ours out of a cluster, in an order that never leaves Pods unprotected without a word.
//!
//! ```text
//! cluster ─► found ─► plan (pure) ─► printed
//!              ▲                └──► with --yes: carried out, then found and planned again: what that second plan
//!              └──────────────────── would still do is left, and the exit code says so; what has to wait for Pods is named
//! ```
//!
//! Works without a running operator and without CRDs. What is a person's stays: settings and ConfigMaps that were edited, labels, AgentRuntimes.

mod carry_out;
mod elsewhere;
mod found;
mod plan;
mod print;
mod trust;

pub(in crate::cli) use found::path;

use std::time::Duration;

use serde::Serialize;

use super::cluster::{self, Cluster, ClusterArgs};
use super::given;
use super::io::{self, Io};
use super::serve::flags::Span;
use super::{Exit, Format};
use crate::domain::keys;
use found::Found;
pub use plan::{Kept, Options, Phase, Plan, Step};

/// Arguments of `uninstall`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Carry the plan out; without it the plan is printed and nothing is changed.
    #[arg(long)]
    pub yes: bool,
    /// Also delete the CustomResourceDefinitions, and with them every object that is stored under them.
    #[arg(long)]
    pub crds: bool,
    /// How long to wait until no Pod of an un-enrolled workload uses our ConfigMaps and ServiceAccounts.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub timeout: Span,
    /// Leave the NetworkPolicies that cut off and open agents, and the labels they go by, as they are; otherwise they go, and the plan says how
    /// many Pods that opens.
    #[arg(long)]
    pub keep_policies: bool,
    /// Replace no Pods of workloads that are enrolled by their Pods' own label: they are named, and keep their sidecars until they are replaced.
    #[arg(long)]
    pub keep_pods: bool,
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

/// What became of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// The step.
    #[serde(flatten)]
    pub step: Step,
    /// `done`, `gone` (somebody else was faster), or `refused`.
    pub outcome: &'static str,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What would be done, in order.
    pub plan: Plan,
    /// What was done; absent without `--yes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Vec<Done>>,
    /// What is left of ours after that; absent without `--yes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Vec<Kept>>,
    /// What could not be read, so that nothing can be said about it.
    pub notes: Vec<String>,
}

/// Plans, and with `--yes` carries out and proves.
///
/// # Errors
/// When the cluster does not answer, or the operator is in another namespace than the one named.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let Args { yes, crds, timeout, keep_policies, keep_pods, operator_namespace, output, cluster } = args;
    cluster::block_on(async {
        let cluster = cluster.connect().await?;
        let options = Options { operator_namespace, crds, keep_policies, keep_pods };
        Box::pin(ended(&cluster, &options, (yes.then_some(timeout.0), output), io)).await
    })
}

/// Of a command that ended before it had looked what is left.
const CUT_SHORT: &str = "the command was cut short, and what is left could not be listed";

/// Plans and prints; where there is patience, carries out and proves. Whatever cuts that short, what was done by then is printed first.
async fn ended(
    cluster: &Cluster,
    options: &Options,
    (patience, output): (Option<Duration>, Format),
    io: &mut Io<'_>,
) -> anyhow::Result<Exit> {
    let mut notes = Vec::new();
    let found = found::read(cluster, options, &mut notes).await?;
    if let Some((place, says)) = elsewhere::operator(&found.parts, &options.operator_namespace) {
        anyhow::bail!(
            "the operator is installed in namespace {place}, not in {}: {says} names its account there. Nothing was changed. What to do: drawbridge \
             uninstall --operator-namespace {place}",
            options.operator_namespace
        );
    }
    let plan = plan::plan(&found, options);
    let Some(patience) = patience else {
        let report = Report { plan, done: None, left: None, notes };
        io::print(output, &report, io.out, |out| print::report(out, &report))?;
        return Ok(cluster.seen_all_or_partial(Exit::Ok));
    };
    if output == Format::Table {
        print::plan(io.out, &plan, &notes)?;
    }
    let mut done = Vec::new();
    let carried = carried_out(cluster, options, (&found, &plan, patience), (&mut done, &mut notes));
    let (left, broken) = match Box::pin(carried).await {
        Ok(rest) => (plan::left(&rest, &done), None),
        Err(error) => {
            notes.push(CUT_SHORT.to_owned());
            (plan::cut_short(&plan, &done), Some(error))
        }
    };
    let report = Report { plan, left: Some(left), done: Some(done), notes };
    io::print(output, &report, io.out, |out| print::report(out, &report))?;
    if let Some(error) = broken {
        return Err(error);
    }
    // What stays because something needs it is in the plan, and no failure of it.
    let undone = report.left.iter().flatten().any(|left| !left.planned);
    Ok(cluster.seen_all_or_partial(if undone { Exit::Findings } else { Exit::Ok }))
}

/// Carries the plan out; what is planned after that. Each step is told in `done` as soon as it is over.
async fn carried_out(
    cluster: &Cluster,
    options: &Options,
    (found, plan, patience): (&Found, &Plan, Duration),
    (done, notes): (&mut Vec<Done>, &mut Vec<String>),
) -> anyhow::Result<Plan> {
    carry_out::all(cluster, (found, plan), patience, done).await?;
    if done.iter().all(|done| done.outcome != "refused" || done.step.phase > Phase::Operator) {
        carry_out::replaced(cluster, found, &plan.steps, patience).await?;
        // What was in use by then may not be any more. Nothing is restarted twice.
        let found = found::read(cluster, options, &mut Vec::new()).await?;
        let mut again = plan::plan(&found, options);
        again.steps.retain(|step| step.phase != Phase::Restarts);
        carry_out::all(cluster, (&found, &again), patience, done).await?;
    }
    let mut proof = Vec::new();
    let rest = plan::plan(&found::read(cluster, options, &mut proof).await?, options);
    proof.retain(|note| !notes.contains(note));
    notes.extend(proof);
    Ok(rest)
}

#[cfg(test)]
mod tests;
