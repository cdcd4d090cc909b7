//! What one namespace may bring, in count and bytes; the table of docs/limits.md and the tests read these numbers.
//!
//! In: sizes. Out: which ConfigMaps are over a bound, and which one. Promises: what is over a bound is not read and changes
//! nothing; which of several that is does not depend on the order in which they were seen: the oldest count first.

use std::fmt;

use crate::store::LARGEST_TEXT;

const KIB: usize = 1024;

/// ConfigMaps labelled `kagenti.io/defaults=true`, per namespace.
pub const DEFAULTS: usize = 16;
/// ConfigMaps with templates and steps of builds, per namespace.
pub const BUILDS: usize = 32;
/// Of each sort, so many times as many as may be read are looked at: what lies behind the oldest of them is one too many, whatever it holds.
pub const LOOKED: usize = 4;
/// Bytes of one ConfigMap: its keys and values.
pub const TEXT: usize = LARGEST_TEXT;
/// Bytes of all ConfigMaps of one sort in one namespace.
pub const TEXT_IN_ALL: usize = 256 * KIB;
/// Bytes that are kept of what the ConfigMaps of one namespace say.
pub const KEPT: usize = 64 * KIB;
/// Bytes that are kept of what the ConfigMaps of all namespaces say.
pub const KEPT_IN_ALL: usize = 96 * KIB * KIB;
/// Objects of one of our kinds that are read in one namespace.
pub const OBJECTS: usize = 1024;
/// Bytes that an Agent or AgentBuild is counted besides what is written on it: status, indices, names.
pub const OBJECT: usize = 4 * KIB;
/// Bytes that an AgentRuntime is counted besides its spec.
pub const RUNTIME: usize = 2 * KIB;
/// Bytes of the status of an AgentRuntime that are among [`RUNTIME`]: as many as one has as a rule. What there is more is counted besides.
pub const STATUS: usize = 2 * KIB;
/// Bytes that an AgentCard is counted besides its owners, finalizers and status.
pub const CARD: usize = KIB;
/// Bytes that a Role or RoleBinding for a signed card is counted besides what it gives.
pub const RIGHT: usize = KIB;
/// Bytes that a NetworkPolicy is counted besides its spec.
pub const POLICY: usize = KIB;
/// Bytes that a ConfigMap with a signed card is counted: of its content nothing is kept.
pub const SIGNED: usize = KIB;
/// Bytes that are kept of all Agents; and as many of all AgentBuilds, all AgentRuntimes, all AgentCards, all Agents of BeeAI of either group, all
/// Roles and all RoleBindings for signed cards, all NetworkPolicies, and all ConfigMaps with signed cards.
pub const OBJECTS_KEPT: usize = 48 * KIB * KIB;
/// Bytes of texts that wait to be read, in all namespaces; the others are asked for when their turn comes.
pub const WAITING: usize = 8 * KIB * KIB;

/// A bound that something is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bound {
    /// [`TEXT`].
    Size,
    /// [`DEFAULTS`] or [`BUILDS`].
    Count,
    /// [`TEXT_IN_ALL`].
    Text,
    /// [`KEPT`].
    Kept,
    /// [`KEPT_IN_ALL`].
    Total,
}

impl Bound {
    /// Every bound.
    pub const ALL: [Bound; 5] = [Bound::Size, Bound::Count, Bound::Text, Bound::Kept, Bound::Total];

    /// The word of the metric's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Bound::Size => "size",
            Bound::Count => "count",
            Bound::Text => "text",
            Bound::Kept => "kept",
            Bound::Total => "total",
        }
    }
}

/// Which ConfigMaps count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sort {
    /// Those with a fixed name: each counts for itself.
    Named,
    /// Those labelled `kagenti.io/defaults=true`.
    Defaults,
    /// Templates and steps.
    Builds,
}

/// What holds in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// [`BUILDS`].
    pub builds: usize,
    /// [`TEXT_IN_ALL`], of templates and steps.
    pub text_of_builds: usize,
    /// [`KEPT`].
    pub kept: usize,
}

impl Limits {
    /// Those of an agent namespace.
    pub const AGENT: Limits = Limits { builds: BUILDS, text_of_builds: TEXT_IN_ALL, kept: KEPT };
    /// Those of the operator's own namespace, whose templates and steps serve everybody and which only the platform writes.
    pub const OWN: Limits = Limits { builds: 8 * BUILDS, text_of_builds: 8 * TEXT_IN_ALL, kept: 64 * KEPT };

    /// How many ConfigMaps with defaults, and with templates and steps, are looked at: of those behind them nothing decides but their size.
    #[must_use]
    pub fn looked(self) -> [usize; 2] {
        [LOOKED * DEFAULTS, LOOKED * self.builds]
    }

    /// Which of the ConfigMaps of one namespace are over a bound, given oldest first by sort and size (`None`: not read, whatever it
    /// holds); in the same order.
    pub fn over(self, known: impl Iterator<Item = Option<(Sort, usize)>>) -> impl Iterator<Item = Option<Bound>> {
        let mut used = [(0, 0, 0); 2];
        known.map(move |one| {
            let (sort, size) = one?;
            let is_large = (size > TEXT).then_some(Bound::Size);
            let (at, most, all) = match sort {
                Sort::Named => return is_large,
                Sort::Defaults => (0, DEFAULTS, TEXT_IN_ALL),
                Sort::Builds => (1, self.builds, self.text_of_builds),
            };
            let (place, count, text) = used[at];
            used[at].0 += 1;
            if is_large.is_some() {
                return is_large;
            }
            if count >= most || place >= LOOKED * most {
                return Some(Bound::Count);
            }
            if text + size > all {
                return Some(Bound::Text);
            }
            used[at] = (place + 1, count + 1, text + size);
            None
        })
    }
}

