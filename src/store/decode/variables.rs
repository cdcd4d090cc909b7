//! Which of the variables that Drawbridge may set a container sets itself.
//!
//! In: `env` of a container, while an object is decoded. Out: one bit for each of [`AGENT_VARIABLES`]. Promise: nothing is allocated for it, however
//! long the list is: values, and the names of all other variables, are passed over.

use std::fmt::{self, Formatter};

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};

use crate::domain::keys::AGENT_VARIABLES;

/// Those that a container sets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Variables(u16);

const _: () = assert!(AGENT_VARIABLES.len() <= 16, "there is one bit for each");

impl Variables {
    /// Their names, each once, in the order of [`AGENT_VARIABLES`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        AGENT_VARIABLES.into_iter().enumerate().filter(move |(at, _)| self.0 & (1u16 << at) != 0).map(|(_, name)| name)
    }
}

impl<'de> Deserialize<'de> for Variables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = Variables;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of variables")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Variables, A::Error> {
        let mut found = 0u16;
        while let Some(Entry { name: Bit(bit) }) = seq.next_element()? {
            found |= bit;
        }
        Ok(Variables(found))
    }

    fn visit_unit<E>(self) -> Result<Variables, E> {
        Ok(Variables::default())
    }
}

/// An entry of the list.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    name: Bit,
}

/// The bit of a name; none of any other.
#[derive(Default)]
struct Bit(u16);

impl<'de> Deserialize<'de> for Bit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Bit;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a variable")
    }

    fn visit_str<E>(self, name: &str) -> Result<Bit, E> {
        Ok(AGENT_VARIABLES.iter().position(|known| *known == name).map_or(Bit(0), |at| Bit(1u16 << at)))
    }

    fn visit_unit<E>(self) -> Result<Bit, E> {
        Ok(Bit(0))
    }
}
