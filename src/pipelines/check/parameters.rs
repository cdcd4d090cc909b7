//! The user's parameters and build arguments, against the template's demands and locks.

use std::collections::BTreeSet;

use super::source;
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::reason::Reason;
use crate::pipelines::params::{BUILD_ARGS, Layers, control, derive};
use crate::pipelines::reference;
use crate::pipelines::request::{BuildRequest, Parameter, StepsFrom};

/// Longest value of a parameter: it reaches its step as one environment variable, which the kernel limits.
pub(super) const MAX_VALUE: usize = 64 * 1024;

pub(super) fn check(request: &BuildRequest, layers: &Layers<'_>, findings: &mut Findings) {
    let paths = &request.front.paths;
    names(&request.parameters, paths.parameters, findings);
    for (index, parameter) in request.parameters.iter().enumerate() {
        let at = format!("{}[{index}]", paths.parameters);
        one(request, parameter, &at, findings);
    }
    required(request, layers, findings);
    build_arguments(request, findings);
    for (path, value) in layers.derived().iter().map(|derived| (&derived.path, &derived.value)) {
        if reference::mentions(value) && !findings.faults.iter().any(|fault| fault.path.starts_with(path)) {
            let sentence = "contains $(, which Tekton would replace";
            findings.fault(Fault::new(Reason::ReferenceInvalid, path, sentence, "remove it").seeing(value));
        }
    }
}

/// Names are parameter names, each once; values are not larger than what can be passed on.
pub(super) fn names(parameters: &[Parameter], path: &str, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for (index, parameter) in parameters.iter().enumerate() {
        let at = format!("{path}[{index}]");
        if parameter.name.is_empty() {
            findings.fault(Fault::required(format!("{at}.name"), "name the parameter"));
            continue;
        }
        if !syntax::is_parameter(&parameter.name) {
            let fault =
                Fault::invalid(format!("{at}.name"), format!("is not {}", syntax::PARAMETER), "correct the name");
            findings.fault(fault.seeing(&parameter.name));
        }
        if !seen.insert(&parameter.name) {
            let fault =
                Fault::new(Reason::DuplicateName, format!("{at}.name"), "occurs twice", "keep one of the entries");
            findings.fault(fault.seeing(&parameter.name));
        }
        if parameter.value.len() > MAX_VALUE {
            let sentence = format!("has {} bytes; at most {MAX_VALUE} can be passed to a step", parameter.value.len());
            findings.fault(Fault::invalid(format!("{at}.value"), sentence, "put the text into the repository"));
        }
        if parameter.value.contains('\0') {
            let sentence = "contains a NUL character, which no environment variable can hold";
            findings.fault(Fault::invalid(format!("{at}.value"), sentence, "remove it"));
        }
    }
}

fn one(request: &BuildRequest, parameter: &Parameter, at: &str, findings: &mut Findings) {
    let Parameter { name, value } = parameter;
    if reference::mentions(value) {
        let sentence = "contains $(, which Tekton refuses in the parameters of a run";
        let remedy = "remove it, or give the value to a step of your own";
        let fault = Fault::new(Reason::ReferenceInvalid, format!("{at}.value"), sentence, remedy);
        findings.fault(if source::is_secret(name, value) { fault } else { fault.seeing(value) });
    } else {
        source::replaced(request, name, (&format!("{at}.value"), value), findings);
    }
    if let Some(wanted) = control::wanted(name, value) {
        let fault = Fault::invalid(format!("{at}.value"), format!("of {name} is not {wanted}"), "correct the value");
        findings.fault(fault.seeing(value));
    }
    if name == derive::CANDIDATE_IMAGE {
        let remedy = format!("remove it; it follows from {}", request.front.paths.output);
        let sentence = "is a reserved name";
        findings.fault(Fault::new(Reason::ParameterLocked, format!("{at}.name"), sentence, remedy).seeing(name));
    } else if let Some(step) = locked_by(request, name) {
        let sentence = format!("is a locked parameter: step {step} of the template keeps its value");
        findings.fault(Fault::new(Reason::ParameterLocked, format!("{at}.name"), sentence, "remove it").seeing(name));
    }
    if let Some(field) = derive::field_of(request, name)
        && name != derive::CANDIDATE_IMAGE
        && layers_gives(request, name)
    {
        let text = format!("{name} replaces the value that {field} gives; keep one of the two");
        findings.note(Note::new(Reason::DerivedOverridden, at, text));
    }
}

