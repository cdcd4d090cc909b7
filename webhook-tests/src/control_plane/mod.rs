//! A real control plane of one's own: etcd, kube-apiserver, kube-controller-manager and kwok nodes.
//!
//! In: [`Options`]. Out: a [`ControlPlane`] that is ready to take Pods (API server ready, default ServiceAccount
//! there, nodes ready), with handles on each process, identities, the audit log, and namespaces for tests.
//! Promise: it uses only 127.0.0.1, ports from the kernel and temporary folders, any number can run side by side, and
//! nothing is left when it is dropped or when this process ends in whatever way (see [`crate::household`]).

mod backup;
mod binder;
mod defined;
mod layout;
mod stages;
mod start;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use drawbridge::domain::keys;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use kube::api::{Api, PostParams};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::json;
use tokio::sync::{OnceCell, Semaphore};
use tokio::task::JoinHandle;

use crate::access::{Access, Credential};
use crate::audit::Audit;
use crate::background;
use crate::household::{self, Child};
use crate::kept::{Kept, Lent};
use crate::kubectl::{self, Output};
use crate::namespace::TestNamespace;
use crate::objects::Objects;
use crate::patience::patience;
use crate::pki::Pair;
pub use backup::Backup;
use layout::Layout;

/// How many control planes of one process come up at the same time.
pub const AT_ONCE: usize = 3;

/// The processes of a control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Process {
    /// The store, on tmpfs, without fsync.
    Etcd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kwok, the kubelet of all nodes.
    Kwok,
}

impl Process {
    /// All, in the order of starting.
    pub const ALL: [Self; 4] = [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Kwok];

    /// The name of the program.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Kwok => "kwok",
        }
    }
}

/// How much the audit log keeps of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditLevel {
    /// Who, what, when, the answer's code, and audit annotations.
    #[default]
    Metadata,
    /// The bodies as well.
    RequestResponse,
}

/// What a control plane is made of; `Options::default()` is right for most tests.
#[derive(Debug, Clone)]
pub struct Options {
    /// Number of kwok nodes, `kwok-0` and so on; at least 1.
    pub nodes: usize,
    /// Detail of the audit log.
    pub audit: AuditLevel,
    /// Users whose requests are not logged at all, to keep the log of a long run small.
    pub audit_omit_users: Vec<String>,
    /// More arguments per process; they come last and so win.
    pub args: BTreeMap<Process, Vec<String>>,
    /// Names of containers that never end by themselves: a Job's Pod with one of them among its regular containers
    /// stays Running (as a kubelet would have it); the product's own by default.
    pub endless: Vec<String>,
    /// kwok configuration (`Stage` documents) in place of ours, `endless` included.
    pub kwok_stages: Option<String>,
    /// Whether Pods are bound to nodes.
    pub scheduling: bool,
    /// What etcd begins with; nothing unless given.
    pub store: Option<Arc<Backup>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 1,
            audit: AuditLevel::default(),
            audit_omit_users: Vec::new(),
            args: BTreeMap::new(),
            endless: keys::OUR_CONTAINERS
                .iter()
                .filter(|name| **name != keys::CONTAINER_PROXY_INIT)
                .map(|name| (*name).to_owned())
                .collect(),
            kwok_stages: None,
            scheduling: true,
            store: None,
        }
    }
}

impl Options {
    /// Adds arguments for the API server, e.g. `--enable-admission-plugins=AlwaysPullImages`.
    #[must_use]
    pub fn api_server_args(mut self, args: &[&str]) -> Self {
        self.args.entry(Process::ApiServer).or_default().extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }
}

/// A running control plane; dropping it ends its processes and removes its folders.
pub struct ControlPlane {
    binder: Option<JoinHandle<()>>,
    processes: Mutex<BTreeMap<Process, Child>>,
    options: Mutex<Options>,
    names: AtomicU64,
    /// Length of the audit log when the running API server was started.
    api_server_since: Arc<AtomicU64>,
    layout: Layout,
}

