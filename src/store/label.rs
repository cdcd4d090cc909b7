//! Label `kagenti.io/type` on a workload itself: whose it is, and since when.
//!
//! In: the metadata of a workload, as stored or as sent. Out: the label, unless enrolment alone has written it. Promise: the
//! time is that at which its owner last wrote anything of the workload, by the clock of the API server; what nobody has
//! stored yet has none.

use serde::Deserialize;
use serde_json::Value;

use super::decode::fields::Place;
use super::decode::wire::Metadata;
use crate::domain::keys;

/// A type label that somebody else than enrolment has put on a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeLabel {
    /// Its value, whatever it is.
    pub value: Box<str>,
    /// When whoever owns it last wrote the workload, RFC 3339 in whole seconds, as the API server writes it; when the workload
    /// was made, where nobody owns it; `None` of one that is not stored yet.
    pub since: Option<Box<str>>,
    /// Whether somebody else than enrolment has put it on the Pod template, too.
    pub on_template: bool,
}

impl TypeLabel {
    /// The label of a workload with that metadata.
    pub(super) fn of(metadata: &Metadata) -> Option<Self> {
        let value = metadata.label(keys::LABEL_TYPE)?;
        let entries = metadata.managed_fields.iter().flatten();
        let mut owners = entries.filter(|entry| entry.owns(Place::Labels, keys::LABEL_TYPE)).peekable();
        let created = || metadata.creation_timestamp.as_deref();
        let since = if owners.peek().is_none() {
            created()
        } else {
            let mut others = owners.filter(|entry| !entry.is(keys::MANAGER_ENROLMENT, "Apply")).peekable();
            others.peek()?;
            others.filter_map(|entry| entry.time()).max().or_else(created)
        };
        let on_template = metadata.managed_fields.iter().flatten().any(|entry| {
            !entry.is(keys::MANAGER_ENROLMENT, "Apply") && entry.owns(Place::TemplateLabels, keys::LABEL_TYPE)
        });
        Some(Self { value: value.into(), since: since.map(Into::into), on_template })
    }

    /// The same, from a whole object; `None` of what has no readable metadata.
    #[must_use]
    pub fn of_object(object: &Value) -> Option<Self> {
        Self::of(&Metadata::deserialize(object.get("metadata")?).ok()?)
    }
}

/// Whether enrolment has put the type label on the Pod template of that object.
#[must_use]
pub fn labels_template(object: &Value) -> bool {
    let metadata = object.get("metadata").and_then(|metadata| Metadata::deserialize(metadata).ok()).unwrap_or_default();
    let mut entries = metadata.managed_fields.iter().flatten();
    let ours = entries.find(|entry| entry.is(keys::MANAGER_ENROLMENT, "Apply"));
    ours.is_some_and(|entry| entry.owns(Place::TemplateLabels, keys::LABEL_TYPE))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, time: &str, labels: bool) -> Value {
        let key = if labels { "f:kagenti.io/type" } else { "f:app" };
        json!({"manager": manager, "operation": operation, "time": time,
            "fieldsV1": {"f:metadata": {"f:labels": {key: {}}}}})
    }

    /// Whose label it is and since when, by who owns it.
    #[test]
    fn mend_17_a_label_is_as_old_as_what_its_owner_wrote_last() {
        let (ours, made) = (keys::MANAGER_ENROLMENT, "2026-01-01T00:00:00Z");
        let theirs = entry("kubectl-label", "Update", "2026-03-01T00:00:00Z", true);
        let other = entry("argocd", "Apply", "2026-04-01T00:00:00Z", true);
        let unconcerned = entry("autoscaler", "Update", "2026-09-01T00:00:00Z", false);
        let by_us = entry(ours, "Apply", "2026-08-01T00:00:00Z", true);
        for (entries, since) in [
            (json!([]), Some(Some(made))),
            (json!([unconcerned]), Some(Some(made))),
            (json!([by_us]), None),
            (json!([theirs, unconcerned]), Some(Some("2026-03-01T00:00:00Z"))),
            (json!([theirs, other, by_us]), Some(Some("2026-04-01T00:00:00Z"))),
        ] {
            let object = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent"}, "creationTimestamp": made,
                "managedFields": entries}});
            let found = TypeLabel::of_object(&object);
            assert_eq!(found.as_ref().map(|label| label.since.as_deref()), since, "{entries}");
        }
        let sent = json!({"metadata": {"labels": {keys::LABEL_TYPE: "odd"}}});
        assert_eq!(
            TypeLabel::of_object(&sent),
            Some(TypeLabel { value: "odd".into(), since: None, on_template: false })
        );
        assert_eq!(TypeLabel::of_object(&json!({"metadata": {"labels": {"app": "x"}}})), None);
        assert_eq!(TypeLabel::of_object(&json!({"metadata": {"labels": []}})), None);
    }
}
