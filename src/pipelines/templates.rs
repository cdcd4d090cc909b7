//! The templates and steps that ConfigMaps hold, parsed once: what reviews and compositions read.
//!
//! In: ConfigMaps as the watches see them (or files, or the built-in catalogue). Out: look-ups without I/O. A
//! ConfigMap that cannot be used keeps its faults and serves nothing; its last good content is not served, because a
//! build must be what its ConfigMaps say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::step::{self, Step};
use super::template::{self, Template};
use crate::api::digest;
use crate::api::findings::Fault;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// A ConfigMap, as far as builds read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigMapText {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its `data`.
    pub data: BTreeMap<String, String>,
}

/// A template ConfigMap.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateEntry {
    /// `namespace/name`.
    pub config_map: String,
    /// SHA-256 of its text; empty when it has none.
    pub hash: String,
    /// The template, or why it is none.
    pub template: Result<Arc<Template>, Vec<Fault>>,
}

impl TemplateEntry {
    /// `namespace/name@` and the first twelve digits of its hash: what people are shown of it.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}@{}", self.config_map, &self.hash[..self.hash.len().min(12)])
    }
}

/// A step ConfigMap.
#[derive(Debug, Clone, PartialEq)]
pub struct StepEntry {
    /// SHA-256 of its text; empty when it has none.
    pub hash: String,
    /// The step, or why it is none.
    pub step: Result<Step, Vec<Fault>>,
}

/// What was read of one ConfigMap, under every setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A template.
    Template(Arc<TemplateEntry>),
    /// A step.
    Step {
        /// As it counts where steps may be privileged.
        trusted: Arc<StepEntry>,
        /// As it counts elsewhere.
        strict: Arc<StepEntry>,
    },
}

/// The steps of one namespace, by name of their ConfigMap.
pub type Steps = BTreeMap<String, Arc<StepEntry>>;

/// Everything known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TemplatesView {
    operator_namespace: String,
    privileged_steps: bool,
    templates: BTreeMap<String, BTreeMap<String, Arc<TemplateEntry>>>,
    steps: BTreeMap<String, Steps>,
    /// Namespaces of which a ConfigMap has not been read yet.
    waiting: BTreeSet<Arc<str>>,
}

impl TemplatesView {
    /// Nothing, yet. Steps outside `operator_namespace` may be privileged only with `privileged_steps`.
    #[must_use]
    pub fn new(operator_namespace: impl Into<String>, privileged_steps: bool) -> Self {
        Self { operator_namespace: operator_namespace.into(), privileged_steps, ..Self::default() }
    }

    /// The view of these ConfigMaps; what is neither template nor step is left out.
    #[must_use]
    pub fn with(mut self, config_maps: impl IntoIterator<Item = ConfigMapText>) -> Self {
        config_maps.into_iter().for_each(|config_map| self.insert(&config_map));
        self
    }

    /// Reads a ConfigMap, in place of the one of that name.
    pub fn insert(&mut self, config_map: &ConfigMapText) {
        self.put(&config_map.namespace, &config_map.name, read(config_map, &self.operator_namespace).as_ref());
    }

    /// Takes what was read of a ConfigMap, in place of what is known of that name.
    pub fn put(&mut self, namespace: &str, name: &str, entry: Option<&Entry>) {
        self.remove(namespace, name);
        match entry {
            Some(Entry::Template(entry)) => {
                let mode = name.strip_prefix(keys::PREFIX_TEMPLATE).unwrap_or(name).to_owned();
                self.templates.entry(namespace.to_owned()).or_default().insert(mode, Arc::clone(entry));
            }
            Some(Entry::Step { trusted, strict }) => {
                let is_trusted = namespace == self.operator_namespace || self.privileged_steps;
                let entry = Arc::clone(if is_trusted { trusted } else { strict });
                self.steps.entry(namespace.to_owned()).or_default().insert(name.to_owned(), entry);
            }
            None => {}
        }
    }

    /// Says of which namespaces a ConfigMap has not been read yet.
    pub fn wait_for(&mut self, namespaces: BTreeSet<Arc<str>>) {
        self.waiting = namespaces;
    }

    /// Whether those are the namespaces of which a ConfigMap has not been read yet.
    #[must_use]
    pub fn waits_for(&self, namespaces: &BTreeSet<Arc<str>>) -> bool {
        self.waiting == *namespaces
    }

    /// Whether a ConfigMap of the namespace that a build means has not been read yet: what is missing there may only be late.
    #[must_use]
    pub fn is_waiting(&self, written: &str) -> bool {
        let is = |name: &str| self.waiting.contains(name);
        is(written) || is(self.namespace(written))
    }

    /// Forgets a ConfigMap.
    pub fn remove(&mut self, namespace: &str, name: &str) {
        if let Some(mode) = name.strip_prefix(keys::PREFIX_TEMPLATE)
            && let Some(templates) = self.templates.get_mut(namespace)
        {
            templates.remove(mode);
            if templates.is_empty() {
                self.templates.remove(namespace);
            }
        }
        if let Some(steps) = self.steps.get_mut(namespace) {
            steps.remove(name);
            if steps.is_empty() {
                self.steps.remove(namespace);
            }
        }
    }

    /// The operator's own namespace.
    #[must_use]
    pub fn operator_namespace(&self) -> &str {
        &self.operator_namespace
    }

    /// The namespace that a build means: `kagenti-system` is the operator's own when it holds nothing itself.
    #[must_use]
    pub fn namespace<'a>(&'a self, written: &'a str) -> &'a str {
        let empty = !self.templates.contains_key(written) && !self.steps.contains_key(written);
        if written == keys::OPERATOR_NAMESPACE && empty { &self.operator_namespace } else { written }
    }

