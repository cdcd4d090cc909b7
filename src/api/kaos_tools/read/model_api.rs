//! A ModelAPI.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Looked;
use super::env;
use super::offers::offers;
use super::place::{Found, Place};
use super::shared;
use super::spelling::Alias;
use crate::api::findings::Fault;
use crate::api::kaos_tools::models;
use crate::api::kaos_tools::shape::{ApiKey, Configuration, Hosted, Mode, ModelApi, Offer, Proxy};
use crate::api::yaml::{self, Content};
use crate::domain::reason::Reason;

/// Service `modelapi-<name>` has at most 63 characters.
pub(super) const LONGEST_NAME: usize = 54;
/// What every request was answered by where nothing was said.
const OLDEST_DEFAULT: &str = "gpt-3.5-turbo";

pub(super) fn look(object: &Value) -> Looked<ModelApi> {
    let mut all = Found::default();
    let found = &mut all;
    let spec = shared::spec(object, ("modelapi-", LONGEST_NAME), found);
    let mode = mode(&spec, found);
    let (proxy_config, hosted_config) = (spec.mapping("proxyConfig", found), spec.mapping("hostedConfig", found));
    let server_config = spec.mapping("serverConfig", found);
    let env = env::joined(
        &[
            (server_config.at("env"), Some(Alias::ServerEnv)),
            (hosted_config.at("env"), Some(Alias::HostedEnv)),
            (proxy_config.at("env"), Some(Alias::ProxyEnv)),
            (spec.mapping("container", found).at("env"), None),
        ],
        found,
    );
    let models = spec.at("models");
    let offered = offers(&models, found);
    let proxy = proxy(&proxy_config, (&models, offered), mode == Mode::Proxy, found);
    let hosted = hosted(&hosted_config, &server_config, mode == Mode::Hosted, found);
    match mode {
        Mode::Proxy if hosted.is_some() => unused(&hosted_config, "Proxy", found),
        Mode::Hosted if proxy.is_some() => {
            unused(&proxy_config, "Hosted", found);
            unused(&models, "Hosted", found);
        }
        _ => {}
    }
    let telemetry = shared::telemetry(&spec.at("telemetry"), found);
    if mode == Mode::Hosted && telemetry.as_ref().is_some_and(|telemetry| telemetry.enabled) {
        found.note(Reason::FieldUnused, "spec.telemetry", "has no effect on a hosted model: Ollama sends none");
    }
    let old_resources = server_config.at("resources");
    let value = ModelApi {
        mode,
        proxy,
        hosted,
        telemetry,
        container: shared::container(&spec, (&old_resources, Alias::ServerResources), env, found),
        timeout: shared::timeout(&spec, found),
        pod_spec: shared::pod_spec(&spec, found),
    };
    all.looked(value)
}

fn unused(place: &Place<'_>, mode: &str, found: &mut Found) {
    if place.is_there() {
        // Environments of every spelling are joined, whatever the mode.
        let has_env = place.at("env").is_there();
        let but = if has_env { ", but for its env, which the container has all the same" } else { "" };
        found.note(Reason::FieldUnused, &place.path, format!("has no effect while spec.mode is {mode}{but}"));
    }
}

fn mode(spec: &Place<'_>, found: &mut Found) -> Mode {
    let place = spec.at("mode");
    match place.text(found).as_deref() {
        Some("Proxy") => Mode::Proxy,
        Some("Hosted") => Mode::Hosted,
        Some(other) => {
            let fault = Fault::invalid(&place.path, "is neither Proxy nor Hosted", "write one of them");
            found.fault(fault.seeing(other));
            Mode::Proxy
        }
        None => {
            found.required(&place.path, "write Proxy, or Hosted");
            Mode::Proxy
        }
    }
}

fn hosted(new: &Place<'_>, old: &Place<'_>, active: bool, found: &mut Found) -> Option<Hosted> {
    let (now, was) = (new.at("model"), old.at("model"));
    let (now_text, was_text) = (now.text(found), was.text(found));
    let model = found.either((now_text, &now.path), (was_text, &was.path), Alias::ServerModel);
    if model.is_none() && active {
        found.required(&now.path, "name the model that Ollama is to pull, such as smollm2:135m");
    }
    Some(Hosted { model: model? })
}

