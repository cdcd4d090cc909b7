//! What an injected Pod needs, made ahead of it: one folder per concern, plans pure, writes fenced.
//!
//! In: the feed of the watches, the configuration in force, the term of leadership. Out: writes, through a client that
//! refuses them without the Lease. Every controller is a row: which items a change concerns, and what to do about one.

pub mod agent;
pub mod agent_build;
pub mod agent_card;
pub mod card_sync;
mod conditions;
pub mod enrolment;
pub mod gate;
pub mod kaos_references;
pub mod namespace_config;
pub mod network_policy;
pub mod rbac;
pub mod resign;
pub mod scaffold;
pub mod service_account;
pub mod signer;
#[cfg(test)]
mod simulation;
pub mod tool_discovery;
mod trust;
pub mod trust_label;
pub mod waiting;

use std::hash::{BuildHasher, Hasher, RandomState};

pub use scaffold::metrics::ControllerMetrics;
use scaffold::plan::Row;
pub use scaffold::run::Deps;
pub use scaffold::runner::{Asking, Runner};

/// Every controller; what comes first is planned first.
const ALWAYS: [Row; 18] = [
    network_policy::plan::ROW,
    trust_label::plan::ROW,
    service_account::plan::ROW,
    signer::plan::ROW,
    namespace_config::plan::ROW,
    agent_build::plan::ROW,
    agent_build::beeai::ROW,
    agent_build::beeai::COMPAT_ROW,
    agent::plan::ROW,
    agent::beeai::ROW,
    agent::beeai::COMPAT_ROW,
    agent::kaos::MODEL_API_ROW,
    agent::kaos::MCP_SERVER_ROW,
    agent::kaos::AGENT_ROW,
    enrolment::plan::ROW,
    card_sync::plan::ROW,
    waiting::plan::ROW,
    resign::plan::ROW,
];

/// Runs the controllers until the watches end; `gate` adds the one of failure mode gate, `asking` are those that ask others than the API
/// server.
pub async fn run(deps: Deps, gate: bool, asking: Vec<Box<dyn Runner>>) {
    let gate = gate.then_some(gate::plan::ROW);
    let rows = ALWAYS.into_iter().chain(gate).map(|row| Box::new(row) as Box<dyn Runner>);
    scaffold::run::run(rows.chain(asking).collect(), deps, jitter).await;
}

/// A number in 0..1.
fn jitter() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 40;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(1u32 << 24)
}
