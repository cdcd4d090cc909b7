//! The runtime configuration of one Pod, as YAML, delivered inside the Pod.
//!
//! In: the namespace's base and `authbridge-config`. Out: text with sorted keys, at most 64 KiB; an existing
//! `pipeline` is never touched, `mode` and in proxy mode three listener addresses are ours. What is opened for probes goes to every
//! token check that lists nothing itself.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use super::context::Context;
use super::open_paths::{self, Open};
use super::ports::Takeover;
use crate::admission::verdict::Denial;
use crate::domain::keys;
use crate::domain::mode::Mode;
use crate::domain::reason::Reason;

/// The most that goes into an annotation.
const MAX_BYTES: usize = 64 * 1024;

/// Whether the base brings a pipeline of its own, which stays as it is.
pub(super) fn has_pipeline(base: &Value) -> bool {
    base.get("pipeline").is_some_and(|pipeline| !pipeline.is_null())
}

/// What a token check lets through.
pub(super) const BYPASS_PATHS: &str = "bypass_paths";
/// The plugin that checks tokens.
const TOKEN_CHECK: &str = "jwt-validation";

/// The entries of a configuration's inbound pipeline that check tokens; one may be the plugin's name alone.
pub(super) fn token_checks(config: &Value) -> Vec<&Value> {
    let plugins = config.pointer("/pipeline/inbound/plugins").and_then(Value::as_array);
    plugins.into_iter().flatten().filter(|entry| is_token_check(entry)).collect()
}

fn is_token_check(entry: &Value) -> bool {
    entry.as_str().or_else(|| entry.get("name")?.as_str()) == Some(TOKEN_CHECK)
}

/// Adds what is open to the token checks that list nothing themselves.
fn let_through(config: &mut Value, open: &[String]) {
    let plugins = config.pointer_mut("/pipeline/inbound/plugins").and_then(Value::as_array_mut);
    for entry in plugins.into_iter().flatten().filter(|entry| is_token_check(entry)) {
        if entry.is_string() {
            *entry = json!({"name": TOKEN_CHECK});
        }
        let settings = &mut entry["config"];
        if settings.is_null() {
            *settings = json!({});
        }
        let Some(settings) = settings.as_object_mut() else { continue };
        if settings.get(BYPASS_PATHS).is_none_or(Value::is_null) {
            let all: Vec<&str> = open_paths::DEFAULT.into_iter().chain(open.iter().map(String::as_str)).collect();
            settings.insert(BYPASS_PATHS.to_owned(), json!(all));
        }
    }
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

/// Everything the text is made from.
#[derive(Debug, PartialEq)]
struct Inputs<'a> {
    base: Cow<'a, Value>,
    /// Of [`PIPELINE_KEYS`], in their order; of no account where the base has a pipeline.
    values: [Option<Cow<'a, str>>; PIPELINE_KEYS.len()],
    mode: Mode,
    /// What the proxy receives on, where it sends that, and what it takes the agent's own calls on.
    ports: Option<[u16; LISTENERS.len()]>,
    /// Paths that are let through besides those that always are.
    open: Vec<String>,
}

impl<'a> Inputs<'a> {
    fn of(cx: &Context<'a>, mode: Mode, takeover: Option<&Takeover>, open: &[Open]) -> Self {
        let base = &cx.effective.resolved.runtime_base;
        let config = cx.subject.view().authbridge_config.as_ref();
        let value = |key| {
            let value = config?.get(key).filter(|value| !value.is_empty() && !has_pipeline(base))?;
            Some(Cow::Borrowed(value.as_str()))
        };
        Self {
            base: Cow::Borrowed(base),
            values: PIPELINE_KEYS.map(value),
            mode,
            ports: takeover.map(|ports| [ports.reverse, ports.backend, ports.forward]),
            open: open.iter().map(|open| open.path.clone()).collect(),
        }
    }

    fn into_owned(self) -> Inputs<'static> {
        Inputs {
            base: Cow::Owned(self.base.into_owned()),
            values: self.values.map(|value| Some(Cow::Owned(value?.into_owned()))),
            mode: self.mode,
            ports: self.ports,
            open: self.open,
        }
    }

    fn value(&self, key: &str) -> Option<&str> {
        let place = PIPELINE_KEYS.iter().position(|known| *known == key)?;
        self.values[place].as_deref()
    }

    fn pipeline(&self) -> Value {
        let members = |pairs: &[(&str, &str)]| -> Map<String, Value> {
            pairs.iter().filter_map(|(name, key)| Some(((*name).to_owned(), self.value(key)?.into()))).collect()
        };
        let inbound =
            members(&[("issuer", "ISSUER"), ("keycloak_url", "KEYCLOAK_URL"), ("keycloak_realm", "KEYCLOAK_REALM")]);
        let mut outbound = members(&[
            ("keycloak_url", "KEYCLOAK_URL"),
            ("keycloak_realm", "KEYCLOAK_REALM"),
            ("default_policy", "DEFAULT_OUTBOUND_POLICY"),
        ]);
        if let Some(kind) = self.value("CLIENT_AUTH_TYPE") {
            let kind = if kind == "federated-jwt" { "spiffe" } else { kind };
            outbound.insert("identity".to_owned(), json!({"type": kind}));
        }
        json!({
            "inbound": {"plugins": [{"name": TOKEN_CHECK, "config": inbound}]},
            "outbound": {"plugins": [{"name": "token-exchange", "config": outbound}]},
        })
    }

    fn config(&self) -> Value {
        let mut config = self.base.as_object().cloned().unwrap_or_default();
        if !has_pipeline(&self.base) {
            config.insert("pipeline".to_owned(), self.pipeline());
        }
        config.insert("mode".to_owned(), self.mode.as_str().into());
        if let Some([reverse, backend, forward]) = self.ports {
            let listener = config.entry("listener").or_insert(Value::Null);
            if !listener.is_object() {
                *listener = json!({});
            }
            let addresses = [format!(":{reverse}"), format!("http://127.0.0.1:{backend}"), format!(":{forward}")];
            for (member, address) in LISTENERS.into_iter().zip(addresses) {
                listener[member] = address.into();
            }
        }
        let mut config = Value::Object(config);
        if !self.open.is_empty() {
            let_through(&mut config, &self.open);
        }
        config
    }
}

