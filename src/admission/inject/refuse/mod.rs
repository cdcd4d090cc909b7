//! Refusals instead of damage: three tables, first hit decides.
//!
//! In: the Pod as it was before us, for the second table what is added, for the third the finished plan. Out: nothing, or a refusal with the
//! field at fault. What is refused here would otherwise be half-injected or break the Pod, the node or the promise.

mod annotations;
mod containers;
mod node;
mod pod_security;
mod ports;
mod resources;
mod user;
pub(super) mod volumes;

use super::context::Context;
use super::decide::Subject;
use super::plan::InjectionPlan;
use crate::admission::verdict::Denial;

/// What is known before a plan exists.
const BEFORE: &[fn(&Subject<'_>) -> Option<Denial>] =
    &[node::host_network, node::windows, containers::count, containers::names];

/// What depends on the plan.
const AFTER: &[fn(&Context<'_>, &InjectionPlan<'_>) -> Option<Denial>] = &[
    volumes::sources,
    ports::collision,
    ports::taken_over,
    ports::port_names,
    ports::name_elsewhere,
    user::proxy_user,
    pod_security::level,
    resources::of_pod,
];

/// What depends on everything that is written, the notes about it included.
const FINISHED: &[fn(&Context<'_>, &InjectionPlan<'_>) -> Option<Denial>] = &[annotations::size];

/// The first refusal that needs no plan.
pub(super) fn before(subject: &Subject<'_>) -> Result<(), Box<Denial>> {
    BEFORE.iter().find_map(|check| check(subject)).map_or(Ok(()), |denial| Err(Box::new(denial)))
}

/// The first refusal of what is added.
pub(super) fn after(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Result<(), Box<Denial>> {
    AFTER.iter().find_map(|check| check(cx, plan)).map_or(Ok(()), |denial| Err(Box::new(denial)))
}

/// The first refusal of a finished plan.
pub(super) fn finished(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> Result<(), Box<Denial>> {
    FINISHED.iter().find_map(|check| check(cx, plan)).map_or(Ok(()), |denial| Err(Box::new(denial)))
}
