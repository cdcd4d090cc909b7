//! What runs a ModelAPI.

use serde_json::json;

use super::*;
use crate::api::kaos_tools::shape::{ApiKey, Configuration, KeyRef};
use crate::api::yaml;
use crate::workloads::kaos::litellm::{API_BASE, API_KEY, OPEN};
use crate::workloads::kaos::model_api::{self, is_open};
use crate::workloads::kaos::settings::{LogLevel, Telemetry};

fn built(api: &ModelApi) -> Composed {
    compose(api, &settings())
}

fn compose(api: &ModelApi, settings: &Settings) -> Composed {
    model_api::compose(&identity("m"), api, settings).unwrap()
}

fn written(configuration: Configuration) -> Proxy {
    Proxy { configuration: Some(configuration), ..listed(&[]) }
}

fn key(name: &str, key: &str) -> KeyRef {
    KeyRef { name: name.to_owned(), key: key.to_owned(), optional: None }
}

fn entries(composed: &Composed) -> Value {
    yaml::parse(composed.config.as_ref().unwrap()).unwrap().to_json()["model_list"].clone()
}

#[test]
fn cases_89_and_91_a_proxy() {
    let composed = built(&proxy(listed(&["a"])));
    let pod = pod(&composed);
    let container = &pod["containers"][0];
    assert_eq!((&container["name"], &container["image"]), (&json!("model-api"), &json!("example/litellm:3")));
    assert_eq!(container["args"], json!(["--config", "/etc/litellm/config.yaml", "--port", "8000"]));
    assert_eq!(pod["volumes"], json!([{"name": "litellm-config", "configMap": {"name": "litellm-config-m"}}]));
    assert_eq!(container["volumeMounts"], json!([{"name": "litellm-config", "mountPath": "/etc/litellm"}]));
    let probe = |delay: i64, period: i64| json!({"httpGet": get("/health/liveliness", 8000), "initialDelaySeconds": delay, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": 3});
    assert_eq!((&container["livenessProbe"], &container["readinessProbe"]), (&probe(30, 10), &probe(15, 5)));
    assert_eq!(
        (composed.port, made(&composed).service.unwrap()["spec"]["ports"][0]["port"].clone()),
        (8000, json!(8000))
    );
}

#[test]
fn cases_90_92_and_17_a_hosted_model() {
    let mut model = hosted("smollm2:135m");
    model.container.env = env(&[json!({"name": "A", "value": "1"})]);
    let composed = built(&model);
    let pod = pod(&composed);
    let container = &pod["containers"][0];
    assert_eq!(
        (&container["name"], &container["image"], composed.port),
        (&json!("model-api"), &json!("example/ollama:2"), 11434)
    );
    assert_eq!((container.get("command"), container.get("args"), composed.config.as_ref()), (None, None, None));
    assert_eq!(variable(container, "A").as_deref(), Some("1"));
    let probe = |delay: i64, period: i64| json!({"httpGet": get("/", 11434), "initialDelaySeconds": delay, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": 3});
    assert_eq!((&container["livenessProbe"], &container["readinessProbe"]), (&probe(30, 10), &probe(15, 5)));
    assert_eq!(pod["volumes"], json!([{"name": "ollama-data", "emptyDir": {}}]));
    let mount = json!([{"name": "ollama-data", "mountPath": "/root/.ollama"}]);
    assert_eq!(container["volumeMounts"], mount);
    let pull = pod["initContainers"].as_array().unwrap().iter().find(|one| one["name"] == "pull-model").unwrap();
    assert_eq!(
        (&pull["command"], &pull["args"], &pull["volumeMounts"]),
        (&json!(["ollama"]), &json!(["pull", "smollm2:135m"]), &mount)
    );
    assert_eq!(
        variable(pull, "A").as_deref(),
        Some("1"),
        "what the user sets, a proxy among it, is for the pull as well"
    );
}

/// No fixed sleep, no shell, and the model is nothing but an argument.
#[test]
fn case_111_a_model_is_an_argument_whatever_it_holds() {
    let pod = pod(&built(&hosted("x; reboot")));
    let text = pod["initContainers"].to_string();
    assert!(!text.contains("sleep") && !text.contains("/sh") && !text.contains("bash"), "{text}");
    let found: Vec<_> = pod["initContainers"].as_array().unwrap().iter().map(|one| one["args"].clone()).collect();
    assert_eq!(found, [json!(["serve"]), json!(["pull", "x; reboot"])]);
    let server = &pod["initContainers"][0];
    assert_eq!(
        (&server["restartPolicy"], &server["startupProbe"]["exec"]["command"]),
        (&json!("Always"), &json!(["ollama", "list"]))
    );
    let hosts: Vec<_> =
        pod["initContainers"].as_array().unwrap().iter().map(|one| variable(one, "OLLAMA_HOST")).collect();
    assert_eq!(hosts, [Some("127.0.0.1:11435".to_owned()), Some("127.0.0.1:11435".to_owned())]);
    assert_eq!(variable(&pod["containers"][0], "OLLAMA_HOST"), None);
    let option = super::pod(&built(&hosted("--insecure")));
    assert_eq!(option["initContainers"][1]["args"], json!(["pull", "--", "--insecure"]), "nor an option of it");
    let expanded = super::pod(&built(&hosted("x$(HOME)")));
    assert_eq!(expanded["initContainers"][1]["args"], json!(["pull", "x$$(HOME)"]), "nor a variable to the kubelet");
}

/// One container pulled before there was a server beside it: what people say of that holds for both, but for what is the server's own.
#[test]
fn what_pod_spec_says_of_the_pull_holds_for_the_server_that_it_pulls_through() {
    let closed = json!({"allowPrivilegeEscalation": false});
    let said = json!({
        "name": "pull-model", "image": "mirror/ollama:1", "securityContext": closed, "resources": {"requests": {"cpu": 2}},
        "env": [{"name": "HTTPS_PROXY", "value": "http://p:3128"}],
        "volumeMounts": [{"name": "ca", "mountPath": "/etc/ssl/certs"}],
    });
    let init = |containers: Value| {
        let mut api = hosted("x");
        api.pod_spec = Some(Raw(json!({"initContainers": containers})));
        pod(&built(&api))["initContainers"].clone()
    };
    let made = init(json!([{"name": "before", "image": "b"}, said]));
    let names: Vec<_> = made.as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["before", "pull-server", "pull-model"]);
    for (at, words) in [(1, json!(["serve"])), (2, json!(["pull", "x"]))] {
        let one = &made[at];
        assert_eq!((&one["args"], &one["image"], &one["securityContext"]), (&words, &said["image"], &closed));
        assert_eq!(variable(one, "HTTPS_PROXY").as_deref(), Some("http://p:3128"));
        assert_eq!(one["volumeMounts"].as_array().map(Vec::len), Some(2), "{one}");
    }
    assert_eq!((made[1].get("resources"), &made[1]["restartPolicy"]), (None, &json!("Always")));
    let own = init(json!([{"name": "pull-server", "image": "own:1"}, said]));
    assert_eq!((&own[0]["image"], own[0].get("securityContext")), (&json!("own:1"), None), "who names it means it");
    let other = init(json!([{"name": "before", "image": "b"}]));
    assert_eq!(other[1]["image"], "example/ollama:2");
}

#[test]
fn ruling_14_a_volume_of_the_users_takes_the_place_of_ours() {
    let mut kept = hosted("x");
    kept.pod_spec =
        Some(Raw(json!({"volumes": [{"name": "ollama-data", "persistentVolumeClaim": {"claimName": "models"}}]})));
    assert_eq!(
        pod(&built(&kept))["volumes"],
        json!([{"name": "ollama-data", "persistentVolumeClaim": {"claimName": "models"}}])
    );
}

#[test]
fn cases_93_95_and_96_the_configuration_of_every_shape() {
    let text = "model_list: []\n";
    let own = Proxy { api_base: Some("http://b".to_owned()), ..written(Configuration::Text(text.to_owned())) };
    assert_eq!(built(&proxy(own)).config.as_deref(), Some(text), "case 93");
    assert_eq!(
        entries(&built(&proxy(listed(&["x"])))),
        json!([{"model_name": "x", "litellm_params": {"model": "x"}}]),
        "case 95"
    );
    let both = Proxy {
        provider: Some("p".to_owned()),
        api_base: Some("http://b".to_owned()),
        api_key: Some(ApiKey::Literal("k".to_owned())),
        ..listed(&["a", "b"])
    };
    let entry = |name: &str| json!({"model_name": name, "litellm_params": {"model": format!("p/{name}"), "api_base": API_BASE, "api_key": API_KEY}});
    assert_eq!(entries(&built(&proxy(both))), json!([entry("a"), entry("b")]), "case 96");
}

#[test]
fn cases_16_99_and_106_the_environment_of_a_proxy_in_order() {
    let from = json!({"secretKeyRef": {"name": "acme", "key": "token"}});
    let mut keyed = proxy(Proxy {
        api_base: Some("https://llm.example.test".to_owned()),
        api_key: Some(ApiKey::Secret(key("acme", "token"))),
        ..listed(&["a"])
    });
    keyed.container.env = env(&[json!({"name": "OPENAI_API_KEY", "value": "k"})]);
    let container = main(&built(&keyed));
    assert_eq!(names(&container), ["PROXY_API_BASE", "PROXY_API_KEY", "OPENAI_API_KEY", "LITELLM_LOG", OPEN]);
    assert_eq!(container["env"][1], json!({"name": "PROXY_API_KEY", "valueFrom": from}));
    keyed.container.env = env(&[json!({"name": "LITELLM_LOG", "value": "WARN"})]);
    assert_eq!(variable(&main(&built(&keyed)), "LITELLM_LOG").as_deref(), Some("WARN"));
    let trace = Settings { log_level: LogLevel::Trace, ..settings() };
    let container = main(&compose(&proxy(listed(&["a"])), &trace));
    assert_eq!(variable(&container, "LITELLM_LOG").as_deref(), Some("DEBUG"));
    let literal = proxy(Proxy { api_key: Some(ApiKey::Literal("se$cret".to_owned())), ..listed(&["a"]) });
    assert_eq!(variable(&main(&built(&literal)), "PROXY_API_KEY").as_deref(), Some("se$$cret"));
    assert_eq!(variable(&main(&built(&proxy(listed(&["a"])))), "PROXY_API_KEY"), None);
}

#[test]
fn case_107_ollama_has_no_level_of_its_own() {
    for (level, wanted) in [(LogLevel::Trace, Some("2")), (LogLevel::Debug, Some("1")), (LogLevel::Info, None)] {
        let container = main(&compose(&hosted("x"), &Settings { log_level: level, ..settings() }));
        assert_eq!(variable(&container, "OLLAMA_DEBUG").as_deref(), wanted);
    }
    let mut own = hosted("x");
    own.container.env = env(&[json!({"name": "OLLAMA_DEBUG", "value": "9"})]);
    let container = main(&compose(&own, &Settings { log_level: LogLevel::Trace, ..settings() }));
    assert_eq!(variable(&container, "OLLAMA_DEBUG").as_deref(), Some("9"));
}

#[test]
fn case_108_telemetry_of_a_proxy_and_none_of_a_hosted_model() {
    let on = Settings { telemetry: Telemetry { enabled: true, endpoint: Some("http://g".to_owned()) }, ..settings() };
    let composed = compose(&proxy(listed(&["a"])), &on);
    let found: Vec<_> = variables(&main(&composed)).into_iter().filter(|(name, _)| name.starts_with("OTEL")).collect();
    let wanted = [
        ("OTEL_EXPORTER", "otlp_grpc"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://g"),
        ("OTEL_SERVICE_NAME", "m"),
        ("OTEL_PYTHON_EXCLUDED_URLS", "/health"),
    ];
    assert_eq!(found, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(composed.config.unwrap().contains("success_callback"));
    assert!(!names(&main(&compose(&hosted("x"), &on))).iter().any(|name| name.starts_with("OTEL")));
}

/// Nobody wrote the configuration of a proxy of the old spellings that name no model, so it has the callbacks as well; a text of the user's stays.
#[test]
fn case_108_a_proxy_that_names_no_model_sends_traces_too() {
    let on = Settings { telemetry: Telemetry { enabled: true, endpoint: Some("http://g".to_owned()) }, ..settings() };
    let read = |spec: Value| {
        let object = json!({"metadata": {"name": "m"}, "spec": {"mode": "Proxy", "proxyConfig": spec}});
        let looked = crate::api::kaos_tools::read::model_api(&object);
        assert_eq!(looked.faults.len(), 0, "{object}");
        looked.value
    };
    let config = |api: &ModelApi, settings: &Settings| {
        yaml::parse(compose(api, settings).config.as_ref().unwrap()).unwrap().to_json()
    };
    let callbacks = json!({"drop_params": true, "success_callback": ["otel"], "failure_callback": ["otel"]});
    for said in [json!({"apiBase": "http://b: \"x\""}), json!({}), json!({"env": [{"name": "K", "value": "v"}]})] {
        let api = read(said);
        let (without, with) = (config(&api, &settings()), config(&api, &on));
        assert_eq!(without["litellm_settings"], json!({"drop_params": true}));
        assert_eq!((&with["model_list"], &with["litellm_settings"]), (&without["model_list"], &callbacks));
        assert_eq!(without["model_list"].as_array().map(Vec::len), Some(1));
    }
    for text in ["model_list: []\n", "model_list: [{model_name: '*', litellm_params: {model: '*'}}]\n", "x: 1"] {
        let api = read(json!({"models": ["*"], "configYaml": {"fromString": text}}));
        assert_eq!(compose(&api, &on).config.as_deref(), Some(text), "verbatim");
    }
}

#[test]
fn case_109_nothing_is_made_that_could_only_crash() {
    let fault = |api: &ModelApi| model_api::compose(&identity("m"), api, &settings()).unwrap_err().to_string();
    assert!(fault(&hosted("")).contains("hostedConfig.model is required"));
    assert!(fault(&api(Mode::Hosted)).contains("hostedConfig.model is required"));
    assert!(fault(&api(Mode::Proxy)).contains("proxyConfig is required"));
}

#[test]
fn case_110_a_configuration_in_a_secret_is_mounted_from_there_and_copied_nowhere() {
    let composed = built(&proxy(written(Configuration::Secret(key("s", "k")))));
    assert_eq!(
        pod(&composed)["volumes"],
        json!([{"name": "litellm-config", "secret": {"secretName": "s", "items": [{"key": "k", "path": "config.yaml"}]}}])
    );
    assert_eq!(composed.config, None);
}

#[test]
fn case_103_a_change_of_the_models_rolls_the_pods() {
    let hash = |models: &[&str]| {
        let deployment = made(&built(&proxy(listed(models)))).deployment;
        deployment["spec"]["template"]["metadata"]["annotations"]["kaos.tools/config-hash"].clone()
    };
    assert!(hash(&["a"]).is_string());
    assert_ne!(hash(&["a"]), hash(&["a", "b"]));
}

/// A current LiteLLM ends at start without a master key.
#[test]
fn ruling_13_a_proxy_starts_and_is_said_to_be_open_unless_it_has_a_master_key() {
    let text = |text: &str| proxy(written(Configuration::Text(text.to_owned())));
    let with = |name: &str, value: &str| {
        let mut api = proxy(listed(&["a"]));
        api.container.env = env(&[json!({"name": name, "value": value})]);
        api
    };
    for (api, variable_is, open) in [
        (proxy(listed(&["a"])), Some("true"), Some(true)),
        (text("general_settings: {master_key: sk-1}"), None, Some(false)),
        (text("general_settings: {other: 1}"), Some("true"), Some(true)),
        (text("- no mapping"), Some("true"), Some(true)),
        (with("LITELLM_MASTER_KEY", "sk-1"), None, Some(false)),
        // Nobody can be asked for an empty one.
        (with("LITELLM_MASTER_KEY", ""), Some("true"), Some(true)),
        (text("general_settings: {master_key: ''}"), Some("true"), Some(true)),
        (with(OPEN, "false"), Some("false"), Some(true)),
        (proxy(written(Configuration::Secret(key("s", "k")))), Some("true"), None),
    ] {
        assert_eq!(variable(&main(&built(&api)), OPEN).as_deref(), variable_is, "{api:?}");
        assert_eq!(is_open(&api), open, "{api:?}");
    }
    assert_eq!(is_open(&hosted("x")), Some(false));
}

/// Admission takes a configuration with merge keys, and LiteLLM merges them: a key that stands there is one.
#[test]
fn ruling_13_a_master_key_that_is_merged_in_is_one() {
    let base = "base: &base\n  master_key: sk-1\nother: &other\n  x: 1\n";
    for (settings, open) in [
        ("general_settings:\n  <<: *base\n  x: 2\n", false),
        ("general_settings:\n  <<:\n    - *other\n    - *base\n", false),
        ("more: &more\n  <<: *base\ngeneral_settings:\n  <<: *more\n", false),
        ("model_list:\n  - <<: *other\ngeneral_settings:\n  master_key: sk-1\n", false),
        ("general_settings:\n  <<: *other\n", true),
        ("general_settings:\n  <<: *base\n  master_key:\n", true),
    ] {
        let api = proxy(written(Configuration::Text(format!("{base}{settings}"))));
        let wanted = open.then_some("true");
        assert_eq!(variable(&main(&built(&api)), OPEN).as_deref(), wanted, "{settings}");
        assert_eq!(is_open(&api), Some(open), "{settings}");
    }
}

/// What runs is decided by `podSpec` last.
#[test]
fn ruling_13_a_master_key_counts_as_pod_spec_leaves_it() {
    const KEY: &str = "LITELLM_MASTER_KEY";
    let from = json!({"name": KEY, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let env_of = |container: &str, entry: &Value| json!({"containers": [{"name": container, "env": [entry]}]});
    let own = [json!({"name": KEY, "value": "sk-1"})];
    for (env_said, patch, open) in [
        (&[][..], env_of("model-api", &from), false),
        (&[][..], env_of("beside", &from), true),
        (&own[..], env_of("model-api", &json!({"name": "A", "value": "1"})), false),
        (&own[..], env_of("model-api", &json!({"name": KEY, "$patch": "delete"})), true),
        (&own[..], json!({"volumes": []}), false),
    ] {
        let mut api = proxy(listed(&["a"]));
        api.container.env = env(env_said);
        api.pod_spec = Some(Raw(patch.clone()));
        let wanted = open.then_some("true");
        assert_eq!(variable(&main(&built(&api)), OPEN).as_deref(), wanted, "{patch}");
        assert_eq!(is_open(&api), Some(open), "{patch}");
    }
}

#[test]
fn case_83_volumes_of_the_users_stand_beside_the_configuration() {
    let mut more = proxy(listed(&["a"]));
    more.pod_spec = Some(Raw(json!({"volumes": [{"name": "v", "emptyDir": {}}]})));
    let names: Vec<_> =
        pod(&built(&more))["volumes"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["v", "litellm-config"]);
}
