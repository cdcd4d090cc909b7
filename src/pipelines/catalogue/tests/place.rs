//! A folder to run scripts in, with stubs of tools first in the path.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use super::shipped;
use crate::pipelines::fixtures::OPERATOR;

/// The script of a Tekton step.
pub(super) fn script(step: &str, name: &str) -> String {
    let view = shipped();
    let spec = &view.steps(OPERATOR)[step].step.as_ref().unwrap().task_spec;
    let steps = spec["steps"].as_array().unwrap();
    let step = steps.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no step {name}"));
    step["script"].as_str().unwrap().to_owned()
}

/// A folder to run scripts in, with stubs first in the path.
pub(super) struct Place {
    pub(super) root: tempfile::TempDir,
    pub(super) env: BTreeMap<String, String>,
}

impl Place {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let place = Self { root, env: BTreeMap::new() };
        for folder in ["bin", "home", "source", "artifacts", "scratch", "auth", "out"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
        let mut place = place.with("PATH", &path);
        for (name, folder) in [
            ("HOME", "home"),
            ("SOURCE", "source"),
            ("ARTIFACTS", "artifacts"),
            ("SCRATCH", "scratch"),
            ("AUTH", "auth"),
        ] {
            let path = place.path(folder).display().to_string();
            place = place.with(name, &path);
        }
        for name in ["COMMIT", "URL", "DIGEST", "REF", "FOUND", "NAME"] {
            let path = place.path("out").join(name).display().to_string();
            place = place.with(&format!("OUT_{name}"), &path);
        }
        for name in ["ARTIFACTS_BOUND", "AUTH_BOUND", "TRUST_BOUND", "SUBMODULES", "ALLOW_UNKNOWN_HOSTS"] {
            place = place.with(name, "false");
        }
        place.with("SUBFOLDER", ".")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn file(self, name: &str, content: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// A tool that records its arguments, one per line, and then does `then`.
    pub(super) fn stub(self, name: &str, then: &str) -> Self {
        let log = self.path(&format!("{name}.log"));
        let text =
            format!("#!/bin/sh\nfor one in \"$@\"; do printf '%s\\n' \"$one\"; done >> '{}'\n{then}\n", log.display());
        let place = self.file(&format!("bin/{name}"), &text);
        let path = place.path(&format!("bin/{name}"));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    pub(super) fn run(&self, script: &str, arguments: &[&str]) -> Output {
        let file = self.path("script");
        std::fs::write(&file, script).unwrap();
        let mut command = Command::new("sh");
        command.arg(&file).args(arguments).env_clear().envs(&self.env).current_dir(self.root.path());
        command.output().unwrap()
    }

    pub(super) fn ran(&self, script: &str, arguments: &[&str]) -> String {
        let output = self.run(script, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(super) fn failed(&self, script: &str, arguments: &[&str]) -> String {
        let output = self.run(script, arguments);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(super) fn out(&self, name: &str) -> String {
        std::fs::read_to_string(self.path("out").join(name)).unwrap_or_default()
    }

    pub(super) fn log(&self, tool: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{tool}.log"))).unwrap_or_default()
    }
}
