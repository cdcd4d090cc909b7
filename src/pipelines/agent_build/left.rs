//! A build that leaves its template for mode custom: what becomes of the steps that the template gave.
//!
//! In: the update, and the templates. Out: words. The steps stay where the update carries them along, as the build's own;
//! an update without any is refused, and the refusal says that those of the template do not stay.

use serde_json::Value;

use super::{CUSTOM, Change, Origin, annotation, mode, steps, text};
use crate::api::findings::{Fault, Findings, Note};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::templates::TemplatesView;

/// Says it; `path` is the steps'.
pub(super) fn tell(change: &Change<'_>, path: &str, view: &TemplatesView, findings: &mut Findings) {
    let Some(old) = change.old.filter(|old| is_left(old, change.object)) else { return };
    let of = annotation(old, keys::ANNOTATION_PIPELINE_TEMPLATE).unwrap_or("unknown");
    let (of, before) = (format!("template {of}"), mode(old));
    match steps(change.object) {
        None => {
            let lacks = |fault: &&mut Fault| fault.path == path && fault.reason == Reason::FieldRequired;
            for fault in findings.faults.iter_mut().filter(lacks) {
                let those = format!("; the steps that {of} gave in mode {before} do not stay by themselves");
                fault.sentence.push_str(&those);
                fault.remedy = format!("send those steps along, or others, or stay in mode {before}");
            }
        }
        now if now == steps(old) => {
            let text = format!(
                "are those that {of} gave in mode {before}, and stay as the build's own: changes of the template reach them no \
                 more{}. To have the template's again, set mode {before} and send the object without steps",
                lost(old, view)
            );
            findings.note(Note::new(Reason::StepsKept, path, text));
        }
        Some(_) => {}
    }
}

fn is_left(old: &Value, now: &Value) -> bool {
    matches!(Origin::of(old), Origin::Template(_)) && mode(old) != CUSTOM && mode(now) == CUSTOM
}

/// What the template gives to all steps without writing it into them.
fn lost(old: &Value, view: &TemplatesView) -> String {
    let entry = view.template(text(old, "/spec/pipeline/namespace"), mode(old));
    let globals = entry.and_then(|entry| entry.template.as_ref().ok()).map_or(&[][..], |template| &template.globals);
    let names: Vec<_> = globals.iter().map(|one| one.name.as_str()).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(", nor does what it gives to all steps ({})", names.join(", "))
    }
}
