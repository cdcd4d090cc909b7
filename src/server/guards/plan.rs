//! What is known of the policies and webhook configurations, and what there is to say. Pure.
//!
//! A policy without its binding refuses nothing, and a binding without its policy neither: each is a guard by itself. One that is back
//! within [`MOMENT`] was replaced (`kubectl replace --force`, Helm): it counts as missing meanwhile, and nobody is alarmed. Those of a group of
//! kinds have to be there only while the API server serves it, and count as missing once it is told.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::domain::reason::Reason;

/// Who is back by then was replaced.
pub const MOMENT: Duration = Duration::from_secs(2);
/// The same of a webhook configuration, without which nothing is asked of anybody.
pub const MOMENT_OF_WEBHOOKS: Duration = Duration::from_millis(900);
/// The same of what comes and goes with a group of kinds: whoever removes a group deletes its definitions first, and that these are gone is
/// certain only after half a minute.
pub const MOMENT_OF_A_GROUP: Duration = Duration::from_secs(60);

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

impl Said {
    /// What it is about.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Said::Absent(kind, _) | Said::Lost(kind, _) | Said::Replaced(kind, ..) | Said::Back(kind, ..) => *kind,
        }
    }
}

/// The guards.
#[derive(Debug)]
pub struct Plan {
    installed: Vec<(Kind, String)>,
    /// Names of those among them that have to be there only while their group is served.
    group: BTreeSet<String>,
    is_served: bool,
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
        let (group, listed, missing) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
        Self { installed, group, is_served: false, listed, missing }
    }

    /// For these as well, while the group that they belong to is served: nobody has said so yet.
    #[must_use]
    pub fn with_group(mut self, group: Vec<(Kind, String)>) -> Self {
        self.group.extend(group.iter().map(|(_, name)| name.clone()));
        self.installed.extend(group);
        self
    }

    /// Whether that is one of the group.
    #[must_use]
    pub fn is_of_group(&self, name: &str) -> bool {
        self.group.contains(name)
    }

    /// The group is served from now on, or no longer.
    pub fn serve(&mut self, is_served: bool, now: Duration) {
        self.is_served = is_served;
        let of_group = self.missing.iter_mut().filter(|((_, name), _)| self.group.contains(name));
        of_group.for_each(|(_, missing)| *missing = Missing { since: now, is_told: false });
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
                false if first && !self.is_of_group(&name) => {
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
        let due = |(of, missing): &(&(Kind, String), &Missing)| self.due(of, **missing).is_some_and(|due| due <= now);
        let due: Vec<_> = self.missing.iter().filter(due).map(|(of, _)| of.clone()).collect();
        let mut said = Vec::new();
        for (kind, name) in due {
            if let Some(missing) = self.missing.get_mut(&(kind, name.clone())) {
                missing.is_told = true;
                said.push(Said::Lost(kind, name));
            }
        }
        said
    }

    /// When to ask for [`Plan::overdue`] next.
    #[must_use]
    pub fn next(&self) -> Option<Duration> {
        self.missing.iter().filter_map(|(of, missing)| self.due(of, *missing)).min()
    }

    /// How many are known to be missing.
    #[must_use]
    pub fn missing(&self, kind: Kind) -> usize {
        let counts = |name: &str, missing: &Missing| missing.is_told || !self.is_of_group(name);
        self.missing.iter().filter(|((of, name), missing)| *of == kind && counts(name, missing)).count()
    }

    /// When it is to be told that this one is missing; `None`: it was, or nobody misses it.
    fn due(&self, (kind, name): &(Kind, String), missing: Missing) -> Option<Duration> {
        match missing.is_told {
            true => None,
            false if !self.is_of_group(name) => Some(missing.since + kind.moment()),
            false => self.is_served.then(|| missing.since + MOMENT_OF_A_GROUP),
        }
    }

    fn found(&mut self, kind: Kind, name: String, now: Duration) -> Option<Said> {
        let Missing { since, is_told } = self.missing.remove(&(kind, name.clone()))?;
        if !is_told && self.is_of_group(&name) {
            // Perhaps it was never there.
            return None;
        }
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

    /// A policy of a group with its binding, beside those of the installation.
    fn with_group() -> Plan {
        plan().with_group([Kind::Policy, Kind::Binding].map(|kind| (kind, "of-group".to_owned())).into())
    }

    #[test]
    fn what_a_group_needs_is_missed_only_while_the_group_is_served() {
        let at = Duration::from_secs;
        let mut plan = with_group();
        assert_eq!(plan.listed(Kind::Policy, &names(&["a", "b"]), at(0)), [], "nobody serves the group");
        assert_eq!((plan.missing(Kind::Policy), plan.next()), (0, None));
        assert_eq!(plan.changed(Kind::Policy, "of-group", true, at(50)), None, "it was never there, so it is not back");
        // It is deleted while the group is served: told after its moment, and counted from then on.
        plan.serve(true, at(100));
        assert_eq!(plan.changed(Kind::Policy, "of-group", false, at(110)), None);
        assert_eq!((plan.overdue(at(169)), plan.missing(Kind::Policy), plan.next()), (vec![], 0, Some(at(170))));
        assert_eq!(plan.overdue(at(170)), [Said::Lost(Kind::Policy, "of-group".to_owned())]);
        assert_eq!((plan.missing(Kind::Policy), plan.next()), (1, None));
        let back = Said::Back(Kind::Policy, "of-group".to_owned(), at(70));
        assert_eq!(plan.changed(Kind::Policy, "of-group", true, at(180)), Some(back));
        assert_eq!(plan.missing(Kind::Policy), 0);
    }

    #[test]
    fn a_group_that_is_removed_takes_what_it_needed_with_it_and_alarms_nobody() {
        let at = Duration::from_secs;
        let mut plan = with_group();
        plan.listed(Kind::Binding, &names(&["a", "b", "of-group"]), at(0));
        plan.serve(true, at(1));
        plan.changed(Kind::Binding, "of-group", false, at(10));
        plan.serve(false, at(45));
        assert_eq!((plan.overdue(at(500)), plan.next(), plan.missing(Kind::Binding)), (vec![], None, 0));
        // It is there again without its binding.
        plan.serve(true, at(600));
        assert_eq!((plan.overdue(at(659)), plan.next()), (vec![], Some(at(660))));
        assert_eq!(plan.overdue(at(660)), [Said::Lost(Kind::Binding, "of-group".to_owned())]);
        // And goes for good after that was told.
        plan.serve(false, at(700));
        assert_eq!((plan.missing(Kind::Binding), plan.next()), (0, None));
    }
}
