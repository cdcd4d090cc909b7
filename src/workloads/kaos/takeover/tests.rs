//! The table of differences that do not count, row by row, and what counts beside it; a template and what the API server makes of it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::form::form;
use super::{Asker, Differences, Row, differences};
use crate::api::kaos_tools::read;
use crate::api::kaos_tools::shape::Runtime;
use crate::api::owner::Owner;
use crate::workloads::kaos::compose::Composed;
use crate::workloads::kaos::identity::Identity;
use crate::workloads::kaos::names::Role;
use crate::workloads::kaos::registry::Registry;
use crate::workloads::kaos::settings::Settings;
use crate::workloads::kaos::{agent, mcp_server, model_api};
use crate::workloads::workload::render;

const REGISTRY: &str = "runtimes:\n  python-string: {image: 'tools:1', paramsEnvVar: MCP_TOOLS_STRING}\n";

/// An object, what is made of it, and the Deployment of it as the API server has it.
struct Trial {
    role: Role,
    object: Value,
    composed: Composed,
    package: Option<String>,
    wanted: Value,
    live: Value,
}

impl Trial {
    fn of(role: Role, spec: Value) -> Self {
        let object = json!({"metadata": {"name": "x", "namespace": "ns", "uid": "u"}, "spec": spec});
        let owner = Owner { name: "x".to_owned(), namespace: "ns".to_owned(), uid: "u".to_owned() };
        let identity = Identity { owner, ..Identity::default() };
        let image = |name: &str| Some(name.to_owned());
        let settings = Settings {
            image_agent: image("agent:1"),
            image_litellm: image("litellm:1"),
            image_ollama: image("ollama:1"),
            image_python: image("python:3.12-slim"),
            ..Settings::default()
        };
        let mut package = None;
        let composed = match role {
            Role::Agent => {
                let wiring = agent::Wiring { model_port: 8000, peers: Vec::new() };
                agent::compose(&identity, &read::agent(&object).value, &wiring, &settings)
            }
            Role::ModelApi => model_api::compose(&identity, &read::model_api(&object).value, &settings),
            Role::McpServer => {
                let server = read::mcp_server(&object).value;
                if let Runtime::Package(name) = &server.runtime {
                    package = Some(name.clone());
                }
                mcp_server::compose(&identity, (&server, false), &Registry::read(REGISTRY), &settings)
            }
        };
        let composed = composed.unwrap();
        let image = composed.request.image.clone().unwrap_or_default();
        let wanted = render(&composed.request, &image, false).deployment["spec"]["template"].clone();
        let mut template = wanted.clone();
        defaulted(&mut template["spec"]);
        Self { role, object, composed, package, wanted, live: json!({"replicas": 1, "template": template}) }
    }

    fn differences(&self) -> Differences {
        let package = self.package.as_deref();
        let asker = Asker { role: self.role, object: &self.object, composed: &self.composed, package };
        differences(&self.live, &self.wanted, &asker)
    }

    /// The operator's own container, as it is stored.
    fn main(&mut self) -> &mut Value {
        &mut self.live["template"]["spec"]["containers"][0]
    }

    fn env(&mut self) -> &mut Vec<Value> {
        let main = self.main();
        if main["env"].is_null() {
            main["env"] = json!([]);
        }
        main["env"].as_array_mut().unwrap()
    }

    fn set(&mut self, name: &str, value: &str) {
        let entry = json!({"name": name, "value": value});
        match self.env().iter_mut().find(|one| one["name"] == name) {
            Some(one) => *one = entry,
            None => self.env().push(entry),
        }
    }

    fn unset(&mut self, name: &str) {
        self.env().retain(|one| one["name"] != name);
    }
}

