//! What enrolment writes on a workload, and nothing else: the fields of one server-side apply.
//!
//! In: a workload as seen, or what is wanted on it. Out: the fields, comparable, and the body that applies them.
//! Promises: the body names the workload's uid, so that it never makes one; applying no fields at all takes exactly ours
//! away.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use crate::domain::keys;
use crate::store::objects::WorkloadRef;
use crate::store::{Place, WorkloadSeen};

/// The fields by place and key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Fields(BTreeMap<(Place, String), String>);

/// Where the annotation is that says for which hash a workload was rolled by us.
const ROLLED_FOR: (Place, &str) = (Place::Annotations, keys::ANNOTATION_ROLLED_FOR);

impl Fields {
    /// What an AgentRuntime's enrolment writes: the type on workload and template, the hash, the marker.
    pub(super) fn enrolled(agent_type: &str, hash: &str, marker: bool) -> Self {
        let mut fields = Self::hash_only(hash);
        fields.put(Place::Labels, keys::LABEL_TYPE, agent_type);
        fields.put(Place::TemplateLabels, keys::LABEL_TYPE, agent_type);
        if marker {
            fields.put(Place::Labels, keys::LABEL_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE);
        }
        fields
    }

    /// What a label on the workload itself makes of its template: the type and the hash. The label is its user's.
    pub(super) fn labelled(agent_type: &str, hash: &str) -> Self {
        let mut fields = Self::hash_only(hash);
        fields.put(Place::TemplateLabels, keys::LABEL_TYPE, agent_type);
        fields
    }

    /// What a change of configuration writes on a workload that its user enrolled by the label.
    pub(super) fn hash_only(hash: &str) -> Self {
        let mut fields = Self::default();
        fields.put(Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH, hash);
        fields
    }

    /// Notes that the rollout to this hash is one of ours, for the waves.
    pub(super) fn rolled_for(mut self, hash: Option<&str>) -> Self {
        match hash {
            Some(hash) => self.put(ROLLED_FOR.0, ROLLED_FOR.1, hash),
            None => drop(self.0.remove(&(ROLLED_FOR.0, ROLLED_FOR.1.to_owned()))),
        }
        self
    }

    /// In place of what stands there: for which hash we rolled it is told on, as long as it is that hash.
    pub(super) fn in_place_of(self, standing: &Self) -> Self {
        if self.hash() == standing.hash() { self.rolled_for(standing.rolled()) } else { self }
    }

    /// What stands on the workload and was applied by us.
    pub(super) fn standing(seen: &WorkloadSeen) -> Self {
        let owned = seen.applied.iter().flat_map(|applied| applied.fields());
        let fields = owned.filter_map(|(place, key)| {
            let value = value(seen, place, key)?;
            Some(((place, key.to_owned()), value.to_owned()))
        });
        Self(fields.collect())
    }

    fn put(&mut self, place: Place, key: &str, value: &str) {
        self.0.insert((place, key.to_owned()), value.to_owned());
    }

    pub(super) fn get(&self, place: Place, key: &str) -> Option<&str> {
        self.0.get(&(place, key.to_owned())).map(String::as_str)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the label of the template is among them.
    pub(super) fn label_template(&self) -> bool {
        self.get(Place::TemplateLabels, keys::LABEL_TYPE).is_some()
    }

    /// Whether what only an AgentRuntime's enrolment writes is among them.
    pub(super) fn is_of_runtime(&self) -> bool {
        let own = [keys::LABEL_TYPE, keys::LABEL_MANAGED_BY];
        own.into_iter().any(|key| self.get(Place::Labels, key).is_some())
    }

    /// Whether an enrolment is among them, rather than a hash alone.
    pub(super) fn is_enrolment(&self) -> bool {
        self.is_of_runtime() || self.label_template()
    }

    /// The hash that they put on the template.
    pub(super) fn hash(&self) -> Option<&str> {
        self.get(Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH)
    }

    /// The hash for which we rolled the workload.
    pub(super) fn rolled(&self) -> Option<&str> {
        self.get(ROLLED_FOR.0, ROLLED_FOR.1)
    }

    /// Whether they say the same but for the hash and what it was rolled for.
    pub(super) fn differs_by_hash_only(&self, other: &Self) -> bool {
        let but_hash = |fields: &Self| {
            let mut rest = fields.clone().rolled_for(None);
            rest.0.remove(&(Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH.to_owned()));
            rest
        };
        but_hash(self) == but_hash(other)
    }

    /// Those of these that do not stand there, or with another value; for what a workload was rolled is not among them.
    pub(super) fn lost<'a>(&'a self, standing: &'a Self) -> impl Iterator<Item = (Place, &'a str)> {
        let lost = self.0.iter().filter(|(at, value)| standing.0.get(*at) != Some(*value));
        lost.map(|((place, key), _)| (*place, key.as_str())).filter(|at| *at != ROLLED_FOR)
    }

    /// Whether the Pod template is another one with these than with those that stand there.
    pub(super) fn changes_template(&self, standing: &Self) -> bool {
        let is_of_template = |place: Place| matches!(place, Place::TemplateLabels | Place::TemplateAnnotations);
        let of_template = |fields: &Self| {
            let found = fields.0.iter().filter(|((place, _), _)| is_of_template(*place));
            found.map(|(at, value)| (at.clone(), value.clone())).collect::<BTreeMap<_, _>>()
        };
        of_template(self) != of_template(standing)
    }

    /// A number that equal fields on the workload of that uid have in common, whatever it was rolled for: one that is made again under its
    /// name is another one.
    pub(super) fn number(&self, uid: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        uid.hash(&mut hasher);
        self.clone().rolled_for(None).0.hash(&mut hasher);
        hasher.finish()
    }

    /// The fields at one place, as JSON.
    fn at(&self, wanted: Place) -> Option<Value> {
        let found = self.0.iter().filter(|((place, _), _)| *place == wanted);
        let map: Map<String, Value> = found.map(|((_, key), value)| (key.clone(), value.as_str().into())).collect();
        (!map.is_empty()).then_some(Value::Object(map))
    }

    fn metadata(&self, mut metadata: Map<String, Value>, labels: Place, annotations: Place) -> Map<String, Value> {
        metadata.extend(self.at(labels).map(|labels| ("labels".to_owned(), labels)));
        metadata.extend(self.at(annotations).map(|annotations| ("annotations".to_owned(), annotations)));
        metadata
    }

    /// The body of the apply, without apiVersion and kind.
    pub(super) fn body(&self, namespace: &str, workload: &WorkloadRef<'_>) -> Value {
        let identity = [("name", &**workload.name), ("namespace", namespace), ("uid", workload.uid)];
        let identity = identity.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect();
        let mut body = json!({"metadata": self.metadata(identity, Place::Labels, Place::Annotations)});
        let template = self.metadata(Map::new(), Place::TemplateLabels, Place::TemplateAnnotations);
        if !template.is_empty() {
            let path = workload.seen.kind.template_path().iter().rev();
            let spec = path.fold(json!({"metadata": template}), |inner, key| json!({*key: inner}));
            body["spec"] = spec["spec"].clone();
        }
        body
    }
}

/// The value of a key of ours at a place.
pub(super) fn value<'a>(seen: &'a WorkloadSeen, place: Place, key: &str) -> Option<&'a str> {
    match place {
        Place::Labels => seen.labels.get(key),
        Place::Annotations => seen.annotations.get(key),
        Place::TemplateLabels => seen.template.as_ref()?.labels.get(key),
        Place::TemplateAnnotations => seen.template.as_ref()?.annotations.get(key),
    }
}
