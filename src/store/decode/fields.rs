//! Who owns which of our fields: what is kept of `metadata.managedFields`.
//!
//! In: the entries as stored. Out: the keys that one manager owns at the four places where enrolment writes. Promise:
//! keys that are not ours, values, times and other managers leave no trace, so their changes compare equal.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::transcript::Transcript;
use crate::domain::keys;

/// Where a key of ours may stand on a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// `metadata.labels`.
    Labels,
    /// `metadata.annotations`.
    Annotations,
    /// `metadata.labels` of the Pod template.
    TemplateLabels,
    /// `metadata.annotations` of the Pod template.
    TemplateAnnotations,
}

/// The keys of ours that one field manager owns, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owned(Box<[(Place, Box<str>)]>);

impl Owned {
    /// Whether that key there is among them.
    #[must_use]
    pub fn owns(&self, place: Place, key: &str) -> bool {
        self.0.iter().any(|(known, name)| *known == place && **name == *key)
    }

    /// All of them.
    pub fn fields(&self) -> impl Iterator<Item = (Place, &str)> {
        self.0.iter().map(|(place, key)| (*place, &**key))
    }

    /// None at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The field managers of those who may have written an object of ours before its present controller: the controllers of Agents, one of which hands
/// what runs over to another, and the Go operators.
static BEFORE: [(&str, &str); 4] = [
    (keys::MANAGER_AGENT, "Apply"),
    (keys::MANAGER_BEEAI_AGENT, "Apply"),
    (keys::MANAGER_BEEAI_COMPAT_AGENT, "Apply"),
    (keys::MANAGER_UPSTREAM, "Update"),
];

/// What was written on an object of ours before its present controller had applied anything. Server-side apply keeps what that entry owns, whatever
/// is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenBefore {
    /// The place of its entry in `metadata.managedFields`.
    pub at: u32,
    by: &'static (&'static str, &'static str),
}

impl WrittenBefore {
    /// The entry of whoever was there before the controller whose field manager is `own`; `None` once that one has an entry.
    pub(in crate::store) fn of(entries: &[ManagedFields], own: &str) -> Option<Self> {
        if entries.iter().any(|entry| entry.is(own, "Apply")) {
            return None;
        }
        BEFORE.iter().find_map(|by| {
            let at = entries.iter().position(|entry| entry.is(by.0, by.1))?;
            Some(Self { at: u32::try_from(at).ok()?, by })
        })
    }

    /// Manager and operation of the entry.
    #[must_use]
    pub fn by(self) -> (&'static str, &'static str) {
        *self.by
    }
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedFields {
    manager: Option<String>,
    operation: Option<String>,
    subresource: Option<String>,
    time: Option<String>,
    fields_v1: Option<Transcript>,
}

impl ManagedFields {
    /// Whether the entry is of that manager and operation, and about the object rather than a subresource.
    pub(in crate::store) fn is(&self, manager: &str, operation: &str) -> bool {
        self.manager.as_deref() == Some(manager)
            && self.operation.as_deref() == Some(operation)
            && self.subresource.as_deref().is_none_or(str::is_empty)
    }

    /// When the manager last took or changed a field; `None` when nobody wrote that down.
    pub(in crate::store) fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }

    /// Whether it owns that key there. Sets that do not name it are not read.
    pub(in crate::store) fn owns(&self, place: Place, key: &str) -> bool {
        let named = |text: &Transcript| text.0.contains(key);
        self.fields_v1.as_ref().is_some_and(named) && self.owned().owns(place, key)
    }

    /// The whole set, as JSON.
    pub(in crate::store) fn set(&self) -> Option<Arc<str>> {
        self.fields_v1.as_ref().map(|text| text.0.as_str().into())
    }

    /// What of ours it owns.
    pub(in crate::store) fn owned(&self) -> Owned {
        let fields = self.fields_v1.as_ref().and_then(|text| serde_json::from_str::<Fields>(&text.0).ok());
        let Some(fields) = fields else { return Owned::default() };
        let own = fields.metadata.as_ref();
        let template = fields.spec.as_ref().and_then(SpecFields::template);
        let mut owned = Vec::new();
        for (place, marked) in [(Place::Labels, own), (Place::TemplateLabels, template)] {
            collect(&mut owned, place, marked.and_then(|marked| marked.labels.as_ref()));
        }
        for (place, marked) in [(Place::Annotations, own), (Place::TemplateAnnotations, template)] {
            collect(&mut owned, place, marked.and_then(|marked| marked.annotations.as_ref()));
        }
        owned.sort();
        Owned(owned.into())
    }
}

fn collect(owned: &mut Vec<(Place, Box<str>)>, place: Place, keys: Option<&Keys>) {
    owned.extend(keys.into_iter().flat_map(|keys| &keys.0).map(|key| (place, key.clone())));
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Fields {
    #[serde(rename = "f:metadata")]
    metadata: Option<Marked>,
    #[serde(rename = "f:spec")]
    spec: Option<SpecFields>,
}

/// `spec` down to the Pod template, which each kind keeps elsewhere.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct SpecFields {
    #[serde(rename = "f:template")]
    template: Option<TemplateFields>,
    #[serde(rename = "f:podTemplate")]
    pod_template: Option<TemplateFields>,
    #[serde(rename = "f:jobTemplate")]
    job_template: Option<JobFields>,
}

impl SpecFields {
    fn template(&self) -> Option<&Marked> {
        let job = self.job_template.as_ref().and_then(|job| job.spec.as_deref());
        let template = self.template.as_ref().or(self.pod_template.as_ref());
        template.map_or_else(|| job.and_then(Self::template), |template| template.metadata.as_ref())
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct JobFields {
    #[serde(rename = "f:spec")]
    spec: Option<Box<SpecFields>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct TemplateFields {
    #[serde(rename = "f:metadata")]
    metadata: Option<Marked>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Marked {
    #[serde(rename = "f:labels")]
    labels: Option<Keys>,
    #[serde(rename = "f:annotations")]
    annotations: Option<Keys>,
}

/// The keys of ours in a set of fields; the others are passed over without being built.
#[derive(Debug, Clone, Default)]
struct Keys(Vec<Box<str>>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Keys;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a set of fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
                let mut kept = Vec::new();
                while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    map.next_value::<IgnoredAny>()?;
                    if let Some(key) = key.strip_prefix("f:").filter(|key| keys::is_ours(key)) {
                        kept.push(key.into());
                    }
                }
                Ok(Keys(kept))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
