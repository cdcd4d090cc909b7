//! Pipeline templates: ConfigMap `pipeline-template-<mode>`, key `template.json`.
//!
//! In: the text of the key. Out: a [`Template`], or every fault of it by path. Unknown members are ignored, wrong
//! types are not. A value that is a number or boolean counts as its JSON text.

use serde_json::Value;

use super::request::{Parameter, StepUse, When};
use crate::api::findings::Fault;
use crate::api::syntax;
use crate::api::yaml::kind;
use crate::domain::keys::KEY_TEMPLATE;
use crate::domain::reason::Reason;

/// Most steps a pipeline may have.
pub const MAX_STEPS: usize = 32;

/// A pipeline template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// Display name.
    pub name: String,
    /// Parameters that a build must have.
    pub required: Vec<String>,
    /// The steps, in order; disabled ones included.
    pub steps: Vec<TemplateStep>,
    /// Parameters for all steps, below everything the user gives.
    pub globals: Vec<Parameter>,
    /// Whether builds of this mode may bring their own steps.
    pub custom_steps: bool,
}

/// One step of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateStep {
    /// The step as it goes into a build; its parameters are defaults.
    pub step: StepUse,
    /// Whether the template says `enabled` at all.
    pub says_enabled: bool,
    /// Parameters that builds may not set.
    pub locked: Vec<String>,
}

impl Template {
    /// The steps of a build of this template: disabled ones are left out.
    #[must_use]
    pub fn steps_of_build(&self) -> Vec<StepUse> {
        self.steps.iter().filter(|entry| entry.step.enabled).map(|entry| entry.step.clone()).collect()
    }

    /// How many bytes it takes; `block` weighs an allocation.
    pub(super) fn weight(&self, block: &impl Fn(usize) -> usize) -> usize {
        let list = |count: usize, one: usize| block(count * one);
        let texts = |all: &Vec<String>| -> usize {
            list(all.capacity(), size_of::<String>()) + all.iter().map(|text| block(text.len())).sum::<usize>()
        };
        let pairs = |all: &Vec<Parameter>| -> usize {
            let within = all.iter().map(|one| block(one.name.len()) + block(one.value.len())).sum::<usize>();
            list(all.capacity(), size_of::<Parameter>()) + within
        };
        let when = |when: &When| block(when.input.len()) + block(when.operator.len()) + texts(&when.values);
        let step = |entry: &TemplateStep| {
            let step = &entry.step;
            block(step.name.len())
                + block(step.config_map.len())
                + pairs(&step.parameters)
                + texts(&step.required)
                + list(step.when.capacity(), size_of::<When>())
                + step.when.iter().map(when).sum::<usize>()
                + texts(&entry.locked)
        };
        let steps = self.steps.iter().map(step).sum::<usize>();
        block(size_of::<Self>() + 2 * size_of::<usize>())
            + block(self.name.len())
            + texts(&self.required)
            + pairs(&self.globals)
            + list(self.steps.capacity(), size_of::<TemplateStep>())
            + steps
    }

    /// Every parameter that a build may not set, and the step that locks it.
    pub fn locked(&self) -> impl Iterator<Item = (&str, &str)> {
        self.steps
            .iter()
            .filter(|entry| entry.step.enabled)
            .flat_map(|entry| entry.locked.iter().map(|name| (name.as_str(), entry.step.name.as_str())))
    }
}

