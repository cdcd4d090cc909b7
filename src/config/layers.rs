//! Layers and provenance: who set a field, and which values it shadowed (design, law 3).

use std::sync::Arc;

/// Where a value comes from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Compiled in.
    BuiltIn,
    /// The platform file.
    PlatformFile,
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
            Layer::NamespaceRuntimeConfig => f.write_str("ConfigMap authbridge-runtime-config"),
            Layer::NamespaceDefaults(name) => write!(f, "ConfigMap {name}"),
            Layer::PodAnnotation => f.write_str("Pod annotation"),
            Layer::AgentRuntime(name) => write!(f, "AgentRuntime {name}"),
        }
    }
}

/// A value that lost against a stronger layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadowed {
    /// Who set it.
    pub layer: Layer,
    /// What it was, for people.
    pub value: String,
}

/// A resolved value that remembers its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
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
