//! The list of steps, and the references in it, as far as the list alone tells.

use std::collections::BTreeSet;

use super::{parameters, source};
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::params::{control, derive};
use crate::pipelines::reference::{self, Part, Target};
use crate::pipelines::request::{BuildRequest, StepUse, StepsFrom, When};
use crate::pipelines::template::MAX_STEPS;

pub(super) fn check(request: &BuildRequest, findings: &mut Findings) {
    let path = request.front.paths.steps;
    let steps = &request.steps;
    if steps.is_empty() {
        findings.fault(Fault::new(Reason::FieldRequired, path, "must contain at least one step", "add a step"));
        return;
    }
    if steps.len() > MAX_STEPS {
        let sentence = format!("has {} entries; at most {MAX_STEPS} are allowed", steps.len());
        findings.fault(Fault::invalid(path, sentence, "put several Tekton steps into one ConfigMap"));
        return;
    }
    if steps.iter().all(|step| !step.enabled) {
        findings.fault(Fault::invalid(path, "has no enabled step", "enable a step"));
    }
    let mut names = BTreeSet::new();
    for (index, step) in steps.iter().enumerate() {
        let at = format!("{path}[{index}]");
        name(&step.name, &at, &mut names, findings);
        if step.config_map.is_empty() {
            findings.fault(Fault::required(format!("{at}.configMap"), "name the ConfigMap of the step"));
        } else if !syntax::is_subdomain(&step.config_map) {
            let sentence = format!("is not {}", syntax::SUBDOMAIN);
            let fault = Fault::invalid(format!("{at}.configMap"), sentence, "name a ConfigMap");
            findings.fault(fault.seeing(&step.config_map));
        }
        parameters::names(&step.parameters, &format!("{at}.parameters"), findings);
        credentials(request, step, &at, findings);
        if step.enabled {
            signing_secret(request, step, &at, findings);
            References { request, index, at: &at }.check(step, findings);
            taken_over(request, step, &at, findings);
        }
    }
}

fn name<'n>(name: &'n str, at: &str, seen: &mut BTreeSet<&'n str>, findings: &mut Findings) {
    let at = format!("{at}.name");
    if name.is_empty() {
        findings.fault(Fault::required(at, "name the step"));
    } else if !syntax::is_label(name) {
        findings.fault(Fault::invalid(at, format!("is not {}", syntax::LABEL), "rename the step").seeing(name));
    } else if !seen.insert(name) {
        let sentence = "is a duplicate of an earlier step's";
        findings.fault(Fault::new(Reason::DuplicateName, at, sentence, "rename one of the steps").seeing(name));
    }
}

/// The Secret with the signing key is bound as a workspace: it must be a name, not a reference.
fn signing_secret(request: &BuildRequest, step: &StepUse, at: &str, findings: &mut Findings) {
    if step.name != keys::TASK_SIGN || request.steps_from != StepsFrom::User {
        return;
    }
    let named = step.parameters.iter().enumerate().filter(|(_, one)| one.name == control::SIGNING_SECRET);
    for (index, parameter) in named {
        if let Some(wanted) = control::wanted(&parameter.name, &parameter.value) {
            let at = format!("{at}.parameters[{index}].value");
            let sentence = format!("of {} is not {wanted}", parameter.name);
            findings.fault(Fault::invalid(at, sentence, "name the Secret").seeing(&parameter.value));
        }
    }
}

/// What the user gives a step in place of the source's repository is as public as that field, also where the step is disabled.
fn credentials(request: &BuildRequest, step: &StepUse, at: &str, findings: &mut Findings) {
    if request.steps_from != StepsFrom::User {
        return;
    }
    for (index, parameter) in step.parameters.iter().enumerate() {
        let path = || format!("{at}.parameters[{index}].value");
        let fault = source::credential(&parameter.name, &parameter.value, path);
        fault.into_iter().for_each(|fault| findings.fault(fault));
    }
}

/// A step of the user's own beats the pipeline's parameters: worth saying when both give a value.
fn taken_over(request: &BuildRequest, step: &StepUse, at: &str, findings: &mut Findings) {
    if request.steps_from != StepsFrom::User || step.parameters.is_empty() {
        return;
    }
    let given: BTreeSet<&str> = request.parameters.iter().map(|one| one.name.as_str()).collect();
    for (index, parameter) in step.parameters.iter().enumerate() {
        if given.contains(parameter.name.as_str()) {
            let text = format!(
                "{} is also in {}; the step's own value is used here",
                parameter.name, request.front.paths.parameters
            );
            findings.note(Note::new(Reason::ValueShadowed, format!("{at}.parameters[{index}]"), text));
        }
    }
}

