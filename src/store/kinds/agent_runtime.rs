//! What is kept of an AgentRuntime: its fields, each no longer than [`LONGEST`]. A longer one is refused
//! by all who read it, and so is what is left of it. Of one that is over a bound its marks, status and target are kept, and [`Over`]:
//! whoever reads it knows that the workload is governed, and not by what.

pub mod input;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use self::input::AgentRuntimeInput;
use super::custom::{are_few, few, small_part};
use super::{Kind, Slim, What};
use crate::api::agent_kagenti_dev as api;
use crate::domain::bounds::Over;
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::store::decode::wire::{CardSummary, Raw, Spec, Status};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Kept, Observed, Selection, UsedBy};

/// AgentRuntimes.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    words: &["agentruntime", "agentruntimes", "agentrt", "art"],
    slim,
    selections: &[Selection::all(page::RUNS, UsedBy::Every)],
    ..Descriptor::ours(
        (api::GROUP, api::VERSION),
        "agentruntimes",
        "AgentRuntime",
        (Decode::Common(project), api::agent_runtime::crd),
    )
};

fn project(_: Kind, raw: Raw) -> Option<What> {
    Some(What::AgentRuntime(agent_runtime(raw)))
}

/// Admission reads what it asks for, and neither its marks nor its status.
fn slim(_: &str, now: &Arc<Observed>) -> Arc<Observed> {
    let What::AgentRuntime(seen) = &now.what else { return now.clone() };
    let (uid, what) = (seen.input.uid.clone(), What::Slim(Slim::AgentRuntime(seen.input.clone())));
    Arc::new(Observed { uid, version: now.version, what })
}

/// Bytes that are kept of one text of a spec: twice of what any reader takes for a value.
const LONGEST: usize = 4096;

/// Bytes that are kept of a status, as JSON: more than we ever write. With more, none is.
pub const LARGEST_STATUS: usize = 32 * 1024;

/// An AgentRuntime.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRuntimeSeen {
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`, RFC 3339: sorts by age.
    pub created: Box<str>,
    /// Being deleted.
    pub deleting: bool,
    /// Carries our finalizer.
    pub finalizer: bool,
    /// `metadata.finalizers`, in order.
    pub finalizers: Box<[Box<str>]>,
    /// What `spec.targetRef` points at, when it is of a kind that we serve.
    pub target: Option<Target>,
    /// `spec`, as stored.
    pub spec: Arc<Value>,
    /// `status`, as stored; an empty object when there is none, or more than anybody of ours writes. Of one that is over a bound, its small
    /// members.
    pub status: Kept,
    /// It is over a bound: of `spec` nothing is kept here but the target.
    pub over: Option<Over>,
    /// What it asks for, as it was read of `spec`.
    pub input: Arc<AgentRuntimeInput>,
}

/// The workload an AgentRuntime points at, in its own namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// One of [`WorkloadKind::TARGETS`].
    pub kind: WorkloadKind,
    /// `metadata.name`.
    pub name: Arc<str>,
}

impl AgentRuntimeSeen {
    /// The same, of which nothing is read because it is `over` a bound: its marks, its target, its finalizers where they are few, and of its status what
    /// is small.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        let status = Kept::of(&small_part(&self.status.value()));
        let (spec, finalizers) = (Arc::new(json!({})), few(&self.finalizers));
        let slim = Self { spec, finalizers, status, over: Some(over), ..self.clone() };
        slim.read(self.input.uid.clone())
    }

    /// The same, with what it asks for read anew.
    fn read(self, uid: Arc<str>) -> Self {
        let (created, deleting) = (Arc::from(&*self.created), self.deleting);
        let input = AgentRuntimeInput { uid, created, deleting, ..AgentRuntimeInput::of_seen(&self) };
        Self { input: Arc::new(input), ..self }
    }

    /// `spec.type`.
    #[must_use]
    pub fn agent_type(&self) -> Option<&str> {
        self.spec.get("type").and_then(Value::as_str)
    }
}

impl Target {
    /// The target in that `spec`; `None` when it names no workload of a kind that we serve.
    #[must_use]
    pub fn of_spec(spec: &Value) -> Option<Self> {
        let text = |key: &str| spec.get("targetRef")?.get(key)?.as_str();
        let kind = WorkloadKind::of_target(text("apiVersion")?, text("kind")?)?;
        let name = text("name").filter(|name| !name.is_empty())?;
        Some(Self { kind, name: name.into() })
    }
}

fn agent_runtime(raw: Raw) -> AgentRuntimeSeen {
    let metadata = raw.metadata;
    let uid = metadata.uid.as_deref().unwrap_or_default().into();
    let spec = spec(*raw.spec.unwrap_or_default());
    let is_read = are_few(metadata.finalizers.iter().flatten().map(String::as_str));
    let status = status(*raw.status.unwrap_or_default());
    let status = if api::agent_card::is_within(&status, LARGEST_STATUS) { status } else { json!({}) };
    let mut seen = AgentRuntimeSeen {
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizer: metadata.finalizers.iter().flatten().any(|name| name == keys::FINALIZER),
        finalizers: metadata.finalizers.into_iter().flatten().map(Into::into).collect(),
        created: metadata.creation_timestamp.unwrap_or_default().into(),
        target: Target::of_spec(&spec),
        spec: Arc::new(spec),
        status: Kept::of(&status),
        over: (!is_read).then_some(Over::Size),
        input: Arc::default(),
    };
    if seen.over.is_some() {
        // Nobody writes a list that is not known.
        (seen.finalizers, seen.spec) = (Box::default(), Arc::new(json!({})));
        seen.status = Kept::of(&small_part(&status));
    }
    seen.read(uid)
}

fn object(members: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    let present = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

/// Texts of `value`, cut to [`LONGEST`].
fn cut(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST => {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.shrink_to_fit();
        }
        Value::Array(items) => items.iter_mut().for_each(cut),
        Value::Object(members) => members.values_mut().for_each(cut),
        _ => {}
    }
}

fn spec(spec: Spec) -> Value {
    let mut spec = whole_spec(spec);
    cut(&mut spec);
    spec
}

fn whole_spec(spec: Spec) -> Value {
    object([
        ("type", spec.type_),
        ("targetRef", spec.target_ref),
        ("identity", spec.identity),
        ("trace", spec.trace),
        ("authBridgeMode", spec.auth_bridge_mode),
    ])
}

fn status(status: Status) -> Value {
    let conditions = status.conditions.map(|list| list.into_iter().map(|one| one.into_value()).collect());
    object([
        ("phase", status.phase.map(Value::from)),
        ("observedGeneration", status.observed_generation.map(Value::from)),
        ("configuredPods", status.configured_pods),
        ("runningPods", status.running_pods),
        ("conditions", conditions),
        ("configHash", status.config_hash.map(Value::from)),
        ("effective", status.effective),
        ("appliedTarget", status.applied_target),
        ("card", status.card.and_then(card)),
    ])
}

/// No more than we write of a card: the Go operator kept whole ones here.
fn card(card: CardSummary) -> Option<Value> {
    let members = [
        ("name", Some(Value::from(card.name?))),
        ("verified", card.verified.map(Value::from)),
        ("reason", card.reason.map(Value::from)),
    ];
    let mut card = object(members);
    cut(&mut card);
    Some(card)
}
