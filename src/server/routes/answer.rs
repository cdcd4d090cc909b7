//! From a verdict to the bytes of an answer.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use super::patch;
use crate::admission::verdict::{Outcome, Verdict};
use crate::api::review::{self, Status};
use crate::domain::reason::Reason;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What goes out.
#[derive(Debug)]
pub(super) struct Answer {
    /// Status of the envelope; that of the decision is inside.
    pub(super) http: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Answer {
    /// A status with one line of text, for requests whose uid is unknown.
    pub(super) fn plain(http: StatusCode, reason: Reason, sentence: &str) -> Self {
        Self { http, content_type: TEXT, body: format!("{}: {sentence}\n", reason.code()).into_bytes() }
    }

    /// An AdmissionReview of `version` with `verdict`.
    ///
    /// # Errors
    /// When the patch cannot be serialised.
    pub(super) fn review(version: &'static str, uid: &str, verdict: &Verdict) -> serde_json::Result<Self> {
        let code = verdict.reason.code();
        let refusal;
        let (status, patch) = match &verdict.outcome {
            Outcome::Allow => (Status { code: 200, message: code }, None),
            Outcome::Patch(operations) => (Status { code: 200, message: code }, Some(patch::encoded(operations)?)),
            Outcome::Deny(denial) => {
                refusal = denial.to_string();
                (Status { code: denial.code, message: &refusal }, None)
            }
        };
        let warnings: Vec<String> = verdict.warnings.iter().map(|warning| one_line(&warning.to_string())).collect();
        let audit: Vec<(&str, &str)> = verdict.audit.iter().map(|(key, value)| (*key, value.as_str())).collect();
        let response = review::Response {
            version,
            uid,
            allowed: verdict.allowed(),
            status,
            patch: patch.as_ref(),
            warnings: &warnings,
            audit: &audit,
        };
        Ok(Self { http: StatusCode::OK, content_type: JSON, body: review::encode(&response)? })
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.http;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        response
    }
}

/// The API server drops warnings with control characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
