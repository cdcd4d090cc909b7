//! What `render` prints: webhooks and the gate, rights, what people get.

mod installed;
mod rights;
mod webhooks;

use serde_json::Value;

use super::*;
use crate::cli::yaml::tree;
use crate::store::Kind;

fn install(failure_mode: FailureMode) -> Install {
    Install::new(failure_mode, keys::OPERATOR_NAMESPACE, "drawbridge:test")
}

fn objects(mode: FailureMode) -> Vec<Value> {
    parts(&install(mode)).into_iter().flat_map(|part| part.objects).collect()
}

fn one<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found: Vec<_> = objects.iter().filter(|o| o["kind"] == kind && o["metadata"]["name"] == name).collect();
    assert_eq!(found.len(), 1, "{kind} {name}");
    found[0]
}
