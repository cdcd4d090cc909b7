//! The order of starting, and what "ready" means for each process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::layout::Layout;
use super::{ControlPlane, Options, Process, binder};
use crate::household::{self, Child};
use crate::objects::wait_for;
use crate::patience::{self, patience};

/// What an API server answers whose admission does not know everything yet.
const UNREADY: &str = "not yet ready to handle request";

/// Between two attempts to reach a process that is starting.
const PAUSE: Duration = Duration::from_millis(25);

/// Starts everything; ends when a Pod could be made and would run.
pub(super) async fn start(options: Options) -> Result<ControlPlane> {
    ensure!(options.nodes > 0, "a control plane needs at least one node");
    let began = Instant::now();
    crate::install_crypto();
    let layout = Layout::new(&options)?;
    if let Some(store) = &options.store {
        store.begin(layout.store())?;
    }
    let mut processes = BTreeMap::new();
    // The others wait for the API server by themselves, which waits for etcd.
    for process in [Process::Etcd, Process::ApiServer] {
        processes.insert(process, spawn(&layout, process, &options)?);
    }
    answering(&layout, Process::Etcd, &processes[&Process::Etcd]).await?;
    answering(&layout, Process::ApiServer, &processes[&Process::ApiServer]).await?;
    for process in [Process::ControllerManager, Process::Kwok] {
        processes.insert(process, spawn(&layout, process, &options)?);
    }
    let names: Vec<String> = (0..options.nodes).map(|number| format!("kwok-{number}")).collect();
    for name in &names {
        create_node(&layout, name).await?;
    }
    let client = layout.admin.client().await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let nodes: Api<Node> = Api::all(client);
    let ready = async {
        wait_for(&accounts, "default", |_: &ServiceAccount| true).await.context("kube-controller-manager")?;
        for name in &names {
            wait_for(&nodes, name, is_ready).await.context("kwok")?;
        }
        anyhow::Ok(())
    };
    if let Err(error) = ready.await {
        let logs = [Process::ControllerManager, Process::Kwok].map(|process| processes[&process].tail(10));
        return Err(error.context(logs.join("\n---\n")));
    }
    patience::started(began.elapsed());
    let binder = match options.scheduling {
        true => Some(binder::start(layout.scheduler.client().await?, names)),
        false => None,
    };
    Ok(ControlPlane {
        binder,
        processes: Mutex::new(processes),
        options: Mutex::new(options),
        names: AtomicU64::new(0),
        api_server_since: Arc::default(),
        layout,
    })
}

fn spawn(layout: &Layout, process: Process, options: &Options) -> Result<Child> {
    let extra = options.args.get(&process).map_or(&[][..], Vec::as_slice);
    household::spawn(process.program(), layout.command(process, extra)?, &layout.log(process))
}

/// Waits until `process` answers: the API server says that it is ready, the others accept connections.
pub(super) async fn answering(layout: &Layout, process: Process, child: &Child) -> Result<()> {
    let address = match process {
        Process::Etcd => layout.ports.etcd.address(),
        Process::ApiServer => layout.ports.api_server.address(),
        Process::ControllerManager => layout.ports.controller_manager.address(),
        Process::Kwok => layout.ports.kwok.address(),
    };
    let deadline = Instant::now() + patience();
    let client = layout.admin.client().await?;
    loop {
        if let Some(status) = child.ended() {
            bail!("{} ended while starting: {status}\n{}", process.program(), child.tail(20));
        }
        let answers = match process {
            Process::ApiServer => api_server_ready(&client).await,
            _ => accepts(address).await,
        };
        if answers {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("{} does not answer on {address} after {:?}\n{}", process.program(), patience(), child.tail(20));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn accepts(address: SocketAddr) -> bool {
    tokio::net::TcpStream::connect(address).await.is_ok()
}

async fn api_server_ready(client: &kube::Client) -> bool {
    let Ok(request) = http::Request::get("/readyz").body(Vec::new()) else { return false };
    tokio::time::timeout(Duration::from_secs(5), client.request_text(request)).await.is_ok_and(|answer| answer.is_ok())
}

/// Registers a node as its kubelet would; kwok does the rest.
async fn create_node(layout: &Layout, name: &str) -> Result<()> {
    let capacity = json!({ "cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti" });
    let node: Node = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": {
            "type": "kwok",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
        }},
        "status": { "capacity": capacity, "allocatable": capacity },
    }))?;
    let nodes: Api<Node> = Api::all(layout.admin.client().await?);
    let deadline = Instant::now() + patience();
    loop {
        match nodes.create(&PostParams::default(), &node).await {
            // An API server says that it is ready before its admission is, which it gives 10 s.
            Err(kube::Error::Api(status)) if status.message.contains(UNREADY) && Instant::now() < deadline => {
                tokio::time::sleep(PAUSE).await;
            }
            made => return made.map(|_| ()).with_context(|| format!("node {name}")),
        }
    }
}

/// Deletes the leases of the nodes: a new kwok would wait 40 s for those of its predecessor to run out.
pub(super) async fn release_nodes(layout: &Layout) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(layout.admin.client().await?, "kube-node-lease");
    let deleted = leases.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    deleted.context("kwok starts with the API server running")?;
    Ok(())
}

/// Ready, and no longer tainted as not ready (its Pods would be evicted, DaemonSets would leave it out).
fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"));
    let tainted = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).is_some_and(|taints| !taints.is_empty());
    ready && !tainted
}
