//! The tasks of a composed run as processes, in the files, variables, users and capabilities that Tekton and a kubelet would give them.
//!
//! In: a PipelineRun as composition makes it, and the Secrets and ConfigMaps that it mounts. Out: how each step ended, what it said, which
//! tools it called with which arguments and environment, what it left in every folder that it could write, and its results. What is not
//! here: images (each step has this machine's programs and those of `install-containers`) and the network of a Pod.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tempfile::TempDir;

const POD: &str = include_str!("pod.sh");
const SHIM: &str = include_str!("shim.sh");
/// Tools that a call is written down of.
const TOOLS: [&str; 3] = ["git", "buildah", "skopeo"];
/// How long a step may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);
/// What container engines leave to a container that asks for nothing.
const CAPABILITIES: [&str; 14] = [
    "chown",
    "dac_override",
    "fowner",
    "fsetid",
    "kill",
    "setgid",
    "setuid",
    "setpcap",
    "net_bind_service",
    "net_raw",
    "sys_chroot",
    "mknod",
    "audit_write",
    "setfcap",
];

/// The folder of the peers that `install-containers` unpacked.
pub(crate) fn tools() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-containers");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().into())
}

/// Files by their names.
pub(crate) type Files = BTreeMap<String, String>;

/// A run whose tasks are started one by one.
pub(crate) struct Pods {
    folder: TempDir,
    tools: PathBuf,
    run: Value,
    /// Secrets and ConfigMaps by name.
    given: BTreeMap<String, Files>,
}

/// How a task ended.
pub(crate) struct Ended {
    pub(crate) success: bool,
    /// What it printed, both streams.
    pub(crate) said: String,
    pub(crate) results: Files,
    /// What the shims wrote down, by tool: arguments one a line, and environment.
    pub(crate) calls: Vec<Call>,
}

/// One call of a tool.
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) arguments: Vec<String>,
}

impl Ended {
    /// The arguments of the first call of that tool whose first argument is `verb`.
    pub(crate) fn call(&self, tool: &str, verb: &str) -> &[String] {
        let is = |call: &&Call| call.tool == tool && call.arguments.first().is_some_and(|first| first == verb);
        self.calls.iter().find(is).map_or(&[], |call| &call.arguments)
    }
}

impl Pods {
    pub(crate) fn new(run: Value, given: BTreeMap<String, Files>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let pods = Self { folder, tools: tools()?, run, given };
        for below in ["claim/source", "claim/artifacts"] {
            // As the kubelet leaves a claim that it mounts for a group.
            pods.writable(below, Some(pods.group()?))?;
        }
        Ok(pods)
    }

    fn group(&self) -> Result<u32> {
        let group =
            self.run.pointer("/spec/taskRunTemplate/podTemplate/securityContext/fsGroup").and_then(Value::as_u64);
        group.and_then(|group| u32::try_from(group).ok()).context("the Pods of a run have a group")
    }

