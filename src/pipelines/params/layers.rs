//! The layers of one request, and the value each parameter has in them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::derive::{self, Derived};
use super::placeholder::PlaceholderError;
use super::{Layer, Origin, Traced, control, dollars, placeholder, value};
use crate::api::findings::{Fault, Findings, Note};
use crate::domain::reason::Reason;
use crate::pipelines::request::{BuildRequest, Parameter, StepsFrom};
use crate::pipelines::step::{Declared, Kind, Step};

/// The array parameter that takes the build arguments.
pub const BUILD_ARGS: &str = "BUILD_ARGS";

/// A text that was given somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Which layer.
    pub layer: Layer,
    /// Where it was written.
    pub path: String,
    /// The text, or what keeps its placeholders from being replaced.
    pub text: Result<String, String>,
}

/// The layers that hold for all steps.
#[derive(Debug, Clone)]
pub struct Layers<'r> {
    request: &'r BuildRequest,
    derived: Vec<Derived>,
    /// Where the user's parameters of each name stand.
    users: BTreeMap<&'r str, usize>,
    /// Where the template's of each name stand.
    globals: BTreeMap<&'r str, usize>,
    /// Of what placeholders stand for, the template's own whose text has placeholders itself: replaced once, they would arrive as they are.
    nested: BTreeSet<String>,
}

/// The parameters of one step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepParameters {
    /// What is passed to the task, in the order in which the TaskSpec declares them.
    pub passed: Vec<(String, Value)>,
    /// The history of each.
    pub traced: Vec<Traced>,
}

/// Where the parameter of each name stands in a list; of one that is there twice, the first.
fn places(parameters: &[Parameter]) -> BTreeMap<&str, usize> {
    let mut places = BTreeMap::new();
    for (index, parameter) in parameters.iter().enumerate() {
        places.entry(parameter.name.as_str()).or_insert(index);
    }
    places
}

impl<'r> Layers<'r> {
    /// The layers of a request whose attempt has that hash.
    #[must_use]
    pub fn new(request: &'r BuildRequest, attempt_hash: &str) -> Self {
        let derived = derive::derived(request, attempt_hash);
        let users = places(&request.parameters);
        let of_template = request.template.iter().flat_map(|template| &template.globals);
        let over = |name: &str| derived.iter().any(|one| one.name == name) || users.contains_key(name);
        let nested = of_template.filter(|one| placeholder::mentions(&one.value) && !over(&one.name));
        let nested = nested.map(|one| one.name.clone()).collect();
        let globals = request.template.as_ref().map(|template| places(&template.globals)).unwrap_or_default();
        Self { request, derived, users, globals, nested }
    }

    /// The derived parameters.
    #[must_use]
    pub fn derived(&self) -> &[Derived] {
        &self.derived
    }

    fn filled(&self, text: &str) -> Result<String, String> {
        if !placeholder::mentions(text) {
            return Ok(text.to_owned());
        }
        if let Some(name) = placeholder::names(text).into_iter().find(|name| self.nested.contains(*name)) {
            let error = PlaceholderError::Nested(name.to_owned());
            return Err(error.to_string());
        }
        placeholder::filled(text, |name| self.placeholder(name)).map_err(|error| error.to_string())
    }

    /// What a placeholder stands for: the template's global, under what the object's fields give, under the user's parameter.
    fn placeholder(&self, name: &str) -> Option<&str> {
        let of_user = self.users.get(name).and_then(|index| self.request.parameters.get(*index));
        let of_template = || {
            let template = self.request.template.as_ref()?;
            template.globals.get(*self.globals.get(name)?)
        };
        let derived = self.derived.iter().find(|one| one.name == name).map(|one| one.value.as_str());
        of_user.map(|one| one.value.as_str()).or(derived).or_else(|| of_template().map(|one| one.value.as_str()))
    }

    fn user(&self, name: &str) -> Option<Given> {
        let index = *self.users.get(name)?;
        let parameter = self.request.parameters.get(index)?;
        let path = format!("{}[{index}].value", self.request.front.paths.parameters);
        Some(Given { layer: Layer::User, path, text: Ok(parameter.value.clone()) })
    }

