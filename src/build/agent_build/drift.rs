//! Whether a build of a gated mode still has exactly the steps of its template (`spec/agent-and-agentbuild.md` 11.3, D-29).

use serde_json::Value;

use super::complete::steps_of;
use super::{Origin, annotation, is_gated, mode, steps, template_name, text};
use crate::build::fault::Fault;
use crate::build::templates::TemplatesView;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// What is wrong when it has not; builds of other modes run the steps that they hold.
#[must_use]
pub fn drift(object: &Value, view: &TemplatesView) -> Option<Fault> {
    const PATH: &str = "spec.pipeline.steps";
    let mode = mode(object);
    if !is_gated(mode) {
        return None;
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
