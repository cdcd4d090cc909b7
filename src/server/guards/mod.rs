//! Whether the policies that the manifests install are still there: the API server asks nobody when a policy goes, so that
//! somebody has to look.
//!
//! In: the policies and bindings of our label, by watches. Out: a gauge, log lines, and a notice about each that is lost. Promises: a loss
//! is counted at once and told after two seconds by every process, and its return, too; what is replaced within them alarms nobody; what a policy says is compared by `drawbridge doctor`, not here.

pub mod plan;
pub mod watch;

pub use plan::Kind;
pub use watch::{GuardMetrics, Guards};