/// Reads JSON members and keeps every fault.
pub(super) struct Reader<'a> {
    /// What stands before each path.
    prefix: &'a str,
    reason: Reason,
    remedy: &'static str,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(prefix: &'a str, reason: Reason, remedy: &'static str) -> Self {
        Self { prefix, reason, remedy, faults: Vec::new() }
    }

    pub(super) fn faults(self) -> Vec<Fault> {
        self.faults
    }

    pub(super) fn fault(&mut self, at: &str, sentence: impl Into<String>) {
        self.faults.push(Fault::new(self.reason, format!("{}{at}", self.prefix), sentence, self.remedy));
    }

    fn fault_seeing(&mut self, at: &str, sentence: &str, seen: &str) {
        self.faults.push(Fault::new(self.reason, format!("{}{at}", self.prefix), sentence, self.remedy).seeing(seen));
    }

    /// Text; a number or boolean counts as its JSON text; absent is empty.
    pub(super) fn text(&mut self, of: &Value, key: &str, at: &str) -> String {
        match of.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(value) => match scalar(value) {
                Some(text) => text,
                None => {
                    self.fault(&join(at, key), format!("is not a string; {} was found", kind(value)));
                    String::new()
                }
            },
        }
    }

    fn needed(&mut self, of: &Value, key: &str, at: &str) -> String {
        let before = self.faults.len();
        let text = self.text(of, key, at);
        if text.is_empty() && self.faults.len() == before {
            self.fault(&join(at, key), "is required");
        }
        text
    }

    pub(super) fn list<'v>(&mut self, of: &'v Value, key: &str, at: &str) -> &'v [Value] {
        match of.get(key) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                self.fault(&join(at, key), format!("is not a list; {} was found", kind(other)));
                &[]
            }
        }
    }

    fn texts(&mut self, of: &Value, key: &str, at: &str) -> Vec<String> {
        let items = self.list(of, key, at);
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match scalar(item) {
                Some(text) => texts.push(text),
                None => self.fault(
                    &format!("{}[{index}]", join(at, key)),
                    format!("is not a string; {} was found", kind(item)),
                ),
            }
        }
        texts
    }

    fn names(&mut self, of: &Value, key: &str, at: &str) -> Vec<String> {
        let names = self.texts(of, key, at);
        for (index, name) in names.iter().enumerate().filter(|(_, name)| !syntax::is_parameter(name)) {
            let place = format!("{}[{index}]", join(at, key));
            self.fault_seeing(&place, &format!("is not {}", syntax::PARAMETER), name);
        }
        names
    }

    pub(super) fn parameters(&mut self, of: &Value, key: &str, at: &str) -> Vec<Parameter> {
        let items = self.list(of, key, at);
        let mut parameters: Vec<Parameter> = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = format!("{}[{index}]", join(at, key));
            if !item.is_object() {
                self.fault(&place, format!("is not an object with name and value; {} was found", kind(item)));
                continue;
            }
            let name = self.needed(item, "name", &place);
            let value = self.text(item, "value", &place);
            if !name.is_empty() && !syntax::is_parameter(&name) {
                self.fault_seeing(&join(&place, "name"), &format!("is not {}", syntax::PARAMETER), &name);
            }
            if parameters.iter().any(|other| other.name == name) && !name.is_empty() {
                self.fault_seeing(&join(&place, "name"), "occurs twice", &name);
            }
            parameters.push(Parameter { name, value });
        }
        parameters
    }

    pub(super) fn whens(&mut self, of: &Value, at: &str) -> Vec<When> {
        let items = self.list(of, "whenExpressions", at);
        let mut whens = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let place = format!("{}[{index}]", join(at, "whenExpressions"));
            let input = self.text(item, "input", &place);
            let operator = self.needed(item, "operator", &place);
            let values = self.texts(item, "values", &place);
            whens.push(When { input, operator, values });
        }
        whens
    }

    /// `true`, `false`, or absent.
    pub(super) fn flag(&mut self, of: &Value, key: &str, at: &str) -> Option<bool> {
        match of.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(other) => {
                self.fault(&join(at, key), format!("is neither true nor false; {} was found", kind(other)));
                None
            }
        }
    }
}

fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

/// The text of a scalar: strings as they are, numbers and booleans as JSON spells them.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

const REMEDY: &str = "correct the template ConfigMap, or install the one that Drawbridge ships";

