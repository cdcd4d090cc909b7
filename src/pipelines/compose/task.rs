//! One task per enabled step: its TaskSpec, its parameters, what it runs after.

use serde_json::{Map, Value, json};

use super::Surroundings;
use super::workspaces::{self, Binding};
use crate::api::findings::{Fault, Findings, Note};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::check::source::{host, is_http, is_secret};
use crate::pipelines::params::{Layers, StepParameters};
use crate::pipelines::reference;
use crate::pipelines::request::{BuildRequest, StepUse, When};
use crate::pipelines::settings::Settings;
use crate::pipelines::step::Step;

/// A step that can run.
pub(super) struct Task<'r> {
    /// Its place among the steps.
    pub(super) index: usize,
    pub(super) entry: &'r StepUse,
    pub(super) step: &'r Step,
    pub(super) parameters: StepParameters,
    pub(super) bindings: Vec<Binding>,
}

impl Task<'_> {
    pub(super) fn name(&self) -> &str {
        &self.entry.name
    }

    pub(super) fn binds_signing_key(&self) -> bool {
        self.bindings.iter().any(|binding| binding.workspace == keys::WORKSPACE_SIGNING_KEY)
    }
}

/// The tasks of a request; steps that cannot be used are faults and left out.
pub(super) fn tasks<'r>(
    layers: &Layers<'r>,
    request: &'r BuildRequest,
    around: Surroundings<'r>,
    findings: &mut Findings,
) -> Vec<Task<'r>> {
    let mut tasks = Vec::with_capacity(request.steps.len());
    for (index, entry) in request.steps.iter().enumerate().filter(|(_, entry)| entry.enabled) {
        let Some(step) = usable(request, index, around, findings) else { continue };
        step.notes.iter().for_each(|note| findings.note(note.clone()));
        propagated(request, layers, step, findings);
        secret_names(request, index, step, findings);
        let parameters = layers.of_step(index, step, findings);
        let bindings = workspaces::bindings(request, (index, step), around.settings, findings);
        repository((request, around.settings), index, (&parameters, &bindings), findings);
        tasks.push(Task { index, entry, step, parameters, bindings });
    }
    tasks
}

fn usable<'r>(
    request: &BuildRequest,
    index: usize,
    around: Surroundings<'r>,
    findings: &mut Findings,
) -> Option<&'r Step> {
    let name = &request.steps[index].config_map;
    let path = format!("{}[{index}].configMap", request.front.paths.steps);
    if name.is_empty() {
        return None;
    }
    let Some(entry) = around.steps.get(name) else {
        findings.content(absent(request, around, name, path));
        return None;
    };
    if let Some(pinned) = request.pinned_steps.get(name).filter(|pinned| **pinned != entry.hash) {
        let sentence = format!(
            "names ConfigMap {name}, whose content changed since the review (reviewed {}, now {})",
            short(pinned),
            short(&entry.hash)
        );
        let remedy = format!(
            "read the change; to accept it, set annotation {} to a new value",
            keys::ANNOTATION_REFRESH_TEMPLATE
        );
        findings.content(Fault::new(Reason::StepDrift, path, sentence, remedy));
    }
    match &entry.step {
        Ok(step) => Some(step),
        Err(faults) => {
            faults.iter().for_each(|fault| findings.content(fault.clone()));
            None
        }
    }
}

