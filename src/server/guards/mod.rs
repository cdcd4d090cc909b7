//! Whether the policies and webhook configurations that the manifests install are still there: the API server asks nobody when one
//! goes, so that somebody has to look.
//!
//! In: the policies and bindings of our label, and the webhook configurations of our name, by watches; of the latter from who
//! publishes into them, where somebody does, so that nothing is watched twice. Out: a gauge, log lines, and a
//! notice about each that is lost. Promises: a loss is counted at once, and told by every process (of a webhook configuration within a
//! second, of a policy after two), and its return, too; what is replaced within that time alarms nobody. Policies that come with a group of kinds
//! are missed only while that group is served, and told and counted after a minute. What a policy says is compared
//! by `drawbridge doctor`, not here.

pub mod plan;
pub mod watch;

pub use plan::Kind;
pub use watch::{GuardMetrics, Guards};
