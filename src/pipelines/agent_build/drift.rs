//! Whether a build's template is still what was reviewed (D-29 and fault G4 in docs/cases.md).
//!
//! A build of a gated mode has exactly the steps of the operator's template; one whose template is a tenant's has the very
//! template that the review saw, because its global parameters are read when the build starts.

use serde_json::Value;

use super::complete::steps_of;
use super::read::pinned;
use super::{Origin, annotation, is_gated, mode, steps, template_name, text};
use crate::api::findings::Fault;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::templates::TemplatesView;

const PATH: &str = "spec.pipeline.steps";

/// What is wrong when it is not; other builds of the operator's templates run the steps that they hold.
#[must_use]
pub fn drift(object: &Value, view: &TemplatesView) -> Option<Fault> {
    let mode = mode(object);
    if !is_gated(mode) {
        return swapped(object, view);
    }
    let namespace = text(object, "/spec/pipeline/namespace");
    let config_map = format!("{}/{}", view.namespace(namespace), template_name(mode));
    let origin = Origin::of(object);
    let template = view.template(namespace, mode).map(|entry| &entry.template);
    let Some(Ok(template)) = template.filter(|_| origin == Origin::Template(mode.to_owned())) else {
        let sentence = format!("cannot be compared with the template of mode {mode}, {config_map}");
        let remedy = "install the template, then apply the build without steps, so that they are filled in";
        return Some(Fault::new(Reason::TemplateDrift, PATH, sentence, remedy));
    };
    if steps(object) == Some(&steps_of(template)) {
        return None;
    }
    let from = annotation(object, keys::ANNOTATION_PIPELINE_TEMPLATE).unwrap_or("unknown");
    let sentence = format!("are those of {from}, and template {config_map} has changed since");
    let remedy = format!(
        "to build with the template as it is now, set annotation {} to a new value",
        keys::ANNOTATION_REFRESH_TEMPLATE
    );
    Some(Fault::new(Reason::TemplateDrift, PATH, sentence, remedy))
}

/// A tenant's template that is not the one that was reviewed.
pub(super) fn swapped(object: &Value, view: &TemplatesView) -> Option<Fault> {
    let Origin::Template(mode) = Origin::of(object) else { return None };
    let reviewed = pinned(object).remove(&template_name(&mode))?;
    let namespace = text(object, "/spec/pipeline/namespace");
    let config_map = format!("{}/{}", view.namespace(namespace), template_name(&mode));
    let short = |hash: &str| hash.get(..12).unwrap_or(hash).to_owned();
    let sentence = match view.template(namespace, &mode) {
        Some(entry) if entry.hash == reviewed => return None,
        Some(entry) => format!(
            "are those of template {config_map}, whose content changed since the review (reviewed {}, now {})",
            short(&reviewed),
            short(&entry.hash)
        ),
        None => format!("are those of template {config_map}, which is gone since the review"),
    };
    let remedy =
        format!("read the change; to accept it, set annotation {} to a new value", keys::ANNOTATION_REFRESH_TEMPLATE);
    Some(Fault::new(Reason::TemplateDrift, PATH, sentence, remedy))
}
