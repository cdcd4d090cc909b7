//! One answer, from whichever road it came: `evaluate`, the router, or the API server.

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use drawbridge::admission::evaluate;
use drawbridge::admission::verdict::Outcome;
use drawbridge::config::snapshot::Snapshot;

use super::Case;

/// Key of the audit annotation that says what becomes of a workload's Pods.
const DECISION: &str = "decision";

/// What came out, in words that all roads share.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Let in.
    pub allowed: bool,
    /// Reason code.
    pub reason: String,
    /// Reason code and text of each warning.
    pub warnings: Vec<(String, String)>,
    /// What the audit log gets of the decision about a workload; empty when nothing.
    pub decision: String,
    /// HTTP status and full text of a refusal.
    pub denial: Option<(u16, String)>,
    /// Operations on the object as sent; `None` when there are none.
    pub patch: Option<json_patch::Patch>,
}

impl Answer {
    /// The object after the patch.
    ///
    /// # Errors
    /// A patch that does not apply.
    pub fn applied(&self, object: &Value) -> anyhow::Result<Value> {
        let mut result = object.clone();
        if let Some(patch) = &self.patch {
            json_patch::patch(&mut result, patch).context("the patch does not apply")?;
        }
        Ok(result)
    }
}

/// Asks [`evaluate`] about a review's bytes.
///
/// # Errors
/// Bytes that are no review; the product's words.
pub fn ask(case: &Case, review: &str, snapshot: &Snapshot) -> anyhow::Result<Answer> {
    let request = drawbridge::api::review::parse(review.as_bytes(), case.fixture.phase())?;
    let verdict = evaluate(&request, snapshot);
    let (denial, patch) = match &verdict.outcome {
        Outcome::Allow => (None, None),
        Outcome::Patch(_) => (None, Some(json_patch::Patch(verdict.operations()))),
        Outcome::Deny(denial) => (Some((denial.code, denial.to_string())), None),
    };
    let warnings = verdict.warnings.iter().map(|warning| (warning.reason.code().to_owned(), warning.text.clone()));
    Ok(Answer {
        allowed: verdict.allowed(),
        reason: verdict.reason.code().to_owned(),
        warnings: warnings.collect(),
        decision: verdict
            .audit
            .iter()
            .find(|(key, _)| *key == DECISION)
            .map(|(_, text)| text.clone())
            .unwrap_or_default(),
        denial,
        patch,
    })
}

/// Reads the AdmissionReview that answers the review `uid`.
///
/// # Errors
/// Bytes that the API server would not take for an answer to that review.
pub fn from_wire(bytes: &[u8], uid: &str) -> anyhow::Result<Answer> {
    let review: Value = serde_json::from_slice(bytes).context("the answer is not JSON")?;
    if review["apiVersion"] != "admission.k8s.io/v1" || review["kind"] != "AdmissionReview" {
        bail!("the answer is no AdmissionReview of v1: {review}");
    }
    let response = &review["response"];
    if response["uid"] != uid {
        bail!("the answer is for {}, asked was {uid}", response["uid"]);
    }
    let allowed = response["allowed"].as_bool().context("allowed is missing")?;
    let message = response["status"]["message"].as_str().context("status.message is missing")?;
    let code = response["status"]["code"].as_u64().context("status.code is missing")?;
    let patch = match (response.get("patchType"), response.get("patch")) {
        (None, None) => None,
        (Some(kind), Some(patch)) if kind == "JSONPatch" => {
            let bytes = STANDARD.decode(patch.as_str().context("patch is not text")?)?;
            Some(serde_json::from_slice(&bytes).context("the patch is not a list of operations")?)
        }
        _ => bail!("patch and patchType do not belong together: {response}"),
    };
    let sentences = response["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Ok(Answer {
        allowed,
        reason: message.split(':').next().unwrap_or_default().to_owned(),
        warnings: sentences.map(split_code).collect(),
        decision: response["auditAnnotations"][DECISION].as_str().unwrap_or_default().to_owned(),
        denial: if allowed { None } else { Some((u16::try_from(code)?, message.to_owned())) },
        patch,
    })
}

fn split_code(sentence: &str) -> (String, String) {
    let (code, text) = sentence.split_once(": ").unwrap_or((sentence, ""));
    (code.to_owned(), text.to_owned())
}
