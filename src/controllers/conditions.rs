//! Conditions of a custom resource: one entry per type, times that move only when the judgement does; pure.
//!
//! In: the conditions as stored, and as they should be. Out: the list to be stored; an entry without
//! `lastTransitionTime` gets the present time when it is written. Promise: types that are not ours stay as they are.

use serde_json::{Value, json};

use crate::domain::reason::Reason;

/// One judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::controllers) struct Condition {
    /// What is judged.
    pub(in crate::controllers) type_: &'static str,
    /// How; false when it is not known.
    pub(in crate::controllers) holds: bool,
    /// It is not known yet.
    pub(in crate::controllers) open: bool,
    /// Why.
    pub(in crate::controllers) reason: Reason,
    /// Why, for people.
    pub(in crate::controllers) message: String,
}

/// Longest message.
const LONGEST: usize = 2048;

impl Condition {
    pub(in crate::controllers) fn new(
        type_: &'static str,
        holds: bool,
        reason: Reason,
        message: impl Into<String>,
    ) -> Self {
        let mut message = message.into();
        if message.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
            message.truncate(end);
        }
        Self { type_, holds, open: false, reason, message }
    }

    /// A judgement that is not known yet.
    pub(in crate::controllers) fn unknown(type_: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        Self { open: true, ..Self::new(type_, false, reason, message) }
    }

    fn status(&self) -> &'static str {
        match (self.open, self.holds) {
            (true, _) => "Unknown",
            (false, true) => "True",
            (false, false) => "False",
        }
    }
}

/// The entry of a type in a stored list.
pub(in crate::controllers) fn stored<'a>(list: &'a Value, type_: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|entry| entry.get("type").and_then(Value::as_str) == Some(type_))
}

/// Whether the judgement or its reason is another one than the stored one.
pub(in crate::controllers) fn is_news(list: &Value, condition: &Condition) -> bool {
    let text = |key: &str| stored(list, condition.type_)?.get(key)?.as_str();
    text("status") != Some(condition.status()) || text("reason") != Some(condition.reason.code())
}

/// The list to be stored: `wanted` in its order, then what is not ours. Of the types in `kept` the stored entry stays
/// when nothing is said about it.
pub(in crate::controllers) fn merged(
    list: &Value,
    wanted: &[Condition],
    ours: &[&str],
    kept: &[&str],
    generation: i64,
) -> Value {
    let mut all: Vec<Value> = wanted.iter().map(|condition| entry(list, condition, generation)).collect();
    let said = |type_: &str| wanted.iter().any(|condition| condition.type_ == type_);
    let stays = |type_: &str| !said(type_) && (!ours.contains(&type_) || kept.contains(&type_));
    let others = list.as_array().into_iter().flatten();
    all.extend(others.filter(|entry| entry.get("type").and_then(Value::as_str).is_some_and(stays)).cloned());
    Value::Array(all)
}

fn entry(list: &Value, condition: &Condition, generation: i64) -> Value {
    let known = stored(list, condition.type_)
        .filter(|known| known.get("status").and_then(Value::as_str) == Some(condition.status()));
    let since = known.and_then(|known| known.get("lastTransitionTime")).cloned().unwrap_or(Value::Null);
    json!({
        "type": condition.type_,
        "status": condition.status(),
        "reason": condition.reason.code(),
        "message": condition.message,
        "lastTransitionTime": since,
        "observedGeneration": generation,
    })
}

/// The merge patch (RFC 7386) that makes `now` of `before`; `None` when they are equal.
pub(in crate::controllers) fn difference(before: &Value, now: &Value) -> Option<Value> {
    match (before, now) {
        (before, now) if before == now => None,
        (Value::Object(before), Value::Object(now)) => {
            let gone = before.keys().filter(|key| !now.contains_key(*key)).map(|key| (key.clone(), Value::Null));
            let new = now.iter().filter_map(|(key, value)| {
                let patch = before.get(key).map_or_else(|| Some(value.clone()), |before| difference(before, value));
                Some((key.clone(), patch?))
            });
            Some(Value::Object(gone.chain(new).collect()))
        }
        (_, now) => Some(now.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "Ready";

    fn ready(holds: bool, message: &str) -> Condition {
        Condition::new(READY, holds, Reason::Configured, message)
    }

    #[test]
    fn the_time_moves_only_with_the_judgement() {
        let stored = json!([
            {"type": READY, "status": "True", "reason": "Old", "message": "m", "lastTransitionTime": "then"},
            {"type": "Theirs", "status": "False"},
            {"type": "Stalled", "status": "True"},
            {"type": "PodsCurrent", "status": "True"},
        ]);
        let ours = [READY, "Stalled", "PodsCurrent"];
        let same = merged(&stored, &[ready(true, "new")], &ours, &["PodsCurrent"], 3);
        assert_eq!((&same[0]["lastTransitionTime"], &same[0]["message"]), (&json!("then"), &json!("new")));
        let types: Vec<_> = same.as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
        assert_eq!(
            types,
            [READY, "Theirs", "PodsCurrent"],
            "what no longer holds goes, what is kept and foreign stays"
        );
        let other = merged(&stored, &[ready(false, "new")], &ours, &[], 3);
        assert_eq!((&other[0]["lastTransitionTime"], &other[0]["observedGeneration"]), (&Value::Null, &json!(3)));
        assert!(is_news(&stored, &ready(true, "m")), "another reason");
        assert!(!is_news(&merged(&stored, &[ready(true, "m")], &ours, &[], 3), &ready(true, "other words")));
    }

    #[test]
    fn a_difference_applied_gives_the_wanted_value() {
        let before = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": "x"});
        for now in [json!({}), json!({"a": 1}), json!({"b": {"c": [2]}, "f": {"g": true}}), before.clone()] {
            let mut made = before.clone();
            if let Some(patch) = difference(&before, &now) {
                json_patch::merge(&mut made, &patch);
            }
            assert_eq!(made, now);
        }
        assert_eq!(difference(&before, &before), None);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(ready(true, &"é".repeat(3_000)).message.len(), LONGEST);
    }
}
