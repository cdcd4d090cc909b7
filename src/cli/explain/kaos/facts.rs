//! What a cluster has about one object of KAOS, read by paths and lists.

use anyhow::bail;
use serde_json::Value;

use crate::cli::Unseen;
use crate::cli::cluster::{Answer, Cluster};
use crate::cli::offline::world::{self, World};
use crate::cli::render::platform::RUNTIMES;
use crate::cli::scope;
use crate::cli::survey::{self, text};
use crate::domain::keys;
use crate::store::Kind;
use crate::workloads::kaos::names::Role;
use crate::workloads::kaos::registry::KEY;
use crate::workloads::kaos::settings::Settings;

/// An object that is named, and the object where there is one.
pub(super) type Named = (String, Option<Value>);

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) kind: Option<Kind>,
    pub(super) object: Value,
    pub(super) settings: Settings,
    /// Namespace of the operator.
    pub(super) operator: String,
    pub(super) model_api: Option<Named>,
    pub(super) mcp_servers: Vec<Named>,
    pub(super) peers: Vec<Named>,
    pub(super) deployment: Option<Value>,
    pub(super) service: Option<Value>,
    /// The HTTPRoute; the outer `None`: routes are off, or not served.
    pub(super) route: Option<Option<Value>>,
    /// Whether the API server serves HTTPRoutes.
    pub(super) routes_served: bool,
    /// The namespace of the runtimes' registry, and its text; the outer `None`: there is no such ConfigMap, the inner one: it has no such key.
    pub(super) registry: (String, Option<Option<String>>),
    /// AgentRuntimes of the namespace.
    pub(super) agent_runtimes: Vec<Value>,
    /// Only what manifests say is known: nothing was asked of a cluster.
    pub(super) offline: bool,
    /// The operator watches the namespace.
    pub(super) watched: bool,
    pub(super) notes: Vec<String>,
}

/// The role of a kind.
pub(super) fn role(kind: Kind) -> Role {
    match kind {
        Kind::KaosAgent => Role::Agent,
        Kind::ModelApi => Role::ModelApi,
        _ => Role::McpServer,
    }
}

/// Reads everything.
///
/// # Errors
/// When the cluster does not answer, or there is no such object.
pub(super) async fn read(
    cluster: &Cluster,
    (kind, namespace, name): (Kind, &str, &str),
    operator: &str,
) -> anyhow::Result<Facts> {
    let object = match cluster.get(&format!("{}/{name}", kind.path(namespace))).await? {
        Answer::Object(object) => object,
        Answer::Absent => bail!(
            "{} {namespace}/{name} does not exist; name the namespace with -n, or see drawbridge graph -A",
            kind.label()
        ),
        Answer::Refused(code, message) => {
            return Err(
                Unseen(format!("{} {namespace}/{name} cannot be read ({code}: {message})", kind.label())).into()
            );
        }
    };
    let mut world = World::new(&world::Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 33),
        spire_driver: false,
        operator_namespace: operator.to_owned(),
    })?;
    let mut facts = Facts { kind: Some(kind), operator: operator.to_owned(), ..Facts::default() };
    survey::of_the_cluster(cluster, &mut world, &mut facts.notes).await?;
    facts.settings = world.platform()?.kaos().clone();
    facts.watched = scope::read(cluster, operator).await?.watches(namespace);
    let notes = &mut facts.notes;
    if kind == Kind::KaosAgent {
        let api = text(&object, "/spec/modelAPI").to_owned();
        if !api.is_empty() {
            let there = found(cluster, &format!("{}/{api}", Kind::ModelApi.path(namespace)), notes).await?;
            facts.model_api = Some((api, there));
        }
        facts.mcp_servers =
            named(cluster, (Kind::McpServer, namespace), object.pointer("/spec/mcpServers"), notes).await?;
        facts.peers =
            named(cluster, (Kind::KaosAgent, namespace), object.pointer("/spec/agentNetwork/access"), notes).await?;
    }
    let made = role(kind).object(name);
    facts.deployment = found(cluster, &format!("{}/{made}", Kind::Deployment.path(namespace)), notes).await?;
    facts.service = found(cluster, &format!("{}/{made}", Kind::Service.path(namespace)), notes).await?;
    if facts.settings.gateway.enabled {
        let group = format!("/apis/{}/{}", Kind::HttpRoute.group(), Kind::HttpRoute.version());
        facts.routes_served = matches!(cluster.get(&group).await?, Answer::Object(_));
        let path = format!("{}/{}", Kind::HttpRoute.path(namespace), role(kind).route(name));
        facts.route = Some(if facts.routes_served { found(cluster, &path, notes).await? } else { None });
    }
    if kind == Kind::McpServer {
        let place = facts.settings.registry_namespace.clone().unwrap_or_else(|| operator.to_owned());
        let path = format!("{}/{}", Kind::ConfigMap.path(&place), keys::CONFIG_MAP_MCP_RUNTIMES);
        let map = found(cluster, &path, notes).await?;
        let text = map.map(|map| map["data"][KEY].as_str().map(str::to_owned));
        facts.registry = (place, text);
    }
    facts.agent_runtimes = cluster.list(&survey::agent_runtimes(namespace).path(), notes).await?;
    facts.object = object;
    Ok(facts)
}