    fn writable(&self, below: &str, group: Option<u32>) -> Result<PathBuf> {
        let path = self.path(below);
        std::fs::create_dir_all(&path)?;
        chown(&path, None, group)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(if group.is_some() { 0o2775 } else { 0o777 }))?;
        Ok(path)
    }

    /// A path below the folder of all tasks.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Whether any file that a step could write, anything that it called, or anything that it printed holds a text.
    pub(crate) fn holds(&self, text: &str) -> Vec<String> {
        let mut command = Command::new("grep");
        command.args(["-r", "-l", "-a", "-F", "-e", text, "--exclude-dir=given"]).arg(self.folder.path());
        let found = command.output().unwrap();
        String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect()
    }

    /// The tasks of the run.
    pub(crate) fn tasks(&self) -> Vec<&str> {
        let tasks = self.run["spec"]["pipelineSpec"]["tasks"].as_array().into_iter().flatten();
        tasks.filter_map(|task| task["name"].as_str()).collect()
    }

    /// Starts one task and waits for its end.
    pub(crate) async fn task(&self, name: &str) -> Result<Ended> {
        let tasks = self.run["spec"]["pipelineSpec"]["tasks"].as_array().into_iter().flatten();
        let task = tasks.into_iter().find(|task| task["name"] == name).with_context(|| format!("no task {name}"))?;
        let spec = &task["taskSpec"];
        let steps = spec["steps"].as_array().context("steps")?;
        let [step] = &steps[..] else { bail!("a task with one step is all that this knows") };
        let mut mounts = Vec::new();
        let words = self.words(name, task, &mut mounts)?;
        let security = |member: &str| {
            let of = |from: &Value| from.get("securityContext").and_then(|context| context.get(member)).cloned();
            of(step).or_else(|| of(&spec["stepTemplate"])).unwrap_or_default()
        };
        for mount in step["volumeMounts"].as_array().into_iter().flatten() {
            let volume = mount["name"].as_str().context("a volume")?;
            let path = self.writable(&format!("{name}/volumes/{volume}"), None)?;
            mounts.push(format!("{} {} rw", path.display(), mount["mountPath"].as_str().context("a path")?));
        }
        for (below, target) in
            [("home", "/tekton/home"), ("results", "/tekton/results"), ("tmp", "/tmp"), ("vartmp", "/var/tmp")]
        {
            mounts.push(format!("{} {target} rw", self.writable(&format!("{name}/{below}"), None)?.display()));
        }
        self.prepare(name, step, &mounts)?;
        let user = security("runAsUser").as_u64().context("a step says as whom it runs")?;
        let main = if user == 1000 || user == 65534 { user } else { 0 };
        let mut command = tokio::process::Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh"]).arg(self.path("pod.sh"));
        command
            .arg(&self.tools)
            .arg(self.path(name))
            .args([user, main, u64::from(self.group()?)].map(|id| id.to_string()));
        command.arg(capabilities(&security("capabilities")));
        command.arg(if security("allowPrivilegeEscalation") == false { "no" } else { "yes" });
        for argument in step["args"].as_array().into_iter().flatten() {
            command.args(words.list(argument.as_str().context("a text")?));
        }
        command.env_clear().env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        for variable in step["env"].as_array().into_iter().flatten() {
            let text = |member: &str| variable[member].as_str().context("a variable");
            command.env(text("name")?, words.text(text("value")?));
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await.context("a step does not end")??;
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        std::fs::write(self.path(name).join("said"), &said)?;
        Ok(Ended {
            success: output.status.success(),
            said,
            results: files(&self.path(name).join("results"))?,
            calls: calls(&self.path(name).join("seen"))?,
        })
    }

    /// Folder, script and shims of a task.
    fn prepare(&self, name: &str, step: &Value, mounts: &[String]) -> Result<()> {
        let folder = self.path(name);
        self.writable(&format!("{name}/seen"), None)?;
        std::fs::create_dir_all(folder.join("root"))?;
        std::fs::create_dir_all(folder.join("shims/bin"))?;
        let executable = |path: PathBuf, text: &str| -> Result<()> {
            std::fs::write(&path, text)?;
            Ok(std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?)
        };
        for tool in TOOLS {
            executable(folder.join("shims/bin").join(tool), SHIM)?;
        }
        executable(folder.join("script"), step["script"].as_str().context("a script")?)?;
        executable(self.path("pod.sh"), POD)?;
        // What lies above it must be open to whoever a step runs as.
        std::fs::set_permissions(self.folder.path(), std::fs::Permissions::from_mode(0o755))?;
        Ok(std::fs::write(folder.join("mounts"), mounts.join("\n") + "\n")?)
    }

    /// What Tekton replaces in a task: parameters, paths of workspaces and of results.
    fn words(&self, name: &str, task: &Value, mounts: &mut Vec<String>) -> Result<Words> {
        let spec = &task["taskSpec"];
        let mut words = Words::default();
        let given = |param: &str| task["params"].as_array().into_iter().flatten().find(|one| one["name"] == param);
        for declared in spec["params"].as_array().into_iter().flatten() {
            let param = declared["name"].as_str().context("a parameter")?;
            let value = given(param).map_or(&declared["default"], |one| &one["value"]);
            words.values.insert(format!("params.{param}"), value.clone());
        }
        for result in spec["results"].as_array().into_iter().flatten() {
            let result = result["name"].as_str().context("a result")?;
            words.values.insert(format!("results.{result}.path"), format!("/tekton/results/{result}").into());
        }
        for declared in spec["workspaces"].as_array().into_iter().flatten() {
            let workspace = declared["name"].as_str().context("a workspace")?;
            let binding = task["workspaces"].as_array().into_iter().flatten().find(|one| one["name"] == workspace);
            let path = format!("/workspace/{workspace}");
            words.values.insert(format!("workspaces.{workspace}.bound"), binding.is_some().to_string().into());
            words.values.insert(format!("workspaces.{workspace}.path"), binding.map_or("", |_| path.as_str()).into());
            let Some(binding) = binding else { continue };
            let source = match binding["subPath"].as_str() {
                Some(folder) => self.path("claim").join(folder),
                None => self.given(name, binding["workspace"].as_str().context("a workspace of the run")?)?,
            };
            let mode = if declared["readOnly"] == true { "ro" } else { "rw" };
            mounts.push(format!("{} {path} {mode}", source.display()));
        }
        Ok(words)
    }

    /// The files of a Secret or ConfigMap that a workspace of the run mounts.
    fn given(&self, task: &str, workspace: &str) -> Result<PathBuf> {
        let all = self.run["spec"]["workspaces"].as_array().into_iter().flatten();
        let found =
            all.into_iter().find(|one| one["name"] == workspace).context("a workspace that is bound is there")?;
        let source = found.get("secret").or_else(|| found.get("configMap")).context("a Secret or a ConfigMap")?;
        let object = source["secretName"].as_str().or_else(|| source["name"].as_str()).context("a name")?;
        let content = self.given.get(object).with_context(|| format!("{object} is not there"))?;
        let items: Vec<(&str, &str)> = match source["items"].as_array() {
            Some(items) => {
                items.iter().filter_map(|item| Some((item["key"].as_str()?, item["path"].as_str()?))).collect()
            }
            None => content.keys().map(|key| (key.as_str(), key.as_str())).collect(),
        };
        let folder = self.path(task).join("given").join(workspace);
        std::fs::create_dir_all(&folder)?;
        for (key, path) in items {
            let file = folder.join(path);
            std::fs::write(&file, content.get(key).with_context(|| format!("{object} has no key {key}"))?)?;
            chown(&file, Some(0), Some(self.group()?))?;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o440))?;
        }
        Ok(folder)
    }
}

