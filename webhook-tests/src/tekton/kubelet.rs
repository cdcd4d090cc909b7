//! How a test decides what the steps of a run end with: annotations of the PipelineRun, which Tekton copies to its Pods.
//!
//! Without any, every step ends with exit code 0 and writes no result.

use serde_json::{Value, json};

/// While a Pod has it, its steps run on.
pub const HOLD: &str = "kwok.test/hold";

/// The annotation that makes the Pod of `task` write these results.
#[must_use]
pub fn results(task: &str, results: &[(&str, &str)]) -> (String, String) {
    // What Tekton's entrypoint writes into a container's termination message; 1 is a result of the task.
    let entries = results.iter().map(|(key, value)| json!({ "key": key, "value": value, "type": 1 }));
    (format!("kwok.test/results.{task}"), Value::Array(entries.collect()).to_string())
}

/// The annotation that makes every step of `task` end with this exit code.
#[must_use]
pub fn exit(task: &str, code: u8) -> (String, String) {
    (format!("kwok.test/exit.{task}"), code.to_string())
}
