//! One control plane on disk: ports, certificates, files, and the command lines of its processes.
//!
//! Out of an [`Options`] value and an authority comes everything that the programs read; nothing is started here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::json;
use tempfile::TempDir;

use super::{AuditLevel, Options, Process, stages};
use crate::access::{Access, Credential};
use crate::pki::{self, Authority};
use crate::port::Port;
use crate::{household, programs};

/// Hosts that the API server's certificate covers.
const API_SERVER_NAMES: &[&str] = &[
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// What kube-controller-manager leaves out: it needs a cloud, looks after kinds that no test makes, or, as the check of types in
/// policies, costs as much as all the rest and has a control plane of its own (suite `policies`).
const UNUSED_CONTROLLERS: &[&str] = &[
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-cleaner-controller",
    "certificatesigningrequest-signing-controller",
    "cloud-node-lifecycle-controller",
    "endpointslice-mirroring-controller",
    "horizontal-pod-autoscaler-controller",
    "node-ipam-controller",
    "node-route-controller",
    "persistentvolume-attach-detach-controller",
    "persistentvolume-expander-controller",
    "resourceclaim-controller",
    "service-lb-controller",
    "storage-version-migrator-controller",
    "storageversion-garbage-collector-controller",
    "ttl-controller",
    "validatingadmissionpolicy-status-controller",
    "volumeattributesclass-protection-controller",
];

/// The ports; held as long as the control plane exists, so that restarts find them free.
pub(super) struct Ports {
    pub(super) etcd: Port,
    pub(super) etcd_peer: Port,
    pub(super) api_server: Port,
    pub(super) controller_manager: Port,
    pub(super) kwok: Port,
}

/// Files and ports of one control plane; the folders vanish with it.
pub(super) struct Layout {
    pub(super) ports: Ports,
    pub(super) authority: Authority,
    pub(super) admin: Access,
    pub(super) scheduler: Access,
    folder: TempDir,
    memory: TempDir,
}

impl Layout {
    pub(super) fn new(options: &Options) -> Result<Self> {
        let folders = household::folders()?;
        let folder = tempfile::Builder::new().prefix("control-plane-").tempdir_in(&folders.disk)?;
        let memory = tempfile::Builder::new().prefix("etcd-").tempdir_in(&folders.memory)?;
        let ports = Ports {
            etcd: Port::reserve()?,
            etcd_peer: Port::reserve()?,
            api_server: Port::reserve()?,
            controller_manager: Port::reserve()?,
            kwok: Port::reserve()?,
        };
        let authority = Authority::new("drawbridge-tests")?;
        let server = format!("https://127.0.0.1:{}", ports.api_server.number());
        let access = |user: &str, groups: &[&str]| {
            let pair = authority.client(user, groups)?;
            Access::write(folder.path(), &server, &authority.certificate(), user, &Credential::Certificate(&pair))
        };
        let admin = access("admin", &["system:masters"])?;
        let scheduler = access("system:kube-scheduler", &[])?;
        access("system:kube-controller-manager", &[])?;
        access("kwok", &["system:masters"])?;
        let layout = Self { ports, authority, admin, scheduler, folder, memory };
        layout.write_certificates()?;
        layout.write_configuration(options)?;
        Ok(layout)
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.api_server.number())
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.file("audit.log")
    }

    pub(super) fn log(&self, process: Process) -> PathBuf {
        self.file(&format!("{}.log", process.program()))
    }

    /// Where etcd keeps everything.
    pub(super) fn store(&self) -> &Path {
        self.memory.path()
    }

    fn write(&self, name: &str, content: &str) -> Result<()> {
        std::fs::write(self.file(name), content).with_context(|| self.file(name).display().to_string())
    }

    fn write_certificates(&self) -> Result<()> {
        let pairs = [
            ("ca", self.authority.pair()),
            ("apiserver", self.authority.server("kube-apiserver", API_SERVER_NAMES)?),
            ("front-proxy", self.authority.client("front-proxy-client", &[])?),
        ];
        for (name, pair) in pairs {
            self.write(&format!("{name}.crt"), &pair.certificate)?;
            self.write(&format!("{name}.key"), &pair.key)?;
        }
        let (public, private) = pki::signing_key()?;
        self.write("service-accounts.pub", &public)?;
        self.write("service-accounts.key", &private)
    }

    fn write_configuration(&self, options: &Options) -> Result<()> {
        let level = match options.audit {
            AuditLevel::Metadata => "Metadata",
            AuditLevel::RequestResponse => "RequestResponse",
        };
        let mut rules = vec![json!({ "level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"] })];
        if !options.audit_omit_users.is_empty() {
            rules.push(json!({ "level": "None", "users": options.audit_omit_users }));
        }
        // What is in a Secret is nobody's to log, at any level.
        rules.push(json!({ "level": "Metadata", "resources": [{ "group": "", "resources": ["secrets"] }] }));
        rules.push(json!({ "level": level, "omitManagedFields": true }));
        let policy = json!({ "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules });
        self.write("audit-policy.yaml", &policy.to_string())?;
        self.write("audit.log", "")?;
        let stages = options.kwok_stages.clone().unwrap_or_else(|| stages::configuration(&options.endless));
        self.write("kwok.yaml", &stages)
    }

    /// The command that starts `process`; `extra` arguments come last, in place of ours of the same name.
    pub(super) fn command(&self, process: Process, extra: &[String]) -> Result<Command> {
        let mut command = Command::new(programs::control_plane(process.program())?);
        command.current_dir(self.folder.path()).env("HOME", self.folder.path()).env("KWOK_WORKDIR", self.folder.path());
        // Memory for time: their garbage is collected a quarter as often, unless much has piled up.
        command.env("GOGC", "400").env("GOMEMLIMIT", "1536MiB");
        let ours = match process {
            Process::Etcd => self.etcd(),
            Process::ApiServer => self.api_server(),
            Process::ControllerManager => self.controller_manager(),
            Process::Kwok => self.kwok(),
        };
        // A list that is given twice would be added up.
        let name = |arg: &str| arg.split('=').next().map(str::to_owned);
        command.args(ours.iter().filter(|one| extra.iter().all(|other| name(other) != name(one))));
        command.args(extra);
        Ok(command)
    }

    fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    fn etcd(&self) -> Vec<String> {
        let client = format!("http://{}", self.ports.etcd.address());
        let peer = format!("http://{}", self.ports.etcd_peer.address());
        vec![
            "--name=test".into(),
            format!("--data-dir={}", self.memory.path().display()),
            "--unsafe-no-fsync".into(),
            "--log-level=warn".into(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=test={peer}"),
        ]
    }

    fn api_server(&self) -> Vec<String> {
        let server = self.server();
        vec![
            format!("--etcd-servers=http://{}", self.ports.etcd.address()),
            "--bind-address=127.0.0.1".into(),
            "--advertise-address=127.0.0.1".into(),
            "--endpoint-reconciler-type=none".into(),
            format!("--secure-port={}", self.ports.api_server.number()),
            format!("--tls-cert-file={}", self.path("apiserver.crt")),
            format!("--tls-private-key-file={}", self.path("apiserver.key")),
            format!("--client-ca-file={}", self.path("ca.crt")),
            "--authorization-mode=Node,RBAC".into(),
            "--allow-privileged=true".into(),
            "--service-cluster-ip-range=10.96.0.0/16".into(),
            format!("--service-account-issuer={server}"),
            format!("--service-account-jwks-uri={server}/openid/v1/jwks"),
            format!("--service-account-key-file={}", self.path("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", self.path("service-accounts.key")),
            format!("--api-audiences=https://kubernetes.default.svc,{server}"),
            format!("--requestheader-client-ca-file={}", self.path("ca.crt")),
            "--requestheader-allowed-names=front-proxy-client".into(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
            "--requestheader-group-headers=X-Remote-Group".into(),
            "--requestheader-username-headers=X-Remote-User".into(),
            format!("--proxy-client-cert-file={}", self.path("front-proxy.crt")),
            format!("--proxy-client-key-file={}", self.path("front-proxy.key")),
            // SIGTERM ends it within seconds; without, it waits a minute for open watches.
            "--shutdown-send-retry-after=true".into(),
            "--profiling=false".into(),
            format!("--audit-policy-file={}", self.path("audit-policy.yaml")),
            format!("--audit-log-path={}", self.audit_log().display()),
            "--audit-log-mode=blocking".into(),
            // Never rotated, in MiB: marks are offsets in one file.
            "--audit-log-maxsize=1000000".into(),
        ]
    }

    fn controller_manager(&self) -> Vec<String> {
        let kubeconfig = self.path("system_kube-controller-manager.kubeconfig");
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.controller_manager.number()),
            "--leader-elect=false".into(),
            // The default of 20 requests a second makes a cluster's first seconds three times as long.
            "--kube-api-qps=500".into(),
            "--kube-api-burst=1000".into(),
            // No node of ours fails: one that is not heard of for the usual 50 s waits for the machine, as when an API server restarts on a busy one,
            // and its Pods would become unready.
            "--node-monitor-grace-period=1h".into(),
            "--use-service-account-credentials=true".into(),
            format!("--service-account-private-key-file={}", self.path("service-accounts.key")),
            format!("--root-ca-file={}", self.path("ca.crt")),
            format!("--cluster-signing-cert-file={}", self.path("ca.crt")),
            format!("--cluster-signing-key-file={}", self.path("ca.key")),
            "--allocate-node-cidrs=false".into(),
            format!("--controllers=*,-{}", UNUSED_CONTROLLERS.join(",-")),
            "--profiling=false".into(),
        ]
    }

    fn kwok(&self) -> Vec<String> {
        vec![
            format!("--config={}", self.path("kwok.yaml")),
            format!("--kubeconfig={}", self.path("kwok.kubeconfig")),
            "--manage-all-nodes=true".into(),
            "--cidr=10.244.0.0/16".into(),
            "--node-ip=127.0.0.1".into(),
            format!("--server-address={}", self.ports.kwok.address()),
            "--node-lease-duration-seconds=40".into(),
        ]
    }
}
