//! `drawbridge graph --live`: what an edge leads to is asked, and what is broken is explained.
//!
//! In: the graph of a cluster. Out: for each edge whether it works, and why it does not. How: through the API server's proxy of Services, so it works
//! from wherever kubectl does, and needs `get` and `create` on `services/proxy` (which ClusterRole `edit` has) and nothing else. Promises: what several
//! edges lead to is asked once; [`PATIENCE`] for each conversation, [`AT_ONCE`] of them at a time, [`MOST`] bytes of each answer; nothing that was
//! answered is printed but names of models and tools; no credential is sent.

mod judge;
mod tools;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{StreamExt as _, iter};
use http::Method;
use tokio::time::timeout;

pub(super) use judge::{Outcome, Tried};

use super::wiring::{Graph, Id, State};
use crate::cli::cluster::Cluster;
use crate::cli::cluster::through::Question;
use crate::workloads::kaos::names::Role;
use judge::{Models, Reply, Target};

/// Longest wait for everything that one object is asked.
const PATIENCE: Duration = Duration::from_secs(10);
/// Objects that are asked at a time.
const AT_ONCE: usize = 8;
/// Bytes of an answer.
const MOST: usize = 1 << 20;

/// What an object said.
enum Found {
    /// Every edge to it ends the same way.
    All(Tried),
    /// A ModelAPI listed its models.
    Models(Models),
}

/// Tries every edge of the graph.
pub(super) async fn tried(graph: &mut Graph, cluster: &Cluster) {
    // Of one that may not be seen nobody knows the port.
    let is_there = |state: State| !matches!(state, State::Missing | State::Unseen);
    let leads = |id: &Id| graph.nodes.get(id).is_some_and(|node| is_there(node.state) && node.exposed);
    let mut targets: Vec<&Id> = graph.edges.iter().map(|edge| &edge.to).filter(|id| leads(id)).collect();
    targets.sort();
    targets.dedup();
    let ask = |id: &Id| {
        let (id, port) = (id.clone(), graph.nodes.get(id).map_or(0, |node| node.port));
        async move {
            let found = ask(cluster, &id, port).await;
            (id, found)
        }
    };
    let found: BTreeMap<Id, Found> = iter(targets.into_iter().map(ask)).buffer_unordered(AT_ONCE).collect().await;
    for edge in &mut graph.edges {
        let takes = graph.nodes.get(&edge.to).and_then(|node| node.offers.as_deref()).unwrap_or_default();
        edge.tried = found.get(&edge.to).map(|found| match found {
            Found::All(tried) => tried.clone(),
            Found::Models(models) => models.has(&edge.label, takes),
        });
    }
    let hidden = graph.edges.iter().filter_map(|edge| edge.tried.as_ref());
    if hidden.into_iter().any(|tried| tried.outcome == Outcome::Unknown) {
        cluster.has_not_seen_all();
    }
}

async fn ask(cluster: &Cluster, id: &Id, port: u16) -> Found {
    let role = match id.kind {
        "Agent" => Role::Agent,
        "ModelAPI" => Role::ModelApi,
        _ => Role::McpServer,
    };
    let target = Target { service: role.object(&id.name), port };
    let door = Door { cluster, namespace: &id.namespace, target: &target, heard: Cell::new(false) };
    let conversation = async {
        match role {
            Role::Agent => {
                let card = door.get(judge::CARD).await;
                let health = if judge::is_absent(&card) { Some(door.get(judge::HEALTH).await) } else { None };
                Found::All(judge::agent(&target, &card, health.as_ref()))
            }
            Role::McpServer => Found::All(judge::tools(&target, tools::list(&door).await)),
            Role::ModelApi => match judge::models(&target, &door.get(judge::MODELS).await) {
                Ok(models) => Found::Models(models),
                Err(tried) => Found::All(tried),
            },
        }
    };
    timeout(PATIENCE, conversation)
        .await
        .unwrap_or_else(|_| Found::All(judge::late(&target, PATIENCE, door.heard.get())))
}

/// The way to one Service.
struct Door<'d> {
    cluster: &'d Cluster,
    namespace: &'d str,
    target: &'d Target,
    /// An answer has begun.
    heard: Cell<bool>,
}

impl Door<'_> {
    async fn get(&self, path: &'static str) -> Reply {
        self.send(&Method::GET, path, &[("accept", "application/json")], "").await
    }

    async fn send(&self, method: &Method, path: &'static str, headers: &[(&str, &str)], body: &str) -> Reply {
        let Target { service, port } = self.target;
        let question = Question { service: (self.namespace, service, *port), method, path, headers, body };
        let enough = |headers: &http::HeaderMap, body: &[u8]| {
            self.heard.set(true);
            tools::is_enough(headers, body)
        };
        let said = self.cluster.through(question, MOST, enough).await;
        Reply { path, verb: if *method == Method::GET { "get" } else { "create" }, said }
    }
}
