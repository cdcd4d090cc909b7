//! What a signature over a card covers. In: a card's members. Out: the canonical bytes of a profile. A profile says which members it covers, what
//! it leaves out as empty, and how it writes the rest; everything else in a card is unsigned under it.

mod clean;
mod project;
mod schema;

use crate::json::{Members, Style, Value, write};

/// A canonical form of cards. The order is the one in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// Kagenti's operator and signer since June 2026: empty values are left out, in lists, too.
    KagentiV2,
    /// Kagenti's operator and signer before: lists keep what they hold.
    KagentiV1,
    /// The A2A Python SDK 1.x: RFC 8785 over the 1.x members, without empty values.
    A2aSdk1,
}

/// Why a card has no canonical form under a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileFault {
    /// A member that the profile knows has another type.
    #[error("{path} is not {wanted}")]
    WrongType {
        /// Where, in the schema's words.
        path: String,
        /// What the profile reads there.
        wanted: &'static str,
    },
    /// Two members of which one may be there.
    #[error("{path} has more than one of its alternatives")]
    Alternatives {
        /// Where, in the schema's words.
        path: String,
    },
    /// Nothing is left that a signature could cover.
    #[error("nothing is left that a signature would cover")]
    Nothing,
}

impl Profile {
    /// Every profile, in the order in which they are tried.
    pub const ALL: &'static [Self] = &[Self::KagentiV2, Self::KagentiV1, Self::A2aSdk1];

    /// Its name in settings, conditions and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KagentiV2 => "kagenti-v2",
            Self::KagentiV1 => "kagenti-v1",
            Self::A2aSdk1 => "a2a-sdk-1.x",
        }
    }

    /// The profile of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|profile| profile.as_str() == name)
    }

    /// The canonical bytes: what a signature covers, and the members that may be published with it.
    pub(crate) fn canonical(self, card: &Members) -> Result<Vec<u8>, ProfileFault> {
        let (members, style) = match self {
            Self::KagentiV2 => (clean::kagenti_v2(project::card(schema::KAGENTI, card)?), Style::Go),
            Self::KagentiV1 => (clean::kagenti_v1(project::card(schema::KAGENTI, card)?), Style::Go),
            Self::A2aSdk1 => (clean::sdk(project::card(schema::A2A_1, card)?), Style::Jcs),
        };
        match self {
            Self::A2aSdk1 if members.is_empty() => Err(ProfileFault::Nothing),
            _ => Ok(write(&Value::Object(members), style)),
        }
    }
}
