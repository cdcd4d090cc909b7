//! An AgentRuntime as configuration reads it: each field by itself, so that one that is wrong hides no other.
//!
//! In: the JSON of `spec` (or of a whole object), as stored: the schema holds for what the API server accepted under the present
//! CustomResourceDefinition, and for nothing else. Out: an [`AgentRuntimeInput`] with what could be read, and a [`Fault`] for each
//! field that could not. Promise: never a panic, and no field is read that nothing uses. The validating webhook, the controllers, the
//! resolver and the command line all read through this one function.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::otlp;
use super::resolved::TraceProtocol;
pub use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::domain::bounds::Over;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::AgentRuntimeSeen;
use crate::workloads::kaos::names::Role;

/// A mode as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModeInput {
    /// One that a plan is built for.
    Available(Mode),
    /// Another word: `Ready=False/ModeNotAvailable`, and the layer below is in force.
    NotAvailable(String),
}

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

/// `spec.trace`, each member by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceInput {
    /// `endpoint`, as written: what [`otlp::url`] takes for an address; an empty one counts as absent.
    pub endpoint: Option<String>,
    /// `protocol`.
    pub protocol: Option<TraceProtocol>,
    /// `sampling.rate`, from 0 to 1; 0 is a value.
    pub rate: Option<f64>,
}

/// A workload that an AgentRuntime points at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// One of [`WorkloadKind::TARGETS`].
    pub kind: WorkloadKind,
    /// Never empty.
    pub name: Arc<str>,
}

/// A field that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `InvalidSpec`, `UnsupportedTarget` or `ModeNotAvailable`.
    pub reason: Reason,
    /// Path from the object, such as `spec.targetRef.kind`.
    pub field: &'static str,
    /// What stands there, shortened.
    pub seen: String,
    /// What is wrong and what is possible, without a full stop.
    pub message: String,
}

/// One AgentRuntime.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentRuntimeInput {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.creationTimestamp`, RFC 3339 as the API server writes it: sorts by age.
    pub created: Arc<str>,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// What `spec.targetRef` names; `None` when it names nothing that can be enrolled.
    pub target: Option<Target>,
    /// `spec.type`.
    pub agent_type: Option<AgentType>,
    /// `spec.identity.spiffe.trustDomain`, in lower case as SPIFFE ids are.
    pub trust_domain: Option<String>,
    /// `spec.trace`.
    pub trace: TraceInput,
    /// `spec.authBridgeMode`.
    pub mode: Option<ModeInput>,
    /// What could not be used, in the order of the schema.
    pub faults: Vec<Fault>,
    /// It is over a bound: nothing is known of it but its target.
    pub over: Option<Over>,
}

/// The longest value of a variable or domain that is taken from an AgentRuntime.
const LONGEST_TEXT: usize = 2048;
/// How much of a wrong value is shown.
const SHOWN: usize = 120;

impl AgentRuntimeInput {
    /// Reads `spec`; `uid`, `created` and `deleting` are the caller's to fill in.
    #[must_use]
    pub fn of_spec(spec: &Value) -> Self {
        let mut reading = Reading { spec, faults: Vec::new() };
        let agent_type = reading.agent_type();
        let target = reading.target();
        let trust_domain = reading.trust_domain();
        let trace = TraceInput { endpoint: reading.endpoint(), protocol: reading.protocol(), rate: reading.rate() };
        let mode = reading.mode();
        Self { target, agent_type, trust_domain, trace, mode, faults: reading.faults, ..Self::default() }
    }

    /// Reads what is kept of one; `uid`, `created` and `deleting` are the caller's to fill in.
    #[must_use]
    pub fn of_seen(seen: &AgentRuntimeSeen) -> Self {
        let Some(over) = seen.over else { return Self::of_spec(&seen.spec) };
        let target = seen.target.as_ref().map(|target| Target { kind: target.kind, name: Arc::clone(&target.name) });
        Self { target, over: Some(over), ..Self::default() }
    }

    /// Reads a whole object.
    #[must_use]
    pub fn of_object(object: &Value) -> Self {
        let metadata = |key: &str| object.get("metadata").and_then(|metadata| metadata.get(key));
        let text = |key: &str| Arc::from(metadata(key).and_then(Value::as_str).unwrap_or_default());
        Self {
            uid: text("uid"),
            created: text("creationTimestamp"),
            deleting: metadata("deletionTimestamp").is_some_and(|time| !time.is_null()),
            ..Self::of_spec(object.get("spec").unwrap_or(&Value::Null))
        }
    }

    /// Whether both ask for the same.
    #[must_use]
    pub fn same_settings(&self, other: &Self) -> bool {
        self.target == other.target
            && self.agent_type == other.agent_type
            && self.trust_domain == other.trust_domain
            && self.trace == other.trace
            && self.mode == other.mode
            && self.over == other.over
    }

    /// Sorts the one that governs a workload first: the oldest, then the smallest uid.
    fn seniority(&self) -> (&str, &str) {
        (&self.created, &self.uid)
    }
}

struct Reading<'a> {
    spec: &'a Value,
    faults: Vec<Fault>,
}

