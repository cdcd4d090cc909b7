//! Whom a line of the log is about, and whether it is worth a line that is read without being asked for.
//!
//! In: the request and what was decided. Out: names that people find the object by, and the level of the line. Promises: no line lacks a name
//! where the request has one, or a controller to name; a decision that repeats the one before it about the same owner is for DEBUG; so is what a
//! namespace comes to beyond [`LINES`], so that nobody who is refused again and again fills the log for all others; what is remembered is bounded,
//! whoever sends what.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::api::review::Request;
use crate::domain::reason::Reason;
use crate::server::catalogue::rate::{Rate, Rates};

/// Owners whose last reason is remembered. With more of them, some are told of once more.
const OWNERS: usize = 4096;
/// Lines above DEBUG about the reviews of one namespace.
const LINES: Rate = Rate { burst: 200.0, per_second: 2.0 };
/// So many namespaces are told apart there; more share. Who calls the port directly may name as many as they like.
const APART: u64 = 256;
/// How often is told that lines are kept back.
const EVERY: Duration = Duration::from_secs(60);

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

/// The last reason that was told about each owner, and how much was told.
#[derive(Debug)]
pub(super) struct Told {
    hasher: RandomState,
    last: Mutex<HashMap<u64, Reason>>,
    lines: Mutex<Lines>,
    begun: Instant,
}

/// Lines that may be written, and those that were kept back.
#[derive(Debug)]
struct Lines {
    rates: Rates<u64>,
    kept_back: u64,
    said: Option<Duration>,
}

impl Default for Lines {
    fn default() -> Self {
        Self { rates: Rates::new(LINES), kept_back: 0, said: None }
    }
}

impl Lines {
    /// Whether one more may be written of that namespace, and how many were kept back, where that is to be said.
    fn may(&mut self, namespace: u64, now: Duration) -> (bool, Option<u64>) {
        if self.rates.may(namespace % APART, now) {
            return (true, None);
        }
        self.kept_back += 1;
        let is_due = self.said.is_none_or(|said| now.saturating_sub(said) >= EVERY);
        let kept_back = is_due.then(|| {
            self.said = Some(now);
            std::mem::take(&mut self.kept_back)
        });
        (false, kept_back)
    }
}

impl Default for Told {
    fn default() -> Self {
        let (hasher, last, lines) = (RandomState::new(), Mutex::default(), Mutex::default());
        Self { hasher, last, lines, begun: Instant::now() }
    }
}

impl Told {
    /// Whether what is worth a line above DEBUG may have one, for all that was written of that namespace before. Takes note of it.
    pub(super) fn has_room(&self, namespace: &str) -> bool {
        let (may, kept_back) = self.lines.lock().may(self.hasher.hash_one(namespace), self.begun.elapsed());
        if let Some(kept_back) = kept_back {
            tracing::warn!(
                namespace,
                kept_back,
                "lines about reviews are kept back, because one namespace has too many of them, most likely refusals that somebody asks for \
                 again and again; they are written at level debug, and metric drawbridge_decisions_total counts all of them"
            );
        }
        may
    }

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

    /// Two hundred at once, and two each second: a loop that asks for what is refused wrote as many lines as it asked.
    #[test]
    fn a_namespace_that_is_refused_all_the_time_leaves_the_log_to_others() {
        let mut lines = Lines::default();
        let at = Duration::from_millis;
        let (mut written, mut said) = (0, Vec::new());
        for step in 0..12_000 {
            let (may, kept_back) = lines.may(7, at(step * 10));
            written += u64::from(may);
            said.extend(kept_back);
        }
        assert!((430..=441).contains(&written), "{written} in two minutes");
        assert!(said.len() == 2 && said[0] == 1 && said[1] > 5_000, "{said:?}: at once, and a minute later");
        assert_eq!(lines.may(8, at(120_000)), (true, None), "another namespace");
        let names = (0..100_000).filter(|name| lines.may(*name, at(120_000)).0).count();
        assert!(names <= 200 * 256, "{names}: names that are made up buy no more");
        assert_eq!(lines.may(7, at(600_000)), (true, None), "it is over");
    }

    #[test]
    fn what_is_refused_once_in_a_while_is_told_each_time() {
        let told = Told::default();
        assert!((0..200).all(|_| told.has_room("team1")));
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
