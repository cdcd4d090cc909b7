//! The real Envoy, run on loopback with bootstraps that the product generates.
//!
//! In: a bootstrap. Out: whether Envoy accepts it ([`validate`]), or a running [`Envoy`] with both listeners, whose
//! requests go to an ext_proc stub ([`ext_proc`]) and then to an upstream that tells what it received ([`upstream`]).
//!
//! In a Pod, iptables sends connections to the listeners and the cluster `original_destination` sends them on to where
//! they were going. Neither needs to exist here: [`on_loopback`] changes addresses, ports and that one cluster, and
//! nothing else, so that filters, chains and routes are the generated ones.

pub mod ext_proc;
pub(crate) mod serving;
pub mod token_check;
pub mod upstream;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::household::{self, Child};
use crate::patience::patience;
use crate::{Port, dial};

/// The cluster that stands for wherever a connection was going.
const ORIGINAL_DESTINATION: &str = "original_destination";

/// The Envoy binary.
///
/// # Errors
/// When it is not installed; the message names the command that installs it.
pub fn program() -> Result<PathBuf> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PROGRAM.get_or_init(|| ask().map_err(|error| format!("{error:#}"))).clone().map_err(|error| anyhow!("{error}"))
}

fn ask() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-envoy");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// A name in the temporary folder that nobody else of this process uses.
fn fresh(ending: &str) -> Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(household::folders()?.disk.join(format!("envoy-{number}.{ending}")))
}

fn write(bootstrap: &str) -> Result<PathBuf> {
    let path = fresh("yaml")?;
    std::fs::write(&path, bootstrap).with_context(|| path.display().to_string())?;
    Ok(path)
}

/// Asks Envoy whether it would start with this text (YAML or JSON) as its bootstrap.
///
/// # Errors
/// What Envoy says is wrong with it.
pub fn validate(bootstrap: &str) -> Result<()> {
    let path = write(bootstrap)?;
    let output = Command::new(program()?)
        .args(["--mode", "validate", "--use-dynamic-base-id", "--log-level", "warning", "-c"])
        .arg(&path)
        .output()
        .context("cannot run envoy --mode validate")?;
    if !output.status.success() {
        bail!("envoy refuses the bootstrap: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Where the parts of a bootstrap are on this machine.
#[derive(Debug)]
pub struct Places {
    /// The outbound listener.
    pub outbound: Port,
    /// The inbound listener.
    pub inbound: Port,
    /// The admin interface.
    pub admin: Port,
    /// The ext_proc server.
    pub ext_proc: SocketAddr,
    /// Where every connection was going.
    pub upstream: SocketAddr,
}

/// The bootstrap with its addresses on loopback and a fixed upstream in place of the original destination.
///
/// # Errors
/// When the bootstrap has another shape than expected; the message names the part.
pub fn on_loopback(bootstrap: &Value, places: &Places) -> Result<Value> {
    let mut bootstrap = bootstrap.clone();
    let mut put = |pointer: &str, address: SocketAddr| {
        let place = bootstrap.pointer_mut(pointer).with_context(|| format!("the bootstrap has no {pointer}"))?;
        *place = json!({ "socket_address": { "address": address.ip(), "port_value": address.port() } });
        anyhow::Ok(())
    };
    put("/admin/address", places.admin.address())?;
    put("/static_resources/listeners/0/address", places.outbound.address())?;
    put("/static_resources/listeners/1/address", places.inbound.address())?;
    let endpoint = "load_assignment/endpoints/0/lb_endpoints/0/endpoint/address";
    put(&format!("/static_resources/clusters/1/{endpoint}"), places.ext_proc)?;
    let cluster = bootstrap.pointer_mut("/static_resources/clusters/0").context("the bootstrap has no clusters")?;
    if cluster["name"] != ORIGINAL_DESTINATION {
        bail!("the first cluster is {}, not {ORIGINAL_DESTINATION}", cluster["name"]);
    }
    let address = json!({ "address": places.upstream.ip(), "port_value": places.upstream.port() });
    *cluster = json!({
        "name": ORIGINAL_DESTINATION,
        "type": "STATIC",
        "connect_timeout": cluster["connect_timeout"],
        "lb_policy": "ROUND_ROBIN",
        "load_assignment": {
            "cluster_name": ORIGINAL_DESTINATION,
            "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": { "socket_address": address } } }] }],
        },
    });
    Ok(bootstrap)
}

/// A running Envoy; killed when dropped.
#[derive(Debug)]
pub struct Envoy {
    places: Places,
    child: Child,
}

impl Envoy {
    /// Starts Envoy with `bootstrap` moved to loopback, and waits until both listeners accept.
    ///
    /// # Errors
    /// When it ends or is not ready in time; the message holds the end of its log.
    pub async fn start(bootstrap: &Value, ext_proc: SocketAddr, upstream: SocketAddr) -> Result<Self> {
        let places = Places {
            outbound: Port::reserve()?,
            inbound: Port::reserve()?,
            admin: Port::reserve()?,
            ext_proc,
            upstream,
        };
        let path = write(&on_loopback(bootstrap, &places)?.to_string())?;
        let mut command = Command::new(program()?);
        command.args(["--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning", "-c"]).arg(&path);
        let child = household::spawn("envoy", command, &fresh("log")?)?;
        let envoy = Self { places, child };
        envoy.ready().await?;
        Ok(envoy)
    }

    /// Envoy answers `/ready` with 200 once its listeners have been started.
    async fn ready(&self) -> Result<()> {
        let deadline = Instant::now() + patience();
        loop {
            let answer = dial::get(self.places.admin.address(), "/ready").await;
            if matches!(answer, Ok((200, _))) {
                return Ok(());
            }
            if let Some(status) = self.child.ended() {
                bail!("envoy ended before it was ready: {status}\n{}", self.child.tail(30));
            }
            if Instant::now() > deadline {
                bail!("envoy is not ready after {:?}; last answer {answer:?}\n{}", patience(), self.child.tail(30));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The outbound listener: what the agent sends.
    #[must_use]
    pub fn outbound(&self) -> SocketAddr {
        self.places.outbound.address()
    }

    /// The inbound listener: what is sent to the agent.
    #[must_use]
    pub fn inbound(&self) -> SocketAddr {
        self.places.inbound.address()
    }
}
