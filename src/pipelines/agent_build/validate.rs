//! Everything that is wrong with an AgentBuild, in one answer.
//!
//! Out: faults for what the object itself must change; notes for what deserves attention, and for ConfigMaps that
//! are missing or wrong: those may still come, so the object is accepted and its build waits. An update that leaves
//! the spec as it is, and an object on its way out, are never refused.

use serde_json::Value;

use super::drift::swapped;
use super::left;
use super::{CUSTOM, Change, MODES, Origin, is_gated, mode, read, template_name, text};
use crate::api::findings::{Fault, Findings, Note};
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;
use crate::pipelines::check::parameters::is_told;
use crate::pipelines::check::source::is_immutable;
use crate::pipelines::compose::{self, Surroundings};
use crate::pipelines::request::BuildRequest;
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::TemplatesView;

const STEPS: &str = "spec.pipeline.steps";

/// What is wrong with an AgentBuild and what deserves attention; nothing when it is not for this review to judge.
#[must_use]
pub fn validate(change: &Change<'_>, view: &TemplatesView, settings: &Settings) -> Findings {
    let object = change.object;
    if change.is_deleting() || change.old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Findings::default();
    }
    let (request, mut findings) = read(object, change.namespace, view, 1);
    let namespace = namespace(change, &request, (view, settings), &mut findings);
    known_mode(object, &mut findings);
    let has_template = template(&request, Origin::of(object), (view, namespace), &mut findings);
    left::tell(change, STEPS, view, &mut findings);
    let around = Surroundings { steps: view.steps(namespace), settings, accounts: None };
    let mut found = compose::examine(&request, around);
    if request.steps.is_empty() && !has_template {
        // The missing template is the cause, and has been named.
        found.faults.retain(|fault| fault.path != STEPS);
    }
    findings.extend(found);
    swapped(object, view).into_iter().for_each(|fault| findings.content(fault));
    moving(&request, &mut findings);
    let mut waiting = std::mem::take(&mut findings.content);
    // Steps that lack what the refusal asks for run once that is given.
    waiting.retain(|fault| !fault.parameter.as_ref().is_some_and(|name| is_told(&request, name, &findings.faults)));
    for fault in waiting {
        let seen = fault.seen.map_or(String::new(), |seen| format!(" (seen: {seen})"));
        let text = format!("{}{seen}; the build fails until that is put right: {}", fault.sentence, fault.remedy);
        findings.note(Note::new(fault.reason, fault.path, text));
    }
    findings
}

fn namespace<'a>(
    change: &Change<'a>,
    request: &BuildRequest,
    (view, settings): (&TemplatesView, &Settings),
    findings: &mut Findings,
) -> &'a str {
    const PATH: &str = "spec.pipeline.namespace";
    let namespace = text(change.object, "/spec/pipeline/namespace");
    if namespace.is_empty() {
        findings.fault(Fault::required(PATH, format!("write {}", settings.operator_namespace)));
    } else if request.gated && view.namespace(namespace) != settings.operator_namespace {
        let sentence = format!("must be the operator's namespace in mode {}", request.mode);
        let remedy = format!("write {}", settings.operator_namespace);
        findings.fault(Fault::new(Reason::GatedMode, PATH, sentence, remedy).seeing(namespace));
    } else if !settings.allows_pipeline_namespace(namespace, change.namespace) {
        let sentence = "is neither the operator's namespace nor the build's own nor one that the platform allows";
        let remedy = format!("write {} or {}", settings.operator_namespace, change.namespace);
        findings.fault(Fault::invalid(PATH, sentence, remedy).seeing(namespace));
    }
    namespace
}

fn known_mode(object: &Value, findings: &mut Findings) {
    let mode = mode(object);
    if MODES.contains(&mode) {
        return;
    }
    let remedy = match nearest(mode, MODES) {
        Some(meant) => format!("write {meant} if that is meant"),
        None => "write one of them".to_owned(),
    };
    let sentence = format!("is an unsupported value; modes are {}", MODES.join(", "));
    findings.fault(Fault::invalid("spec.mode", sentence, remedy).seeing(mode));
}

/// Judges where the steps come from; false when there are none because their template is missing or unusable.
fn template(
    request: &BuildRequest,
    origin: Origin,
    (view, namespace): (&TemplatesView, &str),
    findings: &mut Findings,
) -> bool {
    let mode = request.mode.as_str();
    if !MODES.contains(&mode) {
        return false;
    }
    let has_steps = !request.steps.is_empty();
    match origin {
        _ if mode == CUSTOM && !has_steps => {
            let sentence = "must be given in mode custom, which has no template";
            findings.fault(Fault::new(Reason::FieldRequired, STEPS, sentence, "add steps, or choose another mode"));
            false
        }
        Origin::User if has_steps => {
            let forbids = view
                .template(namespace, mode)
                .is_some_and(|entry| entry.template.as_ref().is_ok_and(|template| !template.custom_steps));
            if is_gated(mode) || forbids {
                let sentence = format!("must not be given in mode {mode}: its steps come from the template only");
                let remedy = format!("remove the steps, or use mode {CUSTOM}");
                findings.fault(Fault::new(Reason::GatedMode, STEPS, sentence, remedy));
            }
            true
        }
        Origin::Template(of)
            if has_steps
                && of == mode
                && view.template(namespace, mode).is_some_and(|entry| entry.template.is_ok()) =>
        {
            true
        }
        _ => {
            missing(request, (view, namespace), findings);
            false
        }
    }
}

fn missing(request: &BuildRequest, (view, namespace): (&TemplatesView, &str), findings: &mut Findings) {
    let mode = &request.mode;
    let config_map = format!("{}/{}", view.namespace(namespace), template_name(mode));
    match view.template(namespace, mode).map(|entry| &entry.template) {
        Some(Err(faults)) => faults.iter().for_each(|fault| findings.fault(fault.clone())),
        Some(Ok(_)) => {
            // The webhook that completes builds has not seen this one.
            let sentence = format!("are not those of the template {config_map}");
            let remedy = "apply the object without steps, so that the template's are filled in";
            findings.fault(Fault::new(Reason::TemplateMissing, STEPS, sentence, remedy));
        }
        None => {
            let modes: Vec<_> = view.modes(namespace).collect();
            let there = if modes.is_empty() {
                "no mode has a template there".to_owned()
            } else {
                format!("modes with a template there: {}", modes.join(", "))
            };
            let sentence = format!("{mode} has no template: ConfigMap {config_map} not found; {there}");
            let remedy = "choose a mode that has one, install the template, or give the steps in mode custom";
            findings.fault(Fault::new(Reason::TemplateMissing, "spec.mode", sentence, remedy));
        }
    }
}

/// A gated build of something that can mean another thing tomorrow.
fn moving(request: &BuildRequest, findings: &mut Findings) {
    if request.gated && !request.source.revision.is_empty() && !is_immutable(&request.source.revision) {
        let text = format!(
            "{} can mean another commit tomorrow; use a commit or a version tag in mode {}",
            request.source.revision, request.mode
        );
        findings.note(Note::new(Reason::MovingReference, request.front.paths.revision, text));
    }
}
