//! First inputs of the fuzz targets, from the golden corpus: `cargo run -p webhook-tests --bin fuzz-seeds -- FOLDER`.
//!
//! Writes `FOLDER/<target>/<case>`, in the form that `fuzz/fuzz_targets/<target>.rs` reads. Equal corpora give equal
//! files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use drawbridge::domain::keys::{
    ANNOTATION_INBOUND_EXCLUDE, ANNOTATION_OUTBOUND_EXCLUDE, CONFIG_MAP_RUNTIME, KEY_CONFIG,
};
use serde_json::Value;
use webhook_tests::corpus::{self, Case};

/// Writes the first inputs of the fuzz targets.
#[derive(Parser)]
struct Arguments {
    /// Where the folders of the targets are
    folder: PathBuf,
}

/// Worlds of `fuzz/src/worlds.rs`.
const WORLDS: usize = 6;

fn main() -> Result<()> {
    let folder = Arguments::parse().folder;
    for (index, case) in corpus::load()?.iter().enumerate() {
        let name = case.name.replace('/', "-");
        let world = u8::try_from(index % WORLDS)?;
        write(&folder, "review", &name, &[&[world], case.review.as_bytes()].concat())?;
        write(&folder, "config", &name, case.fixture.platform.as_bytes())?;
        write(&folder, "config", &format!("{name}-gates"), case.fixture.gates.as_bytes())?;
        write(&folder, "namespace", &name, namespace(case).as_bytes())?;
        let agent_runtimes = agent_runtimes(case);
        if !agent_runtimes.is_empty() {
            write(&folder, "agent_runtime", &name, Value::Array(agent_runtimes).to_string().as_bytes())?;
        }
        for annotation in [ANNOTATION_OUTBOUND_EXCLUDE, ANNOTATION_INBOUND_EXCLUDE] {
            let annotations = case.object.as_ref().and_then(|object| object.pointer("/metadata/annotations"));
            if let Some(ports) = annotations.and_then(|all| all.get(annotation)).and_then(Value::as_str) {
                write(&folder, "ports", &name, ports.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// The AgentRuntimes of the case, the one under review first.
fn agent_runtimes(case: &Case) -> Vec<Value> {
    let all = case.object.iter().chain(case.fixture.objects.values());
    all.filter(|object| object["kind"] == "AgentRuntime").cloned().collect()
}

/// The platform file, the runtime configuration, then every other ConfigMap with a `config.yaml`.
fn namespace(case: &Case) -> String {
    let (mut runtime, mut defaults) = (String::new(), Vec::new());
    for object in case.fixture.objects.values().filter(|object| object["kind"] == "ConfigMap") {
        let Some(text) = object["data"][KEY_CONFIG].as_str() else { continue };
        if object["metadata"]["name"] == CONFIG_MAP_RUNTIME {
            text.clone_into(&mut runtime);
        } else {
            defaults.push(text.to_owned());
        }
    }
    [vec![case.fixture.platform.clone(), runtime], defaults].concat().join("\n%%\n")
}

fn write(folder: &Path, target: &str, name: &str, content: &[u8]) -> Result<()> {
    let path = folder.join(target).join(name);
    std::fs::create_dir_all(folder.join(target))?;
    std::fs::write(&path, content).with_context(|| path.display().to_string())
}
