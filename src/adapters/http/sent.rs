//! What is sent, and what is kept of an answer; data.

use std::net::SocketAddr;

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::{Answer, Get};

/// How something is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Without a body.
    Get,
    /// With one.
    Post,
    /// Without a body.
    Delete,
}

/// What is sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// How.
    pub method: Method,
    /// Whom to connect to.
    pub address: SocketAddr,
    /// The header Host.
    pub host: &'a str,
    /// The path, from its slash.
    pub path: &'a str,
    /// The header Accept.
    pub accept: &'a str,
    /// Headers besides: names in small letters, values that a header can hold.
    pub headers: &'a [(&'static str, &'a str)],
    /// The body; JSON where there is one.
    pub body: &'a str,
    /// Whether all that is waited for has come, though the connection is open: of a body that is a stream, asked at each part.
    pub whole: Option<fn(&[u8]) -> bool>,
}

impl<'a> Sent<'a> {
    /// A plain question.
    pub(super) const fn of(get: Get<'a>) -> Self {
        Self {
            method: Method::Get,
            address: get.address,
            host: get.host,
            path: get.path,
            accept: "application/json",
            headers: &[],
            body: "",
            whole: None,
        }
    }
}

/// What was answered.
#[derive(Debug)]
pub struct Answered {
    /// The headers, at most [`super::HEAD`] bytes of them.
    pub headers: HeaderMap,
    /// The body: empty where the status was 202 or 204.
    pub answer: Answer,
}

impl Answered {
    /// The body is a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        is_stream(&self.headers)
    }

    /// A header, where it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// The body is a stream of events, which may stay open for as long as its server likes.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
}
