//! The AgentRuntime that governs a Pod's workload: the strongest layer.
//!
//! In: the values of the layers below. Out: the values in force, and warnings for what was overridden, left out or contradicted. Promise: a
//! field that cannot be used leaves the layer below in force and says so; the Pod's label decides what it is, never the AgentRuntime.

use std::borrow::Cow;
use std::sync::Arc;

use super::decide::Subject;
use crate::admission::verdict::Warning;
use crate::config::agent_runtime::Governor;
use crate::config::inputs::ModeInput;
use crate::config::layers::{Field, Layer};
use crate::config::resolved::{Resolved, Trace};
use crate::config::schema::Show;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;
use crate::domain::workload::Workload;

/// The AgentRuntime that governs the workload.
pub(super) fn of<'a>(subject: &Subject<'a>, workload: &Workload) -> Option<&'a Governor> {
    subject.view().governors.winner(workload.kind, &workload.name)
}

/// The words in which an AgentRuntime is named.
pub(super) fn named(governor: &Governor) -> String {
    format!("AgentRuntime {}", governor.name)
}

/// What it says that cannot be used, and where the Pod contradicts it.
pub(super) fn notice(subject: &Subject<'_>, governor: &Governor, warnings: &mut Vec<Warning>) {
    let who = named(governor);
    warnings.extend(governor.says.faults.iter().filter(|fault| fault.reason != Reason::ModeNotAvailable).map(
        |fault| {
            Warning::new(
                fault.reason,
                format!("{who}, {}: {} ({}); the next lower layer is in force", fault.field, fault.message, fault.seen),
            )
        },
    ));
    let label = subject.pod.label(keys::LABEL_TYPE).unwrap_or("");
    if let Some(agent_type) = governor.says.agent_type.filter(|agent_type| agent_type.as_str() != label) {
        warnings.push(Warning::new(
            Reason::TypeMismatch,
            format!(
                "{who} says type {} and label {} of the Pod says {label}; the label decides. Make them agree",
                agent_type.as_str(),
                keys::LABEL_TYPE
            ),
        ));
    }
}

/// Lays one value over the layers below; a different value that somebody had set is reported.
fn lay<T: Clone + PartialEq + Show>(
    path: &str,
    below: &Field<T>,
    value: T,
    governor: &Governor,
    warnings: &mut Vec<Warning>,
) -> Field<T> {
    if below.layer != Layer::BuiltIn && below.value != value {
        warnings.push(Warning::new(
            Reason::ValueShadowed,
            format!(
                "{path} {} from {} is overridden by {}: {}",
                below.value.show(),
                below.layer,
                named(governor),
                value.show()
            ),
        ));
    }
    below.clone().over(Layer::AgentRuntime(Arc::clone(&governor.name)), value, Show::show)
}

/// The mode: the AgentRuntime's over what annotation and namespace say.
pub(super) fn mode(below: Field<Mode>, governor: &Governor, warnings: &mut Vec<Warning>) -> Field<Mode> {
    match &governor.says.mode {
        None => below,
        Some(ModeInput::Available(mode)) => lay("mode", &below, *mode, governor, warnings),
        Some(ModeInput::NotAvailable(word)) => {
            let modes = Mode::ALL.map(Mode::as_str).join(", ");
            warnings.push(Warning::new(
                Reason::ModeNotAvailable,
                format!(
                    "{} asks for mode {word}, which is not available; {} from {} is used. Modes: {modes}",
                    named(governor),
                    below.value.as_str(),
                    below.layer
                ),
            ));
            below
        }
    }
}

/// Tracing, each member by itself.
pub(super) fn trace<'a>(
    resolved: &'a Resolved,
    governor: Option<&Governor>,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, Trace> {
    let mut trace = Cow::Borrowed(&resolved.trace);
    let Some(governor) = governor else { return trace };
    let says = &governor.says.trace;
    if says.endpoint.is_some() {
        trace.to_mut().endpoint =
            lay("trace.endpoint", &resolved.trace.endpoint, says.endpoint.clone(), governor, warnings);
    }
    if says.protocol.is_some() {
        trace.to_mut().protocol = lay("trace.protocol", &resolved.trace.protocol, says.protocol, governor, warnings);
    }
    if says.rate.is_some() {
        trace.to_mut().sampling_ratio =
            lay("trace.samplingRatio", &resolved.trace.sampling_ratio, says.rate, governor, warnings);
    }
    trace
}

/// The trust domain of the workload's SPIFFE id.
pub(super) fn trust_domain<'a>(
    resolved: &'a Resolved,
    governor: Option<&Governor>,
    warnings: &mut Vec<Warning>,
) -> Cow<'a, Field<String>> {
    let below = &resolved.trust_domain;
    match governor.and_then(|governor| Some((governor, governor.says.trust_domain.clone()?))) {
        Some((governor, domain)) => Cow::Owned(lay("spiffe.trustDomain", below, domain, governor, warnings)),
        None => Cow::Borrowed(below),
    }
}