    /// The template of a mode.
    #[must_use]
    pub fn template(&self, namespace: &str, mode: &str) -> Option<&Arc<TemplateEntry>> {
        self.templates.get(self.namespace(namespace))?.get(mode)
    }

    /// The modes that have a template there, in order.
    pub fn modes(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.templates.get(self.namespace(namespace)).into_iter().flat_map(|modes| modes.keys().map(String::as_str))
    }

    /// The steps there.
    #[must_use]
    pub fn steps(&self, namespace: &str) -> &Steps {
        static NONE: Steps = BTreeMap::new();
        self.steps.get(self.namespace(namespace)).unwrap_or(&NONE)
    }
}

/// Reads a ConfigMap; `None` when it is neither template nor step.
#[must_use]
pub fn read(config_map: &ConfigMapText, operator_namespace: &str) -> Option<Entry> {
    let full = format!("{}/{}", config_map.namespace, config_map.name);
    if config_map.name.starts_with(keys::PREFIX_TEMPLATE) {
        return Some(Entry::Template(Arc::new(template_entry(&full, config_map.data.get(keys::KEY_TEMPLATE)))));
    }
    let own = config_map.namespace == operator_namespace;
    let labelled = config_map.labels.get(keys::LABEL_STEP).is_some_and(|value| value == keys::LABEL_STEP_VALUE);
    let text = config_map.data.get(keys::KEY_TASK_SPEC);
    if !(labelled || own && text.is_some()) {
        return None;
    }
    let of = |trusted| Arc::new(step_entry(&full, &config_map.name, text, trusted));
    let strict = of(false);
    // What may be privileged is judged the same but for privilege.
    let trusted = if strict.step.is_ok() { Arc::clone(&strict) } else { of(true) };
    Some(Entry::Step { trusted, strict })
}

/// What stands for a ConfigMap that is not read, because it `is` over a bound.
#[must_use]
pub fn over(namespace: &str, name: &str, is: &str) -> Entry {
    let full = format!("{namespace}/{name}");
    let remedy = "make it smaller, or delete ConfigMaps that are not needed";
    let fault = |reason, key| vec![Fault::new(reason, format!("ConfigMap {full}: {key}"), is, remedy)];
    if name.starts_with(keys::PREFIX_TEMPLATE) {
        let template = Err(fault(Reason::TemplateInvalid, keys::KEY_TEMPLATE));
        return Entry::Template(Arc::new(TemplateEntry { config_map: full, hash: String::new(), template }));
    }
    let step = Err(fault(Reason::StepInvalid, keys::KEY_TASK_SPEC));
    let entry = Arc::new(StepEntry { hash: String::new(), step });
    Entry::Step { trusted: Arc::clone(&entry), strict: entry }
}

fn template_entry(full: &str, text: Option<&String>) -> TemplateEntry {
    let Some(text) = text else {
        let sentence = format!("not found in ConfigMap {full}");
        let path = format!("ConfigMap {full}: {}", keys::KEY_TEMPLATE);
        let remedy = "give the ConfigMap that key, or install the template that Drawbridge ships";
        let template = Err(vec![Fault::new(Reason::TemplateInvalid, path, sentence, remedy)]);
        return TemplateEntry { config_map: full.to_owned(), hash: String::new(), template };
    };
    let hash = digest::of_bytes(text.as_bytes());
    TemplateEntry { config_map: full.to_owned(), hash, template: template::parse(full, text).map(Arc::new) }
}

fn step_entry(full: &str, name: &str, text: Option<&String>, trusted: bool) -> StepEntry {
    let Some(text) = text else {
        let sentence = format!("not found in ConfigMap {name}");
        let path = format!("ConfigMap {full}: {}", keys::KEY_TASK_SPEC);
        let fault = Fault::new(Reason::StepInvalid, path, sentence, "give the ConfigMap that key, with a TaskSpec");
        return StepEntry { hash: String::new(), step: Err(vec![fault]) };
    };
    StepEntry { hash: digest::of_bytes(text.as_bytes()), step: step::parse(full, text, trusted) }
}

impl Entry {
    /// How many bytes it takes for as long as it is kept; `weigh` weighs JSON, and `block` an allocation.
    #[must_use]
    pub fn weight(&self, weigh: impl Fn(&Value) -> usize, block: impl Fn(usize) -> usize) -> usize {
        let faults = |faults: &Vec<Fault>| -> usize {
            let texts = |one: &Fault| {
                let more =
                    [&one.seen, &one.parameter].into_iter().flatten().map(|text| block(text.len())).sum::<usize>();
                more + block(one.path.len()) + block(one.sentence.len()) + block(one.remedy.len())
            };
            block(faults.capacity() * size_of::<Fault>()) + faults.iter().map(texts).sum::<usize>()
        };
        let step = |entry: &StepEntry| {
            let what = match &entry.step {
                Ok(step) => step.weight(&weigh, &block),
                Err(found) => faults(found),
            };
            block(size_of::<StepEntry>() + 2 * size_of::<usize>()) + block(entry.hash.len()) + what
        };
        match self {
            Entry::Template(entry) => {
                let what = match &entry.template {
                    Ok(template) => template.weight(&block),
                    Err(found) => faults(found),
                };
                let texts = block(entry.hash.len()) + block(entry.config_map.len());
                block(size_of::<TemplateEntry>() + 2 * size_of::<usize>()) + texts + what
            }
            Entry::Step { trusted, strict } if Arc::ptr_eq(trusted, strict) => step(strict),
            Entry::Step { trusted, strict } => step(trusted) + step(strict),
        }
    }
}

#[cfg(test)]
mod tests;