/// The same of an object among manifests: what it names is looked for among them, and so are the AgentRuntimes of its namespace.
pub(super) fn of_manifests(
    (kind, object): (Kind, &Value),
    objects: &[Value],
    (settings, operator): (&Settings, &str),
) -> Facts {
    let group = |one: &Value| text(one, "/apiVersion").split('/').next().unwrap_or_default().to_owned();
    let namespace = text(object, "/metadata/namespace");
    let is_beside = |one: &Value, kind: Kind| {
        group(one) == kind.group()
            && text(one, "/kind") == kind.as_str()
            && text(one, "/metadata/namespace") == namespace
    };
    let find = |kind: Kind, name: &str| {
        let there = objects.iter().find(|one| is_beside(one, kind) && text(one, "/metadata/name") == name);
        (name.to_owned(), there.cloned())
    };
    let named = |kind: Kind, pointer: &str| {
        let mut all: Vec<Named> = Vec::new();
        for name in object.pointer(pointer).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !name.is_empty() && all.iter().all(|(known, _)| known != name) {
                all.push(find(kind, name));
            }
        }
        all
    };
    let place = settings.registry_namespace.clone().unwrap_or_else(|| operator.to_owned());
    // One of that name elsewhere is nobody's registry; of two the later one is applied last.
    let is_registry = |one: &&Value| {
        text(one, "/apiVersion") == Kind::ConfigMap.api_version()
            && text(one, "/kind") == Kind::ConfigMap.as_str()
            && text(one, "/metadata/name") == keys::CONFIG_MAP_MCP_RUNTIMES
            && text(one, "/metadata/namespace") == place
    };
    let given = objects.iter().rev().find(is_registry);
    let registry = given.map_or_else(|| Some(RUNTIMES.to_owned()), |map| map["data"][KEY].as_str().map(str::to_owned));
    let api = Some(text(object, "/spec/modelAPI")).filter(|api| kind == Kind::KaosAgent && !api.is_empty());
    let is_agent = kind == Kind::KaosAgent;
    Facts {
        kind: Some(kind),
        object: object.clone(),
        settings: settings.clone(),
        operator: operator.to_owned(),
        model_api: api.map(|api| find(Kind::ModelApi, api)),
        mcp_servers: if is_agent { named(Kind::McpServer, "/spec/mcpServers") } else { Vec::new() },
        peers: if is_agent { named(Kind::KaosAgent, "/spec/agentNetwork/access") } else { Vec::new() },
        route: settings.gateway.enabled.then_some(None),
        routes_served: true,
        registry: (place, Some(registry)),
        agent_runtimes: objects.iter().filter(|one| is_beside(one, Kind::AgentRuntime)).cloned().collect(),
        offline: true,
        watched: true,
        ..Facts::default()
    }
}

/// The objects of those names, each once, in the order written.
async fn named(
    cluster: &Cluster,
    (kind, namespace): (Kind, &str),
    names: Option<&Value>,
    notes: &mut Vec<String>,
) -> anyhow::Result<Vec<Named>> {
    let mut all: Vec<Named> = Vec::new();
    for name in names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !name.is_empty() && all.iter().all(|(known, _)| known != name) {
            let path = format!("{}/{name}", kind.path(namespace));
            all.push((name.to_owned(), found(cluster, &path, notes).await?));
        }
    }
    Ok(all)
}

async fn found(cluster: &Cluster, path: &str, notes: &mut Vec<String>) -> anyhow::Result<Option<Value>> {
    Ok(match cluster.get(path).await? {
        Answer::Object(object) => Some(object),
        Answer::Absent => None,
        Answer::Refused(code, message) => {
            cluster.has_not_seen_all();
            notes.push(format!("{path} could not be read ({code}: {message})"));
            None
        }
    })
}
