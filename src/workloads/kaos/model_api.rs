//! What runs a ModelAPI: a LiteLLM proxy, or Ollama with a model.
//!
//! In: what the ModelAPI says. Out: a request of the workload engine, and the proxy's configuration. Promises: a current LiteLLM starts with it;
//! a model is an argument of a program and never part of a script; the model is there before the server is asked for it, because the kubelet
//! waits for a server to answer, then for the pull to end.

use serde_json::{Map, Value, json};

use super::compose::{ComposeFault, Composed, Container, composed, probe};
use super::contract::{self, Origin, PULL_HOST, Place};
use super::identity::Identity;
use super::litellm;
use super::names::{CONFIG_FILE, PORT, PORT_OLLAMA, Role, config_map};
use super::rules::patched;
use super::settings::Settings;
use super::variables::{Variables, telemetry_of};
use crate::api::kaos_tools::read;
use crate::api::kaos_tools::shape::{ApiKey, Configuration, KeyRef, Mode, ModelApi, Proxy, Raw};
use crate::api::yaml::{self, Content, Node};

const VOLUME_CONFIG: &str = "litellm-config";
/// The variable that LiteLLM takes a master key from.
const MASTER_KEY: &str = "LITELLM_MASTER_KEY";
/// The key of a YAML mapping whose value is merged into it.
const MERGE: &str = "<<";
const VOLUME_DATA: &str = "ollama-data";
const DATA: &str = "/root/.ollama";
/// The init container that pulls a model.
const PULL: &str = "pull-model";
/// The server that it pulls through.
const PULL_SERVER: &str = "pull-server";

/// The request of a ModelAPI.
///
/// # Errors
/// When there is no image, no model or configuration, or `podSpec` cannot be merged.
pub fn compose(identity: &Identity, api: &ModelApi, settings: &Settings) -> Result<Composed, ComposeFault> {
    match (api.mode, &api.proxy, &api.hosted) {
        (Mode::Proxy, Some(proxy), _) => composed_proxy(identity, api, proxy, settings),
        (Mode::Proxy, None, _) => Err(ComposeFault::NoModel("spec.proxyConfig is required with mode Proxy")),
        (Mode::Hosted, _, Some(hosted)) if !hosted.model.is_empty() => {
            composed_hosted(identity, api, &hosted.model, settings)
        }
        (Mode::Hosted, ..) => {
            Err(ComposeFault::NoModel("spec.hostedConfig.model is required with mode Hosted: name the model to pull"))
        }
    }
}

/// The configuration of a proxy; `None` where it is in a Secret.
#[must_use]
pub fn configuration(proxy: &Proxy, telemetry: bool) -> Option<String> {
    match &proxy.configuration {
        Some(Configuration::Text(text)) => {
            let traced = telemetry.then(|| unsaid(proxy, text)).flatten();
            Some(traced.map_or_else(|| text.clone(), |traced| traced.text()))
        }
        Some(Configuration::Secret(_)) => None,
        None => Some(litellm::of(proxy, telemetry).text()),
    }
}

/// The configuration of a proxy of which no model is said, with traces, where `text` is what its reader made of that: what somebody wrote themselves
/// is taken as it is, and this one nobody wrote.
fn unsaid(proxy: &Proxy, text: &str) -> Option<litellm::Configuration> {
    if !matches!(&proxy.models[..], [all] if all == "*") {
        return None;
    }
    let document = yaml::parse(text).ok()?.to_json();
    let asked = document.pointer("/model_list/0/litellm_params")?;
    let of = |name: &str| asked.get(name).and_then(Value::as_str).map(str::to_owned);
    let (model, api_base) = (of("model")?, of("api_base"));
    let mut said = json!({"metadata": {"name": "any"}, "spec": {"mode": "Proxy", "proxyConfig": {}}});
    if let Some(address) = &api_base {
        said["spec"]["proxyConfig"]["apiBase"] = json!(address);
    }
    let again = read::model_api(&said).value.proxy?;
    if again.configuration != proxy.configuration {
        return None;
    }
    let all = litellm::Model { model, api_base, ..litellm::Model::listed("*", None, (false, false)) };
    Some(litellm::Configuration { models: vec![all], fallbacks: Vec::new(), telemetry: true })
}

/// Whether every Pod that reaches the proxy may spend the provider's key: it has no master key. `None` where nobody can tell, because the
/// configuration is in a Secret.
#[must_use]
pub fn is_open(api: &ModelApi) -> Option<bool> {
    let proxy = api.proxy.as_ref().filter(|_| api.mode == Mode::Proxy);
    let Some(proxy) = proxy else { return Some(false) };
    if is_in_environment(api, MASTER_KEY) {
        return Some(false);
    }
    match &proxy.configuration {
        Some(Configuration::Secret(_)) => None,
        Some(Configuration::Text(text)) => Some(!setting(text, "master_key")),
        None => Some(true),
    }
}