    fn global(&self, name: &str) -> Option<Given> {
        let index = *self.globals.get(name)?;
        let parameter = self.request.template.as_ref()?.globals.get(index)?;
        let path = format!("the template's globalParameters[{index}].value");
        Some(Given { layer: Layer::TemplateGlobal, path, text: self.filled(&parameter.value) })
    }

    fn derived_one(&self, name: &str) -> Option<Given> {
        let derived = self.derived.iter().find(|one| one.name == name)?;
        Some(Given { layer: Layer::Derived, path: derived.path.clone(), text: Ok(derived.value.clone()) })
    }

    fn step(&self, index: usize, name: &str) -> Option<Given> {
        let parameters = &self.request.steps.get(index)?.parameters;
        let (position, parameter) = parameters.iter().enumerate().find(|(_, one)| one.name == name)?;
        let path = format!("{}[{index}].parameters[{position}].value", self.request.front.paths.steps);
        Some(match self.request.steps_from {
            StepsFrom::User => Given { layer: Layer::UserStep, path, text: Ok(parameter.value.clone()) },
            StepsFrom::Template => Given { layer: Layer::TemplateStep, path, text: self.filled(&parameter.value) },
        })
    }

    /// What every layer gives for a parameter of a step, strongest first; control parameters only from the step.
    fn given(&self, index: usize, name: &str) -> Vec<Given> {
        let mut given: Vec<Given> = self.step(index, name).into_iter().collect();
        if !control::is_control(name) {
            given.extend([self.user(name), self.derived_one(name), self.global(name)].into_iter().flatten());
        }
        given.sort_by_key(|one| one.layer);
        given
    }

    /// What the strongest layer gives for a parameter of a step, whether or not its TaskSpec declares it.
    #[must_use]
    pub fn strongest(&self, index: usize, name: &str) -> Option<Given> {
        self.given(index, name).into_iter().next()
    }

    /// What the strongest layer gives for a parameter of the run: the user's over the template's.
    #[must_use]
    pub fn strongest_of_run(&self, name: &str) -> Option<Given> {
        self.user(name).or_else(|| self.global(name))
    }

    /// Where the value of a parameter of the run was written: the user's over the derived one.
    #[must_use]
    pub fn path_of_run(&self, name: &str) -> String {
        let given = self.user(name).or_else(|| self.derived_one(name));
        given.map_or_else(|| self.request.front.paths.parameters.to_owned(), |given| given.path)
    }

    /// The text a run-wide parameter has, when one is given: the user's over the template's.
    #[must_use]
    pub fn of_run(&self, name: &str) -> Option<Traced> {
        let mut origins = [self.user(name), self.global(name)].into_iter().flatten().filter_map(|given| {
            let value = Value::String(given.text.ok()?);
            Some(Origin { layer: given.layer, path: given.path, value })
        });
        let origin = origins.next()?;
        Some(Traced { step: None, parameter: name.to_owned(), origin, shadowed: origins.collect() })
    }

    /// Whether a required parameter has a value that is not empty, for a step or (`None`) for the whole template.
    #[must_use]
    pub fn provides(&self, index: Option<usize>, name: &str) -> bool {
        let filled =
            |given: Option<Given>| given.and_then(|given| given.text.ok()).is_some_and(|text| !text.is_empty());
        filled(self.derived_one(name))
            || filled(self.user(name))
            || filled(index.and_then(|index| self.step(index, name)))
            || filled(self.global(name))
    }

    /// Whether the run has a parameter of that name: a derived one, or one of the user's that does not steer it.
    #[must_use]
    pub fn is_of_run(&self, name: &str) -> bool {
        let is_users = self.users.contains_key(name) && !control::is_control(name);
        is_users || self.derived.iter().any(|one| one.name == name)
    }

