//! From the bytes of a request to a borrowed [`Request`], or to a fault that can be answered.
//!
//! In: the whole body. Out: the request, or [`BadReview`] with the uid when it was readable before the fault.
//! Promises: no panic, no recursion and linear time on any bytes; fields we do not know are skipped; a field we read
//! that stands twice is a fault, because two readers could disagree on which one counts. Messages never hold more than
//! [`SHOWN`] bytes of the body, and nothing of the object.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{API_VERSION, Phase, Request, quick};

/// Longest piece of a body that is repeated in a message, in bytes.
const SHOWN: usize = 256;
/// Longest uid that is echoed, in bytes; the API server sends 36.
pub(super) const UID_LIMIT: usize = 128;
/// The version the API server spoke before 1.22; refused in its own words.
const API_VERSION_BEFORE: &str = "admission.k8s.io/v1beta1";
/// The only kind.
pub(super) const KIND: &str = "AdmissionReview";

/// What is wrong with a body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Nothing was sent.
    #[error("the body is empty, not an AdmissionReview")]
    Empty,
    /// Not JSON, cut short, or a field of the envelope has the wrong type or stands twice.
    #[error("the body is not a readable AdmissionReview: {0}")]
    Unreadable(String),
    /// `kind` is missing or another one.
    #[error("kind is {0}, not {KIND}")]
    Kind(String),
    /// `apiVersion` is missing or not ours.
    #[error("apiVersion is {0}; only {API_VERSION} is answered")]
    Version(String),
    /// There is no `request`.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// The uid is empty or absurdly long.
    #[error("request.uid is empty or longer than {UID_LIMIT} bytes")]
    Uid,
}

/// A body that cannot be decided on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct BadReview {
    /// The uid, if it was read before the fault: then an AdmissionReview can be answered.
    pub uid: Option<String>,
    /// The version to answer in: the one asked in where the answer's shape is the same.
    pub version: &'static str,
    /// What is wrong.
    pub fault: Fault,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "super::text")]
    api_version: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "super::text")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
}

/// Reads one AdmissionReview that was sent to a webhook of `phase`.
///
/// # Errors
/// [`BadReview`], with the uid when it stood before the fault, or when the brackets are sound around it.
pub fn parse(body: &[u8], phase: Phase) -> Result<Request<'_>, BadReview> {
    if body.is_empty() {
        return Err(BadReview { uid: None, version: API_VERSION, fault: Fault::Empty });
    }
    if let Some(request) = quick::parse(body, phase) {
        return Ok(request);
    }
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|error| {
        let seen = look(body);
        let fault = match seen.version {
            Some(other) => Fault::Version(other.to_owned()),
            None => Fault::Unreadable(shown(&error.to_string())),
        };
        let uid = quick::uid(body).map(str::to_owned).or(seen.uid);
        BadReview { uid, version: seen.version.unwrap_or(API_VERSION), fault }
    })?;
    let named = |text: &Option<Cow<'_, str>>| text.as_deref().map_or_else(|| "missing".to_owned(), shown);
    let version = match envelope.api_version.as_deref() {
        Some(API_VERSION_BEFORE) => API_VERSION_BEFORE,
        _ => API_VERSION,
    };
    let fault = if envelope.kind.as_deref() != Some(KIND) {
        Some(Fault::Kind(named(&envelope.kind)))
    } else if envelope.api_version.as_deref() != Some(API_VERSION) {
        Some(Fault::Version(named(&envelope.api_version)))
    } else {
        None
    };
    let uid = envelope.request.as_ref().map(|request| request.uid.as_ref()).filter(|uid| echoes(uid));
    if let Some(fault) = fault {
        return Err(BadReview { uid: uid.map(str::to_owned), version, fault });
    }
    if uid.is_none() {
        let fault = if envelope.request.is_some() { Fault::Uid } else { Fault::NoRequest };
        return Err(BadReview { uid: None, version, fault });
    }
    match envelope.request {
        Some(mut request) => {
            request.phase = phase;
            Ok(request)
        }
        None => Err(BadReview { uid: None, version, fault: Fault::NoRequest }),
    }
}

/// The uid of a review, also of one whose objects are unreadable, or that is unreadable altogether from some later byte on.
#[must_use]
pub fn uid(body: &[u8]) -> Option<String> {
    quick::uid(body).map(str::to_owned).or_else(|| look(body).uid)
}

pub(super) fn echoes(uid: &str) -> bool {
    !uid.is_empty() && uid.len() <= UID_LIMIT
}

/// `text`, cut to [`SHOWN`] bytes at a character.
fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

/// What could be read of a review that does not parse.
#[derive(Default)]
struct Seen {
    uid: Option<String>,
    /// The older version, when it was asked in.
    version: Option<&'static str>,
}

/// Reads as far as the JSON is valid, and keeps what was found until then.
fn look(body: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let mut json = serde_json::Deserializer::from_slice(body);
    // The error is the one already reported; only what was seen before it matters.
    drop(Glance { seen: &mut seen, inside: false }.deserialize(&mut json));
    seen
}

/// Visits the envelope (`inside` = the request) and notes what it passes.
struct Glance<'s> {
    seen: &'s mut Seen,
    inside: bool,
}

impl<'de> DeserializeSeed<'de> for Glance<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Glance<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an AdmissionReview")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match (self.inside, key.as_ref()) {
                (false, "request") => map.next_value_seed(Glance { seen: self.seen, inside: true })?,
                (false, "apiVersion") => {
                    // Raw: one of another type must not hide a uid that stands behind it.
                    let raw = map.next_value::<&'de RawValue>()?;
                    if serde_json::from_str::<Cow<'_, str>>(raw.get()).is_ok_and(|text| text == API_VERSION_BEFORE) {
                        self.seen.version = Some(API_VERSION_BEFORE);
                    }
                }
                (true, "uid") if self.seen.uid.is_none() => {
                    let uid = map.next_value::<Cow<'de, str>>()?;
                    if !echoes(&uid) {
                        return Err(de::Error::custom("uid"));
                    }
                    self.seen.uid = Some(uid.into_owned());
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}
