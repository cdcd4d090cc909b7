//! E7 of 19.5: the name of a subfolder is data, whatever stands in it.
//!
//! Review and composition refuse such names. Here one gets past both: it is written into a composed run, Tekton
//! substitutes it and makes the Pods, and what Tekton put into them is run: each step's script under a shell, with the
//! Pod's environment, below a folder of its own that plays the root, with stubs for the tools. Commands in the name
//! would leave a file.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::ListParams;
use serde_json::{Value, json};
use tempfile::TempDir;
use webhook_tests::tekton::{kubelet, outcome};

use super::builds::{Platform, build};
use super::running::{DIGEST, ended, ending, namespace, start_with, with_dockerfile};

/// Names that are commands to a shell that reads them as a part of a program; each makes a file `pwned`.
const NAMES: &[&str] = &[
    "a b",
    "it's",
    "\"quoted\"",
    ";touch pwned;",
    "$(touch pwned)",
    "`touch pwned`",
    "' ; touch pwned ; '",
    "\" && touch pwned && \"",
    "x|touch pwned #",
    "-n",
    "*",
    "\\",
];

/// All of them, each within the one before.
fn nested() -> String {
    NAMES.join("/")
}

/// `value` with `new` in the place of every text that is `old`.
fn replaced(value: &Value, old: &str, new: &str) -> Value {
    match value {
        Value::String(text) if text == old => json!(new),
        Value::Array(items) => items.iter().map(|item| replaced(item, old, new)).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, member)| (key.clone(), replaced(member, old, new))).collect()
        }
        other => other.clone(),
    }
}

/// The scripts of a Pod by the path that Tekton puts them at.
fn scripts(pod: &Pod) -> BTreeMap<String, String> {
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let placing = containers.filter(|container| container.name == "place-scripts");
    let text: String = placing.flat_map(|container| container.args.iter().flatten()).map(String::as_str).collect();
    let one = |part: &str| {
        let (path, rest) = part.split_once('"').unwrap();
        let (_, rest) = rest.split_once("<< '").unwrap();
        let (_, rest) = rest.split_once("'\n").unwrap();
        let script = STANDARD.decode(rest.lines().next().unwrap()).unwrap();
        (path.to_owned(), String::from_utf8(script).unwrap())
    };
    text.split("scriptfile=\"").skip(1).map(one).collect()
}

/// What a container's entrypoint starts, and with which arguments.
fn started(container: &Container) -> (String, Vec<String>) {
    let arguments = container.args.as_deref().unwrap_or_default();
    let at = arguments.iter().position(|argument| argument == "-entrypoint").unwrap();
    let rest = arguments[at + 2..].iter().skip_while(|argument| *argument != "--").skip(1);
    (arguments[at + 1].clone(), rest.cloned().collect())
}

/// A folder that plays the root of a container.
struct Root(TempDir);