/// The step of the template that keeps its value of this parameter.
fn locked_by<'r>(request: &'r BuildRequest, name: &str) -> Option<&'r str> {
    let template = request.template.as_ref().filter(|_| request.steps_from == StepsFrom::Template)?;
    template.locked().find(|(lock, _)| *lock == name).map(|(_, step)| step)
}

/// Whether the object's own fields give this parameter.
fn layers_gives(request: &BuildRequest, name: &str) -> bool {
    derive::derived(request, "").iter().any(|derived| derived.name == name)
}

fn required(request: &BuildRequest, layers: &Layers<'_>, findings: &mut Findings) {
    let paths = &request.front.paths;
    let of_template = request.template.iter().flat_map(|template| template.required.iter().map(|name| (None, name)));
    let of_steps = request.steps.iter().enumerate().filter(|(_, step)| step.enabled).flat_map(|(index, step)| {
        let template = request.template.iter().flat_map(|template| &template.steps);
        let of_template = template.filter(|entry| entry.step.name == step.name).flat_map(|entry| &entry.step.required);
        step.required.iter().chain(of_template).map(move |name| (Some(index), name))
    });
    let mut told = BTreeSet::new();
    for (index, name) in of_template.chain(of_steps) {
        if layers.provides(index, name) || names_secret(request, name) || !told.insert(name) {
            continue;
        }
        if is_told(request, name, &findings.faults) {
            continue;
        }
        let field = derive::field_of(request, name);
        let by = index.map_or("the template".to_owned(), |index| format!("step {}", request.steps[index].name));
        let sentence = format!("leaves a required parameter open: {name} is not provided, and {by} needs it");
        let remedy = match field {
            Some(field) => format!("fill {field}"),
            None => format!("add an entry named {name}"),
        };
        let path = field.unwrap_or(paths.parameters);
        findings.fault(Fault::new(Reason::ParameterMissing, path, sentence, remedy).of_parameter(name));
    }
}

/// Whether the object names the Secret that a required parameter asks for: tasks have it as a workspace, whether or not its name is passed on.
fn names_secret(request: &BuildRequest, parameter: &str) -> bool {
    match parameter {
        "registry-secret" => request.registry_auth.is_some(),
        "SOURCE_REPO_SECRET" => request.git_auth.is_some(),
        _ => false,
    }
}

/// Whether faults already tell that a parameter has no value, or blame the field that it would follow from.
pub(in crate::pipelines) fn is_told(request: &BuildRequest, name: &str, faults: &[Fault]) -> bool {
    let field = derive::field_of(request, name);
    faults.iter().any(|fault| {
        fault.parameter.as_deref() == Some(name) || field.is_some_and(|field| fault.path.starts_with(field))
    })
}

fn build_arguments(request: &BuildRequest, findings: &mut Findings) {
    let path = request.front.paths.build_arguments;
    if let Some(step) = locked_by(request, BUILD_ARGS).filter(|_| !request.build_arguments.is_empty()) {
        let sentence = format!(
            "gives build arguments, which are passed as {BUILD_ARGS}, a locked parameter: step {step} of the template keeps its value"
        );
        let fault = Fault::new(Reason::ParameterLocked, path, sentence, "remove the build arguments");
        findings.fault(fault.of_parameter(BUILD_ARGS));
    }
    let mut seen = BTreeSet::new();
    for (index, argument) in request.build_arguments.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = &argument.name;
        if !syntax::is_variable(name) {
            let sentence = "is not the name of a build argument: a letter or _, then letters, digits and _";
            findings.fault(Fault::invalid(format!("{at}.name"), sentence, "correct the name").seeing(name));
        }
        if !seen.insert(name) {
            let fault =
                Fault::new(Reason::DuplicateName, format!("{at}.name"), "occurs twice", "keep one of the entries");
            findings.fault(fault.seeing(name));
        }
        if argument.value.contains(['\n', '\r', '\0']) || reference::mentions(&argument.value) {
            let sentence = "contains a line break or $(, which cannot be passed on";
            findings.fault(Fault::invalid(format!("{at}.value"), sentence, "remove it").seeing(&argument.value));
        }
        if argument.value.len() > MAX_VALUE {
            let sentence = format!("has {} bytes; at most {MAX_VALUE} can be passed on", argument.value.len());
            findings.fault(Fault::invalid(format!("{at}.value"), sentence, "put the text into the repository"));
        }
    }
}