/// What the API server fills in.
fn defaulted(spec: &mut Value) {
    let put = |object: &mut Value, members: &[(&str, Value)]| {
        for (name, value) in members {
            if object.get(*name).is_none_or(Value::is_null) {
                object[*name] = value.clone();
            }
        }
    };
    put(
        spec,
        &[
            ("restartPolicy", json!("Always")),
            ("terminationGracePeriodSeconds", json!(30)),
            ("dnsPolicy", json!("ClusterFirst")),
            ("securityContext", json!({})),
            ("schedulerName", json!("default-scheduler")),
        ],
    );
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        spec["serviceAccount"] = account;
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let image = container["image"].as_str().unwrap_or_default();
            let floats = ["a", "a:latest", "r.example:5000/a", "i"].contains(&image);
            put(
                container,
                &[
                    ("terminationMessagePath", json!("/dev/termination-log")),
                    ("terminationMessagePolicy", json!("File")),
                    ("imagePullPolicy", json!(if floats { "Always" } else { "IfNotPresent" })),
                    ("resources", json!({})),
                ],
            );
            for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                put(port, &[("protocol", json!("TCP"))]);
            }
            for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
                let Some(probe) = container.get_mut(probe) else { continue };
                put(
                    probe,
                    &[
                        ("timeoutSeconds", json!(1)),
                        ("periodSeconds", json!(10)),
                        ("successThreshold", json!(1)),
                        ("failureThreshold", json!(3)),
                    ],
                );
                if let Some(get) = probe.get_mut("httpGet") {
                    put(get, &[("scheme", json!("HTTP")), ("path", json!("/"))]);
                }
            }
            for entry in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(field) = entry.pointer_mut("/valueFrom/fieldRef") {
                    put(field, &[("apiVersion", json!("v1"))]);
                }
                // An empty value is not written.
                if entry["value"] == "" {
                    entry.as_object_mut().unwrap().remove("value");
                }
            }
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        let mut sourced = false;
        for source in ["secret", "configMap", "projected", "downwardAPI"] {
            if let Some(source) = volume.get_mut(source) {
                put(source, &[("defaultMode", json!(420))]);
                sourced = true;
            }
        }
        if !sourced && volume.as_object().unwrap().len() == 1 {
            volume["emptyDir"] = json!({});
        }
    }
}

fn simple() -> Value {
    json!({"modelAPI": "m", "model": "y"})
}

fn proxy() -> Value {
    json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}})
}

fn hosted() -> Value {
    json!({"mode": "Hosted", "hostedConfig": {"model": "smollm2:135m"}})
}

fn tools() -> Value {
    json!({"runtime": "python-string", "params": "def f(): pass"})
}

#[test]
fn ruling_21_what_the_api_server_fills_in_is_no_difference() {
    let mut all = vec![
        (Role::Agent, simple()),
        (Role::ModelApi, proxy()),
        (Role::ModelApi, hosted()),
        (Role::McpServer, tools()),
    ];
    let account = json!({"runtime": "custom", "container": {"image": "i:1", "resources": {"limits": {"cpu": 1, "memory": "0.5Gi"}}}, "serviceAccountName": "s"});
    all.push((Role::McpServer, account));
    for (role, spec) in all {
        let mut trial = Trial::of(role, spec);
        assert_eq!(trial.differences(), Differences::default());
        // Quantities are spelled otherwise, and lists with keys stand in another order.
        if let Some(limits) = trial.main().pointer_mut("/resources/limits") {
            *limits = json!({"cpu": "1000m", "memory": "512Mi"});
        }
        trial.env().reverse();
        assert_eq!(trial.differences(), Differences::default());
        // The last of two counts, as it does for the process.
        let Some(last) = trial.env().last().cloned() else { continue };
        trial.env().insert(0, json!({"name": last["name"], "value": "before"}));
        assert_eq!(trial.differences(), Differences::default());
    }
}

