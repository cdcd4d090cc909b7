//! `expect.yaml` and `expected.yaml`: what must come out of a case, and the comparison.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use serde::Deserialize;
use serde_json::Value;

use drawbridge::domain::reason::{Class, Reason};

use super::answer::Answer;
use super::matching::{Tolerance, compare_found, differences, is_matcher, strict};
use super::path::follow;

/// One `expect.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Expectation {
    /// The case or page that asks for this (docs/cases.md).
    pub spec: String,
    /// The decision that a case of the Go operator is answered differently by: a row of docs/deviations.md, or words.
    #[serde(default)]
    pub ruled: Option<String>,
    /// One or two sentences for the reader.
    #[serde(default)]
    pub why: Option<String>,
    /// Reason code; its class says whether the object is let in, and whether with a patch.
    #[serde(default)]
    pub reason: Option<String>,
    /// Warnings that must be there, and no others.
    #[serde(default)]
    pub warnings: Vec<ExpectedWarning>,
    /// Parts of the audit annotation `decision`, which says what a workload's Pods get; none, and there is no such annotation. The
    /// API server tells nobody who applies something, so it is judged where the answer itself is seen.
    #[serde(default)]
    pub decision: Vec<String>,
    /// Warnings that may be there besides.
    #[serde(default)]
    pub may_warn: Vec<String>,
    /// The refusal.
    #[serde(default)]
    pub denial: Option<ExpectedDenial>,
    /// What holds at a path of the object afterwards.
    #[serde(default)]
    pub holds: BTreeMap<String, Value>,
    /// A review that only says what would happen: the object stays as it is, whatever the reason.
    #[serde(default)]
    pub warn_only: bool,
    /// The platform or gates file is refused, with these words.
    #[serde(default)]
    pub config_refused: Option<Vec<String>>,
    /// The bytes are no review; they are refused before `evaluate`.
    #[serde(default)]
    pub unreadable: bool,
    /// Nothing like this can be sent to a real API server, and why.
    #[serde(default)]
    pub not_on_api_server: Option<String>,
    /// The whole object afterwards (`expected.yaml`).
    #[serde(skip)]
    pub golden: Option<Value>,
}

/// A warning that must be there: its code, or code and parts of its text.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ExpectedWarning {
    /// Reason code.
    Code(String),
    /// Reason code and parts of the text.
    Words {
        /// Reason code.
        reason: String,
        /// Parts of the text.
        says: Vec<String>,
    },
}

/// A refusal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedDenial {
    /// HTTP status; absent where no page fixes it.
    #[serde(default)]
    pub code: Option<u16>,
    /// Parts of the text: facts of this object and the way out.
    pub says: Vec<String>,
}

impl ExpectedWarning {
    fn code(&self) -> &str {
        match self {
            Self::Code(code) | Self::Words { reason: code, .. } => code,
        }
    }
}

impl Expectation {
    /// The reason that is expected.
    #[must_use]
    pub fn expected_reason(&self) -> Option<Reason> {
        let code = self.reason.as_deref()?;
        Reason::ALL.iter().copied().find(|reason| reason.code() == code)
    }

    /// True when the object is let in with our parts.
    #[must_use]
    pub fn injects(&self) -> bool {
        !self.warn_only && self.expected_reason().is_some_and(|reason| reason.class() == Class::Injected)
    }

