//! Generated step ConfigMaps: TaskSpecs with every member of Tekton's v1 API, mostly right, sometimes not.

use drawbridge::domain::keys;
use drawbridge::pipelines::templates::ConfigMapText;
use serde_json::{Map, Value, json};

use super::dice::Dice;

const PARAMS: &[&str] =
    &["image", "revision", "repo-url", "FLAGS", "depth", "a.b", "_x", "subfolder-path", "BUILD_ARGS", "opts"];
const WORKSPACES: &[&str] = &["source", "artifacts", "git-auth", "registry-auth", "trust-bundle", "cache", "data"];
const RESULTS: &[&str] = &["IMAGE_URL", "IMAGE_DIGEST", "commit", "a.b", "list", "map", "x-y"];
const IMAGES: &[&str] = &[
    "alpine:3.22",
    "ghcr.io/a/b@sha256:0000000000000000000000000000000000000000000000000000000000000000",
    "$(params.image)",
];

/// A ConfigMap with a TaskSpec that nobody has looked at yet.
pub(crate) fn config_map(dice: &mut Dice, name: String) -> ConfigMapText {
    let namespace = keys::OPERATOR_NAMESPACE.to_owned();
    let labels = [(keys::LABEL_STEP.to_owned(), keys::LABEL_STEP_VALUE.to_owned())].into();
    let spec = Spec::throw(dice).0;
    let text = if dice.chance(50) { spec.to_string() } else { serde_saphyr::to_string(&spec).unwrap() };
    ConfigMapText { namespace, name, labels, data: [(keys::KEY_TASK_SPEC.to_owned(), text)].into() }
}

struct Spec(Value);

impl Spec {
    fn throw(dice: &mut Dice) -> Self {
        let mut spec = Map::new();
        let params = distinct(dice.some(4, param));
        let results = distinct(dice.some(3, result));
        let workspaces = distinct(dice.some(3, workspace));
        let volumes = distinct(dice.some(3, volume));
        let around = Around {
            params: params.iter().map(|param| (param["name"].as_str().unwrap().to_owned(), kind(param))).collect(),
            results: names(&results),
            workspaces: names(&workspaces),
            volumes: names(&volumes),
        };
        let mut steps: Vec<Value> = (0..=dice.below(3)).map(|_| around.step(dice)).collect();
        if dice.chance(15) {
            steps[0]["name"] = json!(dice.text(&["build", "1", "tekton-x"], &["Build", "a.b", &"x".repeat(64)], 10));
        }
        spec.insert("steps".to_owned(), json!(steps));
        for (key, list) in [("params", params), ("results", results), ("workspaces", workspaces), ("volumes", volumes)]
        {
            if !list.is_empty() {
                spec.insert(key.to_owned(), Value::Array(list));
            }
        }
        if dice.chance(20) {
            spec.insert("sidecars".to_owned(), json!([around.sidecar(dice)]));
        }
        if dice.chance(25) {
            spec.insert("stepTemplate".to_owned(), around.template(dice));
        }
        if dice.chance(20) {
            spec.insert(
                "description".to_owned(),
                json!(dice.text(&["what it does"], &["$(params.nothing)", "é\u{7}\n- x"], 40)),
            );
        }
        if dice.chance(10) {
            spec.insert("displayName".to_owned(), json!("Builds"));
        }
        Self(Value::Object(spec))
    }
}

/// The type that Tekton will find.
fn kind(param: &Value) -> &'static str {
    match (param["type"].as_str(), &param["default"]) {
        (Some("array"), _) | (None, Value::Array(_)) => "array",
        (Some("object"), _) => "object",
        _ => "string",
    }
}

