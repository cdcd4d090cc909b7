//! The product's binary as a process: started on free ports with an identity, probed, scraped, stopped, killed, frozen.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use parking_lot::Mutex;
use rustix::process::Signal;
use tokio::time::Instant;

use crate::access::Access;
use crate::household::{self, Child};
use crate::metrics::Metrics;
use crate::patience::patience;
use crate::port::Port;
use crate::{dial, programs};

/// The ports of one process; the same after a restart.
#[derive(Debug)]
pub struct Ports {
    /// For reviews.
    pub webhook: Port,
    /// For the catalogue of verified agents.
    pub catalogue: Port,
    /// For `/healthz` and `/readyz`.
    pub health: Port,
    /// For `/metrics`.
    pub metrics: Port,
}

/// Where the processes tell their metrics, of all that were started here.
static STARTED: Mutex<Vec<SocketAddr>> = Mutex::new(Vec::new());

/// How many processes have ConfigMaps to read, or do not come to telling; those that have ended have not.
pub(crate) async fn reading() -> usize {
    let started = STARTED.lock().clone();
    let asked = started.into_iter().map(|at| tokio::time::timeout(Duration::from_secs(1), Metrics::scrape(at)));
    let waiting = |metrics: &Metrics| metrics.sum("drawbridge_config_waiting_namespaces", &[]) > 0.0;
    let asked = futures::future::join_all(asked).await;
    asked.iter().filter(|told| told.as_ref().map_or(true, |told| told.as_ref().is_ok_and(waiting))).count()
}

/// One process of the product; killed when dropped.
pub struct Drawbridge {
    ports: Ports,
    args: Vec<String>,
    inside: Vec<String>,
    env: Vec<(String, String)>,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Drawbridge {
    /// Starts the binary with the arguments that `args` makes of the ports, `KUBECONFIG` of `access`, and `env`; does not
    /// wait for readiness ([`Drawbridge::ready`] does).
    ///
    /// # Errors
    /// When the binary is not built.
    pub fn launch(access: &Access, env: &[(&str, &str)], args: impl FnOnce(&Ports) -> Vec<String>) -> Result<Self> {
        Self::launch_inside(&[], access, env, args)
    }

    /// The same by another command, which ends in becoming the binary: the command line of that follows its own words.
    ///
    /// # Errors
    /// When the binary is not built, or the command is not there.
    pub fn launch_inside(
        inside: &[String],
        access: &Access,
        env: &[(&str, &str)],
        args: impl FnOnce(&Ports) -> Vec<String>,
    ) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let ports = Ports {
            webhook: Port::reserve()?,
            catalogue: Port::reserve()?,
            health: Port::reserve()?,
            metrics: Port::reserve()?,
        };
        let args = args(&ports);
        let mut all = vec![("KUBECONFIG".to_owned(), access.kubeconfig().display().to_string())];
        all.extend(env.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let log = format!("drawbridge-{}.log", NUMBER.fetch_add(1, Ordering::Relaxed));
        let log = household::folders()?.disk.join(log);
        STARTED.lock().push(ports.metrics.address());
        let this = Self { ports, args, inside: inside.to_vec(), env: all, log, child: Mutex::new(None) };
        this.start_again()?;
        Ok(this)
    }

    /// Starts the process again, with the same ports, arguments and environment; the log goes on.
    ///
    /// # Errors
    /// When it is running, or the binary is not built.
    pub fn start_again(&self) -> Result<()> {
        let mut child = self.child.lock();
        if child.as_ref().is_some_and(|child| child.ended().is_none()) {
            bail!("drawbridge is running already");
        }
        let binary = programs::workspace("drawbridge")?;
        let mut command = match self.inside.split_first() {
            None => Command::new(binary),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(binary);
                command
            }
        };
        command.args(&self.args).envs(self.env.iter().cloned());
        *child = Some(household::spawn("drawbridge", command, &self.log)?);
        Ok(())
    }

    /// Waits until `/readyz` answers 200.
    ///
    /// # Errors
    /// When the process ends, or after [`patience`]; the message has the last answer and the end of the log.
    pub async fn ready(&self) -> Result<()> {
        let deadline = Instant::now() + patience();
        loop {
            let answer = dial::get(self.ports.health.address(), "/readyz?verbose=1").await;
            if matches!(answer, Ok((200, _))) {
                return Ok(());
            }
            if let Some(status) = self.ended() {
                bail!("drawbridge {} ended before it was ready: {status}\n{}", self.args.join(" "), self.tail(30));
            }
            if Instant::now() > deadline {
                bail!("drawbridge is not ready after {:?}; last answer {answer:?}\n{}", patience(), self.tail(30));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The ports.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Where reviews are served.
    #[must_use]
    pub fn webhook(&self) -> SocketAddr {
        self.ports.webhook.address()
    }

    /// Where probes are served.
    #[must_use]
    pub fn health(&self) -> SocketAddr {
        self.ports.health.address()
    }

    /// The process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.child.lock().as_ref().filter(|child| child.ended().is_none()).map(Child::id)
    }

    /// The exit status, once the process has ended by itself.
    #[must_use]
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().as_ref().and_then(Child::ended)
    }

    /// Sends SIGTERM and returns at once: what follows is the drain.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Errors
    /// When the process is not running or had to be killed after `patience`.
    pub async fn stop(&self, patience: Duration) -> Result<ExitStatus> {
        let child = self.child.lock().take();
        match child {
            Some(child) => child.stop(patience).await,
            None => bail!("drawbridge is not running"),
        }
    }

    /// Waits for the end of a process that was told to end.
    ///
    /// # Errors
    /// When the process is not running.
    pub async fn wait(&self) -> Result<ExitStatus> {
        let child = self.child.lock().take();
        match child {
            Some(child) => Ok(child.wait().await),
            None => bail!("drawbridge is not running"),
        }
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(&self) {
        let child = self.child.lock().take();
        if let Some(child) = child {
            child.kill().await;
        }
    }

    /// Freezes the process (SIGSTOP).
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a frozen process go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = self.child.lock().as_ref() {
            child.signal(signal);
        }
    }

    /// Everything it has written, restarts included.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn tail(&self, lines: usize) -> String {
        let log = self.log();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// What it counts now, over plain HTTP: from the metrics port, or the health port when nothing listens there.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> Result<Metrics> {
        match Metrics::scrape(self.ports.metrics.address()).await {
            Ok(metrics) => Ok(metrics),
            Err(_) => Metrics::scrape(self.ports.health.address()).await,
        }
    }
}