fn proxy(
    place: &Place<'_>,
    (offered_at, offered): (&Place<'_>, Option<Vec<Offer>>),
    active: bool,
    found: &mut Found,
) -> Option<Proxy> {
    if !place.is_there() {
        if let Some(offers) = offered {
            return Some(with_offers(Proxy::default(), offers));
        }
        if active {
            found.required(&place.path, "say which models are offered: proxyConfig.models");
        }
        return None;
    }
    place.value.filter(|value| value.is_object())?;
    let provider = place.at("provider").text(found);
    let api_base = place.at("apiBase").variable("PROXY_API_BASE", found);
    let api_key = api_key(&place.mapping("apiKey", found), found);
    let configuration = configuration(&place.at("configYaml"), found);
    let list = place.at("models");
    let models = list.names("a model", found);
    if list.value.and_then(Value::as_array).is_some_and(Vec::is_empty) {
        found.invalid(&list.path, "is empty", "name the models that agents may ask for, or write \"*\"");
    }
    let old = place.at("model");
    let one = old.text(found);
    if let Some(offers) = offered {
        for other in [&list, &old, &place.at("configYaml")].into_iter().filter(|other| other.is_there()) {
            let sentence = format!("and {} both say which models are offered", other.path);
            found.invalid(
                &offered_at.path,
                sentence,
                format!("keep one of them; {} has fallbacks and budgets", offered_at.path),
            );
        }
        return Some(with_offers(Proxy { provider, api_base, api_key, ..Proxy::default() }, offers));
    }
    let new = Some(models).filter(|models| !models.is_empty());
    let has_models = new.is_some();
    if one.is_some() && api_base.is_some() && !has_models && configuration.is_none() {
        let sentence = "stands beside apiBase without models, which two earlier versions of KAOS understood differently: one \
                        offered that model at that address, the next one any model there";
        let remedy = "write models with that one item, or leave model out to offer any model";
        found.invalid(&old.path, sentence, remedy);
    }
    let models = if configuration.is_some() && !has_models {
        if one.is_some() {
            let text =
                "has no effect beside configYaml, which says what is offered; write models to have its names checked";
            found.note(Reason::FieldUnused, &old.path, text);
        }
        Vec::new()
    } else {
        let one = one.map(|one| vec![one]);
        found.either((new, &list.path), (one, &old.path), Alias::ProxyModel).unwrap_or_default()
    };
    let mut proxy = Proxy { provider, api_base, api_key, models, configuration, ..Proxy::default() };
    if proxy.models.is_empty() && proxy.configuration.is_none() {
        unsaid(place, &mut proxy, active, found);
    }
    Some(proxy)
}

/// The proxy whose models `spec.models` says.
fn with_offers(proxy: Proxy, offers: Vec<Offer>) -> Proxy {
    Proxy { models: offers.iter().map(|offer| offer.name.clone()).collect(), offers, ..proxy }
}

/// A proxy of which no model is said: what the earlier versions made of it.
fn unsaid(place: &Place<'_>, proxy: &mut Proxy, active: bool, found: &mut Found) {
    let is_old = proxy.provider.is_none() && proxy.api_key.is_none();
    if let Some(address) = proxy.api_base.as_deref() {
        found.old(Alias::ProxyWildcard, &format!("{}.apiBase", place.path));
        proxy.models = vec!["*".to_owned()];
        if is_old {
            proxy.configuration = Some(Configuration::Text(wildcard("*", Some(address))));
            proxy.api_base = None;
        }
    } else if is_old {
        found.old(Alias::ProxyDefault, &place.path);
        if active {
            let text = format!(
                "names no model: every request is answered by {OLDEST_DEFAULT}, whatever it asks for, as the oldest version of KAOS \
                 did; name models"
            );
            found.note(Reason::DefaultModel, &place.path, text);
        }
        proxy.models = vec!["*".to_owned()];
        proxy.configuration = Some(Configuration::Text(wildcard(OLDEST_DEFAULT, None)));
    } else if active {
        found.required(&format!("{}.models", place.path), "name the models that agents may ask for, or write \"*\"");
    }
}

/// LiteLLM's configuration in which whatever is asked for is `model`. A JSON string is a quoted scalar of YAML.
fn wildcard(model: &str, address: Option<&str>) -> String {
    let quoted = |text: &str| Value::String(text.to_owned()).to_string();
    let address = address.map_or_else(String::new, |address| format!("    api_base: {}\n", quoted(address)));
    format!(
        "model_list:\n- model_name: \"*\"\n  litellm_params:\n    model: {}\n{address}litellm_settings:\n  drop_params: true\n",
        quoted(model)
    )
}

fn api_key(place: &Place<'_>, found: &mut Found) -> Option<ApiKey> {
    if !place.is_there() {
        return None;
    }
    let value = place.at("value");
    let literal = value.variable("PROXY_API_KEY", found);
    let from = place.mapping("valueFrom", found);
    let secret = shared::key_ref(&from.at("secretKeyRef"), found);
    let config_map = shared::key_ref(&from.at("configMapKeyRef"), found);
    if literal.is_some() {
        let text =
            "the key stands in the object, where everybody reads it who may read ModelAPIs; take it from a Secret";
        found.note(Reason::CredentialInText, &value.path, text);
    }
    let given = usize::from(literal.is_some()) + usize::from(secret.is_some()) + usize::from(config_map.is_some());
    if given > 1 {
        let text = "names several keys; value counts first, then secretKeyRef, then configMapKeyRef";
        found.note(Reason::ValueShadowed, &place.path, text);
    }
    let key = literal
        .map(ApiKey::Literal)
        .or_else(|| secret.map(ApiKey::Secret))
        .or_else(|| config_map.map(ApiKey::ConfigMap));
    if key.is_none() {
        found.note(Reason::FieldUnused, &place.path, "names no key, and counts as left out");
    }
    key
}

/// `configYaml`, as a text or as an object.
fn configuration(place: &Place<'_>, found: &mut Found) -> Option<Configuration> {
    match place.value? {
        Value::String(text) => {
            if text.is_empty() {
                return None;
            }
            found.old(Alias::ConfigText, &place.path);
            Some(text_of(place, text, found))
        }
        Value::Object(members) => {
            let (text, secret) = (place.at("fromString"), place.at("fromSecretKeyRef"));
            let literal = text.text(found);
            let secret = shared::key_ref(&secret, found);
            for key in members.keys().filter(|key| !["fromString", "fromSecretKeyRef"].contains(&key.as_str())) {
                let path = format!("{}.{key}", place.path);
                let sentence = "is not a field there; the fields are fromString and fromSecretKeyRef";
                found.invalid(&path, sentence, "write LiteLLM's configuration as a text under fromString");
            }
            if literal.is_some() && secret.is_some() {
                let text = "names a text and a Secret; the text counts";
                found.note(Reason::ValueShadowed, &place.path, text);
            }
            literal.map(|literal| text_of(&text, &literal, found)).or_else(|| secret.map(Configuration::Secret))
        }
        other => {
            let sentence = format!(
                "must be a text or a mapping with fromString or fromSecretKeyRef, and is {}",
                yaml::kind(other)
            );
            found.invalid(&place.path, sentence, "write LiteLLM's configuration as a text");
            None
        }
    }
}

fn text_of(place: &Place<'_>, text: &str, found: &mut Found) -> Configuration {
    match yaml::parse_with_merge_keys(text) {
        Ok(node) if matches!(node.content, Content::Map(_)) => {}
        Ok(node) => {
            let sentence = format!("is not a configuration of LiteLLM: a mapping is needed, and it is {}", node.kind());
            found.invalid(&place.path, sentence, "write model_list and what else LiteLLM reads");
        }
        Err(error) => {
            let sentence = format!("is not YAML: line {}: {}", error.line, error.message);
            found.invalid(&place.path, sentence, "correct the text");
        }
    }
    Configuration::Text(text.to_owned())
}

/// Names of `configYaml` that `models` does not allow, as a controller finds them.
pub(super) fn strangers(proxy: &Proxy) -> Vec<String> {
    let Some(Configuration::Text(text)) = &proxy.configuration else { return Vec::new() };
    if proxy.models.is_empty() {
        return Vec::new();
    }
    let Ok(node) = yaml::parse_with_merge_keys(text) else { return Vec::new() };
    let value = node.to_json();
    let entries = value.get("model_list").and_then(Value::as_array).into_iter().flatten();
    // As many names as there is room for, and most of them stand in the list as they are.
    let listed: BTreeSet<&str> = proxy.models.iter().map(String::as_str).collect();
    let names = entries.filter_map(|entry| entry.get("model_name")?.as_str());
    let strangers = names.filter(|name| !listed.contains(name) && !models::allows(&proxy.models, name));
    strangers.map(str::to_owned).collect()
}
