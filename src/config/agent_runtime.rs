//! Which AgentRuntime governs which workload of a namespace, and what it says ([`AgentRuntimeInput`], read where it is decoded).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::mode::Mode;
use crate::domain::workload::WorkloadKind;
pub use crate::store::Target;
pub use crate::store::kinds::agent_runtime::input::{AgentRuntimeInput, AgentType, Fault, ModeInput, TraceInput};

/// What to do where a workload carries another type than its AgentRuntime says. `selected`: the label stands in the
/// selector, which nobody can change.
#[must_use]
pub fn out_of_conflict(found: &str, selected: bool) -> String {
    let takes = AgentType::ALL.iter().any(|known| known.as_str() == found);
    match (takes, selected) {
        (true, true) => format!(
            "Change spec.type to {found}: the label is in the workload's selector, which cannot be changed, so that it can \
             be taken out only by deleting the workload and making it anew"
        ),
        (false, true) => format!(
            "Delete the workload and make it anew without the label: it is in its selector, which cannot be changed, and {found:?} is \
                not a type"
        ),
        (true, false) => format!("Take the label out of the workload's manifest, or change spec.type to {found}"),
        (false, false) => "Take the label out of the workload's manifest".to_owned(),
    }
}

/// An AgentRuntime with its name.
#[derive(Debug, Clone)]
pub struct Governor {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// What it says.
    pub says: Arc<AgentRuntimeInput>,
}

/// A view made anew shares with the one before what has not changed: of a thousand, all but a few are compared by where they are.
impl PartialEq for Governor {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && (Arc::ptr_eq(&self.says, &other.says) || self.says == other.says)
    }
}

/// Which AgentRuntime governs which workload of a namespace: of those that point at it and are not being deleted the oldest, then the
/// one with the smallest uid.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Governors {
    by_kind: BTreeMap<WorkloadKind, BTreeMap<Arc<str>, Governor>>,
    traced: bool,
    takes_ports: bool,
}

impl Governors {
    /// The index of a namespace's AgentRuntimes, in one pass.
    #[must_use]
    pub fn of(agent_runtimes: &BTreeMap<Arc<str>, Arc<AgentRuntimeInput>>) -> Self {
        let mut by_kind: BTreeMap<WorkloadKind, BTreeMap<Arc<str>, Governor>> = BTreeMap::new();
        for (name, says) in agent_runtimes {
            let Some(target) = says.target.as_ref().filter(|_| !says.deleting) else { continue };
            let of_kind = by_kind.entry(target.kind).or_default();
            let found = || Governor { name: Arc::clone(name), says: Arc::clone(says) };
            of_kind
                .entry(Arc::clone(&target.name))
                .and_modify(|first| {
                    if says.seniority() < first.says.seniority() {
                        *first = found();
                    }
                })
                .or_insert_with(found);
        }
        let any = |says: fn(&AgentRuntimeInput) -> bool| {
            by_kind.values().flat_map(BTreeMap::values).any(|governor| says(&governor.says))
        };
        let traced = any(|says| says.trace != TraceInput::default());
        let takes_ports = any(|says| says.mode == Some(ModeInput::Available(Mode::ProxySidecar)));
        Self { by_kind, traced, takes_ports }
    }

    /// Whether one of them says something about tracing.
    #[must_use]
    pub fn trace(&self) -> bool {
        self.traced
    }

    /// Whether one of them asks for the mode in which the proxy takes the agent's port over.
    #[must_use]
    pub fn takes_ports(&self) -> bool {
        self.takes_ports
    }

    /// Whether a workload of that kind is governed.
    #[must_use]
    pub fn any(&self, kind: WorkloadKind) -> bool {
        self.by_kind.contains_key(&kind)
    }

    /// The workloads that another AgentRuntime governs than `before`, or the same with other settings, or none any more.
    #[must_use]
    pub fn differences(&self, before: &Self) -> Vec<(WorkloadKind, Arc<str>)> {
        let all = |governors: &Self| {
            let of_kind = governors.by_kind.iter();
            of_kind.flat_map(|(kind, names)| names.keys().map(|name| (*kind, name.clone()))).collect::<Vec<_>>()
        };
        let mut workloads = all(self);
        workloads.extend(all(before).into_iter().filter(|(kind, name)| self.winner(*kind, name).is_none()));
        workloads.retain(|(kind, name)| self.winner(*kind, name) != before.winner(*kind, name));
        workloads
    }

    /// The AgentRuntime that governs the workload.
    #[must_use]
    pub fn winner(&self, kind: WorkloadKind, name: &str) -> Option<&Governor> {
        self.by_kind.get(&kind)?.get(name)
    }
}

#[cfg(test)]
mod tests;
