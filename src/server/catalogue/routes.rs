//! The paths of the catalogue.
//!
//! In: GET requests. Out: the catalogue as `application/json`, page by page; a card; or a status with one line of text. Promises: nothing is said of cards before
//! it is known who asks; a card that a caller may not see is answered as one that is not there; no body is read, and no answer is larger than a page or
//! a card.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::routing::get;
use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use http::header::{LINK, RETRY_AFTER, VARY, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{Request, Response, StatusCode};

use super::metrics::Asked;
use super::shelf::{Page, Query};
use super::tokens::Refusal;
use super::{Catalogue, Closed};
use crate::config::snapshot::Snapshot;
use crate::domain::keys::PATH_CATALOGUE;
use crate::domain::reason::Reason;
use crate::server::listener::quota::Charge;

/// Skills that one request may ask for.
const SKILLS: usize = 8;
/// Bytes of a query.
const QUERY: usize = 2048;

/// What is answered.
pub(super) fn router(catalogue: Catalogue) -> Router {
    let one = catalogue.clone();
    Router::new()
        .route(PATH_CATALOGUE, get(move |request| answer(catalogue.clone(), Asked::Catalogue, None, request)))
        .route(
            "/agents/{namespace}/{name}/agent-card.json",
            get(move |Path(card): Path<(String, String)>, request| {
                answer(one.clone(), Asked::Card, Some(card), request)
            }),
        )
}

async fn answer(
    catalogue: Catalogue,
    asked: Asked,
    card: Option<(String, String)>,
    request: Request<Body>,
) -> Response<Body> {
    let (head, _) = request.into_parts();
    let response = match answered(&catalogue, card, &head).await {
        Ok(response) => response,
        Err(no) => no.response(),
    };
    catalogue.0.options.metrics.answered(asked, response.status().as_u16());
    response
}

/// Why there is no answer but a status.
enum No {
    Closed(Closed),
    Refusal(Refusal),
    Query(&'static str),
    NotListed,
    NotModified,
}

async fn answered(catalogue: &Catalogue, card: Option<(String, String)>, head: &Parts) -> Result<Response<Body>, No> {
    let shared = &catalogue.0;
    if !shared.is_on() {
        return Err(No::Closed(Closed::Off));
    }
    let header = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    let charge = head.extensions.get::<Arc<Charge>>();
    let address = charge.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |charge| charge.account().address());
    let caller = shared.tokens.caller(header(AUTHORIZATION), address, shared.now()).await.map_err(No::Refusal)?;
    shared.open().map_err(No::Closed)?;
    let snapshot = shared.options.snapshots.load().ok_or(No::Closed(Closed::Unread))?;
    match card {
        Some((namespace, name)) => {
            let found = shared.shelf.read().card(&caller.namespace, &snapshot, (&namespace, &name));
            let found = found.ok_or(No::NotListed)?;
            let tag = format!("\"{}\"", found.id);
            if header(IF_NONE_MATCH).is_some_and(|known| known.split(',').any(|one| one.trim() == tag)) {
                return Err(No::NotModified);
            }
            let mut response = whole(found.media, Body::from(Bytes::from_owner(found.card.clone())));
            // An id is of hexadecimal digits.
            response.headers_mut().extend(HeaderValue::try_from(tag).ok().map(|tag| (ETAG, tag)));
            Ok(response)
        }
        None => {
            let query = query(head.uri.query().unwrap_or_default()).map_err(No::Query)?;
            Ok(listing(catalogue, &caller.namespace, &snapshot, &query))
        }
    }
}

/// One page, and where the next one is.
fn listing(catalogue: &Catalogue, own: &str, snapshot: &Snapshot, query: &Query) -> Response<Body> {
    let Page { lines, last } = catalogue.0.shelf.read().page(own, snapshot, query);
    let mut body = String::with_capacity(lines.len() + 256);
    body.push_str(r#"{"specVersion":"1.0","host":{"displayName":"Drawbridge"},"entries":["#);
    body.push_str(&lines);
    body.push(']');
    let next = last.map(|(namespace, name)| {
        let skills = query.skills.iter().map(|skill| format!("skill={}&", escaped(skill))).collect::<String>();
        let limit = query.limit.map(|limit| format!("limit={limit}&")).unwrap_or_default();
        format!("{}{PATH_CATALOGUE}?{skills}{limit}after={namespace}/{name}", catalogue.0.base)
    });
    if let Some(next) = &next {
        body.push_str(&format!(",\"next\":{}", serde_json::Value::from(next.as_str())));
    }
    body.push('}');
    let mut response = whole(super::listed::JSON, Body::from(body));
    let link = next.and_then(|next| HeaderValue::try_from(format!("<{next}>; rel=\"next\"")).ok());
    response.headers_mut().extend(link.map(|link| (LINK, link)));
    response
}

fn whole(media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    private(headers);
    response
}

/// Nobody between keeps an answer for somebody else.
fn private(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(VARY, HeaderValue::from_static("authorization"));
}

/// `skill=` (repeated: each of them), `limit=`, `after=NAMESPACE/NAME`.
pub(super) fn query(text: &str) -> Result<Query, &'static str> {
    let mut query = Query::default();
    if text.len() > QUERY {
        return Err("the query is longer than 2048 bytes; ask for fewer skills at once");
    }
    for (key, value) in
        text.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    {
        let value = unescaped(value).ok_or("the query is not percent-encoded UTF-8")?;
        match key {
            "skill" if query.skills.len() < SKILLS => query.skills.push(value),
            "skill" => return Err("at most 8 skills can be asked for at once"),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| *limit >= 1);
                query.limit =
                    Some(limit.ok_or("limit is not a number from 1 on; up to 200 lines are answered at once")?);
            }
            "after" => {
                let (namespace, name) =
                    value.split_once('/').ok_or("after is not NAMESPACE/NAME; follow next of the page before")?;
                query.after = Some((namespace.to_owned(), name.to_owned()));
            }
            // What a client or a proxy adds changes nothing.
            _ => {}
        }
    }
    Ok(query)
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit =
                    |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                digit(rest.next())? * 16 + digit(rest.next())?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

