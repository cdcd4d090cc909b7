//! What is kept of our own custom resources Agent and AgentBuild, of whichever group.
//!
//! `spec` and `status` are kept whole: they are ours to act on; of a build, what records say of images is kept as text, for it is the most of
//! it by far and seldom read. What people write on one is bounded ([`LARGEST_TEXT`]), here as by
//! admission, which may have been away; of one that is larger its marks are kept, and [`Over`]. Of `metadata.managedFields` nothing is
//! kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::api::agent_kagenti_dev::provenance;
use crate::domain::bounds::{LARGEST_TEXT, Over};
use crate::domain::keys;
use crate::store::Kept;
use crate::store::decode::{Small, Whole};

/// Bytes that the names of finalizers take which are kept of one object: with more, none is.
const LARGEST_FINALIZERS: usize = 8 * 1024;
/// Bytes of the same that are kept of one over a bound, which is counted nowhere: a dozen names, of which one is ours.
const FEW_FINALIZERS: usize = 1024;
/// Bytes that a name takes besides its text.
const NAME: usize = 48;

/// Bytes that are kept of the status of one that is over a bound, as they lie in memory: some twice of what we write there as a rule.
const STATUS: usize = 24 * 1024;

/// An Agent or AgentBuild.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomSeen {
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`, RFC 3339: sorts by age.
    pub created: Box<str>,
    /// Being deleted.
    pub deleting: bool,
    /// `metadata.finalizers`, in order; none of one that is over a bound and has more than a dozen.
    pub finalizers: Box<[Box<str>]>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, but for the copy of the object that `kubectl apply` leaves.
    pub annotations: BTreeMap<String, String>,
    /// `spec`, as stored; an empty object when there is none.
    pub spec: Arc<Value>,
    /// `status`, as stored but for [`Self::records`] and members that are larger than anybody of ours writes; an empty object when there is none. Of
    /// one that is over a bound, its small members.
    pub status: Arc<Value>,
    /// Of a build: the members of its status that hold records ([`provenance::MEMBERS`]), those that there are. Nothing of other kinds, and
    /// of one for which there is no room.
    pub records: Box<[(&'static str, Kept)]>,
    /// It is over a bound: labels, annotations and `spec` are empty here, whatever is written.
    pub over: Option<Over>,
}

impl CustomSeen {
    /// The same, of which nothing is read because it is `over` a bound: its marks, and of its status what is small. It is counted nowhere, so
    /// nothing that somebody may have made large is left. Its finalizers are, where they are few: ours comes off when it is being deleted. Where there
    /// are more, it cannot go before others have taken off theirs, and then they are few.
    #[must_use]
    pub fn slim(&self, over: Over) -> Self {
        Self {
            generation: self.generation,
            created: self.created.clone(),
            deleting: self.deleting,
            finalizers: few(&self.finalizers),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            spec: Arc::new(json!({})),
            status: Arc::new(small_part(&self.status)),
            records: Box::default(),
            over: Some(over),
        }
    }

    /// What people have written on it, in bytes of text.
    fn written(&self) -> usize {
        let texts =
            |map: &BTreeMap<String, String>| map.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let mut spec = Length(0);
        // A sink that counts takes everything.
        let _ = serde_json::to_writer(&mut spec, &*self.spec);
        spec.0 + texts(&self.labels) + texts(&self.annotations)
    }

    /// Carries our finalizer of `agent.kagenti.dev`.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.carries(keys::FINALIZER_AGENT)
    }

    /// Carries that finalizer.
    #[must_use]
    pub fn carries(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|name| &**name == finalizer)
    }

    /// By it the API server's policies know that its namespace holds one of its kind; one that goes is none.
    #[must_use]
    pub fn is_policy_parameter(&self) -> bool {
        !self.deleting
            && self.labels.get(keys::LABEL_POLICY_PARAMETER).is_some_and(|value| value == keys::POLICY_PARAMETER)
    }

    /// What a member of the status that holds records says.
    #[must_use]
    pub fn record(&self, member: &str) -> Option<&Kept> {
        self.records.iter().find(|(name, _)| *name == member).map(|(_, kept)| kept)
    }

    /// The AgentBuild that an Agent takes its image from: `spec.imageSource.buildRef.name`.
    #[must_use]
    pub fn build_ref(&self) -> Option<&str> {
        let name = self.spec.pointer("/imageSource/buildRef/name")?.as_str()?;
        (!name.is_empty()).then_some(name)
    }

    /// The object as `build` reads it: metadata as far as it is kept, and `spec`.
    #[must_use]
    pub fn object(&self, namespace: &str, name: &str, uid: &str) -> Value {
        json!({
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid, "generation": self.generation,
                "labels": self.labels, "annotations": self.annotations,
            },
            "spec": &*self.spec,
        })
    }
}

impl CustomSeen {
    pub(super) fn of(object: Whole) -> Self {
        Self::of_at_most(object, LARGEST_TEXT)
    }

    /// The same, of a build.
    pub(super) fn of_build(object: Whole) -> Self {
        let mut seen = Self::of(object);
        let Some(status) = Arc::get_mut(&mut seen.status).and_then(Value::as_object_mut) else { return seen };
        let records =
            provenance::MEMBERS.into_iter().filter_map(|member| Some((member, Kept::of(&status.remove(member)?))));
        seen.records = records.collect();
        seen
    }

    /// The same, where `most` bytes of text are read.
    pub(super) fn of_at_most(object: Whole, most: usize) -> Self {
        let is_larger = object.spec.as_ref().is_some_and(|spec| spec.value().is_none());
        let seen = Self::whole(object);
        if !are_few(seen.finalizers.iter().map(|name| &**name)) {
            // Nobody writes a list that is not known.
            return Self { finalizers: Box::default(), ..seen.slim(Over::Size) };
        }
        if is_larger || seen.written() > most { seen.slim(Over::Size) } else { seen }
    }

    fn whole(object: Whole) -> Self {
        let metadata = object.metadata;
        let mut annotations = metadata.annotations.unwrap_or_default();
        annotations.remove(keys::ANNOTATION_LAST_APPLIED);
        Self {
            over: None,
            generation: metadata.generation.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers.into_iter().flatten().map(Into::into).collect(),
            created: metadata.creation_timestamp.unwrap_or_default().into(),
            labels: metadata.labels.unwrap_or_default(),
            annotations,
            spec: Arc::new(
                object.spec.and_then(Small::into_value).filter(Value::is_object).unwrap_or_else(|| json!({})),
            ),
            status: Arc::new(Value::Object(object.status.unwrap_or_default().into_members())),
            records: Box::default(),
        }
    }
}

/// Whether so many finalizers, with such names, are kept.
pub(super) fn are_few<'f>(finalizers: impl Iterator<Item = &'f str>) -> bool {
    bytes(finalizers) <= LARGEST_FINALIZERS
}

/// The finalizers that are kept of one that is over a bound: all, or none where they are more than [`FEW_FINALIZERS`], since nobody writes a list of
/// which he knows a part.
pub(super) fn few(finalizers: &[Box<str>]) -> Box<[Box<str>]> {
    if bytes(finalizers.iter().map(|name| &**name)) <= FEW_FINALIZERS { finalizers.into() } else { Box::default() }
}

fn bytes<'f>(finalizers: impl Iterator<Item = &'f str>) -> usize {
    finalizers.map(|name| NAME + name.len()).sum()
}

/// The members of a status that take no more than [`STATUS`] together: the conditions, whose times would be written anew at each look were they not
/// known, then the smallest. Of the others nobody knows, and so nobody takes them away.
pub(super) fn small_part(status: &Value) -> Value {
    let members = status.as_object().into_iter().flatten();
    let mut members: Vec<_> = members.map(|(key, value)| (key.len() + tree(value), key, value)).collect();
    members.sort_by_key(|(bytes, key, _)| (key.as_str() != "conditions", *bytes));
    let mut room = STATUS;
    let kept = members.into_iter().filter(|(bytes, ..)| {
        let left = room.checked_sub(*bytes);
        room = left.unwrap_or(room);
        left.is_some()
    });
    Value::Object(kept.map(|(_, key, value)| (key.clone(), value.clone())).collect())
}

/// About how many bytes a value takes in memory: a text of small mappings takes a hundred times its length, for each has room for eleven members.
fn tree(value: &Value) -> usize {
    const MEMBERS: usize = 11 * (size_of::<String>() + size_of::<Value>());
    let within = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(tree).sum(),
        Value::Object(members) => {
            let nodes = if members.len() <= 11 { usize::from(!members.is_empty()) } else { members.len().div_ceil(6) };
            nodes * MEMBERS + members.iter().map(|(key, value)| key.len() + tree(value)).sum::<usize>()
        }
        _ => 0,
    };
    size_of::<Value>() + within
}

/// Counts what is written into it.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