impl<'a> Reading<'a> {
    /// The value at a path below `spec`; an explicit null counts as absent.
    fn at(&self, path: &[&str]) -> Option<&'a Value> {
        path.iter().try_fold(self.spec, |value, key| value.get(*key)).filter(|value| !value.is_null())
    }

    fn fault(&mut self, reason: Reason, field: &'static str, seen: Option<&Value>, message: impl Into<String>) {
        self.faults.push(Fault { reason, field, seen: shown(seen), message: message.into() });
    }

    fn agent_type(&mut self) -> Option<AgentType> {
        let seen = self.at(&["type"]);
        let found =
            seen.and_then(Value::as_str).and_then(|text| AgentType::ALL.into_iter().find(|t| t.as_str() == text));
        if found.is_none() {
            self.fault(Reason::InvalidSpec, "spec.type", seen, "agent or tool is expected");
        }
        found
    }

    fn target(&mut self) -> Option<Target> {
        let mut part = |field, key| {
            let seen = self.at(&["targetRef", key]);
            let found = seen.and_then(Value::as_str).filter(|text| !text.is_empty());
            if found.is_none() {
                self.fault(Reason::InvalidSpec, field, seen, "a string that is not empty is expected");
            }
            found
        };
        let api_version = part("spec.targetRef.apiVersion", "apiVersion");
        let kind = part("spec.targetRef.kind", "kind");
        let name = part("spec.targetRef.name", "name");
        let (api_version, kind, name) = (api_version?, kind?, name?);
        match WorkloadKind::of_target(api_version, kind) {
            Some(kind) => Some(Target { kind, name: Arc::from(name) }),
            None => {
                let seen = Value::String(format!("{api_version} {kind}"));
                self.fault(
                    Reason::UnsupportedTarget,
                    "spec.targetRef.kind",
                    Some(&seen),
                    unsupported(api_version, (kind, name)),
                );
                None
            }
        }
    }

    fn trust_domain(&mut self) -> Option<String> {
        let seen = self.at(&["identity", "spiffe", "trustDomain"])?;
        let is_inner = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
        let is_outer = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
        let found = seen.as_str().filter(|text| {
            text.len() <= keys::TRUST_DOMAIN_MAX
                && is_outer(text.chars().next())
                && is_outer(text.chars().next_back())
                && text.chars().all(is_inner)
        });
        if found.is_none() {
            let message = "letters, digits, dots and dashes, beginning and ending with a letter or digit, are expected";
            self.fault(Reason::InvalidSpec, "spec.identity.spiffe.trustDomain", Some(seen), message);
        }
        found.map(str::to_ascii_lowercase)
    }

    fn endpoint(&mut self) -> Option<String> {
        let seen = self.at(&["trace", "endpoint"]).filter(|seen| seen.as_str() != Some(""))?;
        let found = seen.as_str().filter(|text| text.len() <= LONGEST_TEXT && otlp::url(text).is_some());
        if found.is_none() {
            let message = format!("{}, in up to {LONGEST_TEXT} bytes without white space, is expected", otlp::EXPECTED);
            self.fault(Reason::InvalidSpec, "spec.trace.endpoint", Some(seen), message);
        }
        found.map(str::to_owned)
    }

    fn protocol(&mut self) -> Option<TraceProtocol> {
        let seen = self.at(&["trace", "protocol"]).filter(|seen| seen.as_str() != Some(""))?;
        let found =
            [TraceProtocol::Grpc, TraceProtocol::Http].into_iter().find(|known| seen.as_str() == Some(known.as_str()));
        if found.is_none() {
            self.fault(Reason::InvalidSpec, "spec.trace.protocol", Some(seen), "grpc or http is expected");
        }
        found
    }

    fn rate(&mut self) -> Option<f64> {
        self.at(&["trace", "sampling"])?;
        let seen = self.at(&["trace", "sampling", "rate"]);
        let found = seen.and_then(Value::as_f64).filter(|rate| (0.0..=1.0).contains(rate));
        if found.is_none() {
            self.fault(Reason::InvalidSpec, "spec.trace.sampling.rate", seen, "a number from 0 to 1 is expected");
        }
        found
    }

    fn mode(&mut self) -> Option<ModeInput> {
        let seen = self.at(&["authBridgeMode"]).filter(|seen| seen.as_str() != Some(""))?;
        if let Some(mode) = seen.as_str().and_then(Mode::parse) {
            return Some(ModeInput::Available(mode));
        }
        let modes = Mode::ALL.map(Mode::as_str).join(", ");
        self.fault(
            Reason::ModeNotAvailable,
            "spec.authBridgeMode",
            Some(seen),
            format!("no such mode is available; there are {modes}"),
        );
        Some(ModeInput::NotAvailable(shown(Some(seen))))
    }
}

/// What to write instead of a pair that cannot be enrolled.
fn unsupported(api_version: &str, (kind, name): (&str, &str)) -> String {
    let role = Role::ALL.into_iter().find(|role| role.kind() == kind);
    if let Some(role) = role.filter(|_| api_version.split_once('/').is_some_and(|(group, _)| group == keys::GROUP_KAOS))
    {
        let (made, name) = (role.object(&cut(name)), cut(name));
        return format!("a workload is expected; what runs {kind} {name} of KAOS is Deployment {made} of apps/v1");
    }
    match WorkloadKind::TARGETS.into_iter().find(|known| known.as_str() == kind) {
        Some(known) => format!("{kind} belongs to apiVersion {}, not {}", known.api_version(), cut(api_version)),
        None => {
            let all: Vec<String> = WorkloadKind::TARGETS
                .iter()
                .map(|known| format!("{} ({})", known.as_str(), known.api_version()))
                .collect();
            format!("the kind is not supported; there are {}", all.join(", "))
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "absent".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "an empty string".to_owned(),
        // Without its quotes it would be what is expected.
        Some(Value::String(text)) if text.parse::<f64>().is_ok() => format!("the string {text:?}"),
        Some(Value::String(text)) => cut(text),
        Some(Value::Array(_)) => "a list".to_owned(),
        Some(Value::Object(_)) => "a mapping".to_owned(),
        Some(other) => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An AgentRuntime with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Governor {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// What it says.
    pub says: Arc<AgentRuntimeInput>,
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