/// Whether the user has the proxy's container have that variable: by `container.env`, as `podSpec` leaves it. An empty text is none.
fn is_in_environment(api: &ModelApi, name: &str) -> bool {
    let is_empty = |value: &Value| value.is_null() || value == "";
    let is_it = |entry: &Value| entry["name"] == name && !(is_empty(&entry["value"]) && entry["valueFrom"].is_null());
    let said = || api.container.env.iter().any(|variable| is_it(&variable.entry));
    let Some(patch) = &api.pod_spec else { return said() };
    let main = Role::ModelApi.container();
    let env: Vec<&Value> = api.container.env.iter().map(|variable| &variable.entry).collect();
    // The merge that makes the Pod, because a patch can take a variable away as well; of one that cannot be merged no Pod is made.
    let Ok(spec) = patched(&json!({"containers": [{"name": main, "env": env}]}), patch, main) else { return said() };
    let mut containers = spec.get("containers").and_then(Value::as_array).into_iter().flatten();
    let own = containers.find(|container| container["name"] == main);
    let mut variables = own.and_then(|own| own.get("env")?.as_array()).into_iter().flatten();
    variables.any(is_it)
}

/// Whether a configuration sets that member of `general_settings`.
fn setting(text: &str, name: &str) -> bool {
    // As admission reads it: merge keys are LiteLLM's own way to write it.
    let Ok(document) = yaml::parse_with_merge_keys(text) else { return false };
    let found = member(&document, "general_settings").and_then(|settings| member(settings, name));
    found.is_some_and(|value| match &value.content {
        Content::Null => false,
        Content::Text(text) => !text.is_empty(),
        _ => true,
    })
}

/// The member of a mapping of that name: its own, else that of the first mapping merged into it that has one, as LiteLLM's reader has it.
fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Content::Map(entries) = &node.content else { return None };
    let own = |name: &str| entries.iter().find(|entry| entry.key == name).map(|entry| &entry.value);
    own(name).or_else(|| match own(MERGE)? {
        Node { content: Content::List(sources), .. } => sources.iter().find_map(|source| member(source, name)),
        source => member(source, name),
    })
}

fn composed_proxy(
    identity: &Identity,
    api: &ModelApi,
    proxy: &Proxy,
    settings: &Settings,
) -> Result<Composed, ComposeFault> {
    if api.container.image.is_none() && settings.image_litellm.is_none() {
        return Err(ComposeFault::NoImage("images.kaosLitellm"));
    }
    let own = api.telemetry.as_ref();
    let telemetry = settings.telemetry.effective(own);
    let config = configuration(proxy, telemetry.is_some());
    let mut all = Variables::of_user(Place::Proxy, &api.container);
    if let Some(base) = &proxy.api_base {
        all.set(&contract::PROXY_API_BASE, base);
    }
    match &proxy.api_key {
        Some(ApiKey::Literal(key)) => all.set(&contract::PROXY_API_KEY, key),
        Some(ApiKey::Secret(at)) => key_from(&mut all, "secretKeyRef", at),
        Some(ApiKey::ConfigMap(at)) => key_from(&mut all, "configMapKeyRef", at),
        None => {}
    }
    all.users();
    all.set(&contract::LITELLM_LOG, settings.log_level.litellm());
    if is_open(api) != Some(false) {
        all.set(&contract::LITELLM_OPEN, "true");
    }
    if let Some(endpoint) = telemetry {
        let from = telemetry_of(own);
        all.set_from(&contract::OTEL_EXPORTER, "otlp_grpc", from);
        if let Some(endpoint) = endpoint {
            all.set_from(&contract::OTEL_EXPORTER_OTLP_ENDPOINT, endpoint, from);
        }
        all.set_from(&contract::OTEL_SERVICE_NAME, identity.name(), from);
        all.set_from(&contract::OTEL_PYTHON_EXCLUDED_URLS, "/health", from);
    }
    let source = match &proxy.configuration {
        Some(Configuration::Secret(KeyRef { name, key, .. })) => {
            json!({"name": VOLUME_CONFIG, "secret": {"secretName": name, "items": [{"key": key, "path": CONFIG_FILE}]}})
        }
        _ => json!({"name": VOLUME_CONFIG, "configMap": {"name": config_map(identity.name())}}),
    };
    let mut container = Map::new();
    container.insert("image".to_owned(), json!(settings.image_litellm));
    container.insert(
        "args".to_owned(),
        json!(["--config", format!("/etc/litellm/{CONFIG_FILE}"), "--port", PORT.to_string()]),
    );
    container.insert("volumeMounts".to_owned(), json!([{"name": VOLUME_CONFIG, "mountPath": "/etc/litellm"}]));
    container.extend(probes("/health/liveliness", PORT));
    let container = Container {
        role: Role::ModelApi,
        port: PORT,
        own: container,
        variables: all,
        pod: Map::from_iter([("volumes".to_owned(), json!([source]))]),
        config,
        port_variable: None,
    };
    composed(identity, (&api.container, api.pod_spec.as_ref()), container, settings)
}

