//! The layers that a namespace brings: its ConfigMaps, read tolerantly.
//!
//! In: what was read of its ConfigMaps ([`super::reading`]) and what was last read well. Out: the namespace's [`Resolved`].
//! Promises: a ConfigMap that cannot be read, or is over a bound, never changes anything: its last good content serves
//! (nothing, when there was none), and a notice names ConfigMap, key, line and reason; where nobody can know what it said
//! before, or nobody has read it yet, that is said, too; one that is over a bound and has no last good content leaves the
//! configuration unknown ([`Unknown`]); a key that is not among `namespaceOverrides` is left out with a
//! notice; a ConfigMap with values that would collide with others is one that cannot be read, and left out whole where its last good
//! content collides, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::bounds::Bound;
use super::layers::{self, Conflict, Layer};
use super::reading::{KEYS_SHOWN, Known};
use super::resolved::{Notice, Resolved, Unknown};
use super::schema::{Platform, Settings, keys, walk};
use crate::api::yaml::Node;
use crate::domain::keys::{CONFIG_MAP_RUNTIME, KEY_CONFIG, WATCHED_CONFIG_MAPS};
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// How many ConfigMaps over a bound are named.
const OVER_SHOWN: usize = 3;

/// What is known of ConfigMaps, by name: what serves while they cannot be read. One without an entry says nothing.
pub type LastGood = BTreeMap<Arc<str>, Arc<Good>>;

/// What is known of one ConfigMap.
#[derive(Debug, Clone, PartialEq)]
pub enum Good {
    /// It cannot be read now and said nothing before, or was not there.
    Nothing,
    /// It could not be read when this process first saw it: what it said before is not known.
    Unknown,
    /// `authbridge-runtime-config`: a mapping without a schema.
    Runtime(Value),
    /// Labelled `kagenti.io/defaults=true`: the platform file's schema.
    Defaults {
        /// Values that passed their check.
        settings: Settings,
        /// Keys that were left out, and why; complete sentences without the ConfigMap's name.
        left_out: Vec<Notice>,
    },
}

/// What the namespace's ConfigMaps make of the platform's configuration. `last`: what they said when they were last looked at;
/// `None` when they never were.
pub(super) fn resolve(
    platform: &Platform,
    namespace: &str,
    config_maps: &BTreeMap<Arc<str>, Known>,
    last: Option<&LastGood>,
) -> (Arc<Resolved>, LastGood) {
    let resolved = Arc::clone(platform.resolved());
    let mut reading = Reading { platform, namespace, last, good: LastGood::new(), resolved };
    if let Some(known) = config_maps.get(CONFIG_MAP_RUNTIME) {
        reading.runtime(known);
    }
    for (name, known) in config_maps {
        if known.is_defaults && **name != *CONFIG_MAP_RUNTIME {
            reading.defaults(name, known);
        }
    }
    reading.over(config_maps);
    if config_maps.iter().any(|(name, known)| known.is_waited_for(name)) {
        let resolved = Arc::make_mut(&mut reading.resolved);
        (resolved.pending, resolved.unread) = (true, true);
    }
    (reading.resolved, reading.good)
}

struct Reading<'a> {
    platform: &'a Platform,
    namespace: &'a str,
    last: Option<&'a LastGood>,
    good: LastGood,
    resolved: Arc<Resolved>,
}