fn names(list: &[Value]) -> Vec<String> {
    list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// The first of each name: what is there twice is refused, and so would be most of what is generated.
fn distinct(list: Vec<Value>) -> Vec<Value> {
    let mut seen = std::collections::BTreeSet::new();
    list.into_iter().filter(|one| seen.insert(one["name"].to_string())).collect()
}

fn param(dice: &mut Dice) -> Value {
    let mut param = json!({ "name": dice.text(PARAMS, &["1a", "a b", "a..b", "params.x", "é"], 3) });
    match dice.below(8) {
        0 => param["type"] = json!("string"),
        1 => {
            param["type"] = json!("array");
            param["default"] = json!(dice.some(2, |dice| dice.pick(&["a", "", "$(context.taskRun.name)", "b c"])));
        }
        2 => {
            param["type"] = json!("object");
            param["properties"] = json!({ "key": { "type": "string" }, "other": {} });
            if dice.chance(70) {
                param["default"] = json!({ "key": "a", "other": "b" });
            }
            if dice.chance(20) {
                param["properties"] = json!({ "key": { "type": "array" } });
            }
        }
        3 => {
            param["default"] =
                dice.pick(&[&json!(8000), &json!(true), &json!("yes"), &json!(""), &json!(["a"]), &json!(1.5)]).clone()
        }
        4 => {
            param["default"] = json!("a");
            param["description"] = json!("what it is");
        }
        5 => {
            param["default"] = json!("a");
            if dice.chance(30) {
                param["enum"] = json!(["a", "b"]);
            }
        }
        6 => {
            param["default"] =
                json!(dice.text(&["x"], &["$(tasks.other.results.x)", "$(params.image)", "$(nothing)"], 30))
        }
        _ => {}
    }
    param
}

fn result(dice: &mut Dice) -> Value {
    let name = dice.text(RESULTS, &["-x", "x.", "a b", "é"], 3);
    let mut result = json!({ "name": name });
    match dice.below(6) {
        0 => result["type"] = json!("array"),
        1 => {
            result["type"] = json!("object");
            if dice.chance(80) {
                result["properties"] = json!({ "key": { "type": "string" } });
            }
        }
        2 => result["description"] = json!("what it says"),
        3 if dice.chance(20) => {
            result["value"] = json!(dice.pick(&["$(steps.build.results.x)", "constant", "$(tasks.a.results.b)"]))
        }
        _ => {}
    }
    result
}

fn workspace(dice: &mut Dice) -> Value {
    let name = dice.pick(WORKSPACES);
    let mut workspace = json!({ "name": name });
    if name == "cache" || name == "data" || name.ends_with("-auth") || dice.chance(20) {
        workspace["optional"] = json!(true);
    }
    if dice.chance(15) {
        workspace["mountPath"] = json!(dice.text(
            &["/data", "/work/x"],
            &["relative", "/workspace/source", "/tekton/x", "$(params.image)", "/"],
            40
        ));
    }
    if dice.chance(15) {
        workspace["readOnly"] = json!(true);
    }
    workspace
}

fn volume(dice: &mut Dice) -> Value {
    let name = dice.text(&["scratch", "files", "more"], &["tekton-internal-x", "A_B", "$(params.revision)"], 4);
    let mut volume = json!({ "name": name });
    let (kind, source) = dice.take([
        ("emptyDir", json!({})),
        ("emptyDir", json!({ "medium": "Memory", "sizeLimit": "1Gi" })),
        ("configMap", json!({ "name": "files", "optional": true })),
        ("secret", json!({ "secretName": "$(params.image)", "optional": true })),
        ("secret", json!({ "secretName": "some" })),
        ("hostPath", json!({ "path": "/var" })),
        ("persistentVolumeClaim", json!({ "claimName": "other" })),
        ("projected", json!({ "sources": [{ "secret": { "name": "a" } }, { "configMap": { "name": "b" } }] })),
        ("csi", json!({ "driver": "d.example.com", "volumeAttributes": { "a": "$(workspaces.source.path)" } })),
        ("ephemeral", json!({ "volumeClaimTemplate": { "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } } })),
    ]);
    volume[kind] = source;
    volume
}

/// What the containers of a TaskSpec can refer to.
struct Around {
    params: Vec<(String, &'static str)>,
    results: Vec<String>,
    workspaces: Vec<String>,
    volumes: Vec<String>,
}

impl Around {
    fn known(dice: &mut Dice, of: &[String], otherwise: &str) -> String {
        if of.is_empty() || dice.chance(2) { otherwise.to_owned() } else { of[dice.below(of.len())].clone() }
    }

    /// Text with a reference of some kind, or none; seldom one that cannot stand.
    fn reference(&self, dice: &mut Dice) -> String {
        if dice.chance(1) {
            return self.odd(dice);
        }
        match dice.below(10) {
            0..4 if !self.params.is_empty() => {
                let (name, kind) = &self.params[dice.below(self.params.len())];
                let name = match dice.below(3) {
                    0 if !name.contains('.') => format!(".{name}"),
                    1 => format!("[\"{name}\"]"),
                    _ => format!("['{name}']"),
                };
                match *kind {
                    "array" => format!("$(params{name}[0])"),
                    "object" => format!("$(params{name}.key)"),
                    _ if dice.chance(50) => format!("a-$(params{name})-b"),
                    _ => format!("$(params{name})"),
                }
            }
            4 if !self.results.is_empty() => {
                let name = &self.results[dice.below(self.results.len())];
                if dice.chance(50) { format!("$(results['{name}'].path)") } else { format!("$(results.{name}.path)") }
            }
            5 if !self.workspaces.is_empty() => {
                let name = &self.workspaces[dice.below(self.workspaces.len())];
                format!("$(workspaces.{name}.{})", dice.pick(&["path", "bound", "claim", "volume"]))
            }
            6 => dice
                .pick(&[
                    "$(context.taskRun.name)",
                    "$(context.task.name)",
                    "$(context.pipelineRun.name)",
                    "$(context.task.retry-count)",
                ])
                .to_owned(),
            7 => dice
                .pick(&[
                    "$(id)",
                    "$$(HOME)",
                    "$(",
                    "$()",
                    "${X}",
                    "`id`",
                    "$(date +%s)",
                    "$(cat /etc/hostname | head -1)",
                ])
                .to_owned(),
            _ => dice.pick(&["plain", "", "two words", "--flag", "é", "'\"\\"]).to_owned(),
        }
    }

    /// A reference to what is not there, or in a form that its type does not allow.
    fn odd(&self, dice: &mut Dice) -> String {
        let none = ("image".to_owned(), "string");
        let (name, _) = if self.params.is_empty() { &none } else { &self.params[dice.below(self.params.len())] };
        match dice.below(8) {
            0 => format!("$(params.{name})"),
            1 => format!("$(params.{name}[*])"),
            2 => format!("$(params.{name}[0])"),
            3 => format!("$(params.{name}.key)"),
            4 => dice
                .pick(&[
                    "$(results.gone.path)",
                    "$(workspaces.gone.path)",
                    "$(params.gone)",
                    "$(context.nothing.name)",
                    "$(context.taskRun.nothing)",
                ])
                .to_owned(),
            5 => dice
                .pick(&[
                    "$(step.results.x.path)",
                    "$(steps.step-a.exitCode.path)",
                    "$(steps.a.results.x)",
                    "$(steps.a.outputs.x)",
                    "$(step.artifacts.path)",
                ])
                .to_owned(),
            6 => dice
                .pick(&[
                    "$(credentials.path)",
                    "$(inputs.params.x)",
                    "$(tasks.clone.results.commit)",
                    "$(tasks.clone.status)",
                    "$(tasks.clone.outputs.x)",
                ])
                .to_owned(),
            _ => dice
                .pick(&[
                    "$(params)",
                    "$(params.)",
                    "$(params.a.b.c.d)",
                    "$(params['x)",
                    "$(params[x])",
                    "$(params.image )",
                ])
                .to_owned(),
        }
    }

    fn mounts(&self, dice: &mut Dice) -> Value {
        let mounts = dice.some(2, |dice| {
            let path = dice.text(
                &["/scratch", "/files", "/tekton/home", "/work/a"],
                &[
                    "/workspace/source",
                    "/tekton/x",
                    "relative",
                    "/workspace/artifacts/",
                    "/tekton/home/x",
                    "/files:x",
                    "/workspace",
                    "$(params.revision)",
                    "/a/$(workspaces.source.path)",
                ],
                15,
            );
            json!({ "name": Self::known(dice, &self.volumes, "scratch"), "mountPath": path })
        });
        json!(mounts)
    }

    fn shared(&self, dice: &mut Dice, container: &mut Value) {
        if dice.chance(40) {
            let env = dice.some(3, |dice| match dice.below(5) {
                0 => json!({ "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }),
                1 => json!({ "name": "KEY", "valueFrom": { "secretKeyRef": { "name": self.reference(dice), "key": "k" } } }),
                _ => json!({ "name": dice.text(&["A", "B_C"], &["a b", "", "1"], 4), "value": self.reference(dice) }),
            });
            container["env"] = json!(env);
        }
        if !self.volumes.is_empty() && dice.chance(20) {
            container["volumeMounts"] = self.mounts(dice);
        }
        if dice.chance(10) {
            container["workingDir"] = json!(self.reference(dice));
        }
        if dice.chance(10) {
            container["computeResources"] = dice
                .pick(&[
                    &json!({ "requests": { "cpu": "100m", "memory": "64Mi" } }),
                    &json!({ "limits": { "cpu": 1 } }),
                    &json!({ "requests": { "cpu": "much" } }),
                ])
                .clone();
        }
        if dice.chance(15) {
            container["securityContext"] = dice
                .pick(&[
                    &json!({ "privileged": true }),
                    &json!({ "runAsUser": 1000, "capabilities": { "drop": ["ALL"] } }),
                    &json!({ "runAsNonRoot": true }),
                ])
                .clone();
        }
        if dice.chance(8) {
            container["imagePullPolicy"] = json!(dice.pick(&["Always", "IfNotPresent", "Sometimes"]));
        }
        if dice.chance(5) {
            container["envFrom"] =
                json!([{ "configMapRef": { "name": self.reference(dice), "optional": true }, "prefix": "P_" }]);
        }
    }

    fn words(&self, dice: &mut Dice) -> Value {
        json!(dice.some(3, |dice| self.reference(dice)))
    }

    fn step(&self, dice: &mut Dice) -> Value {
        let mut step = json!({ "image": dice.pick(IMAGES) });
        if !self.params.iter().any(|(name, kind)| name == "image" && *kind == "string") {
            step["image"] = json!("alpine:3.22");
        }
        if dice.chance(30) {
            step["name"] = json!(format!("s{}", dice.below(9)));
        }
        match dice.below(5) {
            0 => step["command"] = self.words(dice),
            1 => {
                step["command"] = json!(["sh", "-c"]);
                step["args"] = self.words(dice);
            }
            2 => step["args"] = self.words(dice),
            _ => {
                step["script"] = json!(format!("#!/bin/sh\nset -eu\necho {}\n", self.reference(dice)));
                if dice.chance(20) {
                    step["args"] = self.words(dice);
                }
            }
        }
        self.shared(dice, &mut step);
        self.rare(dice, &mut step);
        step
    }

    /// Members that few steps have.
    fn rare(&self, dice: &mut Dice, step: &mut Value) {
        let (key, value) = match dice.below(160) {
            0 => ("onError", json!(dice.pick(&["continue", "stopAndFail", "ignore", "$(params.revision)"]))),
            1 => ("timeout", json!(dice.pick(&["5s", "1h30m", "soon", "-1s", "0s"]))),
            2 => (
                "workspaces",
                json!([{ "name": Self::known(dice, &self.workspaces, "other"), "mountPath": "/isolated" }]),
            ),
            3 => ("stdoutConfig", json!({ "path": "/tekton/home/out" })),
            4 => ("results", json!([{ "name": dice.pick(&["x", "a b"]), "type": dice.pick(&["string", "array"]) }])),
            5 => (
                "when",
                json!([{ "input": self.reference(dice), "operator": dice.pick(&["in", "eq"]), "values": ["a"] }]),
            ),
            6 => ("displayName", json!("Step")),
            7 => ("volumeDevices", json!([{ "name": "scratch", "devicePath": "/dev/x" }])),
            8 => ("params", json!([{ "name": "x", "value": "y" }])),
            9 => ("ref", json!({ "name": "action" })),
            10 => ("env", json!({ "A": "b" })),
            11 => ("args", json!("not a list")),
            12 => ("workingDir", json!(["not a text"])),
            13 => ("securityContext", json!({ "runAsUser": "1000" })),
            14 => ("volumeMounts", json!([{ "name": "scratch", "mountPath": "/x", "readOnly": "yes" }])),
            15 => ("script", json!(5)),
            16..20 => ("timeout", json!("90s")),
            20..24 => ("onError", json!("continue")),
            24..28 => ("results", json!([{ "name": "x", "type": "array" }, { "name": "y", "description": "z" }])),
            28..32 => (
                "when",
                json!([{ "input": self.reference(dice), "operator": "notin", "values": [self.reference(dice)] }]),
            ),
            32..36 if !self.workspaces.is_empty() => {
                ("workspaces", json!([{ "name": self.workspaces[0], "mountPath": "/isolated" }]))
            }
            _ => return,
        };
        step[key] = value;
    }

    fn sidecar(&self, dice: &mut Dice) -> Value {
        let mut sidecar = json!({ "name": dice.text(&["registry", "db"], &["A B", "tekton-log-results", "sidecar-x", "a.b"], 15), "image": dice.text(&["registry:2"], &["", "$(params.image)"], 10) });
        self.shared(dice, &mut sidecar);
        match dice.below(8) {
            0 => sidecar["script"] = json!(format!("echo {}", self.reference(dice))),
            1 => sidecar["command"] = self.words(dice),
            2 => sidecar["ports"] = json!([{ "containerPort": 5000, "name": "http" }]),
            3 => {
                sidecar["readinessProbe"] =
                    json!({ "httpGet": { "path": "/", "port": dice.pick(&[&json!(5000), &json!("http")]) } })
            }
            4 => sidecar["restartPolicy"] = json!("Always"),
            5 => {
                sidecar["workspaces"] =
                    json!([{ "name": Self::known(dice, &self.workspaces, "other"), "mountPath": "/side" }])
            }
            6 => sidecar["lifecycle"] = json!({ "preStop": { "exec": { "command": ["true"] } } }),
            _ => {}
        }
        sidecar
    }

    fn template(&self, dice: &mut Dice) -> Value {
        let mut template = json!({});
        if dice.chance(30) {
            template["image"] = json!("alpine:3.22");
        }
        if dice.chance(10) {
            template["command"] = self.words(dice);
        }
        self.shared(dice, &mut template);
        template
    }
}
