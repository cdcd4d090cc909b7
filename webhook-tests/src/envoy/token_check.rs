//! The token check of the AuthBridge proxy, as far as it decides who needs a token.
//!
//! In: the runtime configuration as a Pod has it. Out: whether a request for a path is let through without a token. A pattern is
//! matched like a file's: `*` stands for anything but a slash, the path is cleaned first, and nobody looks at the method. What
//! the real check refuses to start with is refused here.

use anyhow::{Result, bail};
use serde_json::Value;

/// What is let through where the configuration lists nothing.
const DEFAULT: [&str; 4] = ["/.well-known/*", "/healthz", "/readyz", "/livez"];

/// The check of one configuration.
#[derive(Debug)]
pub struct TokenCheck {
    patterns: Vec<String>,
}

impl TokenCheck {
    /// The check that the configuration asks for.
    ///
    /// # Errors
    /// A configuration without the check, or with a pattern that the real one does not start with.
    pub fn of(config: &Value) -> Result<Self> {
        let plugins = config.pointer("/pipeline/inbound/plugins").and_then(Value::as_array);
        let Some(check) = plugins.into_iter().flatten().find(|plugin| plugin["name"] == "jwt-validation") else {
            bail!("the configuration checks no tokens: {config}");
        };
        let patterns = match check["config"]["bypass_paths"].as_array() {
            None => DEFAULT.map(str::to_owned).to_vec(),
            Some(list) => list.iter().map(|pattern| pattern.as_str().unwrap_or_default().to_owned()).collect(),
        };
        let is_refused = |pattern: &&String| matches!(pattern.trim(), "" | "*" | "/*") || pattern.contains('[');
        if let Some(pattern) = patterns.iter().find(is_refused) {
            bail!("the check does not start with the pattern {pattern:?}");
        }
        Ok(Self { patterns })
    }

    /// Whether the path needs no token; `target` is the request's, with its query.
    #[must_use]
    pub fn lets_through(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or(target);
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
            if part == ".." {
                parts.pop();
            } else {
                parts.push(part);
            }
        }
        let cleaned = format!("/{}", parts.join("/"));
        self.patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            None => *pattern == cleaned,
            Some(start) => cleaned.strip_prefix(start).is_some_and(|rest| !rest.contains('/')),
        })
    }
}
