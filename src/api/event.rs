//! Events: what people are told about an object, where they look for it.
//!
//! In: the object, a reason, a sentence. Out: a core/v1 Event as JSON, with a name that is the same whenever the same is
//! said about the same object, so that saying it twice makes one Event. Pure: the moment is handed in.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::domain::keys;
use crate::domain::reason::{Class, Reason};

/// Longest message, in bytes.
const LONGEST_MESSAGE: usize = 1024;
/// Longest part of the object's name in the Event's; 253 bytes are allowed in all, and the digest alone makes it unique.
const LONGEST_NAME: usize = 200;
/// Where Events about objects without a namespace belong.
const CLUSTER_NAMESPACE: &str = "default";

/// The object an Event is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Regarding {
    /// Group and version, such as `v1` or `apps/v1`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for an object of the cluster.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`; empty when the object does not exist.
    pub uid: String,
}

impl Regarding {
    /// The Deployment of the controllers in that namespace: what is about no object there is told about it.
    #[must_use]
    pub fn controllers(namespace: &str) -> Self {
        Self {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: namespace.to_owned(),
            name: keys::DEPLOYMENT_CONTROLLERS.to_owned(),
            uid: String::new(),
        }
    }

    /// The namespace that Events about this object are written to.
    #[must_use]
    pub fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { CLUSTER_NAMESPACE } else { &self.namespace }
    }
}

/// A warning by `manager` about an object (news, when the reason is a state), first and last seen at `moment` (RFC 3339, whole seconds).
#[must_use]
pub fn warning(manager: &str, about: &Regarding, (reason, message): (Reason, &str), moment: &str) -> Value {
    let message = &message[..message.floor_char_boundary(LONGEST_MESSAGE)];
    let mut digest = Sha256::new();
    for part in [&about.uid, reason.code(), message] {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    let digest: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    // A part of a name must not end in a dot or dash, wherever it is cut.
    let shown: String = about.name.chars().take(LONGEST_NAME).collect();
    let shown = shown.trim_end_matches(['.', '-']);
    let mut regarding = json!({
        "apiVersion": about.api_version, "kind": about.kind, "uid": about.uid,
        "name": about.name, "namespace": about.namespace,
    });
    if let Some(fields) = regarding.as_object_mut() {
        fields.retain(|_, value| value != "");
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{shown}.{digest}"), "namespace": about.event_namespace()},
        "involvedObject": regarding,
        "type": if reason.class() == Class::State { "Normal" } else { "Warning" }, "reason": reason.code(), "message": message,
        "source": {"component": manager}, "reportingComponent": manager, "reportingInstance": "",
        "firstTimestamp": moment, "lastTimestamp": moment, "count": 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(uid: &str) -> Regarding {
        Regarding {
            api_version: "v1".into(),
            kind: "Secret".into(),
            namespace: "team1".into(),
            name: "ca".into(),
            uid: uid.into(),
        }
    }

    fn name(about: &Regarding, reason: Reason, message: &str, moment: &str) -> String {
        let event = warning("drawbridge/x", about, (reason, message), moment);
        event["metadata"]["name"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_same_said_later_has_the_same_name_and_anything_else_another_one() {
        let first = name(&secret("u"), Reason::AuthorityRefused, "it is bad", "2026-11-21T12:00:00Z");
        assert!(first.starts_with("ca."), "{first}");
        assert_eq!(first, name(&secret("u"), Reason::AuthorityRefused, "it is bad", "2026-11-22T12:00:00Z"));
        for other in [
            name(&secret("v"), Reason::AuthorityRefused, "it is bad", ""),
            name(&secret("u"), Reason::AuthorityRepaired, "it is bad", ""),
            name(&secret("u"), Reason::AuthorityRefused, "it is worse", ""),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn an_object_of_the_cluster_is_told_of_in_default() {
        let about = Regarding { kind: "Node".into(), name: "n".repeat(253), ..Regarding::default() };
        let event = warning("drawbridge/x", &about, (Reason::BundleOverwritten, "x"), "");
        assert_eq!(event["metadata"]["namespace"], "default");
        assert_eq!(event["involvedObject"].get("namespace"), None, "the API server compares the two");
        assert!(event["metadata"]["name"].as_str().unwrap().len() <= 253);
        for separator in [".", "-", "-."] {
            let about = Regarding { name: format!("{}{separator}b", "a".repeat(199)), ..Regarding::default() };
            let event = warning("drawbridge/x", &about, (Reason::BundleOverwritten, "x"), "");
            let name = event["metadata"]["name"].as_str().unwrap();
            assert!(name.split('.').all(|part| part.ends_with(|end: char| end.is_ascii_alphanumeric())), "{name}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let long = "é".repeat(600);
        let event = warning("drawbridge/x", &secret("u"), (Reason::BundleOverwritten, &long), "");
        assert_eq!(event["message"].as_str().unwrap().len(), 1024);
        let odd = format!("x{long}");
        let event = warning("drawbridge/x", &secret("u"), (Reason::BundleOverwritten, &odd), "");
        assert_eq!(event["message"].as_str().unwrap().len(), 1023);
    }
}