impl ControlPlane {
    /// Starts a control plane and waits until it is ready; waits for its turn before, since more than [`AT_ONCE`] that come up
    /// at once only make each other late.
    ///
    /// # Errors
    /// When the programs are not built or one of them fails; the message has the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        static COMING_UP: Semaphore = Semaphore::const_new(AT_ONCE);
        let _turn = COMING_UP.acquire().await.context("control planes are started for ever")?;
        // A binder and its connections must not depend on the runtime of the test that happened to call.
        background::run(start::start(options)).await
    }

    /// The control plane that all tests of this process share, to its end; the first caller starts it, with default options.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(Options::default())).await
    }

    /// A control plane with default options, shared by all tests of this process that use it at about the same time.
    ///
    /// # Errors
    /// As [`ControlPlane::start`].
    pub async fn lent() -> Result<Lent<Self>> {
        static KEPT: Kept<ControlPlane> = Kept::new();
        KEPT.lend(async || Self::start(Options::default()).await).await
    }

    /// Whether this is what etcd began with, and nobody has asked before: who asks will change it.
    pub(crate) fn still_holds(&self, store: &Arc<Backup>) -> bool {
        self.options.lock().store.take_if(|own| Arc::ptr_eq(own, store)).is_some()
    }

    /// `https://127.0.0.1:<port>` of the API server.
    #[must_use]
    pub fn server(&self) -> String {
        self.layout.server()
    }

    /// The authority that signs serving and client certificates here, PEM.
    #[must_use]
    pub fn authority(&self) -> String {
        self.layout.authority.certificate()
    }

    /// A serving certificate for a host name, signed by [`ControlPlane::authority`].
    ///
    /// # Errors
    /// When the name is not valid.
    pub fn serving_certificate(&self, host: &str) -> Result<Pair> {
        self.layout.authority.server(host, &[host])
    }

    /// User `admin` of group `system:masters`.
    #[must_use]
    pub fn admin(&self) -> &Access {
        &self.layout.admin
    }

    /// A new client of user `admin`, for the runtime that calls.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<kube::Client> {
        self.admin().client().await
    }

    /// Reading and writing as `admin`, in namespace `default` unless an object says otherwise.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn objects(&self) -> Result<Objects> {
        Ok(Objects::new(self.client().await?, "default"))
    }

    /// The identity `name` with at most two `groups` (besides `system:authenticated`), by client certificate.
    ///
    /// # Errors
    /// When the certificate cannot be made or written.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<Access> {
        let pair = self.layout.authority.client(name, groups)?;
        self.access(name, &Credential::Certificate(&pair))
    }

    /// The identity of an existing ServiceAccount, by a token of one hour from the TokenRequest API.
    ///
    /// # Errors
    /// When the ServiceAccount does not exist.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let answer = accounts.create_token_request(name, &PostParams::default(), &request).await?;
        let token = answer.status.context("a TokenRequest without status")?.token;
        self.access(&format!("system:serviceaccount:{namespace}:{name}"), &Credential::Token(&token))
    }

    fn access(&self, user: &str, credential: &Credential<'_>) -> Result<Access> {
        // A folder each: the processes of one user are told apart by their tokens.
        let folder = self.layout.file(&format!("access-{}", self.names.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        Access::write(&folder, &self.server(), &self.authority(), user, credential)
    }

    /// The audit log.
    #[must_use]
    pub fn audit(&self) -> Audit {
        Audit::new(self.layout.audit_log(), Arc::clone(&self.api_server_since))
    }

    /// A new namespace `<prefix>-<number>` whose default ServiceAccount exists.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn namespace(&self, prefix: &str) -> Result<TestNamespace> {
        self.namespace_with(prefix, &[]).await
    }

    /// The same, with labels.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn namespace_with(&self, prefix: &str, labels: &[(&str, &str)]) -> Result<TestNamespace> {
        let name = format!("{prefix}-{}", self.names.fetch_add(1, Ordering::Relaxed));
        TestNamespace::create(self.client().await?, &name, labels).await
    }

    /// Makes `https://<name>.<namespace>.svc:<port>` reach `127.0.0.1:<port>` for webhook clients: a Service of type
    /// ExternalName. Put the same `port` into `clientConfig.service.port`; the API server then dials localhost and
    /// checks the certificate against `<name>.<namespace>.svc`.
    ///
    /// # Errors
    /// When the Service cannot be applied.
    pub async fn publish_service(&self, namespace: &str, name: &str, port: u16) -> Result<Service> {
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": name, "namespace": namespace },
            "spec": { "type": "ExternalName", "externalName": "localhost", "ports": [{ "port": port }] },
        });
        let stored = self.objects().await?.apply(&service.to_string()).await?;
        let stored = stored.into_iter().next().context("one document, one object")?;
        Ok(stored.try_parse()?)
    }

    /// Runs kubectl (of the API server's version) as `access` and waits for its end; `input` is its standard input.
    ///
    /// # Errors
    /// When it cannot be started; an exit status other than 0 is no error here.
    pub async fn kubectl(&self, access: &Access, args: &[&str], input: &str) -> Result<Output> {
        kubectl::run(access, args, input).await
    }

    /// The process id, while the process runs.
    #[must_use]
    pub fn pid(&self, process: Process) -> Option<i32> {
        self.processes.lock().get(&process).filter(|child| child.ended().is_none()).map(Child::id)
    }

    /// Everything `process` has written since the start, restarts included.
    #[must_use]
    pub fn log(&self, process: Process) -> String {
        std::fs::read(self.layout.log(process))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// Ends a process with SIGTERM and waits until it is gone; does nothing when it is not running.
    ///
    /// # Errors
    /// When it had to be killed.
    pub async fn stop(&self, process: Process) -> Result<()> {
        let child = self.processes.lock().remove(&process);
        match child {
            Some(child) => child.stop(patience()).await.map(drop),
            None => Ok(()),
        }
    }

    /// Ends a process with SIGKILL and waits until it is gone; does nothing when it is not running.
    pub async fn kill(&self, process: Process) {
        let child = self.processes.lock().remove(&process);
        if let Some(child) = child {
            child.kill().await;
        }
    }

    /// Starts a process that was stopped or killed, and waits until it answers.
    ///
    /// # Errors
    /// When it ends again or does not answer in time; the message has the end of its log.
    pub async fn start_again(&self, process: Process) -> Result<()> {
        let extra = self.options.lock().args.get(&process).cloned().unwrap_or_default();
        if process == Process::Kwok {
            start::release_nodes(&self.layout).await?;
        }
        if process == Process::ApiServer {
            self.api_server_since.store(std::fs::metadata(self.layout.audit_log())?.len(), Ordering::Release);
        }
        let child =
            household::spawn(process.program(), self.layout.command(process, &extra)?, &self.layout.log(process))?;
        start::answering(&self.layout, process, &child).await?;
        self.processes.lock().insert(process, child);
        Ok(())
    }

    /// [`ControlPlane::stop`], then [`ControlPlane::start_again`].
    ///
    /// # Errors
    /// As those.
    pub async fn restart(&self, process: Process) -> Result<()> {
        self.stop(process).await?;
        self.start_again(process).await
    }

    /// Restarts a process with other extra arguments than before, e.g. the API server with
    /// `--enable-admission-plugins=AlwaysPullImages`.
    ///
    /// # Errors
    /// As [`ControlPlane::restart`].
    pub async fn restart_with(&self, process: Process, args: &[&str]) -> Result<()> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.options.lock().args.insert(process, args);
        self.restart(process).await
    }

    /// Freezes a process (SIGSTOP): its connections stay open and nothing answers.
    pub fn pause(&self, process: Process) {
        self.signal(process, Signal::STOP);
    }

    /// Lets a frozen process go on (SIGCONT).
    pub fn resume(&self, process: Process) {
        self.signal(process, Signal::CONT);
    }

    /// Makes etcd refuse whatever needs room (as one does that has used up its quota: what is stored can be read and
    /// watched, nothing can be created or changed), or take it again.
    ///
    /// # Errors
    /// When etcd does not answer, or answers no.
    pub async fn set_storage_full(&self, full: bool) -> Result<()> {
        let action = if full { "ACTIVATE" } else { "DEACTIVATE" };
        let alarm = serde_json::json!({ "action": action, "memberID": "0", "alarm": "NOSPACE" });
        let etcd = self.layout.ports.etcd.address();
        let (status, text) = crate::dial::post_plain(etcd, "/v3/maintenance/alarm", alarm.to_string().into()).await?;
        anyhow::ensure!(status == 200, "etcd answers {status}: {text}");
        Ok(())
    }

    fn signal(&self, process: Process, signal: Signal) {
        if let Some(child) = self.processes.lock().get(&process) {
            child.signal(signal);
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if let Some(binder) = self.binder.take() {
            binder.abort();
        }
        // All at once, so that none spends time on missing another.
        let processes = std::mem::take(self.processes.get_mut());
        processes.values().for_each(|child| child.signal(Signal::KILL));
    }
}
