//! The same bytes are the same object, by whichever way they come: in a list, in an event, in an answer.

use kube::core::WatchEvent;
use serde_json::value::RawValue;

use crate::cluster::watch::events::said;
use crate::cluster::watch::follow::Items;
use crate::store::decode::wire::Raw;
use crate::store::decode::{Bounded, Decoded, Shape, TektonObject, Whole};
use crate::store::{Change, Kind, change_of};

/// Numbers that look like chance, the same at every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }

    fn leaf(&mut self) -> &'static str {
        ["1", "-2.5", "18446744073709551615", "null", "true", r#""[{\"é\\""#, r#""""#, "[]", "{}"][self.below(9)]
    }

    /// A value of so many levels at least, with something beside each of them.
    fn nested(&mut self, levels: usize) -> String {
        let mut text = self.leaf().to_owned();
        for _ in 0..levels {
            let beside = self.leaf();
            text = match self.below(4) {
                0 => format!("[{beside},{text}]"),
                1 => format!("[{text},{beside}]"),
                2 => format!("{{\"f:a\":{text},\"z\":{beside}}}"),
                _ => format!("{{\"a\": {beside}, \"f:spec\" : {text}}}"),
            };
        }
        text
    }

    /// An object of that kind, with much of what whoever writes it may nest.
    fn object(&mut self, kind: Kind) -> String {
        let mut part = |most: usize| {
            let levels = self.below(most);
            self.nested(levels)
        };
        let (fields, spec, status, other) = (part(160), part(160), part(140), part(160));
        let (spec, status) = match kind.shape() {
            Shape::Common => (format!("{{\"replicas\":2,\"selector\":{spec}}}"), format!("{{\"active\":{status}}}")),
            _ => (format!("{{\"image\":\"x\",\"more\":{spec}}}"), format!("{{\"phase\":\"Ready\",\"more\":{status}}}")),
        };
        let owned = format!("[{{\"manager\":\"m\",\"operation\":\"Apply\",\"fieldsV1\":{fields}}}]");
        format!(
            "{{\"metadata\":{{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"managedFields\":{owned}}},\"spec\":{spec},\"status\":{status},\"other\":{other}}}"
        )
    }
}

/// What an object comes to that is listed, is told of in an event whose members stand in either order, and is answered.
fn by_every_way<R: Decoded>(kind: Kind, text: &str) -> [Option<Change>; 4] {
    let listed = Items::<R>::of(vec![RawValue::from_string(text.to_owned()).unwrap()]).next().unwrap();
    let told = |line: String| match said::<R>(&line) {
        Some(Ok(WatchEvent::Modified(object))) => Some(object.into_change(kind)),
        _ => None,
    };
    [
        listed.ok().map(|object| object.into_change(kind)),
        told(format!("{{\"type\":\"MODIFIED\",\"object\":{text}}}")),
        told(format!("{{\"object\":{text},\"type\":\"MODIFIED\"}}")),
        change_of(kind, text).ok(),
    ]
}

#[test]
fn lists_watches_and_answers_read_the_same_bytes_alike_however_deep_they_are() {
    let (mut chance, mut too_deep) = (Chance(0x9e37_79b9_7f4a_7c15), 0);
    for kind in [Kind::Deployment, Kind::Agent, Kind::NetworkPolicy, Kind::PipelineRun] {
        for case in 0..150 {
            let text = chance.object(kind);
            let ways = match kind.shape() {
                Shape::Common => by_every_way::<Raw>(kind, &text),
                Shape::Whole => by_every_way::<Whole>(kind, &text),
                Shape::Bounded => by_every_way::<Bounded>(kind, &text),
                Shape::Tekton => by_every_way::<TektonObject>(kind, &text),
            };
            let first = ways[0].clone().expect("an object that an API server takes");
            assert_eq!((first.version, &*first.key.name), (7, "a"), "{kind:?}, {case}");
            for way in &ways[1..] {
                assert_eq!(way.as_ref(), Some(&first), "{kind:?}, {case}: {text}");
            }
            too_deep += usize::from(serde_json::from_str::<serde_json::Value>(&text).is_err());
        }
    }
    assert!((200..500).contains(&too_deep), "some of each: {too_deep}");
}