/// Of an ordinary namespace the ConfigMaps without the label are not even looked at: it is what is most often missing.
fn absent(request: &BuildRequest, around: Surroundings<'_>, name: &str, path: String) -> Fault {
    let (namespace, key) = (&request.steps_namespace, keys::KEY_TASK_SPEC);
    let (sentence, remedy) = if *namespace == around.settings.operator_namespace {
        (
            format!("names nothing: step ConfigMap {name} not found"),
            format!(
                "create the ConfigMap in namespace {namespace}, with key {key}, or let the pipeline's namespace be the one \
                 that has it"
            ),
        )
    } else {
        let label = format!("{}={}", keys::LABEL_STEP, keys::LABEL_STEP_VALUE);
        (
            format!("names a ConfigMap that lacks label {label} or does not exist: step ConfigMap {name} not found"),
            format!(
                "if it exists, label it: kubectl -n {namespace} label configmap {name} {label}; else create it with that \
                 label and key {key}, or let the pipeline's namespace be the one that has it"
            ),
        )
    };
    Fault::new(Reason::StepMissing, path, sentence, remedy).seeing(name)
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// What a TaskSpec reads without declaring it must be a parameter of the run.
fn propagated(request: &BuildRequest, layers: &Layers<'_>, step: &Step, findings: &mut Findings) {
    if step.propagated.is_empty() {
        return;
    }
    for (name, place) in &step.propagated {
        if !layers.is_of_run(name) {
            let path = format!("ConfigMap {}: {place}", step.config_map);
            let sentence = format!("reads parameter {name}, which neither the TaskSpec nor the run has");
            let remedy = format!("declare it in the TaskSpec, or add it to {}", request.front.paths.parameters);
            findings.content(Fault::new(Reason::ReferenceInvalid, path, sentence, remedy));
        }
    }
}

/// Credentials go to the host that the build names beside them: what another layer gives as repository, a template by a placeholder or a
/// step by a result, has the same host, or the step gets no credentials and does not run. Over http they go where the platform allows it, or the build's
/// own source is read so.
fn repository(
    (request, settings): (&BuildRequest, &Settings),
    index: usize,
    (parameters, bindings): (&StepParameters, &[Binding]),
    findings: &mut Findings,
) {
    const REPOSITORY: &str = "repo-url";
    if !bindings.iter().any(|binding| binding.workspace == keys::WORKSPACE_GIT_AUTH) {
        return;
    }
    let named = host(&request.source.repository);
    let given = parameters.passed.iter().find(|(name, _)| name == REPOSITORY).and_then(|(_, value)| value.as_str());
    let Some(given) = given else { return };
    let is_elsewhere = reference::mentions(given) || !host(given).eq_ignore_ascii_case(named);
    let is_open = is_http(given) && !settings.insecure_git && !is_http(&request.source.repository);
    if is_elsewhere || is_open {
        let how = if is_elsewhere { "to another repository" } else { "over http, where anybody can read them" };
        let path = format!("{}[{index}]", request.front.paths.steps);
        let sentence = format!(
            "would send the source's credentials, which are for {named}, {how}: its {REPOSITORY} comes from elsewhere"
        );
        let remedy = format!("leave {REPOSITORY} to {}, or take the credentials out", request.front.paths.repository);
        let fault = Fault::new(Reason::FieldInvalid, path, sentence, remedy);
        findings.content(if is_secret(REPOSITORY, given) { fault } else { fault.seeing(given) });
    }
}

/// Old steps mount the Secret that parameter `registry-secret` names.
fn secret_names(request: &BuildRequest, index: usize, step: &Step, findings: &mut Findings) {
    let given =
        request.parameters.iter().chain(&request.steps[index].parameters).any(|one| one.name == "registry-secret");
    if step.param("registry-secret").is_some() && request.registry_auth.is_none() && !given {
        let path = format!("{}[{index}]", request.front.paths.steps);
        let text = format!(
            "ConfigMap {} mounts the Secret that registry-secret names, and the build names none; fill {}",
            step.config_map, request.front.paths.registry_auth
        );
        findings.note(Note::new(Reason::RegistrySecretAbsent, path, text));
    }
}

/// The task as Tekton reads it.
pub(super) fn render(task: &Task<'_>, after: Option<&Task<'_>>) -> Value {
    let mut rendered = Map::new();
    rendered.insert("name".to_owned(), json!(task.name()));
    if let Some(after) = after {
        rendered.insert("runAfter".to_owned(), json!([after.name()]));
    }
    if !task.entry.when.is_empty() {
        rendered.insert("when".to_owned(), task.entry.when.iter().map(when).collect());
    }
    if !task.parameters.passed.is_empty() {
        let params = task.parameters.passed.iter().map(|(name, value)| json!({"name": name, "value": value}));
        rendered.insert("params".to_owned(), params.collect());
    }
    if !task.bindings.is_empty() {
        rendered.insert("workspaces".to_owned(), task.bindings.iter().map(Binding::render).collect());
    }
    rendered.insert("taskSpec".to_owned(), task.step.task_spec.clone());
    Value::Object(rendered)
}

fn when(when: &When) -> Value {
    json!({"input": when.input, "operator": when.operator, "values": when.values})
}
