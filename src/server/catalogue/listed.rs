//! One AgentCard as the catalogue keeps it; pure.
//!
//! In: the object as the API server has it. Out: its line in the catalogue and the card to be answered, both written ahead, or nothing. Promises: what
//! counts as verified is what counts for the labels on Pods and for NetworkPolicies, by the same function; a card whose words no signature covers is
//! answered only where the agent has proved over TLS who it is; a line is bounded, however long the texts of a card are; whether a card has a skill
//! costs a few comparisons, however many it has.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::domain::printable::printable;
use crate::store::{Trust, vouched};

/// Bytes of a name, a version, an id or a tag of a line.
const SHORT: usize = 128;
/// Bytes of a description of a line.
const LONG: usize = 512;
/// Bytes of an address or identity; longer ones are left out, since half of one says something else.
const ADDRESS: usize = 512;
/// Tags of a line, and bytes of all of them.
const TAGS: (usize, usize) = (64, 1024);
/// Ids and tags by which a card is found, and bytes of all of them.
const WORDS: (usize, usize) = (512, 8 * 1024);

/// The media type of a card of A2A.
pub(super) const A2A: &str = "application/a2a-agent-card+json";
/// The media type of other cards.
pub(super) const JSON: &str = "application/json";

/// Skills that are looked for, read once for all cards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted(Box<[String]>);

impl Wanted {
    /// Each of these.
    pub(super) fn each_of(skills: &[String]) -> Self {
        let mut wanted: Vec<_> = skills.iter().map(|skill| skill.to_lowercase()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        Self(wanted.into())
    }
}

/// A verified card.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listed {
    /// The workload that is verified.
    pub(super) workload: Box<str>,
    /// Its line in the catalogue, in JSON.
    pub(super) line: Box<str>,
    /// Ids and tags of its skills, in small letters, in order.
    words: Box<[Box<str>]>,
    /// What the answer with the card is tagged by.
    pub(super) id: Box<str>,
    /// Its media type.
    pub(super) media: &'static str,
    /// The card.
    pub(super) card: Arc<[u8]>,
}

impl Listed {
    /// The AgentCard `object`, where it is verified; cards are answered below `base`.
    pub(super) fn of(object: &Value, base: &str) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (status, card) = (object.get("status")?, object.pointer("/status/card")?);
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        let Trust::Account(account) = vouched(status, generation) else { return None };
        let attested = text("/status/attestedAgentSpiffeId");
        let covered = status.get("cardCovered") == Some(&Value::Bool(true)) || attested.is_some();
        let leaves = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
        if !covered || leaves || text("/status/targetUID").is_none() || is_unbound(status) {
            return None;
        }
        let (namespace, name) = (text("/metadata/namespace")?, text("/metadata/name")?);
        let workload = text("/spec/targetRef/name")?;
        let media = if text("/status/protocol") == Some("a2a") { A2A } else { JSON };
        let id = text("/status/cardId").unwrap_or_default();
        let url = format!("{base}/agents/{namespace}/{name}/agent-card.json");
        let address = |found: Option<&str>| {
            found.filter(|text| text.len() <= ADDRESS).map(|text| json!(printable(text, ADDRESS)))
        };
        let mut line = Map::new();
        let mut set = |member: &str, value: Option<Value>| {
            if let Some(value) = value {
                line.insert(member.to_owned(), value);
            }
        };
        let short = |text: &str| json!(printable(text, SHORT));
        set("identifier", Some(json!(format!("urn:x-agentcard:{namespace}:{name}"))));
        set("displayName", Some(short(text("/status/card/name").unwrap_or(workload))));
        set("description", text("/status/card/description").map(|text| json!(printable(text, LONG))));
        set("type", Some(json!(media)));
        set("mediaType", Some(json!(media)));
        set("url", Some(json!(url)));
        set("version", text("/status/card/version").map(short));
        set("updatedAt", text("/status/lastSyncTime").map(short));
        let tags =
            bounded(skills(card).filter_map(|skill| skill.get("id")?.as_str()), TAGS, |tag| printable(tag, SHORT));
        set("tags", Some(json!(tags)).filter(|_| !tags.is_empty()));
        let mut more = json!({"namespace": namespace, "agentCard": name, "serviceAccount": short(account)});
        for (member, value) in [
            ("identity", address(attested.or_else(|| text("/status/signatureSpiffeId")))),
            ("endpoint", address(text("/status/card/url"))),
        ] {
            value.into_iter().for_each(|value| more[member] = value);
        }
        set("metadata", Some(more));
        let words = skills(card).flat_map(|skill| {
            let tags = skill.get("tags").and_then(Value::as_array).into_iter().flatten();
            skill.get("id").into_iter().chain(tags).filter_map(Value::as_str)
        });
        let mut words: Vec<Box<str>> = bounded(words, WORDS, str::to_lowercase).into_iter().map(Into::into).collect();
        words.sort_unstable();
        Some(Self {
            workload: workload.into(),
            line: Value::Object(line).to_string().into(),
            words: words.into(),
            id: id.into(),
            media,
            card: card.to_string().into_bytes().into(),
        })
    }

    /// Whether the agent says that it has each of these skills, by an id or a tag.
    pub(super) fn has(&self, wanted: &Wanted) -> bool {
        wanted.0.iter().all(|skill| self.words.binary_search_by(|word| (**word).cmp(skill.as_str())).is_ok())
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let words = self.words.iter().map(|word| size_of::<Box<str>>() + word.len().max(16)).sum::<usize>();
        size_of::<Self>() + self.card.len() + self.line.len() + self.id.len() + self.workload.len() + words
    }
}

/// It was asked whether the signer is whom the workload runs as, and that is not so.
fn is_unbound(status: &Value) -> bool {
    let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let mut bound = conditions.filter(|one| one.get("type").is_some_and(|kind| kind == "Bound"));
    // Who proves over TLS who it is has no need of a signature.
    status.get("attestedAgentSpiffeId").is_none()
        && bound.any(|one| one.get("status").is_some_and(|status| status != "True"))
}

fn skills(card: &Value) -> impl Iterator<Item = &Value> {
    card.get("skills").and_then(Value::as_array).into_iter().flatten()
}

/// The first of them, each once.
fn bounded<'t>(
    texts: impl Iterator<Item = &'t str>,
    (count, bytes): (usize, usize),
    write: impl Fn(&str) -> String,
) -> Vec<String> {
    let (mut found, mut held): (Vec<String>, _) = (Vec::new(), 0);
    let mut known = HashSet::new();
    for text in texts.filter(|text| text.len() <= SHORT) {
        let text = write(text);
        if found.len() >= count || held + text.len() > bytes {
            break;
        }
        if !text.is_empty() && known.insert(text.clone()) {
            held += text.len();
            found.push(text);
        }
    }
    found
}
