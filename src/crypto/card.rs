//! A card: read strictly and once. In: bytes. Out: its members and its signature entries, unjudged.

use crate::json::{self, JsonFault, Members, Value};
use crate::limits;
use crate::profile::{Profile, ProfileFault};

/// A card that was read. Nothing in it is verified.
#[derive(Clone, Debug)]
pub struct Card {
    members: Members,
    signatures: Vec<Value>,
}

/// Why bytes are no card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardFault {
    /// Not acceptable as JSON.
    #[error("the card is not acceptable JSON: {0}")]
    Json(#[from] JsonFault),
    /// JSON, but no object.
    #[error("the card is not a JSON object")]
    NotAnObject,
    /// JSON that is as deep as is read, which is one level more than is published of a card.
    #[error("the card is nested {} deep; at most {} levels of lists and objects are published", limits::DEPTH, limits::DEPTH - 1)]
    TooDeep,
    /// `signatures` is no list.
    #[error("member signatures is not a list")]
    SignaturesNotAList,
    /// More entries than are looked at.
    #[error("{count} signatures; at most {} are looked at", limits::SIGNATURES)]
    TooManySignatures {
        /// How many there are.
        count: usize,
    },
}

impl Card {
    /// The card in `bytes`.
    pub fn read(bytes: &[u8]) -> Result<Self, CardFault> {
        let Value::Object(mut members) = json::read(bytes, limits::CARD_BYTES)? else {
            return Err(CardFault::NotAnObject);
        };
        let signatures = match members.remove("signatures") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::List(list)) if list.len() > limits::SIGNATURES => {
                return Err(CardFault::TooManySignatures { count: list.len() });
            }
            Some(Value::List(list)) => list,
            Some(_) => return Err(CardFault::SignaturesNotAList),
        };
        Ok(Self { members, signatures })
    }

    /// How many signature entries it has.
    #[must_use]
    pub fn signatures(&self) -> usize {
        self.signatures.len()
    }

    /// The bytes that a signature under `profile` covers. They are JSON, and hold nothing that the profile does not cover.
    pub fn canonical(&self, profile: Profile) -> Result<Vec<u8>, ProfileFault> {
        profile.canonical(&self.members)
    }

    pub(crate) fn entries(&self) -> &[Value] {
        &self.signatures
    }
}
