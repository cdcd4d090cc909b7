//! The envelope as the API server writes it, in one pass that does not look into the objects.
//!
//! In: the body. Out: the request, or `None` for anything unusual: then [`super::parse()`] reads it again with serde,
//! whose rules and messages are the contract. Promise: what is read here, serde reads alike.

use std::borrow::Cow;

use super::parse::{KIND, echoes};
use super::{API_VERSION, GroupVersionKind, Operation, POD_UNREAD, Phase, PodTree, Raw, Request};
use crate::api::json::{Reader, Tree};

pub(super) fn parse(body: &[u8], phase: Phase) -> Option<Request<'_>> {
    let mut reader = Reader::new(std::str::from_utf8(body).ok()?);
    let (mut kind, mut version, mut request) = (None, None, None);
    members(&mut reader, |reader, key| match key {
        "kind" => once(&mut kind, reader.string()?),
        "apiVersion" => once(&mut version, reader.string()?),
        "request" => once(&mut request, of(reader, phase)?),
        _ => reader.skip().map(drop),
    })?;
    (reader.ended() && kind == Some(KIND) && version == Some(API_VERSION)).then_some(request).flatten()
}

/// The uid of a review, whatever else is in it, as long as its brackets and its strings outside of it are sound.
pub(super) fn uid(body: &[u8]) -> Option<&str> {
    let mut reader = Reader::new(std::str::from_utf8(body).ok()?);
    let (mut uid, mut request) = (None, None);
    members(&mut reader, |reader, key| match key {
        "request" => {
            once(&mut request, ())?;
            members(reader, |reader, key| match key {
                "uid" => once(&mut uid, reader.string()?),
                _ => reader.skip().map(drop),
            })
        }
        _ => reader.skip().map(drop),
    })?;
    uid.filter(|uid| reader.ended() && echoes(uid))
}

fn of<'a>(reader: &mut Reader<'a>, phase: Phase) -> Option<Request<'a>> {
    let (mut uid, mut kind, mut operation) = (None, None, None);
    let (mut sub_resource, mut name, mut namespace, mut dry_run) = (None, None, None, None);
    let (mut object, mut old_object) = (None, None);
    members(reader, |reader, key| match key {
        "uid" => once(&mut uid, reader.string()?),
        "kind" => once(&mut kind, group_version_kind(reader)?),
        "operation" => once(&mut operation, operation_named(reader.string()?)?),
        "subResource" => once(&mut sub_resource, optional(reader, Reader::string)?),
        "name" => once(&mut name, optional(reader, Reader::string)?),
        "namespace" => once(&mut namespace, optional(reader, Reader::string)?),
        "dryRun" => once(&mut dry_run, optional(reader, switch)?),
        "object" => {
            let is_pod =
                kind.as_ref().is_some_and(|kind: &GroupVersionKind<'_>| kind.kind == "Pod" && kind.group.is_empty());
            once(&mut object, optional(reader, |reader| raw(reader, is_pod && phase == Phase::Mutate))?)
        }
        "oldObject" => once(&mut old_object, optional(reader, |reader| raw(reader, false))?),
        _ => reader.skip().map(drop),
    })?;
    let text = |seen: Option<Option<&'a str>>| seen.flatten().map(Cow::Borrowed);
    Some(Request {
        phase,
        uid: uid.filter(|uid| echoes(uid)).map(Cow::Borrowed)?,
        kind: kind.unwrap_or_default(),
        sub_resource: text(sub_resource),
        name: text(name),
        namespace: text(namespace),
        operation: operation?,
        dry_run: dry_run.flatten(),
        object: object.flatten(),
        old_object: old_object.flatten(),
    })
}

/// Reads an object; `member` takes each value.
fn members<'a>(reader: &mut Reader<'a>, mut member: impl FnMut(&mut Reader<'a>, &'a str) -> Option<()>) -> Option<()> {
    reader.take(b'{')?;
    if reader.empty(b'}')? {
        return Some(());
    }
    loop {
        let key = reader.key()?;
        member(reader, key)?;
        if !reader.more(b'}')? {
            return Some(());
        }
    }
}

/// A member that stands twice is a fault, for serde to name.
fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

/// `null`, or what `read` reads.
fn optional<'a, T>(reader: &mut Reader<'a>, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Option<Option<T>> {
    if reader.token()? == b'n' { (reader.skip()? == "null").then_some(None) } else { read(reader).map(Some) }
}

/// An object; the tree of a Pod is made in the same pass.
fn raw<'a>(reader: &mut Reader<'a>, is_pod: bool) -> Option<Raw<'a>> {
    if is_pod && let Some(Tree { value, text, kept }) = reader.tree(POD_UNREAD) {
        return Some(Raw { text, pod: Some(PodTree { tree: value, managed_fields: kept }) });
    }
    reader.skip().map(|text| Raw { text, pod: None })
}

