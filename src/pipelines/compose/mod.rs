//! One PipelineRun from one request: the whole pipeline embedded, tasks in order.
//!
//! In: a request, the steps of its namespace, the platform's settings, and the ServiceAccounts that builds may use
//! where those are known. Out: run and claim as JSON, with provenance and warnings; or everything that is wrong. A
//! review asks only for [`examine`], which builds no JSON.

mod envelope;
mod kinds;
mod made_of;
mod members;
mod references;
mod size;
mod task;
mod workspaces;

use std::collections::BTreeSet;

use serde_json::Value;

use super::params::control::Controls;
use super::params::{BUILD_ARGS, Layer, Layers, Traced, dollars, placeholder};
use super::request::BuildRequest;
use super::settings::Settings;
use super::step::Kind;
use super::templates::Steps;
use super::{check, names};
use crate::api::agent_kagenti_dev::provenance::Provenance;
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::keys;
use crate::domain::reason::Reason;
use task::Task;
pub use workspaces::signing_secret;

/// Largest run, in bytes of JSON: Tekton copies the pipeline into the run's status, and etcd stores 1.5 MiB.
pub const MAX_RUN: usize = 640 * 1024;

/// What is created for one attempt at a build.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// The PipelineRun.
    pub run: Value,
    /// The claim that the tasks share.
    pub claim: Value,
    /// Identity of the inputs, 64 hexadecimal digits.
    pub build_hash: String,
    /// Every parameter of every task with the layer it came from, then what steers the run.
    pub provenance: Vec<Traced>,
    /// What the run is made of, as far as it decides the image; its recipe only once it is [`Composition::recorded`].
    pub inputs: Provenance,
    /// Whether every image that the run runs in is named by digest; not looked at where nothing is built by content.
    pub pinned: bool,
    /// What deserves attention.
    pub notes: Vec<Note>,
}

impl Composition {
    /// The same with its recipe, on the run and in the record of what it is made of: only what is about to be made needs one, and to work it out
    /// costs more than everything else here.
    #[must_use]
    pub fn recorded(mut self) -> Self {
        let recipe = made_of::recipe(&self.run);
        self.run["metadata"]["annotations"][keys::ANNOTATION_RECIPE] = recipe.as_str().into();
        self.inputs = Provenance { recipe: Some(recipe), ..self.inputs }.bounded();
        self
    }
}

/// What the platform and the cluster add to a request.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The steps of the namespace that the build names.
    pub steps: &'a Steps,
    /// The platform's settings.
    pub settings: &'a Settings,
    /// ServiceAccounts of the build's namespace that carry label `agent.kagenti.dev/build-account: "true"`; `None`
    /// when they are not known, as in a review.
    pub accounts: Option<&'a BTreeSet<String>>,
}

/// A request that has been looked at, before any JSON is made.
struct Examined<'r> {
    request: &'r BuildRequest,
    build_hash: String,
    attempt_hash: String,
    layers: Layers<'r>,
    controls: Controls,
    tasks: Vec<Task<'r>>,
    /// The parameters of the run.
    run: Vec<(String, String)>,
}

/// Everything that is wrong with a request, and what deserves attention.
#[must_use]
pub fn examine(request: &BuildRequest, around: Surroundings<'_>) -> Findings {
    // Which digits they are decides nothing about what is right, and hashing the inputs took a third of a review.
    examined(request, around, (String::new(), "0".repeat(names::ATTEMPT_DIGITS))).1
}

/// Run and claim for one attempt at a request.
///
/// # Errors
/// Everything that is wrong with the request, its template and its steps.
pub fn compose(request: &BuildRequest, around: Surroundings<'_>) -> Result<Composition, Findings> {
    let build_hash = names::build_hash(request);
    let attempt_hash = names::attempt_hash(&build_hash, request.attempt);
    let (examined, mut findings) = examined(request, around, (build_hash, attempt_hash));
    if !findings.faults.is_empty() || !findings.content.is_empty() {
        return Err(findings);
    }
    let run = envelope::run(&examined, around.settings);
    if let Some(size) = size::over(&run) {
        findings.content(size::too_large(&examined, size));
        return Err(findings);
    }
    let claim = envelope::claim(&examined);
    let inputs = made_of::of(&examined);
    let pinned = around.settings.by_content && examined.tasks.iter().all(made_of::is_pinned);
    let mut provenance: Vec<Traced> = examined.tasks.into_iter().flat_map(|task| task.parameters.traced).collect();
    provenance.extend(examined.controls.traced);
    Ok(Composition { run, claim, build_hash: examined.build_hash, provenance, inputs, pinned, notes: findings.notes })
}

