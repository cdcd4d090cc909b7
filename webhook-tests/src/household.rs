//! Processes and folders that never outlive the process that made them.
//!
//! In: commands and a wish for a folder. Out: [`Child`] handles and temporary folders.
//! Promise: when this process ends, in whatever way (return, panic, abort, SIGKILL), everything that was started
//! through [`spawn`] is killed and every folder below [`folders`] is removed.
//!
//! How: all children share one process group, whose leader ("anchor") and one more process outside of the group
//! ("janitor") read a pipe that only this process can write. The kernel closes the pipe when we die; the janitor
//! then kills the group, removes the folders (again, should a dying process have added a file) and ends. The group is chosen before a child
//! runs its first instruction, so there is no moment in which a child is unknown.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::watch;

/// Run by `sh`: waits for the end of its input, then ends the group `$1` and removes the folders `$2` and `$3`.
const JANITOR: &str = r#"
trap '' INT TERM HUP
while read -r _; do :; done
group=$1; shift
kill -s KILL -- "-$group" 2>/dev/null
for round in 1 2 3 4 5; do rm -rf -- "$@" && sleep 0.1 && [ ! -e "$1" ] && [ ! -e "$2" ] && exit; done
"#;

/// Where the folders of this process are.
#[derive(Debug, Clone)]
pub struct Folders {
    /// On disk: logs, certificates, kubeconfigs.
    pub disk: PathBuf,
    /// In memory where the machine has `/dev/shm`, else on disk: data of etcd.
    pub memory: PathBuf,
}

struct Household {
    group: i32,
    folders: Folders,
    /// The write ends of the two pipes; never written, only held.
    _pipes: [ChildStdin; 2],
}

fn household() -> Result<&'static Household> {
    static HOUSEHOLD: OnceLock<Result<Household, String>> = OnceLock::new();
    HOUSEHOLD
        .get_or_init(|| Household::found().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow!("no supervision of child processes: {error}"))
}

/// The folders that vanish with this process.
///
/// # Errors
/// When they cannot be made.
pub fn folders() -> Result<&'static Folders> {
    Ok(&household()?.folders)
}

impl Household {
    fn found() -> Result<Self> {
        let mut anchor = detached("cat").spawn().context("cannot start cat, the anchor of the process group")?;
        let group = i32::try_from(anchor.id()).context("process id out of range")?;
        let disk = tempfile::Builder::new().prefix("drawbridge-tests-").tempdir()?.keep();
        let memory = match tempfile::Builder::new().prefix("drawbridge-tests-").tempdir_in("/dev/shm") {
            Ok(folder) => folder.keep(),
            Err(_) => disk.clone(),
        };
        let mut janitor = detached("sh")
            .args(["-c", JANITOR, "janitor", &group.to_string()])
            .args([&disk, &memory])
            .spawn()
            .context("cannot start sh, which cleans up after this process")?;
        let pipes = [anchor.stdin.take(), janitor.stdin.take()].map(|pipe| pipe.ok_or_else(|| anyhow!("no pipe")));
        let [anchor_pipe, janitor_pipe] = pipes;
        Ok(Self { group, folders: Folders { disk, memory }, _pipes: [anchor_pipe?, janitor_pipe?] })
    }
}

/// A command in a process group of its own (Ctrl-C in a terminal does not reach it), with nothing but a pipe.
fn detached(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).current_dir("/");
    command
}

/// A running or ended child process.
#[derive(Debug)]
pub struct Child {
    name: String,
    pid: Pid,
    log: PathBuf,
    /// Held while a signal is sent and while the process is reaped, so that no signal can reach a reused id.
    alive: Arc<Mutex<bool>>,
    ended: watch::Receiver<Option<ExitStatus>>,
    reaper: Option<JoinHandle<()>>,
}

/// Starts `command` under the promise of this module; its output is appended to the file `log`.
///
/// # Errors
/// When the program is missing or cannot be started; the message names it.
pub fn spawn(name: &str, mut command: Command, log: &Path) -> Result<Child> {
    let output = File::options().create(true).append(true).open(log).with_context(|| log.display().to_string())?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(household()?.group);
    let mut process =
        command.spawn().with_context(|| format!("cannot start {name} ({})", command.get_program().display()))?;
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).context("process id out of range")?;
    let alive = Arc::new(Mutex::new(true));
    let (report, ended) = watch::channel(None);
    let reaper = std::thread::Builder::new().name(format!("reap-{name}")).spawn({
        let alive = Arc::clone(&alive);
        move || {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(rustix::process::waitid(WaitId::Pid(pid), ended), Err(rustix::io::Errno::INTR)) {}
            let mut alive = alive.lock();
            *alive = false;
            let status = process.wait().unwrap_or_default();
            drop(alive);
            report.send_replace(Some(status));
        }
    })?;
    Ok(Child { name: name.to_owned(), pid, log: log.to_owned(), alive, ended, reaper: Some(reaper) })
}

impl Child {
    /// The process id.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The exit status, once the process has ended.
    #[must_use]
    pub fn ended(&self) -> Option<ExitStatus> {
        *self.ended.borrow()
    }

    /// Waits for the end of the process.
    pub async fn wait(&self) -> ExitStatus {
        let mut ended = self.ended.clone();
        let status = ended.wait_for(Option::is_some).await.map(|status| *status);
        status.ok().flatten().unwrap_or_default()
    }

    /// Sends `signal`; an ended process is left alone.
    pub fn signal(&self, signal: Signal) {
        if *self.alive.lock() {
            // The process exists (not reaped yet) and is ours, so that only a zombie can refuse.
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }

    /// SIGTERM, and after `patience` SIGKILL.
    ///
    /// # Errors
    /// When SIGKILL was needed: the message says what did not end.
    pub async fn stop(&self, patience: Duration) -> Result<ExitStatus> {
        self.signal(Signal::TERM);
        if let Ok(status) = tokio::time::timeout(patience, self.wait()).await {
            return Ok(status);
        }
        self.kill().await;
        Err(anyhow!("{} did not end within {patience:?} of SIGTERM\n{}", self.name, self.tail(20)))
    }

    /// SIGKILL, and waits until the process is gone.
    pub async fn kill(&self) -> ExitStatus {
        self.signal(Signal::KILL);
        self.wait().await
    }

    /// Everything the process (and its predecessors under this name) has written.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// The last `lines` of the log, for error messages.
    #[must_use]
    pub fn tail(&self, lines: usize) -> String {
        let log = self.log();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(reaper) = self.reaper.take() {
            // A reaper only waits and reports; after SIGKILL that takes milliseconds.
            let _ = reaper.join();
        }
    }
}
