//! Who of a namespace is in quarantine and why, as its two annotations say; pure.
//!
//! In: a Namespace, and a change. Out: the annotations as a merge patch. Promises: what somebody else wrote into them stays; a record that cannot be
//! read costs the reasons and never the quarantine; the annotation that counts is the list, which may be written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cli::survey::annotation;
use crate::domain::keys;
use crate::domain::quarantine::{EVERYBODY, Quarantine};

/// Who is put into quarantine, or released.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The whole namespace.
    pub(super) everybody: bool,
    /// Names of workloads.
    pub(super) names: BTreeSet<String>,
}

impl Change {
    fn words(&self) -> impl Iterator<Item = &str> {
        let everybody = self.everybody.then_some(EVERYBODY);
        everybody.into_iter().chain(self.names.iter().map(String::as_str))
    }

    /// As what is asked about of Pods.
    pub(super) fn quarantine(&self) -> Quarantine {
        let names = self.names.iter().map(|name| name.as_str().into()).collect();
        Quarantine { everybody: self.everybody, names }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names.iter().map(|name| format!("agent/{name}")).collect();
        let everybody = self.everybody.then(|| "the namespace".to_owned());
        f.write_str(&everybody.into_iter().chain(names).collect::<Vec<_>>().join(", "))
    }
}

/// Why one is in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Why {
    reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<String>,
}

/// The two annotations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    held: Quarantine,
    why: BTreeMap<String, Why>,
}

impl Record {
    pub(super) fn of(namespace: &Value) -> Self {
        let held = annotation(namespace, keys::ANNOTATION_QUARANTINE).map(Quarantine::parse).unwrap_or_default();
        let why = annotation(namespace, keys::ANNOTATION_QUARANTINE_RECORD);
        let why = why.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Self { held, why }
    }

    /// Whether it names that workload.
    pub(super) fn names(&self, workload: &str) -> bool {
        self.held.names.contains(workload)
    }

    /// Adds; whether anything is new.
    pub(super) fn hold(&mut self, change: &Change, reason: &str, skill: Option<&str>) -> bool {
        let before = self.clone();
        self.held.everybody |= change.everybody;
        self.held.names.extend(change.names.iter().map(|name| name.as_str().into()));
        for word in change.words() {
            let why = Why { reason: reason.to_owned(), skill: skill.map(str::to_owned) };
            self.why.entry(word.to_owned()).or_insert(why);
        }
        *self != before
    }

    /// Takes away; whether anybody was there.
    pub(super) fn release(&mut self, change: &Change) -> bool {
        let before = self.held.clone();
        self.held.everybody &= !change.everybody;
        self.held.names.retain(|name| !change.names.contains(&**name));
        for word in change.words() {
            self.why.remove(word);
        }
        self.held != before
    }

    /// Who was put into quarantine for that skill.
    pub(super) fn of_skill(&self, skill: &str) -> BTreeSet<String> {
        let of = |(name, why): (&String, &Why)| (why.skill.as_deref() == Some(skill)).then(|| name.clone());
        self.why.iter().filter_map(of).filter(|name| self.held.names.contains(name.as_str())).collect()
    }

    /// The annotations; those that say nothing go.
    pub(super) fn patch(&self, version: &str) -> Value {
        let list = Some(self.held.text()).filter(|text| !text.is_empty());
        let why: BTreeMap<_, _> = self.why.iter().filter(|(name, _)| self.is_held(name)).collect();
        let why = (!why.is_empty()).then(|| json!(why).to_string());
        let annotations = json!({keys::ANNOTATION_QUARANTINE: list, keys::ANNOTATION_QUARANTINE_RECORD: why});
        json!({"metadata": {"resourceVersion": version, "annotations": annotations}})
    }

    fn is_held(&self, word: &str) -> bool {
        if word == EVERYBODY { self.held.everybody } else { self.held.names.contains(word) }
    }

    /// Each of them with the reason, as people read it.
    pub(super) fn words(&self) -> Vec<String> {
        let everybody = self.held.everybody.then_some(EVERYBODY);
        let all = everybody.into_iter().chain(self.held.names.iter().map(|name| &**name));
        let word = |name: &str| {
            let title = if name == EVERYBODY { "every Pod".to_owned() } else { format!("agent/{name}") };
            match self.why.get(name) {
                Some(why) => format!("{title} ({})", crate::domain::printable::printable(&why.reason, 256)),
                None => title,
            }
        };
        all.map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespace(annotations: Value) -> Value {
        json!({"metadata": {"name": "team", "annotations": annotations}})
    }

    fn agents(names: &[&str]) -> Change {
        Change { everybody: false, names: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn what_is_written_is_read_again_and_taken_back_to_what_was() {
        let mut record = Record::of(&namespace(json!({"agent.kagenti.dev/quarantine": "by-hand"})));
        let before = record.clone();
        assert!(record.hold(&agents(&["a", "b"]), "token leaked", Some("pay")));
        assert!(!record.hold(&agents(&["a"]), "again", None), "the first reason stays");
        let patch = record.patch("7");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let again = Record::of(&namespace(patch["metadata"]["annotations"].clone()));
        assert_eq!(again, record);
        assert_eq!(again.of_skill("pay"), ["a".to_owned(), "b".to_owned()].into());
        assert_eq!(again.words(), ["agent/a (token leaked)", "agent/b (token leaked)", "agent/by-hand"]);
        assert!(record.release(&agents(&["a", "b"])) && !record.release(&agents(&["a"])));
        assert_eq!(record, before);
        assert!(record.release(&agents(&["by-hand"])));
        let annotations = &record.patch("8")["metadata"]["annotations"];
        assert_eq!(
            annotations,
            &json!({"agent.kagenti.dev/quarantine": null, "agent.kagenti.dev/quarantine-record": null})
        );
    }

    #[test]
    fn a_namespace_is_released_without_its_agents_and_a_record_nobody_can_read_costs_no_quarantine() {
        let broken = json!({"agent.kagenti.dev/quarantine": "*,a", "agent.kagenti.dev/quarantine-record": "{"});
        let mut record = Record::of(&namespace(broken));
        assert_eq!(record.words(), ["every Pod", "agent/a"]);
        assert!(record.release(&Change { everybody: true, names: BTreeSet::new() }));
        assert_eq!(record.patch("1")["metadata"]["annotations"]["agent.kagenti.dev/quarantine"], "a");
    }
}
