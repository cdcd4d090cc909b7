//! The real SPIRE: a server and an agent of their own, whose SVIDs sign agent cards.
//!
//! In: a trust domain, how long authorities and SVIDs last, and who is entitled to which SPIFFE ID, by user id. Out: X.509-SVIDs as the
//! agent's Workload API gives them to a process of that user, and the trust bundle as PEM and as SPIFFE JSON. Promises: nothing
//! listens but on loopback; both processes end with this one.
//!
//! A user id per workload, since the agent tells processes apart by it: with one for all, what a test says of identities would be true
//! of anybody.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::household::{self, Child};
use crate::patience::patience;
use crate::{Port, dial};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// The SPIFFE ID path of the node that the agent runs on.
const NODE: &str = "/node";

/// How SPIRE is set up.
#[derive(Debug, Clone)]
pub struct SpireOptions {
    /// The trust domain.
    pub trust_domain: String,
    /// How long an authority lasts; the next is prepared when half of that is over.
    pub ca_ttl: Duration,
    /// How long an X.509-SVID lasts.
    pub svid_ttl: Duration,
}

impl Default for SpireOptions {
    fn default() -> Self {
        Self {
            trust_domain: "example.org".to_owned(),
            ca_ttl: Duration::from_secs(24 * 3600),
            svid_ttl: Duration::from_secs(3600),
        }
    }
}

/// A form of the trust bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleForm {
    /// Certificates, one after the other.
    Pem,
    /// A JWK Set as SPIFFE defines it.
    Spiffe,
}

/// An X.509-SVID.
#[derive(Clone)]
pub struct Svid {
    /// The leaf, then what leads to an authority, as PEM.
    pub chain: String,
    /// The leaf's key, PKCS#8 as PEM.
    pub key: String,
}

impl fmt::Debug for Svid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Svid").field("chain", &self.chain).finish_non_exhaustive()
    }
}

/// A running SPIRE; dropping it ends both processes.
pub struct Spire {
    options: SpireOptions,
    programs: PathBuf,
    folder: TempDir,
    /// Of the server, and for the health of server and agent.
    ports: [Port; 3],
    _server: Child,
    _agent: Option<Child>,
}

fn programs() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/install-spire");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The configuration of a health check.
fn health(port: &Port) -> String {
    let port = port.number();
    format!(
        "health_checks {{ listener_enabled = true bind_address = \"127.0.0.1\" bind_port = \"{port}\" live_path = \"/live\" ready_path = \"/ready\" }}\n"
    )
}

fn server_conf(folder: &Path, options: &SpireOptions, ports: &[Port; 3]) -> String {
    let (at, domain) = (folder.display(), &options.trust_domain);
    format!(
        r#"server {{
  bind_address = "127.0.0.1"
  bind_port = "{}"
  trust_domain = "{domain}"
  data_dir = "{at}/server"
  socket_path = "{at}/server.sock"
  log_level = "INFO"
  ca_ttl = "{}s"
  default_x509_svid_ttl = "{}s"
}}
plugins {{
  DataStore "sql" {{ plugin_data {{ database_type = "sqlite3" connection_string = "{at}/server/datastore.sqlite3" }} }}
  NodeAttestor "join_token" {{ plugin_data {{}} }}
  KeyManager "memory" {{ plugin_data {{}} }}
}}
{}"#,
        ports[0].number(),
        options.ca_ttl.as_secs(),
        options.svid_ttl.as_secs(),
        health(&ports[1]),
    )
}

fn agent_conf(folder: &Path, options: &SpireOptions, ports: &[Port; 3], token: &str) -> String {
    let (at, domain) = (folder.display(), &options.trust_domain);
    format!(
        r#"agent {{
  server_address = "127.0.0.1"
  server_port = "{}"
  trust_domain = "{domain}"
  data_dir = "{at}/agent"
  socket_path = "{at}/agent.sock"
  trust_bundle_path = "{at}/bootstrap.pem"
  join_token = "{token}"
  log_level = "INFO"
}}
plugins {{
  NodeAttestor "join_token" {{ plugin_data {{}} }}
  KeyManager "memory" {{ plugin_data {{}} }}
  WorkloadAttestor "unix" {{ plugin_data {{}} }}
}}
{}"#,
        ports[0].number(),
        health(&ports[2]),
    )
}

