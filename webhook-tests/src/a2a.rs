//! Agents by the published A2A SDK, at the addresses of their Pods.
//!
//! In: what a card says, who signs it, where it is served. Out: a running [`Agent`]. Promises: it listens at that address only, in the network
//! that it is started in, and ends with this process; it is there when [`Agent::start`] returns.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use tokio::time::Instant;

use crate::household::{self, Child};
use crate::network::Network;
use crate::patience::patience;
use crate::spire::Svid;

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// What an agent says of itself, and who says so.
#[derive(Debug, Clone)]
pub struct Card {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The ids of its skills.
    pub skills: Vec<String>,
    /// Signs it; nobody, where there is none.
    pub signer: Option<Svid>,
    /// Served as the description instead of the one that was signed.
    pub tamper: Option<String>,
}

impl Card {
    /// A card of that name with one skill, signed by nobody.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: format!("The agent {name}"),
            skills: vec!["echo".to_owned()],
            signer: None,
            tamper: None,
        }
    }

    /// Signed by `signer`.
    #[must_use]
    pub fn signed(self, signer: Svid) -> Self {
        Self { signer: Some(signer), ..self }
    }
}

/// What the agent at `address` serves under the well-known path.
///
/// # Errors
/// When nothing is answered, or another status than 200.
pub async fn served(network: &Network, address: SocketAddr) -> Result<String> {
    let answer = network.run(move || {
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    let answer = answer.await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    if !head.starts_with("HTTP/1.1 200") {
        bail!("{head}");
    }
    Ok(body.to_owned())
}

/// A running agent; dropping it ends its process.
pub struct Agent {
    child: Child,
}

/// The folder that the SDK is in.
fn installed() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-a2a");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Certificates of a PEM text as base64 DER, as `x5c` has them.
fn x5c(chain: &str) -> Result<Vec<String>> {
    CertificateDer::pem_slice_iter(chain.as_bytes())
        .map(|one| Ok(STANDARD.encode(one.context("the chain is no PEM")?)))
        .collect()
}

impl Agent {
    /// Starts an agent at `address` within `network`, and waits until it answers.
    ///
    /// # Errors
    /// When the SDK is not installed, the address is taken, or nothing answers in time; the message has the end of its log.
    pub async fn start(network: &Network, address: SocketAddr, card: &Card) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = &household::folders()?.disk;
        let signer = card.signer.as_ref();
        let wanted = json!({
            "host": address.ip().to_string(), "port": address.port(), "path": "/",
            "name": card.name, "description": card.description, "skills": card.skills,
            "key": signer.map(|svid| svid.key.clone()), "chain": signer.map(|svid| x5c(&svid.chain)).transpose()?,
            "tamper": card.tamper,
        });
        let file = folder.join(format!("agent-{number}.json"));
        std::fs::write(&file, wanted.to_string())?;
        let mut command = Command::new(std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into()));
        command.env("PYTHONPATH", installed()?).env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/agent.py")).arg(file);
        let log = folder.join(format!("agent-{number}.log"));
        let child = network.run(move || household::spawn("agent", command, &log)).await?;
        let this = Self { child };
        let deadline = Instant::now() + patience();
        loop {
            let dialled = network.run(move || Ok(std::net::TcpStream::connect(address).is_ok())).await?;
            if dialled {
                return Ok(this);
            }
            if this.child.ended().is_some() || Instant::now() > deadline {
                bail!("the agent at {address} does not answer\n{}", this.child.tail(20));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
