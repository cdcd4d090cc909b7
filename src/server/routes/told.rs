//! Whom a line of the log is about, and whether it is worth a line that is read without being asked for.
//!
//! In: the request and what was decided. Out: names that people find the object by, and the level of the line. Promises: no line lacks a name
//! where the request has one, or a controller to name; a decision that repeats the one before it about the same owner is for DEBUG; what is
//! remembered is bounded, whoever sends what.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use crate::api::review::Request;
use crate::domain::reason::Reason;

/// Owners whose last reason is remembered. With more of them, some are told of once more.
const OWNERS: usize = 4096;

/// An object under review, as people find it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct About<'r> {
    /// Its name, or what the API server will make its name from.
    pub(super) name: Cow<'r, str>,
    /// What the API server makes its name from; empty for an object that has one.
    pub(super) generate_name: Cow<'r, str>,
    /// What controls it, such as `ReplicaSet/weather-agent-7d4f8b9c5`; empty without one.
    pub(super) owner: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    generate_name: Cow<'a, str>,
    owner_references: Vec<Owner<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Owner<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    controller: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

impl<'r> About<'r> {
    /// Whom a request is about.
    pub(super) fn of(request: &'r Request<'_>) -> Self {
        let name = request.name.as_deref().unwrap_or_default();
        let found = match request.object.as_ref().map(|raw| (raw.pod(), raw.get())) {
            Some((Some(pod), _)) => Self::of_tree(&pod.tree),
            // Only an object without a name has to be looked into.
            Some((None, text)) if name.is_empty() => Self::of_text(text),
            _ => Self::default(),
        };
        match name {
            "" => Self { name: found.generate_name.clone(), ..found },
            name => Self { name: name.into(), generate_name: "".into(), ..found },
        }
    }

    fn of_tree(tree: &'r Value) -> Self {
        let metadata = &tree["metadata"];
        let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let text = |value: &'r Value| value.as_str().unwrap_or_default();
        let owner = owners.find(|owner| owner["controller"] == true);
        Self {
            generate_name: text(&metadata["generateName"]).into(),
            owner: owner.map(|owner| owned(text(&owner["kind"]), text(&owner["name"]))).unwrap_or_default(),
            ..Self::default()
        }
    }

    fn of_text(text: &str) -> Self {
        let Ok(Named { metadata }) = serde_json::from_str::<Named<'_>>(text) else { return Self::default() };
        let owner = metadata.owner_references.iter().find(|owner| owner.controller);
        Self {
            generate_name: metadata.generate_name.into_owned().into(),
            owner: owner.map(|owner| owned(&owner.kind, &owner.name)).unwrap_or_default(),
            ..Self::default()
        }
    }
}

fn owned(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// The last reason that was told about each owner.
#[derive(Debug, Default)]
pub(super) struct Told {
    hasher: RandomState,
    last: Mutex<HashMap<u64, Reason>>,
}

impl Told {
    /// Whether a decision about an object of `namespace` that `owner` controls, or that is called so, is another one than the last. Takes note
    /// of it.
    pub(super) fn is_news(&self, (namespace, owner): (&str, &str), reason: Reason) -> bool {
        let key = self.hasher.hash_one((namespace, owner));
        let mut last = self.last.lock();
        if last.len() >= OWNERS && !last.contains_key(&key) {
            last.clear();
        }
        last.insert(key, reason) != Some(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_10_a_decision_is_news_once_per_owner_and_reason() {
        let told = Told::default();
        for (step, (owner, reason, news)) in [
            (("team1", "ReplicaSet/a"), Reason::Injected, true),
            (("team1", "ReplicaSet/a"), Reason::Injected, false),
            (("team2", "ReplicaSet/a"), Reason::Injected, true),
            (("team1", "ReplicaSet/b"), Reason::Injected, true),
            (("team1", "ReplicaSet/a"), Reason::ConfigPending, true),
            (("team1", "ReplicaSet/a"), Reason::Injected, true),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(told.is_news(owner, reason), news, "step {step}");
        }
        for number in 0..2 * OWNERS {
            assert!(told.is_news(("team1", &format!("Job/{number}")), Reason::Injected));
        }
        assert!(told.last.lock().len() <= OWNERS);
    }

    #[test]
    fn answers_10_what_a_controller_makes_is_named_by_what_its_name_is_made_from_and_by_its_owner() {
        let of_text = |text: &str| {
            let about = About::of_text(text);
            (about.generate_name.into_owned(), about.owner)
        };
        let owned = r#"{"metadata":{"generateName":"weather-","ownerReferences":[
            {"kind":"Node","name":"n"},{"kind":"CronJob","name":"nightly","controller":true}]},"spec":{"a":[{}]}}"#;
        for (text, generate_name, owner) in [
            (owned, "weather-", "CronJob/nightly"),
            (r#"{"metadata":{"generateName":"x-"}}"#, "x-", ""),
            (r#"{"metadata":{"generateName":7}}"#, "", ""),
            ("[]", "", ""),
        ] {
            assert_eq!(of_text(text), (generate_name.to_owned(), owner.to_owned()), "{text}");
            if let Ok(tree) = serde_json::from_str::<Value>(text) {
                let about = About::of_tree(&tree);
                assert_eq!(
                    (about.generate_name.into_owned(), about.owner),
                    (generate_name.to_owned(), owner.to_owned())
                );
            }
        }
    }
}
