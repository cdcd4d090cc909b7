//! What is known of the policies, and what there is to say. Pure.
//!
//! A policy without its binding refuses nothing, and a binding without its policy neither: each is a guard by itself. One that is back
//! within a moment (replaced, or installed anew) was lost all the same, and the log says for how long.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What is watched over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The rule.
    Policy,
    /// What puts it in force.
    Binding,
    /// The rule that changes what it is asked about.
    MutatingPolicy,
    /// What puts that in force.
    MutatingBinding,
}

impl Kind {
    /// Every one.
    pub const ALL: [Kind; 4] = [Kind::Policy, Kind::Binding, Kind::MutatingPolicy, Kind::MutatingBinding];

    /// As manifests spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Policy => "ValidatingAdmissionPolicy",
            Kind::Binding => "ValidatingAdmissionPolicyBinding",
            Kind::MutatingPolicy => "MutatingAdmissionPolicy",
            Kind::MutatingBinding => "MutatingAdmissionPolicyBinding",
        }
    }

    /// As paths and rights spell it.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::Policy => "validatingadmissionpolicies",
            Kind::Binding => "validatingadmissionpolicybindings",
            Kind::MutatingPolicy => "mutatingadmissionpolicies",
            Kind::MutatingBinding => "mutatingadmissionpolicybindings",
        }
    }

    /// Whether it changes objects; the others refuse them.
    #[must_use]
    pub const fn is_mutating(self) -> bool {
        matches!(self, Kind::MutatingPolicy | Kind::MutatingBinding)
    }

    /// What follows from its loss.
    pub(super) const fn effect(self) -> &'static str {
        if self.is_mutating() {
            "enrolled Pods get no scheduling gate, and run unprotected while no replica answers"
        } else {
            "what it refuses is accepted"
        }
    }
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// These were not there when they were looked for first.
    Absent(Kind, Vec<String>),
    /// This one was there and is gone.
    Lost(Kind, String),
    /// This one is there again, after that time.
    Back(Kind, String, Duration),
}

/// The guards.
#[derive(Debug)]
pub struct Plan {
    installed: Vec<(Kind, String)>,
    /// The kinds that were listed whole.
    listed: BTreeSet<Kind>,
    /// Those that are not there, and since when.
    missing: BTreeMap<(Kind, String), Duration>,
}

impl Plan {
    /// For these objects.
    #[must_use]
    pub fn new(installed: Vec<(Kind, String)>) -> Self {
        Self { installed, listed: BTreeSet::new(), missing: BTreeMap::new() }
    }

    /// The kinds that there is anything of.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.installed.iter().map(|(kind, _)| *kind).collect()
    }

    /// A whole list of a kind.
    pub fn listed(&mut self, kind: Kind, found: &BTreeSet<String>, now: Duration) -> Vec<Said> {
        let first = self.listed.insert(kind);
        let mut said = Vec::new();
        let mut absent = Vec::new();
        let names: Vec<String> =
            self.installed.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name.clone()).collect();
        for name in names {
            match found.contains(&name) {
                true => said.extend(self.found(kind, name, now)),
                false if first => {
                    self.missing.insert((kind, name.clone()), now);
                    absent.push(name);
                }
                false => said.extend(self.lost(kind, name, now)),
            }
        }
        said.extend((!absent.is_empty()).then_some(Said::Absent(kind, absent)));
        said
    }

    /// One of a kind is there, or is not any more.
    pub fn changed(&mut self, kind: Kind, name: &str, is_there: bool, now: Duration) -> Option<Said> {
        let (_, name) = self.installed.iter().find(|(of, known)| *of == kind && known == name)?.clone();
        if is_there { self.found(kind, name, now) } else { self.lost(kind, name, now) }
    }

    /// How many are known to be missing.
    #[must_use]
    pub fn missing(&self, kind: Kind) -> usize {
        self.missing.keys().filter(|(of, _)| *of == kind).count()
    }

    fn found(&mut self, kind: Kind, name: String, now: Duration) -> Option<Said> {
        let since = self.missing.remove(&(kind, name.clone()))?;
        Some(Said::Back(kind, name, now.saturating_sub(since)))
    }

    fn lost(&mut self, kind: Kind, name: String, now: Duration) -> Option<Said> {
        match self.missing.entry((kind, name)) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                let name = place.key().1.clone();
                place.insert(now);
                Some(Said::Lost(kind, name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two policies, each with its binding.
    fn plan() -> Plan {
        let both = [Kind::Policy, Kind::Binding].into_iter();
        Plan::new(both.flat_map(|kind| ["a", "b"].map(|name| (kind, name.to_owned()))).collect())
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn mend_14_a_policy_that_goes_is_told_once_and_so_is_its_return() {
        let at = Duration::from_secs;
        let mut plan = plan();
        assert_eq!(plan.listed(Kind::Policy, &names(&["a", "b", "of somebody else"]), at(0)), []);
        assert_eq!(plan.changed(Kind::Policy, "of somebody else", false, at(1)), None);
        assert_eq!(plan.changed(Kind::Policy, "a", true, at(1)), None);
        assert_eq!(plan.changed(Kind::Policy, "a", false, at(2)), Some(Said::Lost(Kind::Policy, "a".to_owned())));
        assert_eq!(plan.changed(Kind::Policy, "a", false, at(3)), None);
        assert_eq!(plan.missing(Kind::Policy), 1);
        assert_eq!(plan.changed(Kind::Policy, "a", true, at(4)), Some(Said::Back(Kind::Policy, "a".to_owned(), at(2))));
        assert_eq!(plan.missing(Kind::Policy), 0);
    }

    /// What went while nobody watched is found by the next list.
    #[test]
    fn mend_14_a_list_finds_what_went_unseen_and_the_first_one_what_never_was() {
        let at = Duration::from_secs;
        let mut plan = plan();
        assert_eq!(
            plan.listed(Kind::Binding, &names(&["a"]), at(0)),
            [Said::Absent(Kind::Binding, vec!["b".to_owned()])]
        );
        assert_eq!(plan.missing(Kind::Binding), 1);
        assert_eq!(plan.listed(Kind::Binding, &names(&["a"]), at(1)), []);
        assert_eq!(
            plan.listed(Kind::Binding, &names(&["b"]), at(5)),
            [Said::Lost(Kind::Binding, "a".to_owned()), Said::Back(Kind::Binding, "b".to_owned(), at(5))]
        );
        assert_eq!((plan.missing(Kind::Binding), plan.missing(Kind::Policy)), (1, 0));
    }
}