/// A row of the closed table: what the object says, how what the Go operator made differs, and what is told of it.
type Case = (Row, Role, fn() -> Value, fn(&mut Trial), &'static str);

const TABLE: &[Case] = &[
    (Row::LeftOver, Role::Agent, simple, |trial| trial.set("OLD", "1"), "OLD"),
    (
        Row::Pull,
        Role::ModelApi,
        hosted,
        |trial| {
            let script = "ollama serve & sleep 5 && ollama pull smollm2:135m && kill $!";
            let spec = &mut trial.live["template"]["spec"];
            spec["initContainers"] = json!([{"name": "pull-model", "image": "ollama:1", "command": ["/bin/sh", "-c", script],
                "volumeMounts": [{"name": "ollama-data", "mountPath": "/root/.ollama"}]}]);
        },
        "initContainers[pull-server]",
    ),
    (
        Row::Open,
        Role::ModelApi,
        proxy,
        |trial| trial.unset("LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"),
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY",
    ),
    (
        Row::Dollars,
        Role::Agent,
        || json!({"modelAPI": "m", "model": "y", "config": {"instructions": "pay $5 to $(AGENT_NAME)"}}),
        |trial| trial.set("AGENT_INSTRUCTIONS", "pay $5 to $(AGENT_NAME)"),
        "AGENT_INSTRUCTIONS",
    ),
    (
        Row::NotActedOn,
        Role::Agent,
        || json!({"modelAPI": "m", "model": "y", "container": {"image": "mine:1"}}),
        |trial| trial.main()["image"] = json!("agent:1"),
        "containers[agent].image",
    ),
    (
        Row::NotActedOn,
        Role::ModelApi,
        || json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}, "container": {"resources": {"limits": {"cpu": 1}}}}),
        |trial| trial.main()["resources"] = json!({}),
        "containers[model-api].resources",
    ),
    (
        Row::NotActedOn,
        Role::Agent,
        || json!({"modelAPI": "m", "model": "y", "replicas": 3}),
        |trial| trial.live["replicas"] = json!(1),
        "replicas",
    ),
    (
        Row::Configuration,
        Role::ModelApi,
        proxy,
        |trial| {
            let annotations = &mut trial.live["template"]["metadata"]["annotations"];
            annotations.as_object_mut().unwrap().remove("kaos.tools/config-hash");
        },
        "kaos.tools/config-hash",
    ),
    (Row::LogLevel, Role::Agent, simple, |trial| trial.set("LOG_LEVEL", "DEBUG"), "LOG_LEVEL"),
    (Row::LogLevel, Role::ModelApi, proxy, |trial| trial.set("LITELLM_LOG", "DEBUG"), "LITELLM_LOG"),
    (
        Row::Probes,
        Role::Agent,
        simple,
        |trial| {
            trial.main()["livenessProbe"]["initialDelaySeconds"] = json!(5);
            trial.main()["readinessProbe"]["failureThreshold"] = json!(2);
        },
        "containers[agent].livenessProbe.initialDelaySeconds",
    ),
    (
        Row::DebugMemory,
        Role::Agent,
        || json!({"modelAPI": "m", "config": {"agenticLoop": {"maxSteps": 4}}}),
        |trial| trial.unset("AGENT_DEBUG_MEMORY_ENDPOINTS"),
        "AGENT_DEBUG_MEMORY_ENDPOINTS",
    ),
    (
        Row::Package,
        Role::McpServer,
        || json!({"type": "python-runtime", "config": {"tools": {"fromPackage": "mcp-tools"}}}),
        |trial| {
            trial.main()["command"] = json!(["sh", "-c", "pip install mcp-tools && (mcp-tools || python -m mcp_tools)"])
        },
        "containers[mcp-server].command",
    ),
    (
        Row::Annotations,
        Role::Agent,
        simple,
        |trial| {
            trial.live["template"]["metadata"]["annotations"] = json!({"kaos.tools/pod-spec-hash": "0123456789abcdef"})
        },
        "kaos.tools/pod-spec-hash",
    ),
];

