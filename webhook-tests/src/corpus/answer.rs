//! One answer, from whichever road it came: `evaluate`, the router, or the API server.

use anyhow::Context as _;
use serde_json::Value;

use drawbridge::admission::evaluate;
use drawbridge::admission::verdict::Outcome;
use drawbridge::config::snapshot::Snapshot;

use super::Case;

/// What came out, in words that all roads share.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Let in.
    pub allowed: bool,
    /// Reason code.
    pub reason: String,
    /// Reason code and text of each warning.
    pub warnings: Vec<(String, String)>,
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
        Outcome::Patch(operations) => (None, Some(json_patch::Patch(operations.clone()))),
        Outcome::Deny(denial) => {
            let parts = [
                Some(denial.sentence.as_str()),
                denial.field.as_deref(),
                denial.seen.as_deref(),
                Some(denial.remedy.as_str()),
            ];
            (Some((denial.code, parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))), None)
        }
    };
    let warnings = verdict.warnings.iter().map(|warning| (warning.reason.code().to_owned(), warning.text.clone()));
    Ok(Answer {
        allowed: verdict.allowed(),
        reason: verdict.reason.code().to_owned(),
        warnings: warnings.collect(),
        denial,
        patch,
    })
}