impl Root {
    fn new(subfolder: &str) -> Self {
        let root = Self(tempfile::tempdir().unwrap());
        for folder in ["bin", "cwd", "tekton/home", "workspace/artifacts", "input/artifacts", "layers"] {
            std::fs::create_dir_all(root.path(folder)).unwrap();
        }
        for source in ["workspace/source", "input/source"] {
            let folder = root.path(source).join(subfolder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("Dockerfile"), "FROM scratch").unwrap();
        }
        let buildah = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$@\" >> '{}'\ncase \"$1\" in push) while [ \"$1\" != --digestfile ]; do shift; done; \
             printf '{DIGEST}' > \"$2\" ;; esac\n",
            root.path("buildah.log").display()
        );
        let stub = root.path("bin/buildah");
        std::fs::write(&stub, buildah).unwrap();
        std::fs::set_permissions(stub, std::fs::Permissions::from_mode(0o755)).unwrap();
        root
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Runs a script with the environment of a container, whose paths lead below this root.
    fn run(&self, script: &str, arguments: &[String], environment: &BTreeMap<String, String>) {
        let file = self.path("script");
        std::fs::write(&file, script).unwrap();
        let mut command = Command::new("sh");
        command.arg(&file).args(arguments).current_dir(self.path("cwd")).env_clear();
        for (name, value) in environment {
            match value.strip_prefix('/') {
                Some(below) => {
                    let path = self.path(below);
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    command.env(name, path);
                }
                None => {
                    command.env(name, value);
                }
            }
        }
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let output = command.env("PATH", path).output().unwrap();
        assert!(output.status.success(), "{environment:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Whether a command of [`NAMES`] was executed.
    fn pwned(&self) -> bool {
        fn below(folder: &Path) -> bool {
            std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| {
                entry.file_name() == "pwned" || (entry.file_type().unwrap().is_dir() && below(&entry.path()))
            })
        }
        below(self.0.path())
    }
}

/// Looks at a step of a Pod; runs it when it is given the subfolder. Whether it was run.
fn try_step(container: &Container, scripts: &BTreeMap<String, String>, hostile: &str) -> bool {
    let (program, arguments) = started(container);
    let variables = container.env.iter().flatten();
    let environment: BTreeMap<_, _> =
        variables.map(|variable| (variable.name.clone(), variable.value.clone().unwrap_or_default())).collect();
    let Some(script) = scripts.get(&program) else {
        // A program with arguments: data, unless it is a shell that is told what to do.
        let told = arguments.iter().position(|argument| argument == "-c").map(|at| &arguments[at + 1]);
        assert!(told.is_none_or(|text| !text.contains("pwned")), "{}: {arguments:?}", container.name);
        return false;
    };
    assert!(!script.contains("pwned"), "{}: a value became a part of the program:\n{script}", container.name);
    let given: Vec<_> =
        environment.iter().filter(|(_, value)| *value == hostile).map(|(name, _)| name.clone()).collect();
    if given.is_empty() {
        return false;
    }
    for subfolder in NAMES.iter().copied().chain([hostile]) {
        let root = Root::new(subfolder);
        let mut environment = environment.clone();
        for name in &given {
            environment.insert(name.clone(), subfolder.to_owned());
        }
        root.run(script, &arguments, &environment);
        assert!(!root.pwned(), "{}: {subfolder} was executed", container.name);
        if container.name == "step-build" {
            let log = std::fs::read_to_string(root.path("buildah.log")).unwrap();
            let context = root.path("workspace/source").canonicalize().unwrap().join(subfolder);
            assert!(log.lines().any(|line| Path::new(line) == context), "one argument: {subfolder}: {log}");
        }
    }
    true
}

/// E7: no command is executed.
#[tokio::test(flavor = "multi_thread")]
async fn case_e7_the_name_of_a_subfolder_is_never_a_command() {
    let (ns, platform, hostile) = (namespace("hostile").await, Platform::shipped(), nested());
    for name in NAMES.iter().copied().chain([&*hostile]) {
        let mut object = build(ns.name(), "refused", "dev");
        object["spec"]["source"]["sourceSubfolder"] = json!(name);
        let (stored, findings) = platform.reviewed(&object);
        assert!(
            findings.faults.iter().any(|fault| fault.path == "spec.source.sourceSubfolder"),
            "{name}: {findings:?}"
        );
        assert!(platform.composed(&stored).is_err(), "{name}");
    }
    let without = kubelet::results("dockerfile-check", &[("has-dockerfile", "false"), ("dockerfile-name", "")]);
    let mut ran = BTreeSet::new();
    for (name, mode, says) in [("gated", "prod", vec![]), ("docker", "dev", vec![]), ("packs", "dev", vec![without])] {
        let object = ending(build(ns.name(), name, mode), &[with_dockerfile(), says].concat());
        let write = |run: &Value| replaced(run, "a2a/weather", &hostile);
        let run = start_with(&ns, &platform, &object, write).await.unwrap();
        let end = ended(&ns, &run).await;
        assert!(outcome(&end).is_some_and(|(succeeded, _)| succeeded), "{name}: {:#}", end["status"]["conditions"]);
        // The Pod that keeps a run's volume on one node is of the run as well, of none of its tasks, and may be there a moment longer.
        let of_run = ListParams::default().labels(&format!("tekton.dev/pipelineRun={run},tekton.dev/pipelineTask"));
        for pod in ns.api::<Pod>().list(&of_run).await.unwrap() {
            let scripts = scripts(&pod);
            let task = pod.metadata.labels.as_ref().unwrap()["tekton.dev/pipelineTask"].clone();
            for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
                if container.name.starts_with("step-") && try_step(container, &scripts, &hostile) {
                    ran.insert(format!("{task}/{}", container.name.trim_start_matches("step-")));
                }
            }
        }
    }
    let expected = [
        "buildah-build/build",
        "buildpack-step/prepare",
        "dockerfile-check/look",
        "folder-verification/check",
        "secret-scan/refuse-exceptions",
    ];
    assert_eq!(ran.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}
