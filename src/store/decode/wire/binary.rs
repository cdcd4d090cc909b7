//! `binaryData` of a ConfigMap: which keys it has, and whether it is the same as before.
//!
//! In: the member, while an object is decoded, or that of a manifest. Out: a [`Binary`]: the first keys, and one digest of all keys and values. Promises: of
//! values nothing is kept, and of keys no more than is told of them; base64 on several lines, as people write it, is what an API server makes of it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Formatter};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::domain::digest::of_bytes;
use crate::domain::keys::KEY_CONFIG;

/// What stands before a key of `binaryData` among those of `data`: no key of a ConfigMap has a slash.
pub const BINARY: &str = "binaryData/";
/// Keys that are kept, besides the one that settings stand under.
const KEYS: usize = 5;
/// Characters that are kept of one: enough to tell which file it was.
const LONGEST: usize = 63;

/// What counts of `binaryData`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binary {
    keys: Vec<Box<str>>,
    /// Empty where there is no key.
    digest: String,
}

impl Binary {
    /// That of a manifest; what is none counts as empty.
    #[must_use]
    pub fn of(member: Option<&Value>) -> Self {
        member.and_then(|member| Self::deserialize(member).ok()).unwrap_or_default()
    }

    /// There is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.digest.is_empty()
    }

    /// What joins `data` where both count together: the keys that are kept, and the digest of all. None where there is no key, so that nothing is other
    /// for a ConfigMap without `binaryData`.
    pub fn entries(&self) -> impl Iterator<Item = (String, String)> {
        let keys = self.keys.iter().map(|key| (format!("{BINARY}{key}"), String::new()));
        keys.chain((!self.is_empty()).then(|| (BINARY.to_owned(), self.digest.clone())))
    }
}

/// Whether `binaryData` has that key, of data that its [`Binary::entries`] have joined.
#[must_use]
pub fn has(data: &BTreeMap<String, String>, key: &str) -> bool {
    data.contains_key(&format!("{BINARY}{key}"))
}

impl<'de> Deserialize<'de> for Binary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Binary;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("keys with values in base64")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Binary, A::Error> {
        let mut found = Binary::default();
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let Hashed(value) = map.next_value()?;
            // A digest is of one length, and no key has a NUL: no two members read the same.
            found.digest = of_bytes(format!("{}{key}\0{value}", found.digest).as_bytes());
            if found.keys.len() < KEYS || key == KEY_CONFIG {
                found.keys.push(key.chars().take(LONGEST).collect());
            }
        }
        Ok(found)
    }
}

/// The digest of a value.
struct Hashed(String);

impl<'de> Deserialize<'de> for Hashed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl Visitor<'_> for ValueVisitor {
    type Value = Hashed;

    fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value in base64")
    }

    fn visit_str<E>(self, text: &str) -> Result<Hashed, E> {
        let breaks = ['\n', '\r'];
        let line = if text.contains(breaks) { Cow::from(text.replace(breaks, "")) } else { Cow::from(text) };
        Ok(Hashed(of_bytes(line.as_bytes())))
    }

    /// What has no bytes an API server writes as null.
    fn visit_unit<E>(self) -> Result<Hashed, E> {
        Ok(Hashed(of_bytes(b"")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::bounds::LARGEST_TEXT;
    use crate::domain::digest::of_data;
    use crate::store::{ConfigMapSeen, Kind, What, change_of};

    fn seen(data: &Value, binary: &Value) -> ConfigMapSeen {
        let object =
            json!({"metadata": {"name": "envoy-config", "namespace": "team"}, "data": data, "binaryData": binary});
        match change_of(Kind::ConfigMap, &object.to_string()).unwrap().now.map(|now| now.what.clone()) {
            Some(What::ConfigMap(seen)) => seen,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_value_that_changes_changes_the_digest_and_nothing_of_values_is_kept() {
        let data = json!({"envoy.yaml": "one"});
        let without = seen(&data, &json!(null));
        let same = BTreeMap::from([("envoy.yaml".to_owned(), "one".to_owned())]);
        assert_eq!((&*without.digest, without.size, &without.binary), (&*of_data(&same), 13, &None));
        assert_eq!(seen(&data, &json!({})), without, "an empty one is none");
        let all = [
            json!({"a": "AAE="}),
            json!({"a": "AAI="}),
            json!({"b": "AAE="}),
            json!({"a": ""}),
            json!({"a": "", "b": ""}),
            json!({"a": "AAE=", "b": "AAI="}),
            json!({"a": "AAI=", "b": "AAE="}),
        ];
        let mut digests: Vec<_> = all.iter().map(|binary| seen(&data, binary).digest).collect();
        digests.push(without.digest);
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), all.len() + 1, "each is another one");
        let large = seen(&data, &json!({"a": "A".repeat(900 * 1024)}));
        assert_eq!((&*large.data, large.size), (&same, 13 + "binaryData/a".len() + "binaryData/".len() + 64));
        // Keys alone may fill an object: none of them is kept but those that are told.
        let wide: serde_json::Map<_, _> = (0..40_000).map(|at| (format!("k{at:06}"), json!(""))).collect();
        let wide = seen(&data, &Value::Object(wide));
        assert!(wide.size < LARGEST_TEXT && wide.binary.unwrap().keys.len() == KEYS);
        let long = seen(&data, &json!({("x".repeat(253)): ""})).binary.unwrap();
        assert_eq!(long.keys, [Box::<str>::from("x".repeat(LONGEST))]);
    }

    #[test]
    fn a_manifest_says_what_an_api_server_makes_of_it() {
        let served = json!({"a": "AAEC", "config.yaml": "//4=", "n": null});
        let written = json!({"a": "AA\nEC\r\n", "config.yaml": "//4=\n", "n": ""});
        let of = |member: &Value| Binary::of(Some(member));
        assert_eq!(of(&written), of(&served));
        let from_text: Binary = serde_json::from_str(&served.to_string()).unwrap();
        assert_eq!(of(&served), from_text);
        for none in [json!(null), json!("x"), json!([1]), json!({"a": 1})] {
            assert!(of(&none).is_empty() && of(&none).entries().next().is_none(), "{none}");
        }
        assert!(Binary::of(None).is_empty());
        // However many stand before it.
        let mut many: serde_json::Map<_, _> = (0..9).map(|at| (format!("a{at}"), json!(""))).collect();
        many.insert(KEY_CONFIG.to_owned(), json!("//4="));
        let joined: BTreeMap<_, _> = of(&Value::Object(many)).entries().collect();
        assert!(has(&joined, KEY_CONFIG) && has(&joined, "a4") && !has(&joined, "a5"));
    }
}