impl No {
    fn response(self) -> Response<Body> {
        let (status, reason, sentence) = match &self {
            No::Closed(Closed::Off) => (StatusCode::NOT_FOUND, Reason::CardNotListed, Closed::Off.to_string()),
            No::Closed(closed) => (StatusCode::SERVICE_UNAVAILABLE, Reason::NotReady, closed.to_string()),
            No::Refusal(Refusal::Stranger(stranger)) => {
                let status = match stranger {
                    super::caller::Stranger::NoAccount => StatusCode::FORBIDDEN,
                    _ => StatusCode::UNAUTHORIZED,
                };
                (status, Reason::CallerRefused, stranger.to_string())
            }
            No::Refusal(refusal @ Refusal::TooOften) => {
                (StatusCode::TOO_MANY_REQUESTS, Reason::Overloaded, refusal.to_string())
            }
            No::Refusal(refusal @ Refusal::Busy) => {
                (StatusCode::SERVICE_UNAVAILABLE, Reason::Overloaded, refusal.to_string())
            }
            No::Refusal(refusal) => (StatusCode::SERVICE_UNAVAILABLE, Reason::NotReady, refusal.to_string()),
            No::Query(sentence) => (StatusCode::BAD_REQUEST, Reason::BadQuery, (*sentence).to_owned()),
            No::NotListed => {
                let sentence = "no verified card of that name is in a namespace that you see: your own, and those labelled \
                                agent.kagenti.dev/catalogue=shared";
                (StatusCode::NOT_FOUND, Reason::CardNotListed, sentence.to_owned())
            }
            No::NotModified => {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                private(response.headers_mut());
                return response;
            }
        };
        let mut response = whole("text/plain; charset=utf-8", Body::from(format!("{}: {sentence}\n", reason.code())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