fn examined<'r>(
    request: &'r BuildRequest,
    around: Surroundings<'r>,
    (build_hash, attempt_hash): (String, String),
) -> (Examined<'r>, Findings) {
    let layers = Layers::new(request, &attempt_hash);
    let mut findings = check::request(request, &layers, around.settings);
    let tasks = task::tasks(&layers, request, around, &mut findings);
    references::check(request, &tasks, &mut findings);
    let run = kinds::of_run(&layers, &tasks);
    kinds::check(request, &run, &tasks, &mut findings);
    members::check(&tasks, &mut findings);
    let controls = super::params::control::controls(&layers, &mut findings);
    account(&controls, request, around, &mut findings);
    unused(request, &tasks, &mut findings);
    (Examined { request, build_hash, attempt_hash, layers, controls, tasks, run }, findings)
}

/// A build may only use accounts that were made for builds.
fn account(controls: &Controls, request: &BuildRequest, around: Surroundings<'_>, findings: &mut Findings) {
    let (Some(account), Some(known)) = (&controls.account, around.accounts) else { return };
    if !known.contains(account) {
        let sentence = format!(
            "names ServiceAccount {account}, which does not exist or is not labelled {}=\"true\"",
            crate::domain::keys::LABEL_BUILD_ACCOUNT
        );
        let path = controls
            .traced
            .iter()
            .find(|traced| traced.parameter == super::params::control::ACCOUNT_NAME)
            .map_or(request.front.paths.parameters, |traced| &traced.origin.path);
        let remedy = "use an account that the platform has labelled for builds";
        findings.content(Fault::new(Reason::FieldInvalid, path, sentence, remedy));
    }
}

/// Parameters of the user's that nothing reads.
fn unused(request: &BuildRequest, tasks: &[Task<'_>], findings: &mut Findings) {
    use super::params::{control, derive};
    let complete = request.steps.iter().filter(|step| step.enabled).count() == tasks.len();
    if !complete {
        return;
    }
    let used = if request.parameters.is_empty() { BTreeSet::new() } else { used(request, tasks) };
    for (index, parameter) in request.parameters.iter().enumerate() {
        let name = &parameter.name;
        let named = syntax::is_parameter(name);
        let bound = name == control::SIGNING_SECRET && tasks.iter().any(Task::binds_signing_key);
        if named && !bound && !control::is_control(name) && !used.contains(name.as_str()) {
            let path = format!("{}[{index}]", request.front.paths.parameters);
            let given = derive::derived(request, "").iter().any(|derived| derived.name == *name);
            let field = derive::field_of(request, name).filter(|_| !given);
            let instead = field.map_or(String::new(), |field| format!(". Fill {field} instead"));
            let text = format!("no step declares a parameter {name}; it has no effect{instead}");
            findings.note(Note::new(Reason::ParameterUnused, path, text));
        }
    }
    arguments_unused(request, tasks, findings);
}

/// The parameters that are read: by TaskSpecs, by placeholders of the template, and by conditions.
fn used<'r>(request: &'r BuildRequest, tasks: &[Task<'r>]) -> BTreeSet<&'r str> {
    let by_task = tasks.iter().map(|task| task.step).flat_map(|step| {
        let declared = step.params.iter().map(|declared| declared.name.as_str());
        declared.chain(step.propagated.keys().map(String::as_str))
    });
    let texts = request.template.iter().flat_map(|template| {
        let steps = template.steps.iter().flat_map(|entry| &entry.step.parameters);
        steps.chain(&template.globals).map(|parameter| &parameter.value)
    });
    let filled = texts.flat_map(|text| placeholder::names(text));
    let whens = request.steps.iter().flat_map(|step| &step.when);
    let whens = whens.flat_map(|when| std::iter::once(&when.input).chain(&when.values));
    let named = whens.flat_map(|text| dollars::read(text));
    by_task.chain(filled).chain(named).collect()
}

/// Build arguments that reach no task: none takes them, or each has a list of its own.
fn arguments_unused(request: &BuildRequest, tasks: &[Task<'_>], findings: &mut Findings) {
    let path = request.front.paths.build_arguments;
    if request.build_arguments.is_empty() {
        return;
    }
    let takes = |task: &&Task<'_>| task.step.param(BUILD_ARGS).is_some_and(|declared| declared.kind == Kind::List);
    let taken = tasks.iter().filter(takes).flat_map(|task| &task.parameters.traced);
    let taken: Vec<_> = taken.filter(|traced| traced.parameter == BUILD_ARGS).collect();
    if taken.is_empty() {
        let text =
            format!("no step takes build arguments (a parameter {BUILD_ARGS} of type array); they have no effect");
        findings.note(Note::new(Reason::ParameterUnused, path, text));
    } else if let Some(over) = taken.iter().find(|traced| traced.origin.layer != Layer::BuildArguments) {
        let step = over.step.as_deref().unwrap_or_default();
        let text = format!("step {step} uses {BUILD_ARGS} of {} in their place; keep one of the two", over.origin.path);
        findings.note(Note::new(Reason::ValueShadowed, path, text));
    }
}

#[cfg(test)]
mod tests;