impl Reading<'_> {
    fn runtime(&mut self, known: &Known) {
        let Some(good) = self.good(CONFIG_MAP_RUNTIME, known) else { return };
        let Good::Runtime(base) = good.as_ref() else { return };
        let place = self.place(CONFIG_MAP_RUNTIME);
        let mode_allowed = self.platform.namespace_may_set("mode");
        if !mode_allowed && base.get("mode").is_some_and(|mode| !mode.is_null()) {
            self.notice(Reason::OverrideNotAllowed, format!("{place}: mode {}", not_allowed("mode")));
        }
        let resolved = Arc::make_mut(&mut self.resolved);
        if mode_allowed {
            lay_mode(resolved, &Layer::NamespaceRuntimeConfig, base, &place);
        }
        merge(&mut resolved.runtime_base, base);
    }

    fn defaults(&mut self, name: &str, known: &Known) {
        let Some(good) = self.good(name, known) else { return };
        let Good::Defaults { settings, left_out } = good.as_ref() else { return };
        for notice in left_out {
            self.notice(notice.reason, format!("{}, {}", self.place(name), notice.text));
        }
        let platform = self.platform;
        for (path, setting) in settings.iter().filter(|(path, _)| !platform.namespace_may_set(path)) {
            let text = format!("{}, line {}: {path} {}", self.place(name), setting.line, not_allowed(path));
            self.notice(Reason::OverrideNotAllowed, text);
        }
        if let Err((line, conflict)) = self.lay(name, settings) {
            self.collides(name, line, &conflict);
        }
    }

    /// Lays what `namespaceOverrides` lets through. Where a value collides with another one nothing is laid, and line and values are told.
    fn lay(&mut self, name: &str, settings: &Settings) -> Result<(), (usize, Conflict)> {
        let mut allowed = Settings::default();
        for (path, setting) in settings.iter().filter(|(path, _)| self.platform.namespace_may_set(path)) {
            allowed.insert(path, setting.clone());
        }
        if allowed.is_empty() {
            return Ok(());
        }
        let mut candidate = Resolved::clone(&self.resolved);
        layers::lay(&mut candidate, &Layer::NamespaceDefaults(Arc::from(name)), &allowed);
        match layers::conflicts(&candidate).into_iter().next() {
            None => {
                self.resolved = Arc::new(candidate);
                Ok(())
            }
            Some(conflict) => Err((allowed.line(conflict.path).unwrap_or(1), conflict)),
        }
    }

    /// What a ConfigMap says collides with other values: like one that cannot be read, it changes nothing, and what it said before serves. That
    /// is kept, too, so that it serves for as long as the values collide.
    fn collides(&mut self, name: &str, line: usize, conflict: &Conflict) {
        let last = self.before(name);
        let serves = match last.as_ref() {
            Good::Defaults { settings, .. } => self.lay(name, settings).is_ok(),
            _ => false,
        };
        let instead = if serves { "its last good content is used" } else { "the whole ConfigMap is left out" };
        let text = format!("{}, line {line}: {}: {}; {instead}", self.place(name), conflict.path, conflict.message);
        self.notice(Reason::NamespaceConfigUnreadable, text);
        if *last == Good::Unknown {
            Arc::make_mut(&mut self.resolved).unread = true;
        }
        self.good.insert(Arc::from(name), last);
    }

    /// A ConfigMap that is meant to say something and has it under another key. One of our name that is empty says nothing, and
    /// the others of our names have keys of their own; an earlier operator labelled one of them.
    fn without_key(&mut self, name: &str, keys: &[Box<str>]) {
        let (meant, remedy) = if name != CONFIG_MAP_RUNTIME {
            (" is labelled kagenti.io/defaults=true and", ", or take the label away")
        } else {
            ("", "")
        };
        let is_ours = WATCHED_CONFIG_MAPS.contains(&name);
        if is_ours && (name != CONFIG_MAP_RUNTIME || keys.is_empty()) {
            return;
        }
        let without = no_key(keys.iter().map(|key| &**key));
        let text = format!("ConfigMap {}/{name}{meant} {without}{remedy}", self.namespace);
        self.notice(Reason::NamespaceConfigUnreadable, text);
    }

    fn place(&self, name: &str) -> String {
        format!("ConfigMap {}/{name}, key {KEY_CONFIG}", self.namespace)
    }

    /// What one ConfigMap says; when it cannot be read, or has not been, what is known of it. `None`: it says nothing.
    fn good(&mut self, name: &str, known: &Known) -> Option<Arc<Good>> {
        let good = match known.read.as_deref() {
            None => self.before(name),
            Some(read) => match &read.config {
                None => {
                    self.without_key(name, &read.keys);
                    return None;
                }
                Some(Ok(good)) => Arc::clone(good),
                Some(Err((line, message))) => {
                    let last = self.before(name);
                    let text = format!("{}, line {line}: {message}; {}", self.place(name), instead(&last));
                    self.notice(Reason::NamespaceConfigUnreadable, text);
                    last
                }
            },
        };
        if *good == Good::Unknown {
            Arc::make_mut(&mut self.resolved).unread = true;
        }
        self.good.insert(Arc::from(name), Arc::clone(&good));
        Some(good)
    }

    /// Names ConfigMaps that are over a bound: the first of them, so that whoever makes thousands does not fill messages.
    fn over(&mut self, config_maps: &BTreeMap<Arc<str>, Known>) {
        let over: Vec<(&Arc<str>, Bound)> =
            config_maps.iter().filter_map(|(name, known)| Some((name, known.over?))).collect();
        let says = |reading: &Self, name: &Arc<str>| match config_maps[name].read.as_ref().map(|read| &read.config) {
            Some(None | Some(Ok(_))) => true,
            Some(Some(Err(_))) | None => reading.good.get(name).is_some_and(|good| good.says()),
        };
        if let Some((name, bound)) = over.iter().find(|(name, _)| !says(self, name)) {
            let place = format!("ConfigMap {}/{name}", self.namespace);
            let resolved = Arc::make_mut(&mut self.resolved);
            (resolved.unknown, resolved.unread) = (Some(Unknown { place, bound: bound.to_string() }), true);
        }
        for (name, bound) in over.iter().take(OVER_SHOWN) {
            let instead = match says(self, name) {
                true => "what it said before is used",
                false => "what it said before is not known, so Pods that need sidecars are refused here",
            };
            let text = format!(
                "ConfigMap {}/{name} {bound}; {instead}; make it smaller, or delete what is not needed",
                self.namespace
            );
            self.notice(Reason::ConfigOverBound, text);
        }
        if let Some(more) = over.len().checked_sub(OVER_SHOWN).filter(|more| *more > 0) {
            let text = format!("{more} more ConfigMaps of namespace {} are over a bound", self.namespace);
            self.notice(Reason::ConfigOverBound, text);
        }
    }

    /// What a ConfigMap that cannot be read now said before.
    fn before(&self, name: &str) -> Arc<Good> {
        match self.last.map(|last| last.get(name)) {
            Some(Some(good)) => Arc::clone(good),
            Some(None) => Arc::new(Good::Nothing),
            None => Arc::new(Good::Unknown),
        }
    }

    fn notice(&mut self, reason: Reason, text: String) {
        Arc::make_mut(&mut self.resolved).notices.push(Notice { reason, text });
    }
}

