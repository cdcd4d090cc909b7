//! A container of a Pod template as a process, where no container engine is: its command line, its environment and the files that it mounts are
//! those of the template, and the image is what the caller names.
//!
//! In: a container of a Deployment's template, the data that its references lead to, the program that its image would start. Out: a running
//! process in a network and a mount namespace of its own. Promises: the environment is what the template says and what the image has, expanded
//! as the kubelet does; nothing of this machine's environment gets in; it ends with this process.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::household::{self, Child};
use crate::network::Network;

/// How long a process may take until it listens: some need 20 s of processor time, of which a machine that does other things may give a fiftieth.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// What the references of a template lead to, and what its image has.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// Keys of Secrets and ConfigMaps, as `name/key`.
    pub keys: BTreeMap<String, String>,
    /// Files that it mounts, by path.
    pub files: BTreeMap<String, String>,
    /// What the image starts; a command of the template replaces it.
    pub entrypoint: Vec<String>,
    /// Variables of the image.
    pub image_env: BTreeMap<String, String>,
}

/// A running container.
pub struct Container {
    child: Child,
}

/// The folder that the pinned LiteLLM and FastMCP are in.
///
/// # Errors
/// When they are not installed; the message says what to run.
pub fn python() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-litellm");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The environment of a container, as the kubelet makes it: in order, references resolved, `$(NAME)` of an earlier variable expanded, `$$` one `$`.
///
/// # Errors
/// When a reference leads nowhere.
pub fn environment(container: &Value, around: &Surroundings) -> Result<BTreeMap<String, String>> {
    let mut env = around.image_env.clone();
    for entry in container["env"].as_array().into_iter().flatten() {
        let name = entry["name"].as_str().context("a variable has a name")?;
        let from =
            ["secretKeyRef", "configMapKeyRef"].iter().find_map(|kind| entry.pointer(&format!("/valueFrom/{kind}")));
        let value = match from {
            Some(at) => {
                let key =
                    format!("{}/{}", at["name"].as_str().unwrap_or_default(), at["key"].as_str().unwrap_or_default());
                around.keys.get(&key).cloned().with_context(|| format!("{name}: nothing has key {key}"))?
            }
            None => expanded(entry["value"].as_str().unwrap_or_default(), &env),
        };
        env.insert(name.to_owned(), value);
    }
    Ok(env)
}

/// `$(NAME)` and `$$`, as Kubernetes reads them.
fn expanded(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match env.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out + rest
}

impl Container {
    /// Starts it in `network`.
    ///
    /// # Errors
    /// When a reference leads nowhere, or no process can be started.
    pub async fn start(network: &Network, container: &Value, around: &Surroundings) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let words = |key: &str| {
            let list = container[key].as_array();
            list.map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>())
        };
        let mut argv = words("command").unwrap_or_else(|| around.entrypoint.clone());
        argv.extend(words("args").unwrap_or_default());
        let env = environment(container, around)?;
        let folder = &household::folders()?.disk;
        let file = folder.join(format!("container-{number}.json"));
        std::fs::write(&file, json!({"files": around.files, "argv": argv, "env": env}).to_string())?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--"]).arg(std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()));
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/container.py")).arg(file);
        let log = folder.join(format!("container-{number}.log"));
        let child = network.run(move || household::spawn("container", command, &log)).await?;
        Ok(Self { child })
    }

    /// Waits until it answers `GET path` at its port with 200, or with nothing for a path until it listens.
    ///
    /// # Errors
    /// When it ends or takes too long; the message has the end of its log.
    pub async fn ready(&self, network: &Network, port: u16, path: Option<&str>) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answered = match path {
                Some(path) => ask(network, port, ("GET", path), &[], "").await.is_ok_and(|(status, _)| status == 200),
                None => network.run(move || Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())).await?,
            };
            if answered {
                return Ok(());
            }
            if self.child.ended().is_some() || Instant::now() > deadline {
                bail!("nothing answers at port {port}\n{}", self.child.tail(30));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The end of what it wrote.
    #[must_use]
    pub fn tail(&self) -> String {
        self.child.tail(30)
    }
}

/// One request to `127.0.0.1:port` within the network: status and body.
///
/// # Errors
/// When nobody answers.
pub async fn ask(
    network: &Network,
    port: u16,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Result<(u16, String)> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{more}\r\n{body}",
        body.len()
    );
    network
        .run(move || {
            let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
            stream.set_read_timeout(Some(PATIENCE / 3))?;
            stream.write_all(text.as_bytes())?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            let answer = String::from_utf8_lossy(&answer).into_owned();
            let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no status line")?;
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
            Ok((status, body))
        })
        .await
}