/// The provider's key, by reference.
fn key_from(all: &mut Variables, source: &str, at: &KeyRef) {
    let mut from = json!({"name": at.name, "key": at.key});
    if let Some(optional) = at.optional {
        from["optional"] = json!(optional);
    }
    let row = &contract::PROXY_API_KEY;
    let entry = json!({"name": row.name.of(""), "valueFrom": {source: from}});
    all.entry(row, entry, Origin::Field("spec.proxyConfig.apiKey.valueFrom"));
}

fn composed_hosted(
    identity: &Identity,
    api: &ModelApi,
    model: &str,
    settings: &Settings,
) -> Result<Composed, ComposeFault> {
    let image = api.container.image.as_ref().or(settings.image_ollama.as_ref());
    let image = image.ok_or(ComposeFault::NoImage("images.kaosOllama"))?;
    let mut all = Variables::of_user(Place::Hosted, &api.container);
    all.users();
    if let Some(level) = settings.log_level.ollama() {
        all.set(&contract::OLLAMA_DEBUG, level);
    }
    let mounts = json!([{"name": VOLUME_DATA, "mountPath": DATA}]);
    // Pulling needs a server. One runs beside the Pod's own as an init container that stays, at another port of the loopback; the kubelet
    // starts the pull once it answers.
    let mut pull = all.clone().at(Place::Pull);
    pull.set(&contract::OLLAMA_HOST, PULL_HOST);
    let env: Vec<Value> = pull.all().0.into_iter().map(|variable| variable.entry).collect();
    let init = |name: &str, args: Value| {
        json!({
            "name": name, "image": image, "imagePullPolicy": "IfNotPresent", "command": ["ollama"], "args": args,
            "env": env, "volumeMounts": mounts,
        })
    };
    let mut server = init(PULL_SERVER, json!(["serve"]));
    server["restartPolicy"] = json!("Always");
    server["startupProbe"] = probe(
        ("exec", json!({"command": ["ollama", "list"]})),
        &[("periodSeconds", 1), ("timeoutSeconds", 5), ("failureThreshold", 300)],
    );
    let pod = Map::from_iter([
        ("initContainers".to_owned(), json!([server, init(PULL, pulled(model))])),
        ("volumes".to_owned(), json!([{"name": VOLUME_DATA, "emptyDir": {}}])),
    ]);
    let mut container = Map::new();
    container.insert("image".to_owned(), json!(image));
    container.insert("volumeMounts".to_owned(), mounts.clone());
    container.extend(probes("/", PORT_OLLAMA));
    let container = Container {
        role: Role::ModelApi,
        port: PORT_OLLAMA,
        own: container,
        variables: all,
        pod,
        config: None,
        port_variable: None,
    };
    let pod_spec = api.pod_spec.as_ref().map(for_both);
    composed(identity, (&api.container, pod_spec.as_ref()), container, settings)
}

/// The arguments that pull a model, whatever it is called: what begins with a hyphen would be an option, and the kubelet would expand `$(NAME)`.
fn pulled(model: &str) -> Value {
    let word = model.replace('$', "$$");
    if model.starts_with('-') { json!(["pull", "--", word]) } else { json!(["pull", word]) }
}

/// `podSpec`, in which what is said of the container that pulls holds for the server that it pulls through as well, unless that one is named itself:
/// both were one container once. Command and resources stay its own, because it runs for as long as the Pod does.
fn for_both(patch: &Raw) -> Raw {
    let mut both = patch.clone();
    share(&mut both.0);
    both
}

fn share(pod: &mut Value) {
    const SHARED: [&str; 6] = ["image", "imagePullPolicy", "env", "envFrom", "volumeMounts", "securityContext"];
    // Where the order of a list is said, or items of it are replaced, nothing is added to it.
    if directs(pod) {
        return;
    }
    let Some(init) = pod.get_mut("initContainers").and_then(Value::as_array_mut) else { return };
    let at = |name: &str| init.iter().position(|container| container["name"] == name);
    let (Some(pull), None) = (at(PULL), at(PULL_SERVER)) else { return };
    if init.iter().any(directs) {
        return;
    }
    let of_pull = SHARED.into_iter().filter_map(|name| Some((name.to_owned(), init[pull].get(name)?.clone())));
    let mut server: Map<String, Value> = of_pull.collect();
    if !server.is_empty() {
        server.insert("name".to_owned(), json!(PULL_SERVER));
        init.insert(pull, Value::Object(server));
    }
}

/// Whether a mapping holds a directive of the merge.
fn directs(value: &Value) -> bool {
    value.as_object().is_some_and(|members| members.keys().any(|key| key.starts_with('$')))
}

fn probes(path: &str, port: u16) -> [(String, Value); 2] {
    let get = || ("httpGet", json!({"path": path, "port": port}));
    let numbers = |delay, period| {
        [("initialDelaySeconds", delay), ("periodSeconds", period), ("timeoutSeconds", 5), ("failureThreshold", 3)]
    };
    [
        ("livenessProbe".to_owned(), probe(get(), &numbers(30, 10))),
        ("readinessProbe".to_owned(), probe(get(), &numbers(15, 5))),
    ]
}
