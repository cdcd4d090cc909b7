//! The processes that are measured beside the product: the echo, the plain Go injector, the product's endpoints alone, and the
//! webhook that only answers.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempDir;
use webhook_tests::household::{self, Child};
use webhook_tests::{Port, programs};

use crate::load::{Connection, Target};
use crate::tls::{self, Trust};

/// How long a process may take until it accepts.
const PATIENCE: Duration = Duration::from_secs(20);
/// Host name of those that only the load calls.
const HOST: &str = "bench.invalid";

/// Certificates of all peers, and the folder of the Go injector's binary.
pub struct Peers {
    folder: TempDir,
    trust: Trust,
}

/// A process that is measured.
pub struct Peer {
    /// Where it is asked.
    pub target: Target,
    /// Its process id.
    pub id: i32,
    _child: Child,
    _port: Port,
}

impl Peers {
    /// Makes the certificates, for those that only the load calls.
    ///
    /// # Errors
    /// When there is no room for files.
    pub fn new() -> Result<Self> {
        Self::named(HOST)
    }

    /// Makes the certificates, for those that are called as `host`.
    ///
    /// # Errors
    /// When there is no room for files.
    pub fn named(host: &str) -> Result<Self> {
        let folder = tempfile::tempdir_in(&household::folders()?.disk)?;
        let trust = tls::write_pair(folder.path(), host)?;
        Ok(Self { folder, trust })
    }

    /// The bare echo, answering `answer` bytes.
    ///
    /// # Errors
    /// When it does not start.
    pub fn echo(&self, answer: usize) -> Result<Peer> {
        self.ours("echo", "/", &[format!("--answer={answer}")])
    }

    /// The product's endpoints over a snapshot with `others` more agents.
    ///
    /// # Errors
    /// When it does not start.
    pub fn offline(&self, others: usize) -> Result<Peer> {
        let path = format!("{}?timeout=10s", drawbridge::domain::keys::PATH_INJECT);
        self.ours("offline", &path, &[format!("--others={others}")])
    }

    /// The webhook that only answers, with what `ours` (trusted by `bundle`, PEM) answers once.
    ///
    /// # Errors
    /// When it does not start.
    pub fn stamp(&self, ours: &Target, bundle: &[u8]) -> Result<Peer> {
        let file = self.folder.path().join("source.crt");
        std::fs::write(&file, bundle)?;
        let name = ours.trust.name.to_str().into_owned();
        let source = format!("--source={}", ours.address);
        self.ours("stamp", "/", &[source, format!("--name={name}"), format!("--bundle={}", file.display())])
    }

    /// The certificates that they are trusted by (PEM).
    ///
    /// # Errors
    /// When the file has gone.
    pub fn bundle(&self) -> Result<Vec<u8>> {
        Ok(std::fs::read(self.folder.path().join(tls::BUNDLE))?)
    }

    /// The plain Go injector.
    ///
    /// # Errors
    /// When it cannot be built or does not start.
    pub fn go(&self) -> Result<Peer> {
        let command = Command::new(go_injector()?);
        self.start("go-injector", "/mutate?timeout=10s", command, &[])
    }

    fn ours(&self, name: &str, path: &str, arguments: &[String]) -> Result<Peer> {
        let mut command = Command::new(programs::workspace("bench")?);
        command.arg(name);
        self.start(name, path, command, arguments)
    }

    fn start(&self, name: &str, path: &str, mut command: Command, arguments: &[String]) -> Result<Peer> {
        let port = Port::reserve()?;
        command.args(arguments).arg(format!("--port={}", port.number()));
        command.arg(format!("--certificates={}", self.folder.path().display()));
        let log = self.folder.path().join(format!("{name}.log"));
        let child = household::spawn(name, command, &log)?;
        let target = Target { address: port.address(), path: path.to_owned(), trust: self.trust.clone() };
        accepting(name, target.address, &child)?;
        Ok(Peer { target, id: child.id(), _child: child, _port: port })
    }
}

fn accepting(name: &str, address: SocketAddr, child: &Child) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(address).is_err() {
        if let Some(status) = child.ended() {
            bail!("{name} ended while starting: {status}\n{}", child.tail(20));
        }
        ensure!(Instant::now() < deadline, "{name} does not accept on {address}\n{}", child.tail(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The binary of the Go injector, built into the cache folder when its sources are newer.
fn go_injector() -> Result<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    let cache = match (std::env::var_os("DRAWBRIDGE_CACHE"), std::env::var_os("XDG_CACHE_HOME")) {
        (Some(folder), _) => PathBuf::from(folder),
        (None, Some(folder)) => Path::new(&folder).join("drawbridge"),
        (None, None) => PathBuf::from(std::env::var_os("HOME").context("HOME is not set")?).join(".cache/drawbridge"),
    };
    let binary = cache.join("benches/go-injector");
    let built = Command::new("go")
        .args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"])
        .arg(&binary)
        .arg(".")
        .env("CGO_ENABLED", "0")
        .current_dir(&sources)
        .status()
        .context("cannot run go: install Go 1.26 or newer (https://go.dev/dl)")?;
    ensure!(built.success(), "the Go injector could not be built from {} (see above)", sources.display());
    Ok(binary)
}

/// The answer of `target` to one review; its length is what the echo answers.
///
/// # Errors
/// When it is not answered.
pub fn answer(target: &Target, body: &[u8]) -> Result<Vec<u8>> {
    Ok(Connection::open(target)?.ask(body)?.to_vec())
}
