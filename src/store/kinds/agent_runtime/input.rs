//! An AgentRuntime as admission and controllers read it: each field by itself, so that one that is wrong hides no other.
//!
//! In: the JSON of `spec` (or of a whole object), as stored: the schema holds for what the API server accepted under the present
//! CustomResourceDefinition, and for nothing else. Out: an [`AgentRuntimeInput`] with what could be read, and a [`Fault`] for each
//! field that could not. Promise: never a panic, and no field is read that nothing uses. The validating webhook, the controllers, the
//! resolver and the command line all read through this one function.

use std::sync::Arc;

use serde_json::Value;

use super::{AgentRuntimeSeen, Target};
pub use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::domain::bounds::Over;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::otlp::{self, TraceProtocol};
use crate::domain::reason::Reason;
use crate::domain::userinfo::unread_without_userinfo;
use crate::domain::workload::WorkloadKind;

/// A mode as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModeInput {
    /// One that a plan is built for.
    Available(Mode),
    /// Another word: `Ready=False/ModeNotAvailable`, and the layer below is in force.
    NotAvailable(String),
}

/// `spec.trace`, each member by itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceInput {
    /// `endpoint`, as written: what [`otlp::url_of_settings`] takes for an address; an empty one counts as absent.
    pub endpoint: Option<String>,
    /// `protocol`.
    pub protocol: Option<TraceProtocol>,
    /// `sampling.rate`, from 0 to 1; 0 is a value.
    pub rate: Option<f64>,
}

/// A field that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `InvalidSpec`, `UnsupportedTarget` or `ModeNotAvailable`.
    pub reason: Reason,
    /// Path from the object, such as `spec.targetRef.kind`.
    pub field: &'static str,
    /// What stands there, shortened, and without credentials in an address.
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
        Self { target: seen.target.clone(), over: Some(over), ..Self::default() }
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
    #[must_use]
    pub fn seniority(&self) -> (&str, &str) {
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
        let found = seen.as_str().filter(|text| text.len() <= LONGEST_TEXT && otlp::url_of_settings(text).is_some());
        if found.is_none() {
            let expected = otlp::EXPECTED_OF_SETTINGS;
            let message = format!("{expected} in up to {LONGEST_TEXT} bytes without white space, is expected");
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

/// The kinds of KAOS, and how the Deployments begin that run their objects.
const MADE_BY_KAOS: [(&str, &str); 3] =
    [("Agent", keys::PREFIX_KAOS_AGENT), ("ModelAPI", keys::PREFIX_MODEL_API), ("MCPServer", keys::PREFIX_MCP_SERVER)];

/// What to write instead of a pair that cannot be enrolled.
fn unsupported(api_version: &str, (kind, name): (&str, &str)) -> String {
    let is_kaos = api_version.split_once('/').is_some_and(|(group, _)| group == keys::GROUP_KAOS);
    if let Some((_, prefix)) = MADE_BY_KAOS.into_iter().find(|(of, _)| is_kaos && *of == kind) {
        let name = cut(name);
        return format!(
            "a workload is expected; what runs {kind} {name} of KAOS is Deployment {prefix}{name} of apps/v1"
        );
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
        Some(Value::String(text)) => cut(&unread_without_userinfo(text)),
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

#[cfg(test)]
mod tests;
