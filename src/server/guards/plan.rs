//! What is known of the policies and webhook configurations, and what there is to say. Pure.
//!
//! A policy without its binding refuses nothing, and a binding without its policy neither: each is a guard by itself. One that is back
//! within [`MOMENT`] was replaced (`kubectl replace --force`, Helm): it counts as missing meanwhile, and nobody is alarmed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::domain::reason::Reason;

/// Who is back by then was replaced.
pub const MOMENT: Duration = Duration::from_secs(2);
/// The same of a webhook configuration, without which nothing is asked of anybody.
pub const MOMENT_OF_WEBHOOKS: Duration = Duration::from_millis(900);

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
    /// What has the API server ask us about Pods and AgentBuilds.
    MutatingWebhook,
    /// What has it ask us about everything that is judged.
    ValidatingWebhook,
}

impl Kind {
    /// Every one.
    pub const ALL: [Kind; 6] = [
        Kind::Policy,
        Kind::Binding,
        Kind::MutatingPolicy,
        Kind::MutatingBinding,
        Kind::MutatingWebhook,
        Kind::ValidatingWebhook,
    ];
    /// Those by which the API server asks us.
    pub const WEBHOOKS: [Kind; 2] = [Kind::MutatingWebhook, Kind::ValidatingWebhook];

    /// As manifests spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Policy => "ValidatingAdmissionPolicy",
            Kind::Binding => "ValidatingAdmissionPolicyBinding",
            Kind::MutatingPolicy => "MutatingAdmissionPolicy",
            Kind::MutatingBinding => "MutatingAdmissionPolicyBinding",
            Kind::MutatingWebhook => "MutatingWebhookConfiguration",
            Kind::ValidatingWebhook => "ValidatingWebhookConfiguration",
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
            Kind::MutatingWebhook => "mutatingwebhookconfigurations",
            Kind::ValidatingWebhook => "validatingwebhookconfigurations",
        }
    }

    /// Whether it changes objects; the others refuse them.
    #[must_use]
    pub const fn is_mutating(self) -> bool {
        matches!(self, Kind::MutatingPolicy | Kind::MutatingBinding)
    }

    /// Whether the API server asks us by it; the others it judges by itself.
    #[must_use]
    pub const fn is_webhook(self) -> bool {
        matches!(self, Kind::MutatingWebhook | Kind::ValidatingWebhook)
    }

    /// How long it may be gone before anybody is told.
    const fn moment(self) -> Duration {
        if self.is_webhook() { MOMENT_OF_WEBHOOKS } else { MOMENT }
    }

    /// Why it is told.
    pub(super) const fn reason(self) -> Reason {
        if self.is_webhook() { Reason::WebhookMissing } else { Reason::PolicyMissing }
    }

    /// What follows from its loss.
    #[must_use]
    pub const fn effect(self) -> &'static str {
        match self {
            Kind::MutatingWebhook => {
                "the API server does not ask Drawbridge about Pods: those of enrolled workloads are created without sidecars (in gate \
                 mode they wait behind the scheduling gate)"
            }
            Kind::ValidatingWebhook => {
                "the API server does not ask Drawbridge about AgentRuntimes, Agents and AgentBuilds: wrong ones are stored"
            }
            Kind::MutatingPolicy | Kind::MutatingBinding => {
                "enrolled Pods get no scheduling gate, and run unprotected while no replica answers"
            }
            Kind::Policy | Kind::Binding => "what it refuses is accepted",
        }
    }
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// These were not there when they were looked for first.
    Absent(Kind, Vec<String>),
    /// This one was there and has been gone for its moment.
    Lost(Kind, String),
    /// This one is there again before anybody was told, after that time.
    Replaced(Kind, String, Duration),
    /// This one, of which it was told that it is not there, is there again, after that time.
    Back(Kind, String, Duration),
}

/// The guards.
#[derive(Debug)]
pub struct Plan {
    installed: Vec<(Kind, String)>,
    /// The kinds that were listed whole.
    listed: BTreeSet<Kind>,
    missing: BTreeMap<(Kind, String), Missing>,
}

