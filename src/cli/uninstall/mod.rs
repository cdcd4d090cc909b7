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

use serde::Serialize;

use super::cluster::{self, ClusterArgs};
use super::given;
use super::io::{self, Io};
use super::serve::flags::Span;
use super::{Exit, Format};
use crate::domain::keys;
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
    let (report, cluster) = cluster::block_on(async {
        let cluster = cluster.connect().await?;
        let options = Options { operator_namespace, crds, keep_policies, keep_pods };
        let mut notes = Vec::new();
        let found = found::read(&cluster, &options, &mut notes).await?;
        if let Some((place, says)) = elsewhere::operator(&found.parts, &options.operator_namespace) {
            anyhow::bail!(
                "the operator is installed in namespace {place}, not in {}: {says} names its account there. Nothing was changed. What to do: drawbridge \
                 uninstall --operator-namespace {place}",
                options.operator_namespace
            );
        }
        let plan = plan::plan(&found, &options);
        if !yes {
            return Ok((Report { plan, done: None, left: None, notes }, cluster));
        }
        if output == Format::Table {
            print::plan(io.out, &plan, &notes)?;
        }
        let mut done = carry_out::all(&cluster, &found, &plan, timeout.0).await?;
        if done.iter().all(|done| done.outcome != "refused" || done.step.phase > Phase::Operator) {
            carry_out::replaced(&cluster, &found, &plan.steps, timeout.0).await?;
            // What was in use by then may not be any more. Nothing is restarted twice.
            let found = found::read(&cluster, &options, &mut Vec::new()).await?;
            let mut again = plan::plan(&found, &options);
            again.steps.retain(|step| step.phase != Phase::Restarts);
            done.extend(carry_out::all(&cluster, &found, &again, timeout.0).await?);
        }
        let mut proof = Vec::new();
        let rest = plan::plan(&found::read(&cluster, &options, &mut proof).await?, &options);
        notes.extend(proof);
        notes.dedup();
        Ok((Report { plan, left: Some(plan::left(&rest, &done)), done: Some(done), notes }, cluster))
    })?;
    io::print(output, &report, io.out, |out| print::report(out, &report))?;
    // What stays because something needs it is in the plan, and no failure of it.
    let undone = report.left.iter().flatten().any(|left| !left.planned);
    Ok(cluster.seen_all_or_partial(if undone { Exit::Findings } else { Exit::Ok }))
}
