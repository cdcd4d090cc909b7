//! What the three kinds share: the one container, its environment, and telemetry.

use std::fmt;
use std::ops::Deref;

use serde_json::Value;

/// What people say of the one container (`container`, and the spellings that mean it).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Container {
    /// Image in place of the platform's.
    pub image: Option<String>,
    /// Command; an empty list was written as one.
    pub command: Option<Vec<String>>,
    /// Arguments; an empty list was written as one.
    pub args: Option<Vec<String>>,
    /// Requests and limits, as written.
    pub resources: Option<Value>,
    /// Environment, in order, each name once: of several the last one counted.
    pub env: Vec<Variable>,
}

/// JSON as it was written, of which `Debug` prints nothing: values of variables stand in it.
#[derive(Clone, PartialEq)]
pub struct Raw(pub Value);

impl Deref for Raw {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raw(..)")
    }
}

/// A variable of the environment. Two are equal when they say the same, wherever they were written.
#[derive(Clone)]
pub struct Variable {
    /// Its name, never empty.
    pub name: String,
    /// The whole entry as written: `name` with `value` or `valueFrom`.
    pub entry: Value,
    /// Where it was written, such as `spec.config.env[0]`; for people.
    pub path: String,
}

impl PartialEq for Variable {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.entry) == (&other.name, &other.entry)
    }
}

impl Variable {
    /// Its literal value; `None` where it comes from elsewhere.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match self.entry.get("valueFrom").filter(|from| !from.is_null()) {
            Some(_) => None,
            None => Some(self.entry.get("value").and_then(Value::as_str).unwrap_or("")),
        }
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Names a key of a Secret or ConfigMap of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRef {
    /// Its name.
    pub name: String,
    /// The key.
    pub key: String,
    /// Whether it may be absent, where that is said.
    pub optional: Option<bool>,
}

/// What an object says of its own telemetry; what it does not say is the platform's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// Whether it is on; `false` where only an endpoint is given.
    pub enabled: bool,
    /// OTLP over gRPC.
    pub endpoint: Option<String>,
}
