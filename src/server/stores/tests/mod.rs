//! The snapshot as its keeper is told, and the loop against an API server in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::store::Kind;
use crate::store::decode::change_of;

fn change(kind: Kind, object: Value) -> Change {
    change_of(kind, &object.to_string()).unwrap()
}

fn gone(mut change: Change) -> Change {
    change.now = None;
    change
}

fn namespace(name: &str, enabled: &str) -> Change {
    change(Kind::Namespace, json!({"metadata": {"name": name, "labels": {"kagenti-enabled": enabled, "x": "y"}}}))
}

/// A ConfigMap with a text under `key`; `labels` as JSON.
fn text(namespace: &str, name: &str, (key, text): (&str, &str), labels: Value) -> Change {
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels, "resourceVersion": "1"});
    change(Kind::ConfigMap, json!({"metadata": metadata, "data": {key: text}}))
}

fn defaults(namespace: &str, name: &str, yaml: &str) -> Change {
    text(namespace, name, ("config.yaml", yaml), json!({"kagenti.io/defaults": "true"}))
}

fn service_account(namespace: &str, name: &str, ours: bool) -> Change {
    let labels = if ours { json!({"kagenti.io/managed-by": "webhook"}) } else { json!({}) };
    change(Kind::ServiceAccount, json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}}))
}

/// Tells a keeper of changes, each later than the one before, as the watches do; the snapshot follows it.
struct Teller {
    keeper: Arc<Keeper>,
    versions: AtomicU64,
}

impl Teller {
    fn new(shared: &Arc<Shared>, keeps: Keeps) -> Self {
        let keeper = Arc::new(Keeper::new("own", keeps));
        keeper.join(Box::new(ToldSnapshot::new(shared.clone())));
        Self { keeper, versions: AtomicU64::new(1) }
    }

    fn tell(&self, change: &Change) {
        let version = self.versions.fetch_add(1, Ordering::Relaxed);
        self.keeper.apply(0, &Change { version, ..change.clone() }, Duration::ZERO);
    }
}

#[test]
fn versions_are_read_as_clouds_write_them() {
    assert_eq!(parse_version("1", "36"), Some((1, 36)));
    assert_eq!(parse_version("1", "34+"), Some((1, 34)));
    assert_eq!(parse_version("1", ""), None);
    assert_eq!(parse_version("", "$Format"), None);
}

mod faults;
mod protocol;
mod readers;
mod snapshot;
