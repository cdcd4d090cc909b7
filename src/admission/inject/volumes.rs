//! Volumes (`spec/authbridge-webhook.md` 5.5), each only when something of ours needs it (spec 11, B8).
//!
//! In: a plan with its containers. Out: the volumes in contract order. The runtime configuration comes from the
//! Pod's own annotation; the shape with the combined container keeps upstream's unmounted reference.

use serde_json::{Value, json};

use super::context::Context;
use super::credentials;
use super::plan::{InjectionPlan, Volume};
use crate::domain::keys;

/// One row of the table.
struct Row {
    name: &'static str,
    needed: fn(&Context<'_>, &InjectionPlan<'_>) -> bool,
    source: fn(&InjectionPlan<'_>) -> Value,
}

fn spire(cx: &Context<'_>, _: &InjectionPlan<'_>) -> bool {
    cx.effective.spire()
}

/// A proxy of any shape.
fn proxy(_: &Context<'_>, plan: &InjectionPlan<'_>) -> bool {
    plan.all_containers().any(|container| container.listens_on.is_some())
}

fn config_map(name: &str) -> Value {
    json!({"name": name, "configMap": {"name": name}})
}

fn optional_config_map(name: &str) -> Value {
    json!({"name": name, "configMap": {"name": name, "optional": true}})
}

fn empty(name: &str) -> Value {
    json!({"name": name, "emptyDir": {}})
}

fn runtime_config(plan: &InjectionPlan<'_>) -> Value {
    if plan.runtime_config.is_none() {
        return optional_config_map(keys::VOLUME_RUNTIME_CONFIG);
    }
    let path = format!("metadata.annotations['{}']", keys::ANNOTATION_RUNTIME_CONFIG);
    json!({"name": keys::VOLUME_RUNTIME_CONFIG, "downwardAPI": {"items": [
        {"path": "config.yaml", "fieldRef": {"fieldPath": path}}]}})
}

const ROWS: [Row; 7] = [
    Row { name: keys::VOLUME_SHARED, needed: |_, _| true, source: |_| empty(keys::VOLUME_SHARED) },
    Row {
        name: keys::VOLUME_SPIRE_SOCKET,
        needed: spire,
        source: |_| json!({"name": keys::VOLUME_SPIRE_SOCKET, "csi": {"driver": keys::CSI_DRIVER_SPIFFE, "readOnly": true}}),
    },
    Row { name: keys::VOLUME_SPIFFE_HELPER, needed: spire, source: |_| config_map(keys::CONFIG_MAP_SPIFFE_HELPER) },
    Row { name: keys::VOLUME_SVID, needed: spire, source: |_| empty(keys::VOLUME_SVID) },
    Row { name: keys::VOLUME_ENVOY, needed: proxy, source: |_| config_map(keys::CONFIG_MAP_ENVOY) },
    Row { name: keys::VOLUME_ROUTES, needed: proxy, source: |_| optional_config_map(keys::CONFIG_MAP_ROUTES) },
    Row { name: keys::VOLUME_RUNTIME_CONFIG, needed: proxy, source: runtime_config },
];

/// Fills the plan's volumes.
pub(super) fn fill(cx: &Context<'_>, plan: &mut InjectionPlan<'_>) {
    let mut volumes: Vec<Volume> = ROWS
        .iter()
        .filter(|row| (row.needed)(cx, plan))
        .map(|row| Volume { name: row.name, value: (row.source)(plan) })
        .collect();
    if let Some(secret) = cx.effective.credentials {
        volumes.push(credentials::volume(secret));
    }
    plan.volumes = volumes;
}