    /// Parameters of the run: the derived ones, the user's laid over them in place, further ones of the user at the
    /// end; without those that steer the run.
    #[must_use]
    pub fn run_parameters(&self) -> Vec<(String, String)> {
        let user = &self.request.parameters;
        let mut all: Vec<(String, String)> = Vec::with_capacity(self.derived.len() + user.len());
        for derived in &self.derived {
            let over = self.users.get(derived.name.as_str()).and_then(|index| user.get(*index));
            let value = over.map_or(&derived.value, |one| &one.value);
            all.push((derived.name.clone(), value.clone()));
        }
        let known: BTreeSet<&str> = self.derived.iter().map(|one| one.name.as_str()).collect();
        for one in user.iter().filter(|one| !known.contains(one.name.as_str()) && !control::is_control(&one.name)) {
            all.push((one.name.clone(), one.value.clone()));
        }
        all
    }

    /// The parameters of the step at `index`, as its TaskSpec declares them.
    pub fn of_step(&self, index: usize, step: &Step, findings: &mut Findings) -> StepParameters {
        let mut all = StepParameters::default();
        let places = dollars::Places::of(&step.task_spec);
        for declared in &step.params {
            let origins = self.origins(index, declared, findings);
            let mut origins = origins.into_iter();
            let Some(origin) = origins.next() else { continue };
            if origin.layer != Layer::TaskDefault {
                let value = places.passed(&origin.value, &declared.name);
                all.passed.push((declared.name.clone(), value));
            }
            let step = Some(self.request.steps[index].name.clone());
            let parameter = declared.name.clone();
            all.traced.push(Traced { step, parameter, origin, shadowed: origins.collect() });
        }
        self.undeclared(index, step, findings);
        all
    }

    fn origins(&self, index: usize, declared: &Declared, findings: &mut Findings) -> Vec<Origin> {
        let mut origins = Vec::new();
        let name = &declared.name;
        let use_ = &self.request.steps[index];
        for (strength, given) in self.given(index, name).into_iter().enumerate() {
            let wrong = |reason, sentence: &str, remedy: &str| Fault::new(reason, given.path.clone(), sentence, remedy);
            let fitted = match &given.text {
                Ok(text) => value::fit(declared.kind, text).map_err(|sentence| {
                    let remedy = "write a JSON object whose values are strings";
                    wrong(Reason::FieldInvalid, sentence, remedy).seeing(text)
                }),
                Err(sentence) => {
                    let remedy = "give the build a parameter of that name, or correct the template";
                    Err(wrong(Reason::PlaceholderUnknown, sentence, remedy))
                }
            };
            match fitted {
                Ok(value) => origins.push(Origin { layer: given.layer, path: given.path, value }),
                // What a stronger layer shadows does no harm.
                Err(fault) if strength == 0 => {
                    findings.content(fault);
                    return Vec::new();
                }
                Err(_) => {}
            }
        }
        if name == BUILD_ARGS && declared.kind == Kind::List && !self.request.build_arguments.is_empty() {
            let items =
                self.request.build_arguments.iter().map(|one| format!("--build-arg={}={}", one.name, one.value));
            let path = self.request.front.paths.build_arguments.to_owned();
            origins.push(Origin { layer: Layer::BuildArguments, path, value: items.collect() });
        }
        if let Some(default) = &declared.default {
            let path = format!("ConfigMap {}", use_.config_map);
            origins.push(Origin { layer: Layer::TaskDefault, path, value: default.clone() });
        }
        if origins.is_empty() {
            let path = format!("{}[{index}]", self.request.front.paths.steps);
            let sentence = format!("cannot run: step {}: parameter {name} has no value", use_.name);
            let remedy = match derive::field_of(self.request, name) {
                Some(field) => format!("fill {field}"),
                None => format!("add {name} to {}", self.request.front.paths.parameters),
            };
            findings.content(Fault::new(Reason::ParameterMissing, path, sentence, remedy).of_parameter(name));
        }
        origins
    }

    /// A step's own parameters that its TaskSpec does not declare have no effect.
    fn undeclared(&self, index: usize, step: &Step, findings: &mut Findings) {
        for (position, parameter) in self.request.steps[index].parameters.iter().enumerate() {
            if step.param(&parameter.name).is_none() {
                let path = format!("{}[{index}].parameters[{position}]", self.request.front.paths.steps);
                let text =
                    format!("ConfigMap {} declares no parameter {}; it has no effect", step.config_map, parameter.name);
                findings.note(Note::new(Reason::ParameterUnused, path, text));
            }
        }
    }
}