/// The template in `text`, the value of key `template.json` of ConfigMap `config_map` (`namespace/name`).
///
/// # Errors
/// Every fault, by path.
pub fn parse(config_map: &str, text: &str) -> Result<Template, Vec<Fault>> {
    let prefix = format!("ConfigMap {config_map}: ");
    let root: Value = match serde_json::from_str(text) {
        Ok(root) => root,
        Err(error) => {
            let sentence = format!("is not JSON: {error}");
            let path = format!("{prefix}{KEY_TEMPLATE}");
            return Err(vec![Fault::new(Reason::TemplateInvalid, path, sentence, REMEDY)]);
        }
    };
    let mut reader = Reader::new(&prefix, Reason::TemplateInvalid, REMEDY);
    if !root.is_object() {
        reader.fault(KEY_TEMPLATE, format!("is not a JSON object; {} was found", kind(&root)));
        return Err(reader.faults());
    }
    let custom = reader.text(&root, "customSteps", "");
    if !["", "allowed", "forbidden"].contains(&custom.as_str()) {
        reader.fault_seeing("customSteps", "is neither allowed nor forbidden", &custom);
    }
    let template = Template {
        name: reader.needed(&root, "name", ""),
        required: reader.names(&root, "requiredParameters", ""),
        steps: steps(&mut reader, &root),
        globals: reader.parameters(&root, "globalParameters", ""),
        custom_steps: custom != "forbidden",
    };
    let faults = reader.faults();
    if faults.is_empty() { Ok(template) } else { Err(faults) }
}

fn steps(reader: &mut Reader<'_>, root: &Value) -> Vec<TemplateStep> {
    if !matches!(root.get("steps"), None | Some(Value::Null | Value::Array(_))) {
        reader.list(root, "steps", "");
        return Vec::new();
    }
    let items = reader.list(root, "steps", "");
    if items.is_empty() {
        reader.fault("steps", "is missing or empty; a template has at least one step");
    }
    if items.len() > MAX_STEPS {
        reader.fault("steps", format!("has {} entries; at most {MAX_STEPS} are allowed", items.len()));
        return Vec::new();
    }
    let mut steps: Vec<TemplateStep> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = format!("steps[{index}]");
        if !item.is_object() {
            reader.fault(&at, format!("is not an object; {} was found", kind(item)));
            continue;
        }
        let entry = step(reader, item, &at);
        if steps.iter().any(|other| other.step.name == entry.step.name) && !entry.step.name.is_empty() {
            reader.fault_seeing(&format!("{at}.name"), "occurs twice", &entry.step.name);
        }
        steps.push(entry);
    }
    if !steps.is_empty() && steps.iter().all(|entry| !entry.step.enabled) {
        reader.fault("steps", "has no enabled entry");
    }
    steps
}

fn step(reader: &mut Reader<'_>, item: &Value, at: &str) -> TemplateStep {
    let name = reader.needed(item, "name", at);
    if !name.is_empty() && !syntax::is_label(&name) {
        reader.fault_seeing(&format!("{at}.name"), &format!("is not {}", syntax::LABEL), &name);
    }
    let config_map = reader.needed(item, "configMap", at);
    if !config_map.is_empty() && !syntax::is_subdomain(&config_map) {
        reader.fault_seeing(&format!("{at}.configMap"), &format!("is not {}", syntax::SUBDOMAIN), &config_map);
    }
    let enabled = reader.flag(item, "enabled", at);
    let when = reader.whens(item, at);
    for (index, one) in when.iter().enumerate() {
        let place = format!("{at}.whenExpressions[{index}]");
        if !one.operator.is_empty() && !["in", "notin"].contains(&one.operator.as_str()) {
            reader.fault_seeing(&format!("{place}.operator"), "is neither in nor notin", &one.operator);
        }
        if one.values.is_empty() {
            reader.fault(&format!("{place}.values"), "is empty; Tekton wants at least one value");
        }
    }
    TemplateStep {
        step: StepUse {
            name,
            config_map,
            enabled: enabled != Some(false),
            parameters: reader.parameters(item, "defaultParameters", at),
            required: reader.names(item, "requiredParameters", at),
            when,
        },
        says_enabled: enabled.is_some(),
        locked: reader.names(item, "lockedParameters", at),
    }
}

#[cfg(test)]
mod tests;