/// What stands for what in a step.
#[derive(Default)]
struct Words {
    values: BTreeMap<String, Value>,
}

impl Words {
    /// A text with everything replaced.
    fn text(&self, text: &str) -> String {
        let replace = |text: String, (name, value): (&String, &Value)| {
            text.replace(&format!("$({name})"), value.as_str().unwrap_or_default())
        };
        self.values.iter().fold(text.to_owned(), replace)
    }

    /// An argument, which a parameter that is a list makes several of.
    fn list(&self, text: &str) -> Vec<String> {
        let list = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix("[*])"));
        match list.and_then(|name| self.values.get(name)).and_then(Value::as_array) {
            Some(all) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            None => vec![self.text(text)],
        }
    }
}

/// What `setpriv` limits a step to.
fn capabilities(wanted: &Value) -> String {
    let named = |member: &str| -> Vec<String> {
        let list = wanted.get(member).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_ascii_lowercase).collect()
    };
    let (dropped, added) = (named("drop"), named("add"));
    let all = dropped.iter().any(|one| one == "all");
    let left = CAPABILITIES.iter().map(|one| (*one).to_owned()).filter(|one| !all && !dropped.contains(one));
    let kept = left.chain(added).map(|one| format!(",+{one}")).collect::<String>();
    format!("-all{kept}")
}

fn files(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
        files.insert(entry.file_name().to_string_lossy().into_owned(), text);
    }
    Ok(files)
}

fn calls(folder: &Path) -> Result<Vec<Call>> {
    let of = |(name, text): (String, String)| {
        let tool = name.strip_suffix(".arguments")?.split('.').next()?.to_owned();
        Some(Call { tool, arguments: text.lines().map(str::to_owned).collect() })
    };
    Ok(files(folder)?.into_iter().filter_map(of).collect())
}
