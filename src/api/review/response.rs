//! The way back: the bytes of an AdmissionReview.
//!
//! In: a [`Response`]. Out: JSON, built in one buffer; the patch goes out as base64.
//! Equal responses give equal bytes. Contract: `k8s.io/api/admission/v1` AdmissionResponse, and
//! `metav1.Status` inside it.

use serde::Serialize;

use super::encoded::Encoded;

/// What the API server shows of all warnings of one answer, in characters; beyond it each is cut to [`WARNING_ITEM`].
const WARNING_TOTAL: usize = 4096;
/// What the API server keeps of one warning once the total is exceeded, in characters.
const WARNING_ITEM: usize = 256;

/// `metav1.Status`, as far as the API server copies it to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status<'a> {
    /// HTTP status.
    pub code: u16,
    /// For people; begins with our reason code.
    pub message: &'a str,
}

/// One answer.
#[derive(Debug)]
pub struct Response<'a> {
    /// Version of the review that is answered.
    pub version: &'static str,
    /// As asked.
    pub uid: &'a str,
    /// Whether the object may be stored.
    pub allowed: bool,
    /// Code and sentence.
    pub status: Status<'a>,
    /// RFC 6902 operations: a list, as JSON.
    pub patch: Option<&'a Encoded>,
    /// Sentences that `kubectl` prints, most important first.
    pub warnings: &'a [String],
    /// Key without prefix and value; the API server puts the webhook's name before the key.
    pub audit: &'a [(&'a str, &'a str)],
}

/// The `metav1.StatusReason` of a code, so that `IsConflict` and its like work on our refusals.
#[must_use]
pub fn status_reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        code if code < 400 => "",
        _ => "InternalError",
    }
}

/// The bytes of an AdmissionReview with this response.
///
/// # Errors
/// When a text cannot be serialised, which does not happen.
pub fn encode(response: &Response<'_>) -> serde_json::Result<Vec<u8>> {
    let encoded = response.patch.map_or(&[][..], Encoded::bytes);
    let mut out = Vec::with_capacity(1024 + encoded.len());
    out.extend_from_slice(br#"{"kind":"AdmissionReview","apiVersion":"#);
    serde_json::to_writer(&mut out, response.version)?;
    out.extend_from_slice(br#","response":{"uid":"#);
    serde_json::to_writer(&mut out, response.uid)?;
    out.extend_from_slice(if response.allowed { br#","allowed":true"# } else { br#","allowed":false"# });
    write_status(&mut out, response)?;
    if response.patch.is_some() {
        out.extend_from_slice(br#","patchType":"JSONPatch","patch":""#);
        out.extend_from_slice(encoded);
        out.push(b'"');
    }
    write_warnings(&mut out, response.warnings)?;
    write_audit(&mut out, response.audit)?;
    out.extend_from_slice(b"}}");
    Ok(out)
}

fn write_status(out: &mut Vec<u8>, response: &Response<'_>) -> serde_json::Result<()> {
    #[derive(Serialize)]
    struct Wire<'a> {
        #[serde(skip_serializing_if = "str::is_empty")]
        status: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        message: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        reason: &'a str,
        code: u16,
    }
    let Status { code, message } = response.status;
    let status = if response.allowed { "" } else { "Failure" };
    out.extend_from_slice(br#","status":"#);
    serde_json::to_writer(out, &Wire { status, message, reason: status_reason(code), code })
}

/// Whole while all fit into what the API server passes on; else each cut by its own rule, and the rest counted.
fn write_warnings(out: &mut Vec<u8>, warnings: &[String]) -> serde_json::Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    let fits = warnings.iter().map(|text| text.chars().count()).sum::<usize>() <= WARNING_TOTAL;
    let shown = if fits { warnings.len() } else { warnings.len().min(WARNING_TOTAL / WARNING_ITEM - 1) };
    out.extend_from_slice(br#","warnings":["#);
    for (position, text) in warnings.iter().take(shown).enumerate() {
        if position > 0 {
            out.push(b',');
        }
        if fits {
            serde_json::to_writer(&mut *out, text)?;
        } else {
            serde_json::to_writer(&mut *out, &cut(text))?;
        }
    }
    if shown < warnings.len() {
        let rest = format!("{} more warnings; drawbridge explain -f FILE shows all of them", warnings.len() - shown);
        out.push(b',');
        serde_json::to_writer(&mut *out, &rest)?;
    }
    out.push(b']');
    Ok(())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(WARNING_ITEM - 1) {
        Some((end, last)) if end + last.len_utf8() < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

fn write_audit(out: &mut Vec<u8>, audit: &[(&str, &str)]) -> serde_json::Result<()> {
    if audit.is_empty() {
        return Ok(());
    }
    out.extend_from_slice(br#","auditAnnotations":{"#);
    for (position, (key, value)) in audit.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, key)?;
        out.push(b':');
        serde_json::to_writer(&mut *out, value)?;
    }
    out.push(b'}');
    Ok(())
}
