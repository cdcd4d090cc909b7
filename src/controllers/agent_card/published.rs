//! What of an agent's document the cluster shows: `status.card` and what follows from it; pure.
//!
//! In: the bytes that an agent served, and where it is reached inside the cluster. Out: a card of at most 64 KiB whose `url` is the one inside the
//! cluster, its id, the ids of its skills, its endpoints. Promises: the same document has the same result, byte for byte; signatures are no part
//! of it, so that signing the same card again changes nothing; no text moves a cursor or hides.

use serde_json::{Map, Value, json};

use crate::api::agent_kagenti_dev::agent_card::{CARD_ITEMS, WrongType, fits, project};
use crate::crypto::{Card, CardFault, JsonFault, jcs};
use crate::domain::digest;
use crate::domain::printable::printable;

/// Bytes of the ids of all skills, joined.
const SKILLS: usize = 256;
/// Bytes of one text of a card that is too large to be shown whole.
const SHORT: usize = 256;
/// Bytes of all ids of such a card.
const IDS: usize = 20 << 10;
/// Endpoints that are shown.
const ENDPOINTS: usize = 16;
/// Bytes of the path of one.
const PATH: usize = 1024;
/// Bytes of the name of a transport.
const TRANSPORT: usize = 63;
/// What is spoken at `url` where a card does not say.
const JSON_RPC: &str = "JSONRPC";

/// What is shown of a card.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// `status.card`.
    pub card: Value,
    /// SHA-256 of its canonical form, in hexadecimal digits.
    pub id: String,
    /// The ids of its skills, in order, joined by commas.
    pub skills: String,
    /// The url that the agent itself names.
    pub served_url: Option<String>,
    /// Where it is reached inside the cluster, per interface: transport and url.
    pub endpoints: Vec<(String, String)>,
    /// It is too large to be shown whole.
    pub truncated: bool,
    /// A host in it that is neither the agent's Service nor the Pod itself.
    pub foreign: Option<String>,
}

/// Why a document is no card.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCard {
    /// It cannot be read as JSON, or not without doubt.
    #[error(transparent)]
    Unreadable(#[from] CardFault),
    /// A member has another type.
    #[error(transparent)]
    Member(#[from] WrongType),
    /// What is shown has no canonical form.
    #[error("what would be shown of the card cannot be written: {0}")]
    Unwritable(JsonFault),
}

/// What is shown of the document in `bytes`, of an agent that is reached over plain HTTP at `authority` (`service.namespace.svc.domain:port`).
pub fn publish(bytes: &[u8], authority: &str) -> Result<Published, NoCard> {
    publish_at(bytes, ("http", authority))
}

/// The same of an agent that is reached by that scheme at that authority: a port for TLS answers nobody who asks it by `http`.
pub fn publish_at(bytes: &[u8], (scheme, authority): (&str, &str)) -> Result<Published, NoCard> {
    // Strictly first: what this takes, a lenient reader reads in one way only.
    Card::read(bytes)?;
    // Of what was read strictly it refuses nothing but the last level.
    let document: Value = serde_json::from_slice(bytes).map_err(|_| NoCard::Unreadable(CardFault::TooDeep))?;
    let whole = project(&document)?;
    let interfaces = interfaces(&whole);
    let base = format!("{scheme}://{authority}");
    let endpoints = endpoints(&interfaces, &base);
    let foreign = interfaces.iter().find_map(|(_, url)| foreign_host(url, authority));
    let served_url = whole.get("url").and_then(Value::as_str).map(|url| printable(url, 2 * PATH));
    let skills: Vec<&str> = ids(&whole).collect();
    let skills = printable(&skills.join(","), SKILLS);
    let url = json!(base);
    let mut card = whole;
    card["url"] = url.clone();
    let truncated = !fits(&card);
    if truncated {
        card = shortened(&card, url);
    }
    let canonical = jcs(card.to_string().as_bytes()).map_err(NoCard::Unwritable)?;
    Ok(Published { id: digest::of_bytes(&canonical), card, skills, served_url, endpoints, truncated, foreign })
}

fn text<'v>(value: &'v Value, member: &str) -> Option<&'v str> {
    value.get(member).and_then(Value::as_str)
}

fn list<'v>(value: &'v Value, member: &str) -> impl Iterator<Item = &'v Value> {
    value.get(member).and_then(Value::as_array).into_iter().flatten()
}

fn ids(card: &Value) -> impl Iterator<Item = &str> {
    list(card, "skills").filter_map(|skill| text(skill, "id"))
}

/// Transport and url of every interface, in the order of the card, 1.x first.
fn interfaces(card: &Value) -> Vec<(&str, &str)> {
    let new =
        list(card, "supportedInterfaces").filter_map(|one| Some((text(one, "protocolBinding"), text(one, "url")?)));
    let main = text(card, "url").map(|url| (text(card, "preferredTransport"), url));
    let more = list(card, "additionalInterfaces").filter_map(|one| Some((text(one, "transport"), text(one, "url")?)));
    new.chain(main).chain(more).map(|(transport, url)| (transport.unwrap_or(JSON_RPC), url)).collect()
}

fn endpoints(interfaces: &[(&str, &str)], base: &str) -> Vec<(String, String)> {
    let mut endpoints = Vec::new();
    for (transport, url) in interfaces {
        let endpoint = (printable(transport, TRANSPORT), format!("{base}{}", printable(split(url).1, PATH)));
        if endpoints.len() < ENDPOINTS && !endpoints.contains(&endpoint) {
            endpoints.push(endpoint);
        }
    }
    endpoints
}

/// Authority and the rest of a url; both may be empty.
fn split(url: &str) -> (&str, &str) {
    let Some((_, behind)) = url.split_once("://") else {
        return if url.starts_with('/') { ("", url) } else { (url, "") };
    };
    let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
    let (authority, rest) = behind.split_at(end);
    (authority, if rest == "/" || !rest.starts_with('/') { "" } else { rest })
}

/// The host that a url names, unless that is the Service, the Pod itself, or nobody.
fn foreign_host(url: &str, authority: &str) -> Option<String> {
    const ITSELF: [&str; 5] = ["", "localhost", "0.0.0.0", "[::]", "[::1]"];
    let named = split(url).0;
    let host = named.rsplit_once('@').map_or(named, |(_, host)| host);
    let shown = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    // A name is the same in capitals, and with the dot that ends it.
    let lowered = shown.to_ascii_lowercase();
    let host = lowered.strip_suffix('.').unwrap_or(&lowered);
    let service = authority.rsplit_once(':').map_or(authority, |(service, _)| service);
    let is_service = service == host || service.strip_prefix(host).is_some_and(|rest| rest.starts_with('.'));
    let is_own = is_service || ITSELF.contains(&host) || host.starts_with("127.");
    (!is_own).then(|| printable(shown, SHORT))
}

/// Name, version and the ids of the skills.
fn shortened(card: &Value, url: Value) -> Value {
    let mut kept = Map::new();
    for member in ["name", "version"] {
        if let Some(text) = text(card, member) {
            kept.insert(member.to_owned(), printable(text, SHORT).into());
        }
    }
    let mut room = IDS;
    let ids = ids(card).take(CARD_ITEMS).map(|id| printable(id, SHORT));
    let fitting = ids.take_while(|id| {
        let left = room.checked_sub(id.len());
        room = left.unwrap_or_default();
        left.is_some()
    });
    let skills: Vec<Value> = fitting.map(|id| json!({"id": id})).collect();
    if !skills.is_empty() {
        kept.insert("skills".to_owned(), skills.into());
    }
    kept.insert("url".to_owned(), url);
    Value::Object(kept)
}
