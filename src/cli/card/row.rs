//! An AgentCard in one row: what `card list`, `card get` and `status` say of it.
//!
//! In: the object, as the API server has it. Out: its row. Promise: what an agent says of itself stands before people by [`printable`] only.

use serde::Serialize;
use serde_json::Value;

use crate::cli::survey::text;
use crate::domain::printable::printable;
use crate::domain::reason::Reason;
use crate::store::Kind;

/// Longest word of an agent in a cell of a table.
const CELL: usize = 40;
/// Reasons that end by themselves.
const PASSING: [&str; 2] = ["WorkloadNotReady", "Settling"];

/// Why nobody is asked as long as the init containers of the Pods have not ended.
const UNREADY: &str = "WorkloadNotReady";

/// One AgentCard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "every member is documented in `status::shape::FIELDS`, from which the reference is made"
)]
pub struct CardRow {
    pub namespace: String,
    pub kind: &'static str,
    pub name: String,
    pub agent: Option<String>,
    pub protocol: Option<String>,
    pub target: Option<String>,
    pub url: Option<String>,
    pub skills: Vec<Skill>,
    pub synced: Option<bool>,
    pub verified: Option<bool>,
    pub bound: Option<bool>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub attention: bool,
}

/// A skill of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "as above")]
pub struct Skill {
    pub id: String,
    pub name: String,
    pub tags: Vec<String>,
}

/// The heads of [`CardRow::cells`].
pub const HEAD: [&str; 9] =
    ["NAMESPACE", "CARD", "AGENT", "PROTOCOL", "TARGET", "VERIFIED", "BOUND", "SYNCED", "SKILLS"];

/// A condition of an object.
pub(in crate::cli) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|one| one["type"] == kind)
}

/// Whether a condition holds; `None` where nobody says.
pub(in crate::cli) fn holds(object: &Value, kind: &str) -> Option<bool> {
    match text(condition(object, kind)?, "/status") {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

impl CardRow {
    /// The row of a card.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let some = |pointer: &str| Some(text(object, pointer).to_owned()).filter(|text| !text.is_empty());
        let awaits = condition(object, Reason::AwaitsSignature.code()).filter(|one| text(one, "/status") == "True");
        // The first that fails is why the others do.
        let fails = ["Synced", "Verified", "Bound"].into_iter().find(|kind| holds(object, kind) == Some(false));
        let fails = fails.and_then(|kind| condition(object, kind));
        let of_failure =
            |key: &str| fails.map(|one| text(one, key).to_owned()).filter(|text: &String| !text.is_empty());
        let (kind, name) = (some("/spec/targetRef/kind"), some("/spec/targetRef/name"));
        let bound = object.pointer("/status/bindingStatus/bound").and_then(Value::as_bool);
        let failed = of_failure("/reason");
        let attention = failed.as_deref().is_some_and(|reason| !PASSING.contains(&reason));
        // That nobody has signed yet says more than that nothing is signed, or that no Pod is ready.
        let is_unsigned = holds(object, "Synced") != Some(false) || failed.as_deref() == Some(UNREADY);
        let awaits = awaits.filter(|_| failed.is_some() && is_unsigned && holds(object, "Verified") != Some(true));
        let of_awaited = |key: &str| awaits.map(|one| text(one, key).to_owned());
        Self {
            namespace: text(object, "/metadata/namespace").to_owned(),
            kind: Kind::AgentCard.as_str(),
            name: text(object, "/metadata/name").to_owned(),
            agent: some("/status/card/name"),
            protocol: some("/status/protocol"),
            target: kind.zip(name).map(|(kind, name)| format!("{kind}/{name}")),
            url: some("/status/card/url"),
            skills: skills(object),
            synced: holds(object, "Synced"),
            verified: holds(object, "Verified"),
            bound: holds(object, "Bound").or(bound),
            attention,
            reason: of_awaited("/reason").or(failed),
            message: of_awaited("/message").or_else(|| of_failure("/message")),
        }
    }

    /// Whether the agent says that it has that skill, by its id or one of its tags.
    #[must_use]
    pub fn can(&self, wanted: &str) -> bool {
        let is = |text: &String| text.eq_ignore_ascii_case(wanted);
        self.skills.iter().any(|skill| is(&skill.id) || skill.tags.iter().any(is))
    }

    /// The cells of its row.
    #[must_use]
    pub fn cells(&self) -> [String; 9] {
        let dash = || "-".to_owned();
        let words = |text: &Option<String>| text.as_deref().map_or_else(dash, |text| printable(text, CELL));
        let judged = |is: Option<bool>| is.map_or_else(dash, |is| if is { "True" } else { "False" }.to_owned());
        let ids: Vec<&str> = self.skills.iter().map(|skill| &*skill.id).collect();
        [
            self.namespace.clone(),
            self.name.clone(),
            words(&self.agent),
            words(&self.protocol),
            words(&self.target),
            judged(self.verified),
            judged(self.bound),
            judged(self.synced),
            if ids.is_empty() { dash() } else { printable(&ids.join(","), CELL) },
        ]
    }

    /// The cells of its row in a table of workloads: who serves it stands for who enrolled it, what is known of it for the reason.
    #[must_use]
    pub fn beside_workloads(&self) -> [String; 10] {
        let dash = || "-".to_owned();
        let words = |text: &Option<String>| text.as_deref().map_or_else(dash, |text| printable(text, CELL));
        let told = match (&self.reason, self.verified) {
            (Some(reason), _) => {
                let reason = printable(reason, 2 * CELL);
                format!("{reason} {}", printable(self.message.as_deref().unwrap_or_default(), 2 * CELL))
            }
            (None, Some(true)) if self.bound == Some(true) => "verified and bound".to_owned(),
            (None, Some(true)) => "verified".to_owned(),
            (None, _) => "not judged".to_owned(),
        };
        [
            self.namespace.clone(),
            format!("{}/{}", self.kind, self.name),
            dash(),
            words(&self.protocol),
            words(&self.target),
            dash(),
            dash(),
            dash(),
            dash(),
            told,
        ]
    }

    /// Why it needs a person, in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { namespace, name, .. } = self;
        let reason = printable(self.reason.as_deref().unwrap_or_default(), 2 * CELL);
        let message = printable(self.message.as_deref().unwrap_or_default(), 400);
        format!(
            "AgentCard/{name} in {namespace}: {reason}: {message}; drawbridge explain agentcard/{name} -n {namespace}"
        )
    }
}

