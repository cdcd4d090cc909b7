//! What was decided, as facts; the caller counts, logs and prints them.

use std::fmt;

use super::patch::{self, Operation, PatchOperation};
use crate::api::findings::{Fault, printed};
use crate::domain::reason::Reason;

/// A refusal, written as a help text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The code that travels everywhere.
    pub reason: Reason,
    /// HTTP status of the answer (400, 403, 409, 422, 500, 503).
    pub code: u16,
    /// What happened, in one sentence with the facts of this object, without a full stop.
    pub sentence: String,
    /// Path of the field at fault, such as `spec.containers[1].ports[0].containerPort`.
    pub field: Option<String>,
    /// The value seen there.
    pub seen: Option<String>,
    /// What to do about it, without a full stop.
    pub remedy: String,
    /// The exact command that shows more.
    pub more: Option<String>,
    /// Everything that is wrong, where one look finds all of it; the fields above speak of the first.
    pub faults: Vec<Fault>,
}

impl Denial {
    /// A refusal without a field at fault.
    #[must_use]
    pub fn new(reason: Reason, code: u16, sentence: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (sentence, remedy) = (sentence.into(), remedy.into());
        Self { reason, code, sentence, field: None, seen: None, remedy, more: None, faults: Vec::new() }
    }

    /// The same refusal, pointing at a field and the value seen there.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>, seen: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self.seen = Some(seen.into());
        self
    }

    /// What is said, for readers who see the code beside it: `sentence (field: seen). What to do: remedy. More: command`, or
    /// `sentence:` and a line for each fault.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.sentence.clone();
        if !self.faults.is_empty() {
            return words + ":\n" + &printed(&self.faults);
        }
        match (&self.field, &self.seen) {
            (Some(field), Some(seen)) => words += &format!(" ({field}: {seen})"),
            (Some(field), None) => words += &format!(" ({field})"),
            _ => {}
        }
        words += &format!(". What to do: {}.", self.remedy);
        if let Some(command) = &self.more {
            words += &format!(" More: {command}");
        }
        words
    }

    /// The same refusal, naming the command that shows more.
    #[must_use]
    pub fn with_more(mut self, command: impl Into<String>) -> Self {
        self.more = Some(command.into());
        self
    }
}

impl fmt::Display for Denial {
    /// `Code: words`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.code(), self.words())
    }
}

/// Something the person who applies the object should hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Which warning.
    pub reason: Reason,
    /// One or two sentences: what, where, what to do.
    pub text: String,
}

impl Warning {
    /// A warning of that reason.
    #[must_use]
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }
}

impl fmt::Display for Warning {
    /// `Code: text`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.code(), self.text)
    }
}

/// Allowed, allowed with a patch, or refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// As it is.
    Allow,
    /// With these operations on the object as received; never empty.
    Patch(Vec<Operation>),
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
        Self {
            outcome: Outcome::Allow,
            reason,
            warnings: Vec::new(),
            audit: vec![("reason", reason.code().to_owned())],
        }
    }

    /// Allowed for `reason` with these operations; untouched when there are none.
    #[must_use]
    pub fn allowed_with(reason: Reason, operations: Vec<Operation>) -> Self {
        let outcome = if operations.is_empty() { Outcome::Allow } else { Outcome::Patch(operations) };
        Self { outcome, ..Self::skipped(reason) }
    }

    /// Refused.
    #[must_use]
    pub fn denied(denial: Denial) -> Self {
        let reason = denial.reason;
        Self { outcome: Outcome::Deny(denial), ..Self::skipped(reason) }
    }

    /// True unless the object is refused.
    #[must_use]
    pub fn allowed(&self) -> bool {
        !matches!(self.outcome, Outcome::Deny(_))
    }

    /// The operations of the answer as those know them who apply them, empty when there are none.
    #[must_use]
    pub fn operations(&self) -> Vec<PatchOperation> {
        match &self.outcome {
            Outcome::Patch(operations) => patch::plain(operations),
            Outcome::Allow | Outcome::Deny(_) => Vec::new(),
        }
    }
}
