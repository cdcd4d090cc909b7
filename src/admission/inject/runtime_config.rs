//! The runtime configuration of one Pod, as YAML (`spec/authbridge-webhook.md` 7.5), delivered inside the Pod.
//!
//! In: the namespace's base and `authbridge-config`. Out: text with sorted keys, at most 64 KiB; an existing
//! `pipeline` is never touched, `mode` and in proxy mode three listener addresses are ours.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::context::Context;
use super::ports::Takeover;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// The most that goes into an annotation (design, deviations table).
const MAX_BYTES: usize = 64 * 1024;

/// Whether the base brings a pipeline of its own, which stays as it is.
pub(super) fn has_pipeline(base: &Value) -> bool {
    base.get("pipeline").is_some_and(|pipeline| !pipeline.is_null())
}

/// The keys of `authbridge-config` from which a missing pipeline is made.
pub(super) const PIPELINE_KEYS: [&str; 5] =
    ["ISSUER", "KEYCLOAK_URL", "KEYCLOAK_REALM", "DEFAULT_OUTBOUND_POLICY", "CLIENT_AUTH_TYPE"];

/// The listener addresses that mode proxy-sidecar writes.
const LISTENERS: [&str; 3] = ["reverse_proxy_addr", "reverse_proxy_backend", "forward_proxy_addr"];

/// The members of the base that stand in the result as they are: what we write over it does not count.
pub(super) fn base_in_force<'a>(cx: &Context<'a>) -> BTreeMap<&'a str, Cow<'a, Value>> {
    let takeover = cx.effective.mode.value == Mode::ProxySidecar;
    let base = cx.effective.resolved.runtime_base.as_object();
    let members = base.into_iter().flatten().filter_map(|(key, value)| {
        Some((
            key.as_str(),
            match key.as_str() {
                "mode" => return None,
                "pipeline" if value.is_null() => return None,
                "listener" if takeover => {
                    let mut listener = value.as_object()?.clone();
                    listener.retain(|member, _| !LISTENERS.contains(&member.as_str()));
                    if listener.is_empty() {
                        return None;
                    }
                    Cow::Owned(Value::Object(listener))
                }
                _ => Cow::Borrowed(value),
            },
        ))
    });
    members.collect()
}

fn pipeline(cx: &Context<'_>) -> Value {
    let value = |key: &str| cx.config(key).filter(|value| !value.is_empty());
    let members = |pairs: &[(&str, &str)]| -> Map<String, Value> {
        pairs.iter().filter_map(|(name, key)| Some(((*name).to_owned(), value(key)?.into()))).collect()
    };
    let inbound =
        members(&[("issuer", "ISSUER"), ("keycloak_url", "KEYCLOAK_URL"), ("keycloak_realm", "KEYCLOAK_REALM")]);
    let mut outbound = members(&[
        ("keycloak_url", "KEYCLOAK_URL"),
        ("keycloak_realm", "KEYCLOAK_REALM"),
        ("default_policy", "DEFAULT_OUTBOUND_POLICY"),
    ]);
    if let Some(kind) = value("CLIENT_AUTH_TYPE") {
        let kind = if kind == "federated-jwt" { "spiffe" } else { kind };
        outbound.insert("identity".to_owned(), json!({"type": kind}));
    }
    json!({
        "inbound": {"plugins": [{"name": "jwt-validation", "config": inbound}]},
        "outbound": {"plugins": [{"name": "token-exchange", "config": outbound}]},
    })
}

/// Configurations that a thread remembers with their text.
const REMEMBERED: usize = 8;
/// Longest text that is remembered, in bytes.
const REMEMBERED_BYTES: usize = 8 * 1024;

/// `config` as YAML. Writing it is a tenth of the work of a review, and the Pods of a namespace bring the same one again
/// and again: the last few are kept. Equal configurations give equal text with or without that.
fn yaml(config: Value) -> Result<String, serde_saphyr::SerializeError> {
    thread_local! {
        static LAST: RefCell<VecDeque<(Value, String)>> = const { RefCell::new(VecDeque::new()) };
    }
    LAST.with_borrow_mut(|last| {
        if let Some((_, text)) = last.iter().find(|(known, _)| *known == config) {
            return Ok(text.clone());
        }
        let text = serde_saphyr::to_string(&config)?;
        if text.len() <= REMEMBERED_BYTES {
            last.truncate(REMEMBERED - 1);
            last.push_front((config, text.clone()));
        }
        Ok(text)
    })
}

/// The text for this Pod; `takeover` is the port layout of mode proxy-sidecar.
pub(super) fn text(cx: &Context<'_>, mode: Mode, takeover: Option<&Takeover>) -> Result<String, Box<Denial>> {
    let base = &cx.effective.resolved.runtime_base;
    let mut config = base.as_object().cloned().unwrap_or_default();
    if !has_pipeline(base) {
        config.insert("pipeline".to_owned(), pipeline(cx));
    }
    config.insert("mode".to_owned(), mode.as_str().into());
    if let Some(ports) = takeover {
        let listener = config.entry("listener").or_insert(Value::Null);
        if !listener.is_object() {
            *listener = json!({});
        }
        let addresses = [
            format!(":{}", ports.reverse),
            format!("http://127.0.0.1:{}", ports.backend),
            format!(":{}", ports.forward),
        ];
        for (member, address) in LISTENERS.into_iter().zip(addresses) {
            listener[member] = address.into();
        }
    }
    let text = yaml(Value::Object(config)).map_err(|error| {
        Box::new(Denial::new(
            Reason::InternalError,
            500,
            format!("the runtime configuration could not be written as YAML: {error}"),
            "report this as a defect of Drawbridge",
        ))
    })?;
    if text.len() > MAX_BYTES {
        return Err(Box::new(
            Denial::new(
                Reason::RuntimeConfigTooLarge,
                422,
                format!("the runtime configuration has {} bytes; at most {MAX_BYTES} fit into a Pod", text.len()),
                format!("shorten key config.yaml of ConfigMap {}", keys::CONFIG_MAP_RUNTIME),
            )
            .at(format!("ConfigMap {}, key config.yaml", keys::CONFIG_MAP_RUNTIME), format!("{} bytes", text.len())),
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_its_own_text_however_many_came_before() {
        for round in 0..3 {
            for number in 0..2 * REMEMBERED {
                let config = json!({"mode": number, "long": "x".repeat(number * 1024)});
                let text = yaml(config.clone()).unwrap();
                assert_eq!(text, serde_saphyr::to_string(&config).unwrap(), "round {round}");
            }
        }
    }
}