impl Spire {
    /// Starts a server and an agent of it.
    ///
    /// # Errors
    /// When SPIRE is not built, or does not become ready; the message has the end of its log.
    pub async fn start(options: SpireOptions) -> Result<Self> {
        let programs = programs()?;
        let folder = tempfile::Builder::new().prefix("spire-").tempdir_in(&household::folders()?.disk)?;
        // Other users come in: to the agent's socket, and to what is written for each of them.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        std::fs::set_permissions(&household::folders()?.disk, std::fs::Permissions::from_mode(0o711))?;
        let ports = [Port::reserve()?, Port::reserve()?, Port::reserve()?];
        let (server_health, agent_health) = (ports[1].address(), ports[2].address());
        let server = start(&programs, "spire-server", folder.path(), &server_conf(folder.path(), &options, &ports))?;
        ready(&server, server_health).await?;
        let mut this = Self { options, programs, folder, ports, _server: server, _agent: None };
        let node = this.id(NODE);
        let token = this.server(&["token", "generate", "-spiffeID", &node, "-output", "json"])?;
        let token: serde_json::Value = serde_json::from_str(&token)?;
        let token = token["value"].as_str().context("the server gives no join token")?;
        let folder = this.folder.path();
        std::fs::write(folder.join("bootstrap.pem"), this.bundle(BundleForm::Pem)?)?;
        let agent =
            start(&this.programs, "spire-agent", folder, &agent_conf(folder, &this.options, &this.ports, token))?;
        ready(&agent, agent_health).await?;
        this._agent = Some(agent);
        Ok(this)
    }

    /// The socket of the agent's Workload API.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("agent.sock")
    }

    /// The SPIFFE ID of that path.
    #[must_use]
    pub fn id(&self, path: &str) -> String {
        format!("spiffe://{}{path}", self.options.trust_domain)
    }

    /// The SPIFFE ID of a ServiceAccount, as Drawbridge and SPIRE's own registrar form it.
    #[must_use]
    pub fn account(&self, namespace: &str, account: &str) -> String {
        self.id(&format!("/ns/{namespace}/sa/{account}"))
    }

    /// Asks the server by its own command line.
    fn server(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(self.programs.join("spire-server"));
        command.args(words).arg("-socketPath").arg(self.folder.path().join("server.sock"));
        said(command.output()?, &format!("spire-server {}", words.join(" ")))
    }

    /// Processes of that user are entitled to `id` from now on.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn entitle(&self, id: &str, uid: u32) -> Result<()> {
        let (node, selector) = (self.id(NODE), format!("unix:uid:{uid}"));
        self.server(&["entry", "create", "-parentID", &node, "-spiffeID", id, "-selector", &selector]).map(drop)
    }

    /// The X.509-SVID that the agent gives to a process of that user; waits until it has one for him, since entries take a moment to reach
    /// the agent.
    ///
    /// # Errors
    /// When this process may not become that user (root may), or nothing came within two minutes.
    pub async fn svid(&self, uid: u32) -> Result<Svid> {
        let folder = tempfile::Builder::new().prefix("svid-").tempdir_in(self.folder.path())?;
        chown(folder.path(), Some(uid), Some(uid)).context("an SVID is asked for as another user, which takes root")?;
        let deadline = Instant::now() + patience();
        loop {
            let mut command = Command::new("setpriv");
            command.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}")).arg("--clear-groups");
            command.arg(self.programs.join("spire-agent")).args(["api", "fetch", "x509", "-socketPath"]);
            command.arg(self.folder.path().join("agent.sock")).arg("-write").arg(folder.path());
            let told = said(
                command.output().context("cannot run setpriv (Debian: util-linux)")?,
                "spire-agent api fetch x509",
            );
            let file = |name: &str| std::fs::read_to_string(folder.path().join(name));
            match told {
                Ok(_) => return Ok(Svid { chain: file("svid.0.pem")?, key: file("svid.0.key")? }),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// The trust bundle as it is now.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn bundle(&self, form: BundleForm) -> Result<String> {
        let form = match form {
            BundleForm::Pem => "pem",
            BundleForm::Spiffe => "spiffe",
        };
        self.server(&["bundle", "show", "-format", form])
    }
}

fn start(programs: &Path, name: &str, folder: &Path, configuration: &str) -> Result<Child> {
    std::fs::create_dir(folder.join(name.trim_start_matches("spire-")))?;
    let file = folder.join(format!("{name}.conf"));
    std::fs::write(&file, configuration)?;
    let mut command = Command::new(programs.join(name));
    command.args(["run", "-config"]).arg(file);
    household::spawn(name, command, &folder.join(format!("{name}.log")))
}

async fn ready(child: &Child, health: SocketAddr) -> Result<()> {
    let deadline = Instant::now() + patience();
    loop {
        if matches!(dial::get(health, "/ready").await, Ok((200, _))) {
            return Ok(());
        }
        if child.ended().is_some() || Instant::now() > deadline {
            bail!("SPIRE does not become ready\n{}", child.tail(20));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn said(output: Output, what: &str) -> Result<String> {
    if !output.status.success() {
        let words = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        bail!("{what}: {}", words.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
