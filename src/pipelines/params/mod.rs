//! Where a parameter's value comes from.
//!
//! In: a request and, per step, its TaskSpec's declarations. Out: for every parameter of every step the value, its
//! layer, the place it was written at, and what it shadowed. Later layers of [`Layer`] lose against earlier ones.

pub mod control;
pub mod derive;
pub(in crate::pipelines) mod dollars;
mod layers;
pub mod placeholder;
mod value;

pub use layers::{BUILD_ARGS, Given, Layers, StepParameters};
pub use value::{Fit, fit};

use serde_json::Value;

/// Where a value comes from; the first that gives one wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The user, for one step.
    UserStep,
    /// The user, for all steps.
    User,
    /// The template, for one step.
    TemplateStep,
    /// Other fields of the object.
    Derived,
    /// The template, for all steps.
    TemplateGlobal,
    /// The object's build arguments.
    BuildArguments,
    /// The TaskSpec's own default.
    TaskDefault,
}

impl Layer {
    /// The layer's name, for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::UserStep => "the step's parameters",
            Layer::User => "the pipeline's parameters",
            Layer::TemplateStep => "the template's step",
            Layer::Derived => "another field",
            Layer::TemplateGlobal => "the template's global parameters",
            Layer::BuildArguments => "the build arguments",
            Layer::TaskDefault => "the TaskSpec's default",
        }
    }
}

/// A value that was given in one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// Which layer.
    pub layer: Layer,
    /// Where it was written.
    pub path: String,
    /// The value, as it would have been passed on.
    pub value: Value,
}

/// One parameter of one step, with its history.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The step; `None` for what concerns the whole run.
    pub step: Option<String>,
    /// The parameter.
    pub parameter: String,
    /// What it is and where it came from.
    pub origin: Origin,
    /// What it shadowed, strongest first.
    pub shadowed: Vec<Origin>,
}

#[cfg(test)]
mod tests;