#[test]
fn ruling_21_each_row_of_the_table_is_told_and_does_not_count() {
    for (row, role, spec, before, name) in TABLE {
        let mut trial = Trial::of(*role, spec());
        before(&mut trial);
        let found = trial.differences();
        assert_eq!(found.counts, Vec::<String>::new(), "{row:?}");
        assert_eq!(found.later.keys().collect::<Vec<_>>(), [row], "{row:?}");
        assert!(found.later[row].iter().any(|one| one == name), "{row:?}: {found:?}");
        assert!(found.lines()[0].starts_with(row.words()), "{:?}", found.lines());
    }
    let held: BTreeSet<Row> = TABLE.iter().map(|(row, ..)| *row).collect();
    assert_eq!(held, BTreeSet::from(Row::ALL), "every row has a case");
}

#[test]
fn ruling_21_what_no_row_has_counts() {
    type Case = (Role, fn() -> Value, fn(&mut Trial), &'static str);
    let cases: &[Case] = &[
        (Role::Agent, simple, |trial| trial.main()["image"] = json!("agent:0"), "containers[agent].image"),
        (Role::Agent, simple, |trial| trial.set("MODEL_NAME", "other"), "containers[agent].env[MODEL_NAME]"),
        (Role::Agent, simple, |trial| trial.unset("MODEL_API_URL"), "containers[agent].env[MODEL_API_URL]"),
        (Role::Agent, simple, |trial| *trial.env() = Vec::new(), "containers[agent].env[AGENT_NAME]"),
        (
            Role::Agent,
            || json!({"modelAPI": "m", "model": "y", "container": {"env": [{"name": "LOG_LEVEL", "value": "INFO"}, {"name": "P", "value": "$$x"}]}}),
            |trial| {
                trial.set("LOG_LEVEL", "DEBUG");
                trial.set("P", "$x");
            },
            "containers[agent].env[LOG_LEVEL], containers[agent].env[P]",
        ),
        (
            Role::Agent,
            simple,
            |trial| trial.main()["livenessProbe"]["httpGet"]["path"] = json!("/live"),
            "containers[agent].livenessProbe.httpGet.path",
        ),
        (
            Role::Agent,
            || json!({"modelAPI": "m", "model": "y", "podSpec": {"containers": [{"name": "agent", "livenessProbe": {"periodSeconds": 60}}]}}),
            |trial| trial.main()["livenessProbe"]["periodSeconds"] = json!(10),
            "containers[agent].livenessProbe.periodSeconds",
        ),
        (
            Role::Agent,
            simple,
            |trial| trial.live["template"]["metadata"]["labels"] = json!({"app": "agent"}),
            "metadata.labels[agent]",
        ),
        (
            Role::Agent,
            simple,
            |trial| trial.live["template"]["spec"]["nodeSelector"] = json!({"gpu": ""}),
            "nodeSelector",
        ),
        (
            Role::Agent,
            simple,
            |trial| {
                let all = trial.live["template"]["spec"]["containers"].as_array_mut().unwrap();
                all.push(json!({"name": "mine", "image": "mine:1"}));
            },
            "containers[mine]",
        ),
        (Role::ModelApi, proxy, |trial| trial.live["template"]["spec"]["volumes"] = json!([]), "volumes"),
        (
            Role::McpServer,
            || json!({"runtime": "python-string", "container": {"image": "mine:1"}}),
            |trial| trial.main()["image"] = json!("tools:1"),
            "containers[mcp-server].image",
        ),
        (
            Role::McpServer,
            || json!({"config": {"tools": {"fromPackage": "mcp-tools"}}}),
            |trial| trial.main()["command"] = json!(["sh", "-c", "pip install other"]),
            "containers[mcp-server].command",
        ),
        (
            Role::Agent,
            || json!({"modelAPI": "m", "model": "y", "podSpec": {"automountServiceAccountToken": false}}),
            |trial| {
                trial.live["template"]["spec"].as_object_mut().unwrap().remove("automountServiceAccountToken");
            },
            "automountServiceAccountToken",
        ),
    ];
    for (role, spec, before, paths) in cases {
        let mut trial = Trial::of(*role, spec());
        before(&mut trial);
        let counts = trial.differences().counts;
        let all = counts.join(", ");
        assert!(paths.split(", ").all(|path| counts.iter().any(|one| one == path)), "{paths}: {all}");
    }
}

#[test]
fn what_is_told_is_bounded_and_holds_no_value() {
    let mut trial = Trial::of(Role::Agent, simple());
    for number in 0..40 {
        trial.set(&format!("OLD_{number:02}"), "canary");
    }
    trial.set("MODEL_NAME", "canary");
    let found = trial.differences();
    let lines = found.lines();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with("OLD_07 and 32 more") && lines[0].len() <= super::LINE, "{lines:?}");
    assert!(!format!("{found:?}").contains("canary"), "{found:?}");
}

