//! What was decided, as facts; the caller counts, logs and prints them.

use super::patch::PatchOperation;
use crate::domain::reason::Reason;

/// A refusal, written as a help text (design, law 10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// HTTP status of the answer (400, 403, 409, 422, 500, 503).
    pub code: u16,
    /// What happened, in one sentence with the facts of this object.
    pub sentence: String,
    /// Path of the field at fault, such as `spec.containers[1].ports[0].containerPort`.
    pub field: Option<String>,
    /// The value seen there.
    pub seen: Option<String>,
    /// What to do about it.
    pub remedy: String,
}

/// Something the person who applies the object should hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Which warning.
    pub reason: Reason,
    /// One or two sentences: what, where, what to do.
    pub text: String,
}

/// Allowed, allowed with a patch, or refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// As it is.
    Allow,
    /// With these operations on the object as received; never empty.
    Patch(Vec<PatchOperation>),
    /// Not at all.
    Deny(Denial),
}

/// The answer to one review.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What happens to the object.
    pub outcome: Outcome,
    /// Why, as one code.
    pub reason: Reason,
    /// In the order in which they were found; each sentence once.
    pub warnings: Vec<Warning>,
    /// Audit annotations: key without prefix, value.
    pub audit: Vec<(&'static str, String)>,
}

impl Verdict {
    /// Allowed untouched for `reason`.
    #[must_use]
    pub fn skipped(reason: Reason) -> Self {
        Self { outcome: Outcome::Allow, reason, warnings: Vec::new(), audit: Vec::new() }
    }

    /// Refused for `reason`.
    #[must_use]
    pub fn denied(reason: Reason, denial: Denial) -> Self {
        Self { outcome: Outcome::Deny(denial), reason, warnings: Vec::new(), audit: Vec::new() }
    }

    /// True unless the object is refused.
    #[must_use]
    pub fn allowed(&self) -> bool {
        !matches!(self.outcome, Outcome::Deny(_))
    }
}
