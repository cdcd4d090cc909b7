//! Label selectors: which labels they match, and which selectors match no more than another one does.
//!
//! In: a LabelSelector of the API, or its parts. Out: yes or no. A selector without requirements matches everything; that an absent
//! selector matches something else is the business of whoever asks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// What one key must be like.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Requirement {
    /// The label is there and has one of these values.
    In(String, BTreeSet<String>),
    /// The label is absent, or has none of these values.
    NotIn(String, BTreeSet<String>),
    /// The label is there.
    Exists(String),
    /// The label is absent.
    DoesNotExist(String),
}

impl Requirement {
    /// The key it is about.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Requirement::In(key, _)
            | Requirement::NotIn(key, _)
            | Requirement::Exists(key)
            | Requirement::DoesNotExist(key) => key,
        }
    }

    /// Whether a label of that key with that value, or its absence, meets it.
    #[must_use]
    pub fn is_met(&self, value: Option<&str>) -> bool {
        match (self, value) {
            (Requirement::In(_, values), Some(value)) => values.contains(value),
            (Requirement::NotIn(_, values), Some(value)) => !values.contains(value),
            (Requirement::Exists(_), Some(_)) | (Requirement::NotIn(..) | Requirement::DoesNotExist(_), None) => true,
            (Requirement::In(..) | Requirement::Exists(_), None) | (Requirement::DoesNotExist(_), Some(_)) => false,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        match self {
            Requirement::In(key, values) if values.len() == 1 => write!(f, "{key}={}", list(values)),
            Requirement::In(key, values) => write!(f, "{key} in ({})", list(values)),
            Requirement::NotIn(key, values) if values.len() == 1 => write!(f, "{key}!={}", list(values)),
            Requirement::NotIn(key, values) => write!(f, "{key} notin ({})", list(values)),
            Requirement::Exists(key) => write!(f, "{key}"),
            Requirement::DoesNotExist(key) => write!(f, "!{key}"),
        }
    }
}

/// A label selector: all of its requirements must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Selector {
    requirements: BTreeSet<Requirement>,
}

impl Selector {
    /// The selector of these requirements.
    #[must_use]
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        Self { requirements: requirements.into_iter().collect() }
    }

    /// The selector that asks for these labels.
    #[must_use]
    pub fn of_labels<K: Into<String>, V: Into<String>>(labels: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::new(labels.into_iter().map(|(key, value)| Requirement::In(key.into(), BTreeSet::from([value.into()]))))
    }

    /// Its requirements, in an order of their own.
    pub fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.requirements.iter()
    }

    /// Whether it matches everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether it matches these labels.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|one| one.is_met(labels.get(one.key()).map(String::as_str)))
    }

    /// Whether nothing can meet it, such as `a=b,!a`.
    #[must_use]
    pub fn matches_nothing(&self) -> bool {
        self.by_key().values().any(Values::is_empty)
    }

    /// Whether everything that this selector matches is matched by `other`: never yes when it is not so. Each key is judged by itself, which
    /// is exact, since keys of labels do not depend on each other.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let own = self.by_key();
        own.values().any(Values::is_empty)
            || other.by_key().iter().all(|(key, wanted)| own.get(key).is_some_and(|values| values.is_within(wanted)))
    }

    /// What each key may be.
    fn by_key(&self) -> BTreeMap<&str, Values<'_>> {
        let mut keys: BTreeMap<&str, Values<'_>> = BTreeMap::new();
        for requirement in &self.requirements {
            keys.entry(requirement.key()).or_default().restrict(requirement);
        }
        keys
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            write!(f, "{}{requirement}", if at == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// What the label of one key may be.
#[derive(Debug)]
struct Values<'s> {
    /// It may be absent.
    absent: bool,
    /// It may be one of these only; `None` is any.
    only: Option<BTreeSet<&'s str>>,
    /// It may be none of these.
    not: BTreeSet<&'s str>,
}

impl Default for Values<'_> {
    fn default() -> Self {
        Self { absent: true, only: None, not: BTreeSet::new() }
    }
}