/// One that is not there.
#[derive(Debug, Clone, Copy)]
struct Missing {
    since: Duration,
    is_told: bool,
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
                    self.missing.insert((kind, name.clone()), Missing { since: now, is_told: true });
                    absent.push(name);
                }
                false => self.lost(kind, name, now),
            }
        }
        said.extend((!absent.is_empty()).then_some(Said::Absent(kind, absent)));
        said
    }

    /// One of a kind is there, or is not any more.
    pub fn changed(&mut self, kind: Kind, name: &str, is_there: bool, now: Duration) -> Option<Said> {
        let (_, name) = self.installed.iter().find(|(of, known)| *of == kind && known == name)?.clone();
        if is_there {
            return self.found(kind, name, now);
        }
        self.lost(kind, name, now);
        None
    }

    /// Those that have been gone for their moment now, each once.
    pub fn overdue(&mut self, now: Duration) -> Vec<Said> {
        let untold = self
            .missing
            .iter_mut()
            .filter(|((kind, _), missing)| !missing.is_told && missing.since + kind.moment() <= now);
        untold
            .map(|((kind, name), missing)| {
                missing.is_told = true;
                Said::Lost(*kind, name.clone())
            })
            .collect()
    }

    /// When to ask for [`Plan::overdue`] next.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        let untold = self.missing.iter().filter(|(_, missing)| !missing.is_told);
        untold.map(|((kind, _), missing)| missing.since + kind.moment()).min()
    }

    /// How many are known to be missing.
    #[must_use]
    pub fn missing(&self, kind: Kind) -> usize {
        self.missing.keys().filter(|(of, _)| *of == kind).count()
    }

    fn found(&mut self, kind: Kind, name: String, now: Duration) -> Option<Said> {
        let Missing { since, is_told } = self.missing.remove(&(kind, name.clone()))?;
        let after = now.saturating_sub(since);
        Some(if is_told { Said::Back(kind, name, after) } else { Said::Replaced(kind, name, after) })
    }

    fn lost(&mut self, kind: Kind, name: String, now: Duration) {
        if let Entry::Vacant(place) = self.missing.entry((kind, name)) {
            place.insert(Missing { since: now, is_told: false });
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
        assert_eq!(plan.changed(Kind::Policy, "a", false, at(2)), None);
        assert_eq!((plan.missing(Kind::Policy), plan.next()), (1, Some(at(4))), "counted at once");
        assert_eq!(plan.changed(Kind::Policy, "a", false, at(3)), None);
        assert_eq!(plan.overdue(Duration::from_millis(3_999)), []);
        assert_eq!(plan.overdue(at(4)), [Said::Lost(Kind::Policy, "a".to_owned())]);
        assert_eq!((plan.overdue(at(5)), plan.next()), (vec![], None));
        assert_eq!(plan.changed(Kind::Policy, "a", true, at(6)), Some(Said::Back(Kind::Policy, "a".to_owned(), at(4))));
        assert_eq!(plan.missing(Kind::Policy), 0);
    }

    #[test]
    fn mend_14_a_policy_that_is_back_within_two_seconds_was_replaced() {
        let at = Duration::from_millis;
        let mut plan = plan();
        assert_eq!(plan.listed(Kind::Policy, &names(&["a", "b"]), at(0)), []);
        assert_eq!(plan.changed(Kind::Policy, "a", false, at(1_000)), None);
        let replaced = Said::Replaced(Kind::Policy, "a".to_owned(), at(1_900));
        assert_eq!(plan.changed(Kind::Policy, "a", true, at(2_900)), Some(replaced));
        assert_eq!((plan.overdue(at(9_000)), plan.next(), plan.missing(Kind::Policy)), (vec![], None, 0));
        // Gone again: the time begins anew.
        assert_eq!(plan.changed(Kind::Policy, "a", false, at(9_000)), None);
        assert_eq!(plan.next(), Some(at(11_000)));
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
            [Said::Back(Kind::Binding, "b".to_owned(), at(5))]
        );
        assert_eq!(plan.overdue(at(7)), [Said::Lost(Kind::Binding, "a".to_owned())]);
        assert_eq!((plan.missing(Kind::Binding), plan.missing(Kind::Policy)), (1, 0));
    }
}
