//! First inputs of the fuzz targets, from the golden corpus: `cargo run -p webhook-tests --bin fuzz-seeds -- FOLDER`.
//!
//! Writes `FOLDER/<target>/<case>`, in the form that `fuzz/fuzz_targets/<target>.rs` reads. Equal corpora give equal
//! files, but for certificates, which are made anew.

mod builds;
mod live;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use clap::Parser;
use drawbridge::cli::yaml::emit;
use drawbridge::domain::keys::{
    ANNOTATION_INBOUND_EXCLUDE, ANNOTATION_OUTBOUND_EXCLUDE, CONFIG_MAP_RUNTIME, KEY_CONFIG,
};
use serde_json::Value;
use webhook_tests::corpus::{self, Case};
use webhook_tests::pki::Authority;

/// Writes the first inputs of the fuzz targets.
#[derive(Parser)]
struct Arguments {
    /// Where the folders of the targets are
    folder: PathBuf,
}

/// Worlds of `fuzz/src/worlds.rs`.
const WORLDS: usize = 6;
/// Kinds of `fuzz/fuzz_targets/observed.rs`, in its order.
const KINDS: [&str; 18] = [
    "Namespace",
    "ConfigMap",
    "ServiceAccount",
    "Job",
    "CSIDriver",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "CronJob",
    "Sandbox",
    "AgentRuntime",
    "Pod",
    "Agent",
    "AgentBuild",
    "PipelineRun",
    "TaskRun",
    "Service",
];
/// A manifest that `inject` changes: comments, an order of keys, and numbers that people write.
const MANIFEST: &str = include_str!("../../../../manifests/samples/weather-agent.yaml");

/// Signed cards and trust bundles, good and hostile.
const CARDS: &str = include_str!("../../../../src/crypto/tests/vectors/chains.json");

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
        for (index, object) in case.object.iter().chain(case.fixture.objects.values()).enumerate() {
            observed(&folder, &format!("{name}-{index}"), object["kind"].as_str().unwrap_or_default(), object)?;
        }
        if let Some(object) = &case.object {
            write(&folder, "manifests", &name, emit::document(object, None).as_bytes())?;
        }
        write(&folder, "http", &name, request(&case.review).as_bytes())?;
    }
    cards(&folder)?;
    live::all(&folder)?;
    builds::all(&folder)?;
    for (kind, object) in builds::runs() {
        observed(&folder, kind, kind, &object)?;
    }
    for sample in ["weather-agent-build.yaml", "weather-built-agent.yaml"] {
        let object = builds::sample(sample)?;
        observed(&folder, sample, object["kind"].as_str().unwrap_or_default(), &object)?;
    }
    write(&folder, "manifests", "sample", MANIFEST.as_bytes())?;
    write(&folder, "manifests", "two", format!("# a\n{MANIFEST}---\n{{\"a\": 1e2}}\n---\n").as_bytes())?;
    let path = drawbridge::domain::keys::PATH_INJECT;
    let head = "Host: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked";
    let chunked = format!("POST {path} HTTP/1.1\r\n{head}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
    write(&folder, "http", "chunked", format!("{chunked}{chunked}").as_bytes())?;
    certificates(&folder)
}

/// One object as a watch sends it.
fn observed(folder: &Path, name: &str, kind: &str, object: &Value) -> Result<()> {
    let Some(index) = KINDS.iter().position(|known| *known == kind) else { return Ok(()) };
    write(folder, "observed", name, &[&[u8::try_from(index)?], object.to_string().as_bytes()].concat())
}

/// A review as the API server sends it.
fn request(body: &str) -> String {
    let length = body.len();
    format!(
        "POST {}?timeout=10s HTTP/1.1\r\nHost: drawbridge-webhook.kagenti-system.svc\r\nContent-Type: application/json\r\n\
        Content-Length: {length}\r\n\r\n{body}",
        drawbridge::domain::keys::PATH_INJECT
    )
}

/// Pairs that belong together, pairs that do not, and bundles.
fn certificates(folder: &Path) -> Result<()> {
    let authority = Authority::new("fuzz")?;
    let (one, other) = (authority.server("a", &["a.example"])?, authority.server("b", &["b.example"])?);
    let chain = format!("{}{}", one.certificate, authority.certificate());
    let own = authority.pair();
    for (name, pem, key) in [
        ("pair", &chain, &one.key),
        ("of-another", &chain, &other.key),
        ("authority", &own.certificate, &own.key),
        ("bundle", &format!("# a\n{chain}{chain}{}", other.certificate), &String::new()),
    ] {
        write(folder, "certificates", name, format!("{pem}%%{key}").as_bytes())?;
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

/// Cards with their bundles, in the form of `fuzz/fuzz_targets/card.rs`; long ones teach a fuzzer nothing.
fn cards(folder: &Path) -> Result<()> {
    let vectors: Value = serde_json::from_str(CARDS)?;
    for (index, case) in vectors["cases"].as_array().context("cases")?.iter().enumerate() {
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let input = format!("{}%%{}", text("card"), text("bundle"));
        if input.len() < 16 << 10 {
            write(folder, "card", &index.to_string(), input.as_bytes())?;
        }
        if let Some(input) = entry(text("card"), text("bundle")).filter(|input| input.len() < 16 << 10) {
            write(folder, "card_entry", &index.to_string(), &input)?;
        }
    }
    Ok(())
}

/// The first signature of a card, in the form of `fuzz/fuzz_targets/card_entry.rs`; none where it is not what it should be.
fn entry(card: &str, bundle: &str) -> Option<Vec<u8>> {
    let card: Value = serde_json::from_str(card).ok()?;
    let header = URL_SAFE_NO_PAD.decode(card["signatures"][0]["protected"].as_str()?).ok()?;
    let parsed: Value = serde_json::from_slice(&header).ok()?;
    let certificate = |at: usize| STANDARD.decode(parsed["x5c"][at].as_str().unwrap_or_default()).ok();
    let body = bundle.strip_prefix("-----BEGIN CERTIFICATE-----")?.split("-----END").next()?;
    let authority = STANDARD.decode(body.split_whitespace().collect::<String>()).ok()?;
    Some([header, certificate(0)?, certificate(1)?, authority].join(&b"%%"[..]))
}

fn write(folder: &Path, target: &str, name: &str, content: &[u8]) -> Result<()> {
    let path = folder.join(target).join(name);
    std::fs::create_dir_all(folder.join(target))?;
    std::fs::write(&path, content).with_context(|| path.display().to_string())
}