impl<'s> Values<'s> {
    fn restrict(&mut self, requirement: &'s Requirement) {
        match requirement {
            Requirement::In(_, values) => {
                self.absent = false;
                let wanted = values.iter().map(String::as_str);
                self.only = Some(match self.only.take() {
                    Some(only) => wanted.filter(|value| only.contains(value)).collect(),
                    None => wanted.collect(),
                });
            }
            Requirement::NotIn(_, values) => self.not.extend(values.iter().map(String::as_str)),
            Requirement::Exists(_) => self.absent = false,
            Requirement::DoesNotExist(_) => self.only = Some(BTreeSet::new()),
        }
    }

    fn is_empty(&self) -> bool {
        !self.absent && self.only.as_ref().is_some_and(|only| only.iter().all(|value| self.not.contains(value)))
    }

    fn takes(&self, value: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(value)) && !self.not.contains(value)
    }

    fn is_within(&self, other: &Self) -> bool {
        if self.absent && !other.absent {
            return false;
        }
        match (&self.only, &other.only) {
            (Some(only), _) => only.iter().filter(|value| self.takes(value)).all(|value| other.takes(value)),
            // There are more values than any list has.
            (None, Some(_)) => false,
            (None, None) => other.not.iter().all(|value| self.not.contains(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(values: &[&str]) -> BTreeSet<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn requirements_match_as_the_api_says() {
        let key = || "tier".to_owned();
        for (requirement, absent, web, db) in [
            (Requirement::In(key(), set(&["web"])), false, true, false),
            (Requirement::NotIn(key(), set(&["web"])), true, false, true),
            (Requirement::Exists(key()), false, true, true),
            (Requirement::DoesNotExist(key()), true, false, false),
        ] {
            let selector = Selector::new([requirement]);
            assert_eq!(selector.matches(&labels(&[("other", "web")])), absent, "{selector}");
            assert_eq!(selector.matches(&labels(&[("tier", "web")])), web, "{selector}");
            assert_eq!(selector.matches(&labels(&[("tier", "db")])), db, "{selector}");
        }
        assert!(Selector::default().matches(&labels(&[])));
    }

    #[test]
    fn within_is_exact_on_small_worlds() {
        let key = || "k".to_owned();
        let all = [
            Requirement::In(key(), set(&["a"])),
            Requirement::In(key(), set(&["a", "b"])),
            Requirement::In(key(), set(&["c"])),
            Requirement::NotIn(key(), set(&["a"])),
            Requirement::NotIn(key(), set(&["b", "c"])),
            Requirement::Exists(key()),
            Requirement::DoesNotExist(key()),
        ];
        // Every selector of at most two requirements, on every value it can tell apart: absent, those named, and one that nobody names.
        let mut selectors = vec![Selector::default()];
        for one in &all {
            for two in &all {
                selectors.push(Selector::new([one.clone(), two.clone()]));
            }
        }
        let worlds: Vec<_> = [None, Some("a"), Some("b"), Some("c"), Some("z")]
            .into_iter()
            .map(|value| labels(&value.map(|value| ("k", value)).into_iter().collect::<Vec<_>>()))
            .collect();
        for one in &selectors {
            assert_eq!(one.matches_nothing(), !worlds.iter().any(|world| one.matches(world)), "{one}");
            for other in &selectors {
                let truth = worlds.iter().all(|world| !one.matches(world) || other.matches(world));
                assert_eq!(one.is_within(other), truth, "{one} within {other}");
            }
        }
    }

    #[test]
    fn they_read_as_kubectl_writes_them() {
        let selector = Selector::new([
            Requirement::In("app".into(), set(&["web"])),
            Requirement::In("env".into(), set(&["a", "b"])),
            Requirement::NotIn("x".into(), set(&["y"])),
            Requirement::DoesNotExist("z".into()),
        ]);
        assert_eq!(selector.to_string(), "app=web,env in (a,b),x!=y,!z");
    }
}
