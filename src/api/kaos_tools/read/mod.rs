//! From a raw object, in whatever spelling, to what it means; or everything that is wrong with it.
//!
//! In: an Agent, ModelAPI or MCPServer as JSON, as a review, a watch or a file has it. Out: [`Looked`]: the value (built as far as it can be),
//! faults, conflicts between spellings, notes, and which old spellings were used where. [`Looked::value`] may be built from only when there
//! is no fault; conflicts do not stand in its way, since an object that came past the webhook has the new spelling win. Promises: pure;
//! any JSON gets an answer; reading what [`super::migrate`] wrote gives an equal value; no message repeats the value of a variable, a
//! key, a tool's text or a configuration.

mod agent;
mod env;
mod mcp_server;
mod model_api;
mod offers;
mod place;
mod pod;
mod shared;
mod spelling;

use serde_json::Value;

#[cfg(test)]
mod tests;

pub use spelling::{Alias, OldSpelling, Row};

use super::shape::{Agent, McpServer, ModelApi, Proxy};
use crate::api::findings::{Fault, Note};

/// What was found in an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Looked<T> {
    /// What it means: complete when there is no fault.
    pub value: T,
    /// What is wrong: nothing can be built of it.
    pub faults: Vec<Fault>,
    /// Two spellings that say different things. Admission refuses them; past it the new one won.
    pub conflicts: Vec<Fault>,
    /// What works and deserves attention.
    pub notes: Vec<Note>,
    /// The old spellings that it uses, in the order of the alias table.
    pub old: Vec<OldSpelling>,
}

impl<T> Looked<T> {
    /// Whether it uses that old spelling.
    #[must_use]
    pub fn uses(&self, alias: Alias) -> bool {
        self.old.iter().any(|old| old.alias == alias)
    }

    /// Whether what it says of a model is held against the other side: nothing of it is in an old spelling.
    #[must_use]
    pub fn checks_model(&self) -> bool {
        !self.old.iter().any(|old| old.alias.is_of_model())
    }

    /// The same, where something can be built of it.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn usable(self) -> Result<Self, Vec<Fault>> {
        if self.faults.is_empty() { Ok(self) } else { Err(self.faults) }
    }
}

/// What an Agent of `kaos.tools` means.
#[must_use]
pub fn agent(object: &Value) -> Looked<Agent> {
    agent::look(object)
}

/// What a ModelAPI means.
#[must_use]
pub fn model_api(object: &Value) -> Looked<ModelApi> {
    model_api::look(object)
}

/// Names in `configYaml` that `models` of the same proxy does not allow; none where either is left out.
#[must_use]
pub fn strangers(proxy: &Proxy) -> Vec<String> {
    model_api::strangers(proxy)
}

/// What an MCPServer means.
#[must_use]
pub fn mcp_server(object: &Value) -> Looked<McpServer> {
    mcp_server::look(object)
}