/// What a template gives the step at `index` for all steps, or through a placeholder, stands in no entry of the step's:
/// its references obey the same rules. `given`: each text and where it was written.
pub(in crate::pipelines) fn given(
    request: &BuildRequest,
    index: usize,
    given: &[(&str, &str)],
    findings: &mut Findings,
) {
    let at = format!("{}[{index}]", request.front.paths.steps);
    let references = References { request, index, at: &at };
    let mut read = BTreeSet::new();
    let refer: Vec<_> = given.iter().filter(|(text, _)| reference::mentions(text)).collect();
    if refer.is_empty() {
        return;
    }
    // A reference that came from a field or parameter of the user's, by a placeholder, has been refused there.
    let derived = derive::derived(request, "");
    let values = derived.iter().map(|one| &one.value).chain(request.parameters.iter().map(|one| &one.value));
    let users: BTreeSet<&str> = values.flat_map(|value| reference::in_text(value)).map(|one| one.text).collect();
    for (text, at) in refer {
        if !reference::in_text(text).iter().any(|one| users.contains(one.text)) {
            references.text(text, (at, false), &mut read, findings);
        }
    }
    references.guards(&request.steps[index], &read, findings);
}

/// The references of one step, against the steps before it.
struct References<'a> {
    request: &'a BuildRequest,
    index: usize,
    at: &'a str,
}

impl References<'_> {
    fn check(&self, step: &StepUse, findings: &mut Findings) {
        let mut read = BTreeSet::new();
        for (index, parameter) in step.parameters.iter().enumerate() {
            let at = format!("{}.parameters[{index}].value", self.at);
            self.text(&parameter.value, (&at, false), &mut read, findings);
        }
        for (index, when) in step.when.iter().enumerate() {
            let at = format!("{}.whenExpressions[{index}]", self.at);
            self.when(when, &at, &mut read, findings);
        }
        self.guards(step, &read, findings);
    }

    fn when(&self, when: &When, at: &str, read: &mut BTreeSet<String>, findings: &mut Findings) {
        if !["in", "notin"].contains(&when.operator.as_str()) {
            let fault = Fault::invalid(format!("{at}.operator"), "is neither in nor notin", "write in or notin");
            findings.fault(fault.seeing(&when.operator));
        }
        if when.values.is_empty() {
            let sentence = "is empty; Tekton wants at least one value";
            findings.fault(Fault::new(Reason::FieldRequired, format!("{at}.values"), sentence, "add a value"));
        }
        self.text(&when.input, (&format!("{at}.input"), true), read, findings);
        for (index, value) in when.values.iter().enumerate() {
            self.text(value, (&format!("{at}.values[{index}]"), true), read, findings);
        }
    }

    /// Every reference of one text; the steps whose results it reads are added to `read`.
    fn text(&self, text: &str, (at, in_when): (&str, bool), read: &mut BTreeSet<String>, findings: &mut Findings) {
        for one in reference::in_text(text) {
            if let Target::Result { task, .. } = one.target {
                read.insert(task.to_owned());
            }
            let wrong = match one.target {
                Target::Result { task, .. } => self.earlier(task),
                Target::Run => None,
                Target::Param { name, part: Part::Whole } if in_when => (!self.is_run_parameter(name))
                    .then(|| format!("names parameter {name}, which the run does not have")),
                _ if in_when => Some(
                    "is none of $(tasks.STEP.results.NAME), $(params.NAME) and $(context.pipelineRun.name)".to_owned(),
                ),
                _ => Some("is neither $(tasks.STEP.results.NAME) nor $(context.pipelineRun.name)".to_owned()),
            };
            if let Some(sentence) = wrong {
                let remedy = match self.request.steps_from {
                    StepsFrom::User => "refer to a result of an earlier enabled step, or write the value itself",
                    StepsFrom::Template => "correct the template that the step comes from, or choose another mode",
                };
                findings.fault(Fault::new(Reason::ReferenceInvalid, at, sentence, remedy).seeing(one.text));
            }
        }
    }

    fn earlier(&self, task: &str) -> Option<String> {
        let position = self.request.steps.iter().position(|step| step.name == task);
        match position {
            None => Some(format!("names step {task}, which does not exist")),
            Some(position) if !self.request.steps[position].enabled => {
                Some(format!("names step {task}, which is disabled"))
            }
            Some(position) if position == self.index => Some("names a result of the step itself".to_owned()),
            Some(position) if position > self.index => Some(format!("names step {task}, which runs later")),
            Some(_) => None,
        }
    }

    fn is_run_parameter(&self, name: &str) -> bool {
        let user = self.request.parameters.iter().any(|one| one.name == name && !control::is_control(name));
        user || derive::derived(self.request, "").iter().any(|derived| derived.name == name)
    }

    /// The skip trap (10.3): a step that reads the result of a skipped one is skipped itself, and the run is green.
    fn guards(&self, step: &StepUse, read: &BTreeSet<String>, findings: &mut Findings) {
        for other in
            self.request.steps.iter().take(self.index).filter(|other| other.enabled && read.contains(&other.name))
        {
            let guarded = other.when.iter().all(|when| step.when.contains(when));
            if guarded {
                continue;
            }
            let name = &other.name;
            let text = format!(
                "reads a result of step {name}, which may be skipped; step {} would then be skipped silently",
                step.name
            );
            if self.request.gated {
                let remedy =
                    format!("give it the conditions of {name}, or read the result from a step without conditions");
                findings.fault(Fault::new(Reason::ReferenceInvalid, self.at, text, remedy));
            } else {
                let text = format!("{text}; give it the conditions of {name}");
                findings.note(Note::new(Reason::GuardMissing, self.at, text));
            }
        }
    }
}
