//! The modes as data: what is built for each. A further mode is one file and one row.

mod combined;
mod envoy_sidecar;
mod proxy_sidecar;

use super::context::Context;
use super::plan::InjectionPlan;
use crate::admission::verdict::Denial;
use crate::config::gates::Gates;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// Fills the containers, edits and runtime configuration of a plan.
type Build = for<'a> fn(&Context<'a>, &mut InjectionPlan<'a>) -> Result<(), Box<Denial>>;

/// What a mode comes to.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// The Pod stays as it is.
    Untouched(Reason),
    /// A plan is built.
    Build(Build),
}

/// One mode, under the gates for which the row is meant.
pub(super) struct Row {
    mode: Mode,
    applies: fn(&Gates) -> bool,
    shape: Shape,
}

/// First hit decides.
const MODES: &[Row] = &[
    Row { mode: Mode::EnvoySidecar, applies: |g| g.combined_sidecar, shape: Shape::Build(combined::build) },
    Row { mode: Mode::EnvoySidecar, applies: |_| true, shape: Shape::Build(envoy_sidecar::build) },
    Row { mode: Mode::ProxySidecar, applies: |_| true, shape: Shape::Build(proxy_sidecar::build) },
    // The proxy is a Deployment managed elsewhere (5.10).
    Row { mode: Mode::Waypoint, applies: |_| true, shape: Shape::Untouched(Reason::ModeWaypoint) },
];

/// The shape of a mode; one that has no row adds nothing.
pub(super) fn shape(mode: Mode, gates: &Gates) -> Shape {
    MODES
        .iter()
        .find(|row| row.mode == mode && (row.applies)(gates))
        .map_or(Shape::Untouched(Reason::NothingToInject), |row| row.shape)
}