/// Parts of a Pod's spec, each there or not.
fn spec() -> impl Strategy<Value = Value> {
    let flags = proptest::collection::vec(any::<bool>(), 14);
    let image = proptest::sample::select(vec!["a:1", "a", "a:latest", "r.example:5000/a", "a@sha256:0", "r/a:v2"]);
    (flags, image, 0..4_i64, "[a-z$()]{0,6}").prop_map(|(flags, image, number, text)| {
        let mut container = json!({"name": "agent", "image": image});
        let get = json!({"httpGet": {"path": "/health", "port": 8000}});
        let parts = [
            ("env", json!([{"name": "A", "value": text}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])),
            ("ports", json!([{"containerPort": 8000, "name": "http"}])),
            ("livenessProbe", get.clone()),
            ("readinessProbe", json!({"tcpSocket": {"port": 8000}, "periodSeconds": number, "failureThreshold": 3})),
            ("resources", json!({"limits": {"cpu": "0.5", "memory": "1Gi"}, "requests": {"cpu": number}})),
            ("volumeMounts", json!([{"name": "v", "mountPath": "/v", "readOnly": false}])),
            ("command", json!(["", text])),
            ("imagePullPolicy", json!("Always")),
        ];
        for ((name, part), there) in parts.into_iter().zip(&flags) {
            if *there {
                container[name] = part;
            }
        }
        let mut spec = json!({"containers": [container]});
        let parts = [
            ("volumes", json!([{"name": "v"}, {"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}}])),
            ("initContainers", json!([{"name": "one", "image": "i"}, {"name": "two", "image": "i:1", "startupProbe": get}])),
            ("serviceAccountName", json!("runner")),
            ("nodeSelector", json!({"gpu": ""})),
            ("automountServiceAccountToken", json!(number == 0)),
            ("dnsPolicy", json!("ClusterFirst")),
        ];
        for ((name, part), there) in parts.into_iter().zip(&flags[8..]) {
            if *there {
                spec[name] = part;
            }
        }
        spec
    })
}

proptest! {
    /// A template equals itself after the API server has filled in what it fills in, and no other does.
    #[test]
    fn a_template_equals_itself_after_defaulting(spec in spec()) {
        let mut stored = spec.clone();
        // The API server takes 0 of these for a number that was left out.
        for probe in ["periodSeconds"] {
            if let Some(number) = stored.pointer_mut(&format!("/containers/0/readinessProbe/{probe}")).filter(|one| **one == json!(0)) {
                *number = Value::Null;
            }
        }
        defaulted(&mut stored);
        prop_assert_eq!(form(&spec), form(&stored));
        let mut other = stored.clone();
        other["containers"][0]["image"] = json!("another:1");
        prop_assert_ne!(form(&other), form(&stored));
        if stored.get("initContainers").is_some() {
            stored["initContainers"].as_array_mut().unwrap().reverse();
            prop_assert_ne!(form(&spec), form(&stored), "init containers run in order");
        }
    }
}
