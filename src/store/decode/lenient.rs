//! Members of objects that others define, in whatever shape they are: one of another shape than expected counts as absent.
//!
//! In: one member, while an object is decoded. Out: what is expected there, or nothing. Promise: no shape ends the decoding of the
//! object, so that none ends a watch; text that is no JSON does.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The members of an object; none of them where there is something else, which is passed over without being kept, so that a
/// large one costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Members<T>(pub T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MembersVisitor(PhantomData))
    }
}

struct MembersVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for MembersVisitor<T> {
    type Value = Members<T>;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("anything")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Members)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Members::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Members::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Members::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Members::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Members::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Members::default())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Members::default())
    }
}

/// A member of another shape than expected counts as absent.
pub(in crate::store) fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Maybe<T> {
        Is(T),
        Not(IgnoredAny),
    }
    Ok(match Option::<Maybe<T>>::deserialize(deserializer)? {
        Some(Maybe::Is(value)) => Some(value),
        Some(Maybe::Not(_)) | None => None,
    })
}

/// The same of a list: what is none is empty, and so is one with an entry of another shape.
pub(in crate::store) fn lenient_list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(lenient::<D, Vec<T>>(deserializer)?.unwrap_or_default())
}
