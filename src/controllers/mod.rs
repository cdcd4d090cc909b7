//! What an injected Pod needs, made ahead of it: one folder per concern, plans pure, writes fenced.
//!
//! In: the feed of the watches, the configuration in force, the term of leadership. Out: writes, through a client that
//! refuses them without the Lease. Every controller is a row: which items a change concerns, and what to do about one.

pub mod agent;
pub mod agent_build;
pub mod agent_card;
pub mod armed;
pub mod card_sync;
mod conditions;
pub mod enrolment;
pub mod gate;
pub mod kaos_references;
mod looks;
pub mod namespace_config;
pub mod network_policy;
mod parameters;
pub mod rbac;
mod references;
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
use scaffold::metrics::FamilyRow;
pub use scaffold::run::Deps;
pub use scaffold::runner::Runner;

/// Every controller; what comes first is planned first.
fn always() -> [Box<dyn Runner>; 19] {
    [
        network_policy::plan::ROW.runner(),
        armed::plan::ROW.runner(),
        trust_label::plan::ROW.runner(),
        service_account::plan::ROW.runner(),
        signer::plan::ROW.runner(),
        namespace_config::plan::ROW.runner(),
        agent_build::plan::ROW.runner(),
        agent_build::beeai::ROW.runner(),
        agent_build::beeai::COMPAT_ROW.runner(),
        agent::plan::ROW.runner(),
        agent::beeai::ROW.runner(),
        agent::beeai::COMPAT_ROW.runner(),
        agent::kaos::MODEL_API_ROW.runner(),
        agent::kaos::MCP_SERVER_ROW.runner(),
        agent::kaos::AGENT_ROW.runner(),
        enrolment::plan::ROW.runner(),
        card_sync::plan::ROW.runner(),
        waiting::plan::ROW.runner(),
        resign::plan::ROW.runner(),
    ]
}

/// What single controllers count of their own.
const FAMILIES: [FamilyRow; 5] = [
    enrolment::memory::DRIFT,
    enrolment::memory::PROTECTED,
    resign::memory::RESTARTS,
    network_policy::memory::OPENED,
    network_policy::memory::ARMED,
];

/// The counters of all controllers.
#[must_use]
pub fn metrics() -> ControllerMetrics {
    ControllerMetrics::with(&FAMILIES)
}

/// Runs the controllers until the watches end; `gate` adds the one of failure mode gate, `asking` are those that ask others than the API
/// server.
pub async fn run(deps: Deps, gate: bool, asking: Vec<Box<dyn Runner>>) {
    let gate = gate.then(|| gate::plan::ROW.runner());
    let rows = always().into_iter().chain(gate);
    scaffold::run::run(rows.chain(asking).collect(), deps, jitter).await;
}

/// A number in 0..1.
fn jitter() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 40;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(1u32 << 24)
}
