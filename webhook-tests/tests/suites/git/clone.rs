//! A repository, and the step that clones it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use drawbridge::domain::keys;
use drawbridge::pipelines::catalogue::{Values, config_maps};
use serde_json::Value;
use tempfile::TempDir;
use webhook_tests::pki::Authority;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// `agents.git` with two commits, a tag and a branch; the ids of the commits.
pub(crate) fn repository(root: &Path) -> [String; 2] {
    let work = root.join("work");
    std::fs::create_dir(&work).unwrap();
    git(&work, &["init", "-q", "."]);
    std::fs::write(work.join("one"), "1").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "one"]);
    git(&work, &["tag", "v1.0.0"]);
    let first = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["checkout", "-q", "-b", "feature/x"]);
    std::fs::write(work.join("two"), "2").unwrap();
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "two"]);
    let second = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["checkout", "-q", "main"]);
    git(root, &["clone", "-q", "--bare", "work", "agents.git"]);
    [first, second]
}

/// Gives `agents.git` a branch `refers`, whose folder `part` is the main branch of the repository at that URL.
pub(crate) fn refers(root: &Path, url: &str) {
    let work = root.join("work");
    let commit = git(&work, &["rev-parse", "main"]);
    git(&work, &["checkout", "-q", "-b", "refers", "main"]);
    std::fs::write(work.join(".gitmodules"), format!("[submodule \"part\"]\n\tpath = part\n\turl = {url}\n")).unwrap();
    git(&work, &["add", ".gitmodules"]);
    git(&work, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},part")]);
    git(&work, &["commit", "-q", "-m", "refers"]);
    git(&work, &["push", "-q", "../agents.git", "refers"]);
}

/// The script of the shipped step.
fn script() -> String {
    let maps = config_maps("anywhere", &Values::default());
    let map = maps.iter().find(|map| map.name == "github-clone-step").unwrap();
    let spec: Value = serde_saphyr::from_str(&map.data[keys::KEY_TASK_SPEC]).unwrap();
    spec["steps"][0]["script"].as_str().unwrap().to_owned()
}

/// A place where the step runs once.
pub(crate) struct Run {
    folder: TempDir,
    environment: BTreeMap<String, String>,
}

impl Run {
    pub(crate) fn new(url: &str, revision: &str, authority: Option<&Authority>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
        for (name, value) in [
            ("URL", url),
            ("REVISION", revision),
            ("DEPTH", "1"),
            ("SUBMODULES", "false"),
            ("REPO_USER", ""),
            ("ARTIFACTS_BOUND", "false"),
            ("ALLOW_UNKNOWN_HOSTS", "false"),
            ("AUTH_BOUND", "false"),
            ("TRUST_BOUND", "false"),
        ] {
            environment.insert(name.to_owned(), value.to_owned());
        }
        for (name, below) in [
            ("HOME", "home"),
            ("SOURCE", "source"),
            ("ARTIFACTS", "artifacts"),
            ("SCRATCH", "scratch"),
            ("AUTH", "auth"),
            ("TRUST", "trust"),
        ] {
            let path = folder.path().join(below);
            std::fs::create_dir(&path).unwrap();
            environment.insert(name.to_owned(), path.display().to_string());
        }
        for name in ["COMMIT", "URL"] {
            environment.insert(format!("OUT_{name}"), folder.path().join(name).display().to_string());
        }
        if let Some(authority) = authority {
            std::fs::write(folder.path().join("trust/ca.crt"), authority.certificate()).unwrap();
            environment.insert("TRUST_BOUND".to_owned(), "true".to_owned());
        }
        Self { folder, environment }
    }

    /// With a Secret of these keys.
    pub(crate) fn with(mut self, files: &[(&str, &str)], user: &str) -> Self {
        for (name, content) in files {
            std::fs::write(self.folder.path().join("auth").join(name), content).unwrap();
        }
        self.environment.insert("AUTH_BOUND".to_owned(), "true".to_owned());
        self.environment.insert("REPO_USER".to_owned(), user.to_owned());
        self
    }

    pub(crate) async fn output(&self) -> Output {
        let file = self.folder.path().join("script");
        std::fs::write(&file, script()).unwrap();
        tokio::process::Command::new("sh").arg(file).env_clear().envs(&self.environment).output().await.unwrap()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// With another value of a variable.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Nothing that outlives the step holds a text.
    pub(crate) fn keeps_nothing_of(&self, canary: &str, output: &Output) {
        for text in [&output.stdout, &output.stderr] {
            assert!(!String::from_utf8_lossy(text).contains(canary));
        }
        for below in ["source", "home", "artifacts"] {
            let found = Command::new("grep")
                .args(["-r", "-l", "-F", "-e", canary])
                .arg(self.folder.path().join(below))
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&found.stdout), "");
        }
    }
}