    /// Refuses expectations that could not fail, or that contradict themselves.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let known = |code: &str| Reason::ALL.iter().any(|reason| reason.code() == code);
        let codes = self.warnings.iter().map(ExpectedWarning::code).chain(self.may_warn.iter().map(String::as_str));
        for code in codes.chain(self.reason.as_deref()) {
            if !known(code) {
                bail!("expect.yaml: {code} is no reason code");
            }
        }
        if self.reason.is_none() && self.config_refused.is_none() && !self.unreadable {
            bail!("expect.yaml: `reason`, `configRefused` or `unreadable` is needed");
        }
        let refused = self.denial.is_some() || self.config_refused.is_some() || self.unreadable;
        if (refused || self.warn_only) && (self.golden.is_some() || !self.holds.is_empty()) {
            bail!("expect.yaml: nothing is changed here, so `holds` and expected.yaml are read by nobody");
        }
        if self.warn_only {
            return Ok(());
        }
        let class = self.expected_reason().map(Reason::class);
        if (class == Some(Class::Denied)) != self.denial.is_some() {
            bail!("expect.yaml: `denial` belongs to a reason that denies, and to no other");
        }
        if class == Some(Class::Injected) && self.golden.is_none() && self.holds.is_empty() {
            bail!("expect.yaml: an injected object needs `holds` or an expected.yaml");
        }
        Ok(())
    }

    /// Every way in which the answer differs, as sentences.
    ///
    /// # Errors
    /// A path that cannot be read.
    pub fn judge(&self, answer: &Answer, object: &Value) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        let wanted = self.reason.as_deref().unwrap_or_default();
        if answer.reason != wanted {
            wrong.push(format!("reason: is {}, expected {wanted}", answer.reason));
        }
        if let Some((code, text)) = &answer.denial {
            wrong.extend(self.judge_denial(*code, text));
        } else if self.denial.is_some() {
            wrong.push("allowed, expected a refusal".to_owned());
        }
        self.judge_warnings(&answer.warnings, &mut wrong);
        if self.decision.is_empty() && !answer.decision.is_empty() {
            wrong.push(format!("decision: not expected: {}", answer.decision));
        }
        wrong.extend(missing_words(&self.decision, &answer.decision, "decision"));
        if self.warn_only {
            if !answer.allowed || answer.patch.is_some() {
                wrong.push("a review that only warns refuses or changes".to_owned());
            }
            return Ok(wrong);
        }
        if self.denial.is_none() && answer.allowed {
            let result = answer.applied(object)?;
            match self.expected_reason().map(Reason::class) {
                Some(Class::Injected) if answer.patch.is_none() => wrong.push("no patch, expected one".to_owned()),
                Some(Class::Skipped) if self.holds.is_empty() && result != *object => {
                    wrong.extend(differences(object, &result, "", strict));
                }
                _ => {}
            }
            wrong.extend(self.judge_object(&result, strict)?);
        }
        Ok(wrong)
    }

    /// The part of the judgement that is about the object afterwards.
    ///
    /// # Errors
    /// A path that cannot be read.
    pub fn judge_object(&self, result: &Value, tolerated: Tolerance) -> anyhow::Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (path, value) in &self.holds {
            wrong.extend(compare_found(value, &follow(result, path)?, path, tolerated));
        }
        if let Some(golden) = &self.golden {
            wrong.extend(differences(golden, result, "", tolerated));
        }
        Ok(wrong)
    }

    pub(super) fn judge_denial(&self, code: u16, text: &str) -> Vec<String> {
        let Some(wanted) = &self.denial else {
            return vec![format!("refused with {code}, expected to be let in: {text}")];
        };
        let mut wrong = Vec::new();
        if wanted.code.is_some_and(|wanted| wanted != code) {
            wrong.push(format!("code of the refusal: is {code}, expected {:?}", wanted.code));
        }
        if !(400..600).contains(&code) {
            wrong.push(format!("code of the refusal: {code} is no error"));
        }
        wrong.extend(missing_words(&wanted.says, text, "refusal"));
        wrong
    }

    pub(super) fn judge_warnings(&self, warnings: &[(String, String)], wrong: &mut Vec<String>) {
        let seen: BTreeSet<&str> = warnings.iter().map(|(code, _)| code.as_str()).collect();
        let wanted: BTreeSet<&str> = self.warnings.iter().map(ExpectedWarning::code).collect();
        for warning in &self.warnings {
            let texts: Vec<&str> =
                warnings.iter().filter(|(code, _)| code == warning.code()).map(|(_, text)| text.as_str()).collect();
            if texts.is_empty() {
                wrong.push(format!("warnings: {} is missing, there are {seen:?}", warning.code()));
            } else if let ExpectedWarning::Words { reason, says } = warning {
                wrong.extend(missing_words(says, &texts.join("\n"), reason));
            }
        }
        for (code, text) in warnings {
            if !wanted.contains(code.as_str()) && !self.may_warn.contains(code) {
                wrong.push(format!("warnings: not expected: {code}: {text}"));
            }
        }
    }
}

/// What `says` asks for and `text` does not say.
#[must_use]
pub fn missing_words(says: &[String], text: &str, what: &str) -> Vec<String> {
    says.iter()
        .filter(|part| !text.contains(*part))
        .map(|part| format!("{what}: {part:?} is not in {text:?}"))
        .collect()
}

/// The golden file that would hold: `actual`, with the matchers of `old` where they hold.
#[must_use]
pub fn refreshed(old: &Value, actual: &Value) -> Value {
    if is_matcher(old) {
        return if differences(old, actual, "", strict).is_empty() { old.clone() } else { actual.clone() };
    }
    match (old, actual) {
        (Value::Object(old), Value::Object(actual)) => Value::Object(
            actual
                .iter()
                .map(|(key, value)| (key.clone(), old.get(key).map_or_else(|| value.clone(), |o| refreshed(o, value))))
                .collect(),
        ),
        (Value::Array(old), Value::Array(actual)) => Value::Array(
            actual
                .iter()
                .enumerate()
                .map(|(index, value)| old.get(index).map_or_else(|| value.clone(), |o| refreshed(o, value)))
                .collect(),
        ),
        _ => actual.clone(),
    }
}
