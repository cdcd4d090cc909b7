//! How much follows from what cards prove: one axis per namespace. In: a word of a label or a key. Out: a level.
//! Promise: levels are ordered, and a floor can only raise one.

/// How far trust is enforced in a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrustLevel {
    /// Nothing follows, and no Pod is labelled.
    Off,
    /// Pods of verified agents are labelled; nobody is cut off.
    Audit,
    /// Agents that are not verified reach only what they need to become so.
    Enforced,
    /// The same for every Pod of the namespace, agent or not.
    EnforcedAll,
}

impl TrustLevel {
    /// Every level, the least first.
    pub const ALL: [Self; 4] = [Self::Off, Self::Audit, Self::Enforced, Self::EnforcedAll];

    /// As labels and keys spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Audit => "audit",
            Self::Enforced => "enforced",
            Self::EnforcedAll => "enforced-all",
        }
    }

    /// The level of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// Whether Pods are cut off.
    #[must_use]
    pub fn enforces(self) -> bool {
        self >= Self::Enforced
    }

    /// What holds in a namespace with that label, where the platform says `default` and no less than `floor`. A word that is no level counts
    /// as none.
    #[must_use]
    pub fn in_force(label: Option<&str>, default: Self, floor: Self) -> Self {
        label.and_then(Self::named).unwrap_or(default).max(floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_raises_and_a_word_that_is_no_level_counts_as_none() {
        use TrustLevel::{Audit, Enforced, EnforcedAll, Off};
        for (label, default, floor, wanted) in [
            (None, Off, Off, Off),
            (None, Enforced, Off, Enforced),
            (Some("off"), Enforced, Off, Off),
            (Some("off"), Off, Enforced, Enforced),
            (Some("enforced-all"), Off, Audit, EnforcedAll),
            (Some("enforce"), Audit, Off, Audit),
            (Some("Enforced"), Off, Off, Off),
        ] {
            assert_eq!(TrustLevel::in_force(label, default, floor), wanted, "{label:?} {default:?} {floor:?}");
        }
        for level in TrustLevel::ALL {
            assert_eq!(TrustLevel::named(level.as_str()), Some(level));
        }
        assert!(Enforced.enforces() && EnforcedAll.enforces() && !Audit.enforces() && !Off.enforces());
    }
}
