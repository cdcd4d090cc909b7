//! Layers and provenance: who set a field, and which values it shadowed.

use std::sync::Arc;

use serde::Serialize;

use super::resolved::Resolved;
use super::schema::Settings;
use super::schema::keys::{self, key};
use crate::domain::keys::SIDECAR_FIXED_PORTS;

/// Where a value comes from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Compiled in.
    BuiltIn,
    /// The platform file.
    PlatformFile,
    /// ConfigMap `authbridge-runtime-config` of the operator's own namespace: below every namespace's own.
    RuntimeTemplate,
    /// ConfigMap `authbridge-runtime-config` of the namespace.
    NamespaceRuntimeConfig,
    /// A ConfigMap of the namespace labelled `kagenti.io/defaults=true`, by name.
    NamespaceDefaults(Arc<str>),
    /// An annotation of the Pod.
    PodAnnotation,
    /// An AgentRuntime, by name.
    AgentRuntime(Arc<str>),
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Layer::BuiltIn => f.write_str("built-in"),
            Layer::PlatformFile => f.write_str("platform file"),
            Layer::RuntimeTemplate => f.write_str("ConfigMap authbridge-runtime-config of the operator's namespace"),
            Layer::NamespaceRuntimeConfig => f.write_str("ConfigMap authbridge-runtime-config"),
            Layer::NamespaceDefaults(name) => write!(f, "ConfigMap {name}"),
            Layer::PodAnnotation => f.write_str("Pod annotation"),
            Layer::AgentRuntime(name) => write!(f, "AgentRuntime {name}"),
        }
    }
}

impl Serialize for Layer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value that lost against a stronger layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shadowed {
    /// Who set it.
    pub layer: Layer,
    /// What it was, for people.
    pub value: String,
}

/// A resolved value that remembers its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Field<T> {
    /// The value in force.
    pub value: T,
    /// Who set it.
    pub layer: Layer,
    /// Values of weaker layers, weakest first; the built-in one is not listed.
    pub shadowed: Vec<Shadowed>,
}

impl<T> Field<T> {
    /// A compiled-in value.
    pub fn built_in(value: T) -> Self {
        Self { value, layer: Layer::BuiltIn, shadowed: Vec::new() }
    }

    /// This field with a stronger layer's value on top; `show` prints the value that is shadowed.
    #[must_use]
    pub fn over(mut self, layer: Layer, value: T, show: impl FnOnce(&T) -> String) -> Self {
        if self.layer != Layer::BuiltIn {
            let shown = show(&self.value);
            self.shadowed.push(Shadowed { layer: self.layer, value: shown });
        }
        Self { value, layer, shadowed: self.shadowed }
    }
}

/// Lays the values of one layer over `resolved`; every field remembers what it shadows.
///
/// Layers are laid weakest first; what `settings` holds has passed its checks.
pub(crate) fn lay(resolved: &mut Resolved, layer: &Layer, settings: &Settings) {
    for (path, setting) in settings.iter() {
        if let Some(key) = key(path) {
            key.lay(resolved, layer, &setting.value);
        }
    }
}

/// Two values that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// The key whose value came from the stronger layer.
    pub(crate) path: &'static str,
    /// Both values, for people.
    pub(crate) message: String,
}

/// What is wrong with values that are right by themselves: ports that collide, requests above limits.
pub(crate) fn conflicts(resolved: &Resolved) -> Vec<Conflict> {
    let proxy = &resolved.proxy;
    let ports = [
        ("proxy.port", &proxy.port),
        ("proxy.inboundProxyPort", &proxy.inbound_port),
        ("proxy.adminPort", &proxy.admin_port),
    ];
    let mut found = Vec::new();
    for (index, (path, port)) in ports.iter().enumerate() {
        if SIDECAR_FIXED_PORTS.contains(&port.value) {
            let message = format!("{} is a port that the sidecar binaries always listen on", port.value);
            found.push(Conflict { path, message });
        }
        for (other_path, other) in &ports[index + 1..] {
            if port.value == other.value {
                let (blamed, second) = if port.layer > other.layer { (path, other_path) } else { (other_path, path) };
                found.push(Conflict { path: blamed, message: format!("{} is also the value of {second}", port.value) });
            }
        }
    }
    found.extend(keys::requirements(resolved).into_iter().filter_map(|(path, requirements)| {
        keys::requirements_conflict(requirements).map(|message| Conflict { path, message })
    }));
    found
}

#[cfg(test)]
mod tests;
