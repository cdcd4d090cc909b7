//! Digests: of a part as rendered, and of everything that would change a workload's result.
//!
//! Same input, same text, on every machine and in every version: canonical JSON (sorted keys) under SHA-256.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::containers::env;
use super::context::Context;
use super::plan::{InjectionPlan, ValueFrom};
use super::runtime_config;
use crate::config::resolved::TraceProtocol;

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn sha256(value: &impl Serialize) -> [u8; 32] {
    // A part of ours fits without growing.
    let mut bytes = Vec::with_capacity(4096);
    serde_json::to_writer(&mut bytes, value).expect("parts have text keys and no failing serialiser");
    Sha256::digest(bytes).into()
}

/// Sixteen hexadecimal digits that tell one rendering of a part from another.
pub(super) fn of_part(value: &impl Serialize) -> String {
    hex(&sha256(value)[..8])
}

/// What a container's image and resources come to.
#[derive(Serialize)]
struct ContainerInputs<'a> {
    image: &'a str,
    resources: &'a Value,
}

/// What the runtime configuration is made from.
#[derive(Serialize)]
struct RuntimeInputs<'a> {
    base: &'a Value,
    values: BTreeMap<&'a str, Option<&'a str>>,
}

/// Everything that would change a workload's result; maps are sorted, members stand in this order for good.
#[derive(Serialize)]
struct Inputs<'a> {
    mode: &'static str,
    native: bool,
    spire: bool,
    pull_policy: &'a str,
    ports: [u16; 3],
    uid: i64,
    literals: bool,
    containers: BTreeMap<&'a str, ContainerInputs<'a>>,
    values: BTreeMap<&'a str, Option<Cow<'a, str>>>,
    secrets: BTreeMap<&'a str, &'a str>,
    mounted: BTreeMap<&'a str, Option<&'a String>>,
    runtime: Option<RuntimeInputs<'a>>,
    credentials: Option<&'a str>,
    trace: (Option<&'a str>, Option<&'static str>, Option<f64>),
}

/// The configuration hash (design, configuration hash): resolved fields that reach a rendered part, the values of
/// every ConfigMap key a part refers to, and the content of mounted ConfigMaps. What only this one Pod brought, such
/// as its ports, is not in it: all Pods of a workload and its template have one hash.
pub(super) fn of_configuration(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> String {
    let resolved = cx.effective.resolved;
    let (proxy, trace) = (&resolved.proxy, &resolved.trace);
    let known = cx.subject.known();
    let runtime = plan.runtime_config.as_ref().map(|_| {
        let own = runtime_config::has_pipeline(&resolved.runtime_base);
        let keys = if own { &[][..] } else { &runtime_config::PIPELINE_KEYS };
        RuntimeInputs { base: &resolved.runtime_base, values: keys.iter().map(|key| (*key, cx.config(key))).collect() }
    });
    let (mut containers, mut values, mut secrets) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for container in plan.all_containers() {
        containers.insert(container.name, ContainerInputs { image: &container.image, resources: container.resources });
        for variable in &container.env {
            if let Some(ValueFrom::Secret(key)) = &variable.value_from {
                secrets.insert(key.key, key.name);
            } else if env::FROM_CONFIG.contains(&variable.name) {
                values.insert(variable.name, env::value(cx, variable.name));
            }
        }
    }
    hex(&sha256(&Inputs {
        mode: cx.effective.mode.value.as_str(),
        native: cx.effective.native,
        spire: cx.effective.spire(),
        pull_policy: &resolved.images.pull_policy.value,
        ports: [proxy.port.value, proxy.inbound_port.value, proxy.admin_port.value],
        uid: proxy.uid.value,
        literals: cx.subject.snapshot.gates.per_workload_config_resolution,
        containers,
        values,
        secrets,
        mounted: plan
            .volumes
            .iter()
            .filter_map(|volume| volume.value.get("configMap")?.get("name")?.as_str())
            .map(|name| (name, known.and_then(|view| view.mounted.get(name))))
            .collect(),
        runtime,
        credentials: cx.effective.credentials,
        trace: (
            trace.endpoint.value.as_deref(),
            trace.protocol.value.map(TraceProtocol::as_str),
            trace.sampling_ratio.value,
        ),
    }))
}