/// Texts that a thread remembers with their inputs.
const REMEMBERED: usize = 8;
/// Longest text that is remembered, in bytes.
const REMEMBERED_BYTES: usize = 8 * 1024;

/// What `inputs` come to, as YAML. Writing it is a tenth of the work of a review, and the Pods of a namespace bring the
/// same inputs again and again: the last few are kept. Equal inputs give equal text with or without that.
fn yaml(inputs: Inputs<'_>) -> Result<String, serde_saphyr::SerializeError> {
    thread_local! {
        static LAST: RefCell<VecDeque<(Inputs<'static>, String)>> = const { RefCell::new(VecDeque::new()) };
    }
    LAST.with_borrow_mut(|last| {
        if let Some((_, text)) = last.iter().find(|(known, _)| *known == inputs) {
            return Ok(text.clone());
        }
        let text = serde_saphyr::to_string(&inputs.config())?;
        if text.len() <= REMEMBERED_BYTES {
            last.truncate(REMEMBERED - 1);
            last.push_front((inputs.into_owned(), text.clone()));
        }
        Ok(text)
    })
}

/// The text for this Pod; `takeover` is the port layout of mode proxy-sidecar, `open` what is let through besides.
pub(super) fn text(
    cx: &Context<'_>,
    mode: Mode,
    takeover: Option<&Takeover>,
    open: &[Open],
) -> Result<String, Box<Denial>> {
    let text = yaml(Inputs::of(cx, mode, takeover, open)).map_err(|error| {
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
    fn inputs_have_their_own_text_however_many_came_before() {
        for round in 0..3 {
            for number in 0..2 * REMEMBERED {
                let inputs = || Inputs {
                    base: Cow::Owned(json!({"number": number / 4, "long": "x".repeat(number / 4 * 4096)})),
                    values: [(number % 2 == 1).then_some(Cow::Borrowed("issuer")), None, None, None, None],
                    mode: Mode::EnvoySidecar,
                    ports: (number % 4 > 1).then_some([8000, 8001, 8081]),
                    open: Vec::new(),
                };
                let text = yaml(inputs()).unwrap();
                assert_eq!(text, serde_saphyr::to_string(&inputs().config()).unwrap(), "round {round}");
            }
        }
    }
}
