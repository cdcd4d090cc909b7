//! What is asked of a tool server, and what comes back: data.

use std::sync::Arc;

use crate::controllers::scaffold::lane::{Host, Question};
pub use crate::workloads::kaos::names::PORT;

/// Where a tool server that speaks MCP over HTTP is asked.
pub const PATH: &str = "/mcp";
/// Most names that are kept of one server.
pub const NAMES: usize = 128;
/// Bytes of one name, at most.
pub const NAME: usize = 128;

/// Which tools an MCPServer offers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolsOf {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Name and port of its Service, as a client inside the cluster writes them; the header Host.
    pub authority: Arc<str>,
    /// `metadata.uid` of its Deployment.
    pub deployment: Arc<str>,
    /// `metadata.generation` of its Deployment: another one may offer others.
    pub generation: i64,
    /// Every Pod is of that generation.
    pub rolled: bool,
}

/// The tools of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    /// Their names, sorted, each once: at most [`NAMES`], each of at most [`NAME`] bytes of printable text.
    pub names: Vec<String>,
    /// There are more than these.
    pub more: bool,
}

impl Tools {
    /// Of the names as the server has them.
    #[must_use]
    pub fn of(names: impl IntoIterator<Item = String>, more: bool) -> Self {
        let mut names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
        names.sort();
        names.dedup();
        let more = more || names.len() > NAMES;
        names.truncate(NAMES);
        Self { names, more }
    }
}

impl Question for ToolsOf {
    type Fact = Tools;

    fn host(&self) -> Host {
        Host::Of(self.namespace.clone(), self.name.clone())
    }

    fn namespace(&self) -> Arc<str> {
        self.namespace.clone()
    }
}