impl fmt::Display for Bound {
    /// The rest of a sentence about one ConfigMap.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: usize| bytes / KIB;
        match self {
            Bound::Size => write!(f, "is larger than {} KiB, the most that is read of one", kib(TEXT)),
            Bound::Count => write!(
                f,
                "is one too many: {DEFAULTS} ConfigMaps with defaults and {BUILDS} with templates and steps are read in a \
                 namespace, the oldest first"
            ),
            Bound::Text => write!(
                f,
                "has no room beside the older ones: {} KiB of one sort are read in a namespace",
                kib(TEXT_IN_ALL)
            ),
            Bound::Kept => write!(
                f,
                "says too much beside the others: {} KiB are kept of what the ConfigMaps of a namespace say",
                kib(KEPT)
            ),
            Bound::Total => write!(
                f,
                "has no room beside those of all other namespaces, of which {} MiB are kept",
                kib(KEPT_IN_ALL) / KIB
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(limits: Limits, known: &[(Sort, usize)]) -> Vec<Option<Bound>> {
        limits.over(known.iter().copied().map(Some)).collect()
    }

    /// The table of docs/limits.md says what holds.
    #[test]
    fn mend_02_the_limits_page_says_what_a_namespace_may_cost() {
        let page = include_str!("../../docs/limits.md");
        let table =
            page.split("## What a namespace may cost").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
        for row in [
            format!("| one ConfigMap that is read: its keys and values | {} KiB |", TEXT / KIB),
            format!("in a namespace | {DEFAULTS}, together {} KiB |", TEXT_IN_ALL / KIB),
            format!("of builds in a namespace | {BUILDS}, together {} KiB |", TEXT_IN_ALL / KIB),
            format!("the oldest {} with defaults, {} with templates and steps", LOOKED * DEFAULTS, LOOKED * BUILDS),
            format!("| what is kept of all that, per namespace | {} KiB |", KEPT / KIB),
            format!("| what is kept of all namespaces | {} MiB |", KEPT_IN_ALL / KIB / KIB),
            format!("| texts that wait to be read, of all namespaces | {} MiB |", WAITING / KIB / KIB),
            format!("| `spec` of an Agent or AgentBuild | {} KiB |", TEXT / KIB),
            format!("labels, annotations and `spec` | {} KiB |", TEXT / KIB),
            format!("that are read in a namespace | {OBJECTS} of each kind |"),
            format!("that bear our label, in a namespace | {OBJECTS} of each kind |"),
            format!("NetworkPolicies that are read in a namespace | {OBJECTS} |"),
            format!("with signed cards (`…-card-signed`) that are read in a namespace | {OBJECTS} |"),
            format!("what is kept of all objects of one of these kinds | {} MiB;", OBJECTS_KEPT / KIB / KIB),
            format!(
                "{}\nsteps and templates may take {} MiB",
                Limits::OWN.builds,
                Limits::OWN.text_of_builds / KIB / KIB
            ),
            format!("and {} MiB are kept", Limits::OWN.kept / KIB / KIB),
        ] {
            assert!(table.contains(&row), "docs/limits.md lacks {row:?}");
        }
    }

    #[test]
    fn mend_02_count_and_bytes_of_a_namespace_are_bounded_and_the_oldest_count_first() {
        use Sort::{Builds, Defaults, Named};
        type Case = (&'static str, Vec<(Sort, usize)>, Vec<(usize, Bound)>);
        let table: [Case; 7] = [
            (
                "what lies behind those that are looked at is too many, however much room is left",
                [
                    vec![(Defaults, TEXT - 1); 4],
                    vec![(Defaults, 5); LOOKED * DEFAULTS - 4],
                    vec![(Defaults, 1), (Defaults, TEXT + 1)],
                ]
                .concat(),
                (4..LOOKED * DEFAULTS)
                    .map(|at| (at, Bound::Text))
                    .chain([(LOOKED * DEFAULTS, Bound::Count), (LOOKED * DEFAULTS + 1, Bound::Size)])
                    .collect(),
            ),
            ("as many as may be", vec![(Defaults, 100); DEFAULTS], vec![]),
            ("two more", vec![(Defaults, 100); DEFAULTS + 2], vec![(16, Bound::Count), (17, Bound::Count)]),
            (
                "each too large",
                vec![(Named, TEXT + 1), (Defaults, TEXT + 1), (Builds, TEXT + 1), (Named, TEXT)],
                vec![(0, Bound::Size), (1, Bound::Size), (2, Bound::Size)],
            ),
            (
                "too large together",
                vec![(Defaults, TEXT), (Defaults, TEXT), (Defaults, TEXT), (Defaults, TEXT), (Defaults, 1)],
                vec![(4, Bound::Text)],
            ),
            (
                "one that has no room leaves it to the next",
                vec![(Builds, TEXT); 3].into_iter().chain([(Builds, TEXT - 9), (Builds, 10), (Builds, 9)]).collect(),
                vec![(4, Bound::Text)],
            ),
            (
                "sorts do not take room from each other",
                vec![(Defaults, TEXT); 4].into_iter().chain([(Builds, TEXT); 4]).collect(),
                vec![],
            ),
        ];
        for (what, known, expected) in table {
            let found: Vec<_> = over(Limits::AGENT, &known)
                .into_iter()
                .enumerate()
                .filter_map(|(at, bound)| Some((at, bound?)))
                .collect();
            assert_eq!(found, expected, "{what}");
        }
        assert_eq!(
            over(Limits::OWN, &vec![(Builds, 10); 2 * BUILDS]).iter().flatten().count(),
            0,
            "the platform's own"
        );
    }
}