fn switch(reader: &mut Reader<'_>) -> Option<bool> {
    match reader.skip()? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn operation_named(name: &str) -> Option<Operation> {
    Some(match name {
        "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        "DELETE" => Operation::Delete,
        "CONNECT" => Operation::Connect,
        _ => return None,
    })
}

fn group_version_kind<'a>(reader: &mut Reader<'a>) -> Option<GroupVersionKind<'a>> {
    let (mut group, mut version, mut kind) = (None, None, None);
    members(reader, |reader, key| match key {
        "group" => once(&mut group, reader.string()?),
        "version" => once(&mut version, reader.string()?),
        "kind" => once(&mut kind, reader.string()?),
        _ => reader.skip().map(drop),
    })?;
    let text = |seen: Option<&'a str>| Cow::Borrowed(seen.unwrap_or(""));
    Some(GroupVersionKind { group: text(group), version: text(version), kind: text(kind) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1",
        "kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},
        "name":"p","namespace":"team1","operation":"CREATE","userInfo":{"username":"x","groups":["a","b"]},
        "object":{"b":"}\"",  "a":[1,-2.5e3,null,true]},"oldObject":null,"dryRun":false,"options":{}}}"#;

    /// Found by the fuzz target: such a review is answered, and so its uid must be known to whoever answers in a hurry.
    #[test]
    fn a_uid_behind_an_object_that_is_no_json_is_found() {
        let broken = BODY.replace(r#""b":"}\"","#, r#""b","c":1,"#).replace(r#""uid":"u-1","#, "");
        let broken = broken.replace(r#""options":{}"#, r#""options":{},"uid":"u-1""#);
        assert!(serde_json::from_str::<serde_json::Value>(&broken).is_err());
        assert_eq!(parse(broken.as_bytes(), Phase::Mutate).expect("an ordinary envelope").uid, "u-1");
        assert_eq!(super::super::uid(broken.as_bytes()).as_deref(), Some("u-1"));
        let operation = broken.replace("CREATE", "INVENT");
        assert_eq!(super::super::parse(operation.as_bytes(), Phase::Mutate).unwrap_err().uid.as_deref(), Some("u-1"));
        for unsound in [&broken[..broken.len() - 1], &broken.replace(r#""uid":"u-1""#, r#""uid":"u-1","uid":"u-2""#)] {
            assert_eq!(uid(unsound.as_bytes()), None);
        }
    }

    #[test]
    fn what_is_read_here_serde_reads_alike() {
        let ours = parse(BODY.as_bytes(), Phase::Mutate).expect("an ordinary review");
        let whole: serde_json::Value = serde_json::from_str(BODY).unwrap();
        let text = whole["request"].to_string();
        let theirs: Request<'_> = serde_json::from_str(&text).unwrap();
        assert_eq!((&ours.uid, &ours.kind, &ours.name), (&theirs.uid, &theirs.kind, &theirs.name));
        assert_eq!(
            (&ours.namespace, ours.operation, ours.dry_run),
            (&theirs.namespace, theirs.operation, theirs.dry_run)
        );
        assert_eq!((ours.old_object, theirs.old_object), (None, None));
        let object: serde_json::Value = serde_json::from_str(ours.object.as_ref().unwrap().get()).unwrap();
        assert_eq!(object, whole["request"]["object"]);
        assert_eq!(ours.object.unwrap().pod().map(|pod| &pod.tree), Some(&object), "it holds nothing that is left out");
        let validated = parse(BODY.as_bytes(), Phase::Validate).expect("an ordinary review");
        assert_eq!(validated.object.unwrap().pod(), None);
    }

    #[test]
    fn the_unusual_is_left_to_serde() {
        let whole = parse(BODY.as_bytes(), Phase::Mutate);
        assert!(whole.is_some());
        for end in 0..BODY.len() {
            assert!(parse(&BODY.as_bytes()[..end], Phase::Mutate).is_none(), "cut at {end}");
        }
        for (from, to) in [
            ("\"name\":\"p\"", "\"name\":\"p\\u0041\""),
            ("\"name\":\"p\"", "\"name\":1"),
            ("\"name\":\"p\"", "\"name\":\"p\",\"name\":\"q\""),
            ("CREATE", "MAKE"),
            ("admission.k8s.io/v1", "admission.k8s.io/v1beta1"),
            ("\"dryRun\":false", "\"dryRun\":0"),
            ("\"uid\":\"u-1\",", ""),
            ("\"uid\":\"u-1\"", "\"uid\":\"\""),
            ("}}}", "}}} x"),
        ] {
            let changed = BODY.replace(from, to);
            let changed = if from == "}}}" { format!("{BODY}x") } else { changed };
            assert!(parse(changed.as_bytes(), Phase::Mutate).is_none(), "{to}");
        }
    }
}
