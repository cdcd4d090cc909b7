//! Real control planes for tests and the demo.
//!
//! `make controlplane` builds the programs once; then a test is
//!
//! ```no_run
//! use webhook_tests::{ControlPlane, wait_until};
//! use k8s_openapi::api::core::v1::Pod;
//! use kube::runtime::watcher;
//! use serde_json::json;
//!
//! # async fn example() -> anyhow::Result<()> {
//! // One control plane for the whole test binary; `ControlPlane::start(Options { .. })` for one of your own.
//! let cp = ControlPlane::shared().await?;
//! // A namespace per test; it reads and writes as admin.
//! let ns = cp.namespace_with("weather", &[("kagenti-enabled", "true")]).await?;
//! ns.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}").await?;
//!
//! // What was asked of the API server, and by whom?
//! let before = cp.audit().mark()?;
//! let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "generateName": "agent-" },
//!     "spec": { "containers": [{ "name": "app", "image": "example.com/app:1" }] } });
//! ns.accepts(&pod).await?;
//! let asked = cp.audit().settled(before).await?.by("system:serviceaccount:kagenti-system:webhook");
//! assert!(asked.writes().is_empty());
//!
//! // Wait for states on watches, with a deadline; the error shows the last state.
//! let running = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running");
//! wait_until(&ns.api::<Pod>(), watcher::Config::default(), |pods| pods.len() == 1 && pods.values().all(running)).await?;
//!
//! // Somebody else.
//! let alice = cp.user("alice", &["developers"])?;
//! assert!(kube::Api::<Pod>::namespaced(alice.client().await?, ns.name()).list(&Default::default()).await.is_err());
//!
//! // A webhook on 127.0.0.1:8443 whose certificate says `hooks.kagenti-system.svc`.
//! cp.publish_service("kagenti-system", "hooks", 8443).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Instances of the product, behind what plays kube-proxy, with a neighbour's webhook in front:
//!
//! ```no_run
//! use serde_json::json;
//! use webhook_tests::patience::patience;
//! use webhook_tests::{Balancer, BalancerOptions, ControlPlane, Drawbridge, Hook, Process, hook};
//!
//! # async fn example() -> anyhow::Result<()> {
//! let cp = ControlPlane::shared().await?;
//! let ns = cp.namespace("rolling").await?;
//! let access = cp.service_account(ns.name(), "default").await?;
//! let replica = Drawbridge::launch(&access, &[("RUST_LOG", "info")], |ports| {
//!     vec!["serve".into(), format!("--some-port={}", ports.webhook.number())]
//! })?;
//! replica.ready().await?;
//! let balancer = Balancer::start(BalancerOptions::default()).await?;
//! balancer.add(replica.webhook(), replica.health());
//! balancer.wait_for_endpoints(1).await?;
//! cp.publish_service(ns.name(), "drawbridge", balancer.address().port()).await?;
//!
//! let mirror = Hook::start(cp, ns.name(), "mirror", |request| {
//!     let image = request["object"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
//!     let image = image.replace("docker.io", "mirror.example.com");
//!     hook::patch(&json!([{ "op": "replace", "path": "/spec/containers/0/image", "value": image }]))
//! });
//! mirror.await?.register_for_pods(&ns, "a-name-before-ours", hook::Kind::MutatingAgain).await?;
//!
//! replica.stop(patience()).await?; // or terminate, kill, pause, resume, start_again
//! println!("{}", replica.log());
//! // On a control plane of one's own, also:
//! cp.restart_with(Process::ApiServer, &["--enable-admission-plugins=AlwaysPullImages"]).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Clients belong to the runtime of the test that made them: share [`Access`] and [`ControlPlane`], not clients. What a suite shares
//! is in a [`Kept`], so that it ends when the suite has ended.
//! Nothing is left behind, however the process ends: see [`household`].

pub mod a2a;
pub mod access;
pub mod audit;
mod background;
pub mod balancer;
pub mod container;
pub mod control_plane;
pub mod corpus;
pub mod dial;
pub mod drawbridge;
pub mod endurance;
pub mod envoy;
pub mod essence;
pub mod git_server;
pub mod hook;
pub mod household;
pub mod https;
pub mod installation;
pub mod kept;
pub mod kubectl;
pub mod kubelet;
pub mod metrics;
pub mod namespace;
pub mod network;
pub mod objects;
pub mod otel;
pub mod patience;
mod people;
pub mod pki;
pub mod port;
pub mod programs;
pub mod sandbox;
pub mod served;
pub mod spire;
pub mod svid;
pub mod tekton;
pub mod trial;
pub mod wire;

pub use access::Access;
pub use audit::{Audit, Mark, Request, Requests};
pub use balancer::{Balancer, BalancerOptions};
pub use control_plane::{AuditLevel, Backup, ControlPlane, Options, Process};
pub use drawbridge::Drawbridge;
pub use hook::Hook;
pub use installation::{Installation, Installing};
pub use kept::{Kept, Lent};
pub use kubelet::Kubelet;
pub use metrics::Metrics;
pub use namespace::TestNamespace;
pub use objects::{Answer, Objects, wait_for, wait_gone, wait_until};
pub use port::Port;
pub use served::wait_served;
pub use tekton::Tekton;

/// Installs the process's TLS provider; an error would only say that one is installed already, which is all it takes.
pub fn install_crypto() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
