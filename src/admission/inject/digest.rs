//! Digests: of a part as rendered, and of everything that would change a workload's result.
//!
//! Same input, same text, on every machine and in every version: canonical JSON (sorted keys) under SHA-256.
//!
//! The parts of one Pod are those of the next, and hashing them was a tenth of a review: the last few texts are
//! remembered with their hashes, per thread. Texts are compared whole, so what is remembered changes no answer.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::agent_env;
use super::containers::env;
use super::context::Context;
use super::plan::{InjectionPlan, Source};
use super::runtime_config;
use crate::config::resolved::InboundExclusions;
use crate::domain::keys;

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Texts that a thread remembers: the parts of a few namespaces.
const REMEMBERED: usize = 64;
/// Longest text that is remembered, in bytes.
const REMEMBERED_BYTES: usize = 8 * 1024;

type Hash = [u8; 32];

thread_local! {
    static LAST: RefCell<VecDeque<(Box<[u8]>, Hash)>> = const { RefCell::new(VecDeque::new()) };
    /// Where texts are written, so that a review does not ask for memory for each.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What `then` makes of the serialised form of `value`, which is what its digest is taken of.
pub(super) fn with_form<T>(value: &impl Serialize, then: impl FnOnce(&[u8]) -> T) -> T {
    let mut text = TEXT.take();
    text.clear();
    serde_json::to_writer(&mut text, value).expect("parts have text keys and no failing serialiser");
    let out = then(&text);
    TEXT.set(text);
    out
}

fn sha256(value: &impl Serialize) -> Hash {
    with_form(value, |text| LAST.with_borrow_mut(|last| remembered(last, text)))
}

/// The digest of a part by its serialised form.
pub(super) fn of_form(form: &[u8]) -> String {
    hex(&Sha256::digest(form)[..8])
}

/// The hash of `text`, from memory where it is there.
fn remembered(last: &mut VecDeque<(Box<[u8]>, Hash)>, text: &[u8]) -> Hash {
    if let Some((_, hash)) = last.iter().find(|(known, _)| **known == *text) {
        return *hash;
    }
    let hash = Sha256::digest(text).into();
    if text.len() <= REMEMBERED_BYTES {
        last.truncate(REMEMBERED - 1);
        last.push_front((text.into(), hash));
    }
    hash
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
    base: BTreeMap<&'a str, Cow<'a, Value>>,
    values: BTreeMap<&'a str, &'a str>,
}

/// What a variable comes to.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum VariableInputs<'a> {
    /// This text.
    Literal(&'a str),
    /// What ConfigMap `authbridge-config` holds under the variable's name, read by the kubelet.
    Key(Option<&'a str>),
}

/// Everything that would change a workload's result. Maps are sorted; members stand in this order for good, and one that joins is
/// left out where it says nothing, so that a new version of the binary gives the hashes of the old one.
#[derive(Serialize)]
struct Inputs<'a> {
    mode: &'static str,
    native: bool,
    spire: bool,
    registration: bool,
    pull_policy: &'a str,
    /// Outbound, inbound and admin port, and the user: where Envoy runs or traffic is redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy: Option<([u16; 3], i64)>,
    containers: BTreeMap<&'a str, ContainerInputs<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    values: BTreeMap<&'a str, VariableInputs<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    mounted: BTreeMap<&'a str, Option<&'a String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<RuntimeInputs<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credentials: Option<&'a str>,
    /// Inbound ports and the paths of probes stay behind the proxy, where traffic is redirected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inbound_closed: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    trace: BTreeMap<&'static str, Cow<'a, str>>,
    /// The signer stays.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    signs_anew: bool,
}

/// Containers for whose sake the proxy's ports and user matter.
const WITH_PROXY_SETTINGS: [&str; 3] = [keys::CONTAINER_ENVOY, keys::CONTAINER_PROXY_INIT, keys::CONTAINER_AUTHBRIDGE];

/// The configuration hash: resolved fields that reach a rendered part, the values of
/// every ConfigMap key a part refers to, and the content of mounted ConfigMaps. What only this one Pod brought, such
/// as its ports or what other webhooks added to it, is not in it: all Pods of a workload and its template have one hash.
pub(super) fn of_configuration(cx: &Context<'_>, plan: &InjectionPlan<'_>) -> String {
    let resolved = cx.effective.resolved;
    let proxy = &resolved.proxy;
    let mounted = &cx.subject.view().mounted;
    let (mut containers, mut values) = (BTreeMap::new(), BTreeMap::new());
    for container in plan.all_containers() {
        containers.insert(container.name, ContainerInputs { image: &container.image, resources: &container.resources });
        for variable in container.env.iter().filter(|variable| env::FROM_CONFIG.contains(&variable.name)) {
            values.insert(
                variable.name,
                match &variable.value {
                    Some(text) => VariableInputs::Literal(text),
                    None => VariableInputs::Key(cx.config(variable.name)),
                },
            );
        }
    }
    let with_proxy = containers.keys().any(|name| WITH_PROXY_SETTINGS.contains(name));
    let redirects = containers.contains_key(keys::CONTAINER_PROXY_INIT);
    hex(&sha256(&Inputs {
        mode: cx.effective.mode.value.as_str(),
        native: cx.effective.native,
        spire: cx.effective.spire(),
        registration: cx.effective.sidecars.registration.inject,
        pull_policy: &resolved.images.pull_policy.value,
        proxy: with_proxy
            .then_some(([proxy.port.value, proxy.inbound_port.value, proxy.admin_port.value], proxy.uid.value)),
        containers,
        values,
        mounted: plan
            .volumes
            .iter()
            .filter(|volume| matches!(volume.source, Source::ConfigMap { .. }))
            .map(|volume| (volume.name, mounted.get(volume.name)))
            .collect(),
        runtime: plan.runtime_config.as_ref().map(|_| runtime(cx)),
        credentials: cx.effective.credentials,
        inbound_closed: proxy.inbound_exclusions.value == InboundExclusions::None && redirects,
        trace: agent_env::asked(cx.subject.pod, &cx.effective.trace),
        signs_anew: cx.effective.signer_stays,
    }))
}

fn runtime<'a>(cx: &'a Context<'_>) -> RuntimeInputs<'a> {
    let own_pipeline = runtime_config::has_pipeline(&cx.effective.resolved.runtime_base);
    let keys = if own_pipeline { &[][..] } else { &runtime_config::PIPELINE_KEYS };
    let value = |key: &'static str| Some((key, cx.config(key).filter(|value| !value.is_empty())?));
    RuntimeInputs { base: runtime_config::base_in_force(cx), values: keys.iter().copied().filter_map(value).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_its_text_the_first_time_and_again_whatever_came_between() {
        for round in 0..3 {
            for number in 0..REMEMBERED + 9 {
                let text = format!("{}{number}", "x".repeat(if number == 5 { 9_000 } else { number * 100 }));
                let expected: Hash = Sha256::digest(serde_json::to_vec(&text).unwrap()).into();
                assert_eq!(sha256(&text), expected, "round {round}");
            }
        }
        LAST.with_borrow(|last| {
            assert!(last.len() == REMEMBERED && last.iter().all(|(text, _)| text.len() <= REMEMBERED_BYTES));
        });
    }
}
