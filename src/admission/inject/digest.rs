//! Digests: of a part as rendered, and of everything that would change a workload's result.
//!
//! Same input, same text, on every machine and in every version: canonical JSON (sorted keys) under SHA-256.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::containers::env;
use super::context::Context;
use super::plan::{InjectionPlan, ValueFrom};
use super::runtime_config;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a String does not fail");
        text
    })
}

fn sha256(value: &impl Serialize) -> [u8; 32] {
    let bytes = serde_json::to_vec(value).expect("parts have text keys and no failing serialiser");
    Sha256::digest(bytes).into()
}

/// Sixteen hexadecimal digits that tell one rendering of a part from another.
pub(super) fn of_part(value: &impl Serialize) -> String {
    hex(&sha256(value)[..8])
}

/// The configuration hash (design, configuration hash): resolved fields that reach a rendered part, the values of
/// every ConfigMap key a part refers to, and the content of mounted ConfigMaps. What only this one Pod brought, such
/// as its ports, is not in it: all Pods of a workload and its template have one hash.
pub(super) fn of_configuration(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> String {
    let (resolved, gates) = (cx.effective.resolved, &cx.subject.snapshot.gates);
    let containers: BTreeMap<&str, Value> = plan
        .all_containers()
        .map(|container| (container.name, json!({"image": container.image, "resources": container.resources})))
        .collect();
    let values: BTreeMap<&str, Option<String>> = plan
        .all_containers()
        .flat_map(|container| &container.env)
        .filter(|variable| env::FROM_CONFIG.contains(&variable.name))
        .map(|variable| (variable.name, env::value(cx, variable.name).map(Into::into)))
        .collect();
    let secrets: BTreeMap<&str, &str> = plan
        .all_containers()
        .flat_map(|container| &container.env)
        .filter_map(|variable| match &variable.value_from {
            Some(ValueFrom::Secret(key)) => Some((key.key, key.name)),
            _ => None,
        })
        .collect();
    let known = cx.subject.known();
    let mounted: BTreeMap<&str, Option<&String>> = plan
        .volumes
        .iter()
        .filter_map(|volume| volume.value.get("configMap")?.get("name")?.as_str())
        .map(|name| (name, known.and_then(|view| view.mounted.get(name))))
        .collect();
    let runtime = plan.runtime_config.as_ref().map(|_| {
        let keys =
            if runtime_config::has_pipeline(&resolved.runtime_base) { &[][..] } else { &runtime_config::PIPELINE_KEYS };
        let values: BTreeMap<&str, Option<&str>> = keys.iter().map(|key| (*key, cx.config(key))).collect();
        json!({"base": resolved.runtime_base, "values": values})
    });
    let proxy = &resolved.proxy;
    hex(&sha256(&json!({
        "mode": cx.effective.mode.value.as_str(),
        "native": cx.effective.native,
        "spire": cx.effective.spire(),
        "pullPolicy": resolved.images.pull_policy.value,
        "ports": [proxy.port.value, proxy.inbound_port.value, proxy.admin_port.value],
        "uid": proxy.uid.value,
        "literals": gates.per_workload_config_resolution,
        "containers": containers,
        "values": values,
        "secrets": secrets,
        "mounted": mounted,
        "runtime": runtime,
        "credentials": cx.effective.credentials,
        "trace": [
            json!(resolved.trace.endpoint.value),
            json!(resolved.trace.protocol.value.map(|protocol| format!("{protocol:?}"))),
            json!(resolved.trace.sampling_ratio.value.map(|ratio| ratio.to_string())),
        ],
    })))
}
