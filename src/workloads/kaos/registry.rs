//! The runtimes of tool servers that a platform lists: ConfigMap `kaos-mcp-runtimes`, key `runtimes.yaml`.
//!
//! In: the text, by whoever runs the platform. Out: the runtimes by name, or why it cannot be read. Promises: members that only people read
//! (`type`, `description`, `transport`, `requiredEnv`) are passed over; one entry that is wrong takes no other with it.

use std::collections::BTreeMap;

use crate::api::yaml::{self, Content, Entry, Node};

/// ConfigMap of the registry.
pub const CONFIG_MAP: &str = "kaos-mcp-runtimes";
/// Its key.
pub const KEY: &str = "runtimes.yaml";
/// The runtime that executes text.
pub const PYTHON_STRING: &str = "python-string";

/// How tools of one runtime are started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runtime {
    /// Image; `None`: whoever uses it names one.
    pub image: Option<String>,
    /// In place of the image's entry point.
    pub command: Vec<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variable that carries `params`; `None`: the runtime takes none.
    pub params_variable: Option<String>,
}

/// What the registry says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry {
    runtimes: BTreeMap<String, Result<Runtime, String>>,
}

/// Why a runtime cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeFault {
    /// There is no registry.
    #[error("failed to get runtime registry: there is no ConfigMap {CONFIG_MAP} in namespace {0}")]
    NoRegistry(String),
    /// The registry has no such key.
    #[error("failed to get runtime registry: {KEY} key not found in ConfigMap")]
    NoKey,
    /// The registry cannot be read.
    #[error("failed to get runtime registry: failed to parse runtime registry: line {0}: {1}")]
    Unreadable(usize, String),
    /// It does not list that runtime.
    #[error("unknown runtime: {0} (not found in registry)")]
    Unknown(String),
    /// Its entry cannot be used.
    #[error("runtime {0} of the registry: {1}")]
    Entry(String, String),
}

impl Registry {
    /// The registry of that text.
    ///
    /// # Errors
    /// [`RuntimeFault::Unreadable`].
    pub fn read(text: &str) -> Result<Self, RuntimeFault> {
        let unreadable = |line, message: String| RuntimeFault::Unreadable(line, message);
        let document = yaml::parse(text).map_err(|error| unreadable(error.line, error.message))?;
        let Content::Map(entries) = &document.content else {
            return Err(unreadable(document.line, format!("a mapping is expected, {} was found", document.kind())));
        };
        let runtimes = match member(entries, "runtimes").map(|runtimes| &runtimes.content) {
            Some(Content::Map(entries)) => entries,
            None | Some(Content::Null) => return Ok(Self::default()),
            Some(_) => return Err(unreadable(document.line, "runtimes is no mapping".to_owned())),
        };
        let runtimes = runtimes.iter().map(|entry| (entry.key.clone(), runtime(&entry.value)));
        Ok(Self { runtimes: runtimes.collect() })
    }

    /// The runtime of that name.
    ///
    /// # Errors
    /// When there is none, or its entry is wrong.
    pub fn runtime(&self, name: &str) -> Result<&Runtime, RuntimeFault> {
        match self.runtimes.get(name) {
            None => Err(RuntimeFault::Unknown(name.to_owned())),
            Some(Err(why)) => Err(RuntimeFault::Entry(name.to_owned(), why.clone())),
            Some(Ok(runtime)) => Ok(runtime),
        }
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runtimes.keys().map(String::as_str)
    }
}

fn member<'n>(entries: &'n [Entry], key: &str) -> Option<&'n Node> {
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
}

fn runtime(node: &Node) -> Result<Runtime, String> {
    let Content::Map(entries) = &node.content else { return Err(format!("is {}, a mapping is expected", node.kind())) };
    let text = |key: &str| match member(entries, key).map(|node| (&node.content, node)) {
        None | Some((Content::Null, _)) => Ok(None),
        Some((Content::Text(text), _)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some((_, node)) => Err(format!("{key} is {}, a text is expected", node.kind())),
    };
    let list = |key: &str| match member(entries, key).map(|node| (&node.content, node)) {
        None | Some((Content::Null, _)) => Ok(Vec::new()),
        Some((Content::List(items), _)) => items.iter().map(|item| scalar(item).ok_or_else(|| words(key))).collect(),
        Some((_, node)) => Err(format!("{key} is {}, a list of texts is expected", node.kind())),
    };
    Ok(Runtime {
        image: text("image")?,
        command: list("command")?,
        args: list("args")?,
        params_variable: text("paramsEnvVar")?,
    })
}

fn words(key: &str) -> String {
    format!("{key} holds something that is no text")
}

/// An item of a command line: a number is the text that it was meant as.
fn scalar(node: &Node) -> Option<String> {
    match &node.content {
        Content::Text(text) => Some(text.clone()),
        Content::Number(number) => Some(number.to_string()),
        Content::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
runtimes:
  python-string:
    type: python
    image: tools:1
    paramsEnvVar: MCP_TOOLS_STRING
  kubernetes:
    image: k8s:1
    args: [--port, 8000]
    requiredEnv: [{name: X}]
  broken: {image: 5}
";

    #[test]
    fn a_runtime_is_what_its_entry_says_and_a_wrong_one_takes_no_other_with_it() {
        let registry = Registry::read(TEXT).unwrap();
        let python = registry.runtime(PYTHON_STRING).unwrap();
        assert_eq!(
            (python.image.as_deref(), python.params_variable.as_deref()),
            (Some("tools:1"), Some("MCP_TOOLS_STRING"))
        );
        assert_eq!(registry.runtime("kubernetes").unwrap().args, ["--port", "8000"]);
        let nope = registry.runtime("nope").unwrap_err().to_string();
        assert_eq!(nope, "unknown runtime: nope (not found in registry)");
        assert!(registry.runtime("broken").unwrap_err().to_string().contains("image is an integer"));
        assert_eq!(registry.names().count(), 3);
    }

    #[test]
    fn what_is_no_registry_says_where() {
        for (text, words) in [
            ("runtimes: [", "failed to parse runtime registry: line "),
            ("- a", "a mapping is expected"),
            ("runtimes: 5", "runtimes is no mapping"),
        ] {
            let fault = Registry::read(text).unwrap_err().to_string();
            assert!(fault.starts_with("failed to get runtime registry: ") && fault.contains(words), "{fault}");
        }
        assert_eq!(Registry::read("other: 1").unwrap(), Registry::default());
    }
}
