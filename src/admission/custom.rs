//! What the reviews of builds and agents have in common: reading the object, and words for what was found.

use serde_json::Value;

use super::verdict::{Denial, Verdict, Warning};
use crate::api::findings::{Fault, Findings};
use crate::api::json::{self, Unwanted};
use crate::api::review::{Operation, Raw, Request};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::LARGEST_TEXT;

/// What no review of these kinds reads.
const UNREAD: &Unwanted = &Unwanted {
    members: &["status"],
    within: &[("metadata", &Unwanted { members: &["managedFields"], ..Unwanted::NOTHING })],
    ..Unwanted::NOTHING
};

/// The objects of a request.
#[derive(Debug)]
pub(super) struct Objects {
    /// As it would be stored.
    pub(super) object: Value,
    /// As it is stored; `None` when it is created.
    pub(super) old: Option<Value>,
}

impl Objects {
    /// Reads them.
    ///
    /// # Errors
    /// A refusal, when one is missing or is no JSON object: then nothing can be said about the request.
    pub(super) fn of(request: &Request<'_>) -> Result<Self, Box<Verdict>> {
        let read = |raw: Option<&Raw<'_>>| json::tree(raw?.get(), UNREAD).ok().filter(Value::is_object);
        let undecodable = || {
            let kind = &request.kind.kind;
            let sentence = format!("the AdmissionReview has no {kind}");
            Box::new(Verdict::denied(Denial::new(
                Reason::Undecodable,
                400,
                sentence,
                "send the object as `kubectl apply` would",
            )))
        };
        let object = read(request.object.as_ref()).ok_or_else(undecodable)?;
        let old = match request.operation {
            Operation::Update => Some(read(request.old_object.as_ref()).ok_or_else(undecodable)?),
            _ => None,
        };
        Ok(Self { object, old })
    }

    /// Reads them for a review that judges the spec.
    ///
    /// # Errors
    /// The answer, where nothing is to be judged: one of them cannot be read, the object is on its way out, or an update
    /// leaves its spec alone.
    pub(super) fn to_judge(request: &Request<'_>) -> Result<Self, Box<Verdict>> {
        let objects = Self::of(request)?;
        if objects.is_deleting() {
            return Err(Box::new(Verdict::skipped(Reason::BeingDeleted)));
        }
        if objects.keeps_spec() {
            return Err(Box::new(Verdict::skipped(Reason::SpecUnchanged)));
        }
        Ok(objects)
    }

    /// Whether the object is on its way out: nothing may stand in its way then.
    pub(super) fn is_deleting(&self) -> bool {
        self.object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    /// Whether there is something to be judged: the object is neither on its way out nor updated beside its spec.
    pub(super) fn judges_spec(&self) -> bool {
        !self.is_deleting() && !self.keeps_spec()
    }

    /// Whether an update leaves alone what is judged.
    fn keeps_spec(&self) -> bool {
        self.old.as_ref().is_some_and(|old| old.get("spec") == self.object.get("spec"))
    }

    /// `Kind name`, or the kind while there is no name.
    pub(super) fn title(&self, request: &Request<'_>) -> String {
        format!("{} {}", request.kind.kind, self.name(request)).trim_end().to_owned()
    }

    /// Its name; empty while there is none.
    pub(super) fn name<'a>(&'a self, request: &'a Request<'_>) -> &'a str {
        let own = self.object.pointer("/metadata/name").and_then(Value::as_str);
        request.name.as_deref().filter(|name| !name.is_empty()).or(own).unwrap_or("")
    }
}

/// The refusal of a build while a template or step of the namespace it names has not been read: what is missing may only be late.
pub(super) fn config_pending(title: &str, object: &Value, snapshot: &Snapshot) -> Option<Verdict> {
    const PATH: &str = "/spec/pipeline/namespace";
    let own = &snapshot.builds.settings.pipelines.operator_namespace;
    let written = object.pointer(PATH).and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or(own);
    if !snapshot.builds.view.is_waiting(written) {
        return None;
    }
    let sentence = format!("{title}: the templates and steps of namespace {written} have not been read yet");
    let denial = Denial::new(Reason::ConfigPending, 409, sentence, "apply it again in a moment");
    Some(Verdict::denied(denial.at("spec.pipeline.namespace", written)))
}

