//! A ModelAPI.

use std::fmt;

use super::{Container, KeyRef, Offer, Raw, Telemetry};

/// A ModelAPI.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelApi {
    /// What it is.
    pub mode: Mode,
    /// The proxy; there in mode Proxy, and kept in mode Hosted where it is written.
    pub proxy: Option<Proxy>,
    /// The hosted model; there in mode Hosted, and kept in mode Proxy where it is written.
    pub hosted: Option<Hosted>,
    /// Its own telemetry, where it is said; a proxy's only.
    pub telemetry: Option<Telemetry>,
    /// Its container.
    pub container: Container,
    /// Timeout of its route, in Gateway API's form.
    pub timeout: Option<String>,
    /// Merged over the generated Pod.
    pub pod_spec: Option<Raw>,
}

/// What a ModelAPI is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// LiteLLM in front of a provider, port 8000.
    Proxy,
    /// Ollama in the cluster, port 11434.
    Hosted,
}

/// A proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    /// LiteLLM's prefix of every model.
    pub provider: Option<String>,
    /// Variable `PROXY_API_BASE`.
    pub api_base: Option<String>,
    /// Variable `PROXY_API_KEY`.
    pub api_key: Option<ApiKey>,
    /// What agents may ask for, in order; empty only where [`Proxy::configuration`] is written without it.
    pub models: Vec<String>,
    /// The same with what holds for each, where `spec.models` is written; then [`Proxy::models`] has their names.
    pub offers: Vec<Offer>,
    /// The whole configuration of LiteLLM, in place of one made of the fields above.
    pub configuration: Option<Configuration>,
}

/// The key of a provider.
#[derive(Clone, PartialEq, Eq)]
pub enum ApiKey {
    /// Literally; never printed.
    Literal(String),
    /// From a Secret.
    Secret(KeyRef),
    /// From a ConfigMap.
    ConfigMap(KeyRef),
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal(..)"),
            Self::Secret(at) => f.debug_tuple("Secret").field(at).finish(),
            Self::ConfigMap(at) => f.debug_tuple("ConfigMap").field(at).finish(),
        }
    }
}

/// A configuration of LiteLLM that is taken as it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Configuration {
    /// This text, which is YAML with a mapping at its top; never printed, since people write keys into it.
    Text(String),
    /// That of a Secret: mounted from it, never copied.
    Secret(KeyRef),
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Secret(at) => f.debug_tuple("Secret").field(at).finish(),
        }
    }
}

/// A hosted model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosted {
    /// Its tag, such as `smollm2:135m`.
    pub model: String,
}