impl Good {
    fn says(&self) -> bool {
        matches!(self, Good::Runtime(_) | Good::Defaults { .. })
    }
}

/// What is used in place of what cannot be read.
fn instead(last: &Good) -> &'static str {
    if last.says() { "its last good content is used" } else { "nothing of it is used" }
}

/// What is said of a ConfigMap that is meant to hold settings, and holds these keys in place of the one that is read.
pub(super) fn no_key<'k>(keys: impl Iterator<Item = &'k str>) -> String {
    let found: Vec<_> = keys.take(KEYS_SHOWN).collect();
    let found = if found.is_empty() { "no key at all".to_owned() } else { found.join(", ") };
    format!("has no key {KEY_CONFIG} (it has {found}), so nothing of it is used; put the settings under that key")
}

/// The runtime configuration: any mapping.
pub(super) fn runtime(document: &Node) -> Result<Value, (usize, String)> {
    match document.to_json() {
        Value::Null => Ok(json!({})),
        base @ Value::Object(_) => Ok(base),
        _ => Err((document.line, format!("a mapping is expected at the top, {} was found", document.kind()))),
    }
}

/// Lays the runtime configuration of the operator's namespace over the platform file: its `mode`, and the whole as
/// base of the runtime YAML. `place` names it in notices.
pub(super) fn lay_template(resolved: &mut Resolved, base: &Value, place: &str) {
    lay_mode(resolved, &Layer::RuntimeTemplate, base, place);
    merge(&mut resolved.runtime_base, base);
}

fn lay_mode(resolved: &mut Resolved, layer: &Layer, base: &Value, place: &str) {
    match base.get("mode") {
        None | Some(Value::Null) => {}
        Some(value) => match value.as_str().and_then(Mode::parse) {
            Some(mode) => {
                resolved.mode = resolved.mode.clone().over(layer.clone(), mode, |mode| mode.as_str().to_owned());
            }
            None => {
                let text = unknown_mode(value, place, resolved.mode.value);
                resolved.notices.push(Notice { reason: Reason::UnknownMode, text });
            }
        },
    }
}

fn unknown_mode(value: &Value, place: &str, instead: Mode) -> String {
    let modes = Mode::ALL.map(Mode::as_str).join(", ");
    format!("{place}: mode {value} does not exist (there are {modes}); {} is used", instead.as_str())
}

/// Mappings merge by key, everything else replaces.
fn merge(below: &mut Value, over: &Value) {
    match (below, over) {
        (Value::Object(below), Value::Object(over)) => {
            for (key, value) in over {
                merge(below.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (below, over) => *below = over.clone(),
    }
}

/// Defaults of a namespace, in the platform file's schema.
pub(super) fn defaults(document: &Node) -> Result<Good, (usize, String)> {
    let walked = walk(document);
    let mut left_out = Vec::new();
    for (key, line) in walked.retired {
        let text = format!("line {line}: {} has no effect: {}", key.path, key.help);
        left_out.push(Notice { reason: Reason::KeyWithoutEffect, text });
    }
    for fault in walked.faults {
        if fault.field != "mode" {
            let field = if fault.field.is_empty() { String::new() } else { format!("{}: ", fault.field) };
            return Err((fault.line, format!("{field}{}", fault.message)));
        }
        let text = format!("line {}: mode: {}; the mode of the layers below is used", fault.line, fault.message);
        left_out.push(Notice { reason: Reason::UnknownMode, text });
    }
    left_out.extend(walked.left_out.into_iter().map(|fault| Notice {
        reason: Reason::TraceEndpointInvalid,
        text: format!("line {}: {}: {}; that of the layers below is used", fault.line, fault.field, fault.message),
    }));
    Ok(Good::Defaults { settings: walked.settings, left_out })
}

fn not_allowed(path: &str) -> &'static str {
    if keys::key(path).is_some_and(keys::Key::is_overridable) {
        "may not be set by a namespace; the platform file allows it in namespaceOverrides"
    } else {
        "belongs to the platform file and is ignored here"
    }
}

#[cfg(test)]
mod tests;