/// The refusal of an object on which more is written than what is kept of one: labels, annotations and spec. Asked before anything else
/// is looked at, since the work of judging grows with the text.
pub(super) fn too_large(request: &Request<'_>, objects: &Objects) -> Option<Verdict> {
    let fault = larger_than(LARGEST_TEXT, request, &objects.object)?;
    Some(judged(&objects.title(request), Findings { faults: vec![fault], ..Findings::default() }))
}

/// The fault of an object of which more is written than `most` bytes.
pub(super) fn larger_than(most: usize, request: &Request<'_>, object: &Value) -> Option<Fault> {
    if request.object.as_ref().is_none_or(|raw| raw.get().len() <= most) {
        return None;
    }
    let texts = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    let of = |pointer: &str| {
        let members = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        members.filter(|(key, _)| *key != keys::ANNOTATION_LAST_APPLIED).map(texts).sum::<usize>()
    };
    let spec = length(object.get("spec")?);
    let size = spec + of("/metadata/labels") + of("/metadata/annotations");
    if size <= most {
        return None;
    }
    let with = if size > spec { ", with labels and annotations" } else { "" };
    let (large, allowed) = (size.div_ceil(1024), most / 1024);
    let mostly = most_of(object.get("spec")?, size).map(|at| format!(", most of which is {at}")).unwrap_or_default();
    let sentence = format!("is {large} KiB large{with}{mostly}; at most {allowed} KiB are allowed");
    let remedy = "move what is large into a ConfigMap or Secret that the object names";
    Some(Fault::new(Reason::FieldInvalid, "spec", sentence, remedy))
}

fn length(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(0, |text| text.len())
}

/// Where most of so many bytes are: the innermost member of a spec that takes more than half of them, as far as it is looked for.
fn most_of(spec: &Value, size: usize) -> Option<String> {
    /// Levels that are looked through, and the longest key that is named.
    const LEVELS: usize = 8;
    const KEY: usize = 64;
    let (mut at, mut path) = (spec, String::new());
    for _ in 0..LEVELS {
        let step = match at {
            Value::Object(members) => {
                let member = members.iter().find(|(_, value)| length(value) > size / 2);
                member.filter(|(key, _)| key.len() <= KEY).map(|(key, value)| (member_of("", key), value))
            }
            Value::Array(items) => {
                let item = items.iter().enumerate().find(|(_, item)| length(item) > size / 2);
                item.map(|(index, value)| (format!("[{index}]"), value))
            }
            _ => None,
        };
        let Some((step, value)) = step else { break };
        path.push_str(&step);
        at = value;
    }
    (!path.is_empty()).then(|| format!("spec{path}"))
}

/// The path of a member: a dot in its key is a part of the key, and none of the path.
pub(super) fn member_of(path: &str, key: &str) -> String {
    if key.contains('.') { format!("{path}[{key}]") } else { format!("{path}.{key}") }
}

/// The answer to what was found: everything that is wrong in one refusal, everything else as warnings.
pub(super) fn judged(title: &str, findings: Findings) -> Verdict {
    let warnings = findings.notes.iter().map(|note| Warning::new(note.reason, format!("{}: {}", note.path, note.text)));
    let warnings = warnings.collect();
    let verdict = match refusal(title, findings.faults) {
        Some(denial) => Verdict::denied(denial),
        None => Verdict::skipped(Reason::Accepted),
    };
    Verdict { warnings, ..verdict }
}

fn refusal(title: &str, faults: Vec<Fault>) -> Option<Denial> {
    let first = faults.first()?;
    let mut denial = Denial::new(first.reason, 403, format!("{title} is not accepted"), first.remedy.clone());
    denial.field = Some(first.path.clone());
    denial.seen.clone_from(&first.seen);
    denial.faults = faults;
    Some(denial)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A key `a.b` is one member, and not member `b` of `a`, which may be there as well.
    #[test]
    fn a_key_with_a_dot_is_named_as_one_key() {
        let large = "x".repeat(100);
        for (spec, path) in [
            (json!({"a": {"b": large}}), "spec.a.b"),
            (json!({"a.b": large, "a": {"b": "small"}}), "spec[a.b]"),
            (json!({"env": [{"c.d": {"e": large}}]}), "spec.env[0][c.d].e"),
        ] {
            assert_eq!(most_of(&spec, 120).as_deref(), Some(path), "{spec}");
        }
    }
}