fn skills(object: &Value) -> Vec<Skill> {
    let skills = object.pointer("/status/card/skills").and_then(Value::as_array).into_iter().flatten();
    let tags = |skill: &Value| {
        let tags = skill["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        tags.map(str::to_owned).collect()
    };
    skills
        .map(|skill| Skill {
            id: text(skill, "/id").to_owned(),
            name: text(skill, "/name").to_owned(),
            tags: tags(skill),
        })
        .collect()
}

/// Rows below their heads, as wide as they need to be.
///
/// # Errors
/// When the stream is closed.
pub fn table(out: &mut dyn std::io::Write, rows: &[CardRow]) -> std::io::Result<()> {
    let lines: Vec<[String; 9]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(CardRow::cells)).collect();
    let mut widths = [0; 9];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    rows.iter().filter(|row| row.attention).try_for_each(|row| writeln!(out, "{}", row.words()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(conditions: &[(&str, &str, &str)]) -> CardRow {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason, "message": "m"}))
            .collect();
        CardRow::of(&json!({"metadata": {"name": "w", "namespace": "n"}, "status": {"conditions": conditions}}))
    }

    /// That nobody has signed yet stands in for what follows from it, and for nothing else.
    #[test]
    fn a_card_that_awaits_its_signature_says_so_where_that_is_why() {
        let awaits = ("AwaitsSignature", "True", "AwaitsSignature");
        let synced = ("Synced", "True", "SyncSucceeded");
        for (what, others, reason, attention) in [
            ("not signed", vec![synced, ("Verified", "False", "SignatureInvalid")], Some("AwaitsSignature"), true),
            ("it still starts", vec![("Synced", "False", "WorkloadNotReady")], Some("AwaitsSignature"), false),
            ("no Service", vec![("Synced", "False", "ServiceNotFound")], Some("ServiceNotFound"), true),
            ("verified all the same", vec![("Verified", "True", "SignatureVerified"), synced], None, false),
            ("nothing is judged", vec![synced], None, false),
        ] {
            let with: Vec<_> = others.iter().copied().chain([awaits]).collect();
            let row = row(&with);
            assert_eq!((row.reason.as_deref(), row.attention), (reason, attention), "{what}");
        }
        let signed = row(&[synced, ("Verified", "False", "SignatureInvalid")]);
        assert_eq!(signed.reason.as_deref(), Some("SignatureInvalid"));
    }
}
